//! Records of whole changes: guards, headers, numbering, and faults that leave nothing behind.

use std::sync::Arc;

use super::testing::{TestParser, column, event};
use super::{Converter, Converters, DecimalFormat, HeaderConverter, Place, TableWriter, Unrouted};
use crate::change::{
    BeforeImage, Cell, ChangeKind, ColumnType, Event, Scalar, TableId, TableVersion,
};
use crate::error::{Code, Fault};
use crate::plan::TablePlan;
use crate::record::{
    Batch, Expression, Field, Guard, HeaderShape, HeaderValue, Kind, Leaf, Literal, Node,
    RecordShape, Render, Route, Schema, Shape, Topic, TopicId, TopicNaming, Unsent,
};

pub(super) const JSON: Converter =
    Converter::Json { schemas: false, decimals: DecimalFormat::Base64 };

pub(super) fn field(name: &str, schema: &Arc<Schema>) -> Field {
    Field { name: name.to_owned(), schema: Arc::clone(schema) }
}

pub(super) fn value(schema: &Arc<Schema>, leaf: Leaf, render: Render) -> Shape {
    Shape { schema: Arc::clone(schema), node: Node::Value { leaf, render } }
}

/// `id int`, `name text`, and `payload text`, whose values may be left out.
pub(super) struct Table {
    id: Arc<Schema>,
    pub(super) name: Arc<Schema>,
    pub(super) payload: Arc<Schema>,
    clock: Arc<Schema>,
    key: Arc<Schema>,
    value: Arc<Schema>,
}

impl Table {
    pub(super) fn new() -> Self {
        let id = Arc::new(Schema::new(Kind::Int32));
        let name = Arc::new(Schema::new(Kind::String));
        let payload = Arc::new(Schema::new(Kind::String).optional());
        let clock = Arc::new(Schema::new(Kind::Int64).optional());
        let key = Schema::new(Kind::Struct(vec![field("id", &id)])).named("t.Key", None);
        let value = Schema::new(Kind::Struct(vec![
            field("id", &id),
            field("name", &name),
            field("payload", &payload),
            field("lsn", &clock),
            field("ts_ms", &clock),
        ]));
        let value = Arc::new(value.named("t.Value", None));
        Self { id, name, payload, clock, key: Arc::new(key), value }
    }

    pub(super) fn key_shape(&self, leaf: Leaf) -> Shape {
        let node = Node::Struct(vec![value(&self.id, leaf, Render::Int32)]);
        Shape { schema: Arc::clone(&self.key), node }
    }

    pub(super) fn value_shape(&self, unsent: Unsent) -> Shape {
        let column = |schema: &Arc<Schema>, index, render, unsent| Shape {
            schema: Arc::clone(schema),
            node: Node::Column { leaf: Leaf::After(index), render, unsent },
        };
        let node = Node::Struct(vec![
            column(&self.id, 0, Render::Int32, Unsent::Refuse("a record")),
            column(&self.name, 1, Render::Text, Unsent::Refuse("a record")),
            column(&self.payload, 2, Render::Text, unsent),
            value(&self.clock, Leaf::Source(0), Render::Int64),
            value(&self.clock, Leaf::ProcessedAt, Render::ClockMillis),
        ]);
        Shape { schema: Arc::clone(&self.value), node }
    }

    pub(super) fn record(&self, key: Leaf, value: Option<Shape>) -> RecordShape {
        RecordShape {
            topic: Topic::Fixed("srv.t".to_owned()),
            key: Some(self.key_shape(key)),
            value,
            headers: Vec::new(),
            guard: Guard::Always,
        }
    }

    pub(super) fn plan(&self, kind: ChangeKind, records: Vec<RecordShape>) -> TablePlan {
        let version = TableVersion {
            table: TableId { namespace: "public".to_owned(), name: "t".to_owned() },
            native_id: 1,
            epoch: 1,
            fingerprint: 1,
            columns: vec![
                column("id", ColumnType::Int32, TestParser::Int),
                column("name", ColumnType::Text, TestParser::Text),
                column("payload", ColumnType::Text, TestParser::Text),
            ],
            key: vec![0],
            before_image: BeforeImage::Key(vec![0]),
            identity: "default".to_owned(),
            comment: None,
        };
        let mut kinds = ChangeKind::ALL.map(|_| Vec::new());
        kinds[kind as usize] = records;
        TablePlan {
            untellable: None,
            version: Arc::new(version),
            kinds,
            events: [1; ChangeKind::ALL.len()],
            collection: "public.t".to_owned(),
        }
    }
}

fn writer(plan: &TablePlan, converter: Converter) -> TableWriter {
    try_writer(plan, converter).unwrap()
}

fn try_writer(plan: &TablePlan, converter: Converter) -> Result<TableWriter, Fault> {
    let (key, value) = match converter {
        Converter::Avro => (Some(1), Some(0x0102_0304)),
        Converter::Json { .. } | Converter::Text | Converter::Bytes => (None, None),
    };
    let places: Vec<_> = (1..)
        .zip(plan.records())
        .map(|(topic, _)| Some(Place { topic: TopicId(topic), key, value }))
        .collect();
    TableWriter::new(
        plan,
        &Converters { key: converter, value: converter, headers: HeaderConverter::Simple },
        &places,
    )
}

pub(super) const SENT: [Cell; 3] = [
    Cell::Raw { start: 0, len: 1 },
    Cell::Raw { start: 1, len: 3 },
    Cell::Raw { start: 4, len: 2 },
];
pub(super) const NO_PAYLOAD: [Cell; 3] = [SENT[0], SENT[1], Cell::Unavailable];

pub(super) fn change<'a>(
    kind: ChangeKind,
    before: Option<&'a [Cell]>,
    after: Option<&'a [Cell]>,
) -> Event<'a> {
    let event = event(b"7Bobxy9", before, after);
    Event { kind, source: &[Scalar::Int(99)], ..event }
}

/// Each record as `topic key value headers`, in readable form.
pub(super) fn written(batch: &Batch) -> Vec<String> {
    let text = |span| String::from_utf8(batch.bytes(span).to_vec()).unwrap();
    let side = |span: Option<_>| span.map_or_else(|| "-".to_owned(), text);
    batch
        .records()
        .iter()
        .map(|record| {
            let mut line = format!(
                "{}.{} {} {} {}",
                record.sequence,
                record.part,
                record.topic.0,
                side(record.key),
                side(record.value)
            );
            for header in batch.headers(record) {
                line.push_str(&format!(" {}={}", text(header.name), side(header.value)));
            }
            line
        })
        .collect()
}

#[test]
fn an_update_becomes_a_framed_key_and_value() {
    let table = Table::new();
    let record = table.record(Leaf::After(0), Some(table.value_shape(Unsent::Null)));
    let plan = table.plan(ChangeKind::Update, vec![record]);
    let mut batch = Batch::new();
    let event = change(ChangeKind::Update, None, Some(&SENT));
    writer(&plan, Converter::Avro).write(&event, &mut batch).unwrap();
    let record = &batch.records()[0];
    assert_eq!(batch.bytes(record.key.unwrap()), [0, 0, 0, 0, 1, 14]);
    let mut expect = vec![0, 1, 2, 3, 4, 14, 6];
    expect.extend(b"Bob\x02\x04xy\x02\xc6\x01\x02");
    // 1 700 000 000 123 ms, zigzag
    expect.extend([0xf6, 0xa1, 0xab, 0xfe, 0xf9, 0x62]);
    assert_eq!(batch.bytes(record.value.unwrap()), expect);
    assert_eq!((record.sequence, record.part, record.topic), (4, 0, TopicId(1)));
}

#[test]
fn a_key_change_is_a_delete_a_tombstone_and_a_create() {
    let table = Table::new();
    let header = |name: &str, leaf| HeaderShape {
        name: name.to_owned(),
        value: HeaderValue::Shape(table.key_shape(leaf)),
        guard: Guard::Always,
    };
    let mut delete = table.record(Leaf::Before(0), None);
    delete.headers = vec![header("__debezium.newkey", Leaf::After(0))];
    let mut create = table.record(Leaf::After(0), Some(table.value_shape(Unsent::Null)));
    create.headers = vec![header("__debezium.oldkey", Leaf::Before(0))];
    let plan = table.plan(ChangeKind::KeyChange, vec![delete, create]);
    let before = [Cell::Raw { start: 6, len: 1 }, Cell::Unavailable, Cell::Unavailable];
    let event = change(ChangeKind::KeyChange, Some(&before), Some(&SENT));
    let mut batch = Batch::new();
    writer(&plan, JSON).write(&Event { first_part: 2, ..event }, &mut batch).unwrap();
    assert_eq!(
        written(&batch),
        [
            r#"4.2 1 {"id":9} - __debezium.newkey={"id":7}"#,
            concat!(
                r#"4.3 2 {"id":7} {"id":7,"name":"Bob","payload":"xy","lsn":99,"ts_ms":1700000000123}"#,
                r#" __debezium.oldkey={"id":9}"#
            ),
        ]
    );
}

#[test]
fn guards_and_header_expressions_follow_the_row() {
    let table = Table::new();
    let stamp = Unsent::Stamp(Literal::String("__unavailable".to_owned()));
    let mut record = table.record(Leaf::After(0), Some(table.value_shape(stamp)));
    let unsent = vec![Leaf::After(1), Leaf::After(2)];
    let header = |name: &str, value, guard: &Guard| HeaderShape {
        name: name.to_owned(),
        value,
        guard: guard.clone(),
    };
    let some = Guard::AnyUnsent(unsent);
    let names = vec![(Leaf::After(1), "name".to_owned()), (Leaf::After(2), "payload".to_owned())];
    record.headers = vec![
        header("epoch", HeaderValue::Constant("3".to_owned()), &Guard::Always),
        header("unavailable", HeaderValue::Expression(Expression::NamesOfUnsent(names)), &some),
        header("commit", HeaderValue::Expression(Expression::Text(Leaf::CommitPosition)), &some),
        header("seq", HeaderValue::Expression(Expression::Text(Leaf::Sequence)), &some),
    ];
    let mut extra = table.record(Leaf::After(0), None);
    extra.guard = some;
    let plan = table.plan(ChangeKind::Update, vec![record, extra]);
    let writer = writer(&plan, JSON);
    let mut batch = Batch::new();
    writer.write(&change(ChangeKind::Update, None, Some(&SENT)), &mut batch).unwrap();
    writer.write(&change(ChangeKind::Update, None, Some(&NO_PAYLOAD)), &mut batch).unwrap();
    let value = |payload: &str| {
        format!(r#"{{"id":7,"name":"Bob","payload":"{payload}","lsn":99,"ts_ms":1700000000123}}"#)
    };
    assert_eq!(
        written(&batch),
        [
            format!(r#"4.0 1 {{"id":7}} {} epoch=3"#, value("xy")),
            format!(
                r#"4.0 1 {{"id":7}} {} epoch=3 unavailable=payload commit=0/1A2B seq=4"#,
                value("__unavailable")
            ),
            r#"4.1 2 {"id":7} -"#.to_owned(),
        ]
    );
}

#[test]
fn a_header_that_is_one_value_has_no_quotes_and_may_be_null() {
    let table = Table::new();
    let mut record = table.record(Leaf::After(0), None);
    let header = |name: &str, shape: Shape| HeaderShape {
        name: name.to_owned(),
        value: HeaderValue::Shape(shape),
        guard: Guard::Always,
    };
    let constant =
        |literal| Shape { schema: Arc::clone(&table.payload), node: Node::Constant(literal) };
    record.headers = vec![
        header("name", value(&table.name, Leaf::After(1), Render::Text)),
        header("payload", value(&table.payload, Leaf::After(2), Render::Text)),
        header("lsn", value(&table.clock, Leaf::Source(0), Render::Int64)),
        header("op", constant(Literal::String("a\"b".to_owned()))),
        header("none", constant(Literal::Null)),
    ];
    let writer = writer(&table.plan(ChangeKind::Update, vec![record]), JSON);
    let mut batch = Batch::new();
    let null = [SENT[0], SENT[1], Cell::Null];
    writer.write(&change(ChangeKind::Update, None, Some(&null)), &mut batch).unwrap();
    let expect = r#"4.0 1 {"id":7} - name=Bob payload=- lsn=99 op=a"b none=-"#;
    assert_eq!(written(&batch), [expect]);
    let unsent = change(ChangeKind::Update, None, Some(&NO_PAYLOAD));
    let fault = writer.write(&unsent, &mut batch).unwrap_err();
    assert_eq!(fault.code(), Code::ToastUnavailable);
    assert!(fault.message().contains("a header"), "{fault}");
}

/// Texts as they are.
#[derive(Debug)]
struct AsIs;

impl TopicNaming for AsIs {
    fn topic(&self, text: &str) -> String {
        text.to_owned()
    }
}

#[test]
fn a_record_goes_nowhere_before_its_text_is_known() {
    let table = Table::new();
    let mut routed = table.record(Leaf::After(0), Some(table.value_shape(Unsent::Null)));
    let by = value(&table.payload, Leaf::After(2), Render::Text);
    routed.topic = Topic::Routed(Route { by, naming: Arc::new(AsIs) });
    let fixed = table.record(Leaf::After(0), None);
    let plan = table.plan(ChangeKind::Update, vec![fixed, routed]);
    let avro = Converter::Avro;
    let converters = Converters { key: avro, value: avro, headers: HeaderConverter::Simple };
    let place = |topic, key| Place { topic: TopicId(topic), key: Some(key), value: Some(key + 1) };
    let mut writer = TableWriter::new(&plan, &converters, &[Some(place(0, 1)), None]).unwrap();
    let mut batch = Batch::new();
    let sent = change(ChangeKind::Update, None, Some(&SENT));
    let unrouted = writer.write(&sent, &mut batch).unwrap().unwrap();
    assert_eq!(unrouted, Unrouted { record: 1, text: "xy".to_owned() });
    assert!(batch.is_empty() && batch.byte_len() == 0);
    writer.learn(&unrouted, place(7, 0x0102)).unwrap();
    assert_eq!(writer.write(&sent, &mut batch).unwrap(), None);
    let record = &batch.records()[1];
    assert_eq!(record.topic, TopicId(7));
    assert_eq!(batch.bytes(record.key.unwrap()), [0, 0, 0, 1, 2, 14]);
    assert!(batch.bytes(record.value.unwrap()).starts_with(&[0, 0, 0, 1, 3, 14, 6, b'B']));
    // Null and the empty text are one question.
    let null = [SENT[0], SENT[1], Cell::Null];
    let null = change(ChangeKind::Update, None, Some(&null));
    assert_eq!(writer.write(&null, &mut batch).unwrap().unwrap().text, "");
    let unsent = change(ChangeKind::Update, None, Some(&NO_PAYLOAD));
    let fault = writer.write(&unsent, &mut batch).unwrap_err();
    assert_eq!(fault.code(), Code::ToastUnavailable);
    assert!(fault.message().contains("a topic"), "{fault}");
    assert_eq!(batch.records().len(), 2);
    let nobody = Unrouted { record: 0, text: String::new() };
    assert_eq!(writer.learn(&nobody, place(1, 1)).unwrap_err().code(), Code::Internal);
}

#[test]
fn guards_can_ask_for_several_things() {
    let table = Table::new();
    let guarded = |guard| RecordShape { guard, ..table.record(Leaf::After(0), None) };
    let any = |index| Guard::AnyUnsent(vec![Leaf::After(index)]);
    let all = |index| any(index).negated();
    let records = vec![
        guarded(all(2)),
        guarded(Guard::All(vec![any(2), all(1)])),
        guarded(Guard::All(vec![any(2), any(1), Guard::Always])),
        guarded(Guard::Always.negated().negated()),
        guarded(Guard::Always.negated()),
    ];
    let writer = writer(&table.plan(ChangeKind::Update, records), JSON);
    let check = |after: &[Cell], expect: &[u32]| {
        let mut batch = Batch::new();
        writer.write(&change(ChangeKind::Update, None, Some(after)), &mut batch).unwrap();
        let topics: Vec<_> = batch.records().iter().map(|record| record.topic.0).collect();
        assert_eq!(topics, expect);
    };
    check(&SENT, &[1, 4]);
    check(&NO_PAYLOAD, &[2, 4]);
    check(&[SENT[0], Cell::Unavailable, Cell::Unavailable], &[3, 4]);
}

#[test]
fn a_kind_without_records_writes_nothing() {
    let table = Table::new();
    let plan = table.plan(ChangeKind::Update, Vec::new());
    let mut batch = Batch::new();
    writer(&plan, JSON).write(&change(ChangeKind::Delete, None, None), &mut batch).unwrap();
    assert!(batch.is_empty());
}

/// Writes a delete without key columns missing, then what fails, and expects the first alone.
#[track_caller]
fn check_fault(after: Option<&[Cell]>, source: &[Scalar<'_>], code: Code, expect: &str) {
    let table = Table::new();
    let refuse = || table.value_shape(Unsent::Refuse("a record"));
    let good = table.record(Leaf::After(0), None);
    let bad = table.record(Leaf::After(0), Some(refuse()));
    let mut plan = table.plan(ChangeKind::Update, vec![good.clone(), bad]);
    plan.kinds[ChangeKind::Delete as usize] = vec![good];
    let writer = writer(&plan, Converter::Avro);
    let mut batch = Batch::new();
    writer.write(&change(ChangeKind::Delete, None, Some(&SENT)), &mut batch).unwrap();
    let length = batch.byte_len();
    let event = change(ChangeKind::Update, None, after);
    let fault = writer.write(&Event { source, ..event }, &mut batch).unwrap_err();
    assert_eq!(fault.code(), code, "{fault}");
    assert!(fault.to_string().contains(expect), "{fault}");
    assert_eq!(fault.place().table.as_deref(), Some("public.t"));
    assert_eq!((batch.records().len(), batch.byte_len()), (1, length));
}

#[test]
fn a_fault_names_its_place_and_leaves_the_batch_as_it_was() {
    let source = [Scalar::Int(1)];
    check_fault(
        Some(&NO_PAYLOAD),
        &source,
        Code::ToastUnavailable,
        r#"(table public.t, column payload, key {"id":7}, position 0/1A2B, message 4)"#,
    );
    check_fault(
        Some(&[SENT[0], Cell::Null, SENT[2]]),
        &source,
        Code::NullUnexpected,
        r#"column name, key {"id":7}"#,
    );
    check_fault(Some(&[Cell::Unavailable; 3]), &source, Code::ToastUnavailable, "a record key");
    check_fault(Some(&SENT[..1]), &source, Code::ImageInconsistent, "column name");
    check_fault(None, &source, Code::ImageInconsistent, "an image of the row after it");
    check_fault(Some(&SENT), &[], Code::ImageInconsistent, "column source field 0");
    let outside = [SENT[0], SENT[1], Cell::Raw { start: 5, len: 3 }];
    check_fault(Some(&outside), &source, Code::ImageInconsistent, "column payload");
    let malformed = [SENT[1], SENT[1], SENT[2]];
    check_fault(Some(&malformed), &source, Code::ValueMalformed, "malformed integer");
    let wrong = [Scalar::Bool(true)];
    check_fault(Some(&SENT), &wrong, Code::ValueUnrepresentable, "source field 0");
}

#[test]
fn a_snapshot_row_is_named_by_its_number() {
    let table = Table::new();
    let shape = table.value_shape(Unsent::Refuse("a record"));
    let plan = table.plan(ChangeKind::Read, vec![table.record(Leaf::After(0), Some(shape))]);
    let event = change(ChangeKind::Read, None, Some(&NO_PAYLOAD));
    let event = Event { commit_position: "", ..event };
    let fault = writer(&plan, JSON).write(&event, &mut Batch::new()).unwrap_err();
    assert_eq!(fault.place().position.as_deref(), Some("snapshot row 4"));
}

#[test]
fn a_key_reads_as_text_for_the_record_that_is_asked_for() {
    let table = Table::new();
    let records = vec![table.record(Leaf::Before(0), None), table.record(Leaf::After(0), None)];
    let plan = table.plan(ChangeKind::KeyChange, records);
    let writer = writer(&plan, Converter::Avro);
    let before = [Cell::Raw { start: 6, len: 1 }, Cell::Unavailable, Cell::Unavailable];
    let event = change(ChangeKind::KeyChange, Some(&before), Some(&SENT));
    let event = Event { first_part: 5, ..event };
    assert_eq!(writer.readable_key(&event, 5).as_deref(), Some(r#"{"id":9}"#));
    assert_eq!(writer.readable_key(&event, 6).as_deref(), Some(r#"{"id":7}"#));
    assert_eq!(writer.readable_key(&event, 7), None);
    assert_eq!(writer.readable_key(&event, 0), None);
}

#[test]
fn a_plan_that_contradicts_itself_is_refused() {
    let table = Table::new();
    let check = |change: &dyn Fn(&mut TablePlan), expect: &str| {
        let value = table.value_shape(Unsent::Refuse("a record"));
        let record = table.record(Leaf::After(0), Some(value));
        let mut plan = table.plan(ChangeKind::Update, vec![record]);
        change(&mut plan);
        let fault = try_writer(&plan, Converter::Avro).unwrap_err();
        assert_eq!(fault.code(), Code::Internal, "{fault}");
        assert!(fault.to_string().contains(expect), "{fault}");
    };
    fn record(plan: &mut TablePlan) -> &mut RecordShape {
        &mut plan.kinds[ChangeKind::Update as usize][0]
    }
    check(&|plan| record(plan).key = Some(table.key_shape(Leaf::After(3))), "column 3");
    check(
        &|plan| {
            let shape = record(plan).value.as_mut().unwrap();
            let Node::Struct(fields) = &mut shape.node else { panic!() };
            fields.swap(0, 1);
        },
        "field 'id' has another schema",
    );
    check(
        &|plan| {
            let shape = record(plan).value.as_mut().unwrap();
            let Node::Struct(fields) = &mut shape.node else { panic!() };
            let Node::Value { render, .. } = &mut fields[3].node else { panic!() };
            *render = Render::Int32;
        },
        "Int32 does not write values of kind Int64",
    );
    check(
        &|plan| {
            let unsent = Unsent::Stamp(Literal::Int(1));
            record(plan).value = Some(table.value_shape(unsent));
        },
        "not of its schema's kind",
    );
    check(
        &|plan| {
            let shape = record(plan).value.as_mut().unwrap();
            let Node::Struct(fields) = &mut shape.node else { panic!() };
            fields[0].node = Node::Constant(Literal::Null);
        },
        "cannot be null",
    );
}

#[test]
fn an_unregistered_schema_is_refused() {
    let table = Table::new();
    let plan = table.plan(ChangeKind::Update, vec![table.record(Leaf::After(0), None)]);
    let headers = HeaderConverter::Simple;
    let converters = Converters { key: Converter::Avro, value: Converter::Avro, headers };
    let place = Some(Place { topic: TopicId(0), key: None, value: None });
    let fault = TableWriter::new(&plan, &converters, &[place]).unwrap_err();
    assert_eq!(fault.code(), Code::Internal);
    assert_eq!(fault.place().table.as_deref(), Some("public.t"));
}

#[track_caller]
fn check_literal(converter: Converter, schema: &Schema, literal: &Literal, expect: &[u8]) {
    let id = (converter == Converter::Avro).then_some(258);
    let mut out = Vec::new();
    converter.encode_literal(schema, id, literal, &mut out).unwrap();
    assert_eq!(out, expect, "{}", String::from_utf8_lossy(&out));
}

#[test]
fn control_records_are_literals_with_the_same_framing() {
    let text = Arc::new(Schema::new(Kind::String).optional());
    let schema = Schema::new(Kind::Struct(vec![field("a", &text), field("b", &text)]));
    let literal = Literal::Struct(vec![Literal::String("x".to_owned()), Literal::Null]);
    check_literal(Converter::Avro, &schema, &literal, b"\0\0\0\x01\x02\x02\x02x\0");
    check_literal(JSON, &schema, &literal, br#"{"a":"x","b":null}"#);
    let with_schema = Converter::Json { schemas: true, decimals: DecimalFormat::Base64 };
    check_literal(
        with_schema,
        &schema,
        &literal,
        concat!(
            r#"{"schema":{"type":"struct","fields":["#,
            r#"{"type":"string","optional":true,"field":"a"},"#,
            r#"{"type":"string","optional":true,"field":"b"}],"optional":false},"#,
            r#""payload":{"a":"x","b":null}}"#
        )
        .as_bytes(),
    );
    let map = Schema::new(Kind::Map(Arc::new(Schema::new(Kind::Int32))));
    let entries = vec![("k".to_owned(), Literal::Int(1)), ("l".to_owned(), Literal::Int(-1))];
    let entries = Literal::Map(entries);
    check_literal(Converter::Avro, &map, &entries, b"\0\0\0\x01\x02\x04\x02k\x02\x02l\x01\0");
    check_literal(JSON, &map, &entries, br#"{"k":1,"l":-1}"#);
}

#[test]
fn decimals_and_special_numbers_are_spelled_as_the_format_says() {
    let decimal = Schema::new(Kind::Bytes)
        .named("org.apache.kafka.connect.data.Decimal", Some(1))
        .parameter("scale", "2");
    let literal = Literal::Bytes(vec![0xff, 0x6a]);
    check_literal(JSON, &decimal, &literal, b"\"/2o=\"");
    let numeric = Converter::Json { schemas: false, decimals: DecimalFormat::Numeric };
    check_literal(numeric, &decimal, &literal, b"-1.50");
    check_literal(numeric, &Schema::new(Kind::Bytes), &literal, b"\"/2o=\"");
    let nan = Literal::Float64(f64::NAN);
    check_literal(JSON, &Schema::new(Kind::Float64), &nan, b"\"NaN\"");
}

#[test]
fn a_literal_out_of_range_is_refused() {
    let mut out = Vec::new();
    for (kind, value) in [(Kind::Int8, 128), (Kind::Int16, -32_769), (Kind::Int32, 1 << 31)] {
        let (schema, literal) = (Schema::new(kind), Literal::Int(value));
        let fault = JSON.encode_literal(&schema, None, &literal, &mut out).unwrap_err();
        assert_eq!(fault.code(), Code::Internal);
    }
}

#[test]
fn headers_print_structs_as_connect_does() {
    let decimal = Schema::new(Kind::Bytes)
        .named("org.apache.kafka.connect.data.Decimal", Some(1))
        .parameter("scale", "2");
    let date = Schema::new(Kind::Int32).named("org.apache.kafka.connect.data.Date", Some(1));
    let check = |schema: Schema, literal: Literal, expect: &str| {
        let mut out = Vec::new();
        super::literal::append_literal(&super::Json::Header, &schema, &literal, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expect);
    };
    check(decimal, Literal::Bytes(vec![0x96]), "-1.06");
    check(date, Literal::Int(18_321), "2020-02-29");
    check(Schema::new(Kind::Bytes), Literal::Bytes(vec![1]), "\"AQ==\"");
    check(Schema::new(Kind::Float64), Literal::Float64(f64::INFINITY), "Infinity");
    check(Schema::new(Kind::String), Literal::String("a\"\\\n".to_owned()), "\"a\\\"\\\\\n\"");
    let mut out = Vec::new();
    let (schema, literal) = (Schema::new(Kind::Bytes), Literal::Bytes(vec![1]));
    super::literal::append_literal(&super::Json::Plain, &schema, &literal, &mut out).unwrap();
    assert_eq!(out, b"AQ==");
}

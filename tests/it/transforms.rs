//! Transforms from the configuration to the bytes, against recordings of Debezium with the same
//! configuration and the same changes.
//!
//! Where a recording holds what changes from run to run it has a text with `<` in it; that is taken
//! over. The differences that are left are known, and each is undone by name in [`Difference`].

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use tidegate::change::{
    BeforeImage, Cell, ChangeKind, Column, ColumnDefault, Event, Instant, RowImage, Scalar,
    TableId, TableVersion,
};
use tidegate::config::{ConnectorConfig, Environment, TypedConnector, WorkerConfig};
use tidegate::convert::{
    Converter, Converters, DecimalFormat, HeaderConverter, Place, TableWriter,
};
use tidegate::plan::{BeforeUnsent, TablePlan};
use tidegate::record::{Batch, Record, TopicId};
use tidegate::sources::postgres::values::{TypeCatalogue, resolve};

const INT4: u32 = 23;
const TEXT: u32 = 25;
const TEXTS: u32 = 1009;
const TIMESTAMPTZ: u32 = 1184;
const NUMERIC: u32 = 1700;

/// The modifier of `numeric(precision,scale)`.
const fn digits(precision: i32, scale: i32) -> i32 {
    (precision << 16 | scale) + 4
}

fn column(name: &str, type_oid: u32, modifier: i32) -> Column {
    let resolved = resolve(type_oid, modifier, None, &TypeCatalogue::new(), None);
    Column {
        name: name.to_owned(),
        kind: resolved.kind,
        nullable: true,
        default: None,
        native: resolved.native,
        declared: tidegate::change::DeclaredType::default(),
        identity: false,
        comment: None,
        parser: resolved.parser,
    }
}

fn required(name: &str, type_oid: u32) -> Column {
    Column { nullable: false, ..column(name, type_oid, -1) }
}

fn table(name: &str, columns: Vec<Column>) -> TableVersion {
    TableVersion {
        table: TableId { namespace: "public".to_owned(), name: name.to_owned() },
        native_id: 1,
        epoch: 1,
        fingerprint: 1,
        columns,
        key: vec![0],
        before_image: BeforeImage::Key(vec![0]),
        identity: "default".to_owned(),
        comment: None,
    }
}

fn un() -> TableVersion {
    let qty = column("qty", INT4, -1);
    table(
        "un",
        vec![
            required("id", INT4),
            required("name", TEXT),
            Column { default: Some(ColumnDefault::Literal(b"7".to_vec())), ..qty },
            column("amount", NUMERIC, digits(6, 2)),
            column("at", TIMESTAMPTZ, -1),
            column("tags", TEXTS, -1),
        ],
    )
}

fn un_full() -> TableVersion {
    let columns = vec![required("id", INT4), column("a", INT4, -1), column("b", TEXT, -1)];
    TableVersion { before_image: BeforeImage::Full, ..table("un_full", columns) }
}

fn smt() -> TableVersion {
    table(
        "smt",
        vec![
            required("id", INT4),
            column("a", INT4, -1),
            column("b", TEXT, -1),
            column("c", NUMERIC, digits(5, 2)),
            column("at", TIMESTAMPTZ, -1),
        ],
    )
}

fn un_big() -> TableVersion {
    let columns = vec![
        required("id", INT4),
        column("v", INT4, -1),
        column("doc", TEXT, -1),
        column("n", NUMERIC, -1),
    ];
    table("un_big", columns)
}

/// A change: its table, what happened, the row before and after; columns are parted by bars, `~` is
/// NULL and `?` was not sent.
type Change = (usize, ChangeKind, Option<&'static str>, Option<&'static str>);

/// What was done to `un` (0) and `un_full` (1), the rows of the snapshot first.
const UN: &[Change] = &[
    (0, ChangeKind::Read, None, Some("1|one|1|1.50|2024-01-01 00:00:00+00|{a}")),
    (0, ChangeKind::Read, None, Some("2|two|~|~|~|~")),
    (1, ChangeKind::Read, None, Some("1|1|x")),
    (0, ChangeKind::Create, None, Some("3|three|~|3.00|~|{}")),
    (0, ChangeKind::Update, None, Some("1|one|5|1.50|2024-01-01 00:00:00+00|{a}")),
    (
        0,
        ChangeKind::KeyChange,
        Some("1|?|?|?|?|?"),
        Some("10|one|5|1.50|2024-01-01 00:00:00+00|{a}"),
    ),
    (0, ChangeKind::Delete, Some("2|?|?|?|?|?"), None),
    (1, ChangeKind::Update, Some("1|1|x"), Some("1|1|y")),
    (1, ChangeKind::Delete, Some("1|1|y"), None),
    (1, ChangeKind::Truncate, None, None),
];

const SMT: &[Change] = &[
    (0, ChangeKind::Read, None, Some("1|1|x|1.50|2024-01-01 00:00:00+00")),
    (0, ChangeKind::Create, None, Some("2|2|y|2.50|~")),
    (0, ChangeKind::KeyChange, Some("1|?|?|?|?"), Some("3|1|x|1.50|2024-01-01 00:00:00+00")),
    (0, ChangeKind::Delete, Some("2|?|?|?|?"), None),
];

const BIG: &[Change] = &[
    (0, ChangeKind::Update, None, Some("1|2|?|?")),
    (0, ChangeKind::KeyChange, Some("1|?|?|?"), Some("2|2|?|?")),
];

/// What is different on purpose, undone so that the rest can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Difference {
    /// There, a null in a column with a default is the default.
    DefaultForNull(&'static str, i64),
    /// There, a streamed row has no snapshot marker once it is out of its envelope.
    NoMarker(&'static str),
    /// There, a large number that was not sent is null.
    NullForMarker(&'static str),
    /// There, a delete has a header for a value that was not sent, and it is null.
    NullForNoHeader(&'static str),
}

/// The marker of all rows of a snapshot, here.
const MARKER: &str = "first";

fn golden(case: &str, file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/golden");
    std::fs::read_to_string(path.join(case).join(file)).unwrap_or_default()
}

fn connector(case: &str) -> TypedConnector {
    let mut config: ConnectorConfig =
        serde_json::from_str(&golden(case, "connector.json")).unwrap();
    for (key, value) in [
        ("name", "c"),
        ("database.hostname", "db"),
        ("database.password", "p"),
        ("key.converter", "JsonConverter"),
        ("value.converter", "JsonConverter"),
        ("before.unsent", "fill"),
    ] {
        config.insert(key.to_owned(), Some(value.to_owned()));
    }
    let environment: Environment = Arc::new(|_name| None);
    let worker = WorkerConfig::parse("bootstrap.servers=localhost:9092\n", &environment).unwrap();
    TypedConnector::parse(&config, &worker).unwrap()
}

/// The plans of a case's tables.
fn plans(case: &str, tables: Vec<TableVersion>) -> Vec<TablePlan> {
    let connector = connector(case);
    assert_eq!(connector.plan.before_unsent, BeforeUnsent::Fill);
    let source = connector.source.block(&connector.plan.topic_prefix);
    let compile =
        |version| TablePlan::compile(Arc::new(version), &connector.plan, &source).unwrap();
    tables.into_iter().map(compile).collect()
}

/// A plan that writes, with the topics of its records by number.
struct Written {
    writer: TableWriter,
    topics: Vec<String>,
}

impl Written {
    fn new(plan: &TablePlan) -> Self {
        let json = Converter::Json { schemas: false, decimals: DecimalFormat::Base64 };
        let converters = Converters { key: json, value: json, headers: HeaderConverter::Simple };
        let topics: Vec<_> =
            plan.records().map(|record| record.topic.fixed().unwrap().to_owned()).collect();
        let place = |(index, _)| Some(Place { topic: TopicId(index), key: None, value: None });
        let places: Vec<_> = (0..).zip(&topics).map(place).collect();
        Self { writer: TableWriter::new(plan, &converters, &places).unwrap(), topics }
    }

    /// The records of a change in the form of the recording.
    fn records(&self, (_, kind, before, after): Change) -> Vec<Value> {
        let mut bytes = Vec::new();
        let mut cells = |row: &str| -> Vec<Cell> {
            row.split('|').map(|cell| append(cell, &mut bytes)).collect()
        };
        let (before, after) = (before.map(&mut cells), after.map(&mut cells));
        let marker = if kind == ChangeKind::Read { MARKER } else { "false" };
        let time = Scalar::Timestamp(Instant::At(1_700_000_000_000_000));
        let event = Event {
            kind,
            row: RowImage {
                bytes: &bytes,
                before: before.as_deref(),
                after: after.as_deref(),
                reread: &[],
            },
            source: &[
                time,
                Scalar::Text(marker),
                Scalar::Text("[]"),
                Scalar::Int(700),
                Scalar::Int(1000),
                Scalar::Null,
                Scalar::Null,
            ],
            commit_position: "0/1",
            sequence: 1,
            first_part: 0,
            processed_micros: 1_700_000_000_000_000,
            transaction: None,
        };
        let mut batch = Batch::new();
        assert_eq!(self.writer.write(&event, &mut batch).unwrap(), None);
        batch.records().iter().map(|record| self.line(record, &batch)).collect()
    }

    fn line(&self, record: &Record, batch: &Batch) -> Value {
        let parsed = |span| serde_json::from_slice(batch.bytes(span)).unwrap();
        let text = |span| String::from_utf8(batch.bytes(span).to_vec()).unwrap();
        let mut line = Map::new();
        line.insert("topic".to_owned(), self.topics[record.topic.0 as usize].clone().into());
        line.insert("key".to_owned(), record.key.map_or(Value::Null, parsed));
        line.insert("value".to_owned(), record.value.map_or(Value::Null, parsed));
        let headers = batch.headers(record).iter().map(|header| (text(header.name), header.value));
        let headers: Map<_, _> = headers
            .filter(|(name, _)| !name.starts_with("__tidegate."))
            .map(|(name, value)| (name, value.map_or(Value::Null, |span| text(span).into())))
            .collect();
        line.insert("headers".to_owned(), headers.into());
        Value::Object(line)
    }
}

fn append(cell: &str, bytes: &mut Vec<u8>) -> Cell {
    match cell {
        "~" => Cell::Null,
        "?" => Cell::Unavailable,
        text => {
            let start = u32::try_from(bytes.len()).unwrap();
            bytes.extend_from_slice(text.as_bytes());
            Cell::Raw { start, len: u32::try_from(text.len()).unwrap() }
        }
    }
}

/// A recorded line in the form of [`Written::line`]: headers as texts, schemas left out.
fn recorded(line: &str) -> Value {
    let mut record: Value = serde_json::from_str(line).unwrap();
    let headers: Map<_, _> = record["headers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|header| {
            let value = match &header["value"] {
                Value::Null => Value::Null,
                Value::String(text) => text.clone().into(),
                other => other.to_string().into(),
            };
            (header["name"].as_str().unwrap().to_owned(), value)
        })
        .collect();
    let mut line = Map::new();
    for member in ["topic", "key", "value"] {
        line.insert(member.to_owned(), record[member].take());
    }
    line.insert("headers".to_owned(), headers.into());
    Value::Object(line)
}

/// Takes over what changes from run to run, and which of the snapshot's rows it is.
fn take_over(recorded: &Value, ours: &mut Value) {
    match (recorded, ours) {
        (Value::String(_), ours) if *ours == MARKER => *ours = recorded.clone(),
        (Value::String(text), ours) if text.contains('<') && !ours.is_null() => {
            *ours = recorded.clone();
        }
        (Value::Object(recorded), Value::Object(ours)) => {
            for (name, ours) in ours.iter_mut() {
                take_over(recorded.get(name).unwrap_or(&Value::Null), ours);
            }
        }
        _ => {}
    }
}

fn undo(differences: &[Difference], line: &mut Value) {
    let mut replace = |name: &str, is_other: fn(&Value) -> bool, there: Value| {
        if let Some(value) = line["value"].get_mut(name).filter(|value| is_other(value)) {
            *value = there;
        }
    };
    for difference in differences {
        match difference {
            Difference::DefaultForNull(name, default) => {
                replace(name, Value::is_null, (*default).into());
            }
            Difference::NoMarker(name) => replace(name, |value| value == "false", Value::Null),
            Difference::NullForMarker(name) => replace(name, Value::is_object, Value::Null),
            Difference::NullForNoHeader(_) => {}
        }
    }
    for difference in differences {
        if let Difference::NullForNoHeader(name) = difference
            && line["topic"] == "shop.public.un"
            && let Value::Object(headers) = &mut line["headers"]
        {
            headers.entry(*name).or_insert(Value::Null);
        }
    }
}

/// Compares the records of all changes, in order.
#[track_caller]
fn check(case: &str, tables: Vec<TableVersion>, changes: &[Change], differences: &[Difference]) {
    let tables: Vec<_> = plans(case, tables).iter().map(Written::new).collect();
    let ours = changes.iter().flat_map(|change| tables[change.0].records(*change));
    let text = golden(case, "snapshot.jsonl") + &golden(case, "stream.jsonl");
    let recorded: Vec<_> = text.lines().map(recorded).collect();
    let ours: Vec<_> = ours
        .enumerate()
        .map(|(index, mut ours)| {
            undo(differences, &mut ours);
            if let Some(recorded) = recorded.get(index) {
                take_over(recorded, &mut ours);
            }
            ours.to_string()
        })
        .collect();
    let recorded: Vec<_> = recorded.iter().map(ToString::to_string).collect();
    assert_eq!(ours, recorded, "{case}");
}

const QTY: Difference = Difference::DefaultForNull("qty", 7);

#[track_caller]
fn check_unwrap(case: &str, more: &[Difference]) {
    check(case, vec![un(), un_full()], UN, &[&[QTY], more].concat());
}

#[test]
fn rows_and_deletes_in_every_mode() {
    for mode in
        ["default", "tombstone", "delete-to-tombstone", "drop", "rewrite", "rewrite-with-tombstone"]
    {
        check_unwrap(&format!("unwrap-{mode}"), &[]);
    }
}

#[test]
fn parts_of_the_envelope_as_fields_and_headers() {
    check_unwrap("unwrap-add-fields", &[Difference::NoMarker("__source_snapshot")]);
    check_unwrap("unwrap-add-headers", &[Difference::NullForNoHeader("meta-before_qty")]);
    check_unwrap("unwrap-prefix-null-default", &[]);
}

#[test]
fn a_value_that_was_not_sent_is_marked_in_its_row() {
    check("unwrap-toast", vec![un_big()], BIG, &[Difference::NullForMarker("n")]);
}

#[test]
fn envelopes_filtered_and_routed() {
    check("smt-filter", vec![smt()], SMT, &[]);
    check("smt-route-regex", vec![smt()], SMT, &[]);
}

/// Compares the schema of a table's values with the recorded one.
#[track_caller]
fn check_schema(case: &str, file: &str, version: TableVersion) {
    let plan = plans(case, vec![version]).remove(0);
    let value = plan.records().find_map(|record| record.value.as_ref()).unwrap();
    let expect = golden(case, &format!("{file}.value.avsc"));
    let ours = Converter::Avro.schema_text(&value.schema).unwrap().unwrap();
    let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap().to_string();
    assert_eq!(parsed(&ours), parsed(&expect), "{case}");
}

#[test]
fn schemas_are_debeziums() {
    check_schema("unwrap-default", "un", un());
    check_schema("unwrap-rewrite", "un", un());
    check_schema("unwrap-add-fields", "un", un());
    check_schema("unwrap-add-fields", "un_full", un_full());
    check_schema("unwrap-prefix-null-default", "un", un());
    check_schema("unwrap-toast", "un_big", un_big());
    check_schema("smt-route-regex", "smt-public-cdc", smt());
}

//! What each converter makes of the same records: keys, values and headers.

use std::sync::Arc;

use super::table_tests::{JSON, NO_PAYLOAD, SENT, Table, change, field, value, written};
use super::{Converter, Converters, DecimalFormat, HeaderConverter, Place, TableWriter};
use crate::change::{Cell, ChangeKind};
use crate::error::Code;
use crate::record::{
    Batch, Expression, Guard, HeaderShape, HeaderValue, Kind, Leaf, Literal, Node, RecordShape,
    Render, Schema, Shape, TopicId, Unsent,
};

const HEADER_JSON: HeaderConverter =
    HeaderConverter::Json { schemas: false, decimals: DecimalFormat::Base64 };
const HEADER_SCHEMAS: HeaderConverter =
    HeaderConverter::Json { schemas: true, decimals: DecimalFormat::Base64 };

fn header(name: &str, value: HeaderValue) -> HeaderShape {
    HeaderShape { name: name.to_owned(), value, guard: Guard::Always }
}

#[track_caller]
fn write(table: &Table, record: RecordShape, converters: &Converters, after: &[Cell]) -> String {
    let plan = table.plan(ChangeKind::Update, vec![record]);
    let place = Some(Place { topic: TopicId(1), key: Some(1), value: Some(2) });
    let writer = TableWriter::new(&plan, converters, &[place]).unwrap();
    let mut batch = Batch::new();
    writer.write(&change(ChangeKind::Update, None, Some(after)), &mut batch).unwrap();
    written(&batch).concat()
}

/// Text headers of every kind, then a struct, a null and single values.
fn with_headers(table: &Table) -> RecordShape {
    let text = |leaf| HeaderValue::Expression(Expression::Text(leaf));
    let names = vec![(Leaf::After(1), "na\"me".to_owned()), (Leaf::After(2), "pay\\".to_owned())];
    let mut record = table.record(Leaf::After(0), None);
    let null = Shape { schema: Arc::clone(&table.payload), node: Node::Constant(Literal::Null) };
    record.headers = vec![
        header("constant", HeaderValue::Constant("3\"".to_owned())),
        header("unsent", HeaderValue::Expression(Expression::NamesOfUnsent(names))),
        header("commit", text(Leaf::CommitPosition)),
        header("seq", text(Leaf::Sequence)),
        header("part", HeaderValue::Expression(Expression::Part)),
        header("source", text(Leaf::Source(0))),
        header("key", HeaderValue::Shape(table.key_shape(Leaf::After(0)))),
        header("null", HeaderValue::Shape(null)),
        header("name", HeaderValue::Shape(value(&table.name, Leaf::After(1), Render::Text))),
    ];
    record
}

#[track_caller]
fn check_headers(headers: HeaderConverter, expect: &str) {
    let table = Table::new();
    let converters = Converters { key: JSON, value: JSON, headers };
    let line = write(&table, with_headers(&table), &converters, &NO_PAYLOAD);
    assert_eq!(line, format!(r#"4.0 1 {{"id":7}} - {expect}"#));
}

#[test]
fn headers_are_texts_json_or_json_with_schemas() {
    check_headers(
        HeaderConverter::Simple,
        "constant=3\" unsent=pay\\ commit=0/1A2B seq=4 part=0 source=99 key={\"id\":7} null=- name=Bob",
    );
    check_headers(
        HeaderConverter::Text,
        "constant=3\" unsent=pay\\ commit=0/1A2B seq=4 part=0 source=99 key=Struct{id=7} null=- name=Bob",
    );
    check_headers(
        HEADER_JSON,
        r#"constant="3\"" unsent="pay\\" commit="0/1A2B" seq="4" part="0" source="99" key={"id":7} null=null name="Bob""#,
    );
    let text = |text: &str| {
        format!(r#"{{"schema":{{"type":"string","optional":false}},"payload":{text}}}"#)
    };
    let key = concat!(
        r#"{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"}],"#,
        r#""optional":false,"name":"t.Key"},"payload":{"id":7}}"#
    );
    check_headers(
        HEADER_SCHEMAS,
        &format!(
            "constant={} unsent={} commit={} seq={} part={} source={} key={key} null={} name={}",
            text(r#""3\"""#),
            text(r#""pay\\""#),
            text(r#""0/1A2B""#),
            text(r#""4""#),
            text(r#""0""#),
            text(r#""99""#),
            r#"{"schema":{"type":"string","optional":true},"payload":null}"#,
            text(r#""Bob""#),
        ),
    );
}

/// A key in one converter and a value in another.
#[track_caller]
fn check(key: Converter, value: Converter, after: &[Cell], expect: &str) {
    let table = Table::new();
    let stamp = Unsent::Stamp(Literal::String("null".to_owned()));
    let record = table.record(Leaf::After(0), Some(table.value_shape(stamp)));
    let converters = Converters { key, value, headers: HeaderConverter::Simple };
    assert_eq!(write(&table, record, &converters, after), expect);
}

#[test]
fn a_text_converter_prints_structs_as_java_does_and_leaves_nulls_out() {
    check(
        Converter::Text,
        JSON,
        &SENT,
        r#"4.0 1 Struct{id=7} {"id":7,"name":"Bob","payload":"xy","lsn":99,"ts_ms":1700000000123}"#,
    );
    let value = |payload: &str| {
        format!(r#"4.0 1 {{"id":7}} Struct{{id=7,name=Bob{payload},lsn=99,ts_ms=1700000000123}}"#)
    };
    check(JSON, Converter::Text, &SENT, &value(",payload=xy"));
    check(JSON, Converter::Text, &[SENT[0], SENT[1], Cell::Null], &value(""));
    // The marker is a text that happens to look like a null.
    check(JSON, Converter::Text, &NO_PAYLOAD, &value(",payload=null"));
}

#[test]
fn a_null_that_stands_for_what_was_not_sent_is_left_out_too() {
    let table = Table::new();
    let record = table.record(Leaf::After(0), Some(table.value_shape(Unsent::Null)));
    let text = Converter::Text;
    let converters = Converters { key: text, value: text, headers: HeaderConverter::Simple };
    assert_eq!(
        write(&table, record, &converters, &NO_PAYLOAD),
        "4.0 1 Struct{id=7} Struct{id=7,name=Bob,lsn=99,ts_ms=1700000000123}"
    );
}

#[track_caller]
fn check_text(schema: &Schema, literal: &Literal, expect: &str) {
    let mut out = Vec::new();
    Converter::Text.encode_literal(schema, None, literal, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), expect);
}

fn logical(kind: Kind, name: &str) -> Schema {
    Schema::new(kind).named(format!("org.apache.kafka.connect.data.{name}"), Some(1))
}

#[test]
fn values_are_spelled_as_java_spells_them() {
    let text = |text: &str| Literal::String(text.to_owned());
    check_text(&Schema::new(Kind::Boolean), &Literal::Boolean(true), "true");
    check_text(&Schema::new(Kind::Float64), &Literal::Float64(1e10), "1.0E10");
    check_text(&Schema::new(Kind::Float64), &Literal::Float64(f64::NEG_INFINITY), "-Infinity");
    check_text(&Schema::new(Kind::Float32), &Literal::Float32(0.5), "0.5");
    check_text(&Schema::new(Kind::String), &text("a \"b\"\n"), "a \"b\"\n");
    let decimal = logical(Kind::Bytes, "Decimal").parameter("scale", "2");
    check_text(&decimal, &Literal::Bytes(vec![0x05, 0xdc]), "15.00");
    check_text(&logical(Kind::Int32, "Date"), &Literal::Int(19_000), "2022-01-08");
    let strings = Arc::new(Schema::new(Kind::String).optional());
    let list = Schema::new(Kind::Array(Arc::clone(&strings)));
    check_text(&list, &Literal::Array(vec![text("a"), Literal::Null]), "[a, null]");
    let map = Schema::new(Kind::Map(Arc::clone(&strings)));
    let entries = vec![("k".to_owned(), text("v")), ("l".to_owned(), Literal::Null)];
    check_text(&map, &Literal::Map(entries), "{k=v, l=null}");
    let inner = Arc::new(
        Schema::new(Kind::Struct(vec![field("a", &strings), field("b", &strings)])).optional(),
    );
    let outer = Schema::new(Kind::Struct(vec![field("x", &inner), field("y", &strings)]));
    let pair = |a, b| Literal::Struct(vec![a, b]);
    check_text(
        &outer,
        &pair(pair(Literal::Null, text("{")), text("1,")),
        "Struct{x=Struct{b={},y=1,}",
    );
    check_text(
        &outer,
        &pair(pair(Literal::Null, Literal::Null), Literal::Null),
        "Struct{x=Struct{}}",
    );
    check_text(&outer, &pair(Literal::Null, Literal::Null), "Struct{}");
}

/// A value that is no struct, as transforms make them.
#[track_caller]
fn check_single(converter: Converter, shape: Shape, after: &[Cell], expect: &str) {
    let table = Table::new();
    let record = table.record(Leaf::After(0), Some(shape));
    let converters = Converters { key: JSON, value: converter, headers: HeaderConverter::Simple };
    assert_eq!(write(&table, record, &converters, after), format!(r#"4.0 1 {{"id":7}} {expect}"#));
}

#[test]
fn a_single_value_that_is_null_is_kafkas_null_except_in_json() {
    let schema = Arc::new(Schema::new(Kind::String).optional());
    let payload = || value(&schema, Leaf::After(2), Render::Text);
    let none = || Shape { schema: Arc::clone(&schema), node: Node::Constant(Literal::Null) };
    let null = [SENT[0], SENT[1], Cell::Null];
    check_single(Converter::Text, payload(), &SENT, "xy");
    check_single(Converter::Text, payload(), &null, "-");
    check_single(Converter::Text, none(), &SENT, "-");
    check_single(JSON, payload(), &null, "null");
    check_single(JSON, none(), &SENT, "null");
    let bytes = Arc::new(Schema::new(Kind::Bytes).optional());
    let constant = |literal| Shape { schema: Arc::clone(&bytes), node: Node::Constant(literal) };
    check_single(Converter::Bytes, constant(Literal::Bytes(b"\x01ab".to_vec())), &SENT, "\x01ab");
    check_single(Converter::Bytes, constant(Literal::Null), &SENT, "-");
}

#[track_caller]
fn check_refused(converter: Converter, schema: &Schema, expect: &str) {
    let fault = converter.schema_text(schema).unwrap_err();
    assert_eq!(fault.code(), Code::ConverterUnsuitable);
    assert!(fault.to_string().contains(expect), "{fault}");
}

#[test]
fn what_has_no_text_or_is_no_bytes_is_refused() {
    let bytes = Arc::new(Schema::new(Kind::Bytes));
    let list = Arc::new(Schema::new(Kind::Array(Arc::clone(&bytes))));
    let structure = Schema::new(Kind::Struct(vec![field("photo", &list)]));
    check_refused(Converter::Text, &structure, "photo");
    check_refused(Converter::Bytes, &structure, "this is a struct");
    let decimal = logical(Kind::Bytes, "Decimal").parameter("scale", "2");
    check_refused(Converter::Bytes, &decimal, "this is a decimal");
    check_refused(Converter::Bytes, &Schema::new(Kind::String), "another kind");
    assert_eq!(Converter::Text.schema_text(&decimal), Ok(None));
    assert_eq!(Converter::Bytes.schema_text(&bytes), Ok(None));
}

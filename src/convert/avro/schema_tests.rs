//! Schema texts against recorded ones, and what must be refused.

use std::sync::Arc;

use super::schema::schema_text;
use crate::convert::testing::{compact, golden_files, schema_from_json};
use crate::error::Code;
use crate::record::{Field, Kind, Literal, Schema};

#[test]
fn recorded_schemas_are_spelled_byte_for_byte() {
    let files = golden_files(".schema.json");
    assert!(!files.is_empty());
    let mut failures = Vec::new();
    for file in &files {
        let json = std::fs::read_to_string(file).unwrap();
        let schema = schema_from_json(&serde_json::from_str(&json).unwrap());
        let name = file.to_str().unwrap().replace(".schema.json", ".avsc");
        let recorded = std::fs::read_to_string(&name);
        let recorded = recorded.ok().map(|text| compact(&text));
        let ours = schema_text(&schema);
        let right = match (&ours, &recorded) {
            (Ok(ours), Some(recorded)) => ours == recorded,
            // The recording's writer does not check every name, other readers do.
            (Err(fault), Some(recorded)) => {
                fault.code() == Code::SchemaIllegalName
                    && apache_avro::Schema::parse_str(recorded).is_err()
            }
            (ours, None) => ours.is_err(),
        };
        if !right {
            failures.push(format!("{name}\n  ours   {ours:?}\n  theirs {recorded:?}"));
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), files.len(), failures.join("\n"));
}

fn field(name: &str, schema: Schema) -> Field {
    Field { name: name.to_owned(), schema: Arc::new(schema) }
}

fn record(name: &str, fields: Vec<Field>) -> Schema {
    Schema::new(Kind::Struct(fields)).named(name, None)
}

#[track_caller]
fn check(schema: &Schema, expect: &str) {
    assert_eq!(schema_text(schema).unwrap(), expect);
}

#[track_caller]
fn check_field(schema: Schema, expect: &str) {
    let text = schema_text(&record("a.R", vec![field("f", schema)])).unwrap();
    let inner = text
        .strip_prefix(
            r#"{"type":"record","name":"R","namespace":"a","fields":[{"name":"f","type":"#,
        )
        .and_then(|text| text.strip_suffix(r#"}],"connect.name":"a.R"}"#));
    assert_eq!(inner, Some(expect), "{text}");
}

#[track_caller]
fn check_refused(schema: &Schema, code: Code, column: Option<&str>, says: &str) {
    let fault = schema_text(schema).unwrap_err();
    assert_eq!(fault.code(), code, "{fault}");
    assert_eq!(fault.place().column.as_deref(), column, "{fault}");
    assert!(fault.to_string().contains(says), "{fault}");
}

#[test]
fn a_schema_without_properties_is_a_bare_name() {
    check(&Schema::new(Kind::String), r#""string""#);
    check(&Schema::new(Kind::Int64).optional(), r#"["null","long"]"#);
    check(&Schema::new(Kind::Int8), r#"{"type":"int","connect.type":"int8"}"#);
}

#[test]
fn properties_stand_in_the_converters_order() {
    check_field(
        Schema::new(Kind::Int16)
            .named("s.T", Some(3))
            .parameter("b", "1")
            .parameter("a", "\"2\"")
            .doc(Some("what it is".to_owned()))
            .default_value(Some(Literal::Int(-5))),
        concat!(
            r#"{"type":"int","connect.doc":"what it is","connect.version":3,"#,
            r#""connect.parameters":{"b":"1","a":"\"2\""},"connect.default":-5,"#,
            r#""connect.name":"s.T","connect.type":"int16"},"default":-5"#
        ),
    );
    check_field(
        Schema::new(Kind::Int32).named("org.apache.kafka.connect.data.Date", Some(1)),
        concat!(
            r#"{"type":"int","connect.version":1,"#,
            r#""connect.name":"org.apache.kafka.connect.data.Date","logicalType":"date"}"#
        ),
    );
}

#[test]
fn a_decimal_without_precision_gets_the_converters_64() {
    check_field(
        Schema::new(Kind::Bytes)
            .named("org.apache.kafka.connect.data.Decimal", Some(1))
            .parameter("scale", "2"),
        concat!(
            r#"{"type":"bytes","scale":2,"precision":64,"connect.version":1,"#,
            r#""connect.parameters":{"scale":"2"},"#,
            r#""connect.name":"org.apache.kafka.connect.data.Decimal","logicalType":"decimal"}"#
        ),
    );
}

#[test]
fn a_scale_that_avro_does_not_allow_is_kept_as_a_property() {
    check_field(
        Schema::new(Kind::Bytes)
            .named("org.apache.kafka.connect.data.Decimal", None)
            .parameter("scale", "-2")
            .parameter("connect.decimal.precision", "3"),
        concat!(
            r#"{"type":"bytes","scale":-2,"precision":3,"#,
            r#""connect.parameters":{"scale":"-2","connect.decimal.precision":"3"},"#,
            r#""connect.name":"org.apache.kafka.connect.data.Decimal","logicalType":"decimal"}"#
        ),
    );
}

#[test]
fn null_stands_behind_the_type_when_there_is_a_default() {
    check_field(Schema::new(Kind::Int32).optional(), r#"["null","int"],"default":null"#);
    check_field(
        Schema::new(Kind::Float64).optional().default_value(Some(Literal::Float64(1e10))),
        r#"[{"type":"double","connect.default":1.0E10},"null"],"default":1.0E10"#,
    );
    check_field(
        Schema::new(Kind::Bytes).default_value(Some(Literal::Bytes(vec![0, 0x7f, 0xe9]))),
        "{\"type\":\"bytes\",\"connect.default\":\"\\u0000\u{7f}é\"},\"default\":\"\\u0000\u{7f}é\"",
    );
}

#[test]
fn a_default_that_json_cannot_say_is_left_out() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        check_field(
            Schema::new(Kind::Float64).optional().default_value(Some(Literal::Float64(value))),
            r#"["null","double"],"default":null"#,
        );
    }
    let array = Kind::Array(Arc::new(Schema::new(Kind::Float32)));
    check_field(
        Schema::new(array).default_value(Some(Literal::Array(vec![Literal::Float32(f32::NAN)]))),
        r#"{"type":"array","items":"float"}"#,
    );
}

#[test]
fn arrays_maps_and_structs_have_defaults_too() {
    let items = Arc::new(Schema::new(Kind::Int32).optional());
    check_field(
        Schema::new(Kind::Array(items))
            .default_value(Some(Literal::Array(vec![Literal::Int(1), Literal::Int(2)]))),
        concat!(
            r#"{"type":"array","items":["null","int"],"connect.default":[1,2]},"#,
            r#""default":[1,2]"#
        ),
    );
    check_field(
        Schema::new(Kind::Map(Arc::new(Schema::new(Kind::String).optional())))
            .optional()
            .default_value(Some(Literal::Map(vec![("k".to_owned(), Literal::Null)]))),
        concat!(
            r#"[{"type":"map","values":["null","string"],"connect.default":{"k":null}},"null"],"#,
            r#""default":{"k":null}"#
        ),
    );
    check_field(
        record("b.P", vec![field("x", Schema::new(Kind::Float64))])
            .optional()
            .default_value(Some(Literal::Struct(vec![Literal::Float64(0.5)]))),
        concat!(
            r#"[{"type":"record","name":"P","namespace":"b","fields":[{"name":"x","type":"double"}],"#,
            r#""connect.default":{"x":0.5},"connect.name":"b.P"},"null"],"default":{"x":0.5}"#
        ),
    );
}

#[test]
fn a_record_is_defined_once_and_named_from_then_on() {
    let inner =
        |space: &str| record(&format!("{space}.V"), vec![field("i", Schema::new(Kind::Int32))]);
    let nested = record("b.N", vec![field("again", inner("a").optional())]);
    check(
        &record("a.R", vec![field("x", inner("a")), field("y", inner("a")), field("z", nested)]),
        concat!(
            r#"{"type":"record","name":"R","namespace":"a","fields":[{"name":"x","type":"#,
            r#"{"type":"record","name":"V","fields":[{"name":"i","type":"int"}],"connect.name":"a.V"}},"#,
            r#"{"name":"y","type":"V"},{"name":"z","type":{"type":"record","name":"N","namespace":"b","#,
            r#""fields":[{"name":"again","type":["null","a.V"],"default":null}],"connect.name":"b.N"}}],"#,
            r#""connect.name":"a.R"}"#
        ),
    );
}

#[test]
fn fields_of_one_record_may_have_different_defaults() {
    let inner = |default: i64| {
        record("a.V", vec![field("i", Schema::new(Kind::Int64))])
            .default_value(Some(Literal::Struct(vec![Literal::Int(default)])))
    };
    let text =
        schema_text(&record("a.R", vec![field("x", inner(1)), field("y", inner(2).optional())]));
    let text = text.unwrap();
    assert!(text.contains(r#"{"name":"y","type":["V","null"],"default":{"i":2}}"#), "{text}");
}

#[test]
fn a_record_called_like_a_type_is_named_in_full() {
    let inner = || record("a.map", vec![field("i", Schema::new(Kind::Int32))]);
    let text = schema_text(&record("a.R", vec![field("x", inner()), field("y", inner())])).unwrap();
    assert!(text.contains(r#"{"name":"y","type":"a.map"}"#), "{text}");
}

#[test]
fn structs_without_a_name_are_numbered() {
    let plain = |fields| Schema::new(Kind::Struct(fields));
    let inner = plain(vec![field("i", Schema::new(Kind::Int32))]);
    check(
        &plain(vec![field("x", inner)]),
        concat!(
            r#"{"type":"record","name":"ConnectDefault","namespace":"io.confluent.connect.avro","#,
            r#""fields":[{"name":"x","type":{"type":"record","name":"ConnectDefault2","#,
            r#""fields":[{"name":"i","type":"int"}]}}]}"#
        ),
    );
}

#[test]
fn illegal_and_doubled_names_are_refused_with_the_name() {
    let int = || Schema::new(Kind::Int32);
    let names = |names: &[&str]| names.iter().map(|name| field(name, int())).collect();
    let illegal = Code::SchemaIllegalName;
    check_refused(&record("a.R", names(&["a b"])), illegal, Some("a b"), "'a b' in record 'a.R'");
    check_refused(&record("a.R", names(&["1st"])), illegal, Some("1st"), "field.name.adjustment");
    check_refused(&record("a.R", names(&["naïve"])), illegal, Some("naïve"), "naïve");
    check_refused(&record("a.R", names(&[""])), illegal, Some(""), "''");
    check_refused(&record("a.R", names(&["x", "x"])), illegal, Some("x"), "two fields called 'x'");
    check_refused(
        &record("srv-1.t.Key", names(&["x"])),
        illegal,
        None,
        "'srv-1' in the record name",
    );
    check_refused(&record("a..R", names(&["x"])), illegal, None, "schema.name.adjustment");
}

#[test]
fn a_schema_that_contradicts_itself_is_refused() {
    let one = record("a.V", vec![field("i", Schema::new(Kind::Int32))]);
    let other = record("a.V", vec![field("i", Schema::new(Kind::Int64))]);
    let both = record("a.R", vec![field("x", one), field("y", other)]);
    check_refused(&both, Code::SchemaInvalid, Some("y"), "both called 'a.V'");
    let wrong = Schema::new(Kind::Int32).default_value(Some(Literal::String("x".to_owned())));
    check_refused(&record("a.R", vec![field("f", wrong)]), Code::SchemaInvalid, Some("f"), "kind");
    let decimal = Schema::new(Kind::Bytes).named("org.apache.kafka.connect.data.Decimal", Some(1));
    check_refused(
        &record("a.R", vec![field("f", decimal)]),
        Code::SchemaInvalid,
        Some("f"),
        "scale",
    );
}

#[test]
fn a_default_beyond_its_type_is_refused_by_the_parser() {
    let wide = Schema::new(Kind::Int32).default_value(Some(Literal::Int(i64::MAX)));
    check_refused(&record("a.R", vec![field("f", wide)]), Code::SchemaInvalid, None, "parser");
}

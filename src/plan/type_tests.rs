//! Every type under every mode that touches it: schema, marker and zero, one line per case.

use std::sync::Arc;

use serde_json::{Value, json};

use super::settings::{BinaryMode, DecimalMode, IntervalMode, KeyValueMode, TimeMode, ValueModes};
use super::testing::connect_json;
use super::types::{PublishedType, published_type, zero};
use crate::change::ColumnType;
use crate::record::{Kind, Literal, Render, Schema};

fn types_of(kind: &ColumnType, modes: &ValueModes) -> (Value, PublishedType) {
    let published = published_type(kind, modes);
    let mut schema = connect_json(&published.schema);
    let members = schema.as_object_mut().unwrap();
    assert_eq!(members.remove("optional"), Some(json!(false)));
    if members.contains_key("name") {
        assert_eq!(members.remove("version"), Some(json!(1)));
    }
    (schema, published)
}

#[track_caller]
fn check_under(modes: &ValueModes, kind: &ColumnType, expect: impl Into<Value>) {
    let (schema, published) = types_of(kind, modes);
    assert_eq!(schema, expect.into());
    assert_fits(&published.schema, &zero(kind, &published.render).unwrap());
    if let Some(marker) = modes.placeholder.marker(&published.render) {
        assert_ne!(marker, Literal::Null);
        assert_fits(&published.schema, &marker);
    }
    // Whatever the type, a list of it can be marked.
    let list = ColumnType::Array(Box::new(kind.clone()));
    let published = published_type(&list, modes);
    let marker = modes.placeholder.marker(&published.render).unwrap();
    assert_fits(&published.schema, &marker);
    assert_ne!(marker, Literal::Array(Vec::new()));
}

/// A marker or zero is of its schema's kind and range.
#[track_caller]
fn assert_fits(schema: &Schema, literal: &Literal) {
    let fits = match (&schema.kind, literal) {
        (_, Literal::Null) => schema.optional,
        (Kind::Boolean, Literal::Boolean(_))
        | (Kind::Int64, Literal::Int(_))
        | (Kind::Float32, Literal::Float32(_))
        | (Kind::Float64, Literal::Float64(_))
        | (Kind::String, Literal::String(_))
        | (Kind::Bytes, Literal::Bytes(_)) => true,
        (Kind::Int16, Literal::Int(value)) => i16::try_from(*value).is_ok(),
        (Kind::Int32, Literal::Int(value)) => i32::try_from(*value).is_ok(),
        (Kind::Array(items), Literal::Array(values)) => {
            values.iter().for_each(|value| assert_fits(items, value));
            true
        }
        (Kind::Struct(fields), Literal::Struct(values)) => {
            fields.iter().zip(values).for_each(|(field, value)| assert_fits(&field.schema, value));
            fields.len() == values.len()
        }
        _ => false,
    };
    assert!(fits, "{literal:?} is no {schema:?}");
}

#[track_caller]
fn check(kind: &ColumnType, expect: impl Into<Value>) {
    check_under(&ValueModes::default(), kind, expect);
}

fn named(kind: &str, name: &str) -> Value {
    json!({"type": kind, "name": name})
}

#[test]
fn types_without_a_mode() {
    check(&ColumnType::Bool, json!({"type": "boolean"}));
    check(&ColumnType::Int16, json!({"type": "int16"}));
    check(&ColumnType::Int32, json!({"type": "int32"}));
    check(&ColumnType::Int64, json!({"type": "int64"}));
    check(&ColumnType::Float32, json!({"type": "float"}));
    check(&ColumnType::Float64, json!({"type": "double"}));
    check(&ColumnType::Text, json!({"type": "string"}));
    check(&ColumnType::Json, named("string", "io.debezium.data.Json"));
    check(&ColumnType::Xml, named("string", "io.debezium.data.Xml"));
    check(&ColumnType::Uuid, named("string", "io.debezium.data.Uuid"));
    check(&ColumnType::LabelTree, named("string", "io.debezium.data.Ltree"));
    check(&ColumnType::TextSearchVector, named("string", "io.debezium.data.Tsvector"));
    check(&ColumnType::KeyValues, named("string", "io.debezium.data.Json"));
    check(&ColumnType::ZonedTime, named("string", "io.debezium.time.ZonedTime"));
    check(
        &ColumnType::ZonedTimestamp { precision: 3 },
        named("string", "io.debezium.time.ZonedTimestamp"),
    );
    check(
        &ColumnType::Enum { labels: ["red".to_owned(), "blue, dark".to_owned()].into() },
        json!({"type": "string", "name": "io.debezium.data.Enum",
               "parameters": {"allowed": "red,blue, dark"}}),
    );
    check(
        &ColumnType::Opaque { type_name: "public.place".to_owned() },
        json!({"type": "string", "name": "io.tidegate.data.Opaque",
               "parameters": {"type": "public.place"}}),
    );
    check(
        &ColumnType::Point,
        json!({"type": "struct", "fields": [
                 {"type": "double", "optional": false, "field": "x"},
                 {"type": "double", "optional": false, "field": "y"},
                 {"type": "bytes", "optional": true, "field": "wkb"},
                 {"type": "int32", "optional": true, "field": "srid"}],
               "name": "io.debezium.data.geometry.Point", "doc": "Geometry (POINT)"}),
    );
}

#[test]
fn bit_strings() {
    let of = |length| ColumnType::Bits { length };
    let bits = |length| json!({"type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": length}});
    check(&of(Some(1)), json!({"type": "boolean"}));
    check(&of(Some(9)), bits("9"));
    check(&of(None), bits("2147483647"));
}

#[test]
fn arrays_have_nullable_elements_whatever_the_type() {
    let array = |element| ColumnType::Array(Box::new(element));
    check(
        &array(ColumnType::Int16),
        json!({"type": "array", "items": {"type": "int16", "optional": true}}),
    );
    check(
        &array(ColumnType::Enum { labels: ["a".to_owned()].into() }),
        json!({"type": "array", "items": {"type": "string", "optional": true,
               "name": "io.debezium.data.Enum", "version": 1, "parameters": {"allowed": "a"}}}),
    );
    check(
        &array(ColumnType::Decimal { precision: 8, scale: 2 }),
        json!({"type": "array", "items": {"type": "bytes", "optional": true,
               "name": "org.apache.kafka.connect.data.Decimal", "version": 1,
               "parameters": {"scale": "2", "connect.decimal.precision": "8"}}}),
    );
}

#[test]
fn decimals() {
    let fixed = ColumnType::Decimal { precision: 10, scale: 2 };
    let negative = ColumnType::Decimal { precision: 3, scale: -2 };
    let kinds = [fixed.clone(), negative.clone(), ColumnType::VariableDecimal, ColumnType::Money];
    let mut modes = ValueModes { money_fraction_digits: 4, ..ValueModes::default() };
    let decimal = |parameters| {
        let name = "org.apache.kafka.connect.data.Decimal";
        json!({"type": "bytes", "name": name, "parameters": parameters})
    };
    let precise = json!({"scale": "2", "connect.decimal.precision": "10"});
    check_under(&modes, &fixed, decimal(precise));
    let precise = json!({"scale": "-2", "connect.decimal.precision": "3"});
    check_under(&modes, &negative, decimal(precise));
    check_under(&modes, &ColumnType::Money, decimal(json!({"scale": "4"})));
    check_under(
        &modes,
        &ColumnType::VariableDecimal,
        json!({"type": "struct", "fields": [
                 {"type": "int32", "optional": false, "field": "scale"},
                 {"type": "bytes", "optional": false, "field": "value"}],
               "name": "io.debezium.data.VariableScaleDecimal", "doc": "Variable scaled decimal"}),
    );
    for kind in &kinds {
        modes.decimal = DecimalMode::Double;
        check_under(&modes, kind, json!({"type": "double"}));
        modes.decimal = DecimalMode::String;
        check_under(&modes, kind, json!({"type": "string"}));
    }
}

#[track_caller]
fn check_times(mode: TimeMode, expect: [(&str, &str); 5]) {
    let kinds = [
        ColumnType::Date,
        ColumnType::Time { precision: 3 },
        ColumnType::Time { precision: 6 },
        ColumnType::Timestamp { precision: 0 },
        ColumnType::Timestamp { precision: 4 },
    ];
    let modes = ValueModes { time: mode, ..ValueModes::default() };
    for (kind, (primitive, name)) in kinds.iter().zip(expect) {
        check_under(&modes, kind, named(primitive, name));
    }
}

#[test]
fn dates_and_times() {
    const DATE: (&str, &str) = ("int32", "io.debezium.time.Date");
    const MICRO_TIME: (&str, &str) = ("int64", "io.debezium.time.MicroTime");
    const MILLIS: (&str, &str) = ("int64", "io.debezium.time.Timestamp");
    const MICROS: (&str, &str) = ("int64", "io.debezium.time.MicroTimestamp");
    const NANO_TIME: (&str, &str) = ("int64", "io.debezium.time.NanoTime");
    const NANOS: (&str, &str) = ("int64", "io.debezium.time.NanoTimestamp");
    const CONNECT_TIME: (&str, &str) = ("int32", "org.apache.kafka.connect.data.Time");
    const CONNECT_TIMESTAMP: (&str, &str) = ("int64", "org.apache.kafka.connect.data.Timestamp");
    const ISO_TIME: (&str, &str) = ("string", "io.debezium.time.IsoTime");
    const ISO_TIMESTAMP: (&str, &str) = ("string", "io.debezium.time.IsoTimestamp");
    let time = ("int32", "io.debezium.time.Time");
    check_times(TimeMode::Adaptive, [DATE, time, MICRO_TIME, MILLIS, MICROS]);
    check_times(TimeMode::AdaptiveTimeMicroseconds, [DATE, MICRO_TIME, MICRO_TIME, MILLIS, MICROS]);
    check_times(
        TimeMode::Connect,
        [
            ("int32", "org.apache.kafka.connect.data.Date"),
            CONNECT_TIME,
            CONNECT_TIME,
            CONNECT_TIMESTAMP,
            CONNECT_TIMESTAMP,
        ],
    );
    check_times(TimeMode::Microseconds, [DATE, MICRO_TIME, MICRO_TIME, MICROS, MICROS]);
    check_times(TimeMode::Nanoseconds, [DATE, NANO_TIME, NANO_TIME, NANOS, NANOS]);
    check_times(
        TimeMode::IsoString,
        [("string", "io.debezium.time.IsoDate"), ISO_TIME, ISO_TIME, ISO_TIMESTAMP, ISO_TIMESTAMP],
    );
}

#[test]
fn intervals_and_byte_strings() {
    let numeric = ValueModes::default();
    let text = ValueModes { interval: IntervalMode::String, ..ValueModes::default() };
    let duration = named("int64", "io.debezium.time.MicroDuration");
    check_under(&numeric, &ColumnType::Interval, duration);
    check_under(&text, &ColumnType::Interval, named("string", "io.debezium.time.Interval"));
    for (binary, kind) in [
        (BinaryMode::Bytes, "bytes"),
        (BinaryMode::Base64, "string"),
        (BinaryMode::Base64UrlSafe, "string"),
        (BinaryMode::Hex, "string"),
    ] {
        let modes = ValueModes { binary, ..ValueModes::default() };
        check_under(&modes, &ColumnType::Bytes, json!({"type": kind}));
    }
}

#[track_caller]
fn check_zero(kind: &ColumnType, expect: Literal) {
    let PublishedType { render, .. } = published_type(kind, &ValueModes::default());
    assert_eq!(zero(kind, &render), Some(expect));
}

#[test]
fn zeros_are_those_that_debezium_fills_in() {
    let text = |text: &str| Literal::String(text.to_owned());
    let zero_bytes = || Literal::Bytes(vec![0]);
    check_zero(&ColumnType::Decimal { precision: 6, scale: 2 }, zero_bytes());
    check_zero(&ColumnType::VariableDecimal, Literal::Struct(vec![Literal::Int(0), zero_bytes()]));
    check_zero(&ColumnType::Money, zero_bytes());
    check_zero(&ColumnType::Json, text(""));
    check_zero(&ColumnType::Uuid, text(""));
    check_zero(&ColumnType::KeyValues, text("{}"));
    check_zero(&ColumnType::Vector { half: true }, Literal::Array(Vec::new()));
    let empty = Literal::Bytes(vec![1, 7, 0, 0, 0, 0, 0, 0, 0]);
    let geometry = Literal::Struct(vec![empty, Literal::Null]);
    check_zero(&ColumnType::Geometry { geodetic: false }, geometry);
    check_zero(&ColumnType::Bytes, Literal::Bytes(Vec::new()));
    check_zero(&ColumnType::Bits { length: Some(9) }, Literal::Bytes(Vec::new()));
    check_zero(&ColumnType::Bits { length: Some(1) }, Literal::Boolean(false));
    check_zero(&ColumnType::ZonedTimestamp { precision: 6 }, text("1970-01-01T00:00:00Z"));
    check_zero(&ColumnType::ZonedTime, text("00:00:00Z"));
    check_zero(&ColumnType::Array(Box::new(ColumnType::Int32)), Literal::Array(Vec::new()));
}

#[test]
fn key_value_pairs_can_be_a_map() {
    let modes = ValueModes { key_values: KeyValueMode::Map, ..ValueModes::default() };
    let map = published_type(&ColumnType::KeyValues, &modes);
    let expect = Kind::Map(Arc::new(Schema::new(Kind::String).optional()));
    assert_eq!((map.schema, map.render), (Schema::new(expect), Render::TextMap));
}

#[test]
fn geometries_and_vectors_have_the_names_of_debezium() {
    let schema = |kind| published_type(&kind, &ValueModes::default()).schema;
    for (geodetic, name) in [(false, "Geometry"), (true, "Geography")] {
        let geometry = schema(ColumnType::Geometry { geodetic });
        assert_eq!(geometry.name, Some(format!("io.debezium.data.geometry.{name}")));
        assert_eq!((geometry.version, geometry.doc.as_deref()), (Some(1), Some(name)));
        assert!(geometry.optional, "in NOT NULL columns, too");
        let fields: Vec<_> =
            geometry.fields().iter().map(|f| (f.name.as_str(), f.schema.optional)).collect();
        assert_eq!(fields, [("wkb", false), ("srid", true)]);
    }
    for (half, name, kind) in
        [(false, "DoubleVector", Kind::Float64), (true, "FloatVector", Kind::Float32)]
    {
        let vector = schema(ColumnType::Vector { half });
        assert_eq!(vector.kind, Kind::Array(Arc::new(Schema::new(kind))));
        assert_eq!(vector.name, Some(format!("io.debezium.data.{name}")));
    }
}

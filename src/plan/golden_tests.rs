//! Whole schemas, compared with those that Debezium publishes for the same table.

use std::path::Path;

use serde_json::Value;

use super::testing::{
    column, compile, connect_json, key_schema, or, required, table, value_schema,
};
use super::{BeforeUnsent, DecimalMode, PlanSettings, TablePlan, TimeMode};
use crate::change::{BeforeImage, Column, ColumnType, TableVersion};

fn golden(case: &str, file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/golden");
    let text = std::fs::read_to_string(path.join(case).join(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The plan under Debezium's own rule for what a key-only image lacks.
fn plan(version: TableVersion, change: impl FnOnce(&mut PlanSettings)) -> TablePlan {
    let mut settings = PlanSettings::new("shop");
    settings.before_unsent = BeforeUnsent::Fill;
    change(&mut settings);
    compile(version, &settings).unwrap()
}

/// The text, so that the order of all members counts.
#[track_caller]
fn check_key(case: &str, plan: &TablePlan) {
    let file = format!("{}.key.schema.json", plan.version.table.name);
    let schema = connect_json(key_schema(plan).unwrap());
    assert_eq!(schema.to_string(), golden(case, &file).to_string());
}

/// The same for a value. The source block is the source's own, so it is taken from the recording.
#[track_caller]
fn check_value(case: &str, plan: &TablePlan) {
    let expect = golden(case, &format!("{}.value.schema.json", plan.version.table.name));
    let mut schema = connect_json(value_schema(plan));
    schema["fields"][2] = expect["fields"][2].clone();
    assert_eq!(schema.to_string(), expect.to_string());
}

const TIMESTAMP: ColumnType = ColumnType::Timestamp { precision: 6 };
const INSTANT: ColumnType = ColumnType::ZonedTimestamp { precision: 6 };
const TIME: ColumnType = ColumnType::Time { precision: 6 };

fn decimal(precision: u32, scale: i32) -> ColumnType {
    ColumnType::Decimal { precision, scale }
}

fn array(element: ColumnType) -> ColumnType {
    ColumnType::Array(Box::new(element))
}

fn bits(length: u32) -> ColumnType {
    ColumnType::Bits { length: Some(length) }
}

fn labels(labels: &[&str]) -> ColumnType {
    ColumnType::Enum { labels: labels.iter().map(|label| (*label).to_owned()).collect() }
}

#[test]
fn a_plain_table() {
    let columns = vec![
        required("id", ColumnType::Int32),
        column("a", ColumnType::Int32),
        required("b", ColumnType::Text),
        required("c", decimal(5, 2)),
        required("d", INSTANT),
        column("e", ColumnType::Text),
    ];
    let plan = plan(table("ri_default", columns), |_| {});
    check_key("identity", &plan);
    check_value("identity", &plan);
}

#[test]
fn a_full_image_of_the_row_before_has_the_type_of_the_row() {
    let mut version =
        table("ri_nopk_full", vec![column("a", ColumnType::Int32), column("b", ColumnType::Text)]);
    version.key = Vec::new();
    version.before_image = BeforeImage::Full;
    let plan = plan(version, |settings| settings.before_unsent = BeforeUnsent::Null);
    assert_eq!(key_schema(&plan), None);
    check_value("identity", &plan);
}

#[test]
fn a_key_in_its_own_order_with_a_computed_default() {
    let mut version = table(
        "k_serial",
        vec![
            or("computed", required("a", ColumnType::Int32)),
            required("b", ColumnType::ZonedTimestamp { precision: 3 }),
            required("c", decimal(4, 1)),
            required("d", ColumnType::Uuid),
        ],
    );
    version.key = vec![0, 1, 2, 3];
    version.before_image = BeforeImage::Key(vec![0, 1, 2, 3]);
    check_key("keys", &plan(version, |_| {}));

    let columns = vec![
        required("a", ColumnType::Int32),
        column("b", ColumnType::Text),
        required("c", ColumnType::Int16),
    ];
    let mut version = table("k_multi", columns);
    version.key = vec![2, 0];
    version.before_image = BeforeImage::Key(vec![0, 2]);
    check_key("keys", &plan(version, |_| {}));
}

fn preset() -> Vec<Column> {
    vec![
        or("computed", required("id", ColumnType::Int32)),
        or("computed", required("big", ColumnType::Int64)),
        or("computed", required("sm", ColumnType::Int16)),
        required("ident", ColumnType::Int32),
        required("ident2", ColumnType::Int64),
        or("1234", column("i", ColumnType::Int32)),
        or("-7", required("i_nn", ColumnType::Int32)),
        or("t", column("b", ColumnType::Bool)),
        or("it's", column("s", ColumnType::Text)),
        or("dflt", required("s_nn", ColumnType::Text)),
        or("ab", column("ch", ColumnType::Text)),
        or("1.00", column("n", decimal(10, 2))),
        or("3.50", column("n_free", ColumnType::VariableDecimal)),
        or("1.5", column("f4", ColumnType::Float32)),
        or("1e10", column("f8", ColumnType::Float64)),
        or("18321", column("d", ColumnType::Date)),
        or("45000500000", column("t", TIME)),
        or("1582938123000000", column("ts", TIMESTAMP)),
        or("1582938123000000", column("tz", INSTANT)),
        or("93600000000", column("iv", ColumnType::Interval)),
        or("1609459200000000", column("now_ts", TIMESTAMP)),
        or("computed", required("fn_int", ColumnType::Int32)),
        or("computed", required("fn_txt", ColumnType::Text)),
        or("computed", column("fn_uid", ColumnType::Uuid)),
        or("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", column("uid", ColumnType::Uuid)),
        or(r#"{"a": 1}"#, column("js", ColumnType::Json)),
        or("{}", required("jb", ColumnType::Json)),
        or("<a/>", column("xm", ColumnType::Xml)),
        or("x", column("by", ColumnType::Bytes)),
        or("{1,2}", column("arr", array(ColumnType::Int32))),
        or("high", column("tn", labels(&["low", "high"]))),
        column("dm", ColumnType::Int32),
        or("101", column("bt", bits(3))),
        or("1", column("b1", bits(1))),
        or("11", column("vb", ColumnType::Bits { length: None })),
        column("inp", ColumnType::Text),
        or("(1,2)", column("po", ColumnType::Point)),
        or("2.5", column("mo", ColumnType::Money)),
        column("nul", ColumnType::Text),
        column("nul2", ColumnType::Int32),
        or("computed", column("seq_i", ColumnType::Int32)),
        column("expr", ColumnType::Int32),
        column("gen", ColumnType::Int32),
        // Debezium cuts the expression behind this one and shows the date before it.
        or("18993", column("cur", ColumnType::Date)),
        or("x", column("tx_cast", ColumnType::Text)),
        or("1.5", column("neg", ColumnType::VariableDecimal)),
        or("0", column("ttz", ColumnType::ZonedTime)),
        column("oi", ColumnType::Int64),
        or("z", column("ct", ColumnType::Text)),
    ]
}

#[test]
fn defaults_of_every_type() {
    check_value("defaults", &plan(table("preset", preset()), |_| {}));
}

#[test]
fn defaults_in_text_and_connect_modes() {
    let columns = vec![
        required("id", ColumnType::Int32),
        or("4.50", column("n", decimal(6, 2))),
        or("1.5", column("free", ColumnType::VariableDecimal)),
        or("18321", column("d", ColumnType::Date)),
        or("45000500000", column("t", TIME)),
        or("3723000000", required("t3", ColumnType::Time { precision: 3 })),
        or("1582938123500000", column("ts", TIMESTAMP)),
        or("1582938123000000", required("ts3", ColumnType::Timestamp { precision: 3 })),
        or("86400000000", column("iv", ColumnType::Interval)),
        or("x", column("by", ColumnType::Bytes)),
        or("1.5", column("mo", ColumnType::Money)),
        or("0.01", required("need", decimal(6, 2))),
    ];
    let plan = plan(table("preset2", columns), |settings| {
        settings.values.decimal = DecimalMode::String;
        settings.values.time = TimeMode::Connect;
        settings.values.interval = super::IntervalMode::String;
        settings.values.binary = super::BinaryMode::Base64;
    });
    // An interval's parts do not survive the tests' own notation: a day is 24 hours here.
    let mut schema = connect_json(value_schema(&plan));
    let mut expect = golden("defaults-modes", "preset2.value.schema.json");
    schema["fields"][2] = expect["fields"][2].clone();
    for image in [0, 1] {
        let interval = &mut expect["fields"][image]["fields"][8];
        assert_eq!(interval["default"], "P0Y0M1DT0H0M0S");
        interval["default"] = "P0Y0M0DT24H0M0S".into();
    }
    assert_eq!(schema.to_string(), expect.to_string());
}

#[test]
fn large_values_of_every_type() {
    let columns = vec![
        required("id", ColumnType::Int32),
        column("v", ColumnType::Int32),
        column("tx", ColumnType::Text),
        column("vc", ColumnType::Text),
        column("by", ColumnType::Bytes),
        column("jb", ColumnType::Json),
        column("js", ColumnType::Json),
        column("xm", ColumnType::Xml),
        column("hs", ColumnType::KeyValues),
        column("ct", ColumnType::Text),
        column("bp", ColumnType::Text),
        column("nu", ColumnType::VariableDecimal),
        column("nd", decimal(500, 2)),
        column("ia", array(ColumnType::Int32)),
        column("sa", array(ColumnType::Int16)),
        column("la", array(ColumnType::Int64)),
        column("ta", array(ColumnType::Text)),
        column("va", array(ColumnType::Text)),
        column("na", array(ColumnType::VariableDecimal)),
        column("fa", array(ColumnType::Float64)),
        column("ra", array(ColumnType::Float32)),
        column("boa", array(ColumnType::Bool)),
        column("ua", array(ColumnType::Uuid)),
        column("ba", array(ColumnType::Bytes)),
        column("da", array(ColumnType::Date)),
        column("tia", array(TIME)),
        column("tsa", array(TIMESTAMP)),
        column("tza", array(INSTANT)),
        column("jba", array(ColumnType::Json)),
        column("ina", array(ColumnType::Text)),
        column("rga", array(ColumnType::Text)),
        column("ena", array(labels(&["r", "g"]))),
        column("tv", ColumnType::TextSearchVector),
        column("vb", ColumnType::Bits { length: None }),
        column("lt", ColumnType::LabelTree),
        column("ci", array(ColumnType::Text)),
        column("oa", array(ColumnType::Int64)),
    ];
    let plan = plan(table("toast_all", columns), |_| {});
    let mut expect = golden("unsent-large-values", "toast_all.value.schema.json");
    // Debezium makes elements of enum arrays required, and loses every array with a null.
    for image in [0, 1] {
        let elements = &mut expect["fields"][image]["fields"][31]["items"];
        assert_eq!(elements["optional"], false);
        elements["optional"] = true.into();
    }
    let mut schema = connect_json(value_schema(&plan));
    schema["fields"][2] = expect["fields"][2].clone();
    assert_eq!(schema.to_string(), expect.to_string());
}

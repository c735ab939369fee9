//! The schemas of the control topic, as files for whoever writes readers: Avro's as the registry has
//! them, Connect's as the JSON converter prints them.

use expect_test::expect_file;
use serde_json::Value;
use tidegate::change::{BeforeImage, TableId, TableVersion};
use tidegate::convert::{Converter, DecimalFormat};
use tidegate::plan::{
    ChangeMode, ControlFormat, ControlOrigin, ControlRecord, Provenance, control_record,
};
use tidegate::record::Schema;
use tidegate::sources::postgres::source_block;

fn record(format: ControlFormat) -> ControlRecord {
    let origin = ControlOrigin {
        system: "1",
        database: "shop",
        stream: "shop",
        commit_position: "0/10",
        end_position: None,
        transaction: None,
        sequence: 0,
        micros: 0,
        provenance: Provenance::Catalogue,
        command: None,
        after_position: None,
        named_by: None,
        mode: ChangeMode::Forward,
        acknowledged: false,
        refused: None,
    };
    let version = TableVersion {
        table: TableId { namespace: "public".to_owned(), name: "item".to_owned() },
        native_id: 7,
        epoch: 1,
        fingerprint: 0,
        columns: Vec::new(),
        key: Vec::new(),
        before_image: BeforeImage::None,
        identity: "default".to_owned(),
        comment: None,
    };
    let source = source_block("shop", "shop");
    control_record((format, &source), &origin, (None, &version), None)
}

/// As the registry has it.
fn avro(schema: &Schema) -> String {
    let text = Converter::Avro.schema_text(schema).expect("a schema").expect("a text");
    pretty(text.as_bytes(), "")
}

/// As it stands before each payload.
fn connect(record: &ControlRecord) -> String {
    let converter = Converter::Json { schemas: true, decimals: DecimalFormat::Base64 };
    let mut bytes = Vec::new();
    converter
        .encode_literal(&record.value_schema, None, &record.value, &mut bytes)
        .expect("a record");
    pretty(&bytes, "/schema")
}

fn pretty(json: &[u8], part: &str) -> String {
    let value: Value = serde_json::from_slice(json).expect("JSON");
    format!("{:#}\n", value.pointer(part).expect("a schema"))
}

#[test]
fn readers_find_the_schemas_of_the_control_topic() {
    let own = record(ControlFormat::Tidegate);
    expect_file!["../../schemas/control-topic/tidegate-key.avsc"].assert_eq(&avro(&own.key_schema));
    expect_file!["../../schemas/control-topic/tidegate-value.avsc"]
        .assert_eq(&avro(&own.value_schema));
    expect_file!["../../schemas/control-topic/tidegate-value.connect.json"]
        .assert_eq(&connect(&own));
    let debezium = record(ControlFormat::Debezium);
    expect_file!["../../schemas/control-topic/debezium-key.avsc"]
        .assert_eq(&avro(&debezium.key_schema));
    expect_file!["../../schemas/control-topic/debezium-value.avsc"]
        .assert_eq(&avro(&debezium.value_schema));
    expect_file!["../../schemas/control-topic/debezium-value.connect.json"]
        .assert_eq(&connect(&debezium));
}

//! Bytes and texts against recorded ones: each recorded Avro datum is read by Avro's own library,
//! then written anew in both formats.

use std::collections::HashMap;
use std::path::Path;

use super::avro::{Avro, schema_text};
use super::json::Json;
use super::literal::append_literal;
use super::testing::{decode_avro, golden_files, literal_from_avro, schema_from_json};
use crate::change::ByteText;
use crate::record::{Literal, Schema};

/// The schemas of one case, by topic, side and number.
fn schemas(case: &Path) -> HashMap<String, Schema> {
    let mut schemas = HashMap::new();
    for file in std::fs::read_dir(case).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if let Some(name) = name.strip_suffix(".schema.json") {
            let text = std::fs::read_to_string(&path).unwrap();
            let schema = schema_from_json(&serde_json::from_str(&text).unwrap());
            // The recording's writer lets names through that are not legal in Avro.
            if schema_text(&schema).is_ok() {
                schemas.insert(name.to_owned(), schema);
            }
        }
    }
    schemas
}

fn schema_of<'s>(
    schemas: &'s HashMap<String, Schema>,
    record: &serde_json::Value,
    side: &str,
) -> Option<&'s Schema> {
    let topic = record["topic"].as_str()?;
    let table = topic.strip_prefix("shop.").unwrap_or(topic);
    let table = table.strip_prefix("public.").unwrap_or(table);
    match record.get(format!("{side}_schema")).and_then(serde_json::Value::as_u64) {
        None | Some(1) => schemas.get(&format!("{table}.{side}")),
        Some(number) => schemas.get(&format!("{table}.{side}.{number}")),
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    ByteText::Hex(text.as_bytes()).append_to(&mut bytes);
    bytes
}

/// The recording's maps have no order.
fn has_many_entries(literal: &Literal) -> bool {
    match literal {
        Literal::Map(entries) => entries.len() > 1,
        Literal::Array(values) | Literal::Struct(values) => values.iter().any(has_many_entries),
        _ => false,
    }
}

#[track_caller]
fn check(schema: &Schema, hex: &str, member: &str, line: &str) {
    let bytes = unhex(hex);
    let literal = literal_from_avro(schema, &decode_avro(schema, &bytes));
    if has_many_entries(&literal) {
        return;
    }
    let mut avro = Vec::new();
    append_literal(&Avro, schema, &literal, &mut avro).unwrap();
    assert_eq!(avro, bytes, "{line}");
    let mut json = format!("\"{member}\":").into_bytes();
    append_literal(&Json::Base64, schema, &literal, &mut json).unwrap();
    let json = String::from_utf8(json).unwrap();
    assert!(line.contains(&json), "ours {json}\nrecorded {line}");
}

#[test]
fn recorded_values_are_written_byte_for_byte() {
    let mut checked = 0;
    for file in golden_files(".avro.jsonl") {
        let schemas = schemas(file.parent().unwrap());
        let avro = std::fs::read_to_string(&file).unwrap();
        let json = file.to_str().unwrap().replace(".avro.jsonl", ".jsonl");
        let json = std::fs::read_to_string(json).unwrap();
        for (datum, line) in avro.lines().zip(json.lines()) {
            let datum: serde_json::Value = serde_json::from_str(datum).unwrap();
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            let hex = |member: &str| datum[member].as_str().filter(|hex| *hex != "<varies>");
            if let (Some(hex), Some(schema)) = (hex("key"), schema_of(&schemas, &record, "key")) {
                check(schema, hex, "key", line);
                checked += 1;
            }
            for member in ["before", "after"] {
                let envelope = schema_of(&schemas, &record, "value").map(Schema::fields);
                let field = envelope.and_then(|fields| fields.iter().find(|f| f.name == member));
                if let (Some(hex), Some(field)) = (hex(member), field) {
                    check(&(*field.schema).clone().optional_if(false), hex, member, line);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 10, "{checked}");
}

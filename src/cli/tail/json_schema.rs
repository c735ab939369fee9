//! A JSON value with its schema beside it (`{"schema", "payload"}`) → the value for people.
//!
//! Source: Kafka Connect's `JsonConverter`. **Invariant:** what is not understood is shown as it is.

use serde_json::{Map, Value};

use super::decode::{meaning_of_bytes, meaning_of_int};

/// The payload by its schema; the value itself if it has none.
pub(super) fn without_schema(value: &Value) -> Value {
    match value {
        Value::Object(envelope) if envelope.len() == 2 => {
            match (envelope.get("schema"), envelope.get("payload")) {
                (Some(schema), Some(payload)) if schema.is_object() => show(payload, schema),
                (Some(Value::Null), Some(payload)) => payload.clone(),
                _ => value.clone(),
            }
        }
        _ => value.clone(),
    }
}

fn show(value: &Value, schema: &Value) -> Value {
    let member = |name: &str| schema.get(name).and_then(Value::as_str);
    match (member("type"), value) {
        (Some("struct"), Value::Object(fields)) => structure(fields, schema),
        (Some("array"), Value::Array(items)) => {
            let element = schema.get("items").unwrap_or(&Value::Null);
            items.iter().map(|item| show(item, element)).collect()
        }
        (Some("map"), Value::Object(entries)) => {
            let element = schema.get("values").unwrap_or(&Value::Null);
            let shown = entries.iter().map(|(key, value)| (key.clone(), show(value, element)));
            Value::Object(shown.collect())
        }
        (Some("int16" | "int32" | "int64"), Value::Number(number)) => number
            .as_i64()
            .map_or_else(|| value.clone(), |number| meaning_of_int(number, member("name"))),
        (Some("bytes"), Value::String(text)) => {
            let scale = schema.get("parameters").and_then(|all| all.get("scale"));
            decode_base64(text).map_or_else(
                || value.clone(),
                |bytes| meaning_of_bytes(&bytes, member("name"), scale.and_then(Value::as_str)),
            )
        }
        _ => value.clone(),
    }
}

fn structure(fields: &Map<String, Value>, schema: &Value) -> Value {
    let described = schema.get("fields").and_then(Value::as_array);
    let schema_of = |name: &str| {
        described?.iter().find(|field| field.get("field").and_then(Value::as_str) == Some(name))
    };
    let shown = fields.iter().map(|(name, value)| {
        let shown = schema_of(name).map_or_else(|| value.clone(), |field| show(value, field));
        (name.clone(), shown)
    });
    Value::Object(shown.collect())
}

/// `None`: it is not base64.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let six = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "so that a case fits a line")]
    fn check(schema: Value, payload: Value, expect: Value) {
        assert_eq!(without_schema(&json!({"schema": schema, "payload": payload})), expect);
    }

    #[test]
    fn values_are_shown_by_their_schema() {
        let date = json!({"type": "int32", "name": "io.debezium.time.Date", "field": "d"});
        let price = json!({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "2"}, "field": "p"});
        let row = json!({"type": "struct", "fields": [date, price]});
        check(
            row,
            json!({"d": 1, "p": "BNI=", "x": 7}),
            json!({"d": "1970-01-02", "p": "12.34", "x": 7}),
        );
        check(json!({"type": "bytes"}), json!("AP8="), json!("0x00ff"));
        check(json!({"type": "bytes"}), json!("?"), json!("?"));
        check(
            json!({"type": "array", "items": {"type": "int32"}}),
            json!([1, null]),
            json!([1, null]),
        );
        check(Value::Null, json!({"a": 1}), json!({"a": 1}));
    }

    #[test]
    fn a_value_without_a_schema_is_itself() {
        for value in [json!({"schema": 1, "payload": 2}), json!({"a": 1}), json!(null), json!([1])]
        {
            assert_eq!(without_schema(&value), value);
        }
    }
}

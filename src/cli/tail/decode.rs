//! Record bytes → JSON for people: Confluent-framed Avro through the registry, JSON, text, or hex.
//!
//! Knows no Kafka client. Values whose meaning is in the schema (decimals, dates, times) are shown
//! as people write them; everything else as JSON shows it.

use std::collections::HashMap;
use std::sync::Arc;

use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value as Avro;
use num_bigint::BigInt;
use serde_json::{Map, Value, json};

use crate::error::{Code, Fault};

/// A schema as the registry gives it: for the decoder, and as JSON for its meanings.
#[derive(Debug)]
pub(super) struct RegisteredSchema {
    avro: apache_avro::Schema,
    meaning: Value,
    /// Named types of `meaning` by full name.
    names: HashMap<String, Value>,
}

impl RegisteredSchema {
    /// Parses a schema's text.
    pub(super) fn parse(text: &str) -> Result<Arc<Self>, Fault> {
        let invalid = |error: &dyn std::error::Error| {
            Code::SchemaInvalid.fault("a registered schema cannot be understood").caused_by(error)
        };
        let avro = apache_avro::Schema::parse_str(text).map_err(|error| invalid(&error))?;
        let meaning: Value = serde_json::from_str(text).map_err(|error| invalid(&error))?;
        let mut names = HashMap::new();
        collect_names(&meaning, "", &mut names);
        Ok(Arc::new(Self { avro, meaning, names }))
    }

    /// Decodes a body without its framing.
    pub(super) fn decode(&self, mut body: &[u8]) -> Result<Value, Fault> {
        let value = GenericDatumReader::builder(&self.avro)
            .build()
            .and_then(|reader| reader.read_value(&mut body))
            .map_err(|error| {
                Code::ValueMalformed.fault("a record does not fit its schema").caused_by(&error)
            })?;
        if !body.is_empty() {
            return Err(Code::ValueMalformed
                .fault(format!("a record has {} bytes more than its schema", body.len())));
        }
        Ok(self.show(&value, &self.meaning, ""))
    }

    fn show(&self, value: &Avro, schema: &Value, namespace: &str) -> Value {
        let schema = self.resolve(schema, namespace);
        match value {
            Avro::Null => Value::Null,
            Avro::Boolean(flag) => json!(flag),
            Avro::Int(number) => meaning_of_int(i64::from(*number), connect_name(schema)),
            Avro::Long(number) => meaning_of_int(*number, connect_name(schema)),
            Avro::Float(number) => float(f64::from(*number), number.to_string()),
            Avro::Double(number) => float(*number, number.to_string()),
            Avro::String(text) => json!(text),
            Avro::Enum(_, symbol) => json!(symbol),
            Avro::Bytes(bytes) | Avro::Fixed(_, bytes) => bytes_of(bytes, schema),
            Avro::Decimal(decimal) => {
                let bytes = Vec::<u8>::try_from(decimal).unwrap_or_default();
                bytes_of(&bytes, schema)
            }
            Avro::Union(branch, inner) => {
                let branch = schema.get(*branch as usize).unwrap_or(&Value::Null);
                self.show(inner, branch, namespace)
            }
            Avro::Array(items) => {
                let element = schema.get("items").unwrap_or(&Value::Null);
                items.iter().map(|item| self.show(item, element, namespace)).collect()
            }
            Avro::Map(entries) => {
                let element = schema.get("values").unwrap_or(&Value::Null);
                let mut entries: Vec<_> = entries.iter().collect();
                entries.sort_by_key(|(key, _)| *key);
                Value::Object(
                    entries
                        .into_iter()
                        .map(|(key, value)| (key.clone(), self.show(value, element, namespace)))
                        .collect(),
                )
            }
            Avro::Record(fields) => self.show_record(fields, schema, namespace),
            other => json!(format!("{other:?}")),
        }
    }

    fn show_record(&self, fields: &[(String, Avro)], schema: &Value, namespace: &str) -> Value {
        let namespace = schema.get("namespace").and_then(Value::as_str).unwrap_or(namespace);
        let described = schema.get("fields").and_then(Value::as_array);
        let mut shown = Map::new();
        for (index, (name, value)) in fields.iter().enumerate() {
            let schema = described
                .and_then(|fields| fields.get(index))
                .and_then(|field| field.get("type"))
                .unwrap_or(&Value::Null);
            shown.insert(name.clone(), self.show(value, schema, namespace));
        }
        if connect_name(schema) == Some("io.debezium.data.VariableScaleDecimal") {
            return variable_scale(fields).unwrap_or(Value::Object(shown));
        }
        Value::Object(shown)
    }

    /// Follows a reference by name, and unwraps `{"type": {…}}`.
    fn resolve<'a>(&'a self, schema: &'a Value, namespace: &str) -> &'a Value {
        match schema {
            Value::String(name) => self
                .names
                .get(name)
                .or_else(|| self.names.get(&format!("{namespace}.{name}")))
                .unwrap_or(schema),
            _ => schema,
        }
    }
}

fn collect_names(schema: &Value, namespace: &str, names: &mut HashMap<String, Value>) {
    match schema {
        Value::Array(branches) => {
            branches.iter().for_each(|branch| collect_names(branch, namespace, names));
        }
        Value::Object(object) => {
            let namespace =
                object.get("namespace").and_then(Value::as_str).unwrap_or(namespace).to_owned();
            if let Some(name) = object.get("name").and_then(Value::as_str) {
                let full = if name.contains('.') || namespace.is_empty() {
                    name.to_owned()
                } else {
                    format!("{namespace}.{name}")
                };
                names.insert(full, schema.clone());
            }
            for member in ["type", "items", "values"] {
                if let Some(inner) = object.get(member) {
                    collect_names(inner, &namespace, names);
                }
            }
            for field in object.get("fields").and_then(Value::as_array).into_iter().flatten() {
                if let Some(kind) = field.get("type") {
                    collect_names(kind, &namespace, names);
                }
            }
        }
        _ => {}
    }
}

fn connect_name(schema: &Value) -> Option<&str> {
    schema.get("connect.name").and_then(Value::as_str)
}

fn float(number: f64, text: String) -> Value {
    serde_json::Number::from_f64(number).map_or(Value::String(text), Value::Number)
}

/// A number by the name of its schema: dates and times as people write them.
pub(super) fn meaning_of_int(number: i64, name: Option<&str>) -> Value {
    let date = |days: i64| civil(days);
    let with_time = |micros: i128| {
        let days = micros.div_euclid(86_400_000_000);
        let time = micros.rem_euclid(86_400_000_000);
        i64::try_from(days)
            .ok()
            .and_then(|days| date(days).map(|date| format!("{date}T{}", clock(time))))
    };
    let number_wide = i128::from(number);
    let text = match name {
        Some("io.debezium.time.Date" | "org.apache.kafka.connect.data.Date") => date(number),
        Some("io.debezium.time.Time" | "org.apache.kafka.connect.data.Time") => {
            Some(clock(number_wide * 1000))
        }
        Some("io.debezium.time.MicroTime") => Some(clock(number_wide)),
        Some("io.debezium.time.Timestamp" | "org.apache.kafka.connect.data.Timestamp") => {
            with_time(number_wide * 1000)
        }
        Some("io.debezium.time.MicroTimestamp") => with_time(number_wide),
        _ => None,
    };
    text.map_or_else(|| json!(number), Value::String)
}

fn bytes_of(bytes: &[u8], schema: &Value) -> Value {
    let scale = schema
        .get("connect.parameters")
        .and_then(|parameters| parameters.get("scale"))
        .and_then(Value::as_str);
    meaning_of_bytes(bytes, connect_name(schema), scale)
}

/// Bytes by the name of their schema: decimals as people write them.
pub(super) fn meaning_of_bytes(bytes: &[u8], name: Option<&str>, scale: Option<&str>) -> Value {
    if name == Some("org.apache.kafka.connect.data.Decimal")
        && let Some(scale) = scale.and_then(|scale| scale.parse::<i64>().ok())
    {
        return json!(decimal(bytes, scale));
    }
    json!(hex(bytes))
}

fn variable_scale(fields: &[(String, Avro)]) -> Option<Value> {
    match fields {
        [(_, Avro::Int(scale)), (_, Avro::Bytes(bytes))] => {
            Some(json!(decimal(bytes, i64::from(*scale))))
        }
        _ => None,
    }
}

/// An unscaled two's complement number and its scale, as people write it.
pub(super) fn decimal(bytes: &[u8], scale: i64) -> String {
    let number = BigInt::from_signed_bytes_be(bytes);
    let text = number.magnitude().to_string();
    let sign = if number.sign() == num_bigint::Sign::Minus { "-" } else { "" };
    let Ok(places) = usize::try_from(scale) else {
        let zeros = usize::try_from(-scale).unwrap_or(0);
        return format!("{sign}{text}{}", "0".repeat(zeros));
    };
    if places == 0 {
        return format!("{sign}{text}");
    }
    let padded = format!("{text:0>width$}", width = places + 1);
    let (whole, fraction) = padded.split_at(padded.len() - places);
    format!("{sign}{whole}.{fraction}")
}

/// `0x…`, cut after 32 bytes.
pub(super) fn hex(bytes: &[u8]) -> String {
    let shown: String = bytes.iter().take(32).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > 32 {
        format!("0x{shown}… ({} bytes)", bytes.len())
    } else {
        format!("0x{shown}")
    }
}

/// Days since 1970-01-01 → `YYYY-MM-DD`, proleptic Gregorian; `None` beyond what can be shown.
fn civil(days: i64) -> Option<String> {
    if days.abs() > 4_000_000_000 {
        return None;
    }
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Some(format!("{year:04}-{month:02}-{day:02}"))
}

/// Microseconds since midnight → `HH:MM:SS[.ffffff]`.
fn clock(micros: i128) -> String {
    let seconds = micros.div_euclid(1_000_000);
    let fraction = micros.rem_euclid(1_000_000);
    let text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction == 0 {
        return text;
    }
    format!("{text}.{fraction:06}").trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &str, bytes: &[u8], expected: &str) {
        let schema = RegisteredSchema::parse(schema).unwrap();
        assert_eq!(schema.decode(bytes).unwrap().to_string(), expected);
    }

    #[test]
    fn values_are_shown_as_people_write_them() {
        check(r#"{"type":"int","connect.name":"io.debezium.time.Date"}"#, &[0], r#""1970-01-01""#);
        check(
            r#"{"type":"long","connect.name":"io.debezium.time.MicroTimestamp"}"#,
            &[0x80, 0x89, 0x7a],
            r#""1970-01-01T00:00:01""#,
        );
        check(
            r#"{"type":"bytes","connect.parameters":{"scale":"2"},"connect.name":"org.apache.kafka.connect.data.Decimal"}"#,
            &[2, 0xff],
            r#""-0.01""#,
        );
        check(
            r#"["null",{"type":"array","items":["null","string"]}]"#,
            &[2, 4, 0, 2, 2, b'a', 0],
            r#"[null,"a"]"#,
        );
        check(r#""bytes""#, &[4, 0, 0xff], r#""0x00ff""#);
    }

    #[test]
    fn a_record_that_is_used_again_by_name_keeps_its_meanings() {
        check(
            r#"{"type":"record","name":"E","namespace":"n","fields":[
                {"name":"b","type":["null",{"type":"record","name":"V","fields":[
                    {"name":"d","type":{"type":"int","connect.name":"io.debezium.time.Date"}}]}]},
                {"name":"a","type":["null","V"]}]}"#,
            &[0, 2, 2],
            r#"{"b":null,"a":{"d":"1970-01-02"}}"#,
        );
    }

    #[test]
    fn decimals_of_any_scale() {
        assert_eq!(decimal(&[0x04, 0xd2], 2), "12.34");
        assert_eq!(decimal(&[0x05], 3), "0.005");
        assert_eq!(decimal(&[0xfb], -2), "-500");
    }

    #[test]
    fn left_over_bytes_are_refused() {
        let schema = RegisteredSchema::parse(r#""int""#).unwrap();
        assert_eq!(schema.decode(&[0, 0]).unwrap_err().code(), Code::ValueMalformed);
    }
}

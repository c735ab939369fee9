//! A decoded record → text: readable in colour on a terminal, one JSON object a line otherwise.

use serde_json::{Map, Value, json};

use super::json_schema::without_schema;
use super::row::{NotSent, lines};
use super::{control, schema_change};
use crate::cli::output::Paint;

/// A record with its parts decoded.
#[derive(Debug)]
pub(super) struct Shown {
    /// Where it was read.
    pub(super) topic: String,
    /// Its partition.
    pub(super) partition: i32,
    /// Its offset.
    pub(super) offset: i64,
    /// Kafka's timestamp, milliseconds since the epoch.
    pub(super) timestamp: Option<i64>,
    /// Its key; null for none.
    pub(super) key: Value,
    /// Its value; `None`: a tombstone.
    pub(super) value: Option<Value>,
    /// Its headers in order.
    pub(super) headers: Vec<(String, Value)>,
}

/// One JSON object.
pub(super) fn json_line(record: &Shown) -> String {
    let headers: Map<String, Value> = record.headers.iter().cloned().collect();
    json!({
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": record.key,
        "value": record.value,
        "headers": headers,
    })
    .to_string()
}

/// A few lines for people.
pub(super) fn readable(record: &Shown, paint: Paint) -> String {
    let place = paint.dim(&format!("{}[{}]@{}", record.topic, record.partition, record.offset));
    let key = without_schema(&record.key);
    let key = if key.is_null() { "no key".to_owned() } else { key.to_string() };
    let Some(value) = &record.value else {
        return format!("{} {key}  {place}", paint.with("90", "tombstone"));
    };
    let value = without_schema(value);
    if control::is_control(&value) {
        let (heading, lines) = control::describe(&value, paint);
        return below(format!("{} {heading}  {place}", paint.with("1;36", "schema  ")), &lines);
    }
    if schema_change::is_schema_change(&value) {
        let (heading, lines) = schema_change::describe(&value, record, paint);
        return below(format!("{} {heading}  {place}", paint.with("1;36", "schema  ")), &lines);
    }
    let Some(op) = value.get("op").and_then(Value::as_str) else {
        let text = format!("{} {key}  {place}\n    {value}", paint.with("36", "record  "));
        return below(text, &notes(record, paint));
    };
    let (word, colour) = match op {
        "c" => ("create", "32"),
        "u" => ("update", "33"),
        "d" => ("delete", "31"),
        "r" => ("read", "34"),
        "t" => ("truncate", "35"),
        "m" => ("message", "36"),
        other => (other, "36"),
    };
    let text = format!("{} {key}  {place}", paint.with(colour, &format!("{word:<8}")));
    let text = below(text, &lines(&value, &NotSent::of(&record.headers), paint));
    below(text, &notes(record, paint))
}

/// Headers that say something about the row.
fn notes(record: &Shown, paint: Paint) -> Vec<String> {
    record
        .headers
        .iter()
        .filter(|(name, _)| {
            matches!(name.as_str(), "__debezium.newkey" | "__debezium.oldkey")
                || name.ends_with("__tidegate.scope")
                || name.ends_with(".unavailable")
                || name.ends_with(".unmergeable")
        })
        .map(|(name, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            paint.dim(&format!("{name}: {value}"))
        })
        .collect()
}

fn below(mut text: String, lines: &[String]) -> String {
    for line in lines {
        text.push_str("\n    ");
        text.push_str(line);
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn record(value: Option<Value>, headers: &[(&str, &str)]) -> Shown {
        Shown {
            topic: "shop.public.t".to_owned(),
            partition: 0,
            offset: 7,
            timestamp: Some(1),
            key: json!({"id": 1}),
            value,
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), json!(value)))
                .collect(),
        }
    }

    #[track_caller]
    fn check(value: Value, headers: &[(&str, &str)], expected: &Expect) {
        expected.assert_eq(&readable(&record(Some(value), headers), Paint(false)));
    }

    const DOC: &[(&str, &str)] = &[("__tidegate.unavailable", "doc")];

    #[test]
    fn an_update_shows_what_changed() {
        check(
            json!({"op":"u","before":{"id":1,"v":1,"doc":"x"},"after":{"id":1,"v":2,"doc":"x"}}),
            &[("__tidegate.epoch", "1")],
            &expect![[r#"
                update   {"id":1}  shop.public.t[0]@7
                    v: 1 → 2"#]],
        );
        check(
            json!({"op":"u","before":{"id":1},"after":{"id":1}}),
            &[],
            &expect![[r#"
                update   {"id":1}  shop.public.t[0]@7
                    no column changed"#]],
        );
    }

    #[test]
    fn what_was_not_sent_is_marked() {
        check(
            json!({"op":"u","before":null,"after":{"id":1,"v":2,"doc":"__debezium_unavailable_value"}}),
            DOC,
            &expect![[r#"
                update   {"id":1}  shop.public.t[0]@7
                    id=1  v=2  doc=(not sent)
                    __tidegate.unavailable: doc"#]],
        );
        check(
            json!({"op":"u","before":{"id":1,"v":1,"doc":null},"after":{"id":1,"v":2,"doc":"x"}}),
            DOC,
            &expect![[r#"
                update   {"id":1}  shop.public.t[0]@7
                    v: 1 → 2
                    doc: (not sent)
                    __tidegate.unavailable: doc"#]],
        );
        check(
            json!({"op":"d","before":{"id":1,"doc":null},"after":null}),
            DOC,
            &expect![[r#"
                delete   {"id":1}  shop.public.t[0]@7
                    id=1
                    __tidegate.unavailable: doc"#]],
        );
    }

    #[test]
    fn json_with_schemas_is_shown_without_them() {
        let date = json!({"type":"int32","name":"io.debezium.time.Date","field":"d"});
        let row = |field: &str| json!({"type":"struct","fields":[date],"field":field});
        let schema = json!({"type":"struct","fields":[row("before"),row("after"),{"type":"string","field":"op"}]});
        check(
            json!({"schema":schema,"payload":{"op":"u","before":{"d":0},"after":{"d":1}}}),
            &[],
            &expect![[r#"
                update   {"id":1}  shop.public.t[0]@7
                    d: "1970-01-01" → "1970-01-02""#]],
        );
    }

    #[test]
    fn a_flat_record_and_a_long_cell() {
        check(
            json!({"id":1,"v":"x"}),
            &[],
            &expect![[r#"
                record   {"id":1}  shop.public.t[0]@7
                    {"id":1,"v":"x"}"#]],
        );
        check(
            json!({"op":"c","after":{"v":"x".repeat(100)}}),
            &[],
            &expect![[r#"
                create   {"id":1}  shop.public.t[0]@7
                    v="xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… (102 characters)"#]],
        );
    }

    #[test]
    fn colours_are_for_terminals() {
        let update = json!({"op":"u","before":{"v":1},"after":{"v":2}});
        let text = readable(&record(Some(update), &[]), Paint(true));
        assert!(text.contains("v: \x1b[31m1\x1b[0m → \x1b[32m2\x1b[0m"), "{text:?}");
    }

    #[test]
    fn a_tombstone_is_named() {
        assert_eq!(
            readable(&record(None, &[]), Paint(false)),
            "tombstone {\"id\":1}  shop.public.t[0]@7"
        );
    }

    #[test]
    fn a_json_line_has_every_part() {
        let line: Value = serde_json::from_str(&json_line(&record(None, DOC))).unwrap();
        assert_eq!(line["value"], Value::Null);
        assert_eq!(line["headers"]["__tidegate.unavailable"], "doc");
    }
}

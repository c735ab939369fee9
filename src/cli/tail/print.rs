//! A decoded record → text: readable in colour on a terminal, one JSON object a line otherwise.

use serde_json::{Map, Value, json};

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

/// Terminal colours, or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint(pub(super) bool);

impl Paint {
    fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A few lines for people.
pub(super) fn readable(record: &Shown, paint: Paint) -> String {
    let place = paint.dim(&format!("{}[{}]@{}", record.topic, record.partition, record.offset));
    let key = if record.key.is_null() { "no key".to_owned() } else { record.key.to_string() };
    let Some(value) = &record.value else {
        return format!("{} {key}  {place}", paint.with("90", "tombstone"));
    };
    if value.get("changes").is_some() && value.get("epoch").is_some() {
        return control(value, &place, paint);
    }
    let Some(op) = value.get("op").and_then(Value::as_str) else {
        return format!("{} {key}  {place}\n    {value}", paint.with("36", "record"));
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
    let mut text = format!("{} {key}  {place}", paint.with(colour, &format!("{word:<8}")));
    rows(&mut text, value, paint);
    for (name, value) in &record.headers {
        if matches!(name.as_str(), "__debezium.newkey" | "__debezium.oldkey")
            || name.ends_with(".unavailable")
            || name.ends_with(".unmergeable")
        {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            line(&mut text, &paint.dim(&format!("{name}: {value}")));
        }
    }
    text
}

fn rows(text: &mut String, value: &Value, paint: Paint) {
    let before = value.get("before").and_then(Value::as_object);
    let after = value.get("after").and_then(Value::as_object);
    match (before, after) {
        (Some(before), Some(after)) => {
            for (name, new) in after {
                match before.get(name) {
                    Some(old) if old == new => {}
                    old => line(
                        text,
                        &format!(
                            "{name}: {} → {}",
                            paint.with("31", &short(old.unwrap_or(&Value::Null))),
                            paint.with("32", &short(new))
                        ),
                    ),
                }
            }
        }
        (None, Some(row)) | (Some(row), None) => {
            let cells: Vec<_> =
                row.iter().map(|(name, value)| format!("{name}={}", short(value))).collect();
            line(text, &cells.join("  "));
        }
        (None, None) => {}
    }
}

fn control(value: &Value, place: &str, paint: Paint) -> String {
    let word = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or("?").to_owned();
    let relation = value.get("relation");
    let name = |member: &str| {
        relation.and_then(|r| r.get(member)).and_then(Value::as_str).unwrap_or("?").to_owned()
    };
    let mut text = format!(
        "{} {}.{} epoch {}  {place}",
        paint.with("1;36", &format!("schema {}", word("kind"))),
        name("namespace"),
        name("table"),
        value.get("epoch").unwrap_or(&Value::Null),
    );
    let changes = value.get("changes").and_then(Value::as_array).cloned().unwrap_or_default();
    if changes.is_empty() {
        let columns = value
            .get("after")
            .and_then(|after| after.get("columns"))
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let shown: Vec<_> = columns
            .iter()
            .map(|column| format!("{} {}", member(column, "name"), member(column, "type")))
            .collect();
        line(&mut text, &shown.join(", "));
    }
    for change in &changes {
        line(
            &mut text,
            &format!(
                "{} {}: {} → {}",
                member(change, "column"),
                member(change, "kind"),
                member(change, "from"),
                member(change, "to")
            ),
        );
    }
    text
}

fn member(value: &Value, name: &str) -> String {
    match value.get(name) {
        None | Some(Value::Null) => "–".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn line(text: &mut String, content: &str) {
    text.push_str("\n    ");
    text.push_str(content);
}

/// A cell that fits a line.
fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 60 {
        return text;
    }
    let head: String = text.chars().take(48).collect();
    format!("{head}… ({} characters)", text.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(value: Option<Value>) -> Shown {
        Shown {
            topic: "shop.public.t".to_owned(),
            partition: 0,
            offset: 7,
            timestamp: Some(1),
            key: json!({"id": 1}),
            value,
            headers: vec![("__tidegate.unavailable".to_owned(), json!("doc"))],
        }
    }

    #[test]
    fn an_update_shows_what_changed() {
        let text = readable(
            &record(Some(json!({"op":"u","before":{"id":1,"v":1},"after":{"id":1,"v":2}}))),
            Paint(false),
        );
        assert_eq!(
            text,
            "update   {\"id\":1}  shop.public.t[0]@7\n    v: 1 → 2\n    __tidegate.unavailable: doc"
        );
    }

    #[test]
    fn a_tombstone_is_named() {
        assert_eq!(
            readable(&record(None), Paint(false)),
            "tombstone {\"id\":1}  shop.public.t[0]@7"
        );
    }

    #[test]
    fn a_json_line_has_every_part() {
        let line: Value = serde_json::from_str(&json_line(&record(None))).unwrap();
        assert_eq!(line["value"], Value::Null);
        assert_eq!(line["headers"]["__tidegate.unavailable"], "doc");
    }
}

//! The rows of a change for people: what changed, what was not sent, what is there.

use serde_json::{Map, Value};

use crate::cli::output::Paint;

const NOT_SENT: &str = "(not sent)";

/// Columns whose value in the record is a marker because the source did not send it.
#[derive(Debug, Default)]
pub(super) struct NotSent<'a>(Vec<&'a str>);

impl<'a> NotSent<'a> {
    /// From the headers of a record.
    pub(super) fn of(headers: &'a [(String, Value)]) -> Self {
        let names = headers
            .iter()
            .filter(|(name, _)| name.ends_with(".unavailable"))
            .filter_map(|(_, value)| value.as_str())
            .flat_map(|names| names.split(','))
            .collect();
        Self(names)
    }

    fn has(&self, column: &str) -> bool {
        self.0.contains(&column)
    }
}

/// Lines of a change: its differences if both rows are known, else the row that is.
pub(super) fn lines(value: &Value, not_sent: &NotSent<'_>, paint: Paint) -> Vec<String> {
    let before = value.get("before").and_then(Value::as_object);
    let after = value.get("after").and_then(Value::as_object);
    match (before, after) {
        (Some(before), Some(after)) => differences(before, after, not_sent, paint),
        (None, Some(row)) => vec![cells(row, not_sent, paint)],
        // what was not sent of an old row is most of it, and says nothing
        (Some(row), None) => {
            let sent = row.iter().filter(|(name, _)| !not_sent.has(name));
            vec![cells(
                &sent.map(|(name, value)| (name.clone(), value.clone())).collect(),
                &NotSent::default(),
                paint,
            )]
        }
        (None, None) => Vec::new(),
    }
}

fn differences(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    not_sent: &NotSent<'_>,
    paint: Paint,
) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, new) in after {
        let old = before.get(name).unwrap_or(&Value::Null);
        if not_sent.has(name) {
            lines.push(format!("{name}: {}", paint.dim(NOT_SENT)));
        } else if old != new {
            lines.push(format!(
                "{name}: {} → {}",
                paint.red(&short(old)),
                paint.green(&short(new))
            ));
        }
    }
    let gone = before.iter().filter(|(name, _)| !after.contains_key(*name));
    lines.extend(gone.map(|(name, old)| format!("{name}: {} → –", paint.red(&short(old)))));
    if lines.is_empty() {
        lines.push(paint.dim("no column changed"));
    }
    lines
}

fn cells(row: &Map<String, Value>, not_sent: &NotSent<'_>, paint: Paint) -> String {
    let cells: Vec<_> = row
        .iter()
        .map(|(name, value)| {
            let shown = if not_sent.has(name) { paint.dim(NOT_SENT) } else { short(value) };
            format!("{name}={shown}")
        })
        .collect();
    cells.join("  ")
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

//! Control records in words: what a table looked like from which change on.

use serde_json::Value;

use crate::cli::output::Paint;

/// Whether a value is a control record.
pub(super) fn is_control(value: &Value) -> bool {
    ["changes", "epoch", "relation", "provenance"].iter().all(|name| value.get(name).is_some())
}

/// The heading and the lines below it.
pub(super) fn describe(value: &Value, paint: Paint) -> (String, Vec<String>) {
    let relation = value.get("relation").unwrap_or(&Value::Null);
    let table = format!("{}.{}", text(relation, "namespace"), text(relation, "table"));
    let changes: &[Value] =
        value.get("changes").and_then(Value::as_array).map_or(&[], Vec::as_slice);
    let heading = match value.get("kind").and_then(Value::as_str) {
        Some("baseline") => format!("{table} is captured; its rows have this shape:"),
        Some("renamed") => format!("{} is now called {table}", former_name(value)),
        Some("recreated") => format!("{table} was dropped and created anew"),
        Some("identity") => format!("the rows of {table} are told apart in another way"),
        Some("dropped") => format!("{table} was dropped"),
        Some("topology") => format!("the partitions of {table} changed"),
        Some("refused") => {
            let code = value.get("code").and_then(Value::as_str).unwrap_or("no code");
            format!("the connector stopped at a change of {table} ({code}):")
        }
        Some("suspected") if rewrites(value) => format!("{table} was probably rewritten"),
        Some("suspected") => format!("{table} is not captured any more"),
        Some("reread") => format!("{table} was read again; its rows are all there"),
        _ if rewrites(value) => format!("the rows of {table} were written anew"),
        _ if changes.is_empty() => format!("the definition of {table} changed"),
        _ => format!("the columns of {table} changed"),
    };
    let mut lines: Vec<_> = changes.iter().map(|change| in_words(change, paint)).collect();
    if rewrites(value) {
        lines.push(paint.red("what was published of its rows may not be true any more"));
        if value.get("action").is_some_and(|action| action == "resnapshot") {
            lines.push(
                "it is read again; a record of the kind reread says when that is through"
                    .to_owned(),
            );
        }
    }
    if let Some(line) = identity_change(value) {
        lines.push(line);
    }
    if lines.is_empty() {
        lines.push(columns(value));
    }
    let position = value.get("position").unwrap_or(&Value::Null);
    let seen = match value.get("provenance").and_then(Value::as_str) {
        Some("catalogue") if value.get("kind").is_some_and(|kind| kind == "suspected") => {
            "as the catalogue had it by"
        }
        Some("catalogue") => "as the catalogue had it at",
        _ => "from the transaction at",
    };
    lines.push(paint.dim(&format!(
        "epoch {}, {seen} {}, class {}",
        text(value, "epoch"),
        text(position, "commit"),
        text(value, "class"),
    )));
    (heading, lines)
}

/// Whether rows that were there were written anew, or may have been, beside what the columns' own
/// changes say.
fn rewrites(value: &Value) -> bool {
    let is = |name: &str, words: [&str; 2]| {
        value.get(name).is_some_and(|word| words.iter().any(|one| word == one))
    };
    let is_told = value.get("rewrite_reason").is_some_and(Value::is_string);
    is("rewrites_existing_rows", ["yes", "unknown"])
        && (is_told || is("kind", ["suspected", "recreated"]))
}

fn former_name(value: &Value) -> String {
    let before = value.get("before").unwrap_or(&Value::Null);
    format!("{}.{}", text(before, "namespace"), text(before, "table"))
}

fn in_words(change: &Value, paint: Paint) -> String {
    let (column, from, to) = (text(change, "column"), text(change, "from"), text(change, "to"));
    match change.get("kind").and_then(Value::as_str) {
        Some("added") => paint.green(&format!("column {column} was added, of type {to}")),
        Some("dropped") => paint.red(&format!("column {column} was dropped; its type was {from}")),
        Some("retyped") => format!("column {column} was of type {from} and is now of type {to}"),
        Some("identity") if to == "true" => format!("column {column} now belongs to the identity"),
        Some("identity") => format!("column {column} no longer belongs to the identity"),
        Some("renamed") => format!("column {column} is now called {to}"),
        Some("reread") => format!("{to}, for the change {from}"),
        Some("replaced") => {
            paint.red(&format!("column {column} was dropped, and another added under its name"))
        }
        Some("rewritten") => paint.red(&format!("column {column} was computed anew")),
        Some("nullability") => format!("column {column} was {from} and is now {to}"),
        Some("default") => format!("the default of column {column} was {from} and is now {to}"),
        Some("generated") => format!("column {column} was {from} and is now {to}"),
        Some("type altered") => format!("the type of column {column} was altered"),
        Some("partition added") => paint.green(&format!("partition {to} came")),
        Some("partition removed") => paint.red(&format!("partition {from} went")),
        Some("unlogged") => paint.red("it is unlogged: its changes are not in the stream"),
        _ => format!("column {column}: {from} → {to}"),
    }
}

fn identity_change(value: &Value) -> Option<String> {
    let before = value.get("before").filter(|before| before.is_object())?;
    let after = value.get("after")?;
    let key = |version: &Value| {
        let names = version.get("key").and_then(Value::as_array)?;
        Some(names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "))
    };
    let (old, new) = (text(before, "identity"), text(after, "identity"));
    if old != new {
        return Some(format!("its replica identity was {old} and is now {new}"));
    }
    let (old, new) = (key(before)?, key(after)?);
    (old != new).then(|| format!("its records were keyed by ({old}) and are now keyed by ({new})"))
}

/// All columns of the version that is announced.
fn columns(value: &Value) -> String {
    let after = value.get("after").unwrap_or(&Value::Null);
    let key = after.get("key").and_then(Value::as_array);
    let columns = after.get("columns").and_then(Value::as_array);
    let shown: Vec<_> = columns
        .into_iter()
        .flatten()
        .map(|column| {
            let name = column.get("name").unwrap_or(&Value::Null);
            let is_key = key.is_some_and(|key| key.contains(name));
            let mut shown = format!("{} {}", text(column, "name"), text(column, "type"));
            if is_key {
                shown.push_str(" (key)");
            }
            shown
        })
        .collect();
    shown.join(", ")
}

fn text(value: &Value, name: &str) -> String {
    match value.get(name) {
        None | Some(Value::Null) => "–".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "so that a case fits a line")]
    fn record(kind: &str, changes: Value) -> Value {
        json!({
            "epoch": 3, "kind": kind, "class": "additive", "provenance": "stream",
            "position": {"commit": "0/1A2B"},
            "relation": {"namespace": "public", "table": "item"},
            "before": {"namespace": "public", "table": "thing", "identity": "default", "key": ["id"]},
            "after": {"namespace": "public", "table": "item", "identity": "default", "key": ["id"],
                "columns": [{"name": "id", "type": "int4"}, {"name": "v", "type": "text"}]},
            "changes": changes,
        })
    }

    #[track_caller]
    fn check(value: &Value, expected: &Expect) {
        assert!(is_control(value));
        let (heading, lines) = describe(value, Paint(false));
        expected.assert_eq(&format!("{heading}\n{}", lines.join("\n")));
    }

    #[test]
    fn columns_that_came_and_went() {
        let changes = json!([
            {"column": "a", "kind": "dropped", "from": "int4", "to": null},
            {"column": "b", "kind": "added", "from": null, "to": "text"},
            {"column": "c", "kind": "retyped", "from": "int4", "to": "int8"},
            {"column": "id", "kind": "identity", "from": "true", "to": "false"},
        ]);
        check(
            &record("observed", changes),
            &expect![[r#"
                the columns of public.item changed
                column a was dropped; its type was int4
                column b was added, of type text
                column c was of type int4 and is now of type int8
                column id no longer belongs to the identity
                epoch 3, from the transaction at 0/1A2B, class additive"#]],
        );
    }

    #[test]
    fn the_first_shape_and_another_name() {
        let mut baseline = record("baseline", json!([]));
        baseline["before"] = Value::Null;
        baseline["provenance"] = json!("catalogue");
        check(
            &baseline,
            &expect![[r#"
                public.item is captured; its rows have this shape:
                id int4 (key), v text
                epoch 3, as the catalogue had it at 0/1A2B, class additive"#]],
        );
        check(
            &record("renamed", json!([])),
            &expect![[r#"
                public.thing is now called public.item
                id int4 (key), v text
                epoch 3, from the transaction at 0/1A2B, class additive"#]],
        );
    }

    #[test]
    fn what_no_description_in_the_stream_shows() {
        let changes = json!([
            {"column": "a", "kind": "renamed", "from": "a", "to": "b"},
            {"column": "c", "kind": "default", "from": null, "to": "5"},
            {"column": "v", "kind": "rewritten", "from": null, "to": null},
        ]);
        let mut rewritten = record("ddl_captured", changes);
        rewritten["rewrites_existing_rows"] = json!("yes");
        check(
            &rewritten,
            &expect![[r#"
                the columns of public.item changed
                column a is now called b
                the default of column c was – and is now 5
                column v was computed anew
                epoch 3, from the transaction at 0/1A2B, class additive"#]],
        );
        let went = json!([{"column": "", "kind": "partition removed", "from": "p_1", "to": null}]);
        check(
            &record("topology", went),
            &expect![[r#"
                the partitions of public.item changed
                partition p_1 went
                epoch 3, from the transaction at 0/1A2B, class additive"#]],
        );
    }

    #[test]
    fn another_identity() {
        let mut full = record("identity", json!([]));
        full["after"]["identity"] = json!("full");
        check(
            &full,
            &expect![[r#"
                the rows of public.item are told apart in another way
                its replica identity was default and is now full
                epoch 3, from the transaction at 0/1A2B, class additive"#]],
        );
        let mut keyed = record("identity", json!([]));
        keyed["after"]["key"] = json!(["a", "b"]);
        check(
            &keyed,
            &expect![[r#"
                the rows of public.item are told apart in another way
                its records were keyed by (id) and are now keyed by (a, b)
                epoch 3, from the transaction at 0/1A2B, class additive"#]],
        );
    }
}

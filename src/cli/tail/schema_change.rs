//! Debezium's schema changes in words, as far as their headers say what they are about.

use serde_json::{Value, json};

use super::control;
use super::print::Shown;
use crate::cli::output::Paint;

/// Whether a value is a schema change in Debezium's shape.
pub(super) fn is_schema_change(value: &Value) -> bool {
    value.get("tableChanges").is_some_and(Value::is_array) && value.get("source").is_some()
}

/// The heading and the lines below it.
pub(super) fn describe(value: &Value, record: &Shown, paint: Paint) -> (String, Vec<String>) {
    control::describe(&as_control(value, record), paint)
}

/// The same as a control record of our own.
fn as_control(value: &Value, record: &Shown) -> Value {
    let header = |name: &str| {
        let found = record.headers.iter().find(|(own, _)| own.ends_with(name));
        found.and_then(|(_, value)| value.as_str())
    };
    let source = |name: &str| value.pointer(&format!("/source/{name}")).unwrap_or(&Value::Null);
    let changes = value.get("tableChanges").and_then(Value::as_array);
    let last = changes.and_then(|changes| changes.last());
    let table = last.and_then(|change| change.get("table")).unwrap_or(&Value::Null);
    let of_table = |name: &str| table.get(name).and_then(Value::as_array);
    let columns: Vec<Value> = of_table("columns")
        .into_iter()
        .flatten()
        .map(|column| json!({"name": column.get("name"), "type": column.get("typeExpression")}))
        .collect();
    // without headers: what the shape itself says
    let kind = header(".kind").or_else(|| match last?.get("type")?.as_str()? {
        "CREATE" => Some("baseline"),
        "DROP" => Some("dropped"),
        _ => Some("observed"),
    });
    let differs: Option<Value> =
        header(".changes").and_then(|text| serde_json::from_str(text).ok());
    let former = header(".former_table").and_then(|name| name.split_once('.'));
    json!({
        "kind": kind,
        "epoch": header(".epoch").and_then(|text| text.parse::<u64>().ok()),
        "class": header(".class"),
        "action": header(".action"),
        "code": header(".code"),
        "provenance": header(".provenance"),
        "rewrites_existing_rows": header(".rewrites_existing_rows"),
        "rewrite_reason": header(".rewrite_reason"),
        "relation": {"namespace": source("schema"), "table": source("table")},
        "before": former.map(|(namespace, table)| json!({"namespace": namespace, "table": table})),
        "after": {"columns": columns, "key": of_table("primaryKeyColumnNames")},
        "changes": differs.unwrap_or_else(|| json!([])),
        "position": {"commit": header(".commit_lsn").map_or_else(|| source("lsn").clone(), Value::from)},
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(changes: &Value, headers: &[(&str, &str)], expected: &Expect) {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
        let value = json!({
            "source": {"schema": "public", "table": "item", "lsn": 6699},
            "ts_ms": 1, "databaseName": "shop", "schemaName": "public", "ddl": null,
            "tableChanges": changes,
        });
        assert!(is_schema_change(&value) && !control::is_control(&value));
        let record = Shown {
            topic: "shop.schema-changes".to_owned(),
            partition: 0,
            offset: 7,
            timestamp: None,
            key: Value::Null,
            value: None,
            headers: headers.collect(),
        };
        let (heading, lines) = describe(&value, &record, Paint(false));
        expected.assert_eq(&format!("{heading}\n{}", lines.join("\n")));
    }

    fn altered() -> Value {
        json!([{"type": "ALTER", "id": "\"public\".\"item\"", "table": {
            "primaryKeyColumnNames": ["id"],
            "columns": [{"name": "id", "typeExpression": "int4"}, {"name": "b", "typeExpression": "text"}],
        }}])
    }

    #[test]
    fn a_change_is_told_as_one_of_our_own() {
        let changes =
            r#"[{"column":"b","kind":"added","from":null,"to":"text","class":"additive"}]"#;
        check(
            &altered(),
            &[
                ("__tidegate.kind", "observed"),
                ("__tidegate.epoch", "2"),
                ("__tidegate.class", "additive"),
                ("__tidegate.provenance", "stream"),
                ("__tidegate.commit_lsn", "0/1A2B"),
                ("__tidegate.changes", changes),
            ],
            &expect![[r#"
                the columns of public.item changed
                column b was added, of type text
                epoch 2, from the transaction at 0/1A2B, class additive"#]],
        );
        check(
            &json!([]),
            &[
                ("__tidegate.kind", "refused"),
                ("__tidegate.code", "TG-E-SCHEMA-CHANGED"),
                ("__tidegate.epoch", "2"),
                ("__tidegate.changes", changes),
            ],
            &expect![[r#"
                the connector stopped at a change of public.item (TG-E-SCHEMA-CHANGED):
                column b was added, of type text
                epoch 2, from the transaction at 6699, class –"#]],
        );
    }

    #[test]
    fn without_headers_the_shape_is_told() {
        check(
            &altered(),
            &[],
            &expect![[r#"
            the definition of public.item changed
            id int4 (key), b text
            epoch –, from the transaction at 6699, class –"#]],
        );
    }
}

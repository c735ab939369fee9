//! Control records in the shape of Debezium's schema changes (`schema.changes.format=debezium`).
//!
//! Schemas and field order are those of Debezium's `SchemaFactory` (`schemaHistoryConnectorKeySchema`
//! and `…ValueSchema`, 3.6.3); ids of tables as its `TableId.toDoubleQuotedString` writes them. What
//! the shape has no place for goes into headers. Knows no database. **Invariants:** a record that is
//! not about a changed definition (a suspicion, a refusal, a table that was read again) lists no
//! table, so that a reader who knows the shape alone applies nothing.

use std::sync::Arc;

use serde_json::{Value, json};

use super::control::{ControlOrigin, ControlRecord, Outline, control_id};
use super::settings::words;
use super::source_block::{SourceBlock, SourceField};
use crate::change::{Column, ColumnChange, ColumnDefault, ColumnType, TableId, TableVersion};
use crate::error::Code;
use crate::record::{Field, Kind, Literal, Schema};

words! {
    /// `schema.changes.format`: the shape of records about definitions of tables.
    ControlFormat {
        /// All that is known of both versions.
        Tidegate = "tidegate",
        /// That of Debezium's connectors that publish schema changes.
        Debezium = "debezium",
    }
}

/// The record about a version in Debezium's shape.
pub(super) fn schema_change(
    source: &SourceBlock,
    origin: &ControlOrigin<'_>,
    outline: &Outline<'_>,
    after: &TableVersion,
) -> ControlRecord {
    let millis = Literal::Int(origin.micros.div_euclid(1000));
    let value = Literal::Struct(vec![
        block(source, origin, &after.table),
        millis,
        text(origin.database),
        text(&after.table.namespace),
        // commands come as their tags alone: see the header
        Literal::Null,
        Literal::Array(table_changes(outline.kind, after)),
    ]);
    let (key_schema, value_schema) = schemas(source);
    ControlRecord {
        key_schema,
        key: Literal::Struct(vec![text(origin.database)]),
        value_schema,
        value,
        headers: headers(source, origin, outline, after),
    }
}

fn headers(
    source: &SourceBlock,
    origin: &ControlOrigin<'_>,
    outline: &Outline<'_>,
    after: &TableVersion,
) -> Vec<(String, String)> {
    let position = source.position_header.as_str();
    let formerly = outline.before.filter(|before| before.table != after.table);
    let means = &outline.means;
    let all = [
        ("__tidegate.id", Some(control_id(origin, after.native_id))),
        ("__tidegate.kind", Some(outline.kind.to_owned())),
        ("__tidegate.epoch", Some(after.epoch.to_string())),
        ("__tidegate.fingerprint", Some(format!("{:016x}", after.fingerprint))),
        (position, Some(origin.commit_position.to_owned())),
        ("__tidegate.tx_seq", Some(origin.sequence.to_string())),
        ("__tidegate.provenance", Some(origin.provenance.as_str().to_owned())),
        ("__tidegate.class", Some(outline.class.to_owned())),
        ("__tidegate.action", Some(outline.action.to_owned())),
        ("__tidegate.former_table", formerly.map(|before| before.table.to_string())),
        ("__tidegate.changes", changes(outline.changes)),
        ("__tidegate.command", origin.command.map(str::to_owned)),
        ("__tidegate.rewrites_existing_rows", means.rewrites.map(str::to_owned)),
        ("__tidegate.rewrite_reason", outline.reason.map(str::to_owned)),
        ("__tidegate.existing_rows", means.existing_rows.map(str::to_owned)),
        ("__tidegate.recommended", means.recommended.map(str::to_owned)),
        ("__tidegate.after_position", origin.after_position.map(str::to_owned)),
        ("__tidegate.code", origin.refused.map(|code| Code::id(code).to_owned())),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// What differs, as JSON: the shape of `changes` in records of our own.
fn changes(changes: &[ColumnChange]) -> Option<String> {
    let told = changes.iter().map(|one| {
        let ColumnChange { column, kind, from, to, class } = one;
        json!({"column": column, "kind": kind, "from": from, "to": to, "class": class.as_str()})
    });
    (!changes.is_empty()).then(|| Value::Array(told.collect()).to_string())
}

/// What became of the table, in Debezium's words.
fn table_changes(kind: &str, after: &TableVersion) -> Vec<Literal> {
    let change =
        |word: &str, table| Literal::Struct(vec![text(word), text(quoted(&after.table)), table]);
    match kind {
        "refused" | "suspected" | "reread" => Vec::new(),
        "baseline" => vec![change("CREATE", table(after))],
        "dropped" => vec![change("DROP", Literal::Null)],
        "recreated" => vec![change("DROP", Literal::Null), change("CREATE", table(after))],
        _ => vec![change("ALTER", table(after))],
    }
}

fn quoted(table: &TableId) -> String {
    let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    format!("{}.{}", quote(&table.namespace), quote(&table.name))
}

fn table(version: &TableVersion) -> Literal {
    let name = |index: &usize| version.columns.get(*index).map(|column| text(&column.name));
    let columns = version.columns.iter().zip(1..).map(|(one, position)| column(one, position));
    Literal::Struct(vec![
        Literal::Null,
        Literal::Array(version.key.iter().filter_map(name).collect()),
        Literal::Array(columns.collect()),
        optional(version.comment.as_deref()),
    ])
}

fn column(column: &Column, position: i64) -> Literal {
    let default = match &column.default {
        Some(ColumnDefault::Literal(raw)) => text(String::from_utf8_lossy(raw)),
        Some(ColumnDefault::Computed) | None => Literal::Null,
    };
    let declared = &column.declared;
    let labels = match &column.kind {
        ColumnType::Enum { labels } => Literal::Array(labels.iter().map(text).collect()),
        _ => Literal::Null,
    };
    Literal::Struct(vec![
        text(&column.name),
        Literal::Int(jdbc_type(&column.kind)),
        // an unsigned number in a signed field
        Literal::Int(i64::from(column.native.id.cast_signed())),
        text(&declared.name),
        text(&column.native.name),
        Literal::Null,
        match declared.length {
            0 => Literal::Null,
            length => Literal::Int(length.into()),
        },
        declared.scale.map_or(Literal::Null, |scale| Literal::Int(scale.into())),
        Literal::Int(position),
        Literal::Boolean(column.nullable),
        // neither the stream nor what is kept of the catalogue says so
        Literal::Null,
        Literal::Null,
        optional(column.comment.as_deref()),
        default,
        labels,
    ])
}

/// The number in `java.sql.Types`.
const fn jdbc_type(kind: &ColumnType) -> i64 {
    match kind {
        ColumnType::Bool | ColumnType::Bits { length: Some(_) } => -7,
        ColumnType::Int16 => 5,
        ColumnType::Int32 => 4,
        ColumnType::Int64 => -5,
        ColumnType::Float32 => 7,
        ColumnType::Float64 => 8,
        ColumnType::Decimal { .. } | ColumnType::VariableDecimal | ColumnType::Money => 2,
        ColumnType::Text | ColumnType::Enum { .. } => 12,
        ColumnType::Bytes => -2,
        ColumnType::Date => 91,
        ColumnType::Time { .. } => 92,
        ColumnType::ZonedTime => 2013,
        ColumnType::Timestamp { .. } => 93,
        ColumnType::ZonedTimestamp { .. } => 2014,
        ColumnType::Xml => 2009,
        ColumnType::Array { .. } => 2003,
        _ => 1111,
    }
}

/// The source's block as it is for a record that belongs to no row.
fn block(source: &SourceBlock, origin: &ControlOrigin<'_>, table: &TableId) -> Literal {
    let told = (source.announced)(origin);
    let of_event = |name: &str| {
        let found = told.iter().find(|(field, _)| *field == name);
        found.map_or(Literal::Null, |(_, value)| value.clone())
    };
    let fields = source.schema.fields().iter().zip(&source.fields);
    let values = fields.map(|(field, from)| match from {
        SourceField::Constant(literal) => literal.clone(),
        SourceField::Table => text(&table.name),
        SourceField::Namespace => text(&table.namespace),
        SourceField::Event { .. } => of_event(&field.name),
    });
    Literal::Struct(values.collect())
}

fn schemas(source: &SourceBlock) -> (Arc<Schema>, Arc<Schema>) {
    let string = || Schema::new(Kind::String);
    let int = || Schema::new(Kind::Int32);
    let boolean = || Schema::new(Kind::Boolean);
    let list = |items: Schema| Schema::new(Kind::Array(Arc::new(items)));
    let column = common(
        "Column",
        vec![
            ("name", string()),
            ("jdbcType", int()),
            ("nativeType", int().optional()),
            ("typeName", string()),
            ("typeExpression", string().optional()),
            ("charsetName", string().optional()),
            ("length", int().optional()),
            ("scale", int().optional()),
            ("position", int()),
            ("optional", boolean().optional()),
            ("autoIncremented", boolean().optional()),
            ("generated", boolean().optional()),
            ("comment", string().optional()),
            ("defaultValueExpression", string().optional()),
            ("enumValues", list(string()).optional()),
        ],
    );
    let table = common(
        "Table",
        vec![
            ("defaultCharsetName", string().optional()),
            ("primaryKeyColumnNames", list(string()).optional()),
            ("columns", list(column)),
            ("comment", string().optional()),
        ],
    );
    let change =
        common("Change", vec![("type", string()), ("id", string()), ("table", table.optional())]);
    let of = |what: &str| format!("io.debezium.connector.{}.{what}", source.connector);
    let value = vec![
        ("source", (*source.schema).clone()),
        ("ts_ms", Schema::new(Kind::Int64)),
        ("databaseName", string().optional()),
        ("schemaName", string().optional()),
        ("ddl", string().optional()),
        ("tableChanges", list(change)),
    ];
    let key = structure(of("SchemaChangeKey"), vec![("databaseName", string())]);
    (Arc::new(key), Arc::new(structure(of("SchemaChangeValue"), value)))
}

fn common(name: &str, fields: Vec<(&str, Schema)>) -> Schema {
    structure(format!("io.debezium.connector.schema.{name}"), fields)
}

fn structure(name: String, fields: Vec<(&str, Schema)>) -> Schema {
    let fields = fields
        .into_iter()
        .map(|(name, schema)| Field { name: name.to_owned(), schema: Arc::new(schema) })
        .collect();
    Schema::new(Kind::Struct(fields)).named(name, Some(1))
}

fn text(text: impl AsRef<str>) -> Literal {
    Literal::String(text.as_ref().to_owned())
}

fn optional(value: Option<&str>) -> Literal {
    value.map_or(Literal::Null, text)
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::super::control::control_record;
    use super::super::control::tests::{named, origin as seen};
    use super::*;
    use crate::change::{TableChange, diff};
    use crate::plan::testing::{column, connect_json, or, required, source_block, table};

    fn origin() -> ControlOrigin<'static> {
        ControlOrigin {
            command: Some("ALTER TABLE"),
            end_position: None,
            transaction: None,
            ..seen()
        }
    }

    fn versions() -> (TableVersion, TableVersion) {
        let labels = ["s".to_owned(), "m".to_owned()].into();
        let before = table("it\"em", vec![required("id", ColumnType::Int32)]);
        let mut after = table(
            "it\"em",
            vec![
                required("id", ColumnType::Int32),
                or("x", column("b", ColumnType::Text)),
                column("n", ColumnType::Decimal { precision: 10, scale: 2 }),
                column("e", ColumnType::Enum { labels }),
            ],
        );
        (after.epoch, after.fingerprint) = (4, 0xbeef);
        (before, after)
    }

    fn told(origin: &ControlOrigin<'_>, kind: Option<&'static str>) -> ControlRecord {
        let (before, after) = versions();
        let change = kind.map(|kind| TableChange { kind, ..diff(&before, &after).unwrap() });
        let before = kind.map(|_| &before);
        let form = (ControlFormat::Debezium, &source_block());
        control_record(form, origin, (before, &after), change.as_ref())
    }

    #[test]
    fn a_change_in_debeziums_shape() {
        let record = told(&origin(), Some("observed"));
        let shown = json!({
            "key": named(&record.key_schema, &record.key),
            "value": named(&record.value_schema, &record.value),
            "headers": record.headers.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
            "schemas": {
                "key": connect_json(&record.key_schema),
                "value": connect_json(&record.value_schema),
            },
        });
        expect_file!["../../tests/fixtures/control/debezium.json"]
            .assert_eq(&format!("{shown:#}\n"));
    }

    #[test]
    fn only_a_changed_definition_lists_tables() {
        let listed = |origin: &ControlOrigin<'_>, kind| {
            let record = told(origin, kind);
            let value = named(&record.value_schema, &record.value);
            let changes = value["tableChanges"].as_array().unwrap().clone();
            changes.iter().map(|one| one["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(listed(&origin(), None), ["CREATE"]);
        assert_eq!(listed(&origin(), Some("renamed")), ["ALTER"]);
        assert_eq!(listed(&origin(), Some("dropped")), ["DROP"]);
        assert_eq!(listed(&origin(), Some("recreated")), ["DROP", "CREATE"]);
        for kind in ["suspected", "reread"] {
            assert!(listed(&origin(), Some(kind)).is_empty(), "{kind}");
        }
        let refused = ControlOrigin { refused: Some(Code::SchemaChanged), ..origin() };
        assert!(listed(&refused, Some("observed")).is_empty(), "it did not pass");
    }
}

//! Control records: what a table looked like from which change on, announced before its first row.
//!
//! One record for each version of a table: a baseline when it is first seen, then every difference.
//! Knows no database: positions, identities and types are the source's own words, as text.
//! **Invariants:** the id of a record is the same whenever the same version is announced again, so
//! that readers can drop repeats; the schemas only ever gain nullable fields.

use std::sync::{Arc, LazyLock};

use super::change_policy::ChangeMode;
use super::schema_change::{ControlFormat, schema_change};
use super::source_block::SourceBlock;
use crate::change::{
    Column, ColumnChange, ColumnDefault, Consequence, TableChange, TableId, TableVersion,
    consequence,
};
use crate::error::Code;
use crate::record::{Field, Kind, Literal, Schema};

/// Where and how a table version was seen.
#[derive(Clone, Copy, Debug)]
pub struct ControlOrigin<'a> {
    /// Which server: what stays the same when it is reached under another name.
    pub system: &'a str,
    /// Which database on it.
    pub database: &'a str,
    /// Which stream of its changes.
    pub stream: &'a str,
    /// The position of the transaction, in the source's notation; for a version that a snapshot
    /// begins with, the snapshot's.
    pub commit_position: &'a str,
    /// The position after the transaction, if it has one.
    pub end_position: Option<&'a str>,
    /// The source's number of the transaction, if it has one.
    pub transaction: Option<&'a str>,
    /// The number of the message within its transaction.
    pub sequence: u64,
    /// When the transaction was committed, or the table looked at; microseconds since the epoch.
    pub micros: i64,
    /// Who says so.
    pub provenance: Provenance,
    /// The command that changed the definition, as the source calls it, if it says so.
    pub command: Option<&'a str>,
    /// The position behind which it happened, if it is known only that it did so before this one.
    pub after_position: Option<&'a str>,
    /// The position by which the record is named, if that is another one: where it is known only
    /// that something happened, looking again comes to another position.
    pub named_by: Option<&'a str>,
    /// What becomes of changes of this table.
    pub mode: ChangeMode,
    /// An operator let this one pass.
    pub acknowledged: bool,
    /// The task stops at it, with this code.
    pub refused: Option<Code>,
}

/// Who says what a table looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// The stream of changes, at this very place.
    Stream,
    /// The catalogue, as of a snapshot.
    Catalogue,
    /// A trigger of the source that tells of changed definitions, at this very place.
    Trigger,
}

impl Provenance {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Catalogue => "catalogue",
            Self::Trigger => "event_trigger",
        }
    }
}

/// A control record.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlRecord {
    /// The key's schema.
    pub key_schema: Arc<Schema>,
    /// The key: the table.
    pub key: Literal,
    /// The value's schema.
    pub value_schema: Arc<Schema>,
    /// The value.
    pub value: Literal,
    /// What it says beside them.
    pub headers: Vec<(String, String)>,
}

/// What is said of a version, whatever the shape of the record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outline<'a> {
    pub(super) before: Option<&'a TableVersion>,
    pub(super) kind: &'a str,
    pub(super) class: &'a str,
    pub(super) changes: &'a [ColumnChange],
    pub(super) action: &'a str,
    pub(super) means: Consequence,
    /// Why rows were written anew.
    pub(super) reason: Option<&'a str>,
}

impl<'a> Outline<'a> {
    fn of(
        origin: &ControlOrigin<'_>,
        before: Option<&'a TableVersion>,
        after: &TableVersion,
        change: Option<&'a TableChange>,
    ) -> Self {
        let (kind, class) =
            change.map_or(("baseline", "baseline"), |change| (change.kind, change.class.as_str()));
        let rewrite = change.and_then(|change| change.rewrite.as_ref());
        Self {
            before,
            kind: if origin.refused.is_some() { "refused" } else { kind },
            class,
            changes: change.map_or(&[][..], |change| &change.columns),
            action: match rewrite {
                _ if origin.refused.is_some() => "stopped",
                Some(rewrite) if rewrite.action == "resnapshot" => rewrite.action,
                _ if origin.acknowledged => "acknowledged",
                Some(rewrite) => rewrite.action,
                None => "forwarded",
            },
            means: change
                .map_or_else(Consequence::default, |change| meaning(origin, change, after)),
            reason: rewrite.and_then(|rewrite| rewrite.reason.as_deref()),
        }
    }
}

/// The record that announces a version, in the shape that is configured. Without a `before` and a
/// `change` it is a baseline.
pub fn control_record(
    (format, source): (ControlFormat, &SourceBlock),
    origin: &ControlOrigin<'_>,
    (before, after): (Option<&TableVersion>, &TableVersion),
    change: Option<&TableChange>,
) -> ControlRecord {
    let outline = Outline::of(origin, before, after, change);
    match format {
        ControlFormat::Tidegate => described(origin, outline, after),
        ControlFormat::Debezium => schema_change(source, origin, &outline, after),
    }
}

fn described(
    origin: &ControlOrigin<'_>,
    outline: Outline<'_>,
    after: &TableVersion,
) -> ControlRecord {
    let Outline { before, kind, class, changes, action, means, reason } = outline;
    let value = Literal::Struct(vec![
        text(control_id(origin, after.native_id)),
        number(after.epoch),
        text(kind),
        position(origin),
        text(origin.provenance.as_str()),
        relation(after),
        before.map_or(Literal::Null, description),
        description(after),
        Literal::Array(changes.iter().map(column_change).collect()),
        text(class),
        text(origin.mode.as_str()),
        text(action),
        optional(origin.command),
        optional(means.rewrites),
        optional(reason),
        optional(means.existing_rows),
        optional(means.recommended),
        optional(origin.refused.map(Code::id)),
    ]);
    let (key_schema, value_schema) = (&SCHEMAS.0, &SCHEMAS.1);
    ControlRecord {
        key_schema: Arc::clone(key_schema),
        key: key(origin, &after.table),
        value_schema: Arc::clone(value_schema),
        value,
        headers: Vec::new(),
    }
}

/// What a change means for rows that were there: as the source says, or else as far as it is known.
fn meaning(origin: &ControlOrigin<'_>, change: &TableChange, after: &TableVersion) -> Consequence {
    let Some(rewrite) = &change.rewrite else {
        let is_told = origin.provenance == Provenance::Trigger;
        return consequence(change, after, origin.command.filter(|_| is_told));
    };
    Consequence {
        rewrites: Some(match rewrite.changes_values {
            Some(true) => "yes",
            Some(false) => "no",
            None => "unknown",
        }),
        existing_rows: Some(rewrite.existing_rows),
        recommended: Some(rewrite.recommended),
    }
}

/// The id of the record about a table, by the source's number of it. The same place in the same
/// stream gives the same id.
pub fn control_id(origin: &ControlOrigin<'_>, native_id: u64) -> String {
    let ControlOrigin { system, stream, sequence, .. } = origin;
    let commit_position = origin.named_by.unwrap_or(origin.commit_position);
    let refused = if origin.refused.is_some() { ":refused" } else { "" };
    format!("{system}:{stream}:{native_id}:{commit_position}:{sequence}{refused}")
}

fn key(origin: &ControlOrigin<'_>, table: &TableId) -> Literal {
    Literal::Struct(vec![
        text(origin.system),
        text(origin.database),
        text(&table.namespace),
        text(&table.name),
    ])
}

fn position(origin: &ControlOrigin<'_>) -> Literal {
    Literal::Struct(vec![
        text(origin.stream),
        text(origin.commit_position),
        optional(origin.end_position),
        optional(origin.transaction),
        number(origin.sequence),
        optional(origin.after_position),
    ])
}

fn relation(version: &TableVersion) -> Literal {
    Literal::Struct(vec![
        text(version.native_id.to_string()),
        text(&version.table.namespace),
        text(&version.table.name),
        text(&version.identity),
    ])
}

fn description(version: &TableVersion) -> Literal {
    let name = |index: &usize| version.columns.get(*index).map(|column| text(&column.name));
    Literal::Struct(vec![
        text(&version.table.namespace),
        text(&version.table.name),
        number(version.epoch),
        text(format!("{:016x}", version.fingerprint)),
        text(&version.identity),
        Literal::Array(version.key.iter().filter_map(name).collect()),
        Literal::Array(version.columns.iter().map(column).collect()),
        optional(version.comment.as_deref()),
    ])
}

fn column(column: &Column) -> Literal {
    let default = column.default.as_ref().map(|default| match default {
        ColumnDefault::Literal(raw) => ("literal", Some(String::from_utf8_lossy(raw))),
        ColumnDefault::Computed => ("computed", None),
    });
    Literal::Struct(vec![
        text(&column.name),
        text(&column.native.name),
        Literal::Int(column.native.id.into()),
        Literal::Int(column.native.modifier.into()),
        Literal::Boolean(column.identity),
        Literal::Boolean(column.nullable),
        optional(default.as_ref().map(|(kind, _)| *kind)),
        optional(default.as_ref().and_then(|(_, literal)| literal.as_deref())),
        optional(column.comment.as_deref()),
    ])
}

fn column_change(change: &ColumnChange) -> Literal {
    Literal::Struct(vec![
        text(&change.column),
        text(change.kind),
        optional(change.from.as_deref()),
        optional(change.to.as_deref()),
        text(change.class.as_str()),
    ])
}

fn text(text: impl Into<String>) -> Literal {
    Literal::String(text.into())
}

fn optional(value: Option<&str>) -> Literal {
    value.map_or(Literal::Null, text)
}

/// Counters stay far below the limit.
fn number(value: u64) -> Literal {
    Literal::Int(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Schemas of key and value.
static SCHEMAS: LazyLock<(Arc<Schema>, Arc<Schema>)> = LazyLock::new(|| {
    let string = || Schema::new(Kind::String);
    let long = || Schema::new(Kind::Int64);
    let boolean = || Schema::new(Kind::Boolean);
    let table = Arc::new(structure(
        "Table",
        vec![
            ("namespace", string()),
            ("table", string()),
            ("epoch", long()),
            ("fingerprint", string()),
            ("identity", string()),
            ("key", list(string())),
            (
                "columns",
                list(structure(
                    "Column",
                    vec![
                        ("name", string()),
                        ("type", string()),
                        ("type_id", long()),
                        ("type_modifier", Schema::new(Kind::Int32)),
                        ("identity", boolean()),
                        ("nullable", boolean()),
                        ("default_kind", string().optional()),
                        ("default_literal", string().optional()),
                        ("comment", string().optional()),
                    ],
                )),
            ),
            ("comment", string().optional()),
        ],
    ));
    let position = structure(
        "Position",
        vec![
            ("stream", string()),
            ("commit", string()),
            ("end", string().optional()),
            ("transaction", string().optional()),
            ("sequence", long()),
            ("after", string().optional()),
        ],
    );
    let relation = structure(
        "Relation",
        vec![
            ("native_id", string()),
            ("namespace", string()),
            ("table", string()),
            ("identity", string()),
        ],
    );
    let column_change = structure(
        "ColumnChange",
        vec![
            ("column", string()),
            ("kind", string()),
            ("from", string().optional()),
            ("to", string().optional()),
            ("class", string()),
        ],
    );
    let value = structure(
        "Change",
        vec![
            ("id", string()),
            ("epoch", long()),
            ("kind", string()),
            ("position", position),
            ("provenance", string()),
            ("relation", relation),
            ("before", (*table).clone().optional()),
            ("after", (*table).clone()),
            ("changes", list(column_change)),
            ("class", string()),
            ("mode", string()),
            ("action", string()),
            ("command", string().optional()),
            ("rewrites_existing_rows", string().optional()),
            ("rewrite_reason", string().optional()),
            ("existing_rows", string().optional()),
            ("recommended", string().optional()),
            ("code", string().optional()),
        ],
    );
    let key = structure(
        "Key",
        vec![
            ("system", string()),
            ("database", string()),
            ("namespace", string()),
            ("table", string()),
        ],
    );
    (Arc::new(key), Arc::new(value))
});

fn structure(name: &str, fields: Vec<(&str, Schema)>) -> Schema {
    let fields = fields
        .into_iter()
        .map(|(name, schema)| Field { name: name.to_owned(), schema: Arc::new(schema) })
        .collect();
    Schema::new(Kind::Struct(fields)).named(format!("io.tidegate.schema.{name}"), Some(1))
}

fn list(items: Schema) -> Schema {
    Schema::new(Kind::Array(Arc::new(items)))
}

#[cfg(test)]
pub(super) mod tests {
    use expect_test::expect_file;
    use serde_json::json;

    use super::*;
    use crate::change::{ColumnType, diff};
    use crate::plan::testing::{
        column, connect_json, literal_json, or, required, source_block, table,
    };

    pub(in crate::plan) fn origin() -> ControlOrigin<'static> {
        ControlOrigin {
            system: "7300000000000000000",
            database: "shop",
            stream: "c1",
            commit_position: "0/1A2B",
            end_position: Some("0/1A60"),
            transaction: Some("731"),
            sequence: 2,
            micros: 1_700_000_000_123_456,
            provenance: Provenance::Stream,
            command: None,
            after_position: None,
            named_by: None,
            mode: ChangeMode::Forward,
            acknowledged: false,
            refused: None,
        }
    }

    fn before() -> TableVersion {
        table("item", vec![required("id", ColumnType::Int32), column("a", ColumnType::Int32)])
    }

    fn after() -> TableVersion {
        let b = or("x", column("b", ColumnType::Text));
        let mut after = table("item", vec![required("id", ColumnType::Int32), b]);
        after.epoch = 4;
        after.fingerprint = 0xbeef;
        after
    }

    fn told(
        origin: &ControlOrigin<'_>,
        before: Option<&TableVersion>,
        after: &TableVersion,
        change: Option<&TableChange>,
    ) -> ControlRecord {
        let form = (ControlFormat::Tidegate, &source_block());
        control_record(form, origin, (before, after), change)
    }

    /// The value with its field names, as JSON.
    pub(in crate::plan) fn named(schema: &Schema, literal: &Literal) -> serde_json::Value {
        match (&schema.kind, literal) {
            (Kind::Struct(fields), Literal::Struct(values)) => {
                assert_eq!(fields.len(), values.len());
                let members = fields.iter().zip(values);
                members.map(|(f, value)| (f.name.clone(), named(&f.schema, value))).collect()
            }
            (Kind::Array(items), Literal::Array(values)) => {
                values.iter().map(|value| named(items, value)).collect()
            }
            (_, Literal::Null) => {
                assert!(schema.optional);
                serde_json::Value::Null
            }
            _ => literal_json(literal),
        }
    }

    #[test]
    fn a_difference_shows_both_versions_and_what_differs() {
        let (before, after) = (before(), after());
        let change = diff(&before, &after).unwrap();
        let record = told(&origin(), Some(&before), &after, Some(&change));
        let key = named(&record.key_schema, &record.key);
        let expect = json!({"system": "7300000000000000000", "database": "shop",
                            "namespace": "public", "table": "item"});
        assert_eq!(key, expect);
        let value = named(&record.value_schema, &record.value);
        expect_file!["../../tests/fixtures/control/change.json"].assert_eq(&format!("{value:#}\n"));
    }

    #[test]
    fn a_baseline_shows_one_version() {
        let record = told(&origin(), None, &before(), None);
        let value = named(&record.value_schema, &record.value);
        assert_eq!(value["kind"], "baseline");
        assert_eq!(value["class"], "baseline");
        assert_eq!(value["before"], serde_json::Value::Null);
        assert_eq!(value["changes"], serde_json::json!([]));
    }

    #[test]
    fn a_refused_change_is_told_as_one() {
        let (before, after) = (before(), after());
        let change = diff(&before, &after).unwrap();
        let origin = ControlOrigin { refused: Some(Code::SchemaChanged), ..origin() };
        let record = told(&origin, Some(&before), &after, Some(&change));
        let value = named(&record.value_schema, &record.value);
        assert_eq!(
            (&value["kind"], &value["action"], &value["code"], &value["id"]),
            (
                &json!("refused"),
                &json!("stopped"),
                &json!("TG-E-SCHEMA-CHANGED"),
                &json!(format!("{}:refused", control_id(&self::origin(), after.native_id)))
            ),
            "it is not taken for the change itself, which may still come"
        );
    }

    #[test]
    fn the_same_version_at_the_same_place_gives_the_same_record() {
        let record = || told(&origin(), None, &before(), None);
        assert_eq!(record(), record());
        let later = ControlOrigin { sequence: 3, ..origin() };
        assert_ne!(control_id(&origin(), 7), control_id(&later, 7));
    }

    #[test]
    fn schemas_in_connects_form() {
        let record = told(&origin(), None, &before(), None);
        let (key, value) = (connect_json(&record.key_schema), connect_json(&record.value_schema));
        let schemas = json!({"key": key, "value": value});
        expect_file!["../../tests/fixtures/control/schemas.json"]
            .assert_eq(&format!("{schemas:#}\n"));
    }
}

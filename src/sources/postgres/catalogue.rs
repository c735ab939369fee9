//! What the database's catalogue says of tables and types: facts of *now*.
//!
//! The stream says of each table what it was when a row was written; this adds what it cannot say.
//! Knows no stream and decides nothing: `capture` chooses tables, `identity` judges them,
//! `table_version` joins facts and stream. Source: manual, "System Catalogs".

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection::{Connection, Row};
use super::relations::{RelationColumn, RelationDescriptor};
use super::row_filter::TextOrder;
use super::values::{TYPE_QUERY, TypeCatalogue, TypeRow, resolve};
use super::wire::{RelationId, ReplicaIdentity};
use crate::change::{Scalar, ValueError};
use crate::error::{Code, Fault};

/// `text[]`, the type of the list of labels.
const TEXT_ARRAY: u32 = 1009;

/// The kinds of relations that a filter may name (`pg_class.relkind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationKind {
    /// An ordinary table, which may be a partition.
    Table,
    /// A partitioned table, which has no rows of its own.
    Partitioned,
    /// A table of another server.
    Foreign,
    /// A view, materialised or not.
    View,
}

impl RelationKind {
    fn read(letter: &str) -> Result<Self, Fault> {
        match letter {
            "r" => Ok(Self::Table),
            "p" => Ok(Self::Partitioned),
            "f" => Ok(Self::Foreign),
            "v" | "m" => Ok(Self::View),
            other => Err(unknown("relation kind", other)),
        }
    }
}

/// A relation, as far as is needed to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelationEntry {
    /// `pg_class.oid`.
    pub oid: u32,
    /// Its schema.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: RelationKind,
    /// Its changes are in the log.
    pub is_logged: bool,
    /// The partitioned table that it is a partition of.
    pub partition_of: Option<u32>,
}

impl RelationEntry {
    /// `namespace.name`, for people.
    pub fn qualified_name(&self) -> String {
        format!("{}.{}", self.namespace, self.name)
    }
}

/// How a column's value comes about (`pg_attribute.attgenerated`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Generated {
    /// It is written.
    No,
    /// It is computed and stored.
    Stored,
    /// It is computed when it is read (from version 18 on).
    Virtual,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnFacts {
    /// Its number, which stays the same when it is renamed.
    pub attnum: i16,
    /// Its name.
    pub name: String,
    /// The number of its type.
    pub type_oid: u32,
    /// The type's modifier; −1: none.
    pub typmod: i32,
    /// No row has a NULL in it.
    pub not_null: bool,
    /// Declared dimensions of an array.
    pub dimensions: i16,
    /// Whether it is computed.
    pub generated: Generated,
    /// Its default, as an expression.
    pub default: Option<String>,
    /// Its comment.
    pub comment: Option<String>,
    /// How its texts compare.
    #[serde(default)]
    pub text_order: TextOrder,
}

/// The columns of an index that tells rows apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyFacts {
    /// In the index's order.
    pub columns: Vec<String>,
    /// It holds at every moment. A deferrable key does not, and is no replica identity.
    pub is_immediate: bool,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableFacts {
    /// `pg_class.oid`.
    pub oid: u32,
    /// Its schema.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// It is partitioned.
    pub is_partitioned: bool,
    /// How its old rows are told.
    #[serde(with = "super::state::identity_letter")]
    pub replica_identity: ReplicaIdentity,
    /// In the order of their numbers, dropped ones left out.
    pub columns: Vec<ColumnFacts>,
    /// Its primary key.
    pub primary_key: Option<KeyFacts>,
    /// The index that `REPLICA IDENTITY USING INDEX` named, unless it was dropped since.
    pub identity_index: Option<KeyFacts>,
    /// Its comment.
    pub comment: Option<String>,
    /// How many rows the last `ANALYZE` or `VACUUM` saw.
    pub estimated_rows: Option<u64>,
    /// The partitions that have rows, sorted, quoted where that is needed; `None`: it is not
    /// partitioned, or has more than [`MOST_PARTITIONS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<Vec<String>>,
}

/// The most partitions whose names are kept.
pub const MOST_PARTITIONS: usize = 1000;

impl TableFacts {
    /// `namespace.name`, for people.
    pub fn qualified_name(&self) -> String {
        format!("{}.{}", self.namespace, self.name)
    }

    /// A column by its name.
    pub fn column(&self, name: &str) -> Option<&ColumnFacts> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Takes over how texts compare now, for columns that are the same.
    pub fn take_text_orders(&mut self, now: &Self) {
        for column in &mut self.columns {
            if let Some(now) = now.column(&column.name).filter(|now| now.attnum == column.attnum) {
                column.text_order = now.text_order;
            }
        }
    }

    /// The primary key, if it tells rows apart at every moment. By one that is checked at the end of
    /// a statement or transaction, rows that exchange their keys are one for a while.
    pub fn row_key(&self) -> Option<&KeyFacts> {
        self.primary_key.as_ref().filter(|key| key.is_immediate)
    }

    /// The columns that old rows are told by; `None`: all of them. Empty: there is no identity.
    /// What the server does in `RelationGetIdentityKeyBitmap` (relcache.c).
    pub fn identity_columns(&self) -> Option<&[String]> {
        let key = match self.replica_identity {
            ReplicaIdentity::Full => return None,
            ReplicaIdentity::Nothing => None,
            ReplicaIdentity::Default => self.row_key(),
            ReplicaIdentity::Index => self.identity_index.as_ref(),
        };
        Some(key.map_or(&[], |key| key.columns.as_slice()))
    }

    /// What the stream would say of the table as it is now. `generated` tells whether the
    /// publication publishes stored generated columns.
    pub fn descriptor(&self, generated: bool) -> RelationDescriptor {
        let identity = self.identity_columns();
        let columns = self
            .columns
            .iter()
            .filter(|column| match column.generated {
                Generated::No => true,
                Generated::Stored => generated,
                Generated::Virtual => false,
            })
            .map(|column| RelationColumn {
                identity: identity.is_none_or(|names| names.contains(&column.name)),
                name: column.name.clone(),
                type_oid: column.type_oid,
                typmod: column.typmod,
            });
        RelationDescriptor {
            oid: RelationId(self.oid),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            replica_identity: self.replica_identity,
            columns: columns.collect(),
        }
    }
}

/// Lists every table-like relation that a filter may name.
///
/// # Errors
/// The connection breaks.
pub async fn list_relations<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
) -> Result<Vec<RelationEntry>, Fault> {
    let sql = "\
        SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence = 'p', i.inhparent \
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
        LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND c.relispartition \
        WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND c.relpersistence <> 't' \
        AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') \
        ORDER BY n.nspname, c.relname";
    let rows = connection.query("listing the tables", sql).await?;
    rows.iter().map(relation_entry).collect()
}

fn relation_entry(row: &Row) -> Result<RelationEntry, Fault> {
    Ok(RelationEntry {
        oid: row.parse_as(0)?,
        namespace: row.text(1)?.to_owned(),
        name: row.text(2)?.to_owned(),
        kind: RelationKind::read(row.text(3)?)?,
        is_logged: row.is_true(4)?,
        partition_of: row.optional_as(5)?,
    })
}

/// Fetches the names of tables, by their numbers.
///
/// # Errors
/// The connection breaks.
pub(super) async fn fetch_names<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    oids: &[u32],
) -> Result<HashMap<u32, (String, String)>, Fault> {
    let sql = format!(
        "SELECT c.oid, n.nspname, c.relname FROM pg_class c \
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = ANY ({})",
        oid_list(oids)
    );
    let rows = connection.query("reading the tables' names", &sql).await?;
    let name =
        |row: &Row| Ok((row.parse_as(0)?, (row.text(1)?.to_owned(), row.text(2)?.to_owned())));
    rows.iter().map(name).collect()
}

/// Fetches the facts of tables, in the order asked for. Those that do not exist are left out.
///
/// # Errors
/// The connection breaks.
pub async fn fetch_tables<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    oids: &[u32],
) -> Result<Vec<TableFacts>, Fault> {
    if oids.is_empty() {
        return Ok(Vec::new());
    }
    let list = oid_list(oids);
    let what = "reading the tables' definitions";
    let tables = connection.query(what, &table_query(&list)).await?;
    let columns = connection.query(what, &column_query(&list)).await?;
    let keys = connection.query(what, &key_query(&list)).await?;
    let mut found = tables.iter().map(table_facts).collect::<Result<Vec<_>, _>>()?;
    // A list of many tables has many rows: look each table up once.
    let places: HashMap<u32, usize> =
        found.iter().enumerate().map(|(place, table)| (table.oid, place)).collect();
    for row in &columns {
        let place = places.get(&row.parse_as(0)?);
        if let Some(table) = place.and_then(|place| found.get_mut(*place)) {
            table.columns.push(column_facts(row)?);
        }
    }
    for row in &keys {
        let place = places.get(&row.parse_as(0)?);
        if let Some(table) = place.and_then(|place| found.get_mut(*place)) {
            add_key_column(table, row)?;
        }
    }
    let order = |table: &TableFacts| oids.iter().position(|oid| *oid == table.oid);
    found.sort_by_cached_key(order);
    Ok(found)
}

fn oid_list(oids: &[u32]) -> String {
    let texts: Vec<String> = oids.iter().map(ToString::to_string).collect();
    format!("'{{{}}}'::oid[]", texts.join(","))
}

/// The relations of a partitioned table's tree, as a query; `oid` is an expression. The server's own
/// function (`pg_partition_tree`) locks what it lists, and waits for whoever alters it.
pub(super) fn partition_tree(oid: &str) -> String {
    format!(
        "WITH RECURSIVE tree(relid) AS (SELECT {oid}::oid UNION ALL SELECT i.inhrelid \
         FROM tree JOIN pg_catalog.pg_inherits i ON i.inhparent = tree.relid) SELECT relid FROM tree"
    )
}

fn table_query(list: &str) -> String {
    let tree = partition_tree("c.oid");
    format!(
        "SELECT c.oid, n.nspname, c.relname, c.relkind, c.relreplident, \
         obj_description(c.oid, 'pg_class'), \
         (CASE WHEN c.relkind = 'p' THEN (SELECT sum(greatest(l.reltuples, 0)) \
             FROM ({tree}) t JOIN pg_class l ON l.oid = t.relid WHERE l.relkind <> 'p') \
          WHEN c.reltuples >= 0 THEN c.reltuples END)::int8, \
         CASE WHEN c.relkind = 'p' THEN (SELECT json_agg(p.name) FROM (SELECT l.oid::regclass::text AS name \
             FROM ({tree}) t JOIN pg_class l ON l.oid = t.relid WHERE l.relkind <> 'p' LIMIT {MOST_PARTITIONS} + 1) p) END \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.oid = ANY ({list})"
    )
}

fn table_facts(row: &Row) -> Result<TableFacts, Fault> {
    let replica_identity = match row.text(4)? {
        "d" => ReplicaIdentity::Default,
        "n" => ReplicaIdentity::Nothing,
        "f" => ReplicaIdentity::Full,
        "i" => ReplicaIdentity::Index,
        other => return Err(unknown("replica identity", other)),
    };
    Ok(TableFacts {
        oid: row.parse_as(0)?,
        namespace: row.text(1)?.to_owned(),
        name: row.text(2)?.to_owned(),
        is_partitioned: row.text(3)? == "p",
        replica_identity,
        columns: Vec::new(),
        primary_key: None,
        identity_index: None,
        comment: row.optional(5)?.map(str::to_owned),
        estimated_rows: row.optional_as(6)?,
        partitions: partitions(row.optional(7)?, row.text(3)? == "p")?,
    })
}

fn partitions(names: Option<&str>, is_partitioned: bool) -> Result<Option<Vec<String>>, Fault> {
    let Some(names) = names else { return Ok(is_partitioned.then(Vec::new)) };
    let mut names: Vec<String> =
        serde_json::from_str(names).map_err(|_not_names| unknown("list of partitions", names))?;
    names.sort_unstable();
    Ok(Some(names).filter(|names| names.len() <= MOST_PARTITIONS))
}

/// Whether a collation (`l`) compares bytes. The default one is the database's. Columns of later
/// versions' catalogues are reached through JSON.
const C_ORDER: &str = "\
    CASE l.collprovider \
    WHEN 'd' THEN (SELECT CASE coalesce(to_jsonb(b)->>'datlocprovider', 'c') \
        WHEN 'c' THEN b.datcollate IN ('C', 'POSIX') \
        WHEN 'b' THEN to_jsonb(b)->>'datlocale' = 'C' ELSE false END \
        FROM pg_database b WHERE b.datname = current_database()) \
    WHEN 'c' THEN l.collcollate IN ('C', 'POSIX') \
    ELSE false END";

/// From version 18 on a NOT NULL constraint may be not valid yet: rows before it may have NULLs.
/// A default names no column, so it can be written without its table, which would be locked for
/// that (`pg_get_expr_worker`, ruleutils.c).
fn column_query(list: &str) -> String {
    format!(
        "SELECT a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, \
         a.attnotnull AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = a.attrelid \
             AND k.contype = 'n' AND NOT k.convalidated AND k.conkey = ARRAY[a.attnum]), \
         a.attndims, a.attgenerated, \
         CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, 0) END, \
         col_description(a.attrelid, a.attnum), \
         CASE WHEN l.oid IS NULL THEN 'u' WHEN NOT l.collisdeterministic THEN 'n' \
              WHEN getdatabaseencoding() = 'UTF8' AND {C_ORDER} THEN 'c' ELSE 'l' END \
         FROM pg_attribute a \
         LEFT JOIN pg_collation l ON l.oid = a.attcollation \
         LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
         WHERE a.attrelid = ANY ({list}) AND a.attnum > 0 AND NOT a.attisdropped \
         ORDER BY a.attrelid, a.attnum"
    )
}

fn column_facts(row: &Row) -> Result<ColumnFacts, Fault> {
    let generated = match row.text(7)? {
        "" => Generated::No,
        "s" => Generated::Stored,
        "v" => Generated::Virtual,
        other => return Err(unknown("generated column", other)),
    };
    Ok(ColumnFacts {
        attnum: row.parse_as(1)?,
        name: row.text(2)?.to_owned(),
        type_oid: row.parse_as(3)?,
        typmod: row.parse_as(4)?,
        not_null: row.is_true(5)?,
        dimensions: row.parse_as(6)?,
        generated,
        default: row.optional(8)?.map(str::to_owned),
        comment: row.optional(9)?.map(str::to_owned),
        text_order: match row.text(10)? {
            "c" => TextOrder::Bytewise,
            "l" => TextOrder::Locale,
            "n" => TextOrder::Loose,
            _ => TextOrder::Unknown,
        },
    })
}

fn key_query(list: &str) -> String {
    format!(
        "SELECT i.indrelid, i.indisprimary, i.indisreplident, i.indimmediate, a.attname \
         FROM pg_index i \
         CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY k(attnum, place) \
         JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum \
         WHERE i.indrelid = ANY ({list}) AND (i.indisprimary OR i.indisreplident) \
         AND k.place <= i.indnkeyatts \
         ORDER BY i.indrelid, i.indexrelid, k.place"
    )
}

fn add_key_column(table: &mut TableFacts, row: &Row) -> Result<(), Fault> {
    let is_immediate = row.is_true(3)?;
    let column = row.text(4)?;
    let add = |key: &mut Option<KeyFacts>| {
        let key = key.get_or_insert_with(|| KeyFacts { columns: Vec::new(), is_immediate });
        key.columns.push(column.to_owned());
    };
    if row.is_true(1)? {
        add(&mut table.primary_key);
    }
    if row.is_true(2)? {
        add(&mut table.identity_index);
    }
    Ok(())
}

/// Fetches what the catalogue of types lacks for these types, and for those that they are made of.
///
/// # Errors
/// The connection breaks.
pub async fn fetch_types<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    types: &mut TypeCatalogue,
    oids: &[u32],
) -> Result<(), Fault> {
    loop {
        let missing = types.missing(oids);
        if missing.is_empty() {
            return Ok(());
        }
        fetch_listed_types(connection, types, &missing).await?;
    }
}

/// Fetches anew what a user may have altered of these types: enum labels, domains.
///
/// # Errors
/// The connection breaks.
pub async fn refresh_types<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    types: &mut TypeCatalogue,
    oids: &[u32],
) -> Result<(), Fault> {
    let alterable = types.alterable(oids);
    if !alterable.is_empty() {
        fetch_listed_types(connection, types, &alterable).await?;
    }
    fetch_types(connection, types, oids).await
}

async fn fetch_listed_types<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    types: &mut TypeCatalogue,
    oids: &[u32],
) -> Result<(), Fault> {
    let sql = TYPE_QUERY.replace("$1::oid[]", &oid_list(oids));
    for row in connection.query("reading the columns' types", &sql).await? {
        types.insert(type_row(&row)?.into());
    }
    types.insert_absent(oids.iter().copied());
    Ok(())
}

fn type_row(row: &Row) -> Result<TypeRow, Fault> {
    let letter = |index| Ok::<_, Fault>(row.text(index)?.bytes().next().unwrap_or_default());
    Ok(TypeRow {
        oid: row.parse_as(0)?,
        name: row.text(1)?.to_owned(),
        namespace: row.text(2)?.to_owned(),
        letter: letter(3)?,
        element_oid: row.parse_as(4)?,
        delimiter: letter(5)?,
        base_oid: row.parse_as(6)?,
        base_typmod: row.parse_as(7)?,
        dimensions: row.parse_as(8)?,
        labels: text_array(row.bytes(9)?.unwrap_or_default())?,
    })
}

/// Reads a list of texts with the parser that reads such cells of tables.
fn text_array(raw: &[u8]) -> Result<Vec<String>, Fault> {
    let parser = resolve(TEXT_ARRAY, -1, None, &TypeCatalogue::new(), None).parser;
    let mut texts = Vec::new();
    let read = parser.parse(raw).and_then(|value| match value {
        Scalar::Sequence(sequence) => sequence.visit(&mut |element| {
            if let Scalar::Text(text) = element {
                texts.push(text.to_owned());
            }
            Ok(())
        }),
        _ => Err(ValueError::Malformed { kind: "text[]", detail: "no list".to_owned() }),
    });
    read.map_err(ValueError::into_fault)?;
    Ok(texts)
}

fn unknown(what: &str, letter: &str) -> Fault {
    Code::ServerVersion.fault(format!("the catalogue has an unknown {what} '{letter}'"))
}

/// Tables and columns for tests, plain but for what a test is about.
#[cfg(test)]
pub(super) mod testing {
    use super::*;

    pub(in super::super) fn column(attnum: i16, name: &str, type_oid: u32) -> ColumnFacts {
        ColumnFacts {
            attnum,
            name: name.to_owned(),
            type_oid,
            typmod: -1,
            not_null: false,
            dimensions: 0,
            generated: Generated::No,
            default: None,
            comment: None,
            text_order: TextOrder::Unknown,
        }
    }

    /// `public.t` without keys, under the default identity.
    pub(in super::super) fn table(columns: Vec<ColumnFacts>) -> TableFacts {
        TableFacts {
            oid: 7,
            namespace: "public".to_owned(),
            name: "t".to_owned(),
            is_partitioned: false,
            replica_identity: ReplicaIdentity::Default,
            columns,
            primary_key: None,
            identity_index: None,
            comment: None,
            estimated_rows: None,
            partitions: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(identity: ReplicaIdentity, primary_key: Option<KeyFacts>) -> TableFacts {
        let column = |name, generated| ColumnFacts { generated, ..testing::column(1, name, 23) };
        let columns = vec![
            column("a", Generated::No),
            column("s", Generated::Stored),
            column("v", Generated::Virtual),
            column("b", Generated::No),
        ];
        TableFacts { replica_identity: identity, primary_key, ..testing::table(columns) }
    }

    fn key(columns: &[&str], is_immediate: bool) -> Option<KeyFacts> {
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        Some(KeyFacts { columns, is_immediate })
    }

    #[track_caller]
    fn check(table: &TableFacts, generated: bool, expect: &[(&str, bool)]) {
        let descriptor = table.descriptor(generated);
        let found: Vec<_> = descriptor
            .columns
            .iter()
            .map(|column| (column.name.as_str(), column.identity))
            .collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn the_expected_description_is_the_servers() {
        use ReplicaIdentity::{Default, Full, Index, Nothing};
        let by_key = table(Default, key(&["b"], true));
        check(&by_key, false, &[("a", false), ("b", true)]);
        check(&by_key, true, &[("a", false), ("s", false), ("b", true)]);
        check(&table(Default, key(&["b"], false)), false, &[("a", false), ("b", false)]);
        check(&table(Default, None), false, &[("a", false), ("b", false)]);
        check(&table(Full, None), false, &[("a", true), ("b", true)]);
        check(&table(Nothing, key(&["b"], true)), false, &[("a", false), ("b", false)]);
        let mut by_index = table(Index, key(&["b"], true));
        check(&by_index, false, &[("a", false), ("b", false)]);
        by_index.identity_index = key(&["a"], true);
        check(&by_index, false, &[("a", true), ("b", false)]);
    }

    #[test]
    fn lists_of_labels_are_read_with_their_odd_characters() {
        let labels = text_array(r#"{plain,"with space","with \"quote\" and \\",ü}"#.as_bytes());
        assert_eq!(labels.expect("a list"), ["plain", "with space", "with \"quote\" and \\", "ü"]);
        assert!(text_array(b"{}").expect("a list").is_empty());
        assert!(text_array(b"{a").is_err());
    }
}

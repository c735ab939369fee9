//! Row filters in the publication: what they must say, and whether they do.
//!
//! The server stores a row filter as it understood it, not as it was written. So the configured one
//! is held against it in the server's own words: those of a publication, or of a table's check,
//! made for that and rolled back. Knows no stream. Source: manual, "Row Filters"; what becomes of
//! an update is in `pgoutput_row_filter` (pgoutput.c). **Invariants:** it leaves nothing behind on
//! the server; a filter of the publication that is not the configured one is a fault, and is
//! neither followed nor replaced: what was decoded by it is not known.

use std::collections::BTreeMap;

use tokio::io::{AsyncRead, AsyncWrite};

use super::Settings;
use super::capture::Selection;
use super::catalogue::{RelationEntry, fetch_tables};
use super::connection::{Connection, Row, identifier, literal};
use super::filter_check::{self, Checked};
use super::publication::{PublicationFacts, Scope, addition, listed, table_list};
use super::row_filter::Pushdown;
use super::settings::PublicationAutocreate;
use super::wire::{Lsn, ReplicaIdentity};
use crate::error::{Code, Fault};

/// The first version whose publications have row filters.
const FIRST: u32 = 15;

/// A row filter that the publication must have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    /// The predicate as it is sent.
    pub sql: String,
    /// As the server shows it.
    pub shown: String,
}

/// Looks at the row filters, and takes those into the selection that the publication must have.
/// Answers everything that stands in the way. `facts`: the publication, if there is one.
///
/// # Errors
/// The connection breaks.
pub(super) async fn want(
    connection: &mut Connection,
    settings: &Settings,
    selection: &mut Selection,
    facts: Option<&PublicationFacts>,
) -> Result<Vec<Fault>, Fault> {
    let generated = facts.is_some_and(|facts| facts.generated);
    let Checked { mut faults, predicates } =
        filter_check::check(connection, settings, selection, generated).await?;
    if settings.row_filters.pushdown == Pushdown::None {
        return Ok(faults);
    }
    let version = connection.version();
    if version.major() < FIRST {
        faults.push(Code::ServerVersion.fault(format!(
            "row.filter.pushdown=publication needs PostgreSQL {FIRST}, the server has {version}"
        )));
        return Ok(faults);
    }
    faults.extend(unfit(settings, selection, &predicates));
    if faults.is_empty() {
        faults.extend(partial_images(connection, selection, &predicates).await?);
    }
    if !faults.is_empty() {
        return Ok(faults);
    }
    selection.pushed = predicates
        .into_iter()
        .map(|(oid, sql)| (oid, Pushed { shown: String::new(), sql }))
        .collect();
    let tables: Vec<RelationEntry> = selection
        .published
        .iter()
        .filter(|entry| selection.pushed.contains_key(&entry.oid))
        .cloned()
        .collect();
    let is_made = settings.publication_autocreate == PublicationAutocreate::Filtered
        && facts.is_none_or(|facts| tables.iter().any(|table| !facts.carries(table)));
    let words = if is_made {
        let words = as_publication(connection, settings, selection, &tables).await?;
        // who may not is told so with the statement that the publication needs
        words.or_else(|fault| tolerated(fault, Code::ReplicationPermission))
    } else {
        read(connection, settings, selection, &tables).await?
    };
    match words {
        Ok(words) => learn(selection, words),
        Err(fault) => faults.push(fault),
    }
    Ok(faults)
}

/// The fault of a filter that was taken out of the publication and put back.
pub(super) fn replaced(namespace: &str, name: &str) -> Fault {
    let table = format!("{namespace}.{name}");
    Code::FilterPushdownDrift
        .fault(format!(
            "the publication has the row filter of \"{table}\" anew: meanwhile it had another one \
             or none, and what it left out then is not known"
        ))
        .hint(
            "If it left out nothing that it should not have, in this order: PUT \
             /connectors/{name}/stop; take the row filters out of the publication (ALTER PUBLICATION \
             … SET TABLE …, with all its tables and without WHERE); set row.filter.pushdown=none, \
             without changing the filters; PUT /connectors/{name}/resume. Else delete the \
             connector's offsets and begin anew.",
        )
        .at_table(table)
}

/// A position behind everything that the server has written.
///
/// # Errors
/// The connection breaks.
pub(super) async fn position(connection: &mut Connection) -> Result<Lsn, Fault> {
    let sql = "SELECT pg_current_wal_insert_lsn()";
    connection.query_one("asking for the server's position", sql).await?.parse_as(0)
}

type Words = BTreeMap<u32, String>;

fn learn(selection: &mut Selection, words: Words) {
    for (oid, text) in words {
        if let Some(pushed) = selection.pushed.get_mut(&oid) {
            pushed.shown = text;
        }
    }
}

fn tolerated(fault: Fault, code: Code) -> Result<Words, Fault> {
    if fault.code() == code { Ok(Words::new()) } else { Err(fault) }
}

/// What the configuration cannot have of a publication.
fn unfit(
    settings: &Settings,
    selection: &Selection,
    predicates: &BTreeMap<u32, String>,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    if settings.publication_autocreate == PublicationAutocreate::AllTables && !predicates.is_empty()
    {
        faults.push(Code::ConfigInvalid.fault(
            "row.filter.pushdown=publication needs a publication that lists its tables, and \
             publication.autocreate.mode is all_tables",
        ));
    }
    let is_listed = |oid: u32| selection.published.iter().any(|entry| entry.oid == oid);
    let partitions = selection
        .captured
        .iter()
        .filter(|one| predicates.contains_key(&one.oid) && !is_listed(one.oid));
    for partition in partitions {
        let name = partition.qualified_name();
        faults.push(
            Code::ConfigInvalid
                .fault(format!(
                    "row.filter.pushdown=publication: the publication lists the partitioned table \
                     above \"{name}\", and not the partition by itself"
                ))
                .hint(
                    "Set publish.via.partition.root=true and filter the partitioned table; or let \
                     table.include.list name the partitions only.",
                )
                .at_table(name),
        );
    }
    faults
}

/// Without whole old rows the server sends a row that moved in without its large values: it is then
/// an insert with holes.
async fn partial_images(
    connection: &mut Connection,
    selection: &Selection,
    predicates: &BTreeMap<u32, String>,
) -> Result<Vec<Fault>, Fault> {
    let is_concerned = |oid: u32, root: Option<u32>| {
        predicates.contains_key(&oid) || root.is_some_and(|root| predicates.contains_key(&root))
    };
    let oids: Vec<u32> = selection
        .accountable
        .iter()
        .filter(|one| is_concerned(one.oid, one.root))
        .map(|one| one.oid)
        .collect();
    let mut partial = fetch_tables(connection, &oids).await?;
    partial.retain(|table| table.replica_identity != ReplicaIdentity::Full);
    if partial.is_empty() {
        return Ok(Vec::new());
    }
    let numbers: Vec<String> = partial.iter().map(|table| table.oid.to_string()).collect();
    let sql = format!(
        "SELECT attrelid, attname FROM pg_attribute WHERE attrelid = ANY ('{{{}}}'::oid[]) \
         AND attnum > 0 AND NOT attisdropped AND attlen < 0 ORDER BY attrelid, attnum",
        numbers.join(",")
    );
    let rows = connection.query("asking which values can be large", &sql).await?;
    let mut faults = Vec::new();
    for table in &partial {
        let identity = table.identity_columns().unwrap_or_default();
        let Some(column) = large(&rows, table.oid, identity)? else { continue };
        let name = table.qualified_name();
        faults.push(
            Code::FilterBeforeImage
                .fault(format!(
                    "row.filter.pushdown=publication: of a row that moves in, \"{name}\" would not \
                     send an unchanged large value, for its replica identity is {}",
                    table.replica_identity.as_str()
                ))
                .hint(format!(
                    "ALTER TABLE {} REPLICA IDENTITY FULL; or row.filter.pushdown=none.",
                    quoted(&table.namespace, &table.name)
                ))
                .at_table(name)
                .at_column(column),
        );
    }
    Ok(faults)
}

/// The first column of a table that can be stored out of line and is not part of its identity.
fn large(rows: &[Row], oid: u32, identity: &[String]) -> Result<Option<String>, Fault> {
    for row in rows {
        let (of, name): (u32, &str) = (row.parse_as(0)?, row.text(1)?);
        if of == oid && !identity.iter().any(|one| one == name) {
            return Ok(Some(name.to_owned()));
        }
    }
    Ok(None)
}

fn quoted(namespace: &str, name: &str) -> String {
    format!("{}.{}", identifier(namespace), identifier(name))
}

/// What the server would show of the predicates, of a publication that is there already.
async fn read<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    settings: &Settings,
    selection: &Selection,
    tables: &[RelationEntry],
) -> Result<Result<Words, Fault>, Fault> {
    let words = as_check(connection, selection, tables).await?;
    let Err(denied) = words else { return Ok(words) };
    if denied.code() != Code::ReplicationPermission {
        return Ok(Err(denied));
    }
    let words = as_publication(connection, settings, selection, tables).await?;
    Ok(words.map_err(|fault| match fault.code() {
        Code::ReplicationPermission => Code::ReplicationPermission
            .fault(format!(
                "it cannot be seen whether the publication's row filters are the configured ones: {}",
                denied.message()
            ))
            .hint(
                "GRANT TEMPORARY ON DATABASE …, and GRANT SELECT ON the filtered tables, TO the \
                 role; or row.filter.pushdown=none.",
            ),
        _ => fault,
    }))
}

/// As the checks of temporary tables of the same columns: for that a role needs no more than it
/// needs for a snapshot.
async fn as_check<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    selection: &Selection,
    tables: &[RelationEntry],
) -> Result<Result<Words, Fault>, Fault> {
    let mut statements = Vec::new();
    for table in tables {
        let Some(pushed) = selection.pushed.get(&table.oid) else { continue };
        statements.push(format!(
            "CREATE TEMPORARY TABLE tidegate_probe_{} (LIKE {}, CHECK ({}))",
            table.oid,
            quoted(&table.namespace, &table.name),
            pushed.sql
        ));
    }
    // of the table's own checks none is taken over
    let read = "SELECT substr(r.relname, 16), pg_get_expr(c.conbin, c.conrelid) \
                FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid \
                WHERE r.relnamespace = pg_my_temp_schema() AND c.contype = 'c' \
                AND starts_with(r.relname, 'tidegate_probe_')";
    tried(connection, &statements, read).await
}

/// As the row filters of a publication: then it is known, too, that the server takes them as such.
async fn as_publication<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    settings: &Settings,
    selection: &Selection,
    tables: &[RelationEntry],
) -> Result<Result<Words, Fault>, Fault> {
    if tables.is_empty() {
        return Ok(Ok(Words::new()));
    }
    let name = format!("tidegate_probe_{}", std::process::id());
    let via_root = settings.publish_via_partition_root;
    let create = format!(
        "CREATE PUBLICATION {} FOR TABLE {} WITH (publish_via_partition_root = {via_root})",
        identifier(&name),
        table_list(tables, selection)
    );
    let read = format!(
        "SELECT m.prrelid, pg_get_expr(m.prqual, m.prrelid) FROM pg_publication_rel m \
         JOIN pg_publication p ON p.oid = m.prpubid WHERE p.pubname = {}",
        literal(&name)
    );
    let words = tried(connection, &[create], &read).await?;
    Ok(words.map_err(|fault| match fault.code() {
        Code::SourceQuery => Code::FilterUnsupported
            .fault(format!(
                "the server does not take a predicate as a row filter of a publication: {}",
                fault.message()
            ))
            .hint(
                "A publication's row filter takes columns, constants, operators and types that \
                 are built in: write the predicate without enums, domains and casts of columns to \
                 text, or set row.filter.pushdown=none.",
            ),
        _ => fault,
    }))
}

/// Runs statements, reads what came of them, and takes them back. The inner fault is the server's
/// refusal of a statement.
async fn tried<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    statements: &[String],
    read: &str,
) -> Result<Result<Words, Fault>, Fault> {
    let what = "trying the publication's row filters";
    connection.query(what, "BEGIN READ WRITE").await?;
    let outcome = run(connection, statements, read).await;
    // also the answer to a connection that is broken
    connection.query(what, "ROLLBACK").await?;
    Ok(outcome)
}

async fn run<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    statements: &[String],
    read: &str,
) -> Result<Words, Fault> {
    let what = "trying the publication's row filters";
    for statement in statements {
        connection.query(what, statement).await?;
    }
    let mut words = Words::new();
    for row in connection.query(what, read).await? {
        words.insert(row.parse_as(0)?, row.optional(1)?.unwrap_or_default().to_owned());
    }
    Ok(words)
}

/// Where a publication does not have the row filters that it must have.
pub(super) fn drift(name: &str, facts: &PublicationFacts, selection: &Selection) -> Vec<Fault> {
    let tables = selection.published.iter();
    tables
        .filter_map(|table| {
            let pushed = selection.pushed.get(&table.oid)?;
            let (what, hint) = deviation(name, facts, selection, (table, pushed))?;
            let table = table.qualified_name();
            let text = format!("the publication \"{name}\" {what}");
            Some(Code::FilterPushdownDrift.fault(text).hint(hint).at_table(table))
        })
        .collect()
}

/// What a publication does to a table instead, and how it is mended.
fn deviation(
    name: &str,
    facts: &PublicationFacts,
    selection: &Selection,
    (table, pushed): (&RelationEntry, &Pushed),
) -> Option<(String, String)> {
    let publication = identifier(name);
    if facts.scope == Scope::AllTables {
        let what = "carries all tables, and so filters none".to_owned();
        let hint = "Use a publication that lists its tables, or row.filter.pushdown=none.";
        return Some((what, hint.to_owned()));
    }
    // one table's filter gives way to its whole schema
    if facts.schemas.contains(&table.namespace) {
        let what = format!("carries the whole schema \"{}\", unfiltered", table.namespace);
        let hint = format!(
            "ALTER PUBLICATION {publication} DROP TABLES IN SCHEMA {}; and list the tables.",
            identifier(&table.namespace)
        );
        return Some((what, hint));
    }
    let member = facts.members.iter().find(|member| member.oid == table.oid)?;
    let found = match &member.row_filter {
        Some(text) if *text == pushed.shown => return None,
        Some(text) => format!("the row filter {text}"),
        None => "no row filter".to_owned(),
    };
    let what = format!(
        "has {found} for \"{}\", and row.filter.{} is {}",
        table.qualified_name(),
        table.qualified_name(),
        if pushed.shown.is_empty() { &pushed.sql } else { &pushed.shown }
    );
    let add = addition(name, std::slice::from_ref(table), selection);
    let hint = format!(
        "For a new connector, or one that left rows out by itself and has read everything: BEGIN; \
         ALTER PUBLICATION {publication} DROP TABLE {}; {add}; COMMIT. One that relied on the \
         publication until now needs row.filter.pushdown=none first, without changing \
         row.filter.{}, on a publication without filters, also for another filter: docs/filters.md, \
         \"From one way to the other\".",
        listed(table),
        table.qualified_name()
    );
    Some((what, hint))
}

#[cfg(test)]
mod tests;

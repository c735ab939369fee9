//! The publication: what it carries, whether that is what is captured, creating and extending it.
//!
//! The publication decides what the server sends, silently: a table that it does not list, an
//! operation or a column that it leaves out never shows in the stream. Reads and writes the
//! catalogue; knows no stream. Source: manual, `CREATE PUBLICATION`, "Row Filters", "Column Lists".
//! **Invariants:** a publication is touched only in a transaction that is rolled back unless every
//! table that it carries can be updated and deleted from as before; tables are added, never taken
//! away; nothing is created that a slot would look for at an earlier place in its log.

use std::collections::{HashMap, HashSet};

use tokio::io::{AsyncRead, AsyncWrite};

use super::capture::{Accountable, Selection, all_accountable};
use super::catalogue::{RelationEntry, RelationKind, TableFacts, fetch_tables, list_relations};
use super::connection::{Connection, Row, identifier, literal};
use super::identity::{check_identity, check_leaf};
use super::pushdown;
use super::relations::Fnv;
use super::session::ServerVersion;
use super::{PublicationAutocreate, Settings};
use crate::error::{Code, Fault};

/// A table that a publication lists by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// `pg_class.oid`.
    pub oid: u32,
    /// `pg_publication_rel.oid`: another one as soon as it was taken out and listed again, also by
    /// a `SET TABLE` that changes its filter (`AlterPublicationTables`, publicationcmds.c).
    pub entry: u32,
    /// Its schema.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Only rows for which this holds are published.
    pub row_filter: Option<String>,
    /// Only these columns are published (their numbers, as the catalogue writes them).
    pub column_list: Option<String>,
}

/// Which tables a publication carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Those that it lists, by themselves or by their schema.
    #[default]
    Listed,
    /// All of the database.
    AllTables,
}

/// What the catalogue says of a publication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicationFacts {
    /// Its owner, if that is a role of which ours is not a member: then we may not alter it.
    pub foreign_owner: Option<String>,
    /// Which tables it carries.
    pub scope: Scope,
    /// The kinds of changes that it carries: `insert`, `update`, `delete`, `truncate`.
    pub operations: Vec<&'static str>,
    /// Rows of partitions come under the name of the partitioned table.
    pub via_root: bool,
    /// Stored generated columns are published (from version 18 on).
    pub generated: bool,
    /// Tables that it lists.
    pub members: Vec<Member>,
    /// Schemas of which it carries every table.
    pub schemas: Vec<String>,
    /// The relations under whose names rows come.
    pub names: Vec<PublishedName>,
    /// The numbers of the rows of the catalogue that say so: of the publication's own row the
    /// transaction that wrote it, and of schemas those of their entries. Others as soon as anything
    /// was altered, also if it says the same again.
    pub rows: Vec<u32>,
}

impl PublicationFacts {
    /// A number for everything that decides what is sent. Stored with offsets, so the recipe must
    /// not change.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Fnv::default();
        hash.text(match self.scope {
            Scope::Listed => "some tables",
            Scope::AllTables => "all tables",
        });
        hash.text(&self.operations.join(","));
        hash.text(if self.via_root { "by root" } else { "by leaf" });
        hash.text(if self.generated { "generated" } else { "" });
        let mut members: Vec<&Member> = self.members.iter().collect();
        members.sort_by_key(|member| member.oid);
        hash.length(members.len());
        for member in members {
            hash.bytes(&member.oid.to_be_bytes());
            hash.text(member.row_filter.as_deref().unwrap_or_default());
            hash.text(member.column_list.as_deref().unwrap_or_default());
        }
        let mut schemas = self.schemas.clone();
        schemas.sort_unstable();
        hash.length(schemas.len());
        for schema in &schemas {
            hash.text(schema);
        }
        hash.value()
    }

    /// Tells a publication that was altered from one that was not. Never 0.
    pub fn stamp(&self) -> u64 {
        let mut hash = Fnv::default();
        let mut rows = self.rows.clone();
        rows.sort_unstable();
        let mut entries: Vec<u32> = self.members.iter().map(|member| member.entry).collect();
        entries.sort_unstable();
        for numbers in [rows, entries] {
            hash.length(numbers.len());
            numbers.iter().for_each(|number| hash.bytes(&number.to_be_bytes()));
        }
        hash.value().max(1)
    }

    /// Whether it carries a relation without being altered.
    pub(super) fn carries(&self, relation: &RelationEntry) -> bool {
        self.scope == Scope::AllTables
            || self.members.iter().any(|member| member.oid == relation.oid)
            || self.schemas.contains(&relation.namespace)
            || self.names_table(relation)
    }

    fn names_table(&self, relation: &RelationEntry) -> bool {
        self.names.iter().any(|name| name.is_of(relation))
    }
}

/// A relation under whose name rows come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedName {
    /// Its number in `pg_class`.
    pub oid: u32,
    /// Its schema.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl PublishedName {
    /// Whether this is the relation: also if it got another name, or another one its name, between
    /// the two looks at the catalogue.
    pub(super) fn is_of(&self, relation: &RelationEntry) -> bool {
        self.oid == relation.oid
            || (self.namespace == relation.namespace && self.name == relation.name)
    }
}

/// What became of the publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ensured {
    /// It did not exist before.
    pub created: bool,
    /// The tables that were added, as `schema.table`. What was written to them before is not in
    /// the stream.
    pub added: Vec<String>,
    /// What it is now.
    pub facts: PublicationFacts,
}

/// Reads a publication; `None`: there is none of this name.
///
/// # Errors
/// The connection breaks.
pub async fn read_publication<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    name: &str,
) -> Result<Option<PublicationFacts>, Fault> {
    let what = format!("reading the publication \"{name}\"");
    let major = connection.version().major();
    let generated = if major >= 18 { "p.pubgencols = 's'" } else { "false" };
    let (publication, name) = (name, literal(name));
    let sql = format!(
        "SELECT p.oid, \
         CASE WHEN NOT pg_has_role(p.pubowner, 'USAGE') THEN pg_get_userbyid(p.pubowner) END, \
         p.puballtables, p.pubinsert, \
         p.pubupdate, p.pubdelete, p.pubtruncate, p.pubviaroot, {generated}, p.xmin::text::int8 \
         FROM pg_publication p WHERE p.pubname = {name}"
    );
    let rows = connection.query(&what, &sql).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut operations = Vec::new();
    for (index, operation) in (3..).zip(["insert", "update", "delete", "truncate"]) {
        if row.is_true(index)? {
            operations.push(operation);
        }
    }
    let oid: u32 = row.parse_as(0)?;
    let mut facts = PublicationFacts {
        foreign_owner: row.optional(1)?.map(str::to_owned),
        scope: if row.is_true(2)? { Scope::AllTables } else { Scope::Listed },
        operations,
        via_root: row.is_true(7)?,
        generated: row.is_true(8)?,
        rows: vec![row.parse_as(9)?],
        ..PublicationFacts::default()
    };
    let restrictions = if major >= 15 {
        "pg_get_expr(m.prqual, m.prrelid), m.prattrs::text"
    } else {
        "NULL, NULL"
    };
    let sql = format!(
        "SELECT c.oid, n.nspname, c.relname, {restrictions}, m.oid FROM pg_publication_rel m \
         JOIN pg_class c ON c.oid = m.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE m.prpubid = {oid}"
    );
    for row in connection.query(&what, &sql).await? {
        facts.members.push(Member {
            oid: row.parse_as(0)?,
            namespace: row.text(1)?.to_owned(),
            name: row.text(2)?.to_owned(),
            row_filter: row.optional(3)?.map(str::to_owned),
            column_list: row.optional(4)?.map(str::to_owned),
            entry: row.parse_as(5)?,
        });
    }
    if major >= 15 {
        let sql = format!(
            "SELECT n.nspname, s.oid FROM pg_publication_namespace s \
             JOIN pg_namespace n ON n.oid = s.pnnspid WHERE s.pnpubid = {oid}"
        );
        for row in connection.query(&what, &sql).await? {
            facts.schemas.push(row.text(0)?.to_owned());
            facts.rows.push(row.parse_as(1)?);
        }
    }
    facts.names = read_names(connection, publication).await?;
    Ok(Some(facts))
}

async fn read_names<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    publication: &str,
) -> Result<Vec<PublishedName>, Fault> {
    let sql = format!(
        "SELECT c.oid, n.nspname, c.relname FROM ({}) p JOIN pg_class c ON c.oid = p.oid \
         JOIN pg_namespace n ON n.oid = c.relnamespace ORDER BY 2, 3",
        published(publication, connection.version())
    );
    let rows = connection.query("reading what a publication carries", &sql).await?;
    let name = |row: &Row| {
        let (namespace, name) = (row.text(1)?.to_owned(), row.text(2)?.to_owned());
        Ok(PublishedName { oid: row.parse_as(0)?, namespace, name })
    };
    rows.iter().map(name).collect()
}

/// The relations under whose names a publication's rows come, as a query of `oid`. What the view
/// `pg_publication_tables` says, which from version 15 on locks each table for its columns
/// (`pg_get_publication_tables`), and so waits for whoever alters one.
pub(super) fn published(name: &str, version: ServerVersion) -> String {
    // what can be published (`is_publishable_class`)
    let each = "SELECT c.oid FROM pg_catalog.pg_class c \
                WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND c.oid >= 16384";
    let by_schema = if version.major() >= 15 {
        format!(
            "UNION {each} AND c.relnamespace IN (SELECT pnnspid \
             FROM pg_catalog.pg_publication_namespace WHERE pnpubid = (SELECT oid FROM made)) "
        )
    } else {
        String::new()
    };
    format!(
        "WITH RECURSIVE made AS MATERIALIZED (SELECT oid, puballtables, pubviaroot \
         FROM pg_catalog.pg_publication WHERE pubname = {name}), \
         listed(oid) AS MATERIALIZED (SELECT prrelid FROM pg_catalog.pg_publication_rel \
         WHERE prpubid = (SELECT oid FROM made) {by_schema}\
         UNION {each} AND (SELECT puballtables FROM made)), \
         below(top, oid) AS (SELECT oid, oid FROM listed UNION SELECT b.top, i.inhrelid FROM below b \
         JOIN pg_catalog.pg_inherits i ON i.inhparent = b.oid \
         JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid AND c.relispartition) \
         SELECT DISTINCT b.oid FROM below b JOIN pg_catalog.pg_class c ON c.oid = b.oid \
         WHERE CASE WHEN (SELECT pubviaroot FROM made) THEN b.top = b.oid \
         AND NOT EXISTS (SELECT FROM below o WHERE o.oid = b.oid AND o.top <> b.oid) \
         ELSE c.relkind <> 'p' END",
        name = literal(name)
    )
}

/// Whether a publication publishes rows under this name, as of now.
///
/// # Errors
/// The connection breaks.
pub(super) async fn is_published(
    connection: &mut Connection,
    publication: &str,
    namespace: &str,
    table: &str,
) -> Result<bool, Fault> {
    let sql = format!(
        "SELECT EXISTS (SELECT FROM ({}) p JOIN pg_class c ON c.oid = p.oid \
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = {} AND c.relname = {})",
        published(publication, connection.version()),
        literal(namespace),
        literal(table)
    );
    connection.query_one("asking whether a table is published", &sql).await?.is_true(0)
}

/// What would have to be done so that the publication carries what is captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The statement.
    pub statement: String,
    /// The relations that it adds; `None`: every table.
    pub adds: Option<Vec<RelationEntry>>,
    /// It creates the publication.
    pub creates: bool,
}

/// Decides what has to be done, by `publication.autocreate.mode`.
///
/// `slot_exists`: a slot decodes with the catalogue of then, in which a publication that is created
/// now does not exist.
///
/// # Errors
/// `PUBLICATION-MISSING`: it does not exist, and may not be created.
pub fn plan(
    settings: &Settings,
    facts: Option<&PublicationFacts>,
    selection: &Selection,
    slot_exists: bool,
) -> Result<Option<Change>, Fault> {
    let name = &settings.publication_name;
    let Some(facts) = facts else {
        let change = creation(settings, selection);
        if settings.publication_autocreate == PublicationAutocreate::Disabled {
            return Err(Code::PublicationMissing
                .fault(format!("the publication \"{name}\" does not exist"))
                .hint(format!("Let its owner-to-be create it: {};", change.statement)));
        }
        if slot_exists {
            return Err(Code::PublicationMissing
                .fault(format!(
                    "the publication \"{name}\" does not exist, and the replication slot \"{}\" \
                     would look for it in the past",
                    settings.slot_name
                ))
                .hint(
                    "Creating it does not bring back what was written without it: drop the slot, \
                     delete the connector's offset and snapshot anew, or use another slot.name.",
                ));
        }
        return Ok(Some(change));
    };
    let missing: Vec<RelationEntry> =
        selection.published.iter().filter(|table| !facts.carries(table)).cloned().collect();
    if missing.is_empty() || settings.publication_autocreate != PublicationAutocreate::Filtered {
        return Ok(None);
    }
    let statement = addition(name, &missing, selection);
    Ok(Some(Change { statement, adds: Some(missing), creates: false }))
}

fn creation(settings: &Settings, selection: &Selection) -> Change {
    let tables = &selection.published;
    let (objects, adds) = match settings.publication_autocreate {
        PublicationAutocreate::AllTables => (" FOR ALL TABLES".to_owned(), None),
        PublicationAutocreate::NoTables => (String::new(), Some(Vec::new())),
        PublicationAutocreate::Filtered | PublicationAutocreate::Disabled => {
            (format!(" FOR TABLE {}", table_list(tables, selection)), Some(tables.clone()))
        }
    };
    let options = if settings.publish_via_partition_root {
        " WITH (publish_via_partition_root = true)"
    } else {
        ""
    };
    let name = identifier(&settings.publication_name);
    Change {
        statement: format!("CREATE PUBLICATION {name}{objects}{options}"),
        adds,
        creates: true,
    }
}

/// The statement that adds tables, with their row filters.
pub(super) fn addition(name: &str, tables: &[RelationEntry], selection: &Selection) -> String {
    format!("ALTER PUBLICATION {} ADD TABLE {}", identifier(name), table_list(tables, selection))
}

/// Tables as a publication lists them, with their row filters.
pub(super) fn table_list(tables: &[RelationEntry], selection: &Selection) -> String {
    let member = |table: &RelationEntry| match selection.pushed.get(&table.oid) {
        Some(pushed) => format!("{} WHERE ({})", listed(table), pushed.sql),
        None => listed(table),
    };
    tables.iter().map(member).collect::<Vec<_>>().join(", ")
}

/// `ONLY` leaves out the tables that inherit from a plain one; partitions always belong.
pub(super) fn listed(table: &RelationEntry) -> String {
    let only = if table.kind == RelationKind::Table { "ONLY " } else { "" };
    format!("{only}{}.{}", identifier(&table.namespace), identifier(&table.name))
}

/// Sees that what a publication carries comes whole and under its name.
pub fn check_definition(
    settings: &Settings,
    facts: &PublicationFacts,
    selection: &Selection,
) -> Vec<Fault> {
    let name = &settings.publication_name;
    let mut faults = Vec::new();
    let left_out: Vec<&str> = ["insert", "update", "delete"]
        .into_iter()
        .filter(|operation| !facts.operations.contains(operation))
        .collect();
    if !left_out.is_empty() {
        faults.push(
            Code::PublicationChanged
                .fault(format!("the publication \"{name}\" leaves out {}", left_out.join(", ")))
                .hint(format!(
                    "ALTER PUBLICATION {} SET (publish = 'insert, update, delete, truncate').",
                    identifier(name)
                )),
        );
    }
    let concerned = |relation: &&RelationEntry| {
        relation.kind == RelationKind::Partitioned || relation.partition_of.is_some()
    };
    if facts.via_root != settings.publish_via_partition_root
        && let Some(table) = selection.captured.iter().chain(&selection.published).find(concerned)
    {
        faults.push(wrong_names(name, facts.via_root, &table.qualified_name()));
    }
    faults.extend(facts.members.iter().filter_map(|member| restriction(name, member, selection)));
    faults.extend(pushdown::drift(name, facts, selection));
    faults
}

/// Sees that a publication carries everything that is captured.
pub fn check_coverage(
    settings: &Settings,
    facts: &PublicationFacts,
    selection: &Selection,
) -> Vec<Fault> {
    let name = &settings.publication_name;
    let fault = |table: &RelationEntry| {
        Code::PublicationChanged
            .fault(format!(
                "\"{}\" is captured, and the publication \"{name}\" does not carry it",
                table.qualified_name()
            ))
            .hint(format!("{};", addition(name, std::slice::from_ref(table), selection)))
            .at_table(table.qualified_name())
    };
    let wanted = selection.captured.iter().chain(&selection.signals);
    let is_missing = |table: &&RelationEntry| !facts.names_table(table);
    wanted.filter(is_missing).map(fault).collect()
}

/// The fault of a publication that was altered and says the same again.
pub(super) fn altered(name: &str) -> Fault {
    Code::PublicationChanged
        .fault(format!(
            "the publication \"{name}\" was altered, and is again as it was: what it left out \
             meanwhile is not known"
        ))
        .hint(
            "If it left nothing out (another owner, an option that was set to what it was), restart \
             the task. Else delete the connector's offsets and snapshot anew; where only rows are \
             missing and none were deleted, restart, and POST /connectors/{name}/snapshots.",
        )
}

/// Both checks; what comes under another name is not told as missing as well.
fn check_all(settings: &Settings, facts: &PublicationFacts, selection: &Selection) -> Vec<Fault> {
    let faults = check_definition(settings, facts, selection);
    if faults.is_empty() { check_coverage(settings, facts, selection) } else { faults }
}

fn wrong_names(name: &str, via_root: bool, table: &str) -> Fault {
    let (is, other) = if via_root {
        ("the partitioned table's name", "true")
    } else {
        ("the partitions' own names", "false")
    };
    Code::PublicationChanged
        .fault(format!(
            "the publication \"{name}\" publishes rows of partitions under {is}, and \
             publish.via.partition.root says otherwise"
        ))
        .hint(format!(
            "Set publish.via.partition.root={other}, or ALTER PUBLICATION {} SET \
             (publish_via_partition_root = {}).",
            identifier(name),
            !via_root
        ))
        .at_table(table)
}

/// What hides part of a captured table.
fn restriction(name: &str, member: &Member, selection: &Selection) -> Option<Fault> {
    let is_wanted = selection.pushed.contains_key(&member.oid);
    let (what, hint) = match (&member.row_filter, &member.column_list) {
        (Some(_), _) if !is_wanted => (
            "a row filter",
            "Publish the whole table and leave rows out in the connector instead; or give the \
             connector the same row.filter.<schema.table>, with row.filter.pushdown=publication.",
        ),
        (_, Some(_)) => (
            "a column list",
            "Publish the whole table; leave columns out in the connector instead.",
        ),
        _ => return None,
    };
    let is_concerned =
        selection.captured.iter().chain(&selection.published).any(|table| table.oid == member.oid);
    is_concerned.then(|| {
        let table = format!("{}.{}", member.namespace, member.name);
        Code::PublicationChanged
            .fault(format!(
                "the publication \"{name}\" has {what} for \"{table}\", which hides changes from us"
            ))
            .hint(hint)
            .at_table(table)
    })
}

/// Sees that every relation that a publication carries, or is about to, can be updated and deleted
/// from, and its old rows told apart.
///
/// # Errors
/// The connection breaks.
pub async fn check_identities<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    accountable: &[Accountable],
    generated: bool,
) -> Result<Vec<Fault>, Fault> {
    let version = connection.version();
    let mut oids: Vec<u32> =
        accountable.iter().flat_map(|one| [Some(one.oid), one.root]).flatten().collect();
    oids.sort_unstable();
    oids.dedup();
    let tables = fetch_tables(connection, &oids).await?;
    let by_oid: HashMap<u32, &TableFacts> = tables.iter().map(|table| (table.oid, table)).collect();
    let table = |oid: u32| by_oid.get(&oid).copied();
    let mut faults = Vec::new();
    let mut judged_roots = HashSet::new();
    for one in accountable {
        let Some(leaf) = table(one.oid) else { continue };
        let mut verdict = check_identity(leaf, version, generated);
        if let Some(root) = one.root.and_then(table) {
            if judged_roots.insert(root.oid) {
                faults.extend(check_identity(root, version, generated).err());
            }
            verdict = verdict.and_then(|()| check_leaf(root, leaf));
        }
        faults.extend(verdict.err());
    }
    Ok(faults)
}

/// Creates or extends the publication where the settings allow and the capture needs it, and sees
/// that it then carries everything.
///
/// # Errors
/// Everything that stands in the way; then nothing was changed, except that
/// `publication.autocreate.mode=no_tables` leaves its empty publication for its owner to fill.
pub async fn ensure<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    settings: &Settings,
    selection: &Selection,
    slot_exists: bool,
) -> Result<Ensured, Vec<Fault>> {
    let one = |fault: Fault| vec![fault];
    let name = &settings.publication_name;
    let before = read_publication(connection, name).await.map_err(one)?;
    let change = plan(settings, before.as_ref(), selection, slot_exists).map_err(one)?;
    let Some(change) = change else {
        let facts = before.unwrap_or_default();
        let mut faults = check_all(settings, &facts, selection);
        faults.extend(
            check_identities(connection, &selection.accountable, facts.generated)
                .await
                .map_err(one)?,
        );
        let ensured = Ensured { created: false, added: Vec::new(), facts };
        return if faults.is_empty() { Ok(ensured) } else { Err(faults) };
    };
    connection.query("beginning to publish", "BEGIN READ WRITE").await.map_err(one)?;
    let outcome = make(connection, settings, selection, &change).await;
    let keep = match &outcome {
        Ok((_, faults)) => faults.is_empty() || is_empty_creation(&change),
        Err(_) => false,
    };
    let end = if keep { "COMMIT" } else { "ROLLBACK" };
    let ended = connection.query("ending to publish", end).await;
    let (facts, faults) = outcome.map_err(one)?;
    ended.map_err(one)?;
    if !faults.is_empty() {
        return Err(faults);
    }
    let added = change.adds.iter().flatten().map(RelationEntry::qualified_name).collect();
    Ok(Ensured { created: change.creates, added, facts })
}

fn is_empty_creation(change: &Change) -> bool {
    change.creates && change.adds.as_ref().is_some_and(Vec::is_empty)
}

/// Carries a change out inside a transaction, and judges what came of it. The lock that the
/// statement takes on each table keeps its identity as it is until the end.
async fn make<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    settings: &Settings,
    selection: &Selection,
    change: &Change,
) -> Result<(PublicationFacts, Vec<Fault>), Fault> {
    let name = &settings.publication_name;
    let what = format!("publishing by \"{name}\"");
    connection.query(&what, &change.statement).await.map_err(|fault| match fault.code() {
        Code::ReplicationPermission => {
            fault.hint(format!("Let its owner do it: {};", change.statement))
        }
        _ => fault,
    })?;
    let facts = read_publication(connection, name).await?.unwrap_or_default();
    let mut faults = check_all(settings, &facts, selection);
    let accountable = accountable(connection, settings, selection, change).await?;
    faults.extend(check_identities(connection, &accountable, facts.generated).await?);
    Ok((facts, faults))
}

/// Whom a change makes accountable: a publication of all tables every one of them.
pub(super) async fn accountable<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    settings: &Settings,
    selection: &Selection,
    change: &Change,
) -> Result<Vec<Accountable>, Fault> {
    match change.adds {
        Some(_) => Ok(selection.accountable.clone()),
        None => {
            let relations = list_relations(connection).await?;
            Ok(all_accountable(&relations, settings.publish_via_partition_root))
        }
    }
}

/// Drops a publication that this connector made, so that a failed start leaves nothing behind.
///
/// # Errors
/// The server refuses, or the connection breaks.
pub async fn drop_publication<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    name: &str,
) -> Result<(), Fault> {
    let sql = format!("DROP PUBLICATION IF EXISTS {}", identifier(name));
    connection.query(&format!("dropping the publication \"{name}\""), &sql).await.map(drop)
}

#[cfg(test)]
pub(super) mod tests;

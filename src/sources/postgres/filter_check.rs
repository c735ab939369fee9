//! Row filters, held against the tables as they are now, before anything is created.
//!
//! Asks the server for definitions and for its opinion of each predicate; decides by the rules of
//! `row_filter`. **Invariants:** it leaves nothing behind on the server; a filter that names no
//! table under which rows come is a fault, never "no filter"; every partition is looked at.

use std::collections::{BTreeMap, HashMap};

use super::Settings;
use super::capture::Selection;
use super::catalogue::{RelationEntry, TableFacts, fetch_tables, fetch_types};
use super::connection::{Connection, identifier};
use super::row_filter::{Scope, compile, images_fault, named_columns};
use super::table_version::build;
use super::values::TypeCatalogue;
use crate::change::TableVersion;
use crate::error::{Code, Fault};

/// What came of the row filters.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// Everything that is wrong with them.
    pub(super) faults: Vec<Fault>,
    /// Those that can be evaluated, as SQL, by the numbers of their tables.
    pub(super) predicates: BTreeMap<u32, String>,
}

/// Looks at all row filters. `generated`: the publication publishes stored generated columns.
///
/// # Errors
/// The connection breaks.
pub(super) async fn check(
    control: &mut Connection,
    settings: &Settings,
    selection: &Selection,
    generated: bool,
) -> Result<Checked, Fault> {
    let mut checked = Checked::default();
    let faults = &mut checked.faults;
    let mut named: Vec<(&RelationEntry, &str)> = Vec::new();
    for (table, text) in settings.row_filters.all() {
        let is_named = |entry: &&RelationEntry| entry.qualified_name() == table;
        match selection.captured.iter().find(is_named) {
            Some(entry) => named.push((entry, text)),
            None => faults.push(unknown(table, selection.published.iter().find(is_named))),
        }
    }
    let mut oids: Vec<u32> = named.iter().map(|(entry, _)| entry.oid).collect();
    oids.extend(selection.accountable.iter().map(|one| one.oid));
    oids.sort_unstable();
    oids.dedup();
    if named.is_empty() {
        return Ok(checked);
    }
    let tables = fetch_tables(control, &oids).await?;
    let tables: HashMap<u32, &TableFacts> = tables.iter().map(|table| (table.oid, table)).collect();
    let mut types = TypeCatalogue::new();
    for (entry, text) in named {
        let Some(facts) = tables.get(&entry.oid).copied() else { continue };
        let leaves = selection
            .accountable
            .iter()
            .filter(|one| one.root == Some(entry.oid))
            .filter_map(|one| tables.get(&one.oid).copied());
        let images: Vec<&TableFacts> = std::iter::once(facts).chain(leaves).collect();
        let filter = Filter { text, facts, images, generated };
        filter.check(control, &mut types, &mut checked).await?;
    }
    Ok(checked)
}

/// A statement over a table, made not to wait for whoever alters it.
pub(super) fn unhurried(sql: &str) -> String {
    format!("SET LOCAL lock_timeout = '500ms'; {sql}")
}

/// Whether a statement failed because somebody alters its table.
pub(super) fn is_locked(fault: &Fault) -> bool {
    fault.message().contains("SQLSTATE 55P03")
}

fn unknown(table: &str, partitioned: Option<&RelationEntry>) -> Fault {
    let fault = Code::FilterUnknownTable.fault(match partitioned {
        Some(_) => format!("rows of \"{table}\" come under the names of its partitions"),
        None => format!("no table is captured as \"{table}\""),
    });
    let fault = match partitioned {
        Some(_) => fault
            .hint("Set publish.via.partition.root=true, or give each partition its row.filter."),
        None => fault,
    };
    fault.at_table(table)
}

/// A filter and the table that it is for.
struct Filter<'a> {
    text: &'a str,
    facts: &'a TableFacts,
    /// The table and its partitions.
    images: Vec<&'a TableFacts>,
    generated: bool,
}

impl Filter<'_> {
    async fn check(
        &self,
        control: &mut Connection,
        types: &mut TypeCatalogue,
        Checked { faults, predicates }: &mut Checked,
    ) -> Result<(), Fault> {
        let descriptor = self.facts.descriptor(self.generated);
        let oids: Vec<u32> = descriptor.columns.iter().map(|column| column.type_oid).collect();
        fetch_types(control, types, &oids).await?;
        let rules = super::key_rules::KeyRules::default();
        let version = build(&descriptor, Some(self.facts), types, &|_| None, 1, &rules).version;
        let scope = Scope { version: &version, facts: Some(self.facts), types };
        let predicate = match compile(self.text, &scope) {
            Ok(predicate) => predicate,
            Err(fault) => {
                faults.push(fault);
                // told with it, as far as the text shows what is read
                let named = named_columns(self.text, &version);
                faults.extend(self.images_faults(&named, &version));
                return Ok(());
            }
        };
        faults.extend(self.images_faults(&predicate.columns, &version));
        faults.extend(self.ask(control, &predicate.sql).await?);
        predicates.insert(self.facts.oid, predicate.sql);
        Ok(())
    }

    fn images_faults(&self, columns: &[usize], version: &TableVersion) -> Vec<Fault> {
        let columns = columns.iter().filter_map(|index| version.columns.get(*index));
        let columns: Vec<String> = columns.map(|column| column.name.clone()).collect();
        let images = self.images.iter();
        images.filter_map(|table| images_fault(table, &columns, version)).collect()
    }

    /// What the server thinks of the predicate.
    async fn ask(&self, control: &mut Connection, sql: &str) -> Result<Option<Fault>, Fault> {
        let only = if self.facts.is_partitioned { "" } else { "ONLY " };
        let (namespace, name) = (identifier(&self.facts.namespace), identifier(&self.facts.name));
        let sql = unhurried(&format!("SELECT FROM {only}{namespace}.{name} WHERE {sql} LIMIT 0"));
        match control.query("asking for the row filter's meaning", &sql).await {
            Ok(_) => Ok(None),
            // Whoever only streams need not be able to read.
            Err(fault) if fault.code() == Code::ReplicationPermission => Ok(None),
            // Nor is it waited for whoever alters the table: the stream judges by its own program.
            Err(fault) if is_locked(&fault) => Ok(None),
            Err(fault) if fault.code() == Code::SourceQuery => Ok(Some(
                Code::FilterUnsupported
                    .fault(format!("the server refuses the predicate: {}", fault.message()))
                    .at_table(self.facts.qualified_name()),
            )),
            Err(fault) => Err(fault),
        }
    }
}

//! A table as it is now, to try predicates on.
//!
//! For tests that hold predicates against a server: the same compiler, the same facts as for a
//! stream. **Invariant:** it leaves nothing behind on the server.

use super::{Predicate, Scope, compile};
use crate::change::TableVersion;
use crate::error::{Code, Fault};
use crate::filter::Filter;
use crate::sources::postgres::ConnectionSettings;
use crate::sources::postgres::catalogue::{TableFacts, fetch_tables, fetch_types};
use crate::sources::postgres::connection::{Connection, Purpose};
use crate::sources::postgres::key_rules::KeyRules;
use crate::sources::postgres::table_version::build;
use crate::sources::postgres::values::TypeCatalogue;

/// See the module.
#[derive(Debug)]
pub struct Probe {
    facts: TableFacts,
    types: TypeCatalogue,
    version: TableVersion,
}

impl Probe {
    /// Reads a table's definition.
    ///
    /// # Errors
    /// The server cannot be asked, or there is no such table.
    pub async fn of(settings: &ConnectionSettings, oid: u32) -> Result<Self, Fault> {
        let mut control = Connection::open(settings, Purpose::Control).await?;
        let missing = || Code::TableMissing.fault(format!("no table has the number {oid}"));
        let facts = fetch_tables(&mut control, &[oid]).await?.into_iter().next();
        let facts = facts.ok_or_else(missing)?;
        let descriptor = facts.descriptor(false);
        let oids: Vec<u32> = descriptor.columns.iter().map(|column| column.type_oid).collect();
        let mut types = TypeCatalogue::new();
        fetch_types(&mut control, &mut types, &oids).await?;
        control.close().await;
        let rules = KeyRules::default();
        let version = build(&descriptor, Some(&facts), &types, &|_| None, 1, &rules).version;
        Ok(Self { facts, types, version })
    }

    /// Compiles a predicate; besides the filter, what the server would be asked.
    ///
    /// # Errors
    /// `FILTER-UNSUPPORTED-PREDICATE`.
    pub fn compile(&self, text: &str) -> Result<(Filter, String), Fault> {
        let scope = Scope { version: &self.version, facts: Some(&self.facts), types: &self.types };
        let Predicate { node, columns, sql } = compile(text, &scope)?;
        Ok((Filter::new(node, columns, Vec::new()), sql))
    }
}

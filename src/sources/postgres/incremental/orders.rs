//! Orders: which tables a request means, and what becomes of an order between two transactions.
//!
//! A request is held against the server before it becomes an order, by whoever asks, so that the
//! stream does not wait for it. **Invariant:** an order that is refused leaves everything as it was.

use regex::Regex;

use super::work::{Aim, TableWork};
use super::{Incremental, Publishing};
use crate::error::{Code, Fault};
use crate::sources::postgres::Settings;
use crate::sources::postgres::capture::select;
use crate::sources::postgres::catalogue::{
    RelationEntry, TableFacts, fetch_tables, fetch_types, list_relations,
};
use crate::sources::postgres::connection::{Connection, Purpose, identifier};
use crate::sources::postgres::driver::combine;
use crate::sources::postgres::filter_check::{is_locked, unhurried};
use crate::sources::postgres::row_filter::{Scope, compile};
use crate::sources::postgres::table_version::build;
use crate::sources::postgres::values::TypeCatalogue;
use crate::sources::{Order, SnapshotAction, SnapshotRequest, SnapshotTable};
use crate::stage::Services;

/// The oldest version on which blocks can be read by range, and snapshots told.
pub(in crate::sources::postgres) const OLDEST: u32 = 14;

impl Incremental {
    /// Carries out what waits. No transaction is open.
    pub(super) async fn carry_out_orders<S: Services>(
        &mut self,
        publishing: &mut Publishing<'_, S>,
    ) -> Result<(), Fault> {
        while let Ok(order) = self.inbox.try_recv() {
            self.waiting.push(order);
        }
        for Order { action, done } in std::mem::take(&mut self.waiting) {
            if done.is_closed() {
                continue;
            }
            let answer = self.apply(action);
            if answer.is_ok() {
                self.show_all();
                publishing.store(self.state()?).await?;
            }
            // whoever asked may have gone meanwhile; it is done all the same
            drop(done.send(answer));
        }
        Ok(())
    }

    pub(super) fn apply(&mut self, action: SnapshotAction) -> Result<(), Fault> {
        match action {
            SnapshotAction::Start(tables) => {
                let tables = tables.into_iter().map(|table| TableWork {
                    condition: table.condition,
                    estimate: table.estimate,
                    ..TableWork::new(&table.namespace, &table.name, Aim::Read)
                });
                self.reread(tables.collect())?;
                tracing::info!(tables = self.work.tables.len(), "an incremental snapshot");
            }
            SnapshotAction::Stop(patterns) => {
                let chosen = |name: &str| {
                    patterns.as_ref().is_none_or(|all| all.iter().any(|one| one.is_match(name)))
                };
                self.work.stop(&chosen)?;
                self.pace = None;
                self.lose();
                if self.work.tables.is_empty() {
                    let now = crate::sources::postgres::status::clock_micros();
                    self.tools.metrics.snapshot.end(false, now);
                    self.tools.metrics.incremental.update(|progress| {
                        for one in progress.tables.iter_mut().filter(|one| one.is_open()) {
                            one.state = "stopped";
                            one.seconds_left = None;
                        }
                    });
                }
                tracing::info!(left = self.work.tables.len(), "an incremental snapshot is stopped");
            }
            SnapshotAction::Pause => {
                self.work.set_paused(true)?;
                self.pace = None;
                self.lose();
            }
            SnapshotAction::Resume => self.work.set_paused(false)?,
        }
        self.rest = Some(tokio::time::Instant::now());
        Ok(())
    }
}

/// The tables that a request means, if all of it can be carried out.
///
/// # Errors
/// `TABLE-MISSING`: a pattern names no captured table; `FILTER-UNSUPPORTED-PREDICATE`: a condition
/// cannot be understood; or the server refuses to read a table.
pub async fn plan(
    settings: &Settings,
    request: &SnapshotRequest,
) -> Result<Vec<SnapshotTable>, Fault> {
    let mut control = Connection::open(&settings.connection, Purpose::Control).await?;
    if control.version().major() < OLDEST {
        return Err(Code::ServerVersion.fault(format!(
            "incremental snapshots need version {OLDEST} of the server, this one is {}",
            control.version().major()
        )));
    }
    let relations = list_relations(&mut control).await?;
    let selection = select(&relations, &settings.tables, settings.publish_via_partition_root)
        .or_else(|faults| combine(&faults).map(|()| Default::default()))?;
    let chosen = choose(&selection.captured, &request.collections)?;
    for (pattern, _) in &request.conditions {
        if !chosen.iter().any(|table| pattern.is_match(&table.qualified_name())) {
            return Err(unknown(pattern, "is no table that is to be read"));
        }
    }
    let oids: Vec<u32> = chosen.iter().map(|table| table.oid).collect();
    let facts = fetch_tables(&mut control, &oids).await?;
    let mut tables = Vec::with_capacity(facts.len());
    for facts in &facts {
        let name = facts.qualified_name();
        let of_table = request.conditions.iter().filter(|(pattern, _)| pattern.is_match(&name));
        let mut condition = None;
        for (_, text) in of_table {
            condition = Some(match condition {
                None => text.clone(),
                Some(before) => format!("({before}) AND ({text})"),
            });
        }
        check(&mut control, facts, condition.as_deref()).await?;
        let (namespace, name) = (facts.namespace.clone(), facts.name.clone());
        tables.push(SnapshotTable { namespace, name, condition, estimate: facts.estimated_rows });
    }
    control.close().await;
    Ok(tables)
}

fn choose<'a>(
    captured: &'a [RelationEntry],
    patterns: &[Regex],
) -> Result<Vec<&'a RelationEntry>, Fault> {
    let mut chosen: Vec<&RelationEntry> = Vec::new();
    for pattern in patterns {
        let mut named =
            captured.iter().filter(|table| pattern.is_match(&table.qualified_name())).peekable();
        if named.peek().is_none() {
            return Err(unknown(pattern, "names no captured table"));
        }
        for table in named {
            if !chosen.iter().any(|one| one.oid == table.oid) {
                chosen.push(table);
            }
        }
    }
    Ok(chosen)
}

fn unknown(pattern: &Regex, what: &str) -> Fault {
    let text = pattern.as_str();
    // without the anchors that a list's patterns are given
    let text = text.strip_prefix("^(?:").and_then(|text| text.strip_suffix(")$")).unwrap_or(text);
    Code::TableMissing.fault(format!("\"{text}\" {what}")).hint(
        "Write tables as schema.table, as their rows come; what is captured is in \
         table.include.list.",
    )
}

/// Sees that a table can be read, and a condition be understood.
async fn check(
    control: &mut Connection,
    facts: &TableFacts,
    condition: Option<&str>,
) -> Result<(), Fault> {
    let filter = match condition {
        None => String::new(),
        Some(text) => {
            let descriptor = facts.descriptor(false);
            let oids: Vec<u32> = descriptor.columns.iter().map(|column| column.type_oid).collect();
            let mut types = TypeCatalogue::new();
            fetch_types(control, &mut types, &oids).await?;
            let rules = crate::sources::postgres::key_rules::KeyRules::default();
            let version = build(&descriptor, Some(facts), &types, &|_| None, 1, &rules).version;
            let scope = Scope { version: &version, facts: Some(facts), types: &types };
            format!(" WHERE {}", compile(text, &scope)?.sql)
        }
    };
    let (namespace, name) = (identifier(&facts.namespace), identifier(&facts.name));
    let sql = unhurried(&format!("SELECT FROM {namespace}.{name}{filter} LIMIT 0"));
    match control.query("asking whether a table can be read", &sql).await {
        Ok(_) => Ok(()),
        // its chunks are tried until it is free
        Err(fault) if is_locked(&fault) => Ok(()),
        Err(fault) => Err(fault.at_table(facts.qualified_name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::postgres::catalogue::RelationKind;

    #[test]
    fn each_pattern_must_name_a_captured_table_and_tables_are_read_once() {
        let entry = |oid, name: &str| RelationEntry {
            oid,
            namespace: "public".to_owned(),
            name: name.to_owned(),
            kind: RelationKind::Table,
            is_logged: true,
            partition_of: None,
        };
        let captured = [entry(1, "a"), entry(2, "b"), entry(3, "ab")];
        let names = |patterns: &[&str]| {
            let patterns: Vec<Regex> = patterns
                .iter()
                .map(|text| Regex::new(&format!("^(?:{text})$")).expect("a pattern"))
                .collect();
            choose(&captured, &patterns)
                .map(|all| all.iter().map(|one| one.name.clone()).collect::<Vec<_>>())
                .map_err(|fault| fault.to_string())
        };
        assert_eq!(names(&[r"public\.a.*"]).unwrap(), ["a", "ab"]);
        assert_eq!(
            names(&["public.b", "public.a", "public.a", "public.a.*"]).unwrap(),
            ["b", "a", "ab"]
        );
        let refused = names(&["public.a", "public.c"]).unwrap_err();
        assert!(refused.contains("\"public.c\" names no captured table"), "{refused}");
    }
}

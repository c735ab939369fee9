//! Tables that a command wrote anew: told, refused, or read again beside the stream.
//!
//! The stream of a rewritten table and that of an untouched one are the same bytes, so what was
//! published is mended by the table's rows, or not at all. **Invariants:** a table is read again only
//! where readers end with its rows; what is to be read again is stored with the record that says so.

use super::super::ddl::RewriteAction;
use super::super::incremental::{Aim, TableWork};
use super::super::row_filter::{Scope, compile};
use super::{
    ChangeKind, ControlOrigin, Entry, Lsn, Place, Provenance, RelationDescriptor, Services, Stage,
    TableHistory, Tables,
};
use crate::change::{ChangeClass, ColumnChange, Rewrite, TableChange};
use crate::error::{Code, Fault};
use crate::plan::control_id;
use crate::stage::TableState;

/// What becomes of tables that are read beside the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sources::postgres) enum Upheaval {
    /// Its rows were written anew: it is read from its beginning.
    Rewritten {
        /// Its schema and name.
        table: (String, String),
        /// The id of the record that says so.
        by: String,
        /// What was published of it is void.
        clears: bool,
    },
    /// It has another name.
    Renamed {
        /// Its former schema and name.
        from: (String, String),
        /// Those of now.
        to: (String, String),
    },
}

/// A table that was read again.
#[derive(Clone, Copy, Debug)]
pub(in crate::sources::postgres) struct RereadTable<'r> {
    /// Its schema and name.
    pub(in crate::sources::postgres) table: (&'r str, &'r str),
    /// The id of the record that said that it would be.
    pub(in crate::sources::postgres) by: &'r str,
    /// Where its last rows are.
    pub(in crate::sources::postgres) position: Lsn,
    /// How many rows.
    pub(in crate::sources::postgres) rows: u64,
}

impl Tables {
    /// What notes said of tables that may be read beside the stream, since this was asked last.
    pub(in crate::sources::postgres) fn take_upheavals(&mut self) -> Vec<Upheaval> {
        std::mem::take(&mut self.upheavals)
    }

    /// What becomes of a rewrite that may have changed values. `index`: the version behind it.
    pub(super) fn judge_rewrite<S: Services>(
        &mut self,
        change: &mut TableChange,
        index: usize,
        stage: &Stage<S>,
    ) -> Result<(), Fault> {
        if change.rewrite.as_ref().is_none_or(|rewrite| rewrite.changes_values != Some(true)) {
            return Ok(());
        }
        let entry = self.entry(index)?;
        let position = entry.place.commit.to_string();
        let origin = self.control_origin(&position, entry.place, Provenance::Trigger);
        let id = control_id(&origin, entry.version.native_id);
        let changes = &stage.plan_settings().changes;
        let is_acknowledged = changes.lets_pass(&id);
        let columns = rewritten(change).join(", ");
        // a trial shows the stream as it is
        let action = match self.settings.ddl.rewrites {
            RewriteAction::Resnapshot if self.settings.trial.is_some() => RewriteAction::Warn,
            action => action,
        };
        if action == RewriteAction::Resnapshot {
            let why_void = self.why_void(entry, change);
            let publishes_truncates = stage.publishes(&entry.version, ChangeKind::Truncate)?;
            match why_void {
                Some(why) if !publishes_truncates && !is_acknowledged => {
                    return Err(refused(entry, &changes.call(&id), change, Some(why)));
                }
                Some(_) if !publishes_truncates => {}
                _ => {
                    let clears = why_void.is_some();
                    self.read_again(index, id, clears, change)?;
                    return Ok(());
                }
            }
        }
        if action == RewriteAction::Refuse && !is_acknowledged {
            return Err(refused(entry, &changes.call(&id), change, None));
        }
        tracing::warn!(
            table = %entry.version.table,
            columns,
            reason = reason(change),
            position = %entry.place.commit,
            "the table was rewritten: values of rows that were published may be others now, \
             and no change says so"
        );
        Ok(())
    }

    fn read_again(
        &mut self,
        index: usize,
        by: String,
        clears: bool,
        change: &mut TableChange,
    ) -> Result<(), Fault> {
        let entry = self.entry(index)?;
        tracing::warn!(
            table = %entry.version.table,
            columns = rewritten(change).join(", "),
            reason = reason(change),
            position = %entry.place.commit,
            clears,
            "the table was rewritten: it is read again beside the stream"
        );
        let id = &entry.version.table;
        let table = (id.namespace.clone(), id.name.clone());
        if let Some(rewrite) = &mut change.rewrite {
            rewrite.action = "resnapshot";
        }
        // of a changed filter's rows nothing is left to be looked for
        if clears {
            self.end_refilter(&table.0, &table.1);
        } else {
            // what it was true of is not what it is true of now
            self.forget_former(&TableWork::new(&table.0, &table.1, Aim::Retell));
        }
        self.upheavals.push(Upheaval::Rewritten { table, by, clears });
        Ok(())
    }

    /// Why a reader who takes the table's rows in again would be left with others, too.
    fn why_void(&self, entry: &Entry, change: &TableChange) -> Option<&'static str> {
        let version = &entry.version;
        let names = rewritten(change);
        let is_touched = |name: &str| names.is_empty() || names.contains(&name);
        let mut key = version.key.iter().filter_map(|index| version.columns.get(*index));
        if version.key.is_empty() {
            return Some("its rows have no key by which the earlier ones could be replaced");
        }
        if key.any(|column| is_touched(&column.name)) {
            return Some("rows may have other keys now, and nobody deletes the earlier ones");
        }
        if self.former_of(&entry.descriptor).is_some() {
            return Some("rows of a changed row filter are still being looked for");
        }
        let text = self.settings.row_filters.of(&version.table.namespace, &version.table.name)?;
        let scope = Scope { version, facts: entry.facts.as_ref(), types: &self.types };
        let is_decided_by = |index: &usize| {
            version.columns.get(*index).is_none_or(|column| is_touched(&column.name))
        };
        compile(text, &scope)
            .map_or(true, |predicate| predicate.columns.iter().any(is_decided_by))
            .then_some("rows may have left its row filter, and nobody deletes them")
    }

    /// A note said that a table has another name.
    pub(super) fn note_name(&mut self, before: &RelationDescriptor, index: usize) {
        let Some(entry) = self.entries.get(index) else { return };
        let now = &entry.descriptor;
        if (&before.namespace, &before.name) != (&now.namespace, &now.name) {
            self.upheavals.push(Upheaval::Renamed {
                from: (before.namespace.clone(), before.name.clone()),
                to: (now.namespace.clone(), now.name.clone()),
            });
        }
    }

    /// Tells that a table was read again, and remembers `state` with that.
    ///
    /// # Errors
    /// Registry or broker refuse.
    pub(in crate::sources::postgres) async fn tell_reread<S: Services>(
        &mut self,
        reread: RereadTable<'_>,
        state: TableState,
        stage: &mut Stage<S>,
    ) -> Result<(), Fault> {
        let newest = self.histories.values().filter_map(TableHistory::newest).filter(|known| {
            let RelationDescriptor { namespace, name, .. } = &known.descriptor;
            (namespace.as_str(), name.as_str()) == reread.table
        });
        let Some(known) = newest.max_by_key(|known| known.place) else {
            stage.remember(state);
            return Ok(());
        };
        let version = self.compile(&known.descriptor, known.facts.as_ref(), known.epoch, &|_| None);
        let change = TableChange {
            kind: "reread",
            class: ChangeClass::Compatible,
            columns: vec![ColumnChange {
                column: String::new(),
                kind: "reread",
                from: Some(reread.by.to_owned()),
                to: Some(format!("{} rows", reread.rows)),
                class: ChangeClass::Compatible,
            }],
            rewrite: Some(Rewrite {
                changes_values: Some(false),
                reason: None,
                existing_rows: "unaffected",
                recommended: "none",
                action: "completed",
            }),
        };
        let position = reread.position.to_string();
        let place = Place { commit: reread.position, sequence: reread.rows };
        let origin = ControlOrigin {
            mode: stage.plan_settings().changes.of(&version.table),
            ..self.control_origin(&position, place, Provenance::Catalogue)
        };
        let record = stage.control_record(&origin, (Some(&version), &version), Some(&change));
        stage.announce(&record, state).await
    }
}

/// The columns that were computed anew; none: it is not known which.
fn rewritten(change: &TableChange) -> Vec<&str> {
    let columns = change.columns.iter().filter(|one| one.kind == "rewritten");
    columns.map(|one| one.column.as_str()).collect()
}

fn reason(change: &TableChange) -> &str {
    let reason = change.rewrite.as_ref().and_then(|rewrite| rewrite.reason.as_deref());
    reason.unwrap_or("unknown")
}

/// `why_void`: why it cannot be read again.
fn refused(entry: &Entry, call: &str, change: &TableChange, why_void: Option<&str>) -> Fault {
    let table = entry.version.table.to_string();
    let columns = rewritten(change).join(", ");
    let named = if columns.is_empty() { "not known" } else { &columns };
    let mut message =
        format!("\"{table}\" was rewritten (reason: {}; columns: {named})", reason(change));
    let mut hint = format!(
        "Bring what was published up to date (docs/schema-changes.md has the drained recipe), then \
         let this one pass: {call}."
    );
    if let Some(why) = why_void {
        message = format!(
            "{message}, and reading it again mends nothing: {why}, and truncates are not published"
        );
        hint = format!(
            "Publish truncates (skipped.operations=none), so that readers empty the \
                        table before its rows come again. Or: {hint}"
        );
    }
    let place = entry.place;
    let fault = Code::SchemaRewrite
        .fault(message)
        .at_table(table)
        .at_position(format!("{}#{}", place.commit, place.sequence))
        .hint(hint);
    if columns.is_empty() { fault } else { fault.at_column(columns) }
}

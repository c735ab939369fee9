//! What changes become by their tables' row filters, and filters that changed since rows were
//! published.
//!
//! Works on what is remembered; asks nobody. **Invariants:** a filter is applied only where it is
//! known what rows the topics hold by the former one; of an image that is out nothing is published.

use std::collections::HashMap;

use super::super::Settings;
use super::super::decode::RowChange;
use super::super::incremental::{Aim, STATE_KEY, TableWork, Work};
use super::super::row_filter::{Pushdown, stopped};
use super::super::state::TableHistory;
use super::{RelationDescriptor, Tables};
use crate::change::{Cell, ChangeKind, RowImage};
use crate::error::{Code, Fault};
use crate::filter::Verdict;
use crate::stage::TableState;

impl Tables {
    /// What a change becomes by its table's row filter; `None`: nothing. `scratch` is for the key of
    /// a row that moved out and kept it, so that no row before came: by a filter that changed, such
    /// rows move too.
    ///
    /// # Errors
    /// A value that decides was not sent, or the filter does not fit the version.
    pub(in crate::sources::postgres) fn filter<'c>(
        &self,
        change: RowChange<'c>,
        scratch: &'c mut Vec<Cell>,
    ) -> Result<Option<RowChange<'c>>, Fault> {
        let entry = self.entry(change.index)?;
        let filter = match &entry.filter {
            None => return Ok(Some(change)),
            Some(Ok(filter)) => filter,
            Some(Err(fault)) => return Err(fault.clone()),
        };
        let verdict = filter.bound.judge(change.kind, &change.row).map_err(|stop| {
            filter.metrics.count_stopped();
            stopped(stop, &entry.version)
        })?;
        if self.settings.row_filters.pushdown == Pushdown::Publication
            && verdict != Verdict::Publish
        {
            // never a delete: the server has seen the whole row, so one of both is wrong
            filter.metrics.count_stopped();
            return Err(Code::FilterPushdownDrift
                .fault(format!("the publication let a change through that is '{verdict}' here"))
                .at_table(entry.version.table.to_string()));
        }
        filter.metrics.count_verdict(verdict);
        let RowImage { before, after, .. } = change.row;
        Ok(match verdict {
            Verdict::Publish => Some(change),
            Verdict::LeaveOut => None,
            Verdict::MovedIn => Some(RowChange {
                kind: ChangeKind::MovedIn,
                row: RowImage { before: None, after, ..change.row },
                ..change
            }),
            Verdict::MovedOut => {
                let before = match (before, after, self.identity(change.index)) {
                    (None, Some(after), Some(identity)) => {
                        alone(after, identity, scratch);
                        Some(scratch.as_slice())
                    }
                    _ => before,
                };
                Some(RowChange {
                    kind: ChangeKind::MovedOut,
                    row: RowImage { before, after: None, ..change.row },
                    ..change
                })
            }
        })
    }

    /// Sees that a row which the server chose by the predicate is on that side of it here: in, or
    /// out if it moved out.
    ///
    /// # Errors
    /// `FILTER-DISAGREEMENT`.
    pub(in crate::sources::postgres) fn confirm(
        &self,
        change: &RowChange<'_>,
    ) -> Result<(), Fault> {
        let entry = self.entry(change.index)?;
        let Some(Ok(filter)) = &entry.filter else { return Ok(()) };
        let (expected, counted) = match change.kind {
            ChangeKind::MovedIn => (Verdict::Publish, Verdict::MovedIn),
            ChangeKind::MovedOut => (Verdict::LeaveOut, Verdict::MovedOut),
            _ => (Verdict::Publish, Verdict::Publish),
        };
        let read = RowImage { after: change.row.after.or(change.row.before), ..change.row };
        let judged = filter.bound.judge(ChangeKind::Read, &read);
        let verdict = judged.map_err(|stop| {
            filter.metrics.count_stopped();
            stopped(stop, &entry.version)
        })?;
        if verdict == expected {
            filter.metrics.count_verdict(counted);
            return Ok(());
        }
        filter.metrics.count_stopped();
        let here = if expected == Verdict::Publish { "not true" } else { "true" };
        Err(Code::FilterDisagreement
            .fault(format!(
                "the server chose a row by the filter's predicate, and it is {here} here"
            ))
            .at_table(entry.version.table.to_string())
            .at_position(format!("snapshot row {}", change.sequence)))
    }
}

/// Of a row those columns alone.
fn alone(row: &[Cell], columns: &[usize], scratch: &mut Vec<Cell>) {
    scratch.clear();
    scratch.resize(row.len(), Cell::Unavailable);
    for column in columns {
        if let (Some(to), Some(from)) = (scratch.get_mut(*column), row.get(*column)) {
            *to = *from;
        }
    }
}

/// A table whose row filter is another one than that by which it was published so far.
pub(super) struct ChangedFilter<'a> {
    pub(super) table: String,
    pub(super) history: &'a TableHistory,
    /// The configured one.
    pub(super) now: Option<&'a str>,
}

impl ChangedFilter<'_> {
    /// The history under the configured filter.
    pub(super) fn adopted(&self) -> TableHistory {
        let mut history = self.history.clone();
        history.filter = self.now.map(str::to_owned);
        history
    }

    /// The look for rows on which the two differ.
    fn refilter(&self) -> Option<TableWork> {
        let RelationDescriptor { namespace, name, .. } = &self.history.newest()?.descriptor;
        Some(TableWork::new(namespace, name, Aim::Refilter(self.history.filter.clone())))
    }
}

/// The tables of which that is so, by name.
pub(super) fn changed_filters<'a>(
    settings: &'a Settings,
    histories: impl Iterator<Item = &'a TableHistory>,
) -> Vec<ChangedFilter<'a>> {
    let changed = |history: &'a TableHistory| {
        let RelationDescriptor { namespace, name, .. } = &history.newest()?.descriptor;
        if !settings.tables.captures(namespace, name) {
            return None;
        }
        let now = settings.row_filters.of(namespace, name);
        let table = format!("{namespace}.{name}");
        (now != history.filter.as_deref()).then_some(ChangedFilter { table, history, now })
    };
    let mut found: Vec<_> = histories.filter_map(changed).collect();
    found.sort_by(|one, other| one.table.cmp(&other.table));
    found
}

/// Remakes the states of those tables whose row filter is another one than the configured, as if
/// they had been published by that. With `resnapshot`, rows on which the two differ are to be looked
/// for beside the stream.
///
/// # Errors
/// A state cannot be understood; `SNAPSHOT-CONFLICT`: one of the tables is being read;
/// `CONFIG-UNSUPPORTED`: the server leaves rows out.
pub fn adopt_filters(
    settings: &Settings,
    states: &[TableState],
    resnapshot: bool,
) -> Result<Vec<TableState>, Fault> {
    let histories = states
        .iter()
        .filter(|state| state.key != STATE_KEY)
        .filter_map(|state| state.value.as_deref())
        .map(TableHistory::decode)
        .collect::<Result<Vec<_>, _>>()?;
    let changed = changed_filters(settings, histories.iter());
    if let Some((one, pushed)) = changed.iter().find_map(|one| Some((one, one.history.pushed?))) {
        let what = if pushed.lasts() {
            "leaves rows out by the filter of before".to_owned()
        } else {
            format!("left rows out by the filter of before, up to {}", pushed.until)
        };
        return Err(Code::FilterChanged
            .fault(format!(
                "the publication {what}: what of them the new filter wants is not known"
            ))
            .hint(
                "Restore the filter, set row.filter.pushdown=none, take the filter out of the \
                 publication and restart; when the stream has read on to where the publication was \
                 then, restart again and apply the new filter. Or delete the connector's offsets \
                 and begin anew, with new topics.",
            )
            .at_table(one.table.clone()));
    }
    let mut work = Work::find(states)?;
    let pending = former_filters(&work);
    if let Some(one) = changed.iter().find(|one| pending.contains_key(&one.table)) {
        return Err(Code::SnapshotConflict
            .fault(
                "rows are still being looked for that an earlier change of its filter moved; \
                 restore the filter until they are found",
            )
            .at_table(one.table.clone()));
    }
    let mut remade =
        changed.iter().map(|one| one.adopted().encode()).collect::<Result<Vec<_>, _>>()?;
    if resnapshot && !changed.is_empty() {
        if settings.row_filters.pushdown == Pushdown::Publication {
            return Err(Code::ConfigUnsupported.fault(
                "with row.filter.pushdown=publication the server does not send what becomes of \
                 rows that were published by the former filter",
            ));
        }
        let tables = changed.iter().filter_map(ChangedFilter::refilter).collect();
        work.add(tables, "filter")?;
        remade.push(work.state()?);
    }
    Ok(remade)
}

/// The row filters before the configured ones, by table.
pub(super) fn former_filters(work: &Work) -> HashMap<String, Option<String>> {
    let former = work.tables().iter().filter_map(|table| match &table.aim {
        Aim::Refilter(before) => Some((table.qualified_name(), before.clone())),
        Aim::Read | Aim::Rewritten { .. } => None,
    });
    former.collect()
}

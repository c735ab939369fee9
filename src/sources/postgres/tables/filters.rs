//! Row filters that changed since rows were published, and how they are applied.
//!
//! Works on what is remembered; asks nobody. **Invariant:** a filter is applied only where it is
//! known what rows the topics hold by the former one.

use std::collections::HashMap;

use super::super::Settings;
use super::super::incremental::{Aim, STATE_KEY, TableWork, Work};
use super::super::row_filter::Pushdown;
use super::super::state::TableHistory;
use super::RelationDescriptor;
use crate::error::{Code, Fault};
use crate::stage::TableState;

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
        Aim::Read => None,
    });
    former.collect()
}

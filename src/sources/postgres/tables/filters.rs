//! What changes become by their tables' row filters, and filters that changed since rows were
//! published.
//!
//! Works on what is remembered; asks nobody. **Invariants:** a filter is applied only where it is
//! known what rows the topics hold by the former one; of an image that is out nothing is published.

use super::super::Settings;
use super::super::decode::RowChange;
use super::super::incremental::{Aim, FormerFilter, STATE_KEY, TableWork, Work};
use super::super::offset::{Offset, Phase};
use super::super::row_filter::{Pushdown, stopped};
use super::super::settings::SnapshotMode;
use super::super::state::{KnownVersion, TableHistory};
use super::super::table_version::build;
use super::super::values::TypeCatalogue;
use super::super::wire::Lsn;
use super::meaning::shortened;
use super::remedies::{Past, of_changed, of_pushed, unfiltered};
use super::{RelationDescriptor, Tables};
use crate::change::{Cell, ChangeKind, RowImage, TableVersion};
use crate::error::{Code, Fault};
use crate::filter::Verdict;
use crate::stage::{OffsetRecord, TableState};

impl Tables {
    /// What a change becomes by its table's row filter: up to two changes, the first of them of the
    /// row before. `scratch` is for a key alone: of a row that moved out and kept it, so that no row
    /// before came (by a filter that changed, such rows move too); and of a row that is out and of
    /// which nobody knows whether it was published.
    ///
    /// # Errors
    /// A value that decides was not sent, or the filter does not fit the version.
    pub(in crate::sources::postgres) fn filter<'c>(
        &self,
        change: RowChange<'c>,
        scratch: &'c mut Vec<Cell>,
    ) -> Result<[Option<RowChange<'c>>; 2], Fault> {
        let entry = self.entry(change.index)?;
        let filter = match &entry.filter {
            None => return Ok([Some(change), None]),
            Some(Ok(filter)) => filter,
            Some(Err(fault)) => return Err(fault.clone()),
        };
        let verdict = filter.bound.judge(change.kind, &change.row).map_err(|stop| {
            filter.metrics.count_stopped();
            stopped(stop, &entry.version, self.settings.row_filters.pushdown)
        })?;
        if self.settings.row_filters.pushdown == Pushdown::Publication
            && verdict != Verdict::Publish
        {
            // never a delete: the server has seen the whole row, so one of both is wrong
            filter.metrics.count_stopped();
            return Err(Code::FilterPushdownDrift
                .fault(format!("the publication let a change through that is '{verdict}' here"))
                .hint(letting_pass(&self.settings))
                .at_table(entry.version.table.to_string()));
        }
        filter.metrics.count_verdict(verdict);
        let RowImage { before, after, .. } = change.row;
        let of_before = |kind, before| RowChange {
            kind,
            row: RowImage { before, after: None, ..change.row },
            ..change
        };
        let moved_in = RowChange {
            kind: ChangeKind::MovedIn,
            row: RowImage { before: None, after, ..change.row },
            ..change
        };
        Ok(match verdict {
            Verdict::Publish => [Some(change), None],
            Verdict::LeaveOut => [None, None],
            Verdict::MovedIn => [Some(moved_in), None],
            // the create takes the place of what was there under its key
            Verdict::Replaced if change.kind != ChangeKind::KeyChange => [Some(moved_in), None],
            Verdict::Replaced | Verdict::FoundOut => {
                alone(before.or(after).unwrap_or_default(), &entry.version.key, scratch);
                let found_out = of_before(ChangeKind::FoundOut, Some(scratch.as_slice()));
                [Some(found_out), (verdict == Verdict::Replaced).then_some(moved_in)]
            }
            Verdict::MovedOut => {
                let before = match (before, after, self.identity(change.index)) {
                    (None, Some(after), Some(identity)) => {
                        alone(after, identity, scratch);
                        Some(scratch.as_slice())
                    }
                    _ => before,
                };
                [Some(of_before(ChangeKind::MovedOut, before)), None]
            }
        })
    }

    /// A change with nothing but the key of its row before.
    ///
    /// # Errors
    /// Only if the program is wrong.
    pub(in crate::sources::postgres) fn by_key<'c>(
        &self,
        change: RowChange<'c>,
        scratch: &'c mut Vec<Cell>,
    ) -> Result<RowChange<'c>, Fault> {
        let key = &self.entry(change.index)?.version.key;
        alone(change.row.before.unwrap_or_default(), key, scratch);
        Ok(RowChange { row: RowImage { before: Some(scratch), ..change.row }, ..change })
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
        let filter = match &entry.filter {
            None => return Ok(()),
            Some(Ok(filter)) => filter,
            Some(Err(fault)) => return Err(fault.clone()),
        };
        let (expected, counted) = match change.kind {
            ChangeKind::MovedIn => (Verdict::Publish, Verdict::MovedIn),
            ChangeKind::FoundOut => (Verdict::LeaveOut, Verdict::FoundOut),
            _ => (Verdict::Publish, Verdict::Publish),
        };
        let read = RowImage { after: change.row.after.or(change.row.before), ..change.row };
        let judged = filter.bound.judge(ChangeKind::Read, &read);
        let verdict = judged.map_err(|stop| {
            filter.metrics.count_stopped();
            stopped(stop, &entry.version, self.settings.row_filters.pushdown)
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

/// What to do where the publication let a row through: it is in the log, whatever the publication
/// says by now.
fn letting_pass(settings: &Settings) -> String {
    format!(
        "In this order: {}; set row.filter.pushdown=none, without changing the filters, and restart \
         the task: the worker leaves out what the server did not. That loses nothing, unless the \
         publication left out for a while what it should not have: then delete the connector's \
         offsets and begin anew. How to go back to row.filter.pushdown=publication: \
         docs/filters.md, \"From one way to the other\".",
        unfiltered(settings)
    )
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
    /// The table's name of now, if it is another one than in the stream so far.
    pub(super) renamed: Option<String>,
    /// The table is captured.
    is_captured: bool,
}

impl ChangedFilter<'_> {
    /// The history under the configured filter; `resnapshot`: the topics come to hold its rows.
    pub(super) fn adopted(&self, resnapshot: bool) -> TableHistory {
        let mut history = self.history.clone();
        let is_other = self.now != history.filter.as_deref();
        // with the same text its columns may have meant something else
        history.is_mixed = !resnapshot;
        history.filter = self.now.map(str::to_owned);
        history.applied = None;
        if is_other {
            // what the server left out by the filter of before is read
            history.pushed = None;
        }
        history
    }

    /// The look for rows on which the two differ.
    fn refilter(&self) -> Option<TableWork> {
        if !self.is_captured {
            return None;
        }
        let RelationDescriptor { oid, namespace, name, .. } = &self.history.newest()?.descriptor;
        let aim = match self.is_retold() {
            true => Aim::Retell,
            false => Aim::Refilter(
                self.history
                    .filter
                    .clone()
                    .map(|text| FormerFilter { text, applied: self.history.applied.clone() }),
            ),
        };
        Some(TableWork::new(namespace, name, aim).of_number(oid.0))
    }

    /// By what its columns meant before, or by filters before that, it cannot be asked what was
    /// published.
    fn is_retold(&self) -> bool {
        self.is_captured && (self.history.is_mixed || self.now == self.history.filter.as_deref())
    }

    /// Whether a row's records can be told by its key.
    fn has_key(&self, settings: &Settings) -> bool {
        self.version(settings).is_none_or(|version| !version.key.is_empty())
    }

    /// The table as the stream described it last.
    fn version(&self, settings: &Settings) -> Option<TableVersion> {
        let KnownVersion { descriptor, facts, types, epoch, .. } = self.history.newest()?;
        let mut known = TypeCatalogue::new();
        known.recall(types);
        let rules = &settings.key_rules;
        Some(build(descriptor, facts.as_ref(), &known, &|_| None, *epoch, rules).version)
    }
}

/// The names of tables as they are now, by their numbers, where they are known.
type NamesNow<'n> = dyn Fn(u32) -> Option<(String, String)> + 'n;

/// The tables of which that is so, by name.
pub(super) fn changed_filters<'a>(
    settings: &'a Settings,
    histories: impl Iterator<Item = &'a TableHistory>,
    names: &NamesNow<'_>,
) -> Vec<ChangedFilter<'a>> {
    let changed = |history: &'a TableHistory| {
        let RelationDescriptor { oid, namespace, name, .. } = &history.newest()?.descriptor;
        let renamed = names(oid.0).filter(|(schema, other)| (schema, other) != (namespace, name));
        let (schema, current) = renamed.as_ref().map_or((namespace, name), |(one, two)| (one, two));
        let now = settings.row_filters.of(schema, current);
        let before = history.filter.as_deref();
        // what was whole under another name begins anew under its own
        let is_changed = now != before && (renamed.is_none() || before.is_some());
        let is_captured = settings.tables.captures(schema, current);
        is_changed.then(|| ChangedFilter {
            table: format!("{namespace}.{name}"),
            history,
            now,
            renamed: renamed.as_ref().map(|(schema, name)| format!("{schema}.{name}")),
            is_captured,
        })
    };
    let mut found: Vec<_> = histories.filter_map(changed).filter(|one| one.is_captured).collect();
    found.sort_by(|one, other| one.table.cmp(&other.table));
    found
}

/// What `PUT /connectors/{name}/row-filters` applies: filters that changed; if there are none, all
/// of them, whose columns may have. Without a catalogue: a key that names no table so far and says
/// what that of a table said which has none any more is taken for the table's new name.
fn to_be_applied<'a>(
    settings: &'a Settings,
    histories: &'a [TableHistory],
) -> Vec<ChangedFilter<'a>> {
    let is_known = |table: &str| {
        let newest = histories.iter().filter_map(TableHistory::newest);
        newest.map(|one| one.descriptor.qualified_name()).any(|name| name == table)
    };
    let is_renamed = |filter: &str| {
        settings.row_filters.all().any(|(table, text)| text == filter && !is_known(table))
    };
    let all = |history: &'a TableHistory| {
        let RelationDescriptor { namespace, name, .. } = &history.newest()?.descriptor;
        Some(ChangedFilter {
            table: format!("{namespace}.{name}"),
            history,
            now: settings.row_filters.of(namespace, name),
            renamed: None,
            is_captured: settings.tables.captures(namespace, name),
        })
    };
    let all = histories.iter().filter_map(all).filter(|one| {
        let before = one.history.filter.as_deref();
        let is_gone = one.now.is_none() && before.is_some();
        (one.is_captured || is_gone) && !(is_gone && before.is_some_and(is_renamed))
    });
    let (mut same, mut changed): (Vec<_>, Vec<_>) =
        all.partition(|one| one.now == one.history.filter.as_deref());
    if changed.is_empty() {
        same.retain(|one| one.now.is_some());
        changed = same;
    }
    changed.sort_by(|one, other| one.table.cmp(&other.table));
    changed
}

fn remembered(states: &[TableState]) -> Result<Vec<TableHistory>, Fault> {
    states
        .iter()
        .filter(|state| state.key != STATE_KEY)
        .filter_map(|state| state.value.as_deref())
        .map(TableHistory::decode)
        .collect()
}

/// What the task will stop with, for a filter is another one now; `None`: none is. Without a
/// catalogue: tables that have another name by now are left to the task.
///
/// # Errors
/// What is stored cannot be understood.
pub fn foresee_filters(
    settings: &Settings,
    (offset, states): (&OffsetRecord, &[TableState]),
) -> Result<Option<Fault>, Fault> {
    let read = match Offset::decode(&offset.0)?.phase {
        Phase::Streaming { end } => Some(end),
        // rows of a snapshot that did not come to its end may be there
        Phase::Creating | Phase::Snapshot { .. } | Phase::SnapshotDone { .. } => None,
    };
    let histories = remembered(states)?;
    let changed: Vec<_> = to_be_applied(settings, &histories)
        .into_iter()
        .filter(|one| one.is_captured && one.now != one.history.filter.as_deref())
        .collect();
    Ok(told(settings, &changed, read))
}

/// So many tables are named.
const MOST_SHOWN: usize = 5;

/// The fault of filters that are other ones; `None`: none is.
pub(super) fn told(
    settings: &Settings,
    changed: &[ChangedFilter<'_>],
    read: Option<Lsn>,
) -> Option<Fault> {
    let first = changed.first()?;
    let can_resnapshot = changed.iter().all(|one| one.has_key(settings));
    let of_all = changed.iter().map(|one| Past { history: one.history, read, can_resnapshot });
    // the one that has the longest way: all of them are applied together
    let past = of_all.max_by_key(|past| past.pushed().map(|pushed| pushed.until))?;
    let show = |filter: Option<&str>| filter.map_or("no filter".to_owned(), shortened);
    let texts: Vec<String> = changed
        .iter()
        .take(MOST_SHOWN)
        .map(|one| {
            let before = show(one.history.filter.as_deref());
            format!("{}: {before} became {}", one.table, show(one.now))
        })
        .collect();
    let more = match changed.len().saturating_sub(MOST_SHOWN) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let what = format!("{}{more}", texts.join("; "));
    let hint = of_changed(settings, past);
    Some(Code::FilterChanged.fault(what).hint(hint).at_table(first.table.clone()))
}

/// Remakes the states of those tables whose row filter is another one than the configured, as if
/// they had been published by that; if there are none, of all that have a filter, as if their columns
/// had always been what they are. With `resnapshot`, rows on which the two differ are to be looked
/// for beside the stream. Answers how many tables that are, too. Without it, whatever is still looked for of these tables (if no filter is
/// another one: of any table) is given up.
///
/// # Errors
/// A state cannot be understood; `CONFIG-UNSUPPORTED`: the server leaves rows out, or there is no
/// stream beside which tables could be read; or what `retellable` says of a table whose rows would be
/// told anew.
pub fn adopt_filters(
    settings: &Settings,
    (offset, states): (&OffsetRecord, &[TableState]),
    resnapshot: bool,
    retellable: &dyn Fn(TableVersion) -> Result<(), Fault>,
) -> Result<(Vec<TableState>, usize), Fault> {
    let histories = remembered(states)?;
    let changed = to_be_applied(settings, &histories);
    let is_other = |one: &&ChangedFilter<'_>| one.now != one.history.filter.as_deref();
    let read = match Offset::decode(&offset.0)?.phase {
        Phase::Streaming { end } => Some(end),
        _ => None,
    };
    for one in changed.iter().filter(is_other) {
        refuse_pushed(settings, one, read)?;
    }
    let mut work = Work::find(states)?;
    let before = work.clone();
    for newest in changed.iter().filter_map(|one| one.history.newest()) {
        work.forget_read(newest.descriptor.oid.0);
    }
    let mut remade = changed
        .iter()
        .map(|one| one.adopted(resnapshot).encode())
        .collect::<Result<Vec<_>, _>>()?;
    if resnapshot {
        if !changed.is_empty() {
            refuse_unread(settings)?;
        }
        for one in changed.iter().filter(|one| one.is_captured) {
            if let Some(version) = one.version(settings) {
                retellable(version)?;
            }
        }
        work.refilter(changed.iter().filter_map(ChangedFilter::refilter).collect(), "filter");
    } else {
        let is_any_other = changed.iter().any(|one| is_other(&one));
        remade.extend(give_up(&mut work, (&changed, is_any_other), &histories)?);
    }
    let tables = remade.len();
    if work != before {
        remade.push(work.state()?);
    }
    Ok((remade, tables))
}

/// Refuses to look for rows where nobody would find them.
fn refuse_unread(settings: &Settings) -> Result<(), Fault> {
    if settings.row_filters.pushdown == Pushdown::Publication {
        return Err(Code::ConfigUnsupported
            .fault(
                "with row.filter.pushdown=publication the server does not send what becomes of \
                 rows that were published by the former filter",
            )
            .hint(
                "Set row.filter.pushdown=none on a publication without filters for that; or apply \
                 it with {\"mode\": \"from_now\"}.",
            ));
    }
    if settings.snapshot_mode == SnapshotMode::InitialOnly {
        return Err(Code::ConfigUnsupported
            .fault(
                "with snapshot.mode=initial_only there is no stream beside which rows could be \
                 looked for that the filter moves",
            )
            .hint("Restore the filter; or delete the connector's offsets and begin anew, with new topics."));
    }
    Ok(())
}

/// Rows of these tables are not looked for any more; of all tables, if no filter is another one.
/// Answers the states of further tables that this concerns.
fn give_up(
    work: &mut Work,
    (changed, is_any_other): (&[ChangedFilter<'_>], bool),
    histories: &[TableHistory],
) -> Result<Vec<TableState>, Fault> {
    let is_applied = |table: &str| changed.iter().any(|one| one.table == table);
    let pending = work.tables().iter().filter(|one| one.is_of_changed_filter());
    let pending: Vec<(Option<u32>, String)> =
        pending.map(|one| (one.oid, one.qualified_name())).collect();
    let mut remade = Vec::new();
    for (oid, table) in pending {
        if is_any_other && !is_applied(&table) {
            continue;
        }
        work.give_up_refilter(&table);
        let is_it = |one: &&TableHistory| {
            one.newest().is_some_and(|newest| Some(newest.descriptor.oid.0) == oid)
        };
        if let Some(history) = histories.iter().find(is_it).filter(|_| !is_applied(&table)) {
            let mut history = history.clone();
            history.is_mixed = true;
            remade.push(history.encode()?);
        }
    }
    Ok(remade)
}

/// Refuses another filter while it is not read what the publication left out by the one of before.
fn refuse_pushed(
    settings: &Settings,
    one: &ChangedFilter<'_>,
    read: Option<Lsn>,
) -> Result<(), Fault> {
    let past = Past { history: one.history, read, can_resnapshot: one.has_key(settings) };
    let Some(pushed) = past.pushed() else { return Ok(()) };
    let what = if pushed.lasts() {
        "leaves rows out by the filter of before".to_owned()
    } else {
        let read = read.map_or_else(|| "nothing".to_owned(), |read| read.to_string());
        format!(
            "left rows out by the filter of before up to {}; read is up to {read}",
            pushed.until
        )
    };
    Err(Code::FilterChanged
        .fault(format!(
            "the publication {what}: what of them the new filter wants is not known yet"
        ))
        .hint(of_pushed(settings, past, pushed))
        .at_table(one.table.clone()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::super::publication::tests::settings as base;
    use super::super::super::relations::RelationDescriptor;
    use super::super::super::settings::PublicationAutocreate;
    use super::super::super::state::{KnownVersion, Place, PushedDown};
    use super::super::super::wire::{RelationId, ReplicaIdentity};
    use super::*;

    /// A table that was published by `a = 1`, up to where a publication left rows out.
    fn state(pushed: Option<PushedDown>) -> TableState {
        let mut history = TableHistory::default();
        (history.filter, history.pushed) = (Some("a = 1".to_owned()), pushed);
        history.push(KnownVersion {
            epoch: 1,
            place: Place { commit: Lsn(10), sequence: 0 },
            descriptor: RelationDescriptor {
                oid: RelationId(7),
                namespace: "public".to_owned(),
                name: "t".to_owned(),
                replica_identity: ReplicaIdentity::Full,
                columns: Vec::new(),
            },
            facts: None,
            types: Vec::new(),
        });
        history.encode().expect("a state")
    }

    fn read_up_to(end: u64) -> OffsetRecord {
        let offset = Offset {
            system_id: 1,
            timeline: 1,
            slot: "s".to_owned(),
            nonce: 1,
            phase: Phase::Streaming { end: Lsn(end) },
            inside: None,
            settings_fingerprint: 0,
            publication_fingerprint: 0,
            publication_stamp: 0,
        };
        OffsetRecord(Arc::from(offset.encode()))
    }

    fn adopt(
        (filter, pushdown): (&str, Pushdown),
        states: &[TableState],
        resnapshot: bool,
    ) -> Result<Vec<TableState>, Fault> {
        let mut settings = base(PublicationAutocreate::Filtered, false);
        settings.row_filters.add("public.t", filter).expect("a filter");
        settings.row_filters.pushdown = pushdown;
        let adopted = adopt_filters(&settings, (&read_up_to(100), states), resnapshot, &|_| Ok(()));
        adopted.map(|(states, tables)| {
            assert_eq!(tables, 1);
            states
        })
    }

    #[track_caller]
    fn check(pushed: Option<PushedDown>, expect: Result<usize, &str>) {
        for resnapshot in [false, true] {
            let adopted = adopt(("a = 2", Pushdown::None), &[state(pushed)], resnapshot);
            match (&adopted, expect) {
                (Ok(states), Ok(count)) => {
                    assert_eq!(states.len(), count + usize::from(resnapshot));
                    let bytes = states.first().and_then(|one| one.value.clone()).expect("bytes");
                    let history = TableHistory::decode(&bytes).expect("a state");
                    assert_eq!((history.pushed, history.filter.as_deref()), (None, Some("a = 2")));
                }
                (Err(fault), Err(words)) => {
                    assert_eq!(fault.code(), Code::FilterChanged);
                    assert!(fault.to_string().contains(words), "{fault}");
                }
                _ => panic!("{adopted:?} {expect:?}"),
            }
        }
    }

    #[test]
    fn another_filter_waits_until_what_the_publication_left_out_is_read() {
        let until = |lsn: u64| Some(PushedDown { until: Lsn(lsn), entry: 3 });
        check(None, Ok(1));
        check(until(99), Ok(1));
        check(until(100), Ok(1));
        check(until(101), Err("has reached 0/65"));
        check(until(101), Err("read is up to 0/64"));
        check(until(u64::MAX), Err("take the row filters out of the publication"));
    }

    fn work_of(states: &[TableState]) -> Work {
        Work::find(states).expect("work")
    }

    fn with(states: &[TableState], remade: &[TableState]) -> Vec<TableState> {
        let kept = states.iter().filter(|old| remade.iter().all(|new| new.key != old.key));
        kept.cloned().chain(remade.iter().cloned()).collect()
    }

    fn is_mixed(states: &[TableState]) -> bool {
        remembered(states).expect("states").iter().all(|history| history.is_mixed)
    }

    #[test]
    fn a_filter_that_changes_again_tells_all_rows_or_gives_the_look_up() {
        let states = vec![state(None)];
        let first = adopt(("a = 2", Pushdown::None), &states, true).expect("adopted");
        let first = with(&states, &first);
        let work = work_of(&first);
        let [table] = work.tables() else { panic!("{work:?}") };
        let former = FormerFilter { text: "a = 1".to_owned(), applied: None };
        assert_eq!((&table.aim, table.oid), (&Aim::Refilter(Some(former)), Some(7)));
        let second = adopt(("a = 3", Pushdown::None), &first, true).expect("adopted");
        let second = with(&first, &second);
        let aims: Vec<_> = work_of(&second).tables().iter().map(|one| one.aim.clone()).collect();
        assert_eq!(aims, [Aim::Retell], "what was published of it nobody knows");
        assert!(!is_mixed(&second));
        for (text, told) in [("a = 3", "the same"), ("a = 4", "another")] {
            let given_up = adopt((text, Pushdown::None), &second, false).expect("adopted");
            let given_up = with(&second, &given_up);
            assert!(work_of(&given_up).tables().is_empty(), "{told}");
            assert!(is_mixed(&given_up), "{told}");
        }
    }

    #[test]
    fn a_filter_that_changed_before_the_first_snapshot_is_through_is_foreseen() {
        let mut settings = base(PublicationAutocreate::Filtered, false);
        settings.row_filters.add("public.t", "a = 2").expect("a filter");
        let mut offset = Offset::decode(&read_up_to(100).0).expect("an offset");
        offset.phase = Phase::Snapshot { consistent_point: Lsn(5), has_slot: true };
        let at = OffsetRecord(Arc::from(offset.encode()));
        let fault = foresee_filters(&settings, (&at, &[state(None)])).expect("foreseen");
        let told = fault.map(|fault| (fault.code(), fault.to_string().contains("resnapshot")));
        // the table of the test has no key
        assert_eq!(told, Some((Code::FilterChanged, false)));
        settings.snapshot_mode = SnapshotMode::InitialOnly;
        let refused = adopt_filters(&settings, (&at, &[state(None)]), true, &|_| Ok(()));
        assert_eq!(refused.unwrap_err().code(), Code::ConfigUnsupported);
    }

    #[test]
    fn what_a_first_snapshot_read_by_another_filter_is_read_again() {
        let mut work = Work::default();
        work.begin_first(Lsn(5));
        work.note_read(7, "public.t", 3);
        work.note_read(8, "public.u", 3);
        let states = vec![state(None), work.state().expect("a state")];
        for resnapshot in [false, true] {
            let made = adopt(("a = 2", Pushdown::None), &states, resnapshot).expect("adopted");
            let work = work_of(&with(&states, &made));
            let first = work.first_at(Lsn(5)).expect("it is under way");
            assert!(!first.has(7, "public.t") && first.has(8, "public.u"), "{resnapshot}");
            assert_eq!(work.tables().len(), usize::from(resnapshot));
        }
    }

    #[test]
    fn the_same_filter_is_applied_anew_wherever_rows_are_left_out() {
        let states = [state(Some(PushedDown::by(3)))];
        let same = adopt(("a = 1", Pushdown::Publication), &states, false).expect("adopted");
        let bytes = same.first().and_then(|one| one.value.clone()).expect("bytes");
        let history = TableHistory::decode(&bytes).expect("a state");
        assert_eq!(history.pushed, Some(PushedDown::by(3)), "it goes on as it was");
        let fault = adopt(("a = 1", Pushdown::Publication), &states, true).unwrap_err();
        assert_eq!(fault.code(), Code::ConfigUnsupported);
    }
}

//! What is to be read beside the stream, and how far that got.
//!
//! One record among the table states in Kafka, written in the Kafka transaction of a chunk's rows:
//! after a crash the next chunk is the one behind the last whose rows are visible. Pure.
//! **Invariant:** what is stored says of every table what is published; a state of another form is
//! refused.

use serde::{Deserialize, Serialize};

use super::first::FirstSnapshot;
use crate::error::{Code, Fault};
use crate::observe::{ChunkProgress, SourceMetrics, TableProgress};
use crate::sources::postgres::row_filter::Applied;
use crate::sources::postgres::status::clock_micros;
use crate::stage::TableState;

/// The key among the table states, which are keyed by numbers.
pub(in crate::sources::postgres) const STATE_KEY: &str = "incremental-snapshot";

const FORMAT: u32 = 1;

/// Everything that is to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sources::postgres) struct Work {
    /// Tells one snapshot from others of the connector.
    pub(super) id: String,
    /// Nothing is read until it is resumed.
    pub(super) paused: bool,
    /// In this order.
    pub(super) tables: Vec<TableWork>,
    /// Its tables that are read or given up, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) ended: Vec<EndedTable>,
    /// The first snapshot, as long as it is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) first: Option<FirstSnapshot>,
}

/// The most ended tables that are remembered, and the most bytes of why one failed.
const MOST_ENDED: usize = 1_000;
const LONGEST_REASON: usize = 500;

/// A table that is not read any more, as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EndedTable {
    table: String,
    how: End,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    condition: Option<String>,
    rows: u64,
    scanned: u64,
    chunks: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum End {
    Completed,
    Stopped,
    Failed,
}

impl EndedTable {
    /// `None`: it is still to be read.
    fn of(shown: &TableProgress) -> Option<Self> {
        let how = match shown.state {
            "completed" => End::Completed,
            "stopped" => End::Stopped,
            "failed" => End::Failed,
            _ => return None,
        };
        let shorten = |text: &String| {
            let end = text.floor_char_boundary(LONGEST_REASON);
            text.get(..end).unwrap_or_default().to_owned()
        };
        Some(Self {
            table: shown.table.clone(),
            how,
            condition: shown.condition.clone(),
            rows: shown.rows,
            scanned: shown.scanned,
            chunks: shown.chunks,
            fault: shown.fault.as_ref().map(shorten),
        })
    }

    fn stopped(table: &TableWork) -> Self {
        Self {
            table: table.qualified_name(),
            how: End::Stopped,
            condition: table.condition.clone(),
            rows: table.rows,
            scanned: table.scanned,
            chunks: table.chunks,
            fault: None,
        }
    }

    fn progress(&self) -> TableProgress {
        TableProgress {
            table: self.table.clone(),
            state: match self.how {
                End::Completed => "completed",
                End::Stopped => "stopped",
                End::Failed => "failed",
            },
            condition: self.condition.clone(),
            rows: self.rows,
            scanned: self.scanned,
            chunks: self.chunks,
            fault: self.fault.clone(),
            ..TableProgress::default()
        }
    }
}

/// A table that is to be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sources::postgres) struct TableWork {
    /// Its schema.
    pub(in crate::sources::postgres) namespace: String,
    /// Its name.
    pub(in crate::sources::postgres) name: String,
    /// Its number, where what was published of it under this name decides what is looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::sources::postgres) oid: Option<u32>,
    /// Only rows of which this is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::sources::postgres) condition: Option<String>,
    /// What is looked for.
    pub(in crate::sources::postgres) aim: Aim,
    /// When its rewritten rows are read, all are told anew: a row filter changed, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) retells: bool,
    /// It comes to be published: what was written to it before, and is not committed yet, will not be
    /// in the stream.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) joins: bool,
    /// How many chunks were published.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) chunks: u64,
    /// How many rows were published.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) rows: u64,
    /// How many rows were looked at.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) scanned: u64,
    /// How many there are about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) estimate: Option<u64>,
    /// How far the reading is; `None`: not begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cursor: Option<Cursor>,
    /// All its rows are published, the last ones at this position; that is still to be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) through: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "so serde calls it")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What is looked for in a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::sources::postgres) enum Aim {
    /// Its rows.
    Read,
    /// Its rows, for the first snapshot was interrupted before all of them were published.
    Initial,
    /// Rows that are on another side of the row filter than they were under this one; `None`: all
    /// rows were published.
    Refilter(Option<FormerFilter>),
    /// All its rows, on their side of the row filter: what was published of them is not known.
    Retell,
    /// Its rows, for they were written anew and the stream does not show them.
    Rewritten {
        /// The id of the control record that says so.
        by: String,
        /// What was published of the table is void: a truncate comes before the rows.
        clears: bool,
    },
}

/// A row filter by which rows were published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredFormer")]
pub(in crate::sources::postgres) struct FormerFilter {
    /// As it was written.
    pub(in crate::sources::postgres) text: String,
    /// What its columns were then; `None`: nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::sources::postgres) applied: Option<Applied>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum StoredFormer {
    /// As earlier programs stored it.
    Text(String),
    Known {
        text: String,
        #[serde(default)]
        applied: Option<Applied>,
    },
}

impl From<StoredFormer> for FormerFilter {
    fn from(stored: StoredFormer) -> Self {
        match stored {
            StoredFormer::Text(text) => Self { text, applied: None },
            StoredFormer::Known { text, applied } => Self { text, applied },
        }
    }
}

impl Aim {
    /// Rows on their sides of a filter that changed.
    pub(super) const fn is_refilter(&self) -> bool {
        matches!(self, Self::Refilter(_) | Self::Retell)
    }

    /// Labels of enums decide which rows are looked for.
    pub(super) fn asks_labels(&self) -> bool {
        let Self::Refilter(Some(former)) = self else { return false };
        former.applied.as_ref().is_some_and(Applied::has_labels)
    }

    /// Without it topics would be wrong for good.
    pub(super) const fn is_needed(&self) -> bool {
        !matches!(self, Self::Read)
    }
}

/// How far a table is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// The table's number. Another one means another table of the same name.
    pub(super) oid: u32,
    /// The place.
    pub(super) at: At,
}

/// A place in a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum At {
    /// In the order of a key.
    Key {
        /// Its columns.
        columns: Vec<String>,
        /// By what it is ordered; empty: that was not remembered.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        order: String,
        /// The last that was read; `None`: none was.
        after: Option<Vec<String>>,
        /// The last that is to be read.
        last: Vec<String>,
    },
    /// In the order of blocks.
    Blocks {
        /// The relation with the rows: the table or one of its partitions.
        leaf: u32,
        /// Its file. Another one holds the rows at other places.
        file: u32,
        /// The block that is read next.
        next: u64,
        /// The block behind the last that is to be read.
        end: u64,
    },
}

#[derive(Serialize, Deserialize)]
struct Stored {
    format: u32,
    work: Work,
}

/// What table states say of the last snapshot; `None`: there was none.
///
/// # Errors
/// `OFFSET-MALFORMED`.
pub fn pending(states: &[TableState]) -> Result<Option<ChunkProgress>, Fault> {
    Ok(Work::find(states)?.progress())
}

impl Work {
    /// Its tables.
    pub(in crate::sources::postgres) fn tables(&self) -> &[TableWork] {
        &self.tables
    }

    /// Finds the stored one; none: nothing is to be read.
    ///
    /// # Errors
    /// `OFFSET-MALFORMED`.
    pub(in crate::sources::postgres) fn find(states: &[TableState]) -> Result<Self, Fault> {
        let stored = states.iter().find(|state| state.key == STATE_KEY);
        let Some(bytes) = stored.and_then(|state| state.value.as_deref()) else {
            return Ok(Self::default());
        };
        let malformed = |what: String| {
            Code::OffsetMalformed
                .fault(format!("the stored incremental snapshot cannot be understood: {what}"))
        };
        let stored: Stored =
            serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
        if stored.format != FORMAT {
            let format = stored.format;
            return Err(malformed(format!("format {format}, this program knows {FORMAT}")));
        }
        Ok(stored.work)
    }

    /// What is told of it before it goes on; `None`: there was none.
    pub(super) fn progress(&self) -> Option<ChunkProgress> {
        if self.first.is_some() {
            return self.first_progress();
        }
        if self.tables.is_empty() && self.ended.is_empty() {
            return None;
        }
        let ended = self.ended.iter().map(EndedTable::progress);
        let tables = ended.chain(self.tables.iter().map(TableWork::progress)).collect();
        let (id, paused) = (self.id.clone(), self.paused);
        Some(ChunkProgress { id, paused, waiting: None, tables })
    }

    /// Shows it before it goes on, unless it is shown already, or a later one is.
    pub(in crate::sources::postgres) fn show(&self, metrics: &SourceMetrics) {
        let Some(progress) = self.progress() else { return };
        let known = metrics.incremental.progress();
        if known.is_none_or(|known| known.id != progress.id && !self.tables.is_empty()) {
            if !self.tables.is_empty() {
                metrics.snapshot.begin(clock_micros());
            }
            metrics.incremental.begin(&progress.id);
            metrics.incremental.update(|shown| *shown = progress);
        }
    }

    /// Takes over how tables ended, as it is shown.
    pub(super) fn take_ends(&mut self, shown: &ChunkProgress) {
        if shown.id == self.id {
            self.ended = shown.tables.iter().filter_map(EndedTable::of).collect();
            self.shorten_ended();
        }
    }

    fn shorten_ended(&mut self) {
        self.ended.drain(..self.ended.len().saturating_sub(MOST_ENDED));
    }

    /// The state to be stored.
    ///
    /// # Errors
    /// Only if the program is wrong.
    pub(in crate::sources::postgres) fn state(&self) -> Result<TableState, Fault> {
        let is_known = !self.tables.is_empty() || !self.ended.is_empty() || self.first.is_some();
        let value = is_known
            .then(|| serde_json::to_vec(&Stored { format: FORMAT, work: self.clone() }))
            .transpose()
            .map_err(|error| Code::Internal.fault("an incremental snapshot").caused_by(&error))?;
        Ok(TableState { key: STATE_KEY.to_owned(), value })
    }

    /// Adds tables. A snapshot that has none left begins anew under `id`.
    ///
    /// # Errors
    /// `SNAPSHOT-CONFLICT`: one of them is waiting already. Then none is added.
    pub(in crate::sources::postgres) fn add(
        &mut self,
        tables: Vec<TableWork>,
        id: &str,
    ) -> Result<(), Fault> {
        if let Some(twice) = tables.iter().find(|new| self.tables.iter().any(|old| old.is_of(new)))
        {
            let table = twice.qualified_name();
            return Err(Code::SnapshotConflict
                .fault(format!("\"{table}\" is being read by a snapshot already"))
                .at_table(table));
        }
        if self.tables.is_empty() {
            *self = Self { id: id.to_owned(), ..Self::default() };
        }
        self.tables.extend(tables);
        Ok(())
    }

    /// Rows of tables are to be looked for that a changed row filter moved. What is to be read of such
    /// a table already becomes part of that: then all its rows are told anew.
    pub(in crate::sources::postgres) fn refilter(&mut self, tables: Vec<TableWork>, id: &str) {
        if self.tables.is_empty() && !tables.is_empty() {
            *self = Self { id: id.to_owned(), first: self.first.take(), ..Self::default() };
        }
        for table in tables {
            match self.tables.iter_mut().find(|old| old.is_of(&table)) {
                None => self.tables.push(table),
                Some(old) if matches!(old.aim, Aim::Initial | Aim::Rewritten { .. }) => {
                    old.retells = true;
                }
                Some(old) => *old = TableWork { aim: Aim::Retell, ..table },
            }
        }
    }

    /// Rows that a changed filter of a table moved are not looked for any more.
    pub(in crate::sources::postgres) fn give_up_refilter(&mut self, table: &str) {
        for one in self.tables.iter_mut().filter(|one| one.qualified_name() == table) {
            one.retells = false;
        }
        let (given_up, kept) = std::mem::take(&mut self.tables)
            .into_iter()
            .partition(|one| one.aim.is_refilter() && one.qualified_name() == table);
        self.tables = kept;
        let given_up: Vec<TableWork> = given_up;
        self.ended.extend(given_up.iter().map(EndedTable::stopped));
        self.shorten_ended();
    }

    /// A table is to be read from its beginning, whatever was read of it, or is waiting to be; an
    /// order for some of its rows is an order for all of them.
    pub(super) fn begin_again(&mut self, mut table: TableWork, id: &str) {
        if self.tables.is_empty() {
            *self = Self { id: id.to_owned(), ..Self::default() };
        }
        let Some(old) = self.tables.iter_mut().find(|old| old.is_of(&table)) else {
            self.tables.push(table);
            return;
        };
        if let (Aim::Rewritten { clears: true, .. }, Aim::Rewritten { clears, .. }) =
            (&old.aim, &mut table.aim)
        {
            // the truncate may not have been published yet
            *clears = true;
        }
        // what is void needs not be told to be out
        let is_void = matches!(table.aim, Aim::Rewritten { clears: true, .. });
        table.retells = !is_void && old.is_of_changed_filter();
        *old = table;
    }

    /// The first table is read after the others.
    pub(super) fn put_last(&mut self) {
        if !self.tables.is_empty() {
            self.tables.rotate_left(1);
        }
    }

    /// A table has another name.
    pub(super) fn rename(&mut self, from: (&str, &str), to: (String, String)) -> bool {
        let is_it = |one: &&mut TableWork| (one.namespace.as_str(), one.name.as_str()) == from;
        // what was published under the name of then does not move with the table
        let Some(table) =
            self.tables.iter_mut().find(is_it).filter(|one| !one.is_of_changed_filter())
        else {
            return false;
        };
        (table.namespace, table.name) = to;
        true
    }

    /// Takes tables out; `None`: all. What the first snapshot, a changed row filter or a rewrite needs
    /// stays.
    ///
    /// # Errors
    /// `SNAPSHOT-CONFLICT`: nothing would be taken out.
    pub(super) fn stop(&mut self, chosen: &dyn Fn(&str) -> bool) -> Result<(), Fault> {
        let before = self.tables.len();
        let is_chosen = |table: &TableWork| chosen(&table.qualified_name());
        let kept = self.tables.iter().any(|one| is_chosen(one) && one.aim.is_needed());
        self.tables.retain(|one| one.aim.is_needed() || !is_chosen(one));
        if self.tables.len() < before {
            return Ok(());
        }
        Err(Code::SnapshotConflict.fault(if kept {
            "the rows of a first snapshot that was interrupted, of a changed row filter or of a \
             rewritten table are being read; without that topics would be wrong for good"
        } else {
            "no such table is being read by an incremental snapshot"
        }))
    }

    /// Holds the reading, or goes on with it.
    ///
    /// # Errors
    /// `SNAPSHOT-CONFLICT`: there is none to be held.
    pub(super) fn set_paused(&mut self, paused: bool) -> Result<(), Fault> {
        if self.tables.is_empty() {
            return Err(Code::SnapshotConflict.fault("no incremental snapshot is running"));
        }
        self.paused = paused;
        Ok(())
    }
}

impl TableWork {
    /// A table of which nothing is read yet.
    pub(in crate::sources::postgres) fn new(namespace: &str, name: &str, aim: Aim) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            oid: None,
            condition: None,
            aim,
            retells: false,
            joins: false,
            chunks: 0,
            rows: 0,
            scanned: 0,
            estimate: None,
            cursor: None,
            through: None,
        }
    }

    /// It is published from now on only.
    pub(in crate::sources::postgres) fn joining(self) -> Self {
        Self { joins: true, ..self }
    }

    /// The table of this number, whatever comes to have its name.
    pub(in crate::sources::postgres) fn of_number(self, oid: u32) -> Self {
        Self { oid: Some(oid), ..self }
    }

    /// It has about so many rows.
    pub(in crate::sources::postgres) fn about(self, estimate: Option<u64>) -> Self {
        Self { estimate, ..self }
    }

    /// Rows are looked for that a changed row filter moved, now or later.
    pub(in crate::sources::postgres) const fn is_of_changed_filter(&self) -> bool {
        self.aim.is_refilter() || self.retells
    }

    /// All its rows are to be told, from its beginning.
    pub(super) fn tell_anew(&mut self) {
        let Self { namespace, name, oid, .. } = self;
        *self = Self { oid: *oid, ..Self::new(namespace, name, Aim::Retell) };
    }

    /// What is to be done when it is through.
    pub(super) fn next(&self) -> Option<Self> {
        let Self { namespace, name, .. } = self;
        self.retells.then(|| Self { oid: self.oid, ..Self::new(namespace, name, Aim::Retell) })
    }

    /// What is told of it before it goes on.
    pub(in crate::sources::postgres) fn progress(&self) -> TableProgress {
        TableProgress {
            table: self.qualified_name(),
            state: "waiting",
            condition: self.condition.clone(),
            rows: self.rows,
            scanned: self.scanned,
            estimate: self.estimate,
            chunks: self.chunks,
            ..TableProgress::default()
        }
    }

    /// `namespace.name`, for people.
    pub(in crate::sources::postgres) fn qualified_name(&self) -> String {
        format!("{}.{}", self.namespace, self.name)
    }

    pub(super) fn is_of(&self, other: &Self) -> bool {
        (&self.namespace, &self.name) == (&other.namespace, &other.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str) -> TableWork {
        TableWork::new("public", name, Aim::Read)
    }

    #[test]
    fn what_is_stored_comes_back() {
        let mut work = Work::default();
        assert_eq!(Work::find(&[]).unwrap(), work);
        assert_eq!(work.state().unwrap().value, None, "nothing is to be read");
        let mut refilter = TableWork::new("public", "t", Aim::Refilter(None));
        let at = At::Key {
            columns: vec!["id".into()],
            order: String::new(),
            after: None,
            last: vec!["9".into()],
        };
        refilter.cursor = Some(Cursor { oid: 7, at });
        work.add(vec![read("u"), refilter], "1").unwrap();
        let state = work.state().unwrap();
        assert_eq!(Work::find(std::slice::from_ref(&state)).unwrap(), work);
        let shown = pending(std::slice::from_ref(&state)).unwrap().expect("it is to be read");
        let shown: Vec<_> =
            shown.tables.iter().map(|one| (one.table.as_str(), one.state)).collect();
        assert_eq!(shown, [("public.u", "waiting"), ("public.t", "waiting")]);
        assert_eq!(pending(&[]).unwrap(), None);
        let text = String::from_utf8(state.value.unwrap()).unwrap();
        for wrong in [text.replace("\"format\":1", "\"format\":2"), "x".to_owned()] {
            let state = TableState { key: STATE_KEY.into(), value: Some(wrong.into_bytes()) };
            assert_eq!(Work::find(&[state]).unwrap_err().code(), Code::OffsetMalformed);
        }
    }

    #[test]
    fn how_tables_ended_is_told_until_another_snapshot_begins() {
        let mut work = Work::default();
        work.add(vec![read("a"), read("b")], "1").unwrap();
        let shown = |id: &str, states: &[(&str, &'static str)]| ChunkProgress {
            id: id.to_owned(),
            tables: states
                .iter()
                .map(|(name, state)| TableProgress {
                    table: format!("public.{name}"),
                    state,
                    rows: 7,
                    fault: (*state == "failed").then(|| "é".repeat(LONGEST_REASON)),
                    ..TableProgress::default()
                })
                .collect(),
            ..ChunkProgress::default()
        };
        let told = |work: &Work| {
            let found = Work::find(&[work.state().unwrap()]).unwrap();
            let progress = found.progress().map(|one| one.tables).unwrap_or_default();
            progress.iter().map(|one| (one.table.clone(), one.state, one.rows)).collect::<Vec<_>>()
        };
        work.take_ends(&shown("2", &[("a", "completed")]));
        let (a, b) = ("public.a".to_owned(), "public.b".to_owned());
        let expect = [(a.clone(), "waiting", 0), (b.clone(), "waiting", 0)];
        assert_eq!(told(&work), expect, "another snapshot says nothing of this one");
        work.tables.remove(0);
        work.take_ends(&shown("1", &[("a", "completed"), ("b", "running")]));
        assert_eq!(told(&work), [(a.clone(), "completed", 7), (b.clone(), "waiting", 0)]);
        work.tables.clear();
        work.take_ends(&shown("1", &[("a", "completed"), ("b", "failed")]));
        assert_eq!(told(&work), [(a, "completed", 7), (b, "failed", 7)]);
        let metrics = SourceMetrics::default();
        work.show(&metrics);
        assert_eq!(metrics.incremental.progress().map(|one| one.tables.len()), Some(2));
        metrics.incremental.begin("initial");
        work.show(&metrics);
        assert_eq!(metrics.incremental.progress().map(|one| one.id).as_deref(), Some("initial"));
        work.add(vec![read("c")], "3").unwrap();
        assert_eq!(told(&work), [("public.c".to_owned(), "waiting", 0)]);
        let many: Vec<_> = (0..MOST_ENDED + 5).map(|_| ("x", "stopped")).collect();
        work.take_ends(&shown("3", &many));
        assert_eq!(work.ended.len(), MOST_ENDED);
        work.end_first(Some(&shown("initial", &[("a", "completed")])), Vec::new());
        assert_eq!(work.id, "3", "a table is waiting");
        work.tables.clear();
        work.end_first(Some(&shown("initial", &[("a", "completed")])), Vec::new());
        assert_eq!((work.id.as_str(), told(&work).len()), ("initial", 1));
    }

    #[test]
    fn orders_that_cannot_be_carried_out_change_nothing() {
        let mut work = Work::default();
        let conflict = |outcome: Result<(), Fault>| {
            assert_eq!(outcome.unwrap_err().code(), Code::SnapshotConflict);
        };
        conflict(work.set_paused(true));
        conflict(work.stop(&|_| true));
        work.add(vec![read("a"), read("b")], "1").unwrap();
        let before = work.clone();
        conflict(work.add(vec![read("c"), read("a")], "2"));
        conflict(work.stop(&|name| name == "public.c"));
        assert_eq!(work, before);
        work.stop(&|name| name == "public.a").unwrap();
        work.add(vec![read("a")], "2").unwrap();
        assert_eq!((work.id.as_str(), work.tables.len()), ("1", 2), "it goes on under its name");
        work.tables.push(TableWork::new("public", "f", Aim::Refilter(None)));
        work.stop(&|_| true).unwrap();
        assert_eq!(work.tables.len(), 1, "a changed filter is not given up");
        conflict(work.stop(&|_| true));
    }

    #[test]
    fn what_is_to_be_read_of_a_table_becomes_part_of_telling_its_rows_anew() {
        let former = FormerFilter { text: "a = 1".to_owned(), applied: None };
        let refilter = |name: &str| {
            TableWork::new("public", name, Aim::Refilter(Some(former.clone()))).of_number(7)
        };
        let mut work = Work::default();
        work.refilter(vec![refilter("a")], "filter");
        assert_eq!((work.id.as_str(), &work.tables), ("filter", &vec![refilter("a")]));
        work.add(vec![read("b")], "1").unwrap();
        work.tables.push(rewritten("c", false));
        work.refilter(vec![refilter("a"), refilter("b"), refilter("c")], "filter");
        let aims: Vec<_> =
            work.tables.iter().map(|one| (one.aim.is_refilter(), one.retells)).collect();
        assert_eq!(aims, [(true, false), (true, false), (false, true)]);
        assert!(work.tables[..2].iter().all(|one| one.aim == Aim::Retell));
        assert_eq!(Work::find(&[work.state().unwrap()]).unwrap(), work);
        let next = work.tables[2].next().expect("its rows are told when they are read");
        assert_eq!((next.aim, next.name.as_str()), (Aim::Retell, "c"));
        assert!(!work.rename(("public", "a"), ("public".into(), "z".into())), "its topic stays");
        work.begin_again(rewritten("a", false), "2");
        assert!(work.tables[0].retells, "a rewrite does not end it");
        work.begin_again(rewritten("a", true), "2");
        assert!(!work.tables[0].retells, "what is void is");
        work.give_up_refilter("public.b");
        work.give_up_refilter("public.c");
        let left: Vec<_> = work.tables.iter().map(|one| (one.name.as_str(), one.retells)).collect();
        assert_eq!(left, [("a", false), ("c", false)]);
        let told: Vec<_> = work.progress().unwrap().tables.iter().map(|one| one.state).collect();
        assert_eq!(told, ["stopped", "waiting", "waiting"]);
    }

    #[test]
    fn a_filter_that_an_earlier_program_stored_is_read() {
        let aim: Aim = serde_json::from_str(r#"{"refilter": "a = 1"}"#).unwrap();
        let former = FormerFilter { text: "a = 1".to_owned(), applied: None };
        assert_eq!(aim, Aim::Refilter(Some(former)));
        let none: Aim = serde_json::from_str(r#"{"refilter": null}"#).unwrap();
        assert_eq!(none, Aim::Refilter(None));
        assert_eq!(serde_json::to_string(&none).unwrap(), r#"{"refilter":null}"#);
    }

    fn rewritten(name: &str, clears: bool) -> TableWork {
        TableWork::new("public", name, Aim::Rewritten { by: "1:s:7:0/10:2".to_owned(), clears })
    }

    #[test]
    fn a_rewritten_table_is_read_from_its_beginning() {
        let mut work = Work::default();
        let at = At::Key {
            columns: vec!["id".into()],
            order: String::new(),
            after: None,
            last: vec!["9".into()],
        };
        let begun = TableWork {
            condition: Some("v > 1".to_owned()),
            rows: 5,
            cursor: Some(Cursor { oid: 7, at }),
            ..read("a")
        };
        work.add(vec![begun, read("b")], "1").unwrap();
        work.begin_again(rewritten("a", false), "2");
        assert_eq!((work.id.as_str(), work.tables.len()), ("1", 2), "in its place, once");
        assert_eq!(work.tables[0], rewritten("a", false), "all rows, none of them read");
        work.begin_again(rewritten("a", true), "2");
        work.begin_again(rewritten("a", false), "2");
        assert_eq!(work.tables[0], rewritten("a", true), "what is void stays void");
        assert!(work.stop(&|name| name == "public.a").is_err(), "it cannot be stopped");
        assert!(work.rename(("public", "a"), ("public".into(), "c".into())));
        assert!(!work.rename(("public", "a"), ("public".into(), "d".into())));
        assert_eq!(work.tables[0].name, "c");
        assert_eq!(Work::find(&[work.state().unwrap()]).unwrap(), work);
        let mut empty = Work { paused: true, ..Work::default() };
        empty.begin_again(rewritten("a", false), "3");
        assert_eq!((empty.id.as_str(), empty.paused), ("3", false));
    }
}

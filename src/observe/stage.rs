//! What a stage counts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::definitions::{BYTES, CHANGES};
use super::numbers::{Counter, Gauge, Histogram};
use crate::change::{Cell, ChangeKind, Event};
use crate::filter::Verdict;

/// Counts of a stage, of all attempts of its task.
#[derive(Debug)]
pub struct StageMetrics {
    tables: Mutex<BTreeMap<TableName, Arc<TableMetrics>>>,
    /// Encoded bytes that wait for their transaction's end.
    pub staged_bytes: Gauge,
    /// Bytes in the queue; the publisher sets it too.
    pub queue_bytes: Arc<Gauge>,
    /// When the last change was processed, microseconds since the epoch; 0: never.
    pub last_change: Gauge,
    /// Messages of the prefix of notes about definitions that were not believed.
    pub refused_notes: Counter,
    /// Records made.
    pub records: Counter,
    /// Source transactions by their number of changes.
    pub transaction_changes: Histogram,
    /// Source transactions by their encoded bytes.
    pub transaction_bytes: Histogram,
}

/// Schema and name.
type TableName = (String, String);

impl Default for StageMetrics {
    fn default() -> Self {
        Self {
            tables: Mutex::default(),
            staged_bytes: Gauge::default(),
            queue_bytes: Arc::default(),
            last_change: Gauge::default(),
            refused_notes: Counter::default(),
            records: Counter::default(),
            transaction_changes: Histogram::new(&CHANGES),
            transaction_bytes: Histogram::new(&BYTES),
        }
    }
}

impl StageMetrics {
    /// Of a stage whose queue's bytes are shown by this gauge.
    pub(super) fn beside(queue_bytes: Arc<Gauge>) -> Self {
        Self { queue_bytes, ..Self::default() }
    }

    /// The counts of a table, to be kept beside its writer.
    pub fn table(&self, namespace: &str, name: &str) -> Arc<TableMetrics> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(tables.entry((namespace.to_owned(), name.to_owned())).or_default())
    }

    /// All tables that were opened.
    pub(super) fn tables(&self) -> Vec<(TableName, Arc<TableMetrics>)> {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.iter().map(|(name, table)| (name.clone(), Arc::clone(table))).collect()
    }
}

/// Counts of one table. Written by the stage only.
#[derive(Debug, Default)]
pub struct TableMetrics {
    kinds: [Counter; ChangeKind::ALL.len()],
    unavailable: Counter,
    /// Records with markers that no earlier record of their key resolves.
    pub unmergeable: Counter,
    /// What a row filter has said, in the order of [`TableMetrics::VERDICTS`].
    verdicts: [Counter; 5],
    /// The table has one.
    is_filtered: AtomicBool,
}

impl TableMetrics {
    /// Counts a change of which records were made.
    pub fn count(&self, event: &Event<'_>) {
        if let Some(kind) = self.kinds.get(event.kind as usize) {
            kind.add_as_only_writer(1);
        }
        // only these can lack a value of the new row
        if matches!(event.kind, ChangeKind::Update | ChangeKind::KeyChange) {
            let cells = event.row.after.unwrap_or_default();
            let unavailable = cells.iter().filter(|cell| **cell == Cell::Unavailable).count();
            if unavailable > 0 {
                self.unavailable.add_as_only_writer(unavailable as u64);
            }
        }
    }

    /// What becomes of a change by its table's row filter, and the names of their counts.
    pub(super) const VERDICTS: [&str; 5] = ["in", "out", "moved_in", "moved_out", "stopped"];

    /// The table has a row filter.
    pub fn set_filtered(&self) {
        self.is_filtered.store(true, Ordering::Relaxed);
    }

    /// Counts what a row filter said of a change.
    pub fn count_verdict(&self, verdict: Verdict) {
        let index = match verdict {
            Verdict::Publish => 0,
            Verdict::LeaveOut => 1,
            Verdict::MovedIn | Verdict::Replaced => 2,
            Verdict::MovedOut | Verdict::FoundOut => 3,
        };
        self.count_verdict_at(index);
    }

    /// Counts a change that a row filter could not decide.
    pub fn count_stopped(&self) {
        self.count_verdict_at(4);
    }

    fn count_verdict_at(&self, index: usize) {
        if let Some(counter) = self.verdicts.get(index) {
            counter.add_as_only_writer(1);
        }
    }

    /// What its row filter has said, if it has one.
    pub fn verdicts(&self) -> Option<[(&'static str, u64); 5]> {
        let counts = std::array::from_fn(|index| {
            let name = Self::VERDICTS.get(index).copied().unwrap_or_default();
            (name, self.verdicts.get(index).map_or(0, Counter::get))
        });
        self.is_filtered.load(Ordering::Relaxed).then_some(counts)
    }

    /// Changes of a kind.
    pub fn changes(&self, kind: ChangeKind) -> u64 {
        self.kinds.get(kind as usize).map_or(0, Counter::get)
    }

    /// Values that were not sent.
    pub fn unavailable(&self) -> u64 {
        self.unavailable.get()
    }
}

//! What a source tells of itself: whether it reads, its snapshot, and readings of its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::metric::Metric;
use super::numbers::{Counter, Gauge};
use crate::error::Fault;

/// One value of a metric that a source defines.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The metric; its first labels are `connector` and `task`.
    pub metric: &'static Metric,
    /// The values of the labels after those.
    pub labels: &'static [&'static str],
    /// The value.
    pub value: f64,
}

/// What a source tells.
#[derive(Debug, Default)]
pub struct SourceMetrics {
    connected: Gauge,
    probe: Mutex<Option<Vec<Reading>>>,
    probed: Gauge,
    /// The snapshot.
    pub snapshot: SnapshotMetrics,
    /// The snapshot beside the stream.
    pub incremental: ChunkMetrics,
    /// Orders that came with the changes.
    pub signals: SignalMetrics,
    waiting: watch::Sender<Option<Fault>>,
}

impl SourceMetrics {
    /// Shows what a source that is at work waits for; `None`: nothing any more.
    pub fn wait_for(&self, what: Option<Fault>) {
        self.waiting.send_if_modified(|shown| {
            let is_new = *shown != what;
            *shown = what;
            is_new
        });
    }

    /// Follows what it waits for.
    pub fn waiting(&self) -> watch::Receiver<Option<Fault>> {
        self.waiting.subscribe()
    }

    /// Shows that the stream is being read, for as long as the answer lives.
    pub fn connect(self: &Arc<Self>) -> impl Send + use<> {
        self.connected.set(1);
        Connected(Arc::clone(self))
    }

    /// Takes over what a look at the source's health found; `None`: it failed.
    pub fn set_readings(&self, readings: Option<Vec<Reading>>) {
        *self.probe.lock().unwrap_or_else(PoisonError::into_inner) = readings;
        self.probed.set(1);
    }

    pub(super) fn is_connected(&self) -> bool {
        self.connected.get() != 0
    }

    /// The last readings; the outer `None`: the source was not looked at yet.
    pub(super) fn readings(&self) -> Option<Option<Vec<Reading>>> {
        let readings = self.probe.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (self.probed.get() != 0).then_some(readings)
    }
}

/// Orders that came with the changes.
#[derive(Debug, Default)]
pub struct SignalMetrics {
    /// Those that were carried out.
    pub done: Counter,
    /// Those that could not be.
    pub refused: Counter,
}

struct Connected(Arc<SourceMetrics>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connected.set(0);
    }
}

/// A snapshot's progress.
#[derive(Debug, Default)]
pub struct SnapshotMetrics(Mutex<Progress>);

#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// When it began, microseconds since the epoch.
    pub(super) began: Option<i64>,
    pub(super) ended: Option<i64>,
    pub(super) completed: bool,
    pub(super) tables: u64,
    pub(super) remaining: u64,
    pub(super) rows: BTreeMap<String, Arc<Gauge>>,
    pub(super) paused: bool,
}

impl SnapshotMetrics {
    /// A snapshot begins; what an earlier one said is forgotten.
    pub fn begin(&self, now_micros: i64) {
        *self.locked() = Progress { began: Some(now_micros), ..Progress::default() };
    }

    /// It is known how many tables it reads.
    pub fn set_tables(&self, tables: usize) {
        let mut progress = self.locked();
        progress.tables = tables as u64;
        progress.remaining = progress.tables;
    }

    /// It is known how many tables it reads, and how many of them are still to be read.
    pub fn set_counts(&self, tables: usize, remaining: usize) {
        let mut progress = self.locked();
        progress.tables = tables as u64;
        progress.remaining = remaining as u64;
    }

    /// It is held, or goes on.
    pub fn set_paused(&self, paused: bool) {
        self.locked().paused = paused;
    }

    /// A table begins; its rows are to be counted in the answer.
    pub fn begin_table(&self, name: &str) -> Arc<Gauge> {
        Arc::clone(self.locked().rows.entry(name.to_owned()).or_default())
    }

    /// The table that began last is read.
    pub fn end_table(&self) {
        let mut progress = self.locked();
        progress.remaining = progress.remaining.saturating_sub(1);
    }

    /// The snapshot is over.
    pub fn end(&self, is_complete: bool, now_micros: i64) {
        let mut progress = self.locked();
        progress.ended = Some(now_micros);
        progress.paused = false;
        progress.completed = is_complete;
    }

    pub(super) fn progress(&self) -> Progress {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is known of a snapshot beside the stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkProgress {
    /// Its name.
    pub id: String,
    /// It is held.
    pub paused: bool,
    /// Why nothing is read at the moment, if nothing is.
    pub waiting: Option<String>,
    /// Its tables, in the order of reading.
    pub tables: Vec<TableProgress>,
}

/// How far a table is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableProgress {
    /// Its name.
    pub table: String,
    /// `waiting`, `running`, `completed`, `stopped` or `failed`.
    pub state: &'static str,
    /// Only rows of which this is true.
    pub condition: Option<String>,
    /// Rows that were published.
    pub rows: u64,
    /// Rows that were looked at.
    pub scanned: u64,
    /// How many there are, about.
    pub estimate: Option<u64>,
    /// Chunks that were published.
    pub chunks: u64,
    /// How long it will take, about.
    pub seconds_left: Option<u64>,
    /// Why it failed.
    pub fault: Option<String>,
}

impl TableProgress {
    /// Whether it is still to be read.
    pub fn is_open(&self) -> bool {
        matches!(self.state, "waiting" | "running")
    }
}

/// The progress of the last snapshot: the first one, or one beside the stream.
#[derive(Debug, Default)]
pub struct ChunkMetrics {
    progress: Mutex<Option<ChunkProgress>>,
    is_recalled: AtomicBool,
}

impl ChunkMetrics {
    /// A new one begins; what an earlier one said is forgotten.
    pub fn begin(&self, id: &str) {
        *self.locked() = Some(ChunkProgress { id: id.to_owned(), ..ChunkProgress::default() });
    }

    /// Changes what is known of it, if there is one.
    pub fn update(&self, change: impl FnOnce(&mut ChunkProgress)) {
        if let Some(progress) = self.locked().as_mut() {
            change(progress);
        }
    }

    /// What is known; `None`: there was none since the task began.
    pub fn progress(&self) -> Option<ChunkProgress> {
        self.locked().clone()
    }

    /// What is stored of an earlier one is shown, if there is any.
    pub fn set_recalled(&self) {
        self.is_recalled.store(true, Ordering::Release);
    }

    /// Whether that is so: until then it is not known whether there was none.
    pub fn is_recalled(&self) -> bool {
        self.is_recalled.load(Ordering::Acquire)
    }

    fn locked(&self) -> MutexGuard<'_, Option<ChunkProgress>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

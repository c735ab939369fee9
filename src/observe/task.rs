//! All that is counted for one task, and how it is shown.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::definitions as m;
use super::exposition::Exposition;
use super::metric::Metric;
use super::numbers::Gauge;
use super::observer::{Observer, WorkerMetrics};
use super::publisher::PublisherMetrics;
use super::registry::RegistryMetrics;
use super::source::SourceMetrics;
use super::stage::StageMetrics;
use crate::change::ChangeKind;
use crate::error::{Fate, Fault};

/// Whose series they are.
#[derive(Clone, Debug)]
pub struct TaskIdentity {
    /// The connector's name.
    pub connector: String,
    /// The task's number.
    pub task: u32,
    /// What Debezium calls the source's kind in its metrics.
    pub plugin: &'static str,
    /// `topic.prefix`, which Debezium's metrics call name.
    pub server: String,
}

/// The counts of one task, over all its attempts.
#[derive(Debug)]
pub struct TaskMetrics {
    identity: TaskIdentity,
    number: String,
    /// Of the stage.
    pub stage: Arc<StageMetrics>,
    /// Of the publisher.
    pub publisher: Arc<PublisherMetrics>,
    /// Of the schema registries.
    pub registry: Arc<RegistryMetrics>,
    /// Of the source.
    pub source: Arc<SourceMetrics>,
    faults: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
    last_fault: Gauge,
}

impl TaskMetrics {
    pub(super) fn new(identity: TaskIdentity) -> Self {
        let publisher = PublisherMetrics::default();
        let queue_bytes = Arc::clone(&publisher.queue_bytes);
        Self {
            number: identity.task.to_string(),
            identity,
            stage: Arc::new(StageMetrics::beside(queue_bytes)),
            publisher: Arc::new(publisher),
            registry: Arc::default(),
            source: Arc::default(),
            faults: Mutex::default(),
            last_fault: Gauge::default(),
        }
    }

    /// Counts a fault that ended an attempt.
    pub fn fault(&self, fault: &Fault, now_micros: i64) {
        let fate = match fault.fate() {
            Fate::Retry => "retry",
            Fate::Halt => "halt",
        };
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        *faults.entry((fault.code().id(), fate)).or_default() += 1;
        self.last_fault.set(now_micros / 1000);
    }

    /// Adds everything as it is now.
    pub(super) fn add_to(&self, out: &mut Exposition, now_micros: i64) {
        let labels = [self.identity.connector.as_str(), self.number.as_str()];
        self.add_stage(out, labels);
        self.add_publisher(out, labels);
        self.add_registry(out, labels);
        self.add_stream(out, now_micros);
        self.add_snapshot(out, now_micros);
        out.add(&m::LAST_ERROR, &labels, self.last_fault.get() as f64);
        let [connector, task] = labels;
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for ((code, fate), count) in faults {
            out.add_count(&m::FAULTS, &[connector, task, code, fate], count);
        }
        if let Some(readings) = self.source.readings() {
            out.add(&m::PROBED, &labels, f64::from(u8::from(readings.is_some())));
            for reading in readings.unwrap_or_default() {
                let labels: Vec<_> =
                    labels.into_iter().chain(reading.labels.iter().copied()).collect();
                out.add(reading.metric, &labels, reading.value);
            }
        }
    }

    fn add_stage(&self, out: &mut Exposition, labels: [&str; 2]) {
        let stage = &self.stage;
        let [connector, task] = labels;
        for ((schema, name), table) in stage.tables() {
            let is_table = table.changes(ChangeKind::Message) == 0;
            for kind in ChangeKind::ALL {
                if is_table != (kind == ChangeKind::Message) {
                    let labels = [connector, task, &schema, &name, kind_name(kind)];
                    out.add_count(&m::CHANGES_TOTAL, &labels, table.changes(kind));
                }
            }
            let labels = [connector, task, &schema, &name];
            out.add_count(&m::UNAVAILABLE, &labels, table.unavailable());
            out.add_count(&m::UNMERGEABLE, &labels, table.unmergeable.get());
            for (verdict, count) in table.verdicts().into_iter().flatten() {
                let labels = [connector, task, &schema, &name, verdict];
                out.add_count(&m::FILTERED, &labels, count);
            }
        }
        out.add_count(&m::REFUSED_NOTES, &labels, stage.refused_notes.get());
        let signals = &self.source.signals;
        for (outcome, count) in [("done", &signals.done), ("refused", &signals.refused)] {
            out.add_count(&m::SIGNALS, &[connector, task, outcome], count.get());
        }
        out.add_count(&m::POLLED, &labels, stage.records.get());
        out.add(&m::STAGED, &labels, stage.staged_bytes.get() as f64);
        out.add_histogram(&m::SIZE_CHANGES, &labels, &stage.transaction_changes);
        out.add_histogram(&m::SIZE_BYTES, &labels, &stage.transaction_bytes);
    }

    fn add_publisher(&self, out: &mut Exposition, labels: [&str; 2]) {
        let publisher = &self.publisher;
        let [connector, task] = labels;
        for (topic, counts) in publisher.topics() {
            let labels = [connector, task, &*topic];
            out.add_count(&m::RECORDS, &labels, counts.records.get());
            out.add_count(&m::RECORD_BYTES, &labels, counts.bytes.get());
        }
        let written = publisher.written.get();
        out.add_count(&m::WRITTEN, &labels, written);
        out.add(&m::ACTIVE, &labels, publisher.active.get() as f64);
        let filled = publisher.filled.get();
        if filled > 0 {
            out.add(&m::TRANSACTION_MIN, &labels, publisher.smallest.get() as f64);
            out.add(&m::TRANSACTION_MAX, &labels, publisher.largest.get() as f64);
            out.add(&m::TRANSACTION_AVG, &labels, written as f64 / filled as f64);
        }
        out.add_histogram(&m::DELIVERY, &labels, &publisher.delivery);
        out.add_histogram(&m::KAFKA_SECONDS, &labels, &publisher.transaction);
        for (outcome, count) in [
            ("committed", publisher.transactions_committed()),
            ("aborted", publisher.transactions_aborted()),
        ] {
            out.add_count(&m::KAFKA_TRANSACTIONS, &[connector, task, outcome], count);
        }
        out.add_count(&m::BUFFER_FULL, &labels, publisher.buffer_full());
    }

    fn add_registry(&self, out: &mut Exposition, labels: [&str; 2]) {
        let registry = &self.registry;
        let [connector, task] = labels;
        for (outcome, counter) in [
            ("answered", &registry.answered),
            ("refused", &registry.refused),
            ("failed", &registry.failed),
        ] {
            out.add_count(&m::REGISTRY_REQUESTS, &[connector, task, outcome], counter.get());
        }
        out.add_histogram(&m::REGISTRY_SECONDS, &labels, &registry.seconds);
        out.add_count(&m::REGISTRY_RETRIES, &labels, registry.retries.get());
    }

    /// Labels as Debezium's metrics have them, after ours.
    fn labels<'a>(&'a self, context: &'a str) -> [&'a str; 5] {
        let TaskIdentity { connector, plugin, server, .. } = &self.identity;
        [connector, &self.number, plugin, server, context]
    }

    fn add_stream(&self, out: &mut Exposition, now_micros: i64) {
        let labels = self.labels("streaming");
        let mut gauge =
            |metric: &'static Metric, value: i64| out.add(metric, &labels, value as f64);
        let publisher = &self.publisher;
        gauge(&m::CONNECTED, i64::from(self.source.is_connected()));
        gauge(&m::BEHIND, publisher.behind_millis(now_micros));
        let last = self.stage.last_change.get();
        gauge(&m::SINCE_LAST, if last == 0 { -1 } else { (now_micros - last).max(0) / 1000 });
        gauge(&m::QUEUE_LIMIT, publisher.queue_limit.get());
        gauge(&m::QUEUE_BYTES, publisher.queue_bytes.get());
        let tables = self.stage.tables();
        let sum = |kinds: &[ChangeKind]| -> u64 {
            let of_table = |table: &super::TableMetrics| -> u64 {
                kinds.iter().map(|kind| table.changes(*kind)).sum()
            };
            tables.iter().map(|(_, table)| of_table(table)).sum()
        };
        use ChangeKind::{
            Create, Delete, FoundOut, KeyChange, Message, MovedIn, MovedOut, Read, Truncate, Update,
        };
        let all =
            [Create, Update, KeyChange, Delete, Truncate, MovedIn, MovedOut, FoundOut, Message];
        out.add_count(&m::SEEN, &labels, sum(&all));
        out.add_count(&m::CREATES_SEEN, &labels, sum(&[Create]));
        out.add_count(
            &m::UPDATES_SEEN,
            &labels,
            sum(&[Update, KeyChange, MovedIn, MovedOut, FoundOut]),
        );
        out.add_count(&m::DELETES_SEEN, &labels, sum(&[Delete]));
        out.add_count(&m::TRANSACTIONS_SEEN, &labels, self.stage.transaction_changes.count());
        out.add_count(&m::SEEN, &self.labels("snapshot"), sum(&[Read]));
    }

    fn add_snapshot(&self, out: &mut Exposition, now_micros: i64) {
        let labels = self.labels("snapshot");
        let progress = self.source.snapshot.progress();
        let (began, ended) = (progress.began, progress.ended);
        let flag = |condition: bool| f64::from(u8::from(condition));
        out.add(&m::SNAPSHOT_RUNNING, &labels, flag(began.is_some() && ended.is_none()));
        out.add(&m::SNAPSHOT_COMPLETED, &labels, flag(progress.completed));
        out.add(&m::SNAPSHOT_ABORTED, &labels, flag(ended.is_some() && !progress.completed));
        out.add(&m::SNAPSHOT_PAUSED, &labels, flag(progress.paused));
        let micros = began.map_or(0, |began| (ended.unwrap_or(now_micros) - began).max(0));
        out.add(&m::SNAPSHOT_SECONDS, &labels, micros as f64 / 1e6);
        out.add_count(&m::SNAPSHOT_TABLES, &labels, progress.tables);
        out.add_count(&m::SNAPSHOT_REMAINING, &labels, progress.remaining);
        for (table, rows) in &progress.rows {
            let [connector, task, plugin, name, context] = labels;
            let labels = [connector, task, plugin, name, context, table];
            out.add(&m::SNAPSHOT_ROWS, &labels, rows.get() as f64);
        }
    }
}

const fn kind_name(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Read => "read",
        ChangeKind::Create => "create",
        ChangeKind::Update => "update",
        ChangeKind::KeyChange => "key_change",
        ChangeKind::Delete => "delete",
        ChangeKind::Truncate => "truncate",
        ChangeKind::MovedIn => "moved_in",
        ChangeKind::MovedOut => "moved_out",
        ChangeKind::FoundOut => "found_out",
        ChangeKind::Message => "message",
    }
}

/// Shows a task's metrics for as long as it lives.
#[derive(Debug)]
pub struct TaskRegistration {
    /// The counts.
    pub metrics: Arc<TaskMetrics>,
    pub(super) observer: Observer,
}

impl TaskRegistration {
    /// What the task's worker counts.
    pub fn worker(&self) -> &WorkerMetrics {
        self.observer.worker()
    }
}

impl Drop for TaskRegistration {
    fn drop(&mut self) {
        self.observer.forget(&self.metrics);
    }
}

//! What the publisher counts.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::definitions::LATENCY;
use super::numbers::{Counter, Gauge, Histogram};

/// Counts of a publisher, of all attempts of its task.
#[derive(Debug)]
pub struct PublisherMetrics {
    topics: Mutex<Vec<(Arc<str>, Arc<TopicMetrics>)>>,
    records: Counter,
    bytes: Counter,
    buffer_full: Counter,
    aborted: Counter,
    pub(super) written: Counter,
    /// Records in the open transaction.
    pub(super) active: Gauge,
    pub(super) smallest: Gauge,
    pub(super) largest: Gauge,
    /// Committed transactions that had records.
    pub(super) filled: Counter,
    pub(super) transaction: Histogram,
    pub(super) delivery: Histogram,
    /// When the oldest transaction that is being published was committed at the source.
    pending: Gauge,
    /// How long the last one took that was published, microseconds.
    last_took: Gauge,
    /// When that was.
    last_at: Gauge,
    /// Bytes in the queue; the stage sets it too.
    pub queue_bytes: Arc<Gauge>,
    /// How many there may be.
    pub queue_limit: Gauge,
}

/// Counts of one topic, in committed transactions.
#[derive(Debug, Default)]
pub struct TopicMetrics {
    /// Records.
    pub records: Counter,
    /// Their bytes.
    pub bytes: Counter,
}

impl Default for PublisherMetrics {
    fn default() -> Self {
        Self {
            topics: Mutex::default(),
            records: Counter::default(),
            bytes: Counter::default(),
            buffer_full: Counter::default(),
            aborted: Counter::default(),
            written: Counter::default(),
            active: Gauge::default(),
            smallest: Gauge::default(),
            largest: Gauge::default(),
            filled: Counter::default(),
            transaction: Histogram::new(&LATENCY),
            delivery: Histogram::new(&LATENCY),
            pending: Gauge::default(),
            last_took: Gauge::default(),
            last_at: Gauge::default(),
            queue_bytes: Arc::default(),
            queue_limit: Gauge::default(),
        }
    }
}

impl PublisherMetrics {
    /// Records handed to the producer, committed or not.
    pub fn records(&self) -> u64 {
        self.records.get()
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Kafka transactions committed.
    pub fn transactions_committed(&self) -> u64 {
        self.transaction.count()
    }

    /// Kafka transactions aborted.
    pub fn transactions_aborted(&self) -> u64 {
        self.aborted.get()
    }

    /// How often a record found the producer's buffer full; each time it waits for a millisecond.
    pub fn buffer_full(&self) -> u64 {
        self.buffer_full.get()
    }

    /// The counts of a topic, to be kept beside its number.
    pub fn topic(&self, name: &Arc<str>) -> Arc<TopicMetrics> {
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = topics.iter().find(|(known, _)| known == name) {
            return Arc::clone(known);
        }
        let new = Arc::<TopicMetrics>::default();
        topics.push((Arc::clone(name), Arc::clone(&new)));
        new
    }

    pub(super) fn topics(&self) -> Vec<(Arc<str>, Arc<TopicMetrics>)> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records were handed to the producer. `since`: when the first source transaction among them
    /// was committed there.
    pub fn produced(&self, records: usize, bytes: usize, since: Option<i64>) {
        self.records.add(records as u64);
        self.bytes.add(bytes as u64);
        let records = i64::try_from(records).unwrap_or(i64::MAX);
        self.active.set(self.active.get().saturating_add(records));
        if let Some(since) = since
            && self.pending.get() == 0
        {
            self.pending.set(since);
        }
    }

    /// A record found the buffer full.
    pub fn wait_for_buffer(&self) {
        self.buffer_full.add(1);
    }

    /// A Kafka transaction was committed that was open for so long.
    pub fn committed(&self, open_for: Duration) {
        self.transaction.observe(u64::try_from(open_for.as_micros()).unwrap_or(u64::MAX));
        let records = self.active.get();
        self.forget_open();
        if records == 0 {
            return;
        }
        self.written.add(records.unsigned_abs());
        self.filled.add(1);
        let smallest = self.smallest.get();
        if smallest == 0 || records < smallest {
            self.smallest.set(records);
        }
        self.largest.set(self.largest.get().max(records));
    }

    /// Source transactions became visible, in order: when each was committed there.
    pub fn delivered(&self, commits: &[i64], now_micros: i64) {
        for commit in commits {
            let took = now_micros.saturating_sub(*commit).max(0);
            self.delivery.observe(took.unsigned_abs());
            self.last_took.set(took);
            self.last_at.set(now_micros);
        }
    }

    /// The open Kafka transaction was aborted.
    pub fn aborted(&self) {
        self.aborted.add(1);
        self.forget_open();
    }

    /// Whatever was open, nothing of it is any more: another producer begins.
    pub fn forget_open(&self) {
        self.active.set(0);
        self.pending.set(0);
    }

    /// Everything that was committed at the source before this time is in Kafka.
    pub fn caught_up(&self, at_micros: i64) {
        if self.last_at.get() < at_micros {
            self.last_took.set(0);
        }
    }

    /// How far Kafka is behind the source, in milliseconds.
    pub fn behind_millis(&self, now_micros: i64) -> i64 {
        let pending = self.pending.get();
        let behind = if pending == 0 { self.last_took.get() } else { now_micros - pending };
        behind.max(0) / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_is_the_age_of_what_is_open_then_what_it_took_then_nothing() {
        let metrics = PublisherMetrics::default();
        assert_eq!(metrics.behind_millis(10_000), 0);
        metrics.produced(1, 10, Some(10_000));
        metrics.produced(1, 10, Some(12_000));
        assert_eq!(metrics.behind_millis(14_000), 4);
        metrics.committed(Duration::from_millis(3));
        metrics.delivered(&[10_000, 12_000], 15_000);
        assert_eq!(metrics.behind_millis(99_000), 3);
        metrics.caught_up(14_999);
        assert_eq!(metrics.behind_millis(99_000), 3);
        metrics.caught_up(20_000);
        assert_eq!(metrics.behind_millis(99_000), 0);
        assert_eq!(metrics.delivery.count(), 2);
    }

    #[test]
    fn only_committed_records_count_as_written() {
        let metrics = PublisherMetrics::default();
        metrics.produced(5, 10, None);
        assert_eq!(metrics.active.get(), 5);
        metrics.aborted();
        assert_eq!((metrics.active.get(), metrics.written.get()), (0, 0));
        for records in [3, 2, 0] {
            metrics.produced(records, 10, None);
            metrics.committed(Duration::ZERO);
        }
        assert_eq!((metrics.written.get(), metrics.records()), (5, 10));
        assert_eq!((metrics.smallest.get(), metrics.largest.get()), (2, 3));
        assert_eq!((metrics.filled.get(), metrics.transactions_committed()), (2, 3));
    }
}

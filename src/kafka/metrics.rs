//! What the publisher counts. Read by whoever exposes metrics; a count is never acted upon.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the task's start.
#[derive(Debug, Default)]
pub struct PublisherMetrics {
    records: AtomicU64,
    bytes: AtomicU64,
    committed: AtomicU64,
    aborted: AtomicU64,
    buffer_full: AtomicU64,
}

impl PublisherMetrics {
    /// Records handed to the producer, committed or not.
    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Kafka transactions committed.
    pub fn transactions_committed(&self) -> u64 {
        self.committed.load(Ordering::Relaxed)
    }

    /// Kafka transactions aborted.
    pub fn transactions_aborted(&self) -> u64 {
        self.aborted.load(Ordering::Relaxed)
    }

    /// How often a record found the producer's buffer full; each time it waits for a millisecond.
    pub fn buffer_full(&self) -> u64 {
        self.buffer_full.load(Ordering::Relaxed)
    }

    pub(super) fn produced(&self, records: usize, bytes: usize) {
        self.records.fetch_add(records as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn wait_for_buffer(&self) {
        self.buffer_full.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn committed(&self) {
        self.committed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn aborted(&self) {
        self.aborted.fetch_add(1, Ordering::Relaxed);
    }
}

//! What the clients of schema registries count.

use std::time::Duration;

use super::definitions::LATENCY;
use super::numbers::{Counter, Histogram};

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistryOutcome {
    /// It was answered.
    Answered,
    /// It was refused for good.
    Refused,
    /// Neither; it may be asked again.
    Failed,
}

/// Counts of a task's registries.
#[derive(Debug)]
pub struct RegistryMetrics {
    pub(super) answered: Counter,
    pub(super) refused: Counter,
    pub(super) failed: Counter,
    pub(super) retries: Counter,
    pub(super) seconds: Histogram,
}

impl Default for RegistryMetrics {
    fn default() -> Self {
        Self {
            answered: Counter::default(),
            refused: Counter::default(),
            failed: Counter::default(),
            retries: Counter::default(),
            seconds: Histogram::new(&LATENCY),
        }
    }
}

impl RegistryMetrics {
    /// Counts a request.
    pub fn request(&self, outcome: RegistryOutcome, took: Duration) {
        let counter = match outcome {
            RegistryOutcome::Answered => &self.answered,
            RegistryOutcome::Refused => &self.refused,
            RegistryOutcome::Failed => &self.failed,
        };
        counter.add(1);
        self.seconds.observe(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    /// Counts that a request will be sent again.
    pub fn retry(&self) {
        self.retries.add(1);
    }
}

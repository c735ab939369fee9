//! Wanted and observed states, and the wait between attempts.

use std::time::Duration;

use crate::error::Fault;

/// What the operator wants of a connector. Kept with its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Target {
    /// Run.
    Started,
    /// Keep the task, read nothing.
    Paused,
    /// Have no task.
    Stopped,
}

/// What a task is seen to do. Connect's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// Not begun yet.
    Unassigned,
    /// At work, or waiting for something outside to come back (the text says for what).
    Running {
        /// The fault that is being waited out, if any.
        waiting: Option<Fault>,
    },
    /// Idle on request.
    Paused,
    /// Given up; a person must act.
    Failed(Fault),
    /// Told to restart, not yet back.
    Restarting,
}

impl TaskState {
    /// The word in a status answer.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Unassigned => "UNASSIGNED",
            Self::Running { .. } => "RUNNING",
            Self::Paused => "PAUSED",
            Self::Failed(_) => "FAILED",
            Self::Restarting => "RESTARTING",
        }
    }

    /// What a status answer shows as the trace.
    pub fn trace(&self) -> Option<String> {
        match self {
            Self::Failed(fault) => Some(fault.to_string()),
            Self::Unassigned | Self::Running { .. } | Self::Paused | Self::Restarting => None,
        }
    }
}

/// Exponential wait between attempts, from `first` doubling to `most`.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    next: Duration,
}

impl Backoff {
    /// A wait that begins with `first` and never exceeds `most`.
    pub const fn new(first: Duration, most: Duration) -> Self {
        Self { first, most, next: first }
    }

    /// The wait before the next attempt.
    pub fn advance(&mut self) -> Duration {
        let wait = self.next;
        self.next = self.next.saturating_mul(2).min(self.most);
        wait
    }

    /// The last attempt did well for a while: begin again with the first wait.
    pub const fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_its_limit_and_starts_over_after_a_success() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5));
        let waits: Vec<_> = (0..4).map(|_| backoff.advance().as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 5]);
        backoff.reset();
        assert_eq!(backoff.advance().as_secs(), 1);
    }
}

//! Where Kafka transactions begin and end.
//!
//! Takes the staged items in order and drives a [`TransactionLog`]. Knows neither the Kafka client
//! nor a clock: the time comes with each call, so that the rules can be tried out under any
//! schedule. **Invariants:** a Kafka transaction holds whole source transactions, or a part of one
//! large one and nothing else; the offset committed with it describes exactly what is in it; an
//! offset is acknowledged only after its commit.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::queue::{OffsetRecord, Staged, TableState};
use super::settings::BoundarySettings;
use crate::error::Fault;
use crate::record::Batch;

/// The longest time for which the publisher rests without looking after its client.
const REST: Duration = Duration::from_secs(1);

/// The transactional producer, as far as the rules need it.
pub(super) trait TransactionLog {
    /// Opens a Kafka transaction.
    fn begin(&mut self) -> Result<(), Fault>;
    /// Adds the records of a batch to it.
    fn produce(&mut self, batch: &Batch) -> Result<(), Fault>;
    /// Adds table states to it.
    fn produce_states(&mut self, states: &[TableState]) -> Result<(), Fault>;
    /// Adds the offset and commits. Afterwards everything is in Kafka, or it is a fault and
    /// nobody knows.
    fn commit(&mut self, offset: &OffsetRecord) -> Result<(), Fault>;
    /// Withdraws the open transaction.
    fn abort(&mut self) -> Result<(), Fault>;
    /// The source transactions that end in this empty batch were committed with earlier ones.
    fn already_visible(&mut self, _batch: &Batch) {}
}

/// What is open at Kafka.
#[derive(Debug)]
enum State {
    /// Nothing. Entered after each commit and abort.
    Idle,
    /// Whole source transactions. Left by a commit, soon.
    Whole(Open),
    /// The beginning or middle of one large source transaction. Left by its last part (to
    /// `Whole`), by a split (to `Idle`), or by a fault (aborted).
    Part(Open),
}

#[derive(Debug)]
struct Open {
    since: Instant,
    bytes: usize,
    /// The position that the content reaches.
    offset: OffsetRecord,
}

/// The rules, and the state of one task's publication.
#[derive(Debug)]
pub(super) struct Boundaries<L> {
    log: L,
    settings: BoundarySettings,
    /// A large source transaction is split at the latest then.
    part_limit: Duration,
    state: State,
    /// A position beyond the last committed one, with nothing to publish before it.
    marker: Option<OffsetRecord>,
    last_commit: Option<Instant>,
    committed: watch::Sender<Option<OffsetRecord>>,
}

impl<L: TransactionLog> Boundaries<L> {
    /// Begins with nothing open.
    pub(super) fn new(
        log: L,
        settings: BoundarySettings,
        transaction_timeout: Duration,
        committed: watch::Sender<Option<OffsetRecord>>,
    ) -> Self {
        Self {
            log,
            settings,
            part_limit: transaction_timeout / 3,
            state: State::Idle,
            marker: None,
            last_commit: None,
            committed,
        }
    }

    /// The producer.
    pub(super) const fn log(&mut self) -> &mut L {
        &mut self.log
    }

    /// How long the publisher may wait for the next item; then it calls [`Self::rest`].
    pub(super) fn patience(&self, now: Instant) -> Duration {
        match (&self.state, &self.marker) {
            (State::Whole(_), _) => Duration::ZERO,
            (State::Part(open), _) => (open.since + self.part_limit).duration_since(now).min(REST),
            (State::Idle, Some(_)) => self
                .marker_due()
                .map_or(Duration::ZERO, |due| due.saturating_duration_since(now).min(REST)),
            (State::Idle, None) => REST,
        }
    }

    /// Takes the next item. Gives the batch back for reuse.
    ///
    /// # Errors
    /// The item was a fault, or Kafka refused something. Nothing more can be done with this
    /// producer; what is open is not committed.
    pub(super) fn take(&mut self, staged: Staged, now: Instant) -> Result<Option<Batch>, Fault> {
        let spare = match staged {
            Staged::Records { batch, states, offset, complete } => {
                if complete && self.is_idle() && batch.is_empty() && states.is_empty() {
                    self.log.already_visible(&batch);
                    self.marker = Some(offset);
                } else {
                    self.records((&batch, &states), offset, complete, now)?;
                }
                Some(batch)
            }
            Staged::Control { batch, states, offset } => {
                self.close(now)?;
                self.say((&batch, &states), &offset, now)?;
                Some(batch)
            }
            Staged::Marker { offset } => {
                // Inside a large transaction nothing may be said about positions beyond it.
                if !matches!(self.state, State::Part(_)) {
                    self.marker = Some(offset);
                }
                None
            }
            Staged::Flush { offset, done } => {
                let outcome = self.flush(offset, now);
                // Whoever asked may have gone; that is no reason to stop.
                drop(done.send(outcome.clone()));
                outcome?;
                None
            }
            Staged::Fault(fault) => {
                self.finish(now)?;
                return Err(fault);
            }
            Staged::Refusal { fault, batch, states, offset } => {
                self.finish(now)?;
                // what was committed of a large transaction stays so
                let reached = self.committed.borrow().clone().unwrap_or(offset);
                if let Err(other) = self.say((&batch, &states), &reached, now) {
                    tracing::warn!(error = %other, "the refusal cannot be told on the control topic");
                }
                return Err(fault);
            }
        };
        self.settle(now)?;
        Ok(spare)
    }

    /// Nothing more is waiting: commits what is whole, or what has waited long enough.
    ///
    /// # Errors
    /// Kafka refused something, as in [`Self::take`].
    pub(super) fn rest(&mut self, now: Instant) -> Result<(), Fault> {
        match self.state {
            State::Whole(_) => self.close(now),
            State::Part(_) | State::Idle => self.settle(now),
        }
    }

    /// Nothing more will come: commits what is whole and withdraws what is not.
    ///
    /// # Errors
    /// Kafka refused something, as in [`Self::take`].
    pub(super) fn finish(&mut self, now: Instant) -> Result<(), Fault> {
        if matches!(self.state, State::Part(_)) {
            self.state = State::Idle;
            return self.log.abort();
        }
        self.close(now)?;
        self.store_marker(now)
    }

    const fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// Commits what has become too old or too large.
    fn settle(&mut self, now: Instant) -> Result<(), Fault> {
        let (open, age) = match &self.state {
            State::Whole(open) => (open, self.settings.linger),
            State::Part(open) => (open, self.part_limit),
            State::Idle if self.marker_due().is_none_or(|due| due <= now) => {
                return self.store_marker(now);
            }
            State::Idle => return Ok(()),
        };
        let is_due = now.duration_since(open.since) >= age || open.bytes >= self.settings.max_bytes;
        if is_due { self.close(now) } else { Ok(()) }
    }

    fn marker_due(&self) -> Option<Instant> {
        self.last_commit.map(|last| last + self.settings.offset_flush_interval)
    }

    fn records(
        &mut self,
        (batch, states): (&Batch, &[TableState]),
        offset: OffsetRecord,
        complete: bool,
        now: Instant,
    ) -> Result<(), Fault> {
        if !complete && matches!(self.state, State::Whole(_)) {
            // A fault in the large transaction that begins here must not take these with it.
            self.close(now)?;
        }
        // The records say more than a marker before them.
        self.marker = None;
        let (since, before) = match &self.state {
            State::Whole(open) | State::Part(open) => (open.since, open.bytes),
            State::Idle => {
                self.log.begin()?;
                (now, 0)
            }
        };
        self.log.produce(batch)?;
        self.log.produce_states(states)?;
        let open = Open { since, bytes: before + batch.byte_len(), offset };
        self.state = if complete { State::Whole(open) } else { State::Part(open) };
        Ok(())
    }

    /// Commits control records in a transaction of their own.
    fn say(
        &mut self,
        (batch, states): (&Batch, &[TableState]),
        offset: &OffsetRecord,
        now: Instant,
    ) -> Result<(), Fault> {
        self.marker = None;
        self.log.begin()?;
        self.log.produce(batch)?;
        self.log.produce_states(states)?;
        self.commit(offset, now)
    }

    /// Commits what is open with its own offset.
    fn close(&mut self, now: Instant) -> Result<(), Fault> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => Ok(()),
            State::Whole(open) | State::Part(open) => self.commit(&open.offset, now),
        }
    }

    fn flush(&mut self, offset: Option<OffsetRecord>, now: Instant) -> Result<(), Fault> {
        self.close(now)?;
        if let Some(offset) = offset {
            self.marker = Some(offset);
        }
        self.store_marker(now)
    }

    fn store_marker(&mut self, now: Instant) -> Result<(), Fault> {
        let Some(offset) = self.marker.take() else { return Ok(()) };
        self.log.begin()?;
        self.commit(&offset, now)
    }

    fn commit(&mut self, offset: &OffsetRecord, now: Instant) -> Result<(), Fault> {
        #[cfg(feature = "sabotage")]
        if crate::sabotage::Sabotage::AcknowledgeFirst.is_on() {
            self.committed.send_replace(Some(offset.clone()));
        }
        self.log.commit(offset)?;
        self.last_commit = Some(now);
        self.committed.send_replace(Some(offset.clone()));
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Tells the server how far it may forget, from a task of its own.
//!
//! Independent of the reader, so that a slow Kafka never costs the replication connection: while
//! nothing is read, status updates still go out at `status.update.interval.ms`.
//! **Invariant:** the flushed position never exceeds the last offset that Kafka has committed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tracing::Instrument as _;

use super::connection::{ReplicationReader, ReplicationWriter};
use super::offset::{Offset, Phase};
use super::wire::{Lsn, StatusUpdate, WireTime};
use crate::error::{Code, Fault};
use crate::stage::OffsetRecord;

/// What the reader tells whoever sends status updates.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    received: Arc<AtomicU64>,
    reply: Arc<Notify>,
    question: Arc<Notify>,
}

impl Progress {
    /// Everything up to here was received.
    pub(super) fn set_received(&self, position: Lsn) {
        self.received.fetch_max(position.0, Ordering::Relaxed);
    }

    /// The server is to say how far it has read its log.
    pub(super) fn ask_server(&self) {
        self.question.notify_one();
    }

    /// The server asked for an update.
    pub(super) fn ask_for_reply(&self) {
        self.reply.notify_one();
    }
}

/// Sends status updates until it is dropped.
#[derive(Debug)]
pub(super) struct StatusKeeper {
    progress: Progress,
    leave: Arc<Notify>,
    join: JoinHandle<Result<ReplicationWriter, Fault>>,
}

impl StatusKeeper {
    /// Starts to send on this half of the stream.
    pub(super) fn start(
        writer: ReplicationWriter,
        committed: watch::Receiver<Option<OffsetRecord>>,
        interval: Duration,
        start: Lsn,
    ) -> Self {
        let progress = Progress::default();
        progress.set_received(start);
        let leave = Arc::new(Notify::new());
        let sending = Sending {
            writer,
            committed,
            progress: progress.clone(),
            leave: Arc::clone(&leave),
            flushed: Lsn::ZERO,
        };
        let join = tokio::spawn(sending.run(interval).in_current_span());
        Self { progress, leave, join }
    }

    /// Where the reader says how far it is.
    pub(super) const fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Ends only if the server can no longer be told.
    pub(super) async fn broken(&mut self) -> Fault {
        match (&mut self.join).await {
            Ok(Err(fault)) => fault,
            Ok(Ok(_writer)) => Code::Internal.fault("the status task left before it was told to"),
            Err(error) => Code::Internal.fault("the status task ended").caused_by(&error),
        }
    }

    /// Waits for the publisher's last commit, tells the server of it, and ends the stream in
    /// order: when this returns the slot is free, and knows everything that was published.
    ///
    /// # Errors
    /// The server can no longer be told.
    pub(super) async fn leave(mut self, mut reader: ReplicationReader) -> Result<(), Fault> {
        self.leave.notify_one();
        let writer = match (&mut self.join).await {
            Ok(outcome) => outcome?,
            Err(error) => {
                return Err(Code::Internal.fault("the status task ended").caused_by(&error));
            }
        };
        while reader.next().await?.is_some() {}
        writer.close().await;
        Ok(())
    }
}

impl Drop for StatusKeeper {
    fn drop(&mut self) {
        self.join.abort();
    }
}

struct Sending {
    writer: ReplicationWriter,
    committed: watch::Receiver<Option<OffsetRecord>>,
    progress: Progress,
    leave: Arc<Notify>,
    flushed: Lsn,
}

impl Sending {
    async fn run(mut self, interval: Duration) -> Result<ReplicationWriter, Fault> {
        let mut tick = tokio::time::interval(interval);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut publisher_lives, mut is_leaving) = (true, false);
        while publisher_lives || !is_leaving {
            let is_due = tokio::select! {
                changed = self.committed.changed(), if publisher_lives => {
                    publisher_lives = changed.is_ok();
                    false
                }
                () = self.progress.reply.notified() => false,
                () = self.progress.question.notified() => true,
                () = self.leave.notified() => {
                    is_leaving = true;
                    false
                }
                _ = tick.tick() => true,
            };
            self.send(is_due).await?;
        }
        tracing::info!(position = %self.flushed, "the stream ends; all before this is in Kafka");
        self.writer.finish().await?;
        Ok(self.writer)
    }

    /// `ask`: the server is to answer, as a sign of life and of how far it has read its log.
    async fn send(&mut self, ask: bool) -> Result<(), Fault> {
        let committed = self.committed.borrow_and_update().clone();
        if let Some(position) = committed.as_ref().and_then(acknowledged) {
            self.flushed = self.flushed.max(position);
        }
        let written = Lsn(self.progress.received.load(Ordering::Relaxed)).max(self.flushed);
        let update = StatusUpdate {
            written,
            flushed: self.flushed,
            applied: self.flushed,
            clock: WireTime::from_unix_micros(clock_micros()),
            reply_requested: ask,
        };
        self.writer.send_status(&update).await
    }
}

/// What an offset allows the server to forget.
pub(super) fn acknowledged(record: &OffsetRecord) -> Option<Lsn> {
    match Offset::decode(&record.0).ok()?.phase {
        Phase::Streaming { end } => Some(end),
        Phase::Creating | Phase::Snapshot { .. } | Phase::SnapshotDone { .. } => None,
    }
}

/// The wall clock, microseconds since the epoch.
#[expect(clippy::disallowed_methods, reason = "this driver is where the clock is read")]
pub(super) fn clock_micros() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_micros()).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::postgres::offset::Inside;

    fn record(phase: Phase, inside: Option<Inside>) -> OffsetRecord {
        let offset = Offset {
            system_id: 1,
            timeline: 1,
            slot: "s".to_owned(),
            nonce: 1,
            phase,
            inside,
            settings_fingerprint: 0,
            publication_fingerprint: 0,
            publication_stamp: 0,
        };
        OffsetRecord(offset.encode().into())
    }

    #[test]
    fn only_a_streaming_offset_lets_the_server_forget_and_never_a_half_published_transaction() {
        let end = Lsn(100);
        let inside = Some(Inside { commit: Lsn(500), sequence: 3 });
        assert_eq!(acknowledged(&record(Phase::Streaming { end }, None)), Some(end));
        assert_eq!(acknowledged(&record(Phase::Streaming { end }, inside)), Some(end));
        assert_eq!(acknowledged(&record(Phase::Creating, None)), None);
        let snapshot = Phase::Snapshot { consistent_point: end, has_slot: true };
        assert_eq!(acknowledged(&record(snapshot, None)), None);
        assert_eq!(acknowledged(&OffsetRecord(b"garbage"[..].into())), None);
    }
}

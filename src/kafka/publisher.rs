//! The publisher: a thread of its own that owns the producer and empties the queue.
//!
//! librdkafka's calls block, so they have a thread; the rest of the task is told of the outcome
//! through channels. Knows no rule about transactions (they are in `boundary`).
//! **Invariants:** after the first fault nothing more is published by this producer; when the
//! thread has ended, its producer is gone.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::sync::{oneshot, watch};

use super::boundary::Boundaries;
use super::client::clock;
use super::offsets::{self, StoragePlace, Stored};
use super::queue::{OffsetRecord, Received, Receiver};
use super::settings::KafkaSettings;
use super::topic_list::TopicList;
use super::topics::{Topics, blocking};
use super::transaction::Transactions;
use crate::error::{Code, Fault};
use crate::observe::PublisherMetrics;

/// A running publisher. Dropping it stops the thread at once and leaves what is open to be
/// aborted; dropping the queue's sender lets it finish.
pub struct Publisher {
    settings: KafkaSettings,
    place: StoragePlace,
    committed: watch::Receiver<Option<OffsetRecord>>,
    outcome: oneshot::Receiver<Result<(), Fault>>,
    stop: Arc<AtomicBool>,
    metrics: Arc<PublisherMetrics>,
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Publisher {
    /// Sees that the internal topics exist, takes the transactional id over (every older producer
    /// with it is fenced off) and begins to publish what comes through the queue; counts what it
    /// does.
    ///
    /// # Errors
    /// The cluster does not answer, refuses access, or the properties are wrong.
    pub async fn start(
        settings: &KafkaSettings,
        topics: TopicList,
        queue: Receiver,
        metrics: Arc<PublisherMetrics>,
    ) -> Result<Self, Fault> {
        let admin = Topics::connect(settings).await?;
        let place = StoragePlace::ensure(settings, &admin).await?;
        let (committed_sender, committed) = watch::channel(None);
        let (ready_sender, ready) = oneshot::channel();
        let (outcome_sender, outcome) = oneshot::channel();
        let stop = Arc::new(AtomicBool::new(false));
        metrics.queue_limit.set_len(queue.limit());
        let work = Work {
            settings: settings.clone(),
            topics,
            queue,
            place: place.clone(),
            committed: committed_sender,
            stop: Arc::clone(&stop),
            metrics: Arc::clone(&metrics),
        };
        let publisher =
            Self { settings: settings.clone(), place, committed, outcome, stop, metrics };
        let span = tracing::Span::current();
        thread::Builder::new()
            .name("publisher".to_owned())
            .spawn(move || {
                let _entered = span.entered();
                let outcome = work.run(ready_sender);
                // Nobody may be left to be told.
                drop(outcome_sender.send(outcome));
            })
            .map_err(|error| {
                Code::KafkaClient.fault("the publisher's thread cannot start").caused_by(&error)
            })?;
        match ready.await {
            Ok(outcome) => outcome.map(|()| publisher),
            Err(_) => Err(ended_in_silence()),
        }
    }

    /// What an earlier task left in Kafka. The older producers are fenced off, so nothing can be
    /// added to it any more, except by this publisher.
    ///
    /// # Errors
    /// It cannot be read to the end. That never means that there is nothing.
    pub async fn stored(&self) -> Result<Stored, Fault> {
        let (settings, place) = (self.settings.clone(), self.place.clone());
        blocking(move || offsets::load(&settings, &place)).await
    }

    /// The last offset committed by this publisher; `None` before the first.
    pub fn committed(&self) -> watch::Receiver<Option<OffsetRecord>> {
        self.committed.clone()
    }

    /// What it counts.
    pub fn metrics(&self) -> Arc<PublisherMetrics> {
        Arc::clone(&self.metrics)
    }

    /// Waits for the end: after the sender is gone and everything complete is committed, or by a
    /// fault. Cancel-safe; to be awaited to the end once.
    ///
    /// # Errors
    /// The fault that was staged, or Kafka's.
    pub async fn ended(&mut self) -> Result<(), Fault> {
        (&mut self.outcome).await.unwrap_or_else(|_| Err(ended_in_silence()))
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn ended_in_silence() -> Fault {
    Code::Internal.fault("the publisher's thread ended without an outcome")
}

/// What the thread owns.
struct Work {
    settings: KafkaSettings,
    topics: TopicList,
    queue: Receiver,
    place: StoragePlace,
    committed: watch::Sender<Option<OffsetRecord>>,
    stop: Arc<AtomicBool>,
    metrics: Arc<PublisherMetrics>,
}

impl Work {
    fn run(self, ready: oneshot::Sender<Result<(), Fault>>) -> Result<(), Fault> {
        let Self { settings, topics, mut queue, place, committed, stop, metrics } = self;
        let counts = Arc::clone(&metrics);
        let transactions = match Transactions::open(&settings, topics, place, stop, counts) {
            Ok(transactions) => transactions,
            Err(fault) => {
                drop(ready.send(Err(fault.clone())));
                return Err(fault);
            }
        };
        // If whoever started this is gone, so is the sender: the queue ends at once.
        drop(ready.send(Ok(())));
        let timeout = settings.transaction_timeout();
        let mut boundaries =
            Boundaries::new(transactions, settings.boundaries.clone(), timeout, committed);
        let outcome = publish(&mut boundaries, &mut queue, &metrics);
        if outcome.is_err() {
            boundaries.log().give_up();
        }
        metrics.queue_bytes.set(0);
        metrics.forget_open();
        outcome
    }
}

fn publish(
    boundaries: &mut Boundaries<Transactions>,
    queue: &mut Receiver,
    metrics: &PublisherMetrics,
) -> Result<(), Fault> {
    loop {
        let received = queue.recv_timeout(boundaries.patience(clock()));
        metrics.queue_bytes.set_len(queue.bytes_in_flight());
        match received {
            Received::Staged(staged) => {
                if let Some(batch) = boundaries.take(staged, clock())? {
                    queue.recycle(batch);
                }
            }
            Received::Empty => {
                boundaries.rest(clock())?;
                boundaries.log().serve()?;
            }
            Received::Closed => return boundaries.finish(clock()),
        }
    }
}

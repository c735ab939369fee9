//! The bounded queue between reader and publisher, and what travels through it.
//!
//! The reader waits asynchronously while more bytes are in flight than allowed; the publisher
//! blocks on its own thread. Knows no Kafka client and no source; offsets and table states are
//! opaque bytes. **Invariants:** order is kept; an item counts until the publisher asks for the
//! next one; an item larger than the limit passes alone.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};

use crate::error::Fault;
use crate::record::{Batch, Header};

/// What is counted for an item beside its bytes, so that a flood of small ones is bounded too.
const ITEM_OVERHEAD: usize = 64;
/// Batches kept for reuse.
const SPARE_BATCHES: usize = 4;
/// A batch that grew beyond this is given back to the allocator.
const SPARE_CAPACITY: usize = 2 << 20;

/// A position to resume from, encoded by the source; opaque here.
#[derive(Clone, PartialEq, Eq)]
pub struct OffsetRecord(pub Arc<[u8]>);

impl fmt::Debug for OffsetRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OffsetRecord({})", String::from_utf8_lossy(&self.0).escape_debug())
    }
}

/// What the source wants to know about a table after a restart; opaque here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableState {
    /// The table's key, unique in the connector.
    pub key: String,
    /// The state; `None` forgets it.
    pub value: Option<Vec<u8>>,
}

/// One step of the stream, in the source's order.
#[derive(Debug)]
pub enum Staged {
    /// Records of source transactions.
    Records {
        /// The finished records.
        batch: Batch,
        /// States that hold once the records are out: written in their Kafka transaction.
        states: Vec<TableState>,
        /// If `complete`, the position after the batch; else how far inside the transaction it
        /// reaches.
        offset: OffsetRecord,
        /// Whether the batch ends at a transaction's end. Otherwise it is a part of a transaction
        /// larger than the stage.
        complete: bool,
    },
    /// Control records and table states of the transaction that follows: committed in a Kafka
    /// transaction of their own before anything later.
    Control {
        /// The control records.
        batch: Batch,
        /// The states that belong to them.
        states: Vec<TableState>,
        /// The position that says that they are out.
        offset: OffsetRecord,
    },
    /// Nothing to publish, but the source may forget up to here.
    Marker {
        /// The position.
        offset: OffsetRecord,
    },
    /// Commits everything before, then stores this offset at once and acknowledges it.
    Flush {
        /// The offset to store, if any.
        offset: Option<OffsetRecord>,
        /// Told when it is done.
        done: oneshot::Sender<Result<(), Fault>>,
    },
    /// A definite fault at this place: every complete transaction before is committed, an
    /// unfinished one aborted; then the publisher ends with this fault.
    Fault(Fault),
    /// The same, and before the end it is told why, in a Kafka transaction of its own.
    Refusal {
        /// The fault.
        fault: Fault,
        /// The control records that tell of it.
        batch: Batch,
        /// The states that belong to them.
        states: Vec<TableState>,
        /// The position that is stored if none was committed yet.
        offset: OffsetRecord,
    },
}

impl Staged {
    /// The bytes for which it counts in the queue.
    pub fn weight(&self) -> usize {
        let content = match self {
            Self::Records { batch, states, .. }
            | Self::Control { batch, states, .. }
            | Self::Refusal { batch, states, .. } => {
                let states: usize = states
                    .iter()
                    .map(|state| state.key.len() + state.value.as_ref().map_or(0, Vec::len))
                    .sum();
                batch_weight(batch) + states
            }
            Self::Marker { .. } | Self::Flush { .. } | Self::Fault(_) => 0,
        };
        content + ITEM_OVERHEAD
    }
}

fn batch_weight(batch: &Batch) -> usize {
    batch.byte_len() + size_of_val(batch.records()) + batch.header_mark() * size_of::<Header>()
}

/// The other end is gone: the publisher ended, and its outcome says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the publisher has ended")]
pub struct Closed;

/// What the receiver got.
#[derive(Debug)]
pub enum Received {
    /// The next item.
    Staged(Staged),
    /// Nothing there within the time.
    Empty,
    /// Nothing there, and the sender is gone.
    Closed,
}

/// The reader's end.
#[derive(Debug)]
pub struct Sender {
    items: mpsc::Sender<(Staged, u32)>,
    shared: Arc<Shared>,
}

/// The publisher's end.
#[derive(Debug)]
pub struct Receiver {
    items: mpsc::Receiver<(Staged, u32)>,
    /// What the item that is being worked on counts for.
    held: u32,
    shared: Arc<Shared>,
}

/// Room for one item, reserved.
#[derive(Debug)]
pub struct Permit<'a> {
    sender: &'a Sender,
    weight: u32,
}

#[derive(Debug)]
struct Shared {
    room: Semaphore,
    limit: u32,
    in_flight: AtomicUsize,
    spare: Mutex<VecDeque<Batch>>,
}

/// A queue in which at most `byte_limit` bytes are in flight.
pub fn channel(byte_limit: usize) -> (Sender, Receiver) {
    let limit = u32::try_from(byte_limit).unwrap_or(u32::MAX).max(1);
    let shared = Arc::new(Shared {
        room: Semaphore::new(limit as usize),
        limit,
        in_flight: AtomicUsize::new(0),
        spare: Mutex::default(),
    });
    let (sender, receiver) = mpsc::channel();
    (
        Sender { items: sender, shared: Arc::clone(&shared) },
        Receiver { items: receiver, held: 0, shared },
    )
}

impl Sender {
    /// Sends an item as soon as there is room.
    ///
    /// Not cancel-safe: the item is lost with the future. Whoever waits for other things too keeps
    /// the future, or takes [`Sender::reserve`].
    ///
    /// # Errors
    /// The publisher has ended.
    pub async fn send(&self, staged: Staged) -> Result<(), Closed> {
        self.reserve(staged.weight()).await?.send(staged)
    }

    /// Waits for room for an item of this weight. Cancel-safe.
    ///
    /// # Errors
    /// The publisher has ended.
    pub async fn reserve(&self, weight: usize) -> Result<Permit<'_>, Closed> {
        let weight = u32::try_from(weight).unwrap_or(u32::MAX).clamp(1, self.shared.limit);
        let Ok(room) = self.shared.room.acquire_many(weight).await else { return Err(Closed) };
        room.forget();
        self.shared.in_flight.fetch_add(weight as usize, Ordering::Relaxed);
        Ok(Permit { sender: self, weight })
    }

    /// An empty batch, with memory of an earlier one if there is one to spare.
    pub fn batch(&self) -> Batch {
        self.shared.spare().pop_front().unwrap_or_default()
    }

    /// Bytes in the queue, the item that is being published included.
    pub fn bytes_in_flight(&self) -> usize {
        self.shared.in_flight.load(Ordering::Relaxed)
    }
}

impl Permit<'_> {
    /// Sends the item for which the room was reserved.
    ///
    /// # Errors
    /// The publisher has ended.
    pub fn send(mut self, staged: Staged) -> Result<(), Closed> {
        let weight = std::mem::take(&mut self.weight);
        self.sender.items.send((staged, weight)).map_err(|mpsc::SendError(_)| Closed)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.sender.shared.release(self.weight);
    }
}

impl Receiver {
    /// How many bytes may be in flight.
    pub fn limit(&self) -> usize {
        self.shared.limit as usize
    }

    /// Bytes in the queue, the item that is being published included.
    pub fn bytes_in_flight(&self) -> usize {
        self.shared.in_flight.load(Ordering::Relaxed)
    }

    /// The next item; waits at most for `timeout`.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Received {
        self.release_held();
        match self.items.recv_timeout(timeout) {
            Ok(item) => self.hold(item),
            Err(mpsc::RecvTimeoutError::Timeout) => Received::Empty,
            Err(mpsc::RecvTimeoutError::Disconnected) => Received::Closed,
        }
    }

    /// The next item, if it is there.
    pub fn try_recv(&mut self) -> Received {
        self.release_held();
        match self.items.try_recv() {
            Ok(item) => self.hold(item),
            Err(mpsc::TryRecvError::Empty) => Received::Empty,
            Err(mpsc::TryRecvError::Disconnected) => Received::Closed,
        }
    }

    /// Gives a batch's memory back to the sender.
    pub fn recycle(&self, mut batch: Batch) {
        if batch.capacity() > SPARE_CAPACITY {
            return;
        }
        batch.clear();
        let mut spare = self.shared.spare();
        if spare.len() < SPARE_BATCHES {
            spare.push_back(batch);
        }
    }

    fn hold(&mut self, (staged, weight): (Staged, u32)) -> Received {
        self.held = weight;
        Received::Staged(staged)
    }

    fn release_held(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.shared.release(held);
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.room.close();
    }
}

impl Shared {
    fn release(&self, weight: u32) {
        if weight > 0 {
            self.in_flight.fetch_sub(weight as usize, Ordering::Relaxed);
            self.room.add_permits(weight as usize);
        }
    }

    fn spare(&self) -> std::sync::MutexGuard<'_, VecDeque<Batch>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(bytes: usize) -> Staged {
        let mut batch = Batch::new();
        batch.append(&vec![b'x'; bytes]);
        let offset = OffsetRecord(Arc::from(&b"o"[..]));
        Staged::Records { batch, states: Vec::new(), offset, complete: true }
    }

    #[track_caller]
    fn received_bytes(received: Received) -> usize {
        match received {
            Received::Staged(Staged::Records { batch, .. }) => batch.byte_len(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn the_sender_waits_until_the_receiver_asks_for_more() {
        let (sender, mut receiver) = channel(1000);
        sender.send(records(400)).await.unwrap();
        sender.send(records(300)).await.unwrap();
        let mut third = Box::pin(sender.send(records(200)));
        assert!(futures_poll(&mut third).is_none(), "no room yet");
        assert_eq!(received_bytes(receiver.try_recv()), 400);
        assert!(futures_poll(&mut third).is_none(), "the first item is still being worked on");
        assert_eq!(received_bytes(receiver.try_recv()), 300);
        third.await.unwrap();
        assert_eq!(received_bytes(receiver.try_recv()), 200);
        assert!(matches!(receiver.try_recv(), Received::Empty));
        assert_eq!(sender.bytes_in_flight(), 0);
    }

    #[tokio::test]
    async fn an_item_larger_than_the_limit_passes_alone() {
        let (sender, mut receiver) = channel(1000);
        sender.send(records(10)).await.unwrap();
        let mut large = Box::pin(sender.send(records(50_000)));
        assert!(futures_poll(&mut large).is_none());
        assert_eq!(received_bytes(receiver.try_recv()), 10);
        assert!(matches!(receiver.try_recv(), Received::Empty));
        large.await.unwrap();
        let mut after = Box::pin(sender.send(records(1)));
        assert!(futures_poll(&mut after).is_none());
        assert_eq!(received_bytes(receiver.try_recv()), 50_000);
        assert!(futures_poll(&mut after).is_none());
        assert!(matches!(receiver.try_recv(), Received::Empty));
        after.await.unwrap();
    }

    #[tokio::test]
    async fn a_cancelled_reservation_gives_its_room_back() {
        let (sender, mut receiver) = channel(500);
        drop(sender.reserve(500).await.unwrap());
        let waiting = sender.reserve(500).await.unwrap();
        drop(Box::pin(sender.reserve(1)));
        waiting.send(records(1)).unwrap();
        assert_eq!(received_bytes(receiver.try_recv()), 1);
        drop(receiver.try_recv());
        assert_eq!(sender.bytes_in_flight(), 0);
    }

    #[tokio::test]
    async fn both_ends_notice_that_the_other_is_gone() {
        let (sender, mut receiver) = channel(1000);
        sender.send(records(1)).await.unwrap();
        drop(sender);
        assert_eq!(received_bytes(receiver.recv_timeout(Duration::ZERO)), 1);
        assert!(matches!(receiver.recv_timeout(Duration::from_secs(60)), Received::Closed));

        let (sender, receiver) = channel(100);
        sender.send(records(90)).await.unwrap();
        let mut waiting = Box::pin(sender.send(records(90)));
        assert!(futures_poll(&mut waiting).is_none());
        drop(receiver);
        assert_eq!(waiting.await, Err(Closed));
        assert_eq!(sender.send(records(1)).await, Err(Closed));
    }

    #[tokio::test]
    async fn memory_is_reused_but_not_hoarded() {
        let (sender, receiver) = channel(100);
        let mut batch = sender.batch();
        batch.append(&[0; 1000]);
        receiver.recycle(batch);
        let batch = sender.batch();
        assert!(batch.is_empty() && batch.byte_len() == 0 && batch.capacity() >= 1000);
        let mut huge = Batch::new();
        huge.append(&vec![0; SPARE_CAPACITY + 1]);
        receiver.recycle(huge);
        assert_eq!(sender.batch().capacity(), 0);
    }

    /// Polls once; a waker that does nothing is enough to see whether it is ready.
    fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::Pin::new(future).poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }
}

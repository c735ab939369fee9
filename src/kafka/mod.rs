//! Kafka: the transactional producer, the offset record, table states and topics.
//!
//! Finished batches come through a bounded [`queue`] and leave in Kafka transactions that carry
//! the source's offset. Knows no source: offsets and table states are opaque bytes, records are
//! finished. **Invariant:** an offset is acknowledged only after the transaction that contains it
//! was committed.

pub mod queue;
mod topic_list;

pub use queue::{
    Closed, OffsetRecord, Permit, Received, Receiver, Sender, Staged, TableState, channel,
};
pub use topic_list::TopicList;

//! Kafka: the transactional producer, the offset record, table states and topics.
//!
//! Finished batches come through a bounded [`queue`] and leave in Kafka transactions that carry
//! the source's offset. Knows no source: offsets and table states are opaque bytes, records are
//! finished. **Invariant:** an offset is acknowledged only after the transaction that contains it
//! was committed.

mod bite;
mod boundary;
mod breather;
mod client;
mod cluster;
mod faults;
mod flush;
mod hanging;
pub mod murmur2;
pub mod offsets;
mod properties;
mod publisher;
pub mod queue;
mod settings;
mod sizes;
mod topic_list;
mod topics;
mod transaction;

pub use client::validate;
pub use cluster::cluster_id;
pub use faults::client_refused;
pub use offsets::Stored;
pub use properties::{ClientKind, ClientProperties, PropertyFault};
pub use publisher::Publisher;
pub use queue::{
    Closed, OffsetRecord, Permit, Received, Receiver, Sender, Staged, TableState, channel,
};
pub use settings::{
    BoundarySettings, InternalTopic, KafkaSettings, TopicCreation, TopicGroup, TopicTemplate,
    topic_pattern, transactional_id,
};
pub use sizes::SizeLimits;
pub use topic_list::{TopicList, WrittenTopics};
pub use topics::{CleanupPolicy, TopicFacts, Topics};

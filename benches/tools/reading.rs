//! A reader of whole topics, and the number in a row's key.
//!
//! Knows Confluent's framing and the first field of an Avro record, nothing more.
//! **Invariant:** whatever a topic holds is read without a panic.

use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::BorrowedMessage;
use rdkafka::metadata::MetadataTopic;
use rdkafka::{Offset, TopicPartitionList};

use crate::Failure;

/// How many errors in a row, each of which may heal, are waited out.
const PATIENCE: usize = 100;

/// What comes next from the topics.
pub(crate) enum Next<'a> {
    /// A record.
    Record(BorrowedMessage<'a>),
    /// Nothing for a while.
    Nothing,
    /// One partition is read to its end.
    End,
}

/// A `read_committed` reader of all partitions of some topics, from their beginning.
pub(crate) struct Reader {
    consumer: BaseConsumer,
    /// How many partitions are read.
    pub(crate) partitions: usize,
}

impl Reader {
    pub(crate) fn open(bootstrap: &str, topics: &[String]) -> Result<Self, Failure> {
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", bootstrap)
            .set("group.id", "tidegate-bench")
            .set("isolation.level", "read_committed")
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("fetch.wait.max.ms", "5")
            .set("fetch.queue.backoff.ms", "1")
            .set("queued.max.messages.kbytes", "65536")
            .set("socket.nagle.disable", "true")
            .create()?;
        let mut list = TopicPartitionList::new();
        for topic in topics {
            let metadata = consumer.fetch_metadata(Some(topic), Duration::from_secs(20))?;
            for partition in metadata.topics().iter().flat_map(MetadataTopic::partitions) {
                list.add_partition_offset(topic, partition.id(), Offset::Beginning)?;
            }
        }
        if list.count() == 0 {
            return Err("the topics have no partitions".into());
        }
        consumer.assign(&list)?;
        Ok(Self { consumer, partitions: list.count() })
    }

    pub(crate) fn next(&self, patience: Duration) -> Result<Next<'_>, Failure> {
        // a broker that is busy may drop a connection; the client makes a new one by itself
        for _ in 0..PATIENCE {
            return match self.consumer.poll(patience) {
                None => Ok(Next::Nothing),
                Some(Ok(message)) => Ok(Next::Record(message)),
                Some(Err(KafkaError::PartitionEOF(_))) => Ok(Next::End),
                Some(Err(KafkaError::MessageConsumption(_))) => continue,
                Some(Err(error)) => Err(error.into()),
            };
        }
        Err("the broker cannot be read".into())
    }
}

/// The first field of a framed Avro key, which must be an int or a long.
pub(crate) fn number_in_key(key: Option<&[u8]>) -> Option<i64> {
    let (&magic, rest) = key?.split_first()?;
    let body = rest.get(4..)?;
    if magic != 0 {
        return None;
    }
    let mut value = 0_u64;
    for (index, byte) in body.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
        }
    }
    None
}

//! Whether a record fits, asked before anything of its transaction is in Kafka.
//!
//! Two limits can refuse a record: the producer's `max.request.size` and the topic's
//! `max.message.bytes`. Both are computed as client and broker compute them. Knows no Kafka
//! client. **Invariant:** an uncompressed record that passes here is refused by neither.

use std::ops::Range;

use super::client;
use super::settings::KafkaSettings;
use super::topic_list::TopicList;
use super::topics::TopicFacts;
use crate::error::{Code, Fault};
use crate::record::{Batch, Record, TopicId};

/// What librdkafka adds to every record when it compares with its limit
/// (`RD_KAFKAP_MESSAGE_V2_MAX_OVERHEAD`: every number at its longest).
const CLIENT_OVERHEAD: usize = 36;
/// The header of a record batch (Kafka protocol guide, "Record Batch").
const BATCH_HEADER: usize = 61;

/// The limits of one task's records.
#[derive(Clone, Debug)]
pub struct SizeLimits {
    max_request_size: usize,
    /// Whether the broker sees records compressed, so that their size there is not known here.
    is_compressed: bool,
    /// `max.message.bytes` by topic number, where it is known.
    topics: Vec<Option<usize>>,
}

impl SizeLimits {
    /// The producer's limit; topics are added by [`Self::learn`].
    pub fn new(settings: &KafkaSettings) -> Self {
        let compression = settings.producer.get("compression.type").unwrap_or("none");
        Self {
            max_request_size: client::max_request_size(settings),
            is_compressed: compression != "none",
            topics: Vec::new(),
        }
    }

    /// No limit of the producer's.
    #[cfg(test)]
    pub(crate) const fn unlimited() -> Self {
        Self { max_request_size: usize::MAX, is_compressed: false, topics: Vec::new() }
    }

    /// Takes a topic's limit into account.
    pub fn learn(&mut self, topic: TopicId, facts: &TopicFacts) {
        let index = topic.0 as usize;
        if self.topics.len() <= index {
            self.topics.resize(index + 1, None);
        }
        if let Some(limit) = self.topics.get_mut(index) {
            *limit = facts.max_message_bytes;
        }
    }

    /// Checks the records in a range of a batch, by number: those of one change, for instance.
    ///
    /// # Errors
    /// A record is too large; the fault names topic, size and the limit that it exceeds.
    pub fn check(
        &self,
        batch: &Batch,
        records: Range<usize>,
        list: &TopicList,
    ) -> Result<(), Fault> {
        for record in batch.records().get(records).unwrap_or_default() {
            self.check_record(batch, record, list)?;
        }
        Ok(())
    }

    fn check_record(&self, batch: &Batch, record: &Record, list: &TopicList) -> Result<(), Fault> {
        let wire_size = WireSize::of(batch, record);
        let size = wire_size.for_client();
        if size > self.max_request_size {
            return Err(too_large(list, record, size, self.max_request_size, "max.request.size"));
        }
        let limit = self.topics.get(record.topic.0 as usize).copied().flatten();
        match limit {
            Some(limit) if !self.is_compressed && wire_size.for_broker() > limit => {
                let size = wire_size.for_broker();
                Err(too_large(list, record, size, limit, "max.message.bytes"))
            }
            _ => Ok(()),
        }
    }
}

fn too_large(list: &TopicList, record: &Record, size: usize, limit: usize, name: &str) -> Fault {
    let topic = list.name(record.topic).unwrap_or_default();
    let whose = if name == "max.request.size" { "the producer's" } else { "the topic's" };
    Code::RecordTooLarge.fault(format!(
        "a record of {size} bytes for topic '{topic}' exceeds {whose} {name} of {limit} bytes"
    ))
}

/// The parts from which client and broker compute a record's size.
struct WireSize {
    key: Option<usize>,
    value: Option<usize>,
    header_count: usize,
    headers: usize,
}

impl WireSize {
    fn of(batch: &Batch, record: &Record) -> Self {
        let headers = batch.headers(record);
        Self {
            key: record.key.map(crate::record::Span::len),
            value: record.value.map(crate::record::Span::len),
            header_count: headers.len(),
            headers: headers
                .iter()
                .map(|header| {
                    let name = header.name.len();
                    varint(name) + name + field(header.value.map(crate::record::Span::len))
                })
                .sum(),
        }
    }

    fn for_client(&self) -> usize {
        CLIENT_OVERHEAD + self.key.unwrap_or(0) + self.value.unwrap_or(0) + self.headers
    }

    /// The size of a batch with this record alone: attributes, time and offset deltas of one byte
    /// each, then key, value and headers, all behind their length.
    fn for_broker(&self) -> usize {
        let body =
            3 + field(self.key) + field(self.value) + varint(self.header_count) + self.headers;
        BATCH_HEADER + varint(body) + body
    }
}

/// A length and that many bytes; null is the length −1.
fn field(len: Option<usize>) -> usize {
    len.map_or(1, |len| varint(len) + len)
}

/// Bytes of a length as a zig-zag varint.
const fn varint(value: usize) -> usize {
    let bits = usize::BITS - value.leading_zeros() + 1;
    bits.div_ceil(7) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Header;

    fn batch(key: Option<usize>, value: Option<usize>, headers: &[(usize, usize)]) -> Batch {
        let mut batch = Batch::new();
        for (name, value) in headers {
            let name = batch.append(&vec![b'n'; *name]);
            let value = Some(batch.append(&vec![0; *value]));
            batch.push_header(Header { name, value });
        }
        let key = key.map(|len| batch.append(&vec![0; len]));
        let value = value.map(|len| batch.append(&vec![0; len]));
        let headers = 0..headers.len();
        let topic = TopicId(0);
        batch.push(Record { topic, partition: None, key, value, headers, sequence: 0, part: 0 });
        batch
    }

    #[track_caller]
    fn check(client: usize, topic: Option<usize>, value: usize, expect: Option<&str>) {
        let list = TopicList::new();
        list.id("srv.public.t");
        let limits =
            SizeLimits { max_request_size: client, is_compressed: false, topics: vec![topic] };
        let outcome = limits.check(&batch(Some(4), Some(value), &[]), 0..1, &list);
        assert_eq!(outcome.map_err(|fault| fault.message().to_owned()).err().as_deref(), expect);
    }

    #[test]
    fn the_smaller_limit_refuses_and_is_named() {
        check(1000, Some(2000), 960, None);
        check(
            1000,
            Some(2000),
            961,
            Some(
                "a record of 1001 bytes for topic 'srv.public.t' exceeds the producer's \
                 max.request.size of 1000 bytes",
            ),
        );
        check(2000, Some(1000), 926, None);
        check(
            2000,
            Some(1000),
            927,
            Some(
                "a record of 1001 bytes for topic 'srv.public.t' exceeds the topic's \
                 max.message.bytes of 1000 bytes",
            ),
        );
        check(2000, None, 1900, None);
    }

    #[test]
    fn sizes_are_those_of_the_protocol() {
        let size = |key, value, headers: &[(usize, usize)]| {
            let batch = batch(key, value, headers);
            WireSize::of(&batch, &batch.records()[0]).for_broker()
        };
        // length, attributes, two deltas, key −1, value −1, no headers
        assert_eq!(size(None, None, &[]), 61 + 7);
        assert_eq!(size(Some(63), Some(0), &[]), 61 + 2 + 3 + 64 + 1 + 1);
        assert_eq!(size(Some(64), None, &[(1, 2)]), 61 + 2 + 3 + 66 + 1 + 1 + 5);
        assert_eq!([0, 63, 64, 8191, 8192].map(varint), [1, 1, 2, 2, 3]);
    }
}

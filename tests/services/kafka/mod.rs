//! The Kafka side against a real broker: what readers see, under faults at each step.
//!
//! `TIDEGATE_TEST_KAFKA` is a plain listener. `TIDEGATE_TEST_KAFKA_SASL` is a SASL/PLAIN listener
//! of the same cluster, at which user `mallory` (password `mallory-secret`) may describe but not
//! write topics whose name begins with `denied.`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests panic")]

mod offsets;
mod publishing;
mod topics;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::{Headers as _, Message as _};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use tidegate::error::Fault;
use tidegate::kafka::{
    BoundarySettings, ClientKind, ClientProperties, InternalTopic, KafkaSettings, OffsetRecord,
    Publisher, Sender, Staged, TopicCreation, TopicList, channel,
};
use tidegate::record::{Batch, Header, Record, TopicId};
use tokio::sync::oneshot;

/// The broker's address, unless the test is to be skipped.
fn broker() -> Option<String> {
    crate::service("TIDEGATE_TEST_KAFKA")
}

/// A name that no other test and no other run has.
#[expect(clippy::disallowed_methods, reason = "a name has to differ from the last run's")]
fn unique(name: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    format!("{name}-{nanos:x}-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Settings of a connector with topics of its own.
fn settings(broker: &str, name: &str, producer: &[(&str, &str)]) -> KafkaSettings {
    let connector = unique(name);
    let servers = [("bootstrap.servers", broker)];
    let properties = |kind, more: &[(&str, &str)]| {
        let all = servers.iter().chain(more).copied();
        ClientProperties::translate(kind, all).unwrap()
    };
    KafkaSettings {
        producer: properties(ClientKind::Producer, producer),
        consumer: properties(ClientKind::Consumer, &[]),
        admin: properties(ClientKind::Admin, &[]),
        source_partition: "srv".into(),
        transactional_id: tidegate::kafka::transactional_id("test", &connector),
        offsets_topic: InternalTopic {
            partitions: 2,
            ..InternalTopic::new(format!("{connector}.offsets"))
        },
        states_topic: InternalTopic {
            partitions: 1,
            ..InternalTopic::new(format!("{connector}.states"))
        },
        boundaries: BoundarySettings {
            linger: Duration::from_millis(100),
            max_bytes: 1 << 20,
            offset_flush_interval: Duration::from_secs(5),
        },
        topic_creation: TopicCreation::default(),
        request_timeout: Duration::from_secs(20),
        connector,
    }
}

/// A task's Kafka side.
struct Task {
    settings: KafkaSettings,
    list: TopicList,
    topic: TopicId,
    sender: Sender,
    publisher: Publisher,
}

impl Task {
    async fn start(settings: &KafkaSettings) -> Self {
        Self::try_start(settings).await.unwrap()
    }

    async fn try_start(settings: &KafkaSettings) -> Result<Self, Fault> {
        let list = TopicList::new();
        let topic = list.id(&topic_of(settings));
        let (sender, receiver) = channel(1 << 20);
        let publisher = Publisher::start(settings, list.clone(), receiver, Arc::default()).await?;
        Ok(Self { settings: settings.clone(), list, topic, sender, publisher })
    }

    async fn create_topic(&self) {
        let topics = tidegate::kafka::Topics::connect(&self.settings).await.unwrap();
        topics.ensure(&topic_of(&self.settings)).await.unwrap();
    }

    async fn send(&mut self, staged: Staged) {
        if self.sender.send(staged).await.is_err() {
            panic!("ended early: {:?}", self.publisher.ended().await);
        }
    }

    /// One source transaction with one record.
    async fn transaction(&mut self, value: &str) {
        let staged = self.records(&[value], value, true);
        self.send(staged).await;
    }

    fn records(&self, values: &[&str], offset_text: &str, complete: bool) -> Staged {
        let batch = batch(self.topic, values);
        Staged::Records { batch, states: Vec::new(), offset: offset(offset_text), complete }
    }

    async fn send_records(&mut self, values: &[&str], offset_text: &str, complete: bool) {
        let staged = self.records(values, offset_text, complete);
        self.send(staged).await;
    }

    /// Commits everything sent so far.
    async fn flush(&mut self) -> Result<(), Fault> {
        let (done, told) = oneshot::channel();
        self.send(Staged::Flush { offset: None, done }).await;
        told.await.unwrap()
    }

    /// Ends as a killed process does: nothing more is said to the broker.
    async fn crash(mut self) {
        let publisher = &mut self.publisher;
        let outcome = tokio::time::timeout(Duration::ZERO, publisher.ended()).await;
        assert!(outcome.is_err(), "already ended: {outcome:?}");
        drop(self.publisher);
        drop(self.sender);
    }

    /// Ends after everything complete is committed.
    async fn finish(self) -> Result<(), Fault> {
        let Self { sender, mut publisher, .. } = self;
        drop(sender);
        publisher.ended().await
    }

    fn acknowledged(&self) -> Option<String> {
        self.publisher.committed().borrow().as_ref().map(text)
    }

    async fn stored(&self) -> Option<String> {
        self.publisher.stored().await.unwrap().offset.as_ref().map(text)
    }

    async fn committed_values(&self) -> Vec<String> {
        values(&self.settings, &topic_of(&self.settings), "read_committed").await
    }
}

fn topic_of(settings: &KafkaSettings) -> String {
    format!("{}.t", settings.connector)
}

fn text(offset: &OffsetRecord) -> String {
    String::from_utf8(offset.0.to_vec()).unwrap()
}

fn offset(text: &str) -> OffsetRecord {
    OffsetRecord(Arc::from(text.as_bytes()))
}

/// Records without key.
fn batch(topic: TopicId, values: &[&str]) -> Batch {
    let mut batch = Batch::new();
    for (sequence, value) in values.iter().enumerate() {
        add(&mut batch, topic, None, Some(value.as_bytes()), &[]);
        assert_eq!(batch.records().len(), sequence + 1);
    }
    batch
}

fn add(
    batch: &mut Batch,
    topic: TopicId,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[(&str, Option<&[u8]>)],
) {
    let first = batch.header_mark();
    for (name, value) in headers {
        let name = batch.append(name.as_bytes());
        let value = value.map(|value| batch.append(value));
        batch.push_header(Header { name, value });
    }
    let key = key.map(|bytes| batch.append(bytes));
    let value = value.map(|bytes| batch.append(bytes));
    let headers = first..batch.header_mark();
    batch.push(Record { topic, partition: None, key, value, headers, sequence: 0, part: 0 });
}

/// What a reader gets from a topic, partition by partition.
#[derive(Debug)]
struct Read {
    partition: i32,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: BTreeMap<String, Option<Vec<u8>>>,
}

async fn values(settings: &KafkaSettings, topic: &str, isolation: &str) -> Vec<String> {
    let records = read(settings, topic, isolation).await;
    records.into_iter().map(|r| String::from_utf8(r.value.unwrap_or_default()).unwrap()).collect()
}

/// Reads a topic to its present end.
async fn read(settings: &KafkaSettings, topic: &str, isolation: &str) -> Vec<Read> {
    let servers = settings.consumer.bootstrap_servers().to_owned();
    let (topic, isolation) = (topic.to_owned(), isolation.to_owned());
    tokio::task::spawn_blocking(move || read_blocking(&servers, &topic, &isolation)).await.unwrap()
}

fn read_blocking(servers: &str, topic: &str, isolation: &str) -> Vec<Read> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", servers)
        .set("group.id", "test-reader")
        .set("isolation.level", isolation)
        .set("enable.partition.eof", "true")
        .set("enable.auto.commit", "false")
        .create()
        .unwrap();
    let timeout = Duration::from_secs(20);
    let metadata = consumer.fetch_metadata(Some(topic), timeout).unwrap();
    let partitions = metadata.topics()[0].partitions().len();
    let mut assignment = TopicPartitionList::new();
    for partition in 0..partitions {
        let partition = i32::try_from(partition).unwrap();
        assignment.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&assignment).unwrap();
    let mut records = Vec::new();
    let mut ends = 0;
    while ends < partitions {
        match consumer.poll(timeout).expect("the reader gets its end") {
            Ok(message) => records.push(Read {
                partition: message.partition(),
                key: message.key().map(<[u8]>::to_vec),
                value: message.payload().map(<[u8]>::to_vec),
                headers: message.headers().map_or_else(BTreeMap::new, |headers| {
                    headers
                        .iter()
                        .map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec)))
                        .collect()
                }),
            }),
            Err(KafkaError::PartitionEOF(_)) => ends += 1,
            Err(error) => panic!("{error}"),
        }
    }
    records
}

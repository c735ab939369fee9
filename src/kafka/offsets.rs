//! What a task knows about itself, in Kafka: its offset and its tables' states.
//!
//! Both live in compacted topics, one partition for each connector, and are written by the
//! publisher inside the transactions that they describe. Here they are read, once, after
//! `init_transactions`: whatever an older producer left open is ended by then. Knows no source.
//! **Invariant:** only a read that reached the high watermark may say "there is no offset".

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::boundary::TransactionLog as _;
use super::client::{self, Events, clock};
use super::faults;
use super::hanging;
use super::murmur2;
use super::queue::{OffsetRecord, TableState};
use super::settings::KafkaSettings;
use super::topic_list::TopicList;
use super::topics::{Topics, blocking};
use super::transaction::Transactions;
use crate::error::{Code, Fault};
use crate::observe::PublisherMetrics;

/// How much of the partition's end is searched for the offset, step by step, before all of it.
const TAILS: [i64; 2] = [1_000, 50_000];
/// One look at the consumer.
const TICK: Duration = Duration::from_millis(100);

/// Where a connector's offset and states are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoragePlace {
    pub(super) offsets_topic: String,
    pub(super) offsets_partition: i32,
    /// How many that topic has.
    offsets_partitions: i32,
    pub(super) offset_key: String,
    pub(super) states_topic: String,
    pub(super) states_partition: i32,
    /// All keys of this connector's states begin so.
    state_prefix: String,
    /// And so, whatever their source partition.
    connector_prefix: String,
}

impl StoragePlace {
    /// Creates the internal topics if need be, and finds the connector's partitions.
    pub(super) async fn ensure(settings: &KafkaSettings, topics: &Topics) -> Result<Self, Fault> {
        let offsets = topics.ensure_internal(&settings.offsets_topic).await?;
        let states = topics.ensure_internal(&settings.states_topic).await?;
        Ok(Self::new(settings, offsets, states))
    }

    pub(super) fn new(settings: &KafkaSettings, offsets: i32, states: i32) -> Self {
        let connector = settings.connector.as_bytes();
        // As Kafka Connect keys its offsets: a JSON array that begins with the connector's name.
        let offset_key = json_array(&[&settings.connector, &settings.source_partition]);
        Self {
            offsets_topic: settings.offsets_topic.name.clone(),
            offsets_partition: murmur2::partition(connector, offsets),
            offsets_partitions: offsets,
            state_prefix: offset_key.trim_end_matches(']').to_owned() + ",",
            connector_prefix: connector_prefix(&settings.connector),
            offset_key,
            states_topic: settings.states_topic.name.clone(),
            states_partition: murmur2::partition(connector, states),
        }
    }

    /// The record key of a table's state.
    pub(super) fn state_key(&self, key: &str) -> String {
        let Self { state_prefix, .. } = self;
        format!("{state_prefix}{}]", json_string(key))
    }

    /// The table's key of a record's key, if it is a state of this connector.
    fn table_key(&self, record_key: &[u8]) -> Option<String> {
        let rest = record_key.strip_prefix(self.state_prefix.as_bytes())?.strip_suffix(b"]")?;
        serde_json::from_slice(rest).ok()
    }
}

fn connector_prefix(connector: &str) -> String {
    format!("[{},", json_string(connector))
}

fn json_array(parts: &[&str]) -> String {
    let parts: Vec<String> = parts.iter().map(|part| json_string(part)).collect();
    format!("[{}]", parts.join(","))
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What an earlier task of this connector left in Kafka.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// The last committed offset; `None`: there is none, or it was reset.
    pub offset: Option<OffsetRecord>,
    /// The last committed state of each table.
    pub states: Vec<TableState>,
    /// A source partition under which the connector has published, too.
    pub elsewhere: Option<String>,
}

/// Forgets a connector's offset and states. Fences off a task that may still run.
///
/// # Errors
/// The cluster does not answer or refuses.
pub async fn reset(settings: &KafkaSettings) -> Result<(), Fault> {
    let place = StoragePlace::ensure(settings, &Topics::connect(settings).await?).await?;
    let settings = settings.clone();
    blocking(move || {
        let mut transactions = take_over(&settings, &place)?;
        let stored = load(&settings, &place)?;
        transactions.begin()?;
        let forget = |state: TableState| TableState { key: state.key, value: None };
        transactions.produce_states(&stored.states.into_iter().map(forget).collect::<Vec<_>>())?;
        transactions.commit_tombstone()
    })
    .await
}

/// States that take the place of others.
#[derive(Debug, Default)]
pub struct Restated {
    /// What is stored.
    pub states: Vec<TableState>,
    /// How many tables that concerns.
    pub tables: usize,
}

/// Rewrites states of a connector's tables while no task of it runs. Fences off a task that may
/// still run. Without an offset nothing is rewritten: everything begins anew then. Answers how many
/// tables that concerned.
///
/// # Errors
/// The cluster does not answer or refuses, or a state cannot be rewritten; then none is.
pub async fn restate(
    settings: &KafkaSettings,
    rewrite: impl FnOnce(&OffsetRecord, &[TableState]) -> Result<Restated, Fault> + Send + 'static,
) -> Result<usize, Fault> {
    let place = StoragePlace::ensure(settings, &Topics::connect(settings).await?).await?;
    let settings = settings.clone();
    blocking(move || {
        let mut transactions = take_over(&settings, &place)?;
        let stored = load(&settings, &place)?;
        let Some(offset) = stored.offset else { return Ok(0) };
        let Restated { states, tables } = rewrite(&offset, &stored.states)?;
        if states.is_empty() {
            return Ok(0);
        }
        transactions.begin()?;
        transactions.produce_states(&states)?;
        transactions.commit(&offset)?;
        Ok(tables)
    })
    .await
}

/// Reads a connector's offset beside a task that may be running.
///
/// # Errors
/// The cluster does not answer or refuses, or the offset cannot be read.
pub async fn peek(settings: &KafkaSettings) -> Result<Stored, Fault> {
    let place = StoragePlace::ensure(settings, &Topics::connect(settings).await?).await?;
    let settings = settings.clone();
    blocking(move || load(&settings, &place)).await
}

/// Reads what is stored, beside a task that may be running, and creates no topic for that.
///
/// # Errors
/// The cluster does not answer or refuses, or what is there cannot be read.
pub async fn glance(settings: &KafkaSettings) -> Result<Stored, Fault> {
    let topics = Topics::connect(settings).await?;
    let offsets = topics.describe(&settings.offsets_topic.name).await?;
    let states = topics.describe(&settings.states_topic.name).await?;
    let (Some(offsets), Some(states)) = (offsets, states) else { return Ok(Stored::default()) };
    let place = StoragePlace::new(settings, offsets.partitions, states.partitions);
    let settings = settings.clone();
    blocking(move || load(&settings, &place)).await
}

/// Reads a connector's offset while no task of it runs. Fences off a task that may still run.
///
/// # Errors
/// The cluster does not answer or refuses, or the offset cannot be read.
pub async fn stored(settings: &KafkaSettings) -> Result<Stored, Fault> {
    let place = StoragePlace::ensure(settings, &Topics::connect(settings).await?).await?;
    let settings = settings.clone();
    blocking(move || {
        let _fence = take_over(&settings, &place)?;
        load(&settings, &place)
    })
    .await
}

/// Stores an offset while no task of the connector runs. Fences off a task that may still run.
///
/// # Errors
/// The cluster does not answer or refuses.
pub async fn store(settings: &KafkaSettings, offset: OffsetRecord) -> Result<(), Fault> {
    let place = StoragePlace::ensure(settings, &Topics::connect(settings).await?).await?;
    let settings = settings.clone();
    blocking(move || {
        let mut transactions = take_over(&settings, &place)?;
        transactions.begin()?;
        transactions.commit(&offset)
    })
    .await
}

fn take_over(settings: &KafkaSettings, place: &StoragePlace) -> Result<Transactions, Fault> {
    Transactions::open(
        settings,
        TopicList::new(),
        place.clone(),
        Arc::new(AtomicBool::new(false)),
        Arc::new(PublisherMetrics::default()),
    )
}

/// Reads what is stored. To be called after `init_transactions`.
pub(super) fn load(settings: &KafkaSettings, place: &StoragePlace) -> Result<Stored, Fault> {
    let readers = Readers::open(settings)?;
    let stored = load_through(&readers, place);
    client::dispose(readers.clients);
    stored
}

fn load_through(readers: &Readers<'_>, place: &StoragePlace) -> Result<Stored, Fault> {
    let Clients { all, offsets, states } = &readers.clients;
    // One question after the other: a client that is asked twice at once can answer the second
    // one half a second later.
    let find_ends = |topic, number| find_ends(all, readers.settings, topic, number);
    let offset_ends = find_ends(&place.offsets_topic, place.offsets_partition)?;
    let state_ends = find_ends(&place.states_topic, place.states_partition)?;
    let open = |consumer, topic, number, ends| {
        Partition::open(readers.settings, consumer, (topic, number), ends)
    };
    // Most of the reading is waiting, so both are read at the same time.
    let (offset, states) = thread::scope(|scope| {
        let states = scope.spawn(|| {
            open(states, &place.states_topic, place.states_partition, state_ends)?.states_of(place)
        });
        let offset = open(offsets, &place.offsets_topic, place.offsets_partition, offset_ends)
            .and_then(|partition| partition.last_of(place.offset_key.as_bytes()));
        (offset, states.join())
    });
    let states = states.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let ((states, elsewhere), offset) = (states?, offset?);
    if offset.is_none() {
        refuse_moved(readers, place)?;
    }
    Ok(Stored { offset, states, elsewhere })
}

/// Which partition is a connector's depends on how many there are: with more of them its offset would
/// not be found, and the connector begin anew.
fn refuse_moved(readers: &Readers<'_>, place: &StoragePlace) -> Result<(), Fault> {
    let Clients { all, offsets, .. } = &readers.clients;
    let topic = place.offsets_topic.as_str();
    for number in (0..place.offsets_partitions).filter(|one| *one != place.offsets_partition) {
        let ends = find_ends(all, readers.settings, topic, number)?;
        let partition = Partition::open(readers.settings, offsets, (topic, number), ends)?;
        if partition.last_of(place.offset_key.as_bytes())?.is_some() {
            return Err(Code::OffsetMoved.fault(format!(
                "the offset of {} is in partition {number} of '{topic}', and with {} partitions it \
                 belongs into partition {}",
                place.offset_key, place.offsets_partitions, place.offsets_partition
            )));
        }
    }
    Ok(())
}

struct Readers<'a> {
    settings: &'a KafkaSettings,
    clients: Clients,
}

struct Clients {
    /// For it the end of a partition is the high watermark.
    all: BaseConsumer<Events>,
    /// These see committed records; for them the end is the last stable offset.
    offsets: BaseConsumer<Events>,
    states: BaseConsumer<Events>,
}

impl<'a> Readers<'a> {
    fn open(settings: &'a KafkaSettings) -> Result<Self, Fault> {
        let mut config = client::consumer_config(settings);
        let make = |config: &ClientConfig| client::make(config, "consumer");
        let (offsets, states) = (make(&config)?, make(&config)?);
        config.set("isolation.level", "read_uncommitted");
        Ok(Self { settings, clients: Clients { all: make(&config)?, offsets, states } })
    }
}

/// The first offset and the one behind the last, as this consumer sees them.
fn find_ends(
    consumer: &BaseConsumer<Events>,
    settings: &KafkaSettings,
    topic: &str,
    number: i32,
) -> Result<(i64, i64), Fault> {
    let attempted = format!("the end of '{topic}' partition {number} cannot be found");
    client::ask(consumer, settings, &attempted, |timeout| {
        consumer.fetch_watermarks(topic, number, timeout)
    })
    .map_err(|fault| unreadable(&fault))
}

/// A partition of an internal topic, readable up to where it ended when it was opened.
struct Partition<'a> {
    settings: &'a KafkaSettings,
    consumer: &'a BaseConsumer<Events>,
    topic: &'a str,
    number: i32,
    low: i64,
    high: i64,
}

impl<'a> Partition<'a> {
    /// Waits until no transaction before the end is open any more.
    fn open(
        settings: &'a KafkaSettings,
        consumer: &'a BaseConsumer<Events>,
        (topic, number): (&'a str, i32),
        (low, high): (i64, i64),
    ) -> Result<Self, Fault> {
        let deadline = clock() + settings.request_timeout;
        loop {
            let stable = find_ends(consumer, settings, topic, number)?.1;
            if stable >= high {
                break;
            }
            if clock() >= deadline {
                let own_keys = connector_prefix(&settings.connector);
                return Err(hanging::open_transaction(
                    settings,
                    (topic, number),
                    stable,
                    &own_keys,
                ));
            }
            drop(consumer.poll(TICK));
        }
        Ok(Self { settings, consumer, topic, number, low, high })
    }

    /// The last committed value of a key, if it is not a tombstone.
    fn last_of(&self, wanted: &[u8]) -> Result<Option<OffsetRecord>, Fault> {
        let starts = TAILS.iter().map(|tail| self.high - tail).filter(|start| *start > self.low);
        for start in starts.chain([self.low]) {
            let mut last = None;
            self.read(start, |key, value| {
                if key == wanted {
                    last = Some(value.map(|value| OffsetRecord(Arc::from(value))));
                }
            })?;
            if let Some(last) = last {
                return Ok(last);
            }
        }
        Ok(None)
    }

    /// The last committed state of each of the connector's tables, and another source partition of
    /// it that has states.
    fn states_of(&self, place: &StoragePlace) -> Result<(Vec<TableState>, Option<String>), Fault> {
        let mut states = BTreeMap::new();
        let mut others = BTreeSet::new();
        self.read(self.low, |key, value| {
            if let Some(key) = place.table_key(key) {
                match value {
                    Some(value) => states.insert(key, value.to_vec()),
                    None => states.remove(&key),
                };
            } else if key.starts_with(place.connector_prefix.as_bytes()) {
                match value {
                    Some(_) => others.insert(key.to_vec()),
                    None => others.remove(key),
                };
            }
        })?;
        let states = states.into_iter().map(|(key, value)| TableState { key, value: Some(value) });
        let elsewhere = others.first().and_then(|key| {
            let parts: Vec<String> = serde_json::from_slice(key).ok()?;
            parts.into_iter().nth(1)
        });
        Ok((states.collect(), elsewhere))
    }

    /// Reads every committed record from `start` to the end.
    fn read(&self, start: i64, mut each: impl FnMut(&[u8], Option<&[u8]>)) -> Result<(), Fault> {
        if self.low >= self.high {
            return Ok(());
        }
        let mut assignment = TopicPartitionList::new();
        assignment
            .add_partition_offset(self.topic, self.number, Offset::Offset(start))
            .and_then(|()| self.consumer.assign(&assignment))
            .map_err(|error| self.cannot_read(&error))?;
        let mut progress = clock();
        loop {
            match self.consumer.poll(TICK) {
                Some(Ok(record)) => {
                    progress = clock();
                    each(record.key().unwrap_or_default(), record.payload());
                }
                // The end: the last stable offset, which is past the watermark by now.
                Some(Err(KafkaError::PartitionEOF(_))) => return Ok(()),
                Some(Err(error)) => self.tolerate(&error)?,
                None => self.check_patience(progress)?,
            }
        }
    }

    /// Errors of the connection heal, or the patience ends.
    fn tolerate(&self, error: &KafkaError) -> Result<(), Fault> {
        self.consumer.context().check_authentication()?;
        let is_about_partition = matches!(
            error,
            KafkaError::MessageConsumption(_) | KafkaError::MessageConsumptionFatal(_)
        );
        match faults::code_of(error).and_then(faults::definite) {
            // No group is joined; whether one could be is of no interest.
            Some(Code::KafkaAuthorization) if !is_about_partition => Ok(()),
            Some(_) => Err(self.cannot_read(error)),
            None => Ok(()),
        }
    }

    fn check_patience(&self, progress: Instant) -> Result<(), Fault> {
        if clock() < progress + self.settings.request_timeout {
            return Ok(());
        }
        let trouble = self.consumer.context().seen().recent_trouble();
        let reason = trouble.unwrap_or_else(|| "nothing came".to_owned());
        Err(Code::OffsetUnreadable.fault(format!(
            "'{}' partition {} was not read to its end in time: {reason}",
            self.topic, self.number
        )))
    }

    fn cannot_read(&self, error: &KafkaError) -> Fault {
        let attempted = format!("'{}' partition {} cannot be read", self.topic, self.number);
        unreadable(&faults::fault(error, &attempted, Code::OffsetUnreadable))
    }
}

/// What concerns access keeps its code; everything else is the offset that cannot be read.
fn unreadable(fault: &Fault) -> Fault {
    match fault.code() {
        Code::KafkaAuthorization | Code::KafkaAuthentication | Code::OffsetUnreadable => {
            fault.clone()
        }
        _ => Code::OffsetUnreadable.fault(fault.message()),
    }
}

//! The consumer: topics, partitions, where to begin and where to end.
//!
//! Following, one client reads everything. To the present end, topics are read one after another by
//! a client of their own, because the client says of which partition the end was reached, but not
//! of which topic. **Invariant:** `read_committed`, and nothing is ever committed.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Message, OwnedMessage};
use rdkafka::{Offset, TopicPartitionList};

use super::choice::{Begin, Choice};
use crate::error::{Code, Fault};
use crate::kafka::client_refused;

/// How long the broker may take to answer a question.
const LIMIT: Duration = Duration::from_secs(10);

type Place = (String, i32);

/// What comes next.
#[derive(Debug)]
pub(super) enum Event {
    /// A record.
    Record(OwnedMessage),
    /// Everything that was there is read.
    End,
}

/// See the module.
pub(super) struct Reader {
    config: ClientConfig,
    consumer: Arc<StreamConsumer>,
    choice: Choice,
    /// Where topics begin that are there at the start; later ones are read from their beginning.
    begin: Begin,
    follows: bool,
    has_looked: bool,
    known: HashSet<Place>,
    /// What is to be read to the present end: by topic, from where and to where in each partition.
    unfinished: BTreeMap<String, BTreeMap<i32, (i64, i64)>>,
    /// The client of the topic that is being read to its end.
    current: Option<(String, StreamConsumer)>,
}

impl Reader {
    /// Makes the client; nothing is asked yet.
    pub(super) fn open(
        bootstrap_servers: &str,
        properties: &[String],
        choice: Choice,
        (begin, follows): (Begin, bool),
    ) -> Result<Self, Fault> {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", bootstrap_servers)
            .set("group.id", "tidegate-tail")
            .set("isolation.level", "read_committed")
            .set("enable.auto.commit", "false")
            .set("auto.offset.reset", "earliest")
            .set("fetch.wait.max.ms", "100");
        for property in properties {
            let (name, value) = property.split_once('=').ok_or_else(|| {
                Code::ConfigInvalid.fault(format!("'{property}' is not of the form name=value"))
            })?;
            config.set(name, value);
        }
        let consumer = Arc::new(make(&config)?);
        config.set("enable.partition.eof", "true");
        Ok(Self {
            config,
            consumer,
            choice,
            begin,
            follows,
            has_looked: false,
            known: HashSet::new(),
            unfinished: BTreeMap::new(),
            current: None,
        })
    }

    /// Whether everything that was there at the start is read, and no more is wanted.
    pub(super) fn is_over(&self) -> bool {
        !self.follows && self.has_looked && self.unfinished.is_empty()
    }

    /// The next record. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Event, Fault> {
        if self.follows {
            let message = self.consumer.recv().await.map_err(|error| failed(&error))?;
            return Ok(Event::Record(message.detach()));
        }
        while !self.is_over() {
            let (topic, consumer) = match self.current.take() {
                Some(current) => self.current.insert(current),
                None => match self.open_next()? {
                    Some(next) => self.current.insert(next),
                    // nothing is known yet
                    None => return std::future::pending().await,
                },
            };
            let read = match consumer.recv().await {
                Ok(message) => Ok(message.detach()),
                Err(KafkaError::PartitionEOF(partition)) => Err(partition),
                Err(error) => return Err(failed(&error)),
            };
            let topic = topic.clone();
            match read {
                Err(partition) => self.finish(&topic, partition),
                Ok(message) => {
                    if self.is_wanted(&topic, &message) {
                        return Ok(Event::Record(message));
                    }
                }
            }
        }
        Ok(Event::End)
    }

    /// A client for the next topic.
    fn open_next(&self) -> Result<Option<(String, StreamConsumer)>, Fault> {
        let Some((topic, partitions)) = self.unfinished.first_key_value() else { return Ok(None) };
        let consumer = make(&self.config)?;
        let mut list = TopicPartitionList::new();
        for (partition, (start, _)) in partitions {
            add(&mut list, topic, *partition, Offset::Offset(*start))?;
        }
        consumer.assign(&list).map_err(|error| failed(&error))?;
        Ok(Some((topic.clone(), consumer)))
    }

    /// Sees whether a record was there at the start.
    fn is_wanted(&mut self, topic: &str, message: &OwnedMessage) -> bool {
        let partition = message.partition();
        let Some((_, end)) =
            self.unfinished.get(topic).and_then(|partitions| partitions.get(&partition))
        else {
            return false;
        };
        let (is_there, is_last) = (message.offset() < *end, message.offset() + 1 >= *end);
        if is_last {
            self.finish(topic, partition);
        }
        is_there
    }

    fn finish(&mut self, topic: &str, partition: i32) {
        let Some(partitions) = self.unfinished.get_mut(topic) else { return };
        partitions.remove(&partition);
        if partitions.is_empty() {
            self.unfinished.remove(topic);
            self.current = None;
        }
    }

    /// Takes up topics that were not there before. The number of partitions that are read.
    pub(super) async fn look_for_topics(&mut self) -> Result<usize, Fault> {
        if self.has_looked && !self.follows {
            return Ok(self.known.len());
        }
        let new = self.new_partitions().await?;
        let begin = if self.has_looked { Begin::Beginning } else { self.begin };
        if self.follows {
            self.follow(&new, begin).await?;
        } else {
            for (topic, partition) in &new {
                let (start, end) = self.bounds(begin, topic, *partition).await?;
                if start < end {
                    let partitions = self.unfinished.entry(topic.clone()).or_default();
                    partitions.insert(*partition, (start, end));
                }
            }
        }
        self.has_looked = true;
        self.known.extend(new);
        Ok(self.known.len())
    }

    async fn follow(&self, new: &[Place], begin: Begin) -> Result<(), Fault> {
        let mut list = TopicPartitionList::new();
        for (topic, partition) in new {
            let offset = match begin {
                Begin::Beginning => Offset::Beginning,
                Begin::End => Offset::End,
                Begin::Last(count) => Offset::OffsetTail(count),
                Begin::Offset(_) => Offset::Offset(self.bounds(begin, topic, *partition).await?.0),
            };
            add(&mut list, topic, *partition, offset)?;
        }
        if list.count() == 0 {
            return Ok(());
        }
        self.consumer.incremental_assign(&list).map_err(|error| failed(&error))
    }

    async fn new_partitions(&self) -> Result<Vec<Place>, Fault> {
        let consumer = Arc::clone(&self.consumer);
        let metadata = blocking(move || consumer.fetch_metadata(None, LIMIT)).await?;
        let topics = metadata.topics().iter().filter(|topic| self.choice.wants(topic.name()));
        Ok(topics
            .flat_map(|topic| {
                topic.partitions().iter().map(|one| (topic.name().to_owned(), one.id()))
            })
            .filter(|place| !self.known.contains(place))
            .collect())
    }

    /// From where to where a partition is read if nothing is added to it.
    async fn bounds(&self, begin: Begin, topic: &str, partition: i32) -> Result<(i64, i64), Fault> {
        let (consumer, topic) = (Arc::clone(&self.consumer), topic.to_owned());
        let (low, high) =
            blocking(move || consumer.fetch_watermarks(&topic, partition, LIMIT)).await?;
        let start = match begin {
            Begin::Beginning => low,
            Begin::End => high,
            Begin::Offset(offset) => offset.clamp(low, high),
            Begin::Last(count) => high.saturating_sub(count).max(low),
        };
        Ok((start, high))
    }
}

fn make(config: &ClientConfig) -> Result<StreamConsumer, Fault> {
    config.create().map_err(|error| client_refused(&error, "consumer"))
}

fn add(
    list: &mut TopicPartitionList,
    topic: &str,
    partition: i32,
    offset: Offset,
) -> Result<(), Fault> {
    list.add_partition_offset(topic, partition, offset)
        .map_err(|error| Code::Internal.fault("an offset").caused_by(&error))
}

fn failed(error: &KafkaError) -> Fault {
    Code::KafkaUnreachable.fault("cannot read from Kafka").caused_by(error)
}

async fn blocking<T: Send + 'static>(
    question: impl FnOnce() -> Result<T, KafkaError> + Send + 'static,
) -> Result<T, Fault> {
    tokio::task::spawn_blocking(question)
        .await
        .map_err(|error| Code::Internal.fault("a question to Kafka").caused_by(&error))?
        .map_err(|error| Code::KafkaUnreachable.fault("Kafka does not answer").caused_by(&error))
}

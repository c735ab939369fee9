//! `tidegate tail`: topics as a `read_committed` consumer sees them, decoded.
//!
//! Reads only: no group is joined and nothing is committed. Topics that appear while it follows are
//! picked up.

mod decode;
mod print;

use std::collections::{HashMap, HashSet};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::Value;
use tokio::time::Instant;

use self::decode::RegisteredSchema;
use self::print::{Paint, Shown, json_line, readable};
use super::output;
use crate::error::{Code, Fault};
use crate::registry::{Address, Authentication, Registry, Settings as RegistrySettings};

/// How often new topics are looked for.
const LOOK_FOR_TOPICS: Duration = Duration::from_secs(1);
/// How long the broker may take to answer a metadata request.
const METADATA_LIMIT: Duration = Duration::from_secs(10);

/// Arguments of `tidegate tail`.
#[derive(Debug, Args)]
pub(super) struct Tail {
    /// Topics; a name that ends with `*` stands for all that begin so.
    #[arg(required = true)]
    topics: Vec<String>,
    /// Kafka's addresses.
    #[arg(short, long, default_value = "localhost:9092")]
    bootstrap_servers: String,
    /// The schema registry, for Avro.
    #[arg(short, long)]
    registry_url: Option<String>,
    /// A further property of the Kafka client (librdkafka's names), as `name=value`.
    #[arg(short = 'X', long = "property", value_name = "NAME=VALUE")]
    properties: Vec<String>,
    /// Begin with the oldest record instead of the next one.
    #[arg(long)]
    from_beginning: bool,
    /// End after so many records.
    #[arg(short = 'n', long)]
    max_records: Option<u64>,
    /// End when no record came for so many seconds.
    #[arg(long, value_name = "SECONDS")]
    idle_exit: Option<u64>,
    /// How records are printed.
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Readable on a terminal, JSON lines otherwise.
    Auto,
    /// A few lines for people.
    Readable,
    /// One JSON object a line.
    Json,
}

impl Tail {
    /// Runs until told to stop.
    pub(super) async fn run(self) -> Result<(), Fault> {
        let json = match self.format {
            Format::Auto => !std::io::stdout().is_terminal(),
            Format::Readable => false,
            Format::Json => true,
        };
        let mut reader = Reader::open(&self)?;
        let paint = Paint(output::wants_colour());
        let idle = self.idle_exit.map_or(Duration::MAX, Duration::from_secs);
        let mut printed = 0;
        let mut last = Instant::now();
        let mut look = tokio::time::interval(LOOK_FOR_TOPICS);
        loop {
            let idle_left = idle.saturating_sub(last.elapsed());
            tokio::select! {
                biased;
                _ = tokio::signal::ctrl_c() => return Ok(()),
                _ = look.tick() => reader.look_for_topics().await?,
                message = reader.consumer.recv() => {
                    let message = message.map_err(|error| {
                        Code::KafkaUnreachable.fault("cannot read from Kafka").caused_by(&error)
                    })?;
                    let shown = reader.decoder.decode(&message).await;
                    let text = if json { json_line(&shown) } else { readable(&shown, paint) };
                    printed += 1;
                    last = Instant::now();
                    if !output::line(&text) || self.max_records.is_some_and(|most| printed >= most) {
                        return Ok(());
                    }
                }
                () = tokio::time::sleep(idle_left.min(Duration::from_secs(3600))) => {
                    if last.elapsed() >= idle {
                        return Ok(());
                    }
                }
            }
        }
    }
}

struct Reader {
    consumer: Arc<StreamConsumer>,
    patterns: Vec<String>,
    assigned: HashSet<(String, i32)>,
    /// Where topics begin that were there at the start; later ones are read from their beginning.
    begin: Offset,
    decoder: Decoder,
}

impl Reader {
    fn open(arguments: &Tail) -> Result<Self, Fault> {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", &arguments.bootstrap_servers)
            .set("group.id", "tidegate-tail")
            .set("isolation.level", "read_committed")
            .set("enable.auto.commit", "false")
            .set("auto.offset.reset", "earliest")
            .set("fetch.wait.max.ms", "100");
        for property in &arguments.properties {
            let (name, value) = property.split_once('=').ok_or_else(|| {
                Code::ConfigInvalid.fault(format!("'{property}' is not of the form name=value"))
            })?;
            config.set(name, value);
        }
        let consumer: StreamConsumer = config.create().map_err(|error| {
            Code::ConfigInvalid.fault("the Kafka client refuses its settings").caused_by(&error)
        })?;
        let registry = match &arguments.registry_url {
            Some(url) => Some(Registry::new(RegistrySettings::new(
                vec![Address::parse(url)?],
                Authentication::default(),
            ))?),
            None => None,
        };
        Ok(Self {
            consumer: Arc::new(consumer),
            patterns: arguments.topics.clone(),
            assigned: HashSet::new(),
            begin: if arguments.from_beginning { Offset::Beginning } else { Offset::End },
            decoder: Decoder { registry, schemas: HashMap::new() },
        })
    }

    async fn look_for_topics(&mut self) -> Result<(), Fault> {
        let consumer = Arc::clone(&self.consumer);
        let metadata =
            tokio::task::spawn_blocking(move || consumer.fetch_metadata(None, METADATA_LIMIT))
                .await
                .map_err(|error| Code::Internal.fault("metadata").caused_by(&error))?
                .map_err(|error| {
                    Code::KafkaUnreachable.fault("Kafka does not answer").caused_by(&error)
                })?;
        let mut new = TopicPartitionList::new();
        let begin = self.begin;
        let Self { assigned, patterns, .. } = &mut *self;
        for topic in metadata.topics().iter().filter(|topic| wants(patterns, topic.name())) {
            for partition in topic.partitions() {
                let place = (topic.name().to_owned(), partition.id());
                if assigned.insert(place) {
                    new.add_partition_offset(topic.name(), partition.id(), begin)
                        .map_err(|error| Code::Internal.fault("an offset").caused_by(&error))?;
                }
            }
        }
        self.begin = Offset::Beginning;
        if new.count() > 0 {
            self.consumer.incremental_assign(&new).map_err(|error| {
                Code::KafkaUnreachable.fault("the topics cannot be read").caused_by(&error)
            })?;
        }
        Ok(())
    }
}

fn wants(patterns: &[String], topic: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => topic.starts_with(prefix),
        None => topic == pattern,
    })
}

struct Decoder {
    registry: Option<Registry>,
    schemas: HashMap<u32, Result<Arc<RegisteredSchema>, Fault>>,
}

impl Decoder {
    async fn decode(&mut self, message: &BorrowedMessage<'_>) -> Shown {
        let key = match message.key() {
            Some(bytes) => self.part(bytes).await,
            None => Value::Null,
        };
        let value = match message.payload() {
            Some(bytes) => Some(self.part(bytes).await),
            None => None,
        };
        let mut headers = Vec::new();
        if let Some(all) = message.headers() {
            for header in all.iter() {
                let value = match header.value {
                    Some(bytes) => text_or_hex(bytes),
                    None => Value::Null,
                };
                headers.push((header.key.to_owned(), value));
            }
        }
        Shown {
            topic: message.topic().to_owned(),
            partition: message.partition(),
            offset: message.offset(),
            timestamp: message.timestamp().to_millis(),
            key,
            value,
            headers,
        }
    }

    /// Confluent's framing begins with a zero byte, which neither JSON nor text does.
    async fn part(&mut self, bytes: &[u8]) -> Value {
        match bytes {
            [0, a, b, c, d, body @ ..] if self.registry.is_some() => {
                match self.schema(u32::from_be_bytes([*a, *b, *c, *d])).await {
                    Ok(schema) => schema
                        .decode(body)
                        .unwrap_or_else(|fault| Value::String(format!("<{fault}>"))),
                    Err(fault) => Value::String(format!("<{fault}>")),
                }
            }
            _ => serde_json::from_slice(bytes).unwrap_or_else(|_not_json| text_or_hex(bytes)),
        }
    }

    async fn schema(&mut self, id: u32) -> Result<Arc<RegisteredSchema>, Fault> {
        if let Some(Ok(known)) = self.schemas.get(&id) {
            return Ok(Arc::clone(known));
        }
        let Some(registry) = &self.registry else {
            return Err(Code::ConfigInvalid.fault("--registry-url is missing"));
        };
        let text = registry.fetch_schema(id).await?;
        let schema = RegisteredSchema::parse(&text);
        self.schemas.insert(id, schema.clone());
        schema
    }
}

fn text_or_hex(bytes: &[u8]) -> Value {
    std::str::from_utf8(bytes).map_or_else(
        |_binary| Value::String(decode::hex(bytes)),
        |text| Value::String(text.to_owned()),
    )
}

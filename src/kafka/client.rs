//! Makes the Kafka client's handles, and keeps what they report on the side.
//!
//! librdkafka connects in the background and tells of trouble through callbacks, not through the
//! call that waits. [`Events`] keeps the last of each kind, so that a fault can name the broker's
//! own reason. **Invariant:** what exactly-once delivery needs is set after the user's properties
//! and cannot be overridden.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{DeliveryResult, ProducerContext};

use super::faults;
use super::properties::ClientProperties;
use super::settings::KafkaSettings;
use crate::error::{Code, Fault};

/// The producer's own buffer; part of the task's memory bound (librdkafka's default is 1 GiB).
const BUFFER_KIBIBYTES: usize = 32 << 10;
/// Records in it. librdkafka does not count its own memory for each, which with four headers is 700
/// bytes. So many are a sixth of a second of the fastest stream.
const BUFFER_RECORDS: usize = 25_000;
/// `max.request.size` of Java's client.
pub(super) const MAX_REQUEST_SIZE: usize = 1 << 20;
/// Just below Kafka's own `max.message.bytes` (1,048,588 bytes). For a topic with less the publisher
/// hands out less at once.
pub(super) const BATCH_SIZE: usize = 1_000_000;
/// librdkafka's greatest `batch.num.messages`.
const MOST_RECORDS_OF_A_BATCH: &str = "1000000";
/// How long librdkafka waits for more records, in ms. The publisher says when it has enough; until
/// then no half-full request goes out, and no thread of the client spins through the last
/// millisecond of its wait.
const LINGER: &str = "100";

/// How long trouble with a connection is brought together with what fails later.
const RECENT: Duration = Duration::from_secs(30);

/// Reads the clock. Nothing below this module decides by time that was not handed to it.
#[expect(clippy::disallowed_methods, reason = "the publisher's thread is a driver")]
pub(super) fn clock() -> Instant {
    Instant::now()
}

/// The wall clock, microseconds since the epoch; only for what is counted.
#[expect(clippy::disallowed_methods, reason = "the publisher's thread is a driver")]
pub(super) fn wall_clock_micros() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_micros()).ok())
        .unwrap_or(0)
}

/// What a client reported beside its answers.
#[derive(Debug, Default)]
pub(super) struct Events(Mutex<Seen>);

#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// The last trouble with a broker's connection.
    pub(super) broker: Option<Trouble>,
    /// A refusal of credentials.
    pub(super) authentication: Option<String>,
    /// Why the current transaction failed, in librdkafka's words.
    pub(super) transaction: Option<String>,
    /// The first record that could not be delivered.
    pub(super) delivery: Option<DeliveryFailure>,
}

/// Trouble with a broker's connection.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    at: Instant,
    pub(super) reason: String,
    /// Whether the encrypted connection itself was refused.
    is_tls: bool,
}

/// A record that could not be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeliveryFailure {
    pub(super) topic: String,
    pub(super) error: RDKafkaErrorCode,
    /// Bytes of key and value.
    pub(super) size: usize,
}

impl Seen {
    /// Trouble with a broker's connection that may have to do with a fault that is met now.
    pub(super) fn recent_trouble(&self) -> Option<String> {
        let recent = self.broker.as_ref().filter(|trouble| clock() < trouble.at + RECENT);
        recent.map(|trouble| trouble.reason.clone())
    }
}

impl Events {
    /// What was reported so far.
    pub(super) fn seen(&self) -> Seen {
        self.lock().clone()
    }

    /// The first failed delivery, if there was one.
    pub(super) fn delivery_failed(&self) -> bool {
        self.lock().delivery.is_some()
    }

    /// Forgets deliveries that failed only because their transaction was withdrawn.
    pub(super) fn forget_purged(&self) {
        self.lock().delivery.take_if(|failure| is_purge(failure.error));
    }

    /// A fault if the broker refuses the credentials: waiting would not help.
    pub(super) fn check_authentication(&self) -> Result<(), Fault> {
        match &self.lock().authentication {
            Some(reason) => Err(Code::KafkaAuthentication.fault(reason.clone())),
            None => Ok(()),
        }
    }

    /// A fault for a cluster that does not answer, with the broker's last error.
    pub(super) fn unreachable(&self, servers: &str, attempted: &str) -> Fault {
        let seen = self.lock();
        let is_tls = seen.broker.as_ref().is_some_and(|trouble| trouble.is_tls);
        let code = if is_tls { Code::KafkaAuthentication } else { Code::KafkaUnreachable };
        let reason = seen.broker.as_ref().map_or("no answer in time", |trouble| &trouble.reason);
        code.fault(format!("{attempted}: bootstrap.servers '{servers}' gave: {reason}"))
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Events {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        if is_transaction_failure(facility, level, message) {
            let reason = message.split_once("]: ").map_or(message, |(_thread, reason)| reason);
            self.lock().transaction.get_or_insert_with(|| reason.to_owned());
        }
        match level {
            _ if facility == "CONFWARN" => tracing::debug!(facility, "{message}"),
            RDKafkaLogLevel::Emerg
            | RDKafkaLogLevel::Alert
            | RDKafkaLogLevel::Critical
            | RDKafkaLogLevel::Error
            | RDKafkaLogLevel::Warning => tracing::warn!(facility, "{message}"),
            RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => {
                tracing::info!(facility, "{message}");
            }
            RDKafkaLogLevel::Debug => tracing::debug!(facility, "{message}"),
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "the Kafka client reports");
        let mut seen = self.lock();
        let code = faults::code_of(&error);
        if code.and_then(faults::definite) == Some(Code::KafkaAuthentication) {
            seen.authentication = Some(reason.to_owned());
            return;
        }
        // "n/n brokers are down" says less than what came before it.
        if code != Some(RDKafkaErrorCode::AllBrokersDown) || seen.broker.is_none() {
            let is_tls = code == Some(RDKafkaErrorCode::SSL);
            seen.broker = Some(Trouble { at: clock(), reason: reason.to_owned(), is_tls });
        }
    }
}

/// Logs are the only place where librdkafka tells why it gave a transaction up (`TXNERR`), and
/// which partition the coordinator did not take (`ADDPARTS`).
fn is_transaction_failure(facility: &str, level: RDKafkaLogLevel, message: &str) -> bool {
    let is_error =
        !matches!(level, RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info | RDKafkaLogLevel::Debug);
    match facility {
        "TXNERR" => true,
        // A partition that was skipped because of another one is not the one to be named.
        "ADDPARTS" => is_error && !message.contains("not attempted"),
        _ => false,
    }
}

impl ConsumerContext for Events {}

impl ProducerContext for Events {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let Err((error, message)) = result else { return };
        let failure = DeliveryFailure {
            topic: message.topic().to_owned(),
            error: faults::code_of(error).unwrap_or(RDKafkaErrorCode::Unknown),
            size: message.payload_len() + message.key_len(),
        };
        let mut seen = self.lock();
        match &seen.delivery {
            // What is purged after a failure says nothing about its cause.
            Some(known) if !is_purge(known.error) => {}
            Some(_) if is_purge(failure.error) => {}
            _ => seen.delivery = Some(failure),
        }
    }
}

/// Whether a delivery failed only because the transaction had failed.
pub(super) const fn is_purge(error: RDKafkaErrorCode) -> bool {
    matches!(error, RDKafkaErrorCode::PurgeQueue | RDKafkaErrorCode::PurgeInflight)
}

/// Checks the properties' values as the Kafka client does, without connecting.
///
/// # Errors
/// A value is not one that the client takes.
pub fn validate(settings: &KafkaSettings) -> Result<(), Fault> {
    for (client, config) in [
        ("producer", producer_config(settings)),
        ("consumer", consumer_config(settings)),
        ("admin client", admin_config(settings)),
    ] {
        config.create_native_config().map_err(|error| faults::client_refused(&error, client))?;
    }
    Ok(())
}

/// The largest record that the producer takes.
pub(super) fn max_request_size(settings: &KafkaSettings) -> usize {
    number(&settings.producer, "message.max.bytes", MAX_REQUEST_SIZE)
}

/// The size beyond which the producer puts no further record into a batch.
pub(super) fn batch_size(settings: &KafkaSettings) -> usize {
    number(&settings.producer, "batch.size", BATCH_SIZE)
}

fn number(properties: &ClientProperties, name: &str, default: usize) -> usize {
    properties.get(name).and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The configuration of the transactional producer.
pub(super) fn producer_config(settings: &KafkaSettings) -> ClientConfig {
    let mut config = base_config(settings);
    config
        .set("partitioner", "murmur2_random")
        .set("linger.ms", LINGER)
        // Follows linger.ms otherwise: records without a key stayed on one partition.
        .set("sticky.partitioning.linger.ms", "10")
        .set("batch.size", BATCH_SIZE.to_string())
        // A batch is bounded in bytes alone.
        .set("batch.num.messages", MOST_RECORDS_OF_A_BATCH)
        .set("message.max.bytes", MAX_REQUEST_SIZE.to_string())
        .set("queue.buffering.max.messages", BUFFER_RECORDS.to_string())
        .set("socket.nagle.disable", "true");
    apply(&mut config, &settings.producer);
    // A record larger than the whole buffer would wait for room for ever.
    let largest = max_request_size(settings).div_ceil(1024) + 64;
    let buffer = number(&settings.producer, "queue.buffering.max.kbytes", BUFFER_KIBIBYTES);
    config
        .set("queue.buffering.max.kbytes", buffer.max(largest).to_string())
        .set("transactional.id", &settings.transactional_id)
        .set("transaction.timeout.ms", settings.transaction_timeout().as_millis().to_string())
        .set("enable.idempotence", "true")
        .set("acks", "all")
        // Successes are known by the commit; a report for each would cost more than the rest.
        .set("delivery.report.only.error", "true");
    config
}

/// The configuration of clients that read internal topics.
pub(super) fn consumer_config(settings: &KafkaSettings) -> ClientConfig {
    let mut config = base_config(settings);
    config.set("fetch.wait.max.ms", "50");
    apply(&mut config, &settings.consumer);
    config
        // Required by the client although no group is joined.
        .set("group.id", &settings.transactional_id)
        .set("isolation.level", "read_committed")
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("auto.offset.reset", "error")
        .set("enable.partition.eof", "true");
    config
}

/// The configuration of clients that create and describe topics.
pub(super) fn admin_config(settings: &KafkaSettings) -> ClientConfig {
    let mut config = base_config(settings);
    apply(&mut config, &settings.admin);
    config
}

fn base_config(settings: &KafkaSettings) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set_log_level(RDKafkaLogLevel::Info);
    config
        .set("client.id", format!("tidegate-{}", settings.connector))
        // Topics are created by the worker's own rules, never by asking for them.
        .set("allow.auto.create.topics", "false");
    config
}

fn apply(config: &mut ClientConfig, properties: &ClientProperties) {
    for (name, value) in properties.iter() {
        config.set(name, value);
    }
}

/// Makes a handle.
pub(super) fn make<T: FromClientConfigAndContext<Events>>(
    config: &ClientConfig,
    client: &str,
) -> Result<T, Fault> {
    config
        .create_with_context(Events::default())
        .map_err(|error| faults::client_refused(&error, client))
}

/// Closes a handle in the background: librdkafka takes some 100 ms for it, in which nobody has to
/// wait.
pub(super) fn dispose<T: Send + 'static>(handle: T) {
    if let Err(error) = thread::Builder::new().name("kafka-close".into()).spawn(|| drop(handle)) {
        tracing::debug!(%error, "a Kafka handle was closed in the foreground");
    }
}

/// A question to the cluster that is asked until there is an answer, or the time is over.
pub(super) struct Question<'a> {
    /// What is attempted, for the fault.
    pub(super) attempted: &'a str,
    pub(super) servers: &'a str,
    pub(super) limit: Duration,
    /// Where the client reports its troubles.
    pub(super) events: &'a Events,
}

impl Question<'_> {
    /// Asks. `serve` lets the client report what happened meanwhile.
    pub(super) fn ask<T>(
        &self,
        serve: impl Fn(),
        mut question: impl FnMut(Duration) -> Result<T, KafkaError>,
    ) -> Result<T, Fault> {
        let deadline = clock() + self.limit;
        loop {
            let left = deadline.saturating_duration_since(clock());
            let error = match question(left.min(Duration::from_millis(500))) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            serve();
            self.events.check_authentication()?;
            if let Some(code) = faults::code_of(&error).and_then(faults::definite) {
                return Err(code.fault(self.attempted).caused_by(&error));
            }
            if clock() >= deadline {
                let fault = self.events.unreachable(self.servers, self.attempted);
                return Err(fault.caused_by(&error));
            }
        }
    }
}

/// [`Question::ask`] through a consumer.
pub(super) fn ask<T>(
    consumer: &BaseConsumer<Events>,
    settings: &KafkaSettings,
    attempted: &str,
    question: impl FnMut(Duration) -> Result<T, KafkaError>,
) -> Result<T, Fault> {
    let events = consumer.context();
    let servers = settings.consumer.bootstrap_servers();
    let limit = settings.request_timeout;
    // Nothing is assigned, so nothing is consumed.
    Question { attempted, servers, limit, events }
        .ask(|| drop(consumer.poll(Duration::from_millis(10))), question)
}

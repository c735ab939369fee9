//! The transactional producer: one Kafka transaction at a time.
//!
//! Implements [`TransactionLog`] over librdkafka. Knows no rules about where transactions end.
//! **Invariants:** `commit` says Ok only after the broker did; a record is never dropped because
//! the buffer is full; after any error the producer is not used again (a delayed end of a
//! transaction could otherwise tear a later one).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _, PurgeConfig};

use super::bite::Bite;
use super::boundary::TransactionLog;
use super::breather::Breather;
use super::client::{self, DeliveryFailure, Events, Question, clock, is_purge, wall_clock_micros};
use super::faults;
use super::flush::flush;
use super::offsets::StoragePlace;
use super::queue::{OffsetRecord, TableState};
use super::settings::KafkaSettings;
use super::topic_list::{Notebook, TopicList};
use crate::error::{Code, Fault};
use crate::observe::{PublisherMetrics, TopicMetrics};
use crate::record::{Batch, Record};

/// How long the thread rests between two looks at the client's events.
const TICK: Duration = Duration::from_millis(1);
/// How long acknowledgements are waited for before failures are looked for.
const GLANCE: Duration = Duration::from_millis(50);
/// How long a call into the client may last before the stop signal is looked at again.
const SLICE: Duration = Duration::from_millis(500);
/// What is granted beyond the transaction's timeout for the broker's answer.
const GRACE: Duration = Duration::from_secs(5);
/// How long a transaction that failed is given to be withdrawn.
const ABORT_LIMIT: Duration = Duration::from_secs(5);

/// A transactional producer whose older siblings are fenced off.
pub(super) struct Transactions {
    producer: BaseProducer<Events>,
    /// A copy of the shared list, by topic number.
    topics: Vec<Arc<str>>,
    list: TopicList,
    notebook: Notebook,
    storage: StoragePlace,
    timeout: Duration,
    servers: String,
    /// `transactional.id`.
    id: String,
    /// When the open transaction began.
    opened: Option<Instant>,
    breather: Breather,
    /// When the open transaction was waited for to be acknowledged for the first time, and when
    /// it was.
    first_drain: Option<(Instant, Instant)>,
    bite: Bite,
    stop: Arc<AtomicBool>,
    metrics: Arc<PublisherMetrics>,
    open: OpenCounts,
    /// Writes offsets that do not belong to the transactions.
    #[cfg(feature = "sabotage")]
    outside: Option<BaseProducer<Events>>,
}

/// What becomes visible with the open transaction.
#[derive(Default)]
struct OpenCounts {
    topics: Vec<TopicCounts>,
    /// When its source transactions were committed there.
    commits: Vec<i64>,
}

#[derive(Default)]
struct TopicCounts {
    records: u64,
    bytes: u64,
    /// Fetched with the first record.
    total: Option<Arc<TopicMetrics>>,
}

impl OpenCounts {
    fn add(&mut self, index: usize, bytes: usize) {
        if self.topics.len() <= index {
            self.topics.resize_with(index + 1, TopicCounts::default);
        }
        if let Some(topic) = self.topics.get_mut(index) {
            topic.records += 1;
            topic.bytes += bytes as u64;
        }
    }

    fn forget(&mut self) {
        self.commits.clear();
        for topic in &mut self.topics {
            (topic.records, topic.bytes) = (0, 0);
        }
    }
}

impl Transactions {
    /// Makes the producer and fences off every older one with the same transactional id.
    ///
    /// # Errors
    /// The cluster does not answer or refuses the id.
    pub(super) fn open(
        settings: &KafkaSettings,
        list: TopicList,
        storage: StoragePlace,
        stop: Arc<AtomicBool>,
        metrics: Arc<PublisherMetrics>,
    ) -> Result<Self, Fault> {
        let producer = client::make(&client::producer_config(settings), "producer")?;
        let this = Self {
            producer,
            topics: Vec::new(),
            notebook: list.notebook(),
            list,
            storage,
            timeout: settings.transaction_timeout(),
            servers: settings.producer.bootstrap_servers().to_owned(),
            id: settings.transactional_id.clone(),
            opened: None,
            breather: Breather::new(),
            first_drain: None,
            bite: Bite::new(client::batch_size(settings)),
            stop,
            metrics,
            open: OpenCounts::default(),
            #[cfg(feature = "sabotage")]
            outside: outside(settings)?,
        };
        this.metrics.forget_open();
        this.init(settings)?;
        Ok(this)
    }

    /// `init_transactions`: ends what an older producer left open, and fences it off.
    fn init(&self, settings: &KafkaSettings) -> Result<(), Fault> {
        let attempted =
            format!("the transactional id '{}' could not be taken over", settings.transactional_id);
        let limit = settings.request_timeout;
        self.wait_for_broker(&attempted, limit)?;
        let deadline = clock() + limit;
        loop {
            let error = match self.producer.init_transactions(SLICE) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            self.pause(TICK);
            self.check_stop()?;
            if !is_retriable(&error) || clock() >= deadline {
                return Err(self.fault(&error, &attempted));
            }
        }
    }

    /// Waits for a connection that lasts. Without one librdkafka looks for the coordinator half a
    /// second later; the one to a bootstrap server ends when the brokers are known.
    fn wait_for_broker(&self, attempted: &str, limit: Duration) -> Result<(), Fault> {
        let topic = Some(self.storage.offsets_topic.as_str());
        let question = Question { attempted, servers: &self.servers, limit, events: self.events() };
        let deadline = clock() + SLICE;
        loop {
            let answered_by = question.ask(
                || self.pause(TICK),
                |timeout| {
                    let metadata = self.producer.client().fetch_metadata(topic, timeout)?;
                    Ok(metadata.orig_broker_id())
                },
            )?;
            // a bootstrap server has no number
            if answered_by >= 0 || clock() >= deadline {
                return Ok(());
            }
            self.pause(TICK);
        }
    }

    /// Looks after the client between transactions.
    ///
    /// # Errors
    /// The producer was fenced off or broke.
    pub(super) fn serve(&self) -> Result<(), Fault> {
        self.producer.poll(Duration::ZERO);
        self.check_stop()?;
        match self.producer.client().fatal_error() {
            Some((code, reason)) => Err(self.fatal(code, &reason)),
            None => Ok(()),
        }
    }

    /// Withdraws what is open, as far as it is possible in a short time; the next producer with
    /// this id does it otherwise.
    pub(super) fn give_up(&mut self) {
        self.open.forget();
        self.metrics.forget_open();
        if self.opened.take().is_none() || self.producer.client().fatal_error().is_some() {
            return;
        }
        let deadline = clock() + ABORT_LIMIT;
        while clock() < deadline && !self.stop.load(Ordering::Relaxed) {
            match self.producer.abort_transaction(SLICE) {
                Ok(()) => {
                    // what was purged was purged on purpose: the next transaction has not failed
                    self.producer.poll(Duration::ZERO);
                    self.events().forget_purged();
                    self.metrics.aborted();
                    return;
                }
                Err(error) if is_retriable(&error) => self.pause(TICK),
                Err(error) => {
                    tracing::debug!(%error, "the transaction is left to the next producer to abort");
                    return;
                }
            }
        }
    }

    fn events(&self) -> &Events {
        self.producer.context()
    }

    /// Serves the client's events and rests for a while. To let the client do both would cost a
    /// core: what is left of its time it rounds down to whole milliseconds, so it spins through
    /// the last one.
    fn pause(&self, rest: Duration) {
        self.producer.poll(Duration::ZERO);
        thread::park_timeout(rest);
    }

    fn check_stop(&self) -> Result<(), Fault> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Code::KafkaTransaction.fault("the publisher was told to stop at once"));
        }
        Ok(())
    }

    fn send_record(&mut self, batch: &Batch, record: &Record) -> Result<(), Fault> {
        let index = record.topic.0 as usize;
        if self.topics.len() <= index {
            self.list.copy_news(&mut self.topics);
            if let Some(limit) = self.list.smallest_limit() {
                self.bite.limit(limit);
            }
        }
        let Some(topic) = self.topics.get(index) else {
            return Err(Code::Internal.fault(format!("topic number {index} is not in the list")));
        };
        let mut base = BaseRecord::<[u8], [u8]>::to(topic);
        base.key = record.key.map(|span| batch.bytes(span));
        base.payload = record.value.map(|span| batch.bytes(span));
        base.partition = record.partition;
        base.headers = headers(batch, record)?;
        self.send(base)?;
        self.open.add(index, batch.size_of(record));
        if let Some(topic) = self.topics.get(index) {
            self.notebook.produced(index, topic);
        }
        Ok(())
    }

    /// Hands a record to the client; waits while its buffer is full.
    fn send(&self, mut record: BaseRecord<'_, [u8], [u8]>) -> Result<(), Fault> {
        loop {
            let (error, back) = match self.producer.send(record) {
                Ok(()) => return Ok(()),
                Err(refused) => refused,
            };
            match faults::code_of(&error) {
                Some(RDKafkaErrorCode::QueueFull) => {}
                // The transaction failed between two records; this one is not the reason.
                Some(RDKafkaErrorCode::State) => return Err(self.failed_before(&error)),
                _ => return Err(self.refused(&error, &back)),
            }
            record = back;
            self.metrics.wait_for_buffer();
            flush(&self.producer, TICK);
            self.producer.poll(Duration::ZERO);
            self.check_delivery()?;
            self.check_stop()?;
            self.check_age()?;
        }
    }

    fn refused(&self, error: &KafkaError, record: &BaseRecord<'_, [u8], [u8]>) -> Fault {
        let size = record.key.map_or(0, <[u8]>::len) + record.payload.map_or(0, <[u8]>::len);
        let topic = record.topic;
        let attempted = format!("a record of {size} bytes for topic '{topic}' was not taken");
        self.fault(error, &attempted).at_table(topic)
    }

    /// Waits until every record is acknowledged by the broker.
    fn drain(&mut self) -> Result<(), Fault> {
        let given = clock();
        self.await_acknowledgement()?;
        self.bite.begin();
        if self.first_drain.is_none() {
            self.first_drain = Some((given, clock()));
        }
        Ok(())
    }

    fn await_acknowledgement(&self) -> Result<(), Fault> {
        while !flush(&self.producer, GLANCE) {
            self.producer.poll(Duration::ZERO);
            self.check_delivery()?;
            self.check_stop()?;
            self.check_age()?;
        }
        self.producer.poll(Duration::ZERO);
        self.check_delivery()
    }

    /// A fault if a record could not be delivered.
    fn check_delivery(&self) -> Result<(), Fault> {
        if !self.events().delivery_failed() {
            return Ok(());
        }
        let Some(mut failure) = self.events().seen().delivery else { return Ok(()) };
        if is_purge(failure.error) {
            failure = self.await_culprit(failure);
        }
        if is_purge(failure.error) {
            let error = self.ask_for_cause(KafkaError::MessageProduction(failure.error));
            return Err(self.fault(&error, "records were not delivered"));
        }
        if let Some((code, reason)) = self.producer.client().fatal_error() {
            return Err(self.fatal(code, &reason));
        }
        let topic = failure.topic;
        let error = KafkaError::MessageProduction(failure.error);
        let attempted =
            format!("a record of {} bytes for topic '{topic}' was not delivered", failure.size);
        Err(self.fault(&error, &attempted).at_table(topic))
    }

    /// The transaction failed while nothing was asked of it: a record's own refusal says why, else
    /// the client does.
    fn failed_before(&self, state: &KafkaError) -> Fault {
        self.poll_until(|| self.events().delivery_failed());
        if let Err(fault) = self.check_delivery() {
            return fault;
        }
        let error = self.ask_for_cause(state.clone());
        self.fault(&error, "the transaction failed")
    }

    /// Reports come in no order: the records thrown away with a refused one may be told before it.
    fn await_culprit(&self, purged: DeliveryFailure) -> DeliveryFailure {
        let culprit = || self.events().seen().delivery.filter(|it| !is_purge(it.error));
        self.poll_until(|| culprit().is_some());
        culprit().unwrap_or(purged)
    }

    /// Lets the client report what it holds, but not for long: after some failures records stay
    /// where they are until they are thrown away.
    fn poll_until(&self, is_enough: impl Fn() -> bool) {
        let deadline = clock() + SLICE;
        while !is_enough() && self.producer.in_flight_count() > 0 && clock() < deadline {
            self.pause(TICK);
        }
    }

    /// Why the client gave the transaction up. It cannot be committed any more; asking for it makes
    /// the client say why, once it holds no records. `known`: what is said if it does not.
    fn ask_for_cause(&self, known: KafkaError) -> KafkaError {
        self.producer.purge(PurgeConfig::default().queue().inflight());
        let deadline = clock() + GRACE;
        loop {
            match self.producer.commit_transaction(SLICE) {
                // Thrown away, but not yet reported.
                Err(error) if is_retriable(&error) && clock() < deadline => {
                    self.pause(TICK);
                }
                Err(error) => return error,
                Ok(()) => return known,
            }
        }
    }

    /// A fault if the transaction is older than the coordinator allows.
    fn check_age(&self) -> Result<(), Fault> {
        match self.opened {
            Some(opened) if clock() > opened + self.timeout + GRACE => Err(self.too_long(opened)),
            _ => Ok(()),
        }
    }

    fn too_long(&self, opened: Instant) -> Fault {
        let seen = self.events().seen();
        let trouble = seen.recent_trouble();
        let reason = seen.transaction.or(trouble).unwrap_or_else(|| "no error seen".to_owned());
        Code::TransactionTooLong.fault(format!(
            "the Kafka transaction is open for {} s, transaction.timeout.ms is {} s; the client's \
             last words: {reason}",
            (clock() - opened).as_secs(),
            self.timeout.as_secs(),
        ))
        .hint(
            "Raise producer.override.transaction.timeout.ms, or see why the broker is slow or why \
             this process stood still.",
        )
    }

    /// A fault for an error after which this producer is not used again.
    fn fault(&self, error: &KafkaError, attempted: &str) -> Fault {
        if let Some((code, reason)) = self.producer.client().fatal_error() {
            return self.fatal(code, &reason);
        }
        let seen = self.events().seen();
        let mut text = attempted.to_owned();
        let trouble = seen.recent_trouble();
        for reason in [seen.transaction, trouble].into_iter().flatten() {
            text.push_str(": ");
            text.push_str(&reason);
        }
        let mut fault = faults::fault(error, &text, Code::KafkaTransaction);
        if let Some(topic) = text.split_once("partition \"").and_then(|(_, t)| t.split_once('"')) {
            fault = fault.at_table(topic.0);
        }
        self.unless_expired(fault)
    }

    fn fatal(&self, code: RDKafkaErrorCode, reason: &str) -> Fault {
        let fault = faults::definite(code).unwrap_or(Code::KafkaTransaction).fault(reason);
        self.unless_expired(match code {
            RDKafkaErrorCode::TransactionalIdAuthorizationFailed => {
                fault.within(format!("the transactional id '{}'", self.id))
            }
            _ => fault,
        })
    }

    /// The coordinator fences a producer off, too, whose transaction it ended because it was open
    /// for too long (the process was suspended, for instance): that is no second worker.
    fn unless_expired(&self, fault: Fault) -> Fault {
        match self.opened {
            Some(opened)
                if fault.code() == Code::KafkaFenced && clock() >= opened + self.timeout =>
            {
                self.too_long(opened)
            }
            _ => fault,
        }
    }
}

impl TransactionLog for Transactions {
    fn begin(&mut self) -> Result<(), Fault> {
        while let Some(left) =
            self.breather.due().and_then(|due| due.checked_duration_since(clock()))
            && !left.is_zero()
        {
            thread::park_timeout(left);
        }
        self.check_stop()?;
        self.producer
            .begin_transaction()
            .map_err(|error| self.fault(&error, "a transaction cannot be begun"))?;
        self.notebook.begin();
        self.first_drain = None;
        self.opened = Some(clock());
        Ok(())
    }

    fn produce(&mut self, batch: &Batch) -> Result<(), Fault> {
        for record in batch.records() {
            let size = batch.size_of(record);
            if self.bite.is_full_before(size) {
                self.drain()?;
            }
            self.bite.add(size);
            self.send_record(batch, record)?;
        }
        let since = batch.commits().first().copied();
        self.metrics.produced(batch.records().len(), batch.byte_len(), since);
        self.open.commits.extend_from_slice(batch.commits());
        self.producer.poll(Duration::ZERO);
        self.check_delivery()
    }

    fn produce_states(&mut self, states: &[TableState]) -> Result<(), Fault> {
        for state in states {
            let key = self.storage.state_key(&state.key);
            let size = key.len() + state.value.as_deref().map_or(0, <[u8]>::len);
            if self.bite.is_full_before(size) {
                self.drain()?;
            }
            self.bite.add(size);
            let mut record = BaseRecord::<[u8], [u8]>::to(&self.storage.states_topic);
            record.key = Some(key.as_bytes());
            record.payload = state.value.as_deref();
            record.partition = Some(self.storage.states_partition);
            self.send(record)?;
        }
        Ok(())
    }

    fn commit(&mut self, offset: &OffsetRecord) -> Result<(), Fault> {
        #[cfg(feature = "sabotage")]
        if let Some(outside) = self.outside.take() {
            self.finish_commit()?;
            let outcome = self.write_outside(&outside, offset);
            self.outside = Some(outside);
            return outcome;
        }
        let mut record = BaseRecord::<[u8], [u8]>::to(&self.storage.offsets_topic);
        record.key = Some(self.storage.offset_key.as_bytes());
        record.payload = Some(&offset.0);
        record.partition = Some(self.storage.offsets_partition);
        self.send(record)?;
        self.finish_commit()
    }

    fn abort(&mut self) -> Result<(), Fault> {
        self.give_up();
        Ok(())
    }

    fn already_visible(&mut self, batch: &Batch) {
        self.metrics.delivered(batch.commits(), wall_clock_micros());
    }
}

impl Transactions {
    /// Writes a tombstone instead of an offset, and commits.
    ///
    /// # Errors
    /// As for a commit.
    pub(super) fn commit_tombstone(&mut self) -> Result<(), Fault> {
        let mut record = BaseRecord::<[u8], [u8]>::to(&self.storage.offsets_topic);
        record.key = Some(self.storage.offset_key.as_bytes());
        record.partition = Some(self.storage.offsets_partition);
        self.send(record)?;
        self.finish_commit()
    }

    fn finish_commit(&mut self) -> Result<(), Fault> {
        self.drain()?;
        loop {
            let error = match self.producer.commit_transaction(SLICE) {
                Ok(()) => break,
                Err(error) => error,
            };
            if !is_retriable(&error) {
                return Err(self.fault(&error, "the transaction was not committed"));
            }
            // It goes on in the background; asking again resumes the wait.
            self.pause(TICK);
            self.check_stop()?;
            self.check_age()?;
        }
        let now = clock();
        let began = self.opened.take().unwrap_or(now);
        let (given, had) = self.first_drain.unwrap_or((now, now));
        self.breather.committed(began, given, had, now);
        tracing::trace!(
            open = ?(now - began),
            first_sent = ?(given - began),
            first_acknowledged = ?(had - given),
            breather = ?self.breather,
            "a Kafka transaction is committed"
        );
        self.notebook.committed();
        self.metrics.committed(now - began);
        self.count_visible();
        Ok(())
    }

    /// What was open is visible now.
    fn count_visible(&mut self) {
        self.metrics.delivered(&self.open.commits, wall_clock_micros());
        for (counts, name) in self.open.topics.iter_mut().zip(&self.topics) {
            if counts.records > 0 {
                let total = counts.total.get_or_insert_with(|| self.metrics.topic(name));
                total.records.add(counts.records);
                total.bytes.add(counts.bytes);
            }
        }
        self.open.forget();
    }
}

#[cfg(feature = "sabotage")]
fn outside(settings: &KafkaSettings) -> Result<Option<BaseProducer<Events>>, Fault> {
    if !crate::sabotage::Sabotage::OffsetOutside.is_on() {
        return Ok(None);
    }
    let mut config = client::producer_config(settings);
    config.remove("transactional.id");
    client::make(&config, "producer of offsets").map(Some)
}

#[cfg(feature = "sabotage")]
impl Transactions {
    fn write_outside(
        &self,
        outside: &BaseProducer<Events>,
        offset: &OffsetRecord,
    ) -> Result<(), Fault> {
        // The moment that a crash has to hit, made long enough for a test of minutes.
        self.pause(Duration::from_millis(200));
        let mut record = BaseRecord::<[u8], [u8]>::to(&self.storage.offsets_topic);
        record.key = Some(self.storage.offset_key.as_bytes());
        record.payload = Some(&offset.0);
        record.partition = Some(self.storage.offsets_partition);
        outside
            .send(record)
            .map_err(|(error, _)| self.fault(&error, "the offset was not written"))?;
        while !flush(outside, GLANCE) {
            outside.poll(Duration::ZERO);
            self.check_stop()?;
        }
        outside.poll(Duration::ZERO);
        Ok(())
    }
}

fn is_retriable(error: &KafkaError) -> bool {
    matches!(error, KafkaError::Transaction(error) if error.is_retriable())
        || faults::code_of(error) == Some(RDKafkaErrorCode::OperationTimedOut)
}

fn headers(batch: &Batch, record: &Record) -> Result<Option<OwnedHeaders>, Fault> {
    let headers = batch.headers(record);
    if headers.is_empty() {
        return Ok(None);
    }
    let mut owned = OwnedHeaders::new_with_capacity(headers.len());
    for header in headers {
        let key = std::str::from_utf8(batch.bytes(header.name)).map_err(|error| {
            Code::Internal.fault("a header's name is not UTF-8").caused_by(&error)
        })?;
        owned = owned.insert(Header { key, value: header.value.map(|span| batch.bytes(span)) });
    }
    Ok(Some(owned))
}

#[cfg(test)]
mod tests;

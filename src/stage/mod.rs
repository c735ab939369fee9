//! Stage, then produce: source transactions are encoded completely before their first record goes
//! to the publisher.
//!
//! Sits between a source and the publisher: the source says what happened, the stage compiles table
//! versions, asks for schema ids and topics ([`Services`]), encodes, checks sizes, and hands over
//! whole transactions. Knows no database and opens nothing. **Invariants:** what is handed over as
//! complete ends at a transaction's end; a fault inside a transaction takes back its records and
//! none of those before; control records go out before the first row of the shape they announce.

mod ledger;
mod notices;
mod opening;
mod services;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use self::ledger::{Ledger, Membership};
use self::notices::OpenNotice;
use self::opening::Opening;
use crate::change::{Cell, ChangeKind, Event, RowImage, TableChange, TableId, TableVersion};
use crate::convert::{Converter, Converters, Place, TableWriter, Unrouted};
use crate::error::{Code, Fault};
use crate::kafka::{CleanupPolicy, Sender, SizeLimits, Staged, TopicFacts, TopicList};
use crate::observe::{StageMetrics, TableMetrics};
use crate::plan::{
    ControlFormat, ControlOrigin, ControlRecord, NoticeSchemas, PlanSettings, SourceBlock,
    TablePlan, control_record, message_plan, routed_topic, table_topic,
};
use crate::record::{Batch, Marks, RecordShape, Schema, Topic};

pub use crate::kafka::{OffsetRecord, TableState};
pub use crate::record::Side;
pub use services::Services;

/// What a stage is told.
#[derive(Debug)]
pub struct StageSettings {
    /// How records are made.
    pub plan: Arc<PlanSettings>,
    /// The source's block of every value.
    pub source: SourceBlock,
    /// Write keys and values.
    pub converters: Converters,
    /// Where definitions of tables are announced; `None`: nowhere.
    pub control_topic: Option<String>,
    /// A transaction is held back up to so many encoded bytes (`transaction.stage.bytes`).
    pub stage_bytes: usize,
    /// Complete transactions are handed over at the latest when so many bytes are there.
    pub hand_over_bytes: usize,
    /// How large a record may be.
    pub sizes: SizeLimits,
    /// What is counted.
    pub metrics: Arc<StageMetrics>,
}

/// A table version that is ready for rows.
#[derive(Debug)]
pub struct OpenTable {
    writer: TableWriter,
    metrics: Arc<TableMetrics>,
    /// For each kind of change, the columns for which it may have markers that no earlier record
    /// resolves.
    unmergeable: [Box<[usize]>; ChangeKind::ALL.len()],
    /// How its changes count in transactions.
    membership: Membership,
    /// Why its rows cannot be told anew, if they cannot.
    untellable: Option<Fault>,
    /// What is needed to learn topics that depend on rows; `None`: there are none.
    routes: Option<Box<Routes>>,
}

impl OpenTable {
    /// The columns of the row after that were not sent, and for which a change of this kind has
    /// markers that no earlier record resolves.
    pub fn lacking(&self, kind: ChangeKind, row: &RowImage<'_>) -> impl Iterator<Item = usize> {
        let columns = self.unmergeable.get(kind as usize).into_iter().flatten().copied();
        let after = row.after.unwrap_or_default();
        columns.filter(|column| after.get(*column) == Some(&Cell::Unavailable))
    }

    /// Whether its rows can be told anew under another filter: those that are out by their keys.
    ///
    /// # Errors
    /// Why not.
    pub fn check_retelling(&self) -> Result<(), Fault> {
        self.untellable.clone().map_or(Ok(()), |fault| Err(fault.at_table(self.writer.table())))
    }

    /// Counts a record that cannot be merged with an earlier one; the table's first is told.
    fn count_unmergeable(&self, event: &Event<'_>) {
        if self.lacking(event.kind, &event.row).next().is_none() {
            return;
        }
        if self.metrics.unmergeable.get() == 0 {
            tracing::warn!(
                table = self.writer.table(),
                position = event.commit_position,
                "a row under a new key was published with markers for values that the source did \
                 not send; readers find them under no earlier record of the key. Such records \
                 have the header __tidegate.unmergeable; this is the first of the table"
            );
        }
        self.metrics.unmergeable.add_as_only_writer(1);
    }
}

#[derive(Debug)]
struct Routes {
    plan: TablePlan,
    opening: Opening,
}

/// See the module.
#[derive(Debug)]
pub struct Stage<S> {
    settings: StageSettings,
    services: S,
    topics: TopicList,
    queue: Sender,
    batch: Batch,
    /// What of the batch belongs to complete transactions.
    complete: Marks,
    /// The position after the last complete transaction, if it was not handed over yet.
    reached: Option<OffsetRecord>,
    /// States that go out with the records of the open transaction.
    joining: Vec<TableState>,
    /// States that go out with the complete records.
    accompanying: Vec<TableState>,
    /// Control records of the open transaction.
    control: Control,
    open: OpenTransaction,
    counts: OpenCounts,
    /// See [`Stage::written_records`].
    written: u64,
    /// Which table each topic is named after.
    owners: HashMap<String, TableId>,
    /// What is told of the open transaction.
    ledger: Ledger,
    /// Goes out behind everything that is complete if a definite fault ends the stream.
    parting: Option<Control>,
    /// The position that was handed over last.
    last: Option<OffsetRecord>,
    /// Opened by the first announcement.
    announcements: Option<OpenNotice>,
    /// Opened by the first heartbeat.
    heartbeats: Option<OpenNotice>,
}

#[derive(Debug, Default)]
struct Control {
    batch: Batch,
    states: Vec<TableState>,
}

/// What is counted of the open transaction.
#[derive(Debug, Default)]
struct OpenCounts {
    changes: u64,
    /// Bytes that were handed over.
    spilled: u64,
    /// When the last change was processed.
    processed_micros: i64,
}

/// The transaction that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenTransaction {
    /// All of it is still here.
    Staged,
    /// Parts of it were handed over: it is larger than the stage.
    Spilled,
}

impl<S: Services> Stage<S> {
    /// An empty stage.
    pub fn new(settings: StageSettings, services: S, topics: TopicList, queue: Sender) -> Self {
        let ledger = Ledger::new(settings.plan.notices.transactions);
        Self {
            settings,
            services,
            topics,
            queue,
            batch: Batch::new(),
            complete: Marks::default(),
            reached: None,
            joining: Vec::new(),
            accompanying: Vec::new(),
            control: Control::default(),
            open: OpenTransaction::Staged,
            counts: OpenCounts::default(),
            written: 0,
            owners: HashMap::new(),
            ledger,
            parting: None,
            last: None,
            announcements: None,
            heartbeats: None,
        }
    }

    /// How records are made.
    pub fn plan_settings(&self) -> &PlanSettings {
        &self.settings.plan
    }

    /// Whether changes of a kind leave a trace in what is published of a version.
    ///
    /// # Errors
    /// The version cannot be published.
    pub fn publishes(&self, version: &Arc<TableVersion>, kind: ChangeKind) -> Result<bool, Fault> {
        let settings = &self.settings;
        let plan = TablePlan::compile(Arc::clone(version), &settings.plan, &settings.source)?;
        Ok(plan.has(kind))
    }

    /// Makes a table version ready for rows: compiles its plan, registers its schemas, sees to its
    /// topic. What is complete is handed over first, for this may wait.
    ///
    /// # Errors
    /// The version cannot be published, or registry or broker refuse.
    pub async fn open_table(&mut self, version: Arc<TableVersion>) -> Result<OpenTable, Fault> {
        self.hand_over().await?;
        let table = version.table.to_string();
        self.open_version(version).await.map_err(|fault| fault.at_table(table))
    }

    async fn open_version(&mut self, version: Arc<TableVersion>) -> Result<OpenTable, Fault> {
        self.claim_topic(&version.table)?;
        let plan = TablePlan::compile(version, &self.settings.plan, &self.settings.source)?;
        self.open_plan(plan, self.settings.converters).await
    }

    /// Makes messages of applications ready to be written, as changes of the kind
    /// [`ChangeKind::Message`](crate::change::ChangeKind::Message). What is complete is handed over
    /// first, for this may wait.
    ///
    /// # Errors
    /// They cannot be published so, or registry or broker refuse.
    pub async fn open_messages(&mut self) -> Result<OpenTable, Fault> {
        self.hand_over().await?;
        let plan = message_plan(&self.settings.plan, &self.settings.source)?;
        let table = plan.version.table.to_string();
        let converters = self.settings.converters.for_structs();
        self.open_plan(plan, converters).await.map_err(|fault| fault.at_table(table))
    }

    async fn open_plan(
        &mut self,
        plan: TablePlan,
        converters: Converters,
    ) -> Result<OpenTable, Fault> {
        let table = &plan.version.table;
        let metrics = self.settings.metrics.table(&table.namespace, &table.name);
        let mut opening = Opening::new(converters);
        self.foresee(&plan, &opening).await?;
        let mut places = Vec::new();
        for record in plan.records() {
            places.push(match &record.topic {
                Topic::Fixed(topic) => Some(self.place(topic, record, &plan, &mut opening).await?),
                Topic::Routed(_) => None,
            });
        }
        let writer = TableWriter::new(&plan, &opening.converters, &places)?;
        let unmergeable = ChangeKind::ALL.map(|kind| plan.unmergeable(kind).into_boxed_slice());
        let has_routes = places.contains(&None);
        let membership = self.ledger.member(&plan);
        let untellable = plan.untellable.clone();
        let routes = has_routes.then(|| Box::new(Routes { plan, opening }));
        Ok(OpenTable { writer, metrics, unmergeable, membership, untellable, routes })
    }

    /// Lets the topic and the schemas of a plan be asked for together.
    async fn foresee(&mut self, plan: &TablePlan, opening: &Opening) -> Result<(), Fault> {
        let Some((topic, record)) =
            plan.records().find_map(|record| record.topic.fixed().zip(Some(record)))
        else {
            return Ok(());
        };
        let mut schemas = Vec::new();
        for (side, shape) in [(Side::Key, &record.key), (Side::Value, &record.value)] {
            let Some(shape) = shape else { continue };
            let text = opening.converter(side).schema_text(&shape.schema)?;
            schemas.extend(text.map(|text| (side, text)));
        }
        self.services.foresee(topic, &schemas).await
    }

    /// Finds out where a text leads, and sees to the topic. What is complete is handed over first,
    /// for this may wait.
    async fn open_route(
        &mut self,
        table: &mut OpenTable,
        unrouted: &Unrouted,
    ) -> Result<(), Fault> {
        self.hand_over().await?;
        let internal = || Code::Internal.fault("a record without a route asks for one");
        let Routes { plan, opening } = table.routes.as_deref_mut().ok_or_else(internal)?;
        let record = plan.records().nth(unrouted.record).ok_or_else(internal)?;
        let Topic::Routed(route) = &record.topic else { return Err(internal()) };
        let topic = routed_topic(route, &unrouted.text)?;
        let place = self.place(&topic, record, plan, opening).await?;
        table.writer.learn(unrouted, place)
    }

    /// Two tables whose names become one topic's would be mixed up.
    fn claim_topic(&mut self, table: &TableId) -> Result<(), Fault> {
        let topic = table_topic(&self.settings.plan, table)?;
        match self.owners.get(&topic) {
            Some(owner) if owner != table => Err(Code::SchemaIllegalName
                .fault(format!(
                    "the tables {owner} and {table} would both go to the topic '{topic}'"
                ))
                .hint("Exclude one of them, or rename.")),
            Some(_) => Ok(()),
            None => {
                self.owners.insert(topic, table.clone());
                Ok(())
            }
        }
    }

    /// Sees to a record's topic and schemas.
    async fn place(
        &mut self,
        name: &str,
        record: &RecordShape,
        plan: &TablePlan,
        opening: &mut Opening,
    ) -> Result<Place, Fault> {
        let topic = match opening.topic(name) {
            Some(topic) => topic,
            None => {
                let facts = self.services.topic(name).await?;
                refuse_null_keys_if_compacted(plan, name, &facts)?;
                let topic = self.topics.id(name);
                self.settings.sizes.learn(topic, &facts);
                self.topics.set_limit(facts.max_message_bytes);
                opening.keep_topic(name, topic);
                topic
            }
        };
        let mut ids = [None; 2];
        let sides = [(Side::Key, &record.key), (Side::Value, &record.value)];
        for (id, (side, shape)) in ids.iter_mut().zip(sides) {
            let Some(shape) = shape else { continue };
            *id = match opening.schema_id(topic, side, &shape.schema) {
                Some(known) => known,
                None => {
                    let converter = opening.converter(side);
                    let new = self.schema_id(converter, name, side, &shape.schema).await?;
                    opening.keep_schema_id(topic, side, &shape.schema, new);
                    new
                }
            };
        }
        let [key, value] = ids;
        Ok(Place { topic, key, value })
    }

    async fn schema_id(
        &mut self,
        converter: Converter,
        topic: &str,
        side: Side,
        schema: &Schema,
    ) -> Result<Option<u32>, Fault> {
        match converter.schema_text(schema)? {
            Some(text) => self.services.schema_id(topic, side, &text).await.map(Some),
            None => Ok(None),
        }
    }

    /// How and where versions are announced, as one word of the configuration and the topic's name.
    pub fn control_form(&self) -> Option<String> {
        let format = self.settings.plan.control_format.as_str();
        self.settings.control_topic.as_ref().map(|topic| format!("{format} {topic}"))
    }

    /// The record that announces a version, in the shape that is configured.
    pub fn control_record(
        &self,
        origin: &ControlOrigin<'_>,
        versions: (Option<&TableVersion>, &TableVersion),
        change: Option<&TableChange>,
    ) -> ControlRecord {
        let form = (self.settings.plan.control_format, &self.settings.source);
        let mut record = control_record(form, origin, versions, change);
        if form.0 == ControlFormat::Debezium {
            let context = self.context_headers().into_iter();
            record.headers.extend(context.map(|(name, text)| (name.to_owned(), text)));
        }
        record
    }

    /// Announces a table version, ahead of its first row, with the state that a restart needs.
    ///
    /// # Errors
    /// The record cannot be encoded, or registry or broker refuse.
    pub async fn announce(
        &mut self,
        record: &ControlRecord,
        state: TableState,
    ) -> Result<(), Fault> {
        self.hand_over().await?;
        self.control.states.push(state);
        let mut batch = std::mem::take(&mut self.control.batch);
        let written = self.write_announcement(record, &mut batch).await;
        self.control.batch = batch;
        written
    }

    /// Tells why the stream ends here. It goes out behind everything that is complete, if the stream
    /// does end by a definite fault. Of a transaction that was split, what Kafka has stays there.
    ///
    /// # Errors
    /// The record cannot be encoded, or registry or broker refuse.
    pub async fn leave_word(
        &mut self,
        record: &ControlRecord,
        state: TableState,
    ) -> Result<(), Fault> {
        self.hand_over().await?;
        let mut batch = Batch::new();
        self.write_announcement(record, &mut batch).await?;
        self.parting = Some(Control { batch, states: vec![state] });
        Ok(())
    }

    /// The stream begins at this position.
    pub fn stand_at(&mut self, position: OffsetRecord) {
        self.last = Some(position);
    }

    async fn write_announcement(
        &mut self,
        record: &ControlRecord,
        batch: &mut Batch,
    ) -> Result<(), Fault> {
        let Some(topic) = self.settings.control_topic.clone() else {
            return Ok(());
        };
        let schemas = NoticeSchemas {
            key: Arc::clone(&record.key_schema),
            value: Arc::clone(&record.value_schema),
        };
        let mut open = match self.announcements.take() {
            Some(open) if open.is_of(&schemas) => open,
            _ => self.open_notice(&topic, schemas, &[]).await?,
        };
        let written = self.write_with(&mut open, record, batch);
        self.announcements = Some(open);
        written
    }

    /// Writes a record with its own headers.
    fn write_with(
        &self,
        open: &mut OpenNotice,
        record: &ControlRecord,
        batch: &mut Batch,
    ) -> Result<(), Fault> {
        open.with_headers(&record.headers, self.settings.converters.headers)?;
        open.write((&record.key, &record.value), None, batch)
    }

    /// Keeps a table's state without a record, with the next position that is stored.
    pub fn remember(&mut self, state: TableState) {
        self.control.states.push(state);
    }

    /// Keeps a state in the same Kafka transaction as the records of the transaction that is ended
    /// next: the two become visible together or not at all.
    pub fn accompany(&mut self, state: TableState) {
        self.joining.push(state);
    }

    /// What is counted.
    pub fn metrics(&self) -> Arc<StageMetrics> {
        Arc::clone(&self.settings.metrics)
    }

    /// Encodes all records of a change. Waits only where one of them leads to a topic that none of
    /// the table's rows led to before.
    ///
    /// # Errors
    /// A value does not fit, or a record is too large, or a topic cannot be had; nothing of the
    /// change stays.
    pub async fn write(&mut self, table: &mut OpenTable, event: &Event<'_>) -> Result<(), Fault> {
        if self.ledger.is_begin_due(&table.membership, event.kind) {
            Box::pin(self.begin_transaction()).await?;
        }
        while let Some(unrouted) = self.encode(table, event)? {
            Box::pin(self.open_route(table, &unrouted))
                .await
                .map_err(|fault| table.writer.locate(fault, event))?;
        }
        table.metrics.count(event);
        table.count_unmergeable(event);
        self.counts.changes += 1;
        self.counts.processed_micros = event.processed_micros;
        self.settings.metrics.staged_bytes.set_len(self.batch.byte_len());
        self.ledger.count(&table.membership, event.kind);
        Ok(())
    }

    fn encode(&mut self, table: &OpenTable, event: &Event<'_>) -> Result<Option<Unrouted>, Fault> {
        let placed;
        let event = match self.ledger.place(&table.membership) {
            None => event,
            transaction => {
                placed = Event { transaction, ..*event };
                &placed
            }
        };
        let before = self.batch.marks();
        let unrouted = table.writer.write(event, &mut self.batch)?;
        for index in before.records()..self.batch.records().len() {
            let checked = self.settings.sizes.check(&self.batch, index..index + 1, &self.topics);
            if let Err(fault) = checked {
                let part = self.batch.records().get(index).map_or(0, |record| record.part);
                let key = table.writer.readable_key(event, part);
                self.batch.truncate(before);
                let fault = fault.at_table(table.writer.table());
                return Err(key.into_iter().fold(fault, Fault::at_key));
            }
        }
        if unrouted.is_none() {
            self.written += (self.batch.records().len() - before.records()) as u64;
        }
        Ok(unrouted)
    }

    /// How many records of changes were staged so far, whatever became of them.
    pub const fn written_records(&self) -> u64 {
        self.written
    }

    /// Whether the open transaction has outgrown the stage, so that [`Stage::spill`] is due.
    pub fn is_full(&self) -> bool {
        let limit = match self.open {
            OpenTransaction::Staged => self.settings.stage_bytes,
            OpenTransaction::Spilled => self.settings.hand_over_bytes,
        };
        self.batch.byte_len() - self.complete.bytes() > limit
    }

    /// Hands over a part of the open transaction. `before` says how far its earlier parts reach,
    /// `inside` how far this one does.
    ///
    /// # Errors
    /// The publisher has ended.
    pub async fn spill(&mut self, before: OffsetRecord, inside: OffsetRecord) -> Result<(), Fault> {
        self.hand_over().await?;
        self.send_control(&before).await?;
        self.open = OpenTransaction::Spilled;
        self.counts.spilled += self.batch.byte_len() as u64;
        let spare = self.queue.batch();
        let batch = std::mem::replace(&mut self.batch, spare);
        self.complete = Marks::default();
        let item = Staged::Records { batch, states: Vec::new(), offset: inside, complete: false };
        self.send(item).await
    }

    /// Ends the open transaction; `end` is the position after it, `before` the one before it with
    /// its control records out. `committed_micros`: when the source committed it; `None` for rows
    /// that no transaction of the source brought now, as a snapshot's.
    ///
    /// # Errors
    /// The publisher has ended.
    pub async fn commit(
        &mut self,
        before: OffsetRecord,
        end: OffsetRecord,
        committed_micros: Option<i64>,
    ) -> Result<(), Fault> {
        if !self.control.states.is_empty() {
            self.hand_over().await?;
            self.send_control(&before).await?;
        }
        if self.ledger.is_open() {
            Box::pin(self.end_transaction()).await?;
        }
        self.count_transaction(committed_micros);
        let spilled = self.open == OpenTransaction::Spilled;
        self.open = OpenTransaction::Staged;
        self.complete = self.batch.marks();
        self.accompanying.append(&mut self.joining);
        self.reached = Some(end);
        if spilled {
            // the publisher must learn that the transaction it holds open is complete
            return self.send_complete(true).await;
        }
        Ok(())
    }

    fn count_transaction(&mut self, committed_micros: Option<i64>) {
        let OpenCounts { changes, spilled, processed_micros } = std::mem::take(&mut self.counts);
        if changes == 0 {
            return;
        }
        let metrics = &self.settings.metrics;
        metrics.last_change.set(processed_micros);
        if let Some(committed_micros) = committed_micros {
            let staged = self.batch.byte_len() - self.complete.bytes();
            metrics.transaction_changes.observe(changes);
            metrics.transaction_bytes.observe(spilled + staged as u64);
            self.batch.push_commit(committed_micros);
        }
    }

    /// Moves on without records (a keepalive, or a transaction that was published before).
    pub fn mark(&mut self, position: OffsetRecord) {
        self.reached = Some(position);
    }

    /// Whether enough complete transactions are there to hand them over.
    pub fn is_due(&self) -> bool {
        self.complete.bytes() >= self.settings.hand_over_bytes
    }

    /// Hands over all complete transactions.
    ///
    /// # Errors
    /// The publisher has ended.
    pub async fn hand_over(&mut self) -> Result<(), Fault> {
        self.send_complete(false).await
    }

    async fn send_complete(&mut self, even_if_empty: bool) -> Result<(), Fault> {
        let Some(offset) = self.reached.take() else {
            return Ok(());
        };
        self.last = Some(offset.clone());
        let states = std::mem::take(&mut self.accompanying);
        if self.complete.records() == 0 && states.is_empty() && !even_if_empty {
            return self.send(Staged::Marker { offset }).await;
        }
        let spare = self.queue.batch();
        let rest = self.batch.split_off(self.complete, spare);
        let batch = std::mem::replace(&mut self.batch, rest);
        self.complete = Marks::default();
        self.send(Staged::Records { batch, states, offset, complete: true }).await
    }

    async fn send_control(&mut self, offset: &OffsetRecord) -> Result<(), Fault> {
        if self.control.states.is_empty() {
            return Ok(());
        }
        let Control { batch, states } = std::mem::take(&mut self.control);
        self.send(Staged::Control { batch, states, offset: offset.clone() }).await
    }

    /// Stores an offset and waits until it is in Kafka, with everything before it.
    ///
    /// # Errors
    /// The publisher has ended.
    pub async fn store(&mut self, offset: Option<OffsetRecord>) -> Result<(), Fault> {
        self.hand_over().await?;
        if let Some(offset) = &offset {
            self.send_control(offset).await?;
        }
        let (done, waiter) = oneshot::channel();
        self.send(Staged::Flush { offset, done }).await?;
        waiter.await.unwrap_or_else(|_gone| Err(publisher_ended()))
    }

    /// Ends the stream at a definite fault: complete transactions go out, the open one is taken
    /// back.
    ///
    /// # Errors
    /// The publisher has ended.
    pub async fn fail(&mut self, fault: Fault) -> Result<(), Fault> {
        self.batch.truncate(self.complete);
        self.counts = OpenCounts::default();
        self.control = Control::default();
        self.joining.clear();
        self.ledger.forget();
        self.hand_over().await?;
        let last = match (self.parting.take(), self.last.clone()) {
            (Some(Control { batch, states }), Some(offset)) => {
                Staged::Refusal { fault, batch, states, offset }
            }
            _ => Staged::Fault(fault),
        };
        self.send(last).await
    }

    async fn send(&self, item: Staged) -> Result<(), Fault> {
        let metrics = &self.settings.metrics;
        if let Staged::Records { batch, .. } = &item {
            metrics.records.add(batch.records().len() as u64);
        }
        metrics.staged_bytes.set_len(self.batch.byte_len());
        self.queue.send(item).await.map_err(|_closed| publisher_ended())?;
        metrics.queue_bytes.set_len(self.queue.bytes_in_flight());
        Ok(())
    }
}

/// What a reader says when the queue is closed; the publisher's own fault is the one that counts.
fn publisher_ended() -> Fault {
    Code::KafkaTransaction.fault("the publisher has ended")
}

/// Sees that a topic takes the records of a plan.
///
/// # Errors
/// `TOPIC-COMPACTED`: some have no key, and the topic is compacted.
pub fn refuse_null_keys_if_compacted(
    plan: &TablePlan,
    topic: &str,
    facts: &TopicFacts,
) -> Result<(), Fault> {
    let leads_there = |record: &RecordShape| record.topic.fixed().is_none_or(|own| own == topic);
    let null_keyed = |record: &RecordShape| leads_there(record) && record.key.is_none();
    let needs_key = facts.cleanup_policy.is_some_and(CleanupPolicy::needs_key);
    if !needs_key || !plan.records().any(null_keyed) {
        return Ok(());
    }
    Err(if plan.records().all(|record| record.key.is_none()) {
        Code::TopicCompacted
            .fault(format!("the table has no key, and topic '{topic}' has cleanup.policy=compact"))
    } else {
        Code::TopicCompacted
            .fault(format!(
                "a truncate is published with a null key, and topic '{topic}' has cleanup.policy=compact"
            ))
            .hint("Set skipped.operations=t, or cleanup.policy=delete on the topic.")
    })
}

//! A look at what a connector would publish: the real source, plan and stage, and instead of Kafka
//! and registries a reader that is given the records as JSON.
//!
//! Knows no terminal. **Invariant:** no broker and no registry is asked anything.

use std::sync::Arc;

use tokio::sync::watch;

use super::run::stage_settings;
use crate::config::TypedConnector;
use crate::convert::{Converter, Converters, DecimalFormat};
use crate::error::{Code, Fault};
use crate::kafka::{
    CleanupPolicy, OffsetRecord, Received, Receiver, Staged, TopicFacts, TopicList, channel,
};
use crate::record::Batch;
use crate::sources::{OrderDesk, Start, Trial};
use crate::stage::{Services, Side, Stage, StageSettings};

/// How long the reader waits for the next item at once; it only bounds the wait.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// A record that would be published.
#[derive(Clone, Debug)]
pub struct TriedRecord<'a> {
    /// Its topic.
    pub topic: &'a str,
    /// Its key as JSON; `None`: null.
    pub key: Option<&'a [u8]>,
    /// Its value as JSON; `None`: a tombstone.
    pub value: Option<&'a [u8]>,
    /// Its headers.
    pub headers: Vec<(&'a [u8], Option<&'a [u8]>)>,
}

/// What is to be looked at.
#[derive(Debug)]
pub struct Look {
    /// What the source is told.
    pub trial: Trial,
    /// Whether definitions of tables are shown, too.
    pub schema_changes: bool,
    /// Ends the look by turning true.
    pub stop: watch::Sender<bool>,
}

/// Passes every record to `reader`, until that answers false or the look is told to stop.
///
/// # Errors
/// What a task would meet, as far as it has to do with the source and the records.
pub(super) async fn try_out(
    connector: &TypedConnector,
    look: Look,
    reader: impl FnMut(&TriedRecord<'_>) -> bool + Send + 'static,
) -> Result<(), Fault> {
    let Look { trial, schema_changes, stop } = look;
    let (sender, receiver) = channel(connector.queue_bytes);
    let list = TopicList::new();
    let (committed_sender, committed) = watch::channel(None);
    let start = Start {
        is_first: true,
        offset: None,
        states: Vec::new(),
        committed,
        stop: stop.subscribe(),
        // they would be written, and their query would change the database
        heartbeats: None,
        metrics: Arc::default(),
        orders: OrderDesk::open().1,
    };
    let json = Converter::Json { schemas: false, decimals: DecimalFormat::Numeric };
    let settings = StageSettings {
        converters: Converters { key: json, value: json, headers: connector.headers },
        control_topic: schema_changes.then(|| connector.schema_changes_topic.clone()),
        ..stage_settings(connector, Arc::default())
    };
    let stage = Stage::new(settings, Nothing, list.clone(), sender);
    let shower = Shower { queue: receiver, list, committed: committed_sender, stop, reader };
    let showing = tokio::task::spawn_blocking(move || shower.run());
    let outcome = connector.source.try_out(trial, start, stage).await;
    // the stage is gone, so the queue ends
    showing.await.map_err(|error| Code::Internal.fault("the reader").caused_by(&error))?;
    outcome
}

/// Topics are taken for granted, and JSON needs no registry.
#[derive(Debug)]
struct Nothing;

impl Services for Nothing {
    async fn schema_id(&mut self, _: &str, _: Side, _: &str) -> Result<u32, Fault> {
        Err(Code::Internal.fault("JSON asks for no schema's id"))
    }

    async fn topic(&mut self, _: &str) -> Result<TopicFacts, Fault> {
        Ok(TopicFacts {
            partitions: 1,
            cleanup_policy: Some(CleanupPolicy::Delete),
            max_message_bytes: None,
            created: false,
        })
    }
}

/// Stands where the publisher would.
struct Shower<R> {
    queue: Receiver,
    list: TopicList,
    committed: watch::Sender<Option<OffsetRecord>>,
    stop: watch::Sender<bool>,
    reader: R,
}

impl<R: FnMut(&TriedRecord<'_>) -> bool> Shower<R> {
    fn run(mut self) {
        let mut topics: Vec<Arc<str>> = Vec::new();
        loop {
            let staged = match self.queue.recv_timeout(PATIENCE) {
                Received::Staged(staged) => staged,
                Received::Empty => continue,
                Received::Closed => return,
            };
            let offset = match staged {
                Staged::Records { batch, offset, complete, .. } => {
                    self.show(&batch, &mut topics);
                    complete.then_some(offset)
                }
                Staged::Control { batch, offset, .. } => {
                    self.show(&batch, &mut topics);
                    Some(offset)
                }
                Staged::Marker { offset } => Some(offset),
                Staged::Flush { offset, done } => {
                    // whoever asked may be gone
                    drop(done.send(Ok(())));
                    offset
                }
                // the source's own end says the same
                Staged::Fault(_) => None,
                Staged::Refusal { batch, .. } => {
                    self.show(&batch, &mut topics);
                    None
                }
            };
            if offset.is_some() {
                self.committed.send_replace(offset);
            }
        }
    }

    fn show(&mut self, batch: &Batch, topics: &mut Vec<Arc<str>>) {
        for record in batch.records() {
            if *self.stop.borrow() {
                return;
            }
            let index = record.topic.0 as usize;
            if topics.len() <= index {
                self.list.copy_news(topics);
            }
            let Some(topic) = topics.get(index) else { continue };
            let headers = batch.headers(record).iter();
            let shown = TriedRecord {
                topic,
                key: record.key.map(|span| batch.bytes(span)),
                value: record.value.map(|span| batch.bytes(span)),
                headers: headers
                    .map(|one| (batch.bytes(one.name), one.value.map(|span| batch.bytes(span))))
                    .collect(),
            };
            if !(self.reader)(&shown) {
                self.stop.send_replace(true);
            }
        }
    }
}

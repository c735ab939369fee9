//! The path from frames to the publisher's queue dies behind every frame of recorded streams, and
//! goes on from what Kafka holds by then: what all lives published together is what one life would
//! have published, in the same order.
//!
//! Kafka is modelled by the rule of its transactions: what was handed over counts when its offset
//! is committed, and what was not is gone. The server sends either everything again, or, as it
//! does, only transactions behind the offset, with descriptions of their tables anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use regex::Regex;
use tidegate::config::{ConnectorConfig, Environment, TypedConnector, WorkerConfig};
use tidegate::convert::Converters;
use tidegate::error::Fault;
use tidegate::kafka::{
    CleanupPolicy, OffsetRecord, Received, SizeLimits, Staged, TableState, TopicFacts, TopicList,
    channel,
};
use tidegate::record::Batch;
use tidegate::sources::SourceSettings;
use tidegate::sources::postgres::offset::{Offset, Phase};
use tidegate::sources::postgres::replay::resume;
use tidegate::sources::postgres::wire::Lsn;
use tidegate::stage::{Services, Side, Stage, StageSettings};

use crate::streams;

struct Outside;

impl Services for Outside {
    async fn schema_id(&mut self, _: &str, _: Side, _: &str) -> Result<u32, Fault> {
        Ok(1)
    }

    async fn topic(&mut self, _: &str) -> Result<TopicFacts, Fault> {
        Ok(TopicFacts {
            partitions: 1,
            cleanup_policy: Some(CleanupPolicy::Delete),
            max_message_bytes: Some(1 << 20),
            created: false,
        })
    }
}

fn connector() -> TypedConnector {
    let config: ConnectorConfig = [
        ("name", "c"),
        ("connector.class", "io.debezium.connector.postgresql.PostgresConnector"),
        ("topic.prefix", "p"),
        ("database.hostname", "db"),
        ("database.user", "u"),
        ("database.password", "p"),
        ("database.dbname", "d"),
        ("key.converter", "JsonConverter"),
        ("value.converter", "JsonConverter"),
        ("key.converter.schemas.enable", "false"),
        ("value.converter.schemas.enable", "false"),
        ("skipped.operations", "none"),
        ("provide.transaction.metadata", "true"),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), Some(value.to_owned())))
    .collect();
    let environment: Environment = Arc::new(|_name| None);
    let worker = WorkerConfig::parse("bootstrap.servers=localhost:9092\n", &environment);
    TypedConnector::parse(&config, &worker.unwrap()).unwrap()
}

/// How much of a transaction is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// All of it.
    Whole,
    /// Next to nothing: each change is handed over as a part.
    Nothing,
}

/// When Kafka commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Commits {
    /// At the end of transactions only; what is open at a crash is withdrawn.
    AtEnds,
    /// Each part, as where a transaction is split for its size.
    EachPart,
}

/// What a server sends to one who comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sends {
    Everything,
    WhatFollows,
}

/// One item of the queue: its records as text, and what comes with them.
#[derive(Clone, Debug)]
struct Item {
    records: Vec<String>,
    states: Vec<TableState>,
    offset: OffsetRecord,
    /// Whether everything up to here may be committed at an end of a transaction.
    ends: bool,
}

/// What Kafka has committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Kafka {
    records: Vec<String>,
    states: BTreeMap<String, Option<Vec<u8>>>,
    offset: Option<OffsetRecord>,
}

impl Kafka {
    /// Takes what a life handed over, as far as it is committed when that life ends.
    fn commit(&mut self, items: &[Item], commits: Commits) {
        let count = match commits {
            Commits::EachPart => items.len(),
            Commits::AtEnds => items.iter().rposition(|item| item.ends).map_or(0, |last| last + 1),
        };
        for item in &items[..count] {
            self.records.extend_from_slice(&item.records);
            for state in &item.states {
                self.states.insert(state.key.clone(), state.value.clone());
            }
            self.offset = Some(item.offset.clone());
        }
    }

    fn stored(&self) -> Option<Offset> {
        self.offset.as_ref().map(|record| Offset::decode(&record.0).unwrap())
    }
}

/// Everything that lives have in common.
struct World {
    connector: TypedConnector,
    runtime: tokio::runtime::Runtime,
}

/// What a life handed over, and how many items it had handed over behind each frame.
struct Life {
    items: Vec<Item>,
    behind: Vec<usize>,
    /// Why it ended before the frames did.
    refused: Option<Fault>,
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        Self { connector: connector(), runtime }
    }

    /// Feeds the frames to a new process that finds what Kafka holds. It ends with the frames, or
    /// where one is refused.
    fn live(&self, kafka: &Kafka, frames: &[Vec<u8>], held: Held) -> Life {
        let connector = self.connector.clone();
        let SourceSettings::Postgres(source) = connector.source.clone();
        let (stage_bytes, hand_over_bytes) = match held {
            Held::Whole => (1 << 20, 1 << 20),
            Held::Nothing => (1, 1),
        };
        let settings = StageSettings {
            source: connector.source.block(&connector.plan.topic_prefix),
            plan: Arc::new(connector.plan),
            converters: Converters {
                key: connector.key.converter,
                value: connector.value.converter,
                headers: connector.headers,
            },
            control_topic: Some(connector.schema_changes_topic),
            stage_bytes,
            hand_over_bytes,
            sizes: SizeLimits::new(&connector.kafka),
            metrics: Arc::default(),
        };
        let (sender, mut receiver) = channel(1 << 30);
        let topics = TopicList::new();
        let stage = Stage::new(settings, Outside, topics.clone(), sender);
        let mut life = Life { items: Vec::new(), behind: Vec::new(), refused: None };
        let take = || {
            while let Received::Staged(staged) = receiver.recv_timeout(Duration::ZERO) {
                life.items.push(item(staged, &topics));
            }
            life.behind.push(life.items.len());
        };
        let states = kafka.states.iter();
        let states: Vec<_> = states
            .map(|(key, value)| TableState { key: key.clone(), value: value.clone() })
            .collect();
        let stored = (kafka.offset.as_ref(), &*states);
        let reads = frames.iter().map(std::slice::from_ref);
        let outcome = self.runtime.block_on(resume(Arc::new(*source), stage, stored, reads, take));
        life.refused = outcome.err();
        life
    }

    /// What one life publishes.
    fn whole(&self, frames: &[Vec<u8>], held: Held) -> (Life, Kafka) {
        let life = self.live(&Kafka::default(), frames, held);
        let mut kafka = Kafka::default();
        kafka.commit(&life.items, Commits::AtEnds);
        (life, kafka)
    }
}

fn item(staged: Staged, topics: &TopicList) -> Item {
    match staged {
        Staged::Records { batch, states, offset, complete } => {
            Item { records: texts(&batch, topics), states, offset, ends: complete }
        }
        Staged::Control { batch, states, offset } => {
            Item { records: texts(&batch, topics), states, offset, ends: true }
        }
        Staged::Marker { offset } => {
            Item { records: Vec::new(), states: Vec::new(), offset, ends: true }
        }
        Staged::Flush { .. } | Staged::Fault(_) | Staged::Refusal { .. } => {
            unreachable!("nothing of that kind is recorded")
        }
    }
}

fn texts(batch: &Batch, topics: &TopicList) -> Vec<String> {
    // `source.sequence` begins with the last commit before; a later life knows only that it was not
    // behind its offset.
    static BEFORE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#""sequence":"\[[^,]*,"#).unwrap());
    let text = |span| {
        let text = String::from_utf8_lossy(batch.bytes(span));
        BEFORE.replace(&text, "\"sequence\":\"[…,").into_owned()
    };
    let records = batch.records().iter().map(|record| {
        let headers = batch.headers(record).iter();
        let headers: Vec<_> =
            headers.map(|header| (text(header.name), header.value.map(text))).collect();
        let topic = topics.name(record.topic).unwrap();
        format!("{topic} {:?} {:?} {headers:?}", record.key.map(text), record.value.map(text))
    });
    records.collect()
}

/// What a server sends that was asked for what follows an offset.
fn sent(frames: &[Vec<u8>], stored: Option<&Offset>, sends: Sends) -> Vec<Vec<u8>> {
    match stored.map(|offset| offset.phase) {
        Some(Phase::Streaming { end }) if sends == Sends::WhatFollows => {
            let mut server = Server::default();
            frames.iter().for_each(|frame| server.send(frame, end));
            server.out
        }
        _ => frames.to_vec(),
    }
}

/// A connection that begins later: descriptions are sent again, right before the first change that
/// needs them.
#[derive(Default)]
struct Server {
    out: Vec<Vec<u8>>,
    /// Descriptions that the next change needs.
    news: Vec<Vec<u8>>,
    /// What was described together with a relation, at last.
    known: BTreeMap<u32, Vec<Vec<u8>>>,
    /// What this connection was told.
    described: BTreeSet<u32>,
    is_skipping: bool,
}

impl Server {
    fn send(&mut self, frame: &[u8], after: Lsn) {
        let Some(message) = frame.get(25..).filter(|_| frame[0] == b'w') else {
            return self.out.push(frame.to_vec());
        };
        let number = |at: usize| Lsn(u64::from_be_bytes(message[at..at + 8].try_into().unwrap()));
        let relations = match message[0] {
            b'R' | b'Y' => return self.news.push(frame.to_vec()),
            // A message of no transaction; its own position is the end of its record.
            b'M' if message[1] == 0 => {
                if number(2) > after {
                    self.out.push(frame.to_vec());
                }
                return;
            }
            b'B' => {
                self.is_skipping = number(1) < after;
                Vec::new()
            }
            b'I' | b'U' | b'D' => vec![oid(message, 1)],
            b'T' => (6..message.len()).step_by(4).map(|at| oid(message, at)).collect(),
            _ => Vec::new(),
        };
        let news = std::mem::take(&mut self.news);
        let named: Vec<_> =
            news.iter().filter(|one| one[25] == b'R').map(|one| oid(one, 26)).collect();
        for relation in &named {
            self.known.insert(*relation, news.clone());
        }
        if !self.is_skipping {
            self.described.extend(named);
            self.out.extend(news);
            for relation in relations {
                if self.described.insert(relation) {
                    self.out.extend(self.known[&relation].clone());
                }
            }
            self.out.push(frame.to_vec());
        }
        self.is_skipping &= message[0] != b'C';
    }
}

fn oid(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// What the streams together have to show, so that the test is about something.
#[derive(Debug, Default)]
struct Seen {
    /// `split`, `truncate`, `message`, `control`.
    what: BTreeSet<&'static str>,
    topics: BTreeSet<String>,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.what.extend(other.what);
        self.topics.extend(other.topics);
    }

    fn look(&mut self, kafka: &Kafka) {
        if kafka.stored().is_some_and(|offset| offset.inside.is_some()) {
            self.what.insert("split");
        }
        for record in &kafka.records {
            for (text, what) in [
                ("\\\"op\\\":\\\"t\\\"", "truncate"),
                ("\\\"op\\\":\\\"m\\\"", "message"),
                ("schema-changes", "control"),
            ] {
                if record.contains(text) {
                    self.what.insert(what);
                }
            }
            self.topics.extend(record.split(' ').next().map(str::to_owned));
        }
    }

    #[track_caller]
    fn has(&self, what: &[&str]) {
        assert!(what.iter().all(|one| self.what.contains(one)), "{self:?}");
    }
}

#[track_caller]
fn same(name: &str, what: &str, actual: &[String], expected: &[String]) {
    let differs = actual.iter().zip(expected).position(|(a, e)| a != e);
    let at = differs.unwrap_or_else(|| actual.len().min(expected.len()));
    assert!(
        actual == expected,
        "{name}, {what}: {} records instead of {}; at {at}: {:?} instead of {:?}",
        actual.len(),
        expected.len(),
        actual.get(at),
        expected.get(at)
    );
}

/// Dies once, behind each frame in turn.
fn die_behind_each_frame(world: &World, name: &str, frames: &[Vec<u8>], held: Held) -> Seen {
    let mut seen = Seen::default();
    let (first_life, whole) = world.whole(frames, held);
    // A life sees nothing of the one before but what Kafka holds: the same needs to be tried once.
    let mut tried: Vec<Kafka> = Vec::new();
    for commits in [Commits::AtEnds, Commits::EachPart] {
        for (died, handed_over) in first_life.behind.iter().enumerate() {
            let mut kafka = Kafka::default();
            kafka.commit(&first_life.items[..*handed_over], commits);
            if tried.contains(&kafka) {
                continue;
            }
            seen.look(&kafka);
            for sends in [Sends::Everything, Sends::WhatFollows] {
                let mut kafka = kafka.clone();
                let again = sent(frames, kafka.stored().as_ref(), sends);
                let second_life = world.live(&kafka, &again, held);
                kafka.commit(&second_life.items, commits);
                let what = format!("{held:?}, {commits:?}, {sends:?}, died behind frame {died}");
                assert!(second_life.refused.is_none(), "{name}, {what}: {:?}", second_life.refused);
                same(name, &what, &kafka.records, &whole.records);
                assert_eq!(kafka.states, whole.states, "{name}, {what}");
            }
            tried.push(kafka);
        }
    }
    seen
}

/// Lives only until one more thing is committed, again and again.
fn die_at_each_commit(world: &World, name: &str, frames: &[Vec<u8>]) {
    let (_, whole) = world.whole(frames, Held::Nothing);
    let mut kafka = Kafka::default();
    for _life in 0..2 * frames.len() {
        let again = sent(frames, kafka.stored().as_ref(), Sends::WhatFollows);
        let items = world.live(&kafka, &again, Held::Nothing).items;
        let news = items.iter().position(|item| Some(&item.offset) != kafka.offset.as_ref());
        let Some(first) = news else { break };
        kafka.commit(&items[..=first], Commits::EachPart);
    }
    same(name, "many deaths", &kafka.records, &whole.records);
    assert_eq!(kafka.states, whole.states, "{name}");
}

/// Of the newest server; that the others say the same is seen where recordings are compared.
fn check(script: &str) -> Seen {
    let world = World::new();
    let mut seen = Seen::default();
    let (name, frames) = streams::recorded(script).pop().unwrap();
    // Some end with what is refused, in a transaction that therefore never ends.
    let taken = world.live(&Kafka::default(), &frames, Held::Whole).behind.len();
    let is_commit = |frame: &Vec<u8>| frame.get(25) == Some(&b'C') && frame[0] == b'w';
    let end = frames[..taken].iter().rposition(is_commit).unwrap();
    let frames = &frames[..=end];
    assert!(end > 10, "{name}");
    seen.add(die_behind_each_frame(&world, &name, frames, Held::Whole));
    seen.add(die_behind_each_frame(&world, &name, frames, Held::Nothing));
    die_at_each_commit(&world, &name, frames);
    seen
}

#[test]
fn changes_of_every_form_survive_any_death() {
    let seen = check("dml");
    seen.has(&["split", "message", "control"]);
    assert!(seen.topics.len() > 5, "{seen:?}");
}

#[test]
fn old_rows_survive_any_death() {
    check("identity").has(&["split"]);
}

#[test]
fn completed_values_survive_any_death() {
    check("toast").has(&["split"]);
}

#[test]
fn new_definitions_survive_any_death() {
    check("ddl").has(&["split", "control"]);
}

#[test]
fn partitions_survive_any_death() {
    check("partitions").has(&["split"]);
}

#[test]
fn messages_and_truncates_survive_any_death() {
    check("transactions").has(&["split", "message", "truncate"]);
}

#[test]
fn an_interleaved_log_survives_any_death() {
    check("resume").has(&["split"]);
}

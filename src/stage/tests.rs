//! What reaches the publisher, and in which order.

use std::sync::Arc;
use std::time::Duration;

use super::{OpenTable, Services, Side, Stage, StageSettings};
use crate::change::{Cell, ChangeKind, ColumnType, Event, Instant, RowImage, Scalar};
use crate::convert::{Converter, Converters, DecimalFormat, HeaderConverter};
use crate::error::{Code, Fault};
use crate::kafka::{
    CleanupPolicy, OffsetRecord, Received, Receiver, SizeLimits, Staged, TableState, TopicFacts,
    TopicList, channel,
};
use crate::plan::testing::{column, required, source_block, table};
use crate::plan::{
    ChangeMode, ControlFormat, ControlOrigin, ControlRecord, DeleteHandling, ExtractNewRecordState,
    PlanSettings, Provenance, Step, Transform, control_record,
};

struct Outside {
    facts: TopicFacts,
    /// The topics that were asked for, in order.
    asked: Vec<String>,
    /// The topics of which it was said that they would be, and how many schemas with them.
    foreseen: Vec<(String, usize)>,
}

impl Services for Outside {
    async fn schema_id(&mut self, _: &str, _: Side, _: &str) -> Result<u32, Fault> {
        Ok(1)
    }

    async fn foresee(&mut self, topic: &str, schemas: &[(Side, String)]) -> Result<(), Fault> {
        self.foreseen.push((topic.to_owned(), schemas.len()));
        Ok(())
    }

    async fn topic(&mut self, name: &str) -> Result<TopicFacts, Fault> {
        self.asked.push(name.to_owned());
        Ok(self.facts.clone())
    }
}

struct Bench {
    stage: Stage<Outside>,
    table: OpenTable,
    queue: Receiver,
    sequence: u64,
}

fn facts(policy: CleanupPolicy) -> TopicFacts {
    TopicFacts {
        partitions: 1,
        cleanup_policy: Some(policy),
        max_message_bytes: Some(2000),
        created: false,
    }
}

async fn open(stage_bytes: usize, policy: CleanupPolicy) -> Result<Bench, Fault> {
    open_with(PlanSettings::new("p"), stage_bytes, policy).await
}

async fn open_with(
    plan: PlanSettings,
    stage_bytes: usize,
    policy: CleanupPolicy,
) -> Result<Bench, Fault> {
    let json = Converter::Json { schemas: false, decimals: DecimalFormat::Base64 };
    let settings = StageSettings {
        plan: Arc::new(plan),
        source: source_block(),
        converters: Converters { key: json, value: json, headers: HeaderConverter::Simple },
        control_topic: Some("p.schema-changes".to_owned()),
        sizes: SizeLimits::unlimited(),
        stage_bytes,
        hand_over_bytes: stage_bytes,
        metrics: Arc::default(),
    };
    let (sender, queue) = channel(1 << 20);
    let outside = Outside { facts: facts(policy), asked: Vec::new(), foreseen: Vec::new() };
    let mut stage = Stage::new(settings, outside, TopicList::new(), sender);
    let columns = vec![required("id", ColumnType::Int32), column("s", ColumnType::Text)];
    let table = stage.open_table(Arc::new(table("t", columns))).await?;
    Ok(Bench { stage, table, queue, sequence: 0 })
}

fn at(position: &str) -> OffsetRecord {
    OffsetRecord(Arc::from(position.as_bytes()))
}

impl Bench {
    async fn insert(&mut self, id: &str, text: &str) -> Result<(), Fault> {
        let bytes = format!("{id}{text}");
        let split = u32::try_from(id.len()).unwrap();
        let len = u32::try_from(text.len()).unwrap();
        let cells = [Cell::Raw { start: 0, len: split }, Cell::Raw { start: split, len }];
        self.sequence += 1;
        let event = Event {
            kind: ChangeKind::Create,
            row: RowImage {
                bytes: bytes.as_bytes(),
                before: None,
                after: Some(&cells),
                reread: &[],
            },
            source: &[Scalar::Timestamp(Instant::At(0))],
            commit_position: "0/1",
            sequence: self.sequence,
            first_part: 0,
            processed_micros: 0,
            transaction: None,
        };
        self.stage.write(&mut self.table, &event).await
    }

    async fn commit(&mut self, end: &str) {
        self.stage.commit(at("before"), at(end), Some(5)).await.unwrap();
    }

    /// What is in the queue, in words: keys of the records, and the offset.
    fn staged(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        while let Received::Staged(item) = self.queue.recv_timeout(Duration::ZERO) {
            words.push(match item {
                Staged::Records { batch, offset, complete, .. } => {
                    let keys: Vec<_> = batch
                        .records()
                        .iter()
                        .map(|record| {
                            String::from_utf8_lossy(batch.bytes(record.key.unwrap())).into_owned()
                        })
                        .collect();
                    let kind = if complete { "complete" } else { "part" };
                    format!("{kind} {} @{}", keys.join(","), name(&offset))
                }
                Staged::Control { batch, states, offset } => format!(
                    "control {} states {} @{}",
                    batch.records().len(),
                    states.len(),
                    name(&offset)
                ),
                Staged::Marker { offset } => format!("marker @{}", name(&offset)),
                Staged::Flush { .. } => "flush".to_owned(),
                Staged::Fault(fault) => format!("fault {}", fault.code()),
                Staged::Refusal { fault, batch, states, offset } => format!(
                    "fault {} told {} states {} @{}",
                    fault.code(),
                    batch.records().len(),
                    states.len(),
                    name(&offset)
                ),
            });
        }
        words
    }

    async fn announce(&mut self) {
        let (record, state) = announcement();
        self.stage.announce(&record, state).await.unwrap();
    }
}

fn announcement() -> (ControlRecord, TableState) {
    let version = table("t", vec![required("id", ColumnType::Int32)]);
    let origin = ControlOrigin {
        system: "s",
        database: "d",
        stream: "x",
        commit_position: "0/1",
        end_position: None,
        transaction: None,
        sequence: 1,
        micros: 0,
        provenance: Provenance::Stream,
        command: None,
        after_position: None,
        named_by: None,
        mode: ChangeMode::Forward,
        acknowledged: false,
        refused: None,
    };
    let form = (ControlFormat::Tidegate, &source_block());
    let record = control_record(form, &origin, (None, &version), None);
    let state = TableState { key: "1".to_owned(), value: Some(b"state".to_vec()) };
    (record, state)
}

fn name(offset: &OffsetRecord) -> String {
    String::from_utf8_lossy(&offset.0).into_owned()
}

#[tokio::test]
async fn complete_transactions_travel_together_with_the_last_ones_end() {
    let mut bench = open(100_000, CleanupPolicy::Delete).await.unwrap();
    bench.insert("1", "a").await.unwrap();
    bench.commit("one").await;
    bench.insert("2", "b").await.unwrap();
    bench.insert("3", "c").await.unwrap();
    bench.commit("two").await;
    bench.insert("4", "open").await.unwrap();
    bench.stage.hand_over().await.unwrap();
    assert_eq!(bench.staged(), [r#"complete {"id":1},{"id":2},{"id":3} @two"#]);
    assert_eq!(bench.stage.written_records(), 4, "whether they still wait or not");
    bench.commit("three").await;
    bench.stage.hand_over().await.unwrap();
    assert_eq!(bench.staged(), [r#"complete {"id":4} @three"#]);
}

#[tokio::test]
async fn a_fault_takes_back_its_own_transaction_and_none_before() {
    let mut bench = open(100_000, CleanupPolicy::Delete).await.unwrap();
    bench.insert("1", "a").await.unwrap();
    bench.commit("one").await;
    bench.insert("2", "poisoned").await.unwrap();
    bench.stage.fail(Code::ValueEncoding.fault("x")).await.unwrap();
    assert_eq!(bench.staged(), [r#"complete {"id":1} @one"#, "fault TG-E-VALUE-ENCODING"]);
}

#[tokio::test]
async fn a_record_that_is_too_large_is_refused_before_anything_of_it_is_out() {
    let mut bench = open(100_000, CleanupPolicy::Delete).await.unwrap();
    bench.insert("1", "a").await.unwrap();
    let fault = bench.insert("2", &"x".repeat(3000)).await.unwrap_err();
    assert_eq!(fault.code(), Code::RecordTooLarge);
    assert_eq!(fault.place().key.as_deref(), Some(r#"{"id":2}"#));
    assert!(fault.message().contains("topic 'p.public.t'"), "{fault}");
    bench.commit("one").await;
    bench.stage.hand_over().await.unwrap();
    assert_eq!(bench.staged(), [r#"complete {"id":1} @one"#]);
}

#[tokio::test]
async fn a_transaction_larger_than_the_stage_goes_in_parts_behind_what_is_complete() {
    let mut bench = open(1000, CleanupPolicy::Delete).await.unwrap();
    bench.insert("1", "a").await.unwrap();
    bench.commit("one").await;
    bench.insert("2", &"x".repeat(600)).await.unwrap();
    assert!(!bench.stage.is_full());
    bench.insert("3", &"x".repeat(600)).await.unwrap();
    assert!(bench.stage.is_full());
    bench.stage.spill(at("begin"), at("inside 3")).await.unwrap();
    bench.insert("4", "d").await.unwrap();
    bench.commit("two").await;
    assert_eq!(
        bench.staged(),
        [
            r#"complete {"id":1} @one"#,
            r#"part {"id":2},{"id":3} @inside 3"#,
            r#"complete {"id":4} @two"#
        ]
    );
}

#[tokio::test]
async fn the_end_of_a_spilled_transaction_is_told_even_without_further_records() {
    let mut bench = open(500, CleanupPolicy::Delete).await.unwrap();
    bench.insert("1", &"x".repeat(600)).await.unwrap();
    bench.stage.spill(at("begin"), at("inside")).await.unwrap();
    bench.commit("end").await;
    assert_eq!(bench.staged(), [r#"part {"id":1} @inside"#, "complete  @end"]);
}

#[tokio::test]
async fn a_refusal_is_told_also_where_parts_of_its_transaction_are_out() {
    let (record, state) = announcement();
    let mut bench = open(500, CleanupPolicy::Delete).await.unwrap();
    bench.stage.stand_at(at("begin"));
    bench.insert("1", &"x".repeat(600)).await.unwrap();
    bench.stage.spill(at("begin"), at("inside")).await.unwrap();
    bench.insert("2", "y").await.unwrap();
    bench.stage.leave_word(&record, state).await.unwrap();
    bench.stage.fail(Code::SchemaChanged.fault("x")).await.unwrap();
    let expect = [r#"part {"id":1} @inside"#, "fault TG-E-SCHEMA-CHANGED told 1 states 1 @begin"];
    assert_eq!(bench.staged(), expect);
}

#[tokio::test]
async fn control_records_go_before_the_transaction_that_they_announce_and_behind_all_others() {
    let mut bench = open(100_000, CleanupPolicy::Delete).await.unwrap();
    bench.insert("1", "a").await.unwrap();
    bench.commit("one").await;
    bench.insert("2", "old shape").await.unwrap();
    bench.announce().await;
    bench.insert("3", "new shape").await.unwrap();
    bench.commit("two").await;
    bench.stage.hand_over().await.unwrap();
    assert_eq!(
        bench.staged(),
        [
            r#"complete {"id":1} @one"#,
            "control 1 states 1 @before",
            r#"complete {"id":2},{"id":3} @two"#
        ]
    );
}

#[tokio::test]
async fn what_a_table_needs_is_said_before_it_is_asked_for() {
    let bench = open(100_000, CleanupPolicy::Delete).await.unwrap();
    // JSON has no schemas to register
    assert_eq!(bench.stage.services.foreseen, [("p.public.t".to_owned(), 0)]);
}

#[tokio::test]
async fn the_control_topic_is_asked_for_once() {
    let mut bench = open(100_000, CleanupPolicy::Delete).await.unwrap();
    bench.stage.services.asked.clear();
    bench.announce().await;
    bench.announce().await;
    assert_eq!(bench.stage.services.asked.len(), 1, "{:?}", bench.stage.services.asked);
}

#[tokio::test]
async fn control_records_of_a_failed_transaction_are_withdrawn() {
    let mut bench = open(100_000, CleanupPolicy::Delete).await.unwrap();
    bench.announce().await;
    bench.stage.fail(Code::SlotGap.fault("x")).await.unwrap();
    assert_eq!(bench.staged(), ["fault TG-E-SLOT-GAP"]);
}

#[tokio::test]
async fn positions_without_records_are_markers() {
    let mut bench = open(100_000, CleanupPolicy::Delete).await.unwrap();
    bench.stage.mark(at("one"));
    bench.stage.mark(at("two"));
    bench.stage.hand_over().await.unwrap();
    bench.stage.hand_over().await.unwrap();
    assert_eq!(bench.staged(), ["marker @two"]);
}

#[tokio::test]
async fn null_keys_onto_a_compacted_topic_are_refused_when_the_table_is_opened() {
    let mut keyless = table("t", vec![column("s", ColumnType::Text)]);
    keyless.key.clear();
    let mut bench = open(100_000, CleanupPolicy::Delete).await.unwrap();
    bench.stage.services.facts = facts(CleanupPolicy::CompactDelete);
    let fault = bench.stage.open_table(Arc::new(keyless)).await.unwrap_err();
    assert_eq!(fault.code(), Code::TopicCompacted);
    assert_eq!(fault.place().table.as_deref(), Some("public.t"));
}

#[tokio::test]
async fn a_publisher_that_ended_is_noticed() {
    let mut bench = open(100_000, CleanupPolicy::Delete).await.unwrap();
    drop(bench.queue);
    bench.stage.mark(at("one"));
    let fault = bench.stage.hand_over().await.unwrap_err();
    assert_eq!(fault.code(), Code::KafkaTransaction);
}

#[tokio::test]
async fn two_tables_whose_names_become_one_topics_are_refused() {
    let mut bench = open(100_000, CleanupPolicy::Delete).await.unwrap();
    let columns = || vec![required("id", ColumnType::Int32)];
    bench.stage.open_table(Arc::new(table("a b", columns()))).await.unwrap();
    bench.stage.open_table(Arc::new(table("a b", columns()))).await.unwrap();
    let fault = bench.stage.open_table(Arc::new(table("a_b", columns()))).await.unwrap_err();
    assert_eq!(fault.code(), Code::SchemaIllegalName);
    assert!(fault.message().contains("public.a b and public.a_b"), "{fault}");
}

/// Rows go to the topic that their text names.
async fn routed(policy: CleanupPolicy) -> Bench {
    let mut plan = PlanSettings::new("p");
    plan.transforms = vec![Step {
        name: "unwrap".to_owned(),
        transform: Transform::ExtractNewRecordState(ExtractNewRecordState {
            deletes: DeleteHandling::Drop,
            add_fields: Vec::new(),
            add_headers: Vec::new(),
            route_by_field: Some("s".to_owned()),
        }),
        condition: None,
    }];
    open_with(plan, 1 << 20, policy).await.unwrap()
}

/// The topics of the records that are handed over.
fn topics(bench: &mut Bench) -> Vec<String> {
    let mut names = Vec::new();
    while let Received::Staged(item) = bench.queue.recv_timeout(Duration::ZERO) {
        let Staged::Records { batch, .. } = item else { continue };
        let records = batch.records().iter();
        names.extend(
            records.map(|record| bench.stage.topics.name(record.topic).unwrap().to_string()),
        );
    }
    names
}

#[tokio::test]
async fn a_topic_that_depends_on_the_row_is_seen_to_once() {
    let mut bench = routed(CleanupPolicy::Compact).await;
    assert!(bench.stage.services.asked.is_empty());
    for text in ["one", "two", "one", " ", "two", "p.public.t"] {
        bench.insert("1", text).await.unwrap();
    }
    bench.commit("end").await;
    bench.stage.hand_over().await.unwrap();
    assert_eq!(topics(&mut bench), ["one", "two", "one", "p.public.t", "two", "p.public.t"]);
    assert_eq!(bench.stage.services.asked, ["one", "two", "p.public.t"]);
}

#[tokio::test]
async fn what_is_complete_does_not_wait_for_a_new_topic() {
    let mut bench = routed(CleanupPolicy::Delete).await;
    bench.insert("1", "one").await.unwrap();
    bench.commit("first").await;
    bench.insert("2", "one").await.unwrap();
    assert_eq!(topics(&mut bench), Vec::<String>::new());
    bench.insert("3", "two").await.unwrap();
    assert_eq!(topics(&mut bench), ["one"]);
}

#[tokio::test]
async fn a_row_that_names_no_topic_is_refused_with_its_place() {
    let mut bench = routed(CleanupPolicy::Delete).await;
    bench.insert("1", "one").await.unwrap();
    let fault = bench.insert("2", "no topic").await.unwrap_err();
    assert_eq!(fault.code(), Code::SchemaIllegalName);
    assert!(fault.message().contains("'no topic'"), "{fault}");
    assert_eq!(fault.place().table.as_deref(), Some("public.t"));
    assert_eq!(fault.place().position.as_deref(), Some("0/1, message 2"));
    bench.commit("end").await;
    bench.stage.hand_over().await.unwrap();
    assert_eq!(topics(&mut bench), ["one"]);
}

async fn with_metadata(stage_bytes: usize) -> Bench {
    let mut plan = PlanSettings::new("p");
    plan.notices.transactions = true;
    open_with(plan, stage_bytes, CleanupPolicy::Delete).await.unwrap()
}

/// What a reader sees of transactions: their ends, and the place of every change.
fn told(bench: &mut Bench) -> Vec<String> {
    let mut words = Vec::new();
    while let Received::Staged(item) = bench.queue.recv_timeout(Duration::ZERO) {
        let Staged::Records { batch, .. } = item else { continue };
        for record in batch.records() {
            let value = batch.bytes(record.value.unwrap());
            let value: serde_json::Value = serde_json::from_slice(value).unwrap();
            words.push(match value.get("status") {
                Some(status) => format!(
                    "{} {} {} {}",
                    status.as_str().unwrap(),
                    value["id"].as_str().unwrap(),
                    value["event_count"],
                    value["data_collections"]
                ),
                None => value["transaction"].to_string(),
            });
        }
    }
    words
}

fn place(id: &str, total: u64, of_table: u64) -> String {
    format!(r#"{{"id":"{id}","total_order":{total},"data_collection_order":{of_table}}}"#)
}

#[tokio::test]
async fn a_transaction_tells_its_beginning_its_end_and_the_place_of_each_change() {
    let mut bench = with_metadata(1 << 20).await;
    bench.stage.begin("7:9".to_owned(), 5_000);
    bench.insert("1", "a").await.unwrap();
    bench.insert("2", "b").await.unwrap();
    bench.commit("end").await;
    bench.stage.begin("8:10".to_owned(), 5_000);
    bench.commit("nothing was published").await;
    bench.stage.begin("9:11".to_owned(), 5_000);
    bench.insert("3", "c").await.unwrap();
    bench.commit("end").await;
    bench.stage.hand_over().await.unwrap();
    let counts = |n| format!(r#"[{{"data_collection":"public.t","event_count":{n}}}]"#);
    let expect = [
        "BEGIN 7:9 null null".to_owned(),
        place("7:9", 1, 1),
        place("7:9", 2, 2),
        format!("END 7:9 2 {}", counts(2)),
        "BEGIN 9:11 null null".to_owned(),
        place("9:11", 1, 1),
        format!("END 9:11 1 {}", counts(1)),
    ];
    assert_eq!(told(&mut bench), expect);
    assert_eq!(bench.stage.services.asked, ["p.public.t", "p.transaction"]);
}

#[tokio::test]
async fn what_kafka_has_of_a_transaction_is_counted_and_not_told_again() {
    let mut bench = with_metadata(1 << 20).await;
    bench.stage.begin("7:9".to_owned(), 5_000);
    bench.stage.count_again(&bench.table, ChangeKind::Create);
    bench.stage.count_again(&bench.table, ChangeKind::KeyChange);
    bench.insert("1", "a").await.unwrap();
    bench.commit("end").await;
    bench.stage.hand_over().await.unwrap();
    let end = r#"END 7:9 4 [{"data_collection":"public.t","event_count":4}]"#;
    assert_eq!(told(&mut bench), [place("7:9", 4, 4), end.to_owned()]);
}

#[tokio::test]
async fn a_fault_takes_the_beginning_of_its_transaction_back() {
    let mut bench = with_metadata(1 << 20).await;
    bench.stage.begin("7:9".to_owned(), 5_000);
    bench.insert("1", "a").await.unwrap();
    bench.insert("not a number", "b").await.unwrap_err();
    bench.stage.fail(Code::Internal.fault("test")).await.unwrap();
    assert_eq!(told(&mut bench), Vec::<String>::new());
}

#[tokio::test]
async fn a_heartbeat_carries_the_offset_behind_what_is_complete() {
    let mut bench = open(1 << 20, CleanupPolicy::Delete).await.unwrap();
    bench.insert("1", "a").await.unwrap();
    bench.commit("end").await;
    bench.stage.heartbeat(7_000_999, "0/5", at("beat")).await.unwrap();
    let expect =
        [r#"complete {"id":1} @end"#, r#"complete {"serverName":"p"} @beat"#].map(str::to_owned);
    assert_eq!(bench.staged(), expect);
    bench.stage.heartbeat(8_000_000, "0/5", at("again")).await.unwrap();
    let Received::Staged(Staged::Records { batch, .. }) = bench.queue.recv_timeout(Duration::ZERO)
    else {
        panic!("no heartbeat")
    };
    let record = &batch.records()[0];
    assert_eq!(record.partition, Some(0));
    assert_eq!(batch.bytes(record.value.unwrap()), br#"{"ts_ms":8000}"#);
    let header = batch.headers(record)[0];
    assert_eq!(batch.bytes(header.name), b"__tidegate.position");
    assert_eq!(batch.bytes(header.value.unwrap()), b"0/5");
    assert_eq!(bench.stage.services.asked, ["p.public.t", "__debezium-heartbeat.p"]);
}

#[tokio::test]
async fn a_state_goes_out_with_the_records_of_its_transaction_and_not_before() {
    let mut bench = open(100_000, CleanupPolicy::Delete).await.unwrap();
    bench.insert("1", "a").await.unwrap();
    bench.stage.accompany(TableState { key: "k".to_owned(), value: None });
    bench.stage.hand_over().await.unwrap();
    assert_eq!(bench.staged(), Vec::<String>::new());
    bench.commit("10").await;
    bench.stage.hand_over().await.unwrap();
    let mut found = Vec::new();
    while let Received::Staged(Staged::Records { batch, states, .. }) =
        bench.queue.recv_timeout(Duration::ZERO)
    {
        found.push((batch.records().len(), states.len()));
    }
    assert_eq!(found, [(1, 1)]);
    // also without a record
    bench.stage.accompany(TableState { key: "k".to_owned(), value: None });
    bench.commit("11").await;
    bench.stage.hand_over().await.unwrap();
    let Received::Staged(Staged::Records { states, .. }) = bench.queue.recv_timeout(Duration::ZERO)
    else {
        panic!("no records");
    };
    assert_eq!(states.len(), 1);
}

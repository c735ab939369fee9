//! What is published of a table by a row filter: the worker's way and the server's, held against
//! each other and against what the server says of the rows.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidegate::config::{ConnectorConfig, Environment, TypedConnector, WorkerConfig};
use tidegate::convert::Converters;
use tidegate::error::Fault;
use tidegate::filter::Truth;
use tidegate::kafka::{
    CleanupPolicy, Received, SizeLimits, Staged, TopicFacts, TopicList, channel,
};
use tidegate::record::{Batch, Record};
use tidegate::sources::SourceSettings;
use tidegate::sources::postgres::replay::replay_of_server;
use tidegate::stage::{Services, Side, Stage, StageSettings};
use tokio_postgres::Client;

use super::{COLUMNS, Database, ROWS, Tally};

const SLOT: &str = "tidegate_test_row_filter";

/// A predicate: as it is configured, as it is sent to the server, and its truth on the rows.
pub(super) struct Case<'a> {
    pub(super) text: &'a str,
    pub(super) sql: &'a str,
    pub(super) truths: Vec<Truth>,
}

/// What is looked at of a record: operation, key, which images, why.
type Form = (Option<String>, i64, bool, bool, Option<String>);

/// A record, but for what only one of both ways can know.
#[derive(Debug, PartialEq)]
struct Seen {
    form: Form,
    key: Value,
    value: Value,
    headers: Vec<(String, String)>,
}

/// Publishes the same changes by each predicate both ways.
pub(super) async fn compare(database: &Database, cases: &[Case<'_>], tally: &mut Tally) {
    database
        .execute(
            "DROP TABLE IF EXISTS u; CREATE TABLE u (LIKE t INCLUDING ALL); \
             ALTER TABLE u REPLICA IDENTITY FULL; CREATE PUBLICATION whole FOR TABLE u",
        )
        .await;
    let mut pushed = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let sql = format!("CREATE PUBLICATION p{index} FOR TABLE u WHERE ({})", case.sql);
        let is_taken = database.client.batch_execute(&sql).await.is_ok();
        tally.not_pushed += usize::from(!is_taken);
        pushed.push(is_taken);
    }
    let create = format!("SELECT pg_create_logical_replication_slot('{SLOT}', 'pgoutput')");
    database.execute(&create).await;
    change(database).await;
    let reader = reader(database).await;
    let all = frames(&reader, "whole").await;
    for (index, case) in cases.iter().enumerate() {
        let here = Box::pin(published(database, case.text, "none", &all)).await;
        let forms: Vec<&Form> = here.iter().map(|seen| &seen.form).collect();
        let expect = expected(&case.truths);
        assert_eq!(forms, expect.iter().collect::<Vec<_>>(), "{}", case.text);
        tally.records += here.len();
        if !pushed[index] {
            continue;
        }
        let filtered = frames(&reader, &format!("p{index}")).await;
        let there = Box::pin(published(database, case.text, "publication", &filtered)).await;
        assert_eq!(here.len(), there.len(), "{}", case.text);
        for (one, other) in here.into_iter().zip(there) {
            assert_eq!(other.form.4, None, "the server does not tell moves");
            assert_eq!(Seen { form: other.form.clone(), ..one }, other, "{}", case.text);
        }
        tally.pushed += 1;
    }
    let names: Vec<String> = (0..cases.len()).map(|index| format!("p{index}")).collect();
    database
        .execute(&format!(
            "SELECT pg_drop_replication_slot('{SLOT}'); DROP PUBLICATION whole; \
             DROP PUBLICATION IF EXISTS {}",
            names.join(", ")
        ))
        .await;
}

/// The key that a pair's row has after its update.
const fn new_key(pair: usize) -> usize {
    if pair % 4 == 3 { 2 * pair + 1001 } else { 2 * pair }
}

const fn is_deleted(pair: usize) -> bool {
    pair.is_multiple_of(3)
}

/// Each pair of rows: the first is inserted, becomes the second, and is perhaps deleted.
async fn change(database: &Database) {
    let columns: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
    let columns = columns.join(", ");
    for pair in 0..ROWS / 2 {
        let (first, second, key) = (2 * pair, 2 * pair + 1, new_key(pair));
        let mut statements = vec![
            format!("INSERT INTO u SELECT * FROM t WHERE id = {first}"),
            format!(
                "UPDATE u SET (id, {columns}) = (SELECT {key}, {columns} FROM t WHERE id = {second}) \
                 WHERE id = {first}"
            ),
        ];
        if is_deleted(pair) {
            statements.push(format!("DELETE FROM u WHERE id = {key}"));
        }
        // in one transaction, or each in its own
        if pair.is_multiple_of(2) {
            database.execute(&statements.join("; ")).await;
        } else {
            for statement in statements {
                database.execute(&statement).await;
            }
        }
    }
}

/// The records of all pairs by the truth table.
fn expected(truths: &[Truth]) -> Vec<Form> {
    let mut forms = Vec::new();
    for (pair, truth) in truths.chunks_exact(2).enumerate() {
        let is_in = |row: usize| truth.get(row) == Some(&Truth::True);
        let key = |key: usize| i64::try_from(key).expect("small");
        let (old, new) = (key(2 * pair), key(new_key(pair)));
        let mut add = |op: Option<&str>, key, before, after, scope: Option<&str>| {
            forms.push((op.map(str::to_owned), key, before, after, scope.map(str::to_owned)));
        };
        if is_in(0) {
            add(Some("c"), old, false, true, None);
        }
        match (is_in(0), is_in(1)) {
            (true, true) if old == new => add(Some("u"), old, true, true, None),
            (true, true) => {
                add(Some("d"), old, true, false, None);
                add(None, old, false, false, None);
                add(Some("c"), new, false, true, None);
            }
            (true, false) => {
                add(Some("d"), old, true, false, Some("moved_out"));
                add(None, old, false, false, Some("moved_out"));
            }
            (false, true) => add(Some("c"), new, false, true, Some("moved_in")),
            (false, false) => {}
        }
        if is_in(1) && is_deleted(pair) {
            add(Some("d"), new, true, false, None);
            add(None, new, false, false, None);
        }
    }
    forms
}

/// A session like the stream's.
async fn reader(database: &Database) -> Client {
    let mut config = tokio_postgres::Config::new();
    let settings = &database.settings;
    config.host(&settings.host).port(settings.port).user(&settings.user);
    config.dbname(&settings.database).password(settings.password.reveal());
    let client = super::super::connect(&config).await;
    let sql = "SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET extra_float_digits = 3; \
               SET intervalstyle = 'postgres'; SET bytea_output = 'hex'";
    client.batch_execute(sql).await.expect("set");
    client
}

/// What the stream of a publication would bring.
async fn frames(reader: &Client, publication: &str) -> Vec<Vec<u8>> {
    let sql = format!(
        "SELECT lsn - '0/0'::pg_lsn AS at, data FROM pg_logical_slot_peek_binary_changes(\
         '{SLOT}', NULL, NULL, 'proto_version', '1', 'publication_names', '{publication}')"
    );
    let sql = format!("SELECT at::bigint, data FROM ({sql}) peeked");
    let rows = reader.query(&sql, &[]).await.expect("changes");
    let frame = |row: &tokio_postgres::Row| {
        let (at, data): (i64, Vec<u8>) = (row.get(0), row.get(1));
        // a description has no position on the wire
        let at = if data.first() == Some(&b'R') { 0 } else { at };
        let at = at.to_be_bytes();
        [b"w", &at[..], &at, &820_000_000_000_000_i64.to_be_bytes(), &data].concat()
    };
    rows.iter().map(frame).collect()
}

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

fn connector(filter: &str, pushdown: &str) -> TypedConnector {
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
        ("row.filter.public.u", filter),
        ("row.filter.pushdown", pushdown),
        // NaN has no place in an exact decimal, and the last of days none in microseconds
        ("decimal.handling.mode", "string"),
        ("time.precision.mode", "isostring"),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), Some(value.to_owned())))
    .collect();
    let environment: Environment = Arc::new(|_name| None);
    let worker = WorkerConfig::parse("bootstrap.servers=localhost:9092\n", &environment);
    TypedConnector::parse(&config, &worker.expect("a worker")).expect("a connector")
}

/// The records of a stream by a predicate.
async fn published(
    database: &Database,
    filter: &str,
    pushdown: &str,
    frames: &[Vec<u8>],
) -> Vec<Seen> {
    let connector = connector(filter, pushdown);
    let SourceSettings::Postgres(mut source) = connector.source.clone();
    source.connection = database.settings.clone();
    let settings = StageSettings {
        source: connector.source.block(&connector.plan.topic_prefix),
        plan: Arc::new(connector.plan),
        converters: Converters {
            key: connector.key.converter,
            value: connector.value.converter,
            headers: connector.headers,
        },
        control_topic: None,
        stage_bytes: connector.stage_bytes,
        hand_over_bytes: 256 << 10,
        sizes: SizeLimits::new(&connector.kafka),
        metrics: Arc::default(),
    };
    let (sender, mut receiver) = channel(1 << 30);
    let stage = Stage::new(settings, Outside, TopicList::new(), sender);
    let mut seen = Vec::new();
    let take = || {
        while let Received::Staged(staged) = receiver.recv_timeout(Duration::ZERO) {
            if let Staged::Records { batch, .. } = staged {
                seen.extend(batch.records().iter().map(|record| read(&batch, record)));
            }
        }
    };
    let replayed = Box::pin(replay_of_server(Arc::new(*source), stage, [frames], take)).await;
    assert_eq!(replayed, Ok(()), "{filter}");
    seen
}

fn read(batch: &Batch, record: &Record) -> Seen {
    let json = |span| serde_json::from_slice::<Value>(batch.bytes(span)).expect("JSON");
    let key = record.key.map_or(Value::Null, json);
    let mut value = record.value.map_or(Value::Null, json);
    let has = |image: &str| value.get(image).is_some_and(|image| !image.is_null());
    let (before, after) = (has("before"), has("after"));
    let text = |span| String::from_utf8_lossy(batch.bytes(span)).into_owned();
    let mut headers: Vec<(String, String)> = batch
        .headers(record)
        .iter()
        .map(|header| (text(header.name), header.value.map(text).unwrap_or_default()))
        .collect();
    let scope = headers.iter().find(|(name, _)| name == "__tidegate.scope");
    let scope = scope.map(|(_, text)| text.trim_matches('"').to_owned());
    let op = value.get("op").and_then(Value::as_str).map(str::to_owned);
    let id = key.get("id").and_then(Value::as_i64).unwrap_or(-1);
    // When it was made; the transaction before, and the number among what was sent.
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|name, _| !name.starts_with("ts_"));
    }
    if let Some(source) = value.get_mut("source").and_then(Value::as_object_mut) {
        source.remove("sequence");
    }
    headers.retain(|(name, _)| !["__tidegate.scope", "__tidegate.tx_seq"].contains(&&**name));
    Seen { form: (op, id, before, after, scope), key, value, headers }
}

/// Whether publications have row filters.
pub(super) async fn is_pushed_down(database: &Database) -> bool {
    let version = "SELECT current_setting('server_version_num')::int >= 150000";
    database.client.query_one(version, &[]).await.expect("a version").get(0)
}

//! Records that speak of the stream, not of a row: where transactions begin and end, heartbeats,
//! and the headers that say which connector it was.
//!
//! All are Debezium's, field by field. Knows no database; how a transaction is called is the
//! source's matter. **Invariants:** whatever is said of a transaction depends on the transaction
//! and the settings alone, so that it is the same when it is said again; transforms do not see
//! these records.

use std::sync::{Arc, LazyLock};

use super::fingerprint::Fingerprint;
use super::settings::PlanSettings;
use super::source_block::SourceBlock;
use crate::record::{Field, Kind, Literal, Schema};

/// What is told beside the changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeSettings {
    /// `provide.transaction.metadata`.
    pub transactions: bool,
    /// `topic.transaction`: the last part of the topic of transactions.
    pub transaction_topic: String,
    /// `topic.heartbeat.prefix`: the first part of the topic of heartbeats.
    pub heartbeat_prefix: String,
    /// `extended.headers.enabled`.
    pub context_headers: bool,
    /// Tells this run of the task from others. Not part of the fingerprint.
    pub run_id: String,
}

impl Default for NoticeSettings {
    fn default() -> Self {
        Self {
            transactions: false,
            transaction_topic: "transaction".to_owned(),
            heartbeat_prefix: "__debezium-heartbeat".to_owned(),
            context_headers: false,
            run_id: String::new(),
        }
    }
}

impl NoticeSettings {
    /// Adds everything that changes bytes. The defaults add nothing.
    pub(super) fn fingerprint(&self, hash: &mut Fingerprint) {
        if self.transactions {
            hash.text("transactions");
        }
        if self.transaction_topic != Self::default().transaction_topic {
            hash.text("transaction topic");
            hash.text(&self.transaction_topic);
        }
        if self.context_headers {
            hash.text("context headers");
        }
    }
}

/// The schemas of such records.
#[derive(Clone, Debug)]
pub struct NoticeSchemas {
    /// Of the key.
    pub key: Arc<Schema>,
    /// Of the value.
    pub value: Arc<Schema>,
}

/// Such a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// The key.
    pub key: Literal,
    /// The value.
    pub value: Literal,
}

/// What a transaction had.
#[derive(Debug)]
pub struct Ends<'a> {
    /// Its events.
    pub events: u64,
    /// Those of each table that has some, by its name.
    pub collections: Vec<(&'a str, u64)>,
}

/// The topic in which transactions begin and end.
pub fn transaction_topic(settings: &PlanSettings) -> String {
    let PlanSettings { topic_prefix, topic_delimiter, notices, .. } = settings;
    format!("{topic_prefix}{topic_delimiter}{}", notices.transaction_topic)
}

/// The topic of heartbeats.
pub fn heartbeat_topic(settings: &PlanSettings) -> String {
    let PlanSettings { topic_prefix, topic_delimiter, notices, .. } = settings;
    format!("{}{topic_delimiter}{topic_prefix}", notices.heartbeat_prefix)
}

/// The schemas of [`transaction_begin`] and [`transaction_end`].
pub fn transaction_schemas() -> NoticeSchemas {
    TRANSACTION.clone()
}

/// The schemas of [`heartbeat`].
pub fn heartbeat_schemas() -> NoticeSchemas {
    HEARTBEAT.clone()
}

/// A transaction begins; `millis`: when it was committed.
pub fn transaction_begin(id: &str, millis: i64) -> Notice {
    boundary("BEGIN", id, millis, None)
}

/// A transaction ends. Its tables are put in the order of their names.
pub fn transaction_end(id: &str, millis: i64, mut ends: Ends<'_>) -> Notice {
    ends.collections.sort_unstable();
    boundary("END", id, millis, Some(ends))
}

fn boundary(status: &str, id: &str, millis: i64, ends: Option<Ends<'_>>) -> Notice {
    let (count, collections) = match ends {
        None => (Literal::Null, Literal::Null),
        Some(Ends { events, collections }) => {
            let collections = collections
                .into_iter()
                .map(|(name, events)| Literal::Struct(vec![text(name), number(events)]))
                .collect();
            (number(events), Literal::Array(collections))
        }
    };
    Notice {
        key: Literal::Struct(vec![text(id)]),
        value: Literal::Struct(vec![
            text(status),
            text(id),
            count,
            collections,
            Literal::Int(millis),
        ]),
    }
}

/// A sign of life at this time.
pub fn heartbeat(settings: &PlanSettings, millis: i64) -> Notice {
    Notice {
        key: Literal::Struct(vec![text(&settings.topic_prefix)]),
        value: Literal::Struct(vec![Literal::Int(millis)]),
    }
}

/// Debezium's headers that say which connector it was; none unless they are asked for.
pub fn context_headers(
    settings: &PlanSettings,
    source: &SourceBlock,
) -> Vec<(&'static str, String)> {
    if !settings.notices.context_headers {
        return Vec::new();
    }
    vec![
        ("__debezium.context.connectorLogicalName", settings.topic_prefix.clone()),
        // A connector has exactly one task.
        ("__debezium.context.taskId", "0".to_owned()),
        ("__debezium.context.connectorName", source.connector.clone()),
        ("__debezium.context.runId", settings.notices.run_id.clone()),
    ]
}

fn text(text: &str) -> Literal {
    Literal::String(text.to_owned())
}

/// Counters stay far below the limit.
fn number(value: u64) -> Literal {
    Literal::Int(i64::try_from(value).unwrap_or(i64::MAX))
}

static TRANSACTION: LazyLock<NoticeSchemas> = LazyLock::new(|| {
    let text = || Schema::new(Kind::String);
    let long = || Schema::new(Kind::Int64);
    let collection =
        structure("event.collection", vec![("data_collection", text()), ("event_count", long())]);
    let collections = Schema::new(Kind::Array(Arc::new(collection.optional())));
    NoticeSchemas {
        key: Arc::new(common("TransactionMetadataKey", vec![("id", text())])),
        value: Arc::new(common(
            "TransactionMetadataValue",
            vec![
                ("status", text()),
                ("id", text()),
                ("event_count", long().optional()),
                ("data_collections", collections.optional()),
                ("ts_ms", long()),
            ],
        )),
    }
});

static HEARTBEAT: LazyLock<NoticeSchemas> = LazyLock::new(|| NoticeSchemas {
    key: Arc::new(common("ServerNameKey", vec![("serverName", Schema::new(Kind::String))])),
    value: Arc::new(common("Heartbeat", vec![("ts_ms", Schema::new(Kind::Int64))])),
});

fn common(name: &str, fields: Vec<(&str, Schema)>) -> Schema {
    structure(&format!("io.debezium.connector.common.{name}"), fields)
}

fn structure(name: &str, fields: Vec<(&str, Schema)>) -> Schema {
    let fields = fields
        .into_iter()
        .map(|(name, schema)| Field { name: name.to_owned(), schema: Arc::new(schema) })
        .collect();
    Schema::new(Kind::Struct(fields)).named(name, Some(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::testing::{connect_json, source_block};

    #[track_caller]
    fn check(case: &str, topic: &str, schemas: &NoticeSchemas) {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/golden");
        for (side, schema) in [("key", &schemas.key), ("value", &schemas.value)] {
            let file = path.join(case).join(format!("{topic}.{side}.schema.json"));
            let expect: serde_json::Value =
                serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
            assert_eq!(connect_json(schema).to_string(), expect.to_string());
        }
    }

    #[test]
    fn schemas_are_debeziums() {
        check("tx-metadata", "transaction", &transaction_schemas());
        check("heartbeat", "__debezium-heartbeat.shop", &heartbeat_schemas());
    }

    #[test]
    fn topics_are_debeziums() {
        let mut settings = PlanSettings::new("shop");
        assert_eq!(transaction_topic(&settings), "shop.transaction");
        assert_eq!(heartbeat_topic(&settings), "__debezium-heartbeat.shop");
        settings.topic_delimiter = "_".to_owned();
        settings.notices.transaction_topic = "tx".to_owned();
        settings.notices.heartbeat_prefix = "pulse".to_owned();
        assert_eq!(transaction_topic(&settings), "shop_tx");
        assert_eq!(heartbeat_topic(&settings), "pulse_shop");
    }

    #[test]
    fn the_tables_of_a_transaction_have_an_order() {
        let end = |collections| transaction_end("7:9", 5, Ends { events: 3, collections });
        assert_eq!(end(vec![("p.b", 1), ("p.a", 2)]), end(vec![("p.a", 2), ("p.b", 1)]));
    }

    #[test]
    fn context_headers_come_only_when_asked_for() {
        let mut settings = PlanSettings::new("shop");
        assert_eq!(context_headers(&settings, &source_block()), []);
        settings.notices.context_headers = true;
        settings.notices.run_id = "r".to_owned();
        let headers = context_headers(&settings, &source_block());
        let texts: Vec<_> = headers.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["shop", "0", "test", "r"]);
    }
}

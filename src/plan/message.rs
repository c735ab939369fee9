//! The plan of messages that applications write into the log: one record each, no row.
//!
//! Stands beside the plans of tables, so that transforms, headers, converters and routes are the
//! same for both: prefix and content are the two columns of a table that does not exist.
//! Knows no database. **Invariant:** schemas and names are Debezium's; the order of fields, too.

use std::sync::Arc;

use super::TablePlan;
use super::envelope::{transaction_block, transaction_place};
use super::headers::Headers;
use super::settings::{BinaryMode, Operation, PlanSettings};
use super::source_block::SourceBlock;
use super::transforms;
use crate::change::{
    BeforeImage, ByteText, CellParser, ChangeKind, Column, ColumnType, DeclaredType, NativeType,
    Scalar, TableId, TableVersion, ValueError,
};
use crate::error::Fault;
use crate::record::{
    Field, Guard, Kind, Leaf, Literal, Node, RecordShape, Render, Schema, Shape, Topic,
    TransactionField,
};

/// The last part of the topic, whatever `topic.delimiter` says.
const TOPIC: &str = "message";
/// Columns of an event of the kind [`ChangeKind::Message`].
const PREFIX: usize = 0;
const CONTENT: usize = 1;

/// Compiles the plan of messages. An event has two cells after the change: the prefix, as text,
/// and the content, as bytes.
///
/// # Errors
/// A transform does not fit.
pub fn message_plan(settings: &PlanSettings, source: &SourceBlock) -> Result<TablePlan, Fault> {
    let topic = format!("{}.{TOPIC}", settings.topic_prefix);
    let mut kinds = ChangeKind::ALL.map(|_| Vec::new());
    if !settings.skipped.contains(Operation::Message)
        && let Some(records) = kinds.last_mut()
    {
        records.extend(message_records(&topic, settings, source)?);
    }
    let mut events = [0; ChangeKind::ALL.len()];
    if let Some(count) = events.last_mut() {
        // Of the records only one comes out.
        *count = u32::from(kinds.last().is_some_and(|records| !records.is_empty()));
    }
    transforms::apply(&settings.transforms, &mut kinds).map_err(|fault| fault.at_table(&topic))?;
    let version = Arc::new(version(&settings.topic_prefix));
    Ok(TablePlan { version, kinds, events, collection: TOPIC.to_owned(), untellable: None })
}

/// What stands for the table. Its name is the topic's, for faults.
fn version(prefix: &str) -> TableVersion {
    TableVersion {
        table: TableId { namespace: prefix.to_owned(), name: TOPIC.to_owned() },
        native_id: 0,
        epoch: 0,
        fingerprint: 0,
        columns: vec![
            column("prefix", ColumnType::Text, Arc::new(PrefixParser)),
            column("content", ColumnType::Bytes, Arc::new(ContentParser)),
        ],
        key: vec![PREFIX],
        before_image: BeforeImage::None,
        identity: "none".to_owned(),
        comment: None,
    }
}

fn column(name: &str, kind: ColumnType, parser: Arc<dyn CellParser>) -> Column {
    Column {
        name: name.to_owned(),
        kind,
        nullable: false,
        default: None,
        native: NativeType { name: name.to_owned(), id: 0, modifier: -1 },
        declared: DeclaredType::default(),
        identity: false,
        comment: None,
        parser,
    }
}

/// The record of a message; with transaction blocks there are two, for a message may belong to no
/// transaction.
fn message_records(
    topic: &str,
    settings: &PlanSettings,
    source: &SourceBlock,
) -> Result<Vec<RecordShape>, Fault> {
    let lone = record(topic, settings, source, Node::Constant(Literal::Null))?;
    if !settings.notices.transactions {
        return Ok(vec![lone]);
    }
    let is_lone = Guard::AnyUnsent(vec![Leaf::Transaction(TransactionField::Id)]);
    let inside = record(topic, settings, source, transaction_place(0))?;
    Ok(vec![
        RecordShape { guard: is_lone.clone(), ..lone },
        RecordShape { guard: is_lone.negated(), ..inside },
    ])
}

fn record(
    topic: &str,
    settings: &PlanSettings,
    source: &SourceBlock,
    transaction: Node,
) -> Result<RecordShape, Fault> {
    // Messages belong to no table: the block says so with empty names.
    let nowhere = TableId { namespace: String::new(), name: String::new() };
    let name = |suffix: &str| {
        let name = format!("io.debezium.connector.{}.{suffix}", source.connector);
        settings.schema_names.schema_name(&name)
    };
    let prefix = || Shape {
        schema: Arc::new(Schema::new(Kind::String).optional()),
        node: Node::Value { leaf: Leaf::After(PREFIX), render: Render::Text },
    };
    let op = Shape {
        schema: Arc::new(Schema::new(Kind::String)),
        node: Node::Constant(Literal::String(Operation::Message.as_str().to_owned())),
    };
    let read_at = Shape {
        schema: Arc::new(Schema::new(Kind::Int64).optional()),
        node: Node::Value { leaf: Leaf::ProcessedAt, render: Render::ClockMillis },
    };
    let transaction = Shape { schema: Arc::new(transaction_block()), node: transaction };
    let message = structure(
        name("Message"),
        vec![("prefix", prefix()), ("content", content(settings.values.binary))],
    );
    let headers = Headers::new(settings, source, None);
    Ok(RecordShape {
        topic: Topic::Fixed(topic.to_owned()),
        key: Some(structure(name("MessageKey"), vec![("prefix", prefix())])),
        value: Some(structure(
            name("MessageValue"),
            vec![
                ("op", op),
                ("ts_ms", read_at),
                ("source", source.shape(&nowhere)?),
                ("transaction", transaction),
                ("message", message),
            ],
        )),
        headers: headers.of(None, &super::headers::Unknown::default()),
        guard: Guard::Always,
    })
}

fn content(mode: BinaryMode) -> Shape {
    let (kind, render) = match mode {
        BinaryMode::Bytes => (Kind::Bytes, Render::Bytes),
        BinaryMode::Base64 => (Kind::String, Render::Base64 { url_safe: false }),
        BinaryMode::Base64UrlSafe => (Kind::String, Render::Base64 { url_safe: true }),
        BinaryMode::Hex => (Kind::String, Render::Hex),
    };
    Shape {
        schema: Arc::new(Schema::new(kind).optional()),
        node: Node::Value { leaf: Leaf::After(CONTENT), render },
    }
}

fn structure(name: String, fields: Vec<(&str, Shape)>) -> Shape {
    let schemas = fields
        .iter()
        .map(|(name, shape)| Field { name: (*name).to_owned(), schema: Arc::clone(&shape.schema) })
        .collect();
    Shape {
        schema: Arc::new(Schema::new(Kind::Struct(schemas)).named(name, Some(1))),
        node: Node::Struct(fields.into_iter().map(|(_, shape)| shape).collect()),
    }
}

/// A prefix is text as it is.
#[derive(Debug)]
struct PrefixParser;

impl CellParser for PrefixParser {
    fn parse<'a>(&'a self, raw: &'a [u8]) -> Result<Scalar<'a>, ValueError> {
        match std::str::from_utf8(raw) {
            Ok(text) => Ok(Scalar::Text(text)),
            Err(error) => Err(ValueError::Malformed { kind: "prefix", detail: error.to_string() }),
        }
    }
}

/// A content is bytes as they are.
#[derive(Debug)]
struct ContentParser;

impl CellParser for ContentParser {
    fn parse<'a>(&'a self, raw: &'a [u8]) -> Result<Scalar<'a>, ValueError> {
        Ok(Scalar::Bytes(ByteText::Raw(raw)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::testing::{connect_json, source_block};
    use crate::plan::{OperationSet, RegexRouter, Step, TopicPattern, Transform};

    fn golden(case: &str, file: &str) -> serde_json::Value {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/golden");
        let text = std::fs::read_to_string(path.join(case).join(file)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn only(plan: &TablePlan) -> &RecordShape {
        let mut records = plan.records();
        let record = records.next().unwrap();
        assert!(records.next().is_none());
        record
    }

    /// The source block is the source's own, so it is taken from the recording.
    #[track_caller]
    fn check(case: &str, binary: BinaryMode) {
        let mut settings = PlanSettings::new("shop");
        settings.values.binary = binary;
        let block = SourceBlock { connector: "postgresql".to_owned(), ..source_block() };
        let plan = message_plan(&settings, &block).unwrap();
        let record = only(&plan);
        assert_eq!(record.topic.fixed(), Some("shop.message"));
        let key = connect_json(&record.key.as_ref().unwrap().schema);
        assert_eq!(key.to_string(), golden(case, "message.key.schema.json").to_string());
        let mut value = connect_json(&record.value.as_ref().unwrap().schema);
        let expect = golden(case, "message.value.schema.json");
        value["fields"][2] = expect["fields"][2].clone();
        assert_eq!(value.to_string(), expect.to_string());
    }

    #[test]
    fn schemas_are_debeziums() {
        check("messages", BinaryMode::Bytes);
        check("messages-hex", BinaryMode::Hex);
    }

    #[test]
    fn skipped_messages_have_no_record() {
        let mut settings = PlanSettings::new("shop");
        settings.skipped = OperationSet::EMPTY.with(Operation::Message);
        let plan = message_plan(&settings, &source_block()).unwrap();
        assert_eq!(plan.records().count(), 0);
    }

    #[test]
    fn transforms_see_messages_too() {
        let mut settings = PlanSettings::new("shop");
        settings.transforms.push(Step {
            name: "route".to_owned(),
            transform: Transform::RegexRouter(
                RegexRouter::new(TopicPattern::parse(r"(.*)\.message").unwrap(), "$1.notes")
                    .unwrap(),
            ),
            condition: None,
        });
        let plan = message_plan(&settings, &source_block()).unwrap();
        assert_eq!(only(&plan).topic.fixed(), Some("shop.notes"));
    }
}

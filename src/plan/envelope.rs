//! Debezium's envelope: its schemas, and the shape of a value for given images of the row.
//!
//! ```text
//! <topic>.Envelope v2   before, after, source, transaction, op, ts_ms, ts_us, ts_ns
//! <topic>.Value         the row
//! <topic>.Before.Value  the row before, where columns that are not in the key may be unknown
//! ```
//!
//! Knows no database. **Invariants:** the order of the fields is Debezium's; the schema depends on
//! columns, key and settings, not on what the source happens to send of the row before, so that a
//! change of the table's identity rule alone never changes it.

use std::sync::Arc;

use super::columns::PublishedColumn;
use super::names::NameAdjustment;
use crate::record::{Field, Kind, Leaf, Literal, Node, Render, Schema, Shape, TransactionField};

/// The schemas of a table's values.
#[derive(Debug)]
pub(super) struct Envelope {
    /// The whole value.
    pub(super) schema: Arc<Schema>,
    /// The row before.
    pub(super) before: Arc<Schema>,
    /// The row after.
    pub(super) after: Arc<Schema>,
    source: Shape,
}

/// What an envelope is built from.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    /// The table's topic: the first part of every schema's name.
    pub(super) topic: &'a str,
    /// How schema names are adjusted.
    pub(super) names: NameAdjustment,
    /// The row's columns.
    pub(super) columns: &'a [PublishedColumn],
    /// Indexes of the columns that are known in every image of the row before; `None`: `before` has
    /// the type of the row itself.
    pub(super) always_known: Option<&'a [usize]>,
    /// What is said of the table.
    pub(super) doc: Option<&'a str>,
    /// The source block.
    pub(super) source: Shape,
}

impl Envelope {
    /// Builds the schemas.
    pub(super) fn build(parts: Parts<'_>) -> Self {
        let Parts { topic, names, columns, always_known, doc, source } = parts;
        let row = |suffix: &str, fields: Vec<Field>| {
            let name = names.schema_name(&format!("{topic}.{suffix}"));
            let schema = Schema::new(Kind::Struct(fields)).named(name, None).optional();
            Arc::new(schema.doc(doc.map(str::to_owned)))
        };
        let shown = || columns.iter().enumerate().filter(|(_, column)| column.is_shown);
        let after = row("Value", shown().map(|(_, column)| column.field()).collect());
        let before = match always_known {
            Some(known) if needs_own_type(columns, known) => row(
                "Before.Value",
                shown()
                    .map(|(index, column)| match known.contains(&index) {
                        true => column.field(),
                        false => column.unsent_field(),
                    })
                    .collect(),
            ),
            _ => Arc::clone(&after),
        };
        let clock = || Arc::new(Schema::new(Kind::Int64).optional());
        let fields = vec![
            field("before", Arc::clone(&before)),
            field("after", Arc::clone(&after)),
            field("source", Arc::clone(&source.schema)),
            field("transaction", Arc::new(transaction_block())),
            field("op", Arc::new(Schema::new(Kind::String))),
            field("ts_ms", clock()),
            field("ts_us", clock()),
            field("ts_ns", clock()),
        ];
        let name = names.schema_name(&format!("{topic}.Envelope"));
        let schema = Arc::new(Schema::new(Kind::Struct(fields)).named(name, Some(2)));
        Self { schema, before, after, source }
    }

    /// The shape of a value; an image that is not given is null.
    pub(super) fn shape(
        &self,
        op: &str,
        before: Option<Vec<Shape>>,
        after: Option<Vec<Shape>>,
        transaction: Option<Node>,
    ) -> Shape {
        let image =
            |fields: Option<Vec<Shape>>| fields.map_or(Node::Constant(Literal::Null), Node::Struct);
        let clock = |render| Node::Value { leaf: Leaf::ProcessedAt, render };
        let nodes = [
            image(before),
            image(after),
            self.source.node.clone(),
            transaction.unwrap_or(Node::Constant(Literal::Null)),
            Node::Constant(Literal::String(op.to_owned())),
            clock(Render::ClockMillis),
            clock(Render::TimestampMicros),
            clock(Render::TimestampNanos),
        ];
        let fields = self
            .schema
            .fields()
            .iter()
            .zip(nodes)
            .map(|(field, node)| Shape { schema: Arc::clone(&field.schema), node })
            .collect();
        Shape { schema: Arc::clone(&self.schema), node: Node::Struct(fields) }
    }
}

/// Whether a column that may be unknown has a schema without room for null.
fn needs_own_type(columns: &[PublishedColumn], known: &[usize]) -> bool {
    columns
        .iter()
        .enumerate()
        .filter(|(_, column)| column.is_shown)
        .any(|(index, column)| !known.contains(&index) && !column.schema.optional)
}

/// Debezium's block of transaction metadata; part of every envelope, filled in or not.
pub(super) fn transaction_block() -> Schema {
    Schema::new(Kind::Struct(vec![
        field("id", Arc::new(Schema::new(Kind::String))),
        field("total_order", Arc::new(Schema::new(Kind::Int64))),
        field("data_collection_order", Arc::new(Schema::new(Kind::Int64))),
    ]))
    .named("event.block", Some(1))
    .optional()
}

/// The block of a change's nth event.
pub(super) fn transaction_place(nth: u32) -> Node {
    let value = |kind, field, render| Shape {
        schema: Arc::new(Schema::new(kind)),
        node: Node::Value { leaf: Leaf::Transaction(field), render },
    };
    Node::Struct(vec![
        value(Kind::String, TransactionField::Id, Render::Text),
        value(Kind::Int64, TransactionField::TotalOrder(nth), Render::Int64),
        value(Kind::Int64, TransactionField::CollectionOrder(nth), Render::Int64),
    ])
}

fn field(name: &str, schema: Arc<Schema>) -> Field {
    Field { name: name.to_owned(), schema }
}

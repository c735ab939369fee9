//! The record key of a table: its schema, and its shape for either image of the row.
//!
//! Knows no database. **Invariant:** every leaf of a key is a [`Node::Value`]: a value that was not
//! sent never becomes part of one.

use std::sync::Arc;

use super::columns::PublishedColumn;
use super::names::NameAdjustment;
use crate::record::{Kind, Leaf, Node, Schema, Shape};

/// A table's record key.
#[derive(Debug)]
pub(super) struct RecordKey {
    /// The struct's schema.
    pub(super) schema: Arc<Schema>,
    columns: Vec<usize>,
}

impl RecordKey {
    /// The key over these columns, in this order; `None` if there are none.
    pub(super) fn build(
        topic: &str,
        names: NameAdjustment,
        published: &[PublishedColumn],
        columns: &[usize],
    ) -> Option<Self> {
        if columns.is_empty() {
            return None;
        }
        let fields = columns
            .iter()
            .filter_map(|index| published.get(*index))
            .map(PublishedColumn::key_field);
        let name = names.schema_name(&format!("{topic}.Key"));
        let schema = Arc::new(Schema::new(Kind::Struct(fields.collect())).named(name, None));
        Some(Self { schema, columns: columns.to_vec() })
    }

    /// Its shape over one image, [`Leaf::Before`] or [`Leaf::After`].
    pub(super) fn shape(&self, published: &[PublishedColumn], image: fn(usize) -> Leaf) -> Shape {
        let fields = self
            .columns
            .iter()
            .filter_map(|index| Some((*index, published.get(*index)?)))
            .map(|(index, column)| Shape {
                schema: Arc::clone(&column.key_schema),
                node: Node::Value { leaf: image(index), render: column.key_render.clone() },
            })
            .collect();
        Shape { schema: Arc::clone(&self.schema), node: Node::Struct(fields) }
    }
}

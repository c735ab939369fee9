//! The `source` field of every value: the source declares it, the plan places it.
//!
//! Knows neither the block's fields nor what they mean. **Invariant:** what is the same for every
//! row of a table is a constant, so that a row only writes what changes.

use std::sync::Arc;

use super::control::ControlOrigin;
use crate::change::TableId;
use crate::error::{Code, Fault};
use crate::record::{Leaf, Literal, Node, Render, Schema, Shape};

/// A source's block, declared once per connector.
#[derive(Clone, Debug)]
pub struct SourceBlock {
    /// The struct's schema.
    pub schema: Arc<Schema>,
    /// Where each of its fields comes from, in its order.
    pub fields: Vec<SourceField>,
    /// The source's name among sources: the part of schema names that is the source's.
    pub connector: String,
    /// The key of the header that carries the position of a change's transaction.
    pub position_header: String,
    /// What its changing fields hold, by their names, in a record about a table's definition; null
    /// where nothing is answered.
    pub announced: Announced,
}

/// See [`SourceBlock::announced`].
pub(super) type Announced = fn(&ControlOrigin<'_>) -> Vec<(&'static str, Literal)>;

/// Where a field of the block comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceField {
    /// The same for every change of the connector.
    Constant(Literal),
    /// The table's name.
    Table,
    /// The name of the namespace that the table is in.
    Namespace,
    /// From each change.
    Event {
        /// The place of the value in [`Event::source`](crate::change::Event::source).
        index: usize,
        /// How it becomes the field's primitive.
        render: Render,
    },
}

impl SourceBlock {
    /// The block's shape for the changes of one table.
    ///
    /// # Errors
    /// [`Code::Internal`] if the declaration does not fit its schema.
    pub(super) fn shape(&self, table: &TableId) -> Result<Shape, Fault> {
        let fields = self.schema.fields();
        if fields.len() != self.fields.len() {
            return Err(Code::Internal.fault(format!(
                "the source block's schema has {} fields, {} are declared",
                fields.len(),
                self.fields.len()
            )));
        }
        let shapes = fields
            .iter()
            .zip(&self.fields)
            .map(|(field, source)| Shape {
                schema: Arc::clone(&field.schema),
                node: match source {
                    SourceField::Constant(literal) => Node::Constant(literal.clone()),
                    SourceField::Table => Node::Constant(Literal::String(table.name.clone())),
                    SourceField::Namespace => {
                        Node::Constant(Literal::String(table.namespace.clone()))
                    }
                    SourceField::Event { index, render } => {
                        Node::Value { leaf: Leaf::Source(*index), render: render.clone() }
                    }
                },
            })
            .collect();
        Ok(Shape { schema: Arc::clone(&self.schema), node: Node::Struct(shapes) })
    }
}

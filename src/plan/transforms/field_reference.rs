//! A part of an envelope that is put elsewhere: an element of `add.fields` or `add.headers`.
//!
//! `op`, `table`, `source.ts_ms`, `before.qty`, each with `:name` behind it or not. Knows no
//! transform. **Invariant:** a copy is always nullable and has no default: readers that put a
//! default in the place of null would show it as the source's own value.

use std::sync::Arc;

use crate::error::{Code, Fault};
use crate::plan::SourceBlock;
use crate::plan::fingerprint::Fingerprint;
use crate::record::{Literal, Node, Schema, Shape};

/// Envelope blocks that have fields of their own.
const BLOCKS: [&str; 4] = ["before", "after", "source", "transaction"];
/// Fields of the envelope itself that need no block before them.
const TOP: [&str; 4] = ["op", "ts_ms", "ts_us", "ts_ns"];
/// Fields of the transaction block, which need none either.
const TRANSACTION: [&str; 3] = ["id", "total_order", "data_collection_order"];

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldReference {
    /// The block that the field is in; `None`: the envelope itself.
    block: Option<String>,
    field: String,
    name: String,
}

impl FieldReference {
    /// Reads `[block.]field[:name]`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str, prefix: &str) -> Result<Self, String> {
        let (path, name) = match text.split_once(':') {
            Some((path, name)) => (path, Some(name)),
            None => (text, None),
        };
        let (block, field) = match path.split_once('.') {
            Some((block, field)) => (Some(block), field),
            None => (None, path),
        };
        let is_whole = |part: &str| !part.is_empty() && !part.contains([':', '.']);
        if !is_whole(field) || !block.is_none_or(is_whole) || !name.is_none_or(is_name) {
            return Err(format!("'{text}' is not of the form [block.]field[:name]"));
        }
        if let Some(block) = block.filter(|block| !BLOCKS.contains(block)) {
            let blocks = BLOCKS.join(", ");
            return Err(format!("an envelope has no block '{block}' (there are {blocks})"));
        }
        let name = match (name, block) {
            (Some(name), _) => format!("{prefix}{name}"),
            (None, Some(block)) => format!("{prefix}{block}_{field}"),
            (None, None) => format!("{prefix}{field}"),
        };
        let block = block.or(match field {
            _ if TOP.contains(&field) || BLOCKS.contains(&field) => None,
            _ if TRANSACTION.contains(&field) => Some("transaction"),
            _ => Some("source"),
        });
        Ok(Self { block: block.map(str::to_owned), field: field.to_owned(), name })
    }

    /// The name that the copy gets.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is the envelope's operation.
    pub(super) fn is_operation(&self) -> bool {
        self.block.is_none() && self.field == "op"
    }

    /// Whether it is a whole image of a row.
    pub fn is_image(&self) -> bool {
        self.block.is_none() && matches!(self.field.as_str(), "before" | "after")
    }

    /// Refuses a field that no envelope of this source has. A column may be missing: not every
    /// table has it.
    ///
    /// # Errors
    /// Which field there is not.
    pub fn check(&self, source: &SourceBlock) -> Result<(), String> {
        let field = self.field.as_str();
        let is_known = match self.block.as_deref() {
            Some("source") => source.schema.fields().iter().any(|known| known.name == field),
            Some("transaction") => TRANSACTION.contains(&field),
            _ => true,
        };
        if is_known { Ok(()) } else { Err(self.missing()) }
    }

    fn missing(&self) -> String {
        let block = self.block.as_deref().unwrap_or("envelope");
        format!("the {block} block has no field '{}'", self.field)
    }

    /// The copy; `None`: the table has no such column.
    pub(super) fn copy(&self, envelope: &Shape) -> Result<Option<Shape>, Fault> {
        let found = match &self.block {
            None => child(envelope, &self.field),
            Some(block) => child(envelope, block).and_then(|block| child(&block, &self.field)),
        };
        match (found, self.block.as_deref()) {
            (Some(Shape { schema, node }), _) => {
                let schema = Schema { optional: true, default: None, ..(*schema).clone() };
                Ok(Some(Shape { schema: Arc::new(schema), node }))
            }
            (None, Some("before" | "after")) => Ok(None),
            (None, _) => Err(Code::TransformUnfit.fault(self.missing())),
        }
    }

    pub(super) fn fingerprint(&self, hash: &mut Fingerprint) {
        hash.text(self.block.as_deref().unwrap_or_default());
        hash.text(&self.field);
        hash.text(&self.name);
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(':')
}

/// A field of a struct; a field of a null is null.
fn child(shape: &Shape, name: &str) -> Option<Shape> {
    let fields = shape.schema.fields();
    let index = fields.iter().position(|field| field.name == name)?;
    match &shape.node {
        Node::Struct(shapes) => shapes.get(index).cloned(),
        Node::Constant(Literal::Struct(values)) => Some(Shape {
            schema: Arc::clone(&fields.get(index)?.schema),
            node: Node::Constant(values.get(index)?.clone()),
        }),
        Node::Constant(Literal::Null) => Some(Shape {
            schema: Arc::clone(&fields.get(index)?.schema),
            node: Node::Constant(Literal::Null),
        }),
        Node::Constant(_) | Node::Column { .. } | Node::Value { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let shown = FieldReference::parse(text, "__").map(|reference| {
            let block = reference.block.unwrap_or_default();
            format!("{block}.{} {}", reference.field, reference.name)
        });
        assert_eq!(shown.unwrap_or_else(|reason| reason), expect);
    }

    #[test]
    fn references_are_read_as_debezium_reads_them() {
        check("op", ".op __op");
        check("ts_us", ".ts_us __ts_us");
        check("table", "source.table __table");
        check("id", "transaction.id __id");
        check("transaction.id", "transaction.id __transaction_id");
        check("source.ts_ms", "source.ts_ms __source_ts_ms");
        check("before.qty", "before.qty __before_qty");
        check("name:server", "source.name __server");
        check("source.db:d.b", "source.db __d.b");
        check("source", ".source __source");
    }

    #[test]
    fn what_names_nothing_is_refused() {
        check("a.b.c", "'a.b.c' is not of the form [block.]field[:name]");
        check("op:a:b", "'op:a:b' is not of the form [block.]field[:name]");
        check("op:", "'op:' is not of the form [block.]field[:name]");
        check(".op", "'.op' is not of the form [block.]field[:name]");
        check(
            "row.op",
            "an envelope has no block 'row' (there are before, after, source, transaction)",
        );
    }
}

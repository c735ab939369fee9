//! `ExtractNewRecordState`: the row in the place of the envelope.
//!
//! | record | becomes |
//! |---|---|
//! | `r`, `c`, `u` | the row after |
//! | `d` | nothing, a tombstone, or the row before with `__deleted` |
//! | its tombstone | nothing, or itself (`rewrite-with-tombstone`) |
//! | `t` | nothing |
//!
//! Knows no column. **Invariants:** a tombstone has no value schema and never a null key; under
//! `rewrite` the rows before and after have one schema, in which everything that deletes may not
//! know is nullable.

use std::sync::Arc;

use tracing::warn;

use super::field_reference::FieldReference;
use super::{fields_of, route};
use crate::error::{Code, Fault};
use crate::plan::fingerprint::Fingerprint;
use crate::plan::settings::words;
use crate::record::{
    Field, Guard, HeaderShape, HeaderValue, Kind, Leaf, Literal, Node, RecordShape, Schema, Shape,
    Unsent,
};

/// The field that says whether a row is gone.
const DELETED: &str = "__deleted";
/// What the names of envelopes' schemas end with.
const ENVELOPE: &str = ".Envelope";

/// `io.debezium.transforms.ExtractNewRecordState`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtractNewRecordState {
    /// `delete.tombstone.handling.mode`.
    pub deletes: DeleteHandling,
    /// `add.fields`.
    pub add_fields: Vec<FieldReference>,
    /// `add.headers`.
    pub add_headers: Vec<FieldReference>,
    /// `route.by.field`.
    pub route_by_field: Option<String>,
}

words! {
    /// `delete.tombstone.handling.mode`: what a delete and its tombstone become.
    DeleteHandling {
        /// Nothing.
        Drop = "drop",
        /// A tombstone.
        Tombstone = "tombstone",
        /// The row before, with `__deleted`.
        Rewrite = "rewrite",
        /// The row before, with `__deleted`, and the tombstone.
        RewriteWithTombstone = "rewrite-with-tombstone",
        /// A tombstone.
        DeleteToTombstone = "delete-to-tombstone",
    }
}

impl DeleteHandling {
    const fn rewrites(self) -> bool {
        matches!(self, Self::Rewrite | Self::RewriteWithTombstone)
    }
}

impl ExtractNewRecordState {
    /// `before` is the record that it made before this one.
    pub(super) fn apply(
        &self,
        mut record: RecordShape,
        before: Option<&RecordShape>,
    ) -> Result<Option<RecordShape>, Fault> {
        let Some(value) = record.value.take() else {
            return self.tombstone(record, before);
        };
        if !value.schema.name.as_ref().is_some_and(|name| name.ends_with(ENVELOPE)) {
            return Ok(Some(RecordShape { value: Some(value), ..record }));
        }
        let (before, after) = (image(&value, "before")?, image(&value, "after")?);
        let (row, deleted) = match (&before.node, &after.node) {
            (_, Node::Struct(_)) => (after, None),
            (Node::Struct(_), _) => (before, Some(self.deletes)),
            // A truncate has neither.
            _ => return Ok(None),
        };
        match deleted {
            None => record.value = Some(self.row(&value, row, "false")?),
            Some(mode) if mode.rewrites() => record.value = Some(self.row(&value, row, "true")?),
            Some(DeleteHandling::Drop) => return Ok(None),
            Some(_) if record.key.is_none() => {
                warn!(
                    topic = ?record.topic.fixed(),
                    "deletes of a table without key are left out: a tombstone could not say what \
                     it deletes (delete.tombstone.handling.mode=rewrite shows them)"
                );
                return Ok(None);
            }
            Some(_) => {}
        }
        if let Some(field) = &self.route_by_field {
            record.topic = route::by_field(record.topic, row, field)?;
        }
        for reference in &self.add_headers {
            record.headers.extend(header(reference, &value)?);
        }
        Ok(Some(record))
    }

    /// A tombstone that was one before; it follows its delete.
    fn tombstone(
        &self,
        mut record: RecordShape,
        before: Option<&RecordShape>,
    ) -> Result<Option<RecordShape>, Fault> {
        if self.deletes != DeleteHandling::RewriteWithTombstone {
            return Ok(None);
        }
        if self.route_by_field.is_some() {
            let delete = before.filter(|delete| delete.key == record.key).ok_or_else(|| {
                Code::TransformUnfit.fault("a tombstone without its delete has no field to go by")
            })?;
            record.topic = delete.topic.clone();
        }
        // What it belonged to is a delete; more is not known of it.
        let names = self.add_headers.iter().filter(|reference| reference.is_operation());
        record.headers.extend(names.map(|reference| HeaderShape {
            name: reference.name().to_owned(),
            value: HeaderValue::Constant("d".to_owned()),
            guard: Guard::Always,
        }));
        Ok(Some(record))
    }

    /// A row with what is added to it.
    fn row(&self, envelope: &Shape, row: &Shape, deleted: &str) -> Result<Shape, Fault> {
        let (schema, row) = (self.row_schema(envelope)?, fields_of(row)?);
        let mut shapes = Vec::with_capacity(row.len() + 1 + self.add_fields.len());
        for (field, shape) in schema.fields().iter().zip(row) {
            shapes.push(Shape { schema: Arc::clone(&field.schema), node: shape.node.clone() });
        }
        let mut fields = schema.fields().to_vec();
        if self.deletes.rewrites() {
            let schema = Arc::new(Schema::new(Kind::String).optional());
            let node = Node::Constant(Literal::String(deleted.to_owned()));
            add(&mut fields, &mut shapes, DELETED, Shape { schema, node })?;
        }
        for reference in &self.add_fields {
            if let Some(shape) = reference.copy(envelope)? {
                add(&mut fields, &mut shapes, reference.name(), shape)?;
            }
        }
        let schema = Schema { kind: Kind::Struct(fields), ..schema };
        Ok(Shape { schema: Arc::new(schema), node: Node::Struct(shapes) })
    }

    /// The schema of rows. The row before may have a type of its own, with nullable fields; a row
    /// that stands for deletes too has its fields.
    fn row_schema(&self, envelope: &Shape) -> Result<Schema, Fault> {
        let after = image(envelope, "after")?;
        let fields = if self.deletes.rewrites() {
            image(envelope, "before")?.schema.fields().to_vec()
        } else {
            after.schema.fields().to_vec()
        };
        Ok(Schema { kind: Kind::Struct(fields), optional: false, ..(*after.schema).clone() })
    }

    pub(super) fn fingerprint(&self, hash: &mut Fingerprint) {
        hash.text(self.deletes.as_str());
        for references in [&self.add_fields, &self.add_headers] {
            hash.number(references.len() as u64);
            references.iter().for_each(|reference| reference.fingerprint(hash));
        }
        hash.text(self.route_by_field.as_deref().unwrap_or_default());
    }
}

/// An image of the row in an envelope.
fn image<'s>(envelope: &'s Shape, name: &str) -> Result<&'s Shape, Fault> {
    let fields = fields_of(envelope)?;
    let index = envelope.schema.fields().iter().position(|field| field.name == name);
    index.and_then(|index| fields.get(index)).ok_or_else(|| {
        Code::TransformUnfit
            .fault(format!("the envelope has no field '{name}' (any more)"))
            .hint("Put ExtractNewRecordState before transforms that take the envelope apart.")
    })
}

fn add(
    fields: &mut Vec<Field>,
    shapes: &mut Vec<Shape>,
    name: &str,
    shape: Shape,
) -> Result<(), Fault> {
    if fields.iter().any(|field| field.name == name) {
        return Err(Code::SchemaIllegalName
            .fault(format!("the row has a column '{name}', and a field of that name is added"))
            .about("add.fields")
            .hint("Set add.fields.prefix, or give the field another name (field:name)."));
    }
    fields.push(Field { name: name.to_owned(), schema: Arc::clone(&shape.schema) });
    shapes.push(shape);
    Ok(())
}

/// The header that a reference adds; `None`: the table has no such column, or the source never
/// sends its value with such a change.
fn header(reference: &FieldReference, envelope: &Shape) -> Result<Option<HeaderShape>, Fault> {
    if reference.is_image() {
        return Err(Code::TransformUnfit.fault("a whole image of a row cannot be a header"));
    }
    let Some(mut shape) = reference.copy(envelope)? else { return Ok(None) };
    match shape.node {
        Node::Column { leaf: Leaf::Before(_), unsent: Unsent::Null | Unsent::Stamp(_), .. } => {
            return Ok(None);
        }
        // A header is no place for a marker.
        Node::Column { leaf, render, .. } => shape.node = Node::Value { leaf, render },
        Node::Struct(_) | Node::Value { .. } | Node::Constant(_) => {}
    }
    Ok(Some(HeaderShape {
        name: reference.name().to_owned(),
        value: HeaderValue::Shape(shape),
        guard: Guard::Always,
    }))
}

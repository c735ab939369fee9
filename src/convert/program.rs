//! A shape, flattened into a program that is run for every row.
//!
//! Compiled once per table version: neighbouring constants merge into one run of bytes, and each
//! value becomes one operation that knows its cell, its parser, its rendering, and what to write
//! for null and for a value that was not sent. Knows no format; a [`Format`] supplies the bytes.
//! **Invariants:** running allocates nothing but room in the output; only an operation made from
//! [`Node::Column`] goes on when its value was not sent.

use std::fmt;
use std::sync::Arc;

use super::fit::fits;
use super::literal::append_literal;
use crate::change::{Cell, CellParser, Column, Event, Instant, Scalar, ValueError};
use crate::error::{Code, Fault};
use crate::record::{
    Kind, Leaf, Literal, Node, Primitive, Render, Schema, Shape, TransactionField, Unsent, render,
};

/// A format's bytes around values. All of it is asked for at compilation except the writer.
pub(super) trait Format: fmt::Debug + Clone {
    /// Writes one rendered value.
    type Writer<'a>: Primitive;

    /// A writer for one value.
    fn writer<'a>(&self, out: &'a mut Vec<u8>, numbers: Numbers) -> Self::Writer<'a>;
    /// What stands before a value that is not null.
    fn present(&self, schema: &Schema, out: &mut Vec<u8>);
    /// A null; the schema is optional.
    fn null(&self, schema: &Schema, out: &mut Vec<u8>);
    /// What stands before a struct's first field.
    fn begin_struct(&self, out: &mut Vec<u8>);
    /// What stands before a field's value.
    fn begin_field(&self, index: usize, name: &str, out: &mut Vec<u8>);
    /// What stands behind a field's value.
    fn end_field(&self, _out: &mut Vec<u8>) {}
    /// Whether a null field leaves no trace in its struct.
    fn leaves_nulls_out(&self) -> bool {
        false
    }
    /// What stands behind a struct's last field. A format that leaves nulls out sees what was
    /// written before it.
    fn end_struct(&self, out: &mut Vec<u8>);
    /// What stands before a map's first entry; gives a mark.
    fn begin_map(&self, out: &mut Vec<u8>) -> usize;
    /// What stands before an entry's value.
    fn begin_entry(&self, index: usize, key: &str, out: &mut Vec<u8>);
    /// What stands behind a map's last entry.
    fn end_map(&self, mark: usize, count: usize, out: &mut Vec<u8>);
}

/// What the schema of a value means beyond its kind, where a text format spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    /// Nothing: numbers are numbers, bytes are bytes.
    Plain,
    /// Bytes are the unscaled value of a decimal with this many digits after the point.
    Decimal {
        /// Digits after the point.
        scale: i32,
    },
    /// Integers count days since 1970-01-01.
    Date,
    /// Integers count milliseconds since midnight.
    Time,
    /// Integers count milliseconds since 1970-01-01T00:00Z.
    Timestamp,
}

impl Numbers {
    /// By Connect's own logical types; for an array, what its elements mean.
    pub(super) fn of(schema: &Schema) -> Self {
        if let Kind::Array(items) = &schema.kind {
            return Self::of(items);
        }
        match schema.name.as_deref() {
            Some("org.apache.kafka.connect.data.Decimal") => {
                let scale = schema.parameters.iter().find(|(name, _)| name == "scale");
                let scale = scale.and_then(|(_, scale)| scale.parse().ok());
                scale.map_or(Self::Plain, |scale| Self::Decimal { scale })
            }
            Some("org.apache.kafka.connect.data.Date") => Self::Date,
            Some("org.apache.kafka.connect.data.Time") => Self::Time,
            Some("org.apache.kafka.connect.data.Timestamp") => Self::Timestamp,
            _ => Self::Plain,
        }
    }
}

/// Where a value comes from, with its parser at hand.
#[derive(Clone, Debug)]
pub(super) struct Input {
    leaf: Leaf,
    parser: Option<Arc<dyn CellParser>>,
}

/// Why a row could not be written, and at which leaf. Boxed, for it is rare and rows are not.
#[derive(Debug)]
pub(super) struct Failure(Box<(Leaf, Reason)>);

impl Failure {
    /// The value that failed, and why.
    pub(super) fn parts(self) -> (Leaf, Reason) {
        *self.0
    }
}

/// Why a value could not be written.
#[derive(Debug)]
pub(super) enum Reason {
    /// The value itself.
    Value(ValueError),
    /// The event has no image, cell or source field at this place: it does not fit the plan.
    Missing,
}

impl From<ValueError> for Reason {
    fn from(error: ValueError) -> Self {
        Self::Value(error)
    }
}

impl Input {
    /// Binds a leaf to the columns of a table version.
    pub(super) fn compile(leaf: &Leaf, columns: &[Column]) -> Result<Self, Fault> {
        let parser = match leaf {
            Leaf::Before(index) | Leaf::After(index) => {
                let column = columns.get(*index).ok_or_else(|| {
                    Code::Internal
                        .fault(format!("a shape names column {index}, which is not there"))
                })?;
                Some(Arc::clone(&column.parser))
            }
            Leaf::Source(_)
            | Leaf::ProcessedAt
            | Leaf::CommitPosition
            | Leaf::Sequence
            | Leaf::Transaction(_) => None,
        };
        Ok(Self { leaf: leaf.clone(), parser })
    }

    /// The failure of this value.
    #[cold]
    pub(super) fn failure(&self, reason: impl Into<Reason>) -> Failure {
        Failure(Box::new((self.leaf.clone(), reason.into())))
    }

    /// The value in this event.
    #[inline]
    pub(super) fn fetch<'a>(&'a self, event: &Event<'a>) -> Result<Scalar<'a>, Failure> {
        let (image, index) = match self.leaf {
            Leaf::Before(index) => (event.row.before, index),
            Leaf::After(index) => (event.row.after, index),
            Leaf::Source(index) => {
                return event
                    .source
                    .get(index)
                    .copied()
                    .ok_or_else(|| self.failure(Reason::Missing));
            }
            Leaf::ProcessedAt => {
                return Ok(Scalar::Timestamp(Instant::At(event.processed_micros.into())));
            }
            Leaf::CommitPosition => return Ok(Scalar::Text(event.commit_position)),
            Leaf::Sequence => return Ok(Scalar::Int(event.sequence.cast_signed())),
            Leaf::Transaction(field) => {
                let place = event.transaction.ok_or_else(|| self.failure(Reason::Missing))?;
                return Ok(match field {
                    TransactionField::Id => Scalar::Text(place.id),
                    TransactionField::TotalOrder(nth) => order(place.total_order, nth),
                    TransactionField::CollectionOrder(nth) => order(place.collection_order, nth),
                });
            }
        };
        let cell = image.and_then(|cells| cells.get(index)).copied();
        match (cell, &self.parser) {
            (Some(Cell::Null), _) => Ok(Scalar::Null),
            (Some(Cell::Unavailable), _) => Ok(Scalar::Unavailable),
            (Some(cell @ Cell::Raw { .. }), Some(parser)) => {
                let raw = event.row.raw(cell).ok_or_else(|| self.failure(Reason::Missing))?;
                parser.parse(raw).map_err(|error| self.failure(error))
            }
            _ => Err(self.failure(Reason::Missing)),
        }
    }

    /// Whether the event has no value for it: not sent, or no image at all.
    pub(super) fn is_unsent(&self, event: &Event<'_>) -> bool {
        let (image, index) = match self.leaf {
            Leaf::Before(index) => (event.row.before, index),
            Leaf::After(index) => (event.row.after, index),
            Leaf::Source(_) | Leaf::ProcessedAt | Leaf::CommitPosition | Leaf::Sequence => {
                return false;
            }
            Leaf::Transaction(_) => return event.transaction.is_none(),
        };
        matches!(image.and_then(|cells| cells.get(index)), None | Some(Cell::Unavailable))
    }
}

/// The number of an event of a change.
fn order(first: u64, nth: u32) -> Scalar<'static> {
    Scalar::Int(first.saturating_add(nth.into()).cast_signed())
}

/// A compiled shape.
#[derive(Debug)]
pub(super) struct Program<F> {
    format: F,
    operations: Box<[Operation]>,
}

#[derive(Debug)]
enum Operation {
    /// Bytes that are the same for every row.
    Constant(Box<[u8]>),
    /// One value.
    Value(Value),
    /// One field, with its name; nothing if it is null.
    Field(Value),
    /// The end of a struct whose fields may be missing.
    EndStruct,
}

#[derive(Debug)]
struct Value {
    input: Input,
    render: Render,
    numbers: Numbers,
    present: Box<[u8]>,
    /// `None`: the schema has no room for null.
    null: Option<Box<[u8]>>,
    unsent: WhenUnsent,
}

#[derive(Debug)]
enum WhenUnsent {
    Write(Box<[u8]>),
    Refuse(&'static str),
}

impl Value {
    /// With its name before it wherever it is not null; `writes_null`: a null stands for a value
    /// that was not sent.
    fn named(self, name: &[u8], writes_null: bool) -> Self {
        Self {
            present: [name, &self.present].concat().into(),
            null: self.null.map(|_| Box::default()),
            unsent: match self.unsent {
                WhenUnsent::Write(_) if writes_null => WhenUnsent::Write(Box::default()),
                WhenUnsent::Write(bytes) => WhenUnsent::Write([name, &bytes].concat().into()),
                refuse @ WhenUnsent::Refuse(_) => refuse,
            },
            ..self
        }
    }
}

impl<F: Format> Program<F> {
    /// Compiles a shape. `purpose` names it where a value that was not sent is refused; `prefix` and
    /// `suffix` frame the result.
    ///
    /// # Errors
    /// The shape does not fit its schema.
    pub(super) fn compile(
        format: &F,
        shape: &Shape,
        columns: &[Column],
        purpose: &'static str,
        (prefix, suffix): (&[u8], &[u8]),
    ) -> Result<Self, Fault> {
        let mut compiler =
            Compiler { format, columns, purpose, operations: Vec::new(), constant: Vec::new() };
        compiler.constant.extend_from_slice(prefix);
        compiler.shape(shape)?;
        compiler.constant.extend_from_slice(suffix);
        compiler.flush();
        Ok(Self { format: format.clone(), operations: compiler.operations.into() })
    }

    /// Appends the bytes for this event. After an error the output ends anywhere.
    pub(super) fn run(&self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        for operation in &self.operations {
            match operation {
                Operation::Constant(bytes) => out.extend_from_slice(bytes),
                Operation::Value(value) => self.value(value, event, out)?,
                Operation::Field(value) => {
                    let start = out.len();
                    self.value(value, event, out)?;
                    if out.len() > start {
                        self.format.end_field(out);
                    }
                }
                Operation::EndStruct => self.format.end_struct(out),
            }
        }
        Ok(())
    }

    /// The same for a place that has a null of its own; `false`: the whole is null, and nothing was
    /// appended.
    pub(super) fn run_unless_null(
        &self,
        event: &Event<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Failure> {
        let [Operation::Value(value)] = &*self.operations else {
            self.run(event, out)?;
            return Ok(true);
        };
        match value.input.fetch(event)? {
            Scalar::Null if value.null.is_some() => Ok(false),
            scalar => self.scalar(value, scalar, out).map(|()| true),
        }
    }

    fn value(&self, value: &Value, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        self.scalar(value, value.input.fetch(event)?, out)
    }

    #[inline]
    fn scalar(&self, value: &Value, scalar: Scalar<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        match scalar {
            Scalar::Null => match &value.null {
                Some(null) => out.extend_from_slice(null),
                None => return Err(value.input.failure(ValueError::UnexpectedNull)),
            },
            Scalar::Unavailable => match &value.unsent {
                WhenUnsent::Write(bytes) => out.extend_from_slice(bytes),
                WhenUnsent::Refuse(purpose) => {
                    return Err(value.input.failure(ValueError::Unavailable(purpose)));
                }
            },
            scalar => {
                out.extend_from_slice(&value.present);
                render(scalar, &value.render, &mut self.format.writer(out, value.numbers))
                    .map_err(|error| value.input.failure(error))?;
            }
        }
        Ok(())
    }
}

struct Compiler<'c, F> {
    format: &'c F,
    columns: &'c [Column],
    purpose: &'static str,
    operations: Vec<Operation>,
    constant: Vec<u8>,
}

impl<F: Format> Compiler<'_, F> {
    fn shape(&mut self, shape: &Shape) -> Result<(), Fault> {
        match &shape.node {
            Node::Struct(shapes) => self.structure(&shape.schema, shapes),
            Node::Constant(literal) => {
                append_literal(self.format, &shape.schema, literal, &mut self.constant)
            }
            Node::Column { leaf, render, unsent } => {
                let unsent = match unsent {
                    Unsent::Stamp(literal) => self.written(&shape.schema, literal)?,
                    Unsent::Null => self.written(&shape.schema, &Literal::Null)?,
                    Unsent::Refuse(purpose) => WhenUnsent::Refuse(purpose),
                };
                self.value(&shape.schema, leaf, render, unsent)
            }
            Node::Value { leaf, render } => {
                self.value(&shape.schema, leaf, render, WhenUnsent::Refuse(self.purpose))
            }
        }
    }

    fn structure(&mut self, schema: &Schema, shapes: &[Shape]) -> Result<(), Fault> {
        let fields = match &schema.kind {
            Kind::Struct(fields) if fields.len() == shapes.len() => fields,
            _ => return Err(Code::Internal.fault("a struct's shape does not have its fields")),
        };
        self.format.present(schema, &mut self.constant);
        self.format.begin_struct(&mut self.constant);
        for (index, (field, shape)) in fields.iter().zip(shapes).enumerate() {
            if !Arc::ptr_eq(&field.schema, &shape.schema) && field.schema != shape.schema {
                return Err(Code::Internal
                    .fault(format!("the shape of field '{}' has another schema", field.name)));
            }
            if self.format.leaves_nulls_out() {
                self.unless_null(index, &field.name, shape)?;
            } else {
                self.format.begin_field(index, &field.name, &mut self.constant);
                self.shape(shape)?;
                self.format.end_field(&mut self.constant);
            }
        }
        if self.format.leaves_nulls_out() {
            self.flush();
            self.operations.push(Operation::EndStruct);
        } else {
            self.format.end_struct(&mut self.constant);
        }
        Ok(())
    }

    /// A field of a format that leaves nulls out: its name goes with its value.
    fn unless_null(&mut self, index: usize, name: &str, shape: &Shape) -> Result<(), Fault> {
        let mut named = Vec::new();
        self.format.begin_field(index, name, &mut named);
        match &shape.node {
            Node::Constant(Literal::Null) if shape.schema.optional => Ok(()),
            Node::Constant(_) | Node::Struct(_) => {
                self.constant.extend_from_slice(&named);
                self.shape(shape)?;
                self.format.end_field(&mut self.constant);
                Ok(())
            }
            Node::Column { .. } | Node::Value { .. } => {
                self.shape(shape)?;
                if let Some(Operation::Value(value)) = self.operations.pop() {
                    let writes_null = matches!(
                        &shape.node,
                        Node::Column { unsent: Unsent::Null | Unsent::Stamp(Literal::Null), .. }
                    );
                    self.operations.push(Operation::Field(value.named(&named, writes_null)));
                }
                Ok(())
            }
        }
    }

    fn value(
        &mut self,
        schema: &Schema,
        leaf: &Leaf,
        render: &Render,
        unsent: WhenUnsent,
    ) -> Result<(), Fault> {
        if !fits(render, schema) {
            return Err(Code::Internal
                .fault(format!("{render:?} does not write values of kind {:?}", schema.kind)));
        }
        self.flush();
        let mut present = Vec::new();
        self.format.present(schema, &mut present);
        let null = schema.optional.then(|| {
            let mut null = Vec::new();
            self.format.null(schema, &mut null);
            null.into()
        });
        self.operations.push(Operation::Value(Value {
            input: Input::compile(leaf, self.columns)?,
            render: render.clone(),
            numbers: Numbers::of(schema),
            present: present.into(),
            null,
            unsent,
        }));
        Ok(())
    }

    fn written(&self, schema: &Schema, literal: &Literal) -> Result<WhenUnsent, Fault> {
        let mut bytes = Vec::new();
        append_literal(self.format, schema, literal, &mut bytes)?;
        Ok(WhenUnsent::Write(bytes.into()))
    }

    fn flush(&mut self) {
        if !self.constant.is_empty() {
            let bytes = std::mem::take(&mut self.constant).into();
            self.operations.push(Operation::Constant(bytes));
        }
    }
}

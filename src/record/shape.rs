//! A record's shape: a typed tree whose leaves say where each value comes from.
//!
//! Plans build shapes, transforms will rewrite them, converters compile them into programs.
//! **Invariant:** only [`Node::Column`] may meet an unavailable value and go on; every other reader
//! of one stops with a coded fault.

use std::fmt;
use std::sync::Arc;

use super::render::Render;
use super::schema::{Literal, Schema};

/// Where a value comes from when a row is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// Column by index, as before the change.
    Before(usize),
    /// Column by index, as after the change.
    After(usize),
    /// A changing field of the source block, by the source's index.
    Source(usize),
    /// The time of processing, microseconds since the epoch, as a timestamp.
    ProcessedAt,
    /// The position of the change's transaction, as text.
    CommitPosition,
    /// The message's number in its transaction.
    Sequence,
    /// A part of [`Event::transaction`](crate::change::Event::transaction).
    Transaction(TransactionField),
}

/// A part of what is told of a change's place in its transaction. The number in a variant is the
/// event's among those of its change, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionField {
    /// The transaction.
    Id,
    /// The event's number in the transaction.
    TotalOrder(u32),
    /// The event's number among those of its table in the transaction.
    CollectionOrder(u32),
}

/// What the plain copy of a column does when the value was not sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Unsent {
    /// Writes this marker.
    Stamp(Literal),
    /// Writes null (the field's schema is optional).
    Null,
    /// Stops; the text names the use.
    Refuse(&'static str),
}

/// A node of a shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// All fields of the schema, in its order.
    Struct(Vec<Shape>),
    /// The plain copy of a column into its own field.
    Column {
        /// `Before` or `After`.
        leaf: Leaf,
        /// How the value becomes the schema's primitive.
        render: Render,
        /// What happens if it was not sent.
        unsent: Unsent,
    },
    /// Any other use of a value: unavailable is refused.
    Value {
        /// Where from.
        leaf: Leaf,
        /// How the value becomes the schema's primitive.
        render: Render,
    },
    /// The same for every row of this table version.
    Constant(Literal),
}

/// A node with its schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// What comes out.
    pub schema: Arc<Schema>,
    /// Where it comes from.
    pub node: Node,
}

/// A computed value over leaves.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// The value of a leaf as text.
    Text(Leaf),
    /// The record's number among the records of its message, as text.
    Part,
    /// The names of those columns whose value was not sent, comma-separated.
    NamesOfUnsent(Vec<(Leaf, String)>),
    /// The names of those columns (by index) whose value the source was asked for anew,
    /// comma-separated.
    NamesOfReread(Vec<(usize, String)>),
}

/// Whether a record or header comes out for this row.
#[derive(Clone, Debug, PartialEq)]
pub enum Guard {
    /// Always.
    Always,
    /// If at least one of these columns was not sent.
    AnyUnsent(Vec<Leaf>),
    /// If the source was asked anew for the value of at least one of these columns (by index).
    AnyReread(Vec<usize>),
    /// If at least one of these columns (by index) is not the same before and after.
    AnyChanged(Vec<usize>),
    /// If all of these say so.
    All(Vec<Self>),
    /// If this does not say so.
    Not(Box<Self>),
}

impl Guard {
    /// The opposite.
    #[must_use]
    pub fn negated(self) -> Self {
        match self {
            Self::Not(guard) => *guard,
            guard => Self::Not(Box::new(guard)),
        }
    }
}

/// Which half of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The key.
    Key,
    /// The value.
    Value,
}

impl Side {
    /// The word in the names of subjects and of converters' keys.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Value => "value",
        }
    }
}

/// A header of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct HeaderShape {
    /// The header's key.
    pub name: String,
    /// Its value.
    pub value: HeaderValue,
    /// Whether this row has it.
    pub guard: Guard,
}

/// A header's value.
#[derive(Clone, Debug, PartialEq)]
pub enum HeaderValue {
    /// The same for every row of this table version.
    Constant(String),
    /// Computed, as UTF-8 text.
    Expression(Expression),
    /// Anything else (a record key), written by the header converter.
    Shape(Shape),
}

/// Where a record goes.
#[derive(Clone, Debug, PartialEq)]
pub enum Topic {
    /// The same topic for every row of this table version.
    Fixed(String),
    /// Wherever a text of the row says.
    Routed(Route),
}

/// How the topic follows from a row.
#[derive(Clone, Debug)]
pub struct Route {
    /// The text (a [`Node::Value`] of kind string): unavailable is refused.
    pub by: Shape,
    /// What topic a text means; asked once for each.
    pub naming: Arc<dyn TopicNaming>,
}

/// Two are equal if they ask the same.
impl PartialEq for Route {
    fn eq(&self, other: &Self) -> bool {
        self.by == other.by && Arc::ptr_eq(&self.naming, &other.naming)
    }
}

/// What topic a text means.
pub trait TopicNaming: fmt::Debug + Send + Sync {
    /// The topic's name, which need not be one that a broker accepts. An empty text stands for null
    /// too.
    fn topic(&self, text: &str) -> String;
}

impl Topic {
    /// The topic, if it does not depend on the row.
    pub fn fixed(&self) -> Option<&str> {
        match self {
            Self::Fixed(topic) => Some(topic),
            Self::Routed(_) => None,
        }
    }
}

/// One record that comes out of a change.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordShape {
    /// The topic, adjusted to Kafka's rules.
    pub topic: Topic,
    /// The key; `None`: a null key.
    pub key: Option<Shape>,
    /// The value; `None`: a tombstone.
    pub value: Option<Shape>,
    /// The headers in order.
    pub headers: Vec<HeaderShape>,
    /// Whether this row has the record.
    pub guard: Guard,
}

//! A table's definition as of a place in the log.
//!
//! The source builds it from what the stream says and adds what only the catalogue knows. Knows no
//! database: native types are carried as names and numbers for people and for comparison.

use std::fmt;
use std::sync::Arc;

use super::scalar::{Scalar, ValueError};

/// A table's qualified name, spelled as the source spells it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId {
    /// The schema (PostgreSQL) or keyspace the table is in.
    pub namespace: String,
    /// The table.
    pub name: String,
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.namespace, self.name)
    }
}

/// A table's definition as of a place in the log. A plan is compiled for each.
#[derive(Clone, Debug)]
pub struct TableVersion {
    /// Which table.
    pub table: TableId,
    /// The source's own number of the table; a recreated table has another one.
    pub native_id: u64,
    /// Counts the versions of this table since capture began, from 1.
    pub epoch: u64,
    /// Hash over everything that the stream says of the table.
    pub fingerprint: u64,
    /// The columns that the stream carries, in its order.
    pub columns: Vec<Column>,
    /// Indexes of the columns by which a record is keyed, in key order; empty: no key.
    pub key: Vec<usize>,
    /// What an old row image holds.
    pub before_image: BeforeImage,
    /// How the source names its identity rule, for control records (`default`, `full`, …).
    pub identity: String,
    /// The table's comment.
    pub comment: Option<String>,
}

/// What the source sends of a row's earlier state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BeforeImage {
    /// Every column, with every change.
    Full,
    /// These columns only, with deletes and when one of them changes.
    Key(Vec<usize>),
    /// Nothing: the table takes inserts only.
    None,
}

/// A column of a table version.
#[derive(Clone, Debug)]
pub struct Column {
    /// The name as the source spells it.
    pub name: String,
    /// What it holds.
    pub kind: ColumnType,
    /// Whether NULL is to be expected.
    pub nullable: bool,
    /// What the source fills in when the column is left out.
    pub default: Option<ColumnDefault>,
    /// The source's own type.
    pub native: NativeType,
    /// The type as drivers describe it.
    pub declared: DeclaredType,
    /// Part of the source's row identity.
    pub identity: bool,
    /// The column's comment.
    pub comment: Option<String>,
    /// Reads the column's cells.
    pub parser: Arc<dyn CellParser>,
}

/// A column default, as far as a schema can show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnDefault {
    /// A literal, in the notation of the column's cells.
    Literal(Vec<u8>),
    /// Computed at the source (function, sequence): a schema can show only the type's zero.
    Computed,
}

/// The source's own type of a column: enough to compare versions and to tell people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeType {
    /// The type's name as people write it, with modifiers (`numeric(10,2)`).
    pub name: String,
    /// The source's number of the type.
    pub id: u32,
    /// The source's encoded modifier; −1: none.
    pub modifier: i32,
}

/// A type in the terms in which drivers describe columns (JDBC's `getColumns`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredType {
    /// The name without modifiers, in upper case.
    pub name: String,
    /// Characters, digits, or the longest text form, as the type has it; 0: no limit is known.
    pub length: u32,
    /// Digits after the point, where the type says so.
    pub scale: Option<i32>,
}

/// What a column holds, in neutral terms. How it is published depends on the modes of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Truth values.
    Bool,
    /// 16-bit integers.
    Int16,
    /// 32-bit integers.
    Int32,
    /// 64-bit integers.
    Int64,
    /// Single precision.
    Float32,
    /// Double precision.
    Float64,
    /// Exact decimals of a fixed scale.
    Decimal {
        /// Total digits.
        precision: u32,
        /// Digits after the point; may be negative or exceed the precision.
        scale: i32,
    },
    /// Exact decimals, each with its own scale.
    VariableDecimal,
    /// Currency amounts ([`Scalar::Decimal`], mostly [`Decimal::Scaled`](super::Decimal::Scaled)).
    Money,
    /// Text without further meaning.
    Text,
    /// A JSON document as text.
    Json,
    /// An XML document as text.
    Xml,
    /// A UUID as text.
    Uuid,
    /// A label path as text.
    LabelTree,
    /// A text-search vector as text.
    TextSearchVector,
    /// One of a list of labels, as text.
    Enum {
        /// The labels in sort order.
        labels: Arc<[String]>,
    },
    /// Byte strings.
    Bytes,
    /// Bit strings. A single bit is a truth value to Debezium.
    Bits {
        /// Number of bits (at most, where it varies); `None`: no limit.
        length: Option<u32>,
    },
    /// Calendar days.
    Date,
    /// Time of day.
    Time {
        /// Digits of the fraction of a second, 0 to 6.
        precision: u8,
    },
    /// Time of day with zone.
    ZonedTime,
    /// Wall-clock date and time.
    Timestamp {
        /// Digits of the fraction of a second, 0 to 6.
        precision: u8,
    },
    /// An instant.
    ZonedTimestamp {
        /// Digits of the fraction of a second, 0 to 6.
        precision: u8,
    },
    /// Spans of time.
    Interval,
    /// A point in the plane.
    Point,
    /// Key-value pairs ([`Scalar::KeyValues`]).
    KeyValues,
    /// A geometry in extended well-known binary ([`Scalar::Geometry`]).
    Geometry {
        /// On the globe instead of in the plane.
        geodetic: bool,
    },
    /// Numbers of a fixed count, an embedding ([`Scalar::Sequence`]).
    Vector {
        /// Of half precision.
        half: bool,
    },
    /// Elements of one type.
    Array(Box<Self>),
    /// Anything else: the source's own text, with the type's name in the schema.
    Opaque {
        /// The source's name of the type.
        type_name: String,
    },
}

/// Reads a cell of one column. Made once per table version.
pub trait CellParser: Send + Sync + fmt::Debug {
    /// Reads the bytes of a sent cell.
    ///
    /// # Errors
    /// The bytes are not of the form that the column's type prescribes.
    fn parse<'a>(&'a self, raw: &'a [u8]) -> Result<Scalar<'a>, ValueError>;
}

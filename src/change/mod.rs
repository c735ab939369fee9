//! What a database says, whichever database it is: values, row images, table versions, changes.
//!
//! The one vocabulary that sources and plans share. Knows no database, no record format and no
//! Kafka. **Invariant:** nothing here allocates per row; a row image is ranges into the bytes that
//! the source received, and a [`Scalar`] borrows from them.

mod diff;
mod event;
mod existing_rows;
mod key_values;
mod scalar;
mod table;

pub use diff::{ChangeClass, ColumnChange, Rewrite, TableChange, diff};
pub use event::{Cell, ChangeKind, Event, RowImage, TransactionPlace};
pub use existing_rows::{Consequence, consequence};
pub use key_values::{EachPair, KeyValueReader, KeyValues};
pub use scalar::{
    Bits, ByteText, Decimal, DecimalText, Instant, Interval, IntervalParts, Scalar, Sequence,
    SequenceReader, ValueError,
};
pub use table::{
    BeforeImage, CellParser, Column, ColumnDefault, ColumnType, DeclaredType, NativeType, TableId,
    TableVersion,
};

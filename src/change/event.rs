//! One change of one row (or table) as a source hands it on.
//!
//! Knows no notation: cells are ranges into the received bytes. **Invariant:** an [`Event`] is
//! complete or says that it is not: a value that was not sent is [`Cell::Unavailable`], never NULL.

use super::scalar::Scalar;

/// What happened. Each kind has its own list of records in a table's plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// A row read by a snapshot.
    Read,
    /// A row appeared.
    Create,
    /// A row changed and kept its key.
    Update,
    /// A row changed its key: delete of the old, create of the new.
    KeyChange,
    /// A row went.
    Delete,
    /// All rows of the table went at once.
    Truncate,
    /// A row changed so that it is published now and was not before: a create. Its image before
    /// is not shown.
    MovedIn,
    /// A row changed so that it is not published any more: a delete. Its image after is not shown.
    MovedOut,
    /// A row is found that is not published, and it is not known whether it was: a delete of its
    /// key, of which nothing else is shown.
    FoundOut,
    /// An application wrote a message into the log; no row changed.
    Message,
}

impl ChangeKind {
    /// All kinds, in the order of their discriminants.
    pub const ALL: [Self; 10] = [
        Self::Read,
        Self::Create,
        Self::Update,
        Self::KeyChange,
        Self::Delete,
        Self::Truncate,
        Self::MovedIn,
        Self::MovedOut,
        Self::FoundOut,
        Self::Message,
    ];
}

/// One cell of a row image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// SQL NULL.
    Null,
    /// Not sent by the source: unchanged and stored out of line, or not part of a key-only image.
    Unavailable,
    /// Sent: `len` bytes from `start` in [`RowImage::bytes`].
    Raw {
        /// Offset of the first byte.
        start: u32,
        /// Number of bytes.
        len: u32,
    },
}

/// The row before and after the change, by the column order of the table version.
#[derive(Clone, Copy, Debug)]
pub struct RowImage<'a> {
    /// What the source received; the cells point into it.
    pub bytes: &'a [u8],
    /// The row before, if the source said anything about it. As long as the column list.
    pub before: Option<&'a [Cell]>,
    /// The row after, with what the before-image could complete already filled in.
    pub after: Option<&'a [Cell]>,
    /// Columns of the row after whose values the source was asked for anew, because the change did
    /// not bring them: as they are now, which need not be as they were then.
    pub reread: &'a [usize],
}

impl<'a> RowImage<'a> {
    /// The bytes of a sent cell.
    pub fn raw(&self, cell: Cell) -> Option<&'a [u8]> {
        match cell {
            Cell::Raw { start, len } => {
                let start = start as usize;
                self.bytes.get(start..start + len as usize)
            }
            Cell::Null | Cell::Unavailable => None,
        }
    }

    /// Whether a column is another one after than before, as the source writes it. What is not sent
    /// after did not change; what is not known before may have.
    pub fn is_changed(&self, column: usize) -> bool {
        let cell = |image: Option<&[Cell]>| image.and_then(|cells| cells.get(column)).copied();
        match (cell(self.before), cell(self.after)) {
            (_, Some(Cell::Unavailable)) | (Some(Cell::Null), Some(Cell::Null)) => false,
            (Some(before @ Cell::Raw { .. }), Some(after @ Cell::Raw { .. })) => {
                self.raw(before) != self.raw(after)
            }
            _ => true,
        }
    }
}

/// One change with everything that its records are made of.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// What happened.
    pub kind: ChangeKind,
    /// The row.
    pub row: RowImage<'a>,
    /// The changing fields of the source block, by the index that the source declared for them.
    pub source: &'a [Scalar<'a>],
    /// The position of the change's transaction in the source's notation; empty for snapshot rows.
    pub commit_position: &'a str,
    /// The message's number within its transaction (or the row's within its snapshot chunk).
    pub sequence: u64,
    /// The number of its first record among those of its message, from 0: the tables of one
    /// truncate share a message.
    pub first_part: u32,
    /// When the worker processes it, microseconds since the epoch.
    pub processed_micros: i64,
    /// Where it stands in its transaction, if that is told.
    pub transaction: Option<TransactionPlace<'a>>,
}

/// Where a change stands among the events of its transaction. A change can be several events: a
/// changed key is a delete and a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionPlace<'a> {
    /// The transaction.
    pub id: &'a str,
    /// The number of its first event among those of the transaction, from 1.
    pub total_order: u64,
    /// The number of its first event among those of its table there, from 1.
    pub collection_order: u64,
}

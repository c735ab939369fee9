//! The columns of a row on the wire.
//!
//! Knows neither types nor names: a value is a place in the frame. **Invariant:** a [`Tuple`] was
//! walked to its end once when its message was decoded, so its length is known and its values are
//! well formed.

use super::reader::{DecodeError, Reader};

/// A place in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Number of bytes.
    pub len: u32,
}

/// One column of a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TupleValue {
    /// `n`: NULL, or not sent in an old tuple.
    Null,
    /// `u`: stored out of line, unchanged and not sent.
    Unchanged,
    /// `t`: in the type's text form.
    Text(Span),
    /// `b`: in the type's binary form.
    Binary(Span),
}

/// A row's columns, in the order of the relation's last description.
#[derive(Clone, Copy, Debug)]
pub struct Tuple<'a> {
    columns: usize,
    values: Reader<'a>,
}

impl<'a> Tuple<'a> {
    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let columns = reader.count16("tuple column count", 1)?;
        let values = *reader;
        for _ in 0..columns {
            TupleValue::decode(reader)?;
        }
        Ok(Self { columns, values })
    }

    /// The number of columns.
    pub const fn columns(&self) -> usize {
        self.columns
    }

    /// The columns in order.
    pub const fn values(&self) -> TupleValues<'a> {
        TupleValues { left: self.columns, reader: self.values }
    }
}

impl PartialEq for Tuple<'_> {
    /// Compares what is sent and where it lies in the frame.
    fn eq(&self, other: &Self) -> bool {
        self.values().eq(other.values())
    }
}

impl Eq for Tuple<'_> {}

impl TupleValue {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.array("column kind")? {
            [b't'] => Ok(Self::Text(Self::span(reader)?)),
            [b'n'] => Ok(Self::Null),
            [b'u'] => Ok(Self::Unchanged),
            [b'b'] => Ok(Self::Binary(Self::span(reader)?)),
            [byte] => {
                let at = reader.position().saturating_sub(1);
                Err(DecodeError::Unknown { what: "column kind", at, byte })
            }
        }
    }

    fn span(reader: &mut Reader<'_>) -> Result<Span, DecodeError> {
        let value = reader.sized("column value")?;
        let at = reader.position().saturating_sub(value.len());
        match (u32::try_from(at), u32::try_from(value.len())) {
            (Ok(start), Ok(len)) => Ok(Span { start, len }),
            _ => Err(DecodeError::TooFar { what: "column value", at }),
        }
    }
}

/// Reads the columns of a [`Tuple`].
#[derive(Clone, Copy, Debug)]
pub struct TupleValues<'a> {
    left: usize,
    reader: Reader<'a>,
}

impl Iterator for TupleValues<'_> {
    type Item = Result<TupleValue, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some(TupleValue::decode(&mut self.reader))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for TupleValues<'_> {}

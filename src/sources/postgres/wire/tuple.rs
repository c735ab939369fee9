//! The columns of a row on the wire.
//!
//! Knows neither types nor names: a value is a place in the frame. **Invariant:** the values of a
//! tuple are read once, when its message is decoded, into memory that the caller reuses.

use super::reader::{DecodeError, Reader, Span};

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
pub type Tuple<'a> = &'a [TupleValue];

/// Reads a tuple's columns to the end of the list.
pub(super) fn decode_tuple(
    reader: &mut Reader<'_>,
    values: &mut Vec<TupleValue>,
) -> Result<(), DecodeError> {
    let columns = reader.count16("tuple column count", 1)?;
    values.reserve(columns);
    let mut rest = *reader;
    for _ in 0..columns {
        let start = rest;
        match TupleValue::read(&mut rest) {
            Some(value) => values.push(value),
            None => {
                let (value, after) = TupleValue::decode(start)?;
                values.push(value);
                rest = after;
            }
        }
    }
    *reader = rest;
    Ok(())
}

impl TupleValue {
    /// Reads a well-formed value of the kinds that are asked for. Every column of every row goes
    /// through here; the rest is left to [`Self::decode`], because a result that can say what is
    /// wrong goes through memory, and makes this several times as dear.
    #[inline]
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        match reader.try_u8()? {
            b't' => reader.try_span().map(Self::Text),
            b'n' => Some(Self::Null),
            b'u' => Some(Self::Unchanged),
            _ => None,
        }
    }

    /// Reads any value, or says what is wrong with it. Takes and returns the reader by value, so
    /// that the caller's need not live in memory for its sake.
    #[cold]
    fn decode(mut reader: Reader<'_>) -> Result<(Self, Reader<'_>), DecodeError> {
        let at = reader.position();
        let value = match reader.u8("column kind")? {
            b'n' => Self::Null,
            b'u' => Self::Unchanged,
            b't' => Self::Text(reader.span("column value")?),
            b'b' => Self::Binary(reader.span("column value")?),
            byte => return Err(DecodeError::Unknown { what: "column kind", at, byte }),
        };
        Ok((value, reader))
    }
}

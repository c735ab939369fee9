//! One value, borrowed and database-neutral.
//!
//! A source's parser makes it from the bytes of a cell; `record::render` turns it into the
//! primitive that a schema asks for. Knows neither side's notation.

use std::fmt;

use super::key_values::KeyValues;

/// A value as the neutral model knows it. `Copy`, so that it travels in registers.
#[derive(Clone, Copy, Debug)]
pub enum Scalar<'a> {
    /// SQL NULL.
    Null,
    /// A value that exists at the source and was not sent. Never NULL.
    Unavailable,
    /// A truth value.
    Bool(bool),
    /// Any integer type up to 64 bits.
    Int(i64),
    /// Single precision, NaN and infinities included.
    Float32(f32),
    /// Double precision, NaN and infinities included.
    Float64(f64),
    /// An exact decimal, or one of its special values.
    Decimal(Decimal<'a>),
    /// Days since 1970-01-01 (proleptic Gregorian).
    Date(Instant),
    /// Microseconds since midnight, 0 to 86 400 000 000 (24:00:00 is legal).
    Time(i64),
    /// Microseconds since midnight local time, and the zone's offset east of UTC in seconds.
    ZonedTime {
        /// Local microseconds since midnight, 0 to 86 400 000 000.
        micros: i64,
        /// Seconds east of UTC.
        offset_seconds: i32,
    },
    /// Microseconds since 1970-01-01T00:00:00 of a wall clock without zone.
    Timestamp(Instant),
    /// Microseconds since 1970-01-01T00:00:00Z.
    ZonedTimestamp(Instant),
    /// A span in the three parts that do not convert into each other.
    Interval(Interval),
    /// UTF-8 text.
    Text(&'a str),
    /// A byte string.
    Bytes(ByteText<'a>),
    /// A bit string.
    Bits(Bits<'a>),
    /// A point in the plane.
    Point {
        /// Abscissa.
        x: f64,
        /// Ordinate.
        y: f64,
    },
    /// Elements in order, read by visiting.
    Sequence(Sequence<'a>),
    /// Text keys with optional text values in order, read by visiting.
    KeyValues(KeyValues<'a>),
    /// A geometry in extended well-known binary, with its reference system if it has one.
    Geometry {
        /// The binary form, as the source has it.
        wkb: ByteText<'a>,
        /// The number of the spatial reference system.
        srid: Option<i32>,
    },
}

/// A point on a time axis that has ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instant {
    /// Before all others.
    NegativeInfinity,
    /// Units (days or microseconds, by the scalar) since the epoch. Wider than 64 bits, because
    /// the last years that a source can hold may lie beyond 2^63 microseconds.
    At(i128),
    /// After all others.
    PositiveInfinity,
}

/// A decimal number or special value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decimal<'a> {
    /// A number in digits.
    Finite(DecimalText<'a>),
    /// A number as an integer: `unscaled` × 10^−`scale`.
    Scaled {
        /// All digits as one integer.
        unscaled: i64,
        /// Digits after the point.
        scale: u8,
    },
    /// Not a number.
    NaN,
    /// +∞.
    PositiveInfinity,
    /// −∞.
    NegativeInfinity,
}

/// The digits of a decimal number, most significant first, all ASCII `0`–`9`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecimalText<'a> {
    /// Below zero.
    pub negative: bool,
    /// Digits before the point; may be empty, may have leading zeros.
    pub integer: &'a str,
    /// Digits after the point, trailing zeros kept: their count is the number's scale.
    pub fraction: &'a str,
}

/// A span of time, or one without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// Shorter than all others.
    NegativeInfinity,
    /// A span in three parts, each with its own sign.
    Finite(IntervalParts),
    /// Longer than all others.
    PositiveInfinity,
}

/// The parts of a span of time, none of which converts into another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntervalParts {
    /// Months (years × 12 included).
    pub months: i64,
    /// Days.
    pub days: i64,
    /// Microseconds.
    pub micros: i64,
}

/// A byte string in the notation in which it was received, decoded while it is copied out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ByteText<'a> {
    /// The bytes themselves.
    Raw(&'a [u8]),
    /// Two hexadecimal digits for each byte, without prefix; the parser has checked them.
    Hex(&'a [u8]),
}

impl ByteText<'_> {
    /// The number of bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Raw(raw) => raw.len(),
            Self::Hex(hex) => hex.len() / 2,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The byte at a place.
    pub fn at(&self, index: usize) -> Option<u8> {
        match self {
            Self::Raw(raw) => raw.get(index).copied(),
            Self::Hex(hex) => {
                let [high, low] = *hex.as_chunks::<2>().0.get(index)?;
                Some(nibble(high) << 4 | nibble(low))
            }
        }
    }

    /// Appends the bytes.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Raw(raw) => out.extend_from_slice(raw),
            Self::Hex(hex) => {
                out.extend(
                    hex.as_chunks::<2>().0.iter().map(|[h, l]| nibble(*h) << 4 | nibble(*l)),
                );
            }
        }
    }
}

impl fmt::Debug for ByteText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ByteText({} bytes)", self.len())
    }
}

const fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => 0,
    }
}

/// A bit string: ASCII `0` and `1`, first bit first; the parser has checked them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits<'a>(pub &'a [u8]);

/// Elements in the source's notation, and who can read it.
#[derive(Clone, Copy)]
pub struct Sequence<'a> {
    /// The cell's bytes.
    pub raw: &'a [u8],
    /// Reads them.
    pub reader: &'a dyn SequenceReader,
}

impl Sequence<'_> {
    /// Calls `each` for every element in order; stops at its first error.
    ///
    /// # Errors
    /// The notation is malformed, an element is, or `each` failed.
    pub fn visit(
        &self,
        each: &mut dyn FnMut(Scalar<'_>) -> Result<(), ValueError>,
    ) -> Result<(), ValueError> {
        self.reader.visit(self.raw, each)
    }
}

impl fmt::Debug for Sequence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sequence({} raw bytes)", self.raw.len())
    }
}

/// Reads the elements of a sequence in a source's notation.
pub trait SequenceReader: Send + Sync + fmt::Debug {
    /// Calls `each` for every element in order; stops at its first error.
    ///
    /// # Errors
    /// The notation is malformed, an element is, or `each` failed.
    fn visit(
        &self,
        raw: &[u8],
        each: &mut dyn FnMut(Scalar<'_>) -> Result<(), ValueError>,
    ) -> Result<(), ValueError>;
}

/// Why a value could not be read or written. The caller adds table, column and position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The text is not of the form its type prescribes.
    #[error("malformed {kind}: {detail}")]
    Malformed {
        /// The type.
        kind: &'static str,
        /// What is wrong, without the value itself.
        detail: String,
    },
    /// The text is not UTF-8.
    #[error("not valid UTF-8 at byte {at}")]
    Encoding {
        /// Offset of the first bad byte.
        at: usize,
    },
    /// The target cannot hold the value exactly.
    #[error("{0}")]
    Unrepresentable(String),
    /// A value that was not sent is needed by something that cannot do without.
    #[error("the value was not sent, and {0} cannot do without it")]
    Unavailable(&'static str),
    /// NULL where the schema has no room for it.
    #[error("null in a column that cannot be null")]
    UnexpectedNull,
}

impl ValueError {
    /// The coded fault, still without its place.
    pub fn into_fault(self) -> crate::error::Fault {
        use crate::error::Code;
        let code = match self {
            Self::Malformed { .. } => Code::ValueMalformed,
            Self::Encoding { .. } => Code::ValueEncoding,
            Self::Unrepresentable(_) => Code::ValueUnrepresentable,
            Self::Unavailable(_) => Code::ToastUnavailable,
            Self::UnexpectedNull => Code::NullUnexpected,
        };
        code.fault(self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_bytes_decode_while_copied() {
        let mut out = vec![1];
        ByteText::Hex(b"00fFa0").append_to(&mut out);
        assert_eq!(out, [1, 0, 0xff, 0xa0]);
        assert_eq!(ByteText::Hex(b"00ff").len(), 2);
        assert_eq!(ByteText::Hex(b"00ff").at(1), Some(0xff));
        assert_eq!(ByteText::Hex(b"00ff").at(2), None);
    }
}

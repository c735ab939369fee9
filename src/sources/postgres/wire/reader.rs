//! The one door through which bytes of the wire are read.
//!
//! Knows only numbers in network byte order, terminated text and counts. **Invariant:** nothing
//! else in `wire` touches the slice; every read names what it reads, so that an error says what
//! was missing and where.

/// Why bytes are not what the protocol prescribes. Offsets count from the start of the frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The frame ends too early.
    #[error("{what} at byte {at} needs {needed} bytes, {left} are left")]
    Missing {
        /// The field.
        what: &'static str,
        /// Where it begins.
        at: usize,
        /// Its size, or the least that its count asks for.
        needed: usize,
        /// What there is.
        left: usize,
    },
    /// The frame goes on after its end.
    #[error("{left} bytes are left over at byte {at}, after {after}")]
    LeftOver {
        /// What was read last.
        after: &'static str,
        /// Where the surplus begins.
        at: usize,
        /// How much it is.
        left: usize,
    },
    /// A tag, letter or flag that the protocol does not have.
    #[error("unknown {what} 0x{byte:02x} at byte {at}")]
    Unknown {
        /// The field.
        what: &'static str,
        /// Where it is.
        at: usize,
        /// Its value.
        byte: u8,
    },
    /// A length or count below zero.
    #[error("{what} at byte {at} is {value}")]
    Negative {
        /// The field.
        what: &'static str,
        /// Where it is.
        at: usize,
        /// Its value.
        value: i64,
    },
    /// Text without its final zero byte.
    #[error("{what} at byte {at} has no end")]
    Unterminated {
        /// The field.
        what: &'static str,
        /// Where it begins.
        at: usize,
    },
    /// A name that is not UTF-8 (the session asks for UTF-8).
    #[error("{what} at byte {at} is not UTF-8")]
    Encoding {
        /// The field.
        what: &'static str,
        /// Where it begins.
        at: usize,
    },
    /// An offset beyond what a frame of the protocol can have.
    #[error("{what} at byte {at} lies beyond 4 GiB")]
    TooFar {
        /// The field.
        what: &'static str,
        /// Where it begins.
        at: usize,
    },
}

/// A place in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Number of bytes.
    pub len: u32,
}

/// Reads a frame from front to back. A copy is a bookmark.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    total: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte of a frame.
    pub const fn new(frame: &'a [u8]) -> Self {
        Self { rest: frame, total: frame.len() }
    }

    /// The offset of the next byte from the start of the frame.
    pub const fn position(&self) -> usize {
        self.total.saturating_sub(self.rest.len())
    }

    /// How many bytes are left.
    pub const fn left(&self) -> usize {
        self.rest.len()
    }

    /// Takes that many bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn take(&mut self, what: &'static str, length: usize) -> Result<&'a [u8], DecodeError> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            return Err(self.missing(what, length));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// Takes a fixed number of bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        let Some((taken, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.missing(what, N));
        };
        self.rest = rest;
        Ok(*taken)
    }

    /// One byte.
    ///
    /// # Errors
    /// There is none.
    pub fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    /// An unsigned 32-bit number.
    ///
    /// # Errors
    /// There are fewer bytes.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        self.array(what).map(u32::from_be_bytes)
    }

    /// A signed 32-bit number.
    ///
    /// # Errors
    /// There are fewer bytes.
    pub fn i32(&mut self, what: &'static str) -> Result<i32, DecodeError> {
        self.array(what).map(i32::from_be_bytes)
    }

    /// An unsigned 64-bit number.
    ///
    /// # Errors
    /// There are fewer bytes.
    pub fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        self.array(what).map(u64::from_be_bytes)
    }

    /// A signed 64-bit number.
    ///
    /// # Errors
    /// There are fewer bytes.
    pub fn i64(&mut self, what: &'static str) -> Result<i64, DecodeError> {
        self.array(what).map(i64::from_be_bytes)
    }

    /// A 16-bit count of elements, each of at least `least` bytes.
    ///
    /// # Errors
    /// It is negative, or more than the bytes left can hold.
    pub fn count16(&mut self, what: &'static str, least: usize) -> Result<usize, DecodeError> {
        let start = *self;
        let count = self.array(what).map(i16::from_be_bytes)?;
        self.prove(what, start, i64::from(count), least)
    }

    /// A 32-bit count of elements, each of at least `least` bytes.
    ///
    /// # Errors
    /// It is negative, or more than the bytes left can hold.
    pub fn count32(&mut self, what: &'static str, least: usize) -> Result<usize, DecodeError> {
        let start = *self;
        let count = self.i32(what)?;
        self.prove(what, start, i64::from(count), least)
    }

    /// A 32-bit length and that many bytes.
    ///
    /// # Errors
    /// The length is negative, or more than there is.
    pub fn sized(&mut self, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = self.count32(what, 1)?;
        self.take(what, length)
    }

    /// As [`Self::sized`], giving the place of the bytes.
    ///
    /// # Errors
    /// The length is negative, or more than there is, or the place is beyond 4 GiB.
    pub fn span(&mut self, what: &'static str) -> Result<Span, DecodeError> {
        let bytes = self.sized(what)?;
        let at = self.position().saturating_sub(bytes.len());
        match (u32::try_from(at), u32::try_from(bytes.len())) {
            (Ok(start), Ok(len)) => Ok(Span { start, len }),
            _ => Err(DecodeError::TooFar { what, at }),
        }
    }

    /// Text up to a zero byte, which is consumed.
    ///
    /// # Errors
    /// There is no zero byte, or the text is not UTF-8.
    pub fn text(&mut self, what: &'static str) -> Result<&'a str, DecodeError> {
        let at = self.position();
        let Some(end) = self.rest.iter().position(|byte| *byte == 0) else {
            return Err(DecodeError::Unterminated { what, at });
        };
        let text = self.take(what, end)?;
        self.u8(what)?;
        std::str::from_utf8(text).map_or(Err(DecodeError::Encoding { what, at }), Ok)
    }

    /// A byte of which only some bits have a meaning.
    ///
    /// # Errors
    /// There is none, or a bit outside `known` is set.
    pub fn flags(&mut self, what: &'static str, known: u8) -> Result<u8, DecodeError> {
        let at = self.position();
        let byte = self.u8(what)?;
        if byte & !known == 0 { Ok(byte) } else { Err(DecodeError::Unknown { what, at, byte }) }
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// Bytes are left over.
    pub const fn all(&self, after: &'static str) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(DecodeError::LeftOver { after, at: self.position(), left: self.rest.len() })
    }

    fn prove(
        &self,
        what: &'static str,
        start: Self,
        count: i64,
        least: usize,
    ) -> Result<usize, DecodeError> {
        let at = start.position();
        let Ok(count) = usize::try_from(count) else {
            return Err(DecodeError::Negative { what, at, value: count });
        };
        let needed = count.saturating_mul(least);
        if needed > self.left() {
            return Err(DecodeError::Missing { what, at, needed, left: self.left() });
        }
        Ok(count)
    }

    /// As [`Self::u8`], without saying what is wrong.
    #[inline]
    pub(super) const fn try_u8(&mut self) -> Option<u8> {
        let Some((byte, rest)) = self.rest.split_first() else { return None };
        self.rest = rest;
        Some(*byte)
    }

    /// As [`Self::span`], without saying what is wrong.
    #[inline]
    pub(super) fn try_span(&mut self) -> Option<Span> {
        let (length, rest) = self.rest.split_first_chunk()?;
        let length = i32::from_be_bytes(*length);
        let start = self.total.saturating_sub(rest.len());
        let (_, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(Span { start: u32::try_from(start).ok()?, len: u32::try_from(length).ok()? })
    }

    const fn missing(&self, what: &'static str, needed: usize) -> DecodeError {
        DecodeError::Missing { what, at: self.position(), needed, left: self.rest.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_proved_before_anything_is_allocated() {
        let mut reader = Reader::new(&[0x7f, 0xff, 1, 2, 3]);
        assert_eq!(
            reader.count16("columns", 2),
            Err(DecodeError::Missing { what: "columns", at: 0, needed: 65_534, left: 3 })
        );
    }

    #[test]
    fn a_negative_count_or_length_is_refused() {
        assert_eq!(
            Reader::new(&[0xff, 0xff]).count16("columns", 1),
            Err(DecodeError::Negative { what: "columns", at: 0, value: -1 })
        );
        assert_eq!(
            Reader::new(&[0x80, 0, 0, 0]).sized("value"),
            Err(DecodeError::Negative { what: "value", at: 0, value: i64::from(i32::MIN) })
        );
    }

    #[test]
    fn text_ends_at_its_zero() {
        let mut reader = Reader::new(b"ab\0\0c");
        assert_eq!(reader.text("name"), Ok("ab"));
        assert_eq!(reader.text("name"), Ok(""));
        assert_eq!(reader.text("name"), Err(DecodeError::Unterminated { what: "name", at: 4 }));
        assert_eq!(
            Reader::new(b"\xff\0").text("name"),
            Err(DecodeError::Encoding { what: "name", at: 0 })
        );
    }

    #[test]
    fn left_over_bytes_are_an_error() {
        let mut reader = Reader::new(&[1, 2, 3]);
        assert_eq!(reader.u8("tag"), Ok(1));
        assert_eq!(reader.all("tag"), Err(DecodeError::LeftOver { after: "tag", at: 1, left: 2 }));
        assert_eq!(reader.position(), 1);
    }

    #[test]
    fn unknown_flag_bits_are_refused() {
        assert_eq!(Reader::new(&[3]).flags("options", 3), Ok(3));
        assert_eq!(
            Reader::new(&[4]).flags("options", 3),
            Err(DecodeError::Unknown { what: "options", at: 0, byte: 4 })
        );
    }

    #[test]
    fn errors_read_as_sentences() {
        let error = DecodeError::Missing { what: "column value", at: 31, needed: 9, left: 2 };
        assert_eq!(error.to_string(), "column value at byte 31 needs 9 bytes, 2 are left");
    }
}

//! A place in the bytes of one value, and the few steps that parsers take over it.
//!
//! Everything works on bytes and borrows. Knows no type. **Invariant:** a step that fails consumes
//! nothing that matters, because its caller gives the whole value up.

/// The rest of a value that is still to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scan<'a> {
    rest: &'a [u8],
}

impl<'a> Scan<'a> {
    pub(super) const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// What is still to be read.
    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// `Some` if nothing is left.
    pub(super) fn end(&self) -> Option<()> {
        self.rest.is_empty().then_some(())
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Takes a byte.
    pub(super) fn next(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    /// Takes this byte, if it is the next.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let eaten = self.peek() == Some(byte);
        if eaten {
            self.next();
        }
        eaten
    }

    /// Takes this byte, or fails.
    pub(super) fn expect(&mut self, byte: u8) -> Option<()> {
        self.eat(byte).then_some(())
    }

    /// Takes these bytes, if they are the next.
    pub(super) fn eat_all(&mut self, bytes: &[u8]) -> bool {
        self.rest.strip_prefix(bytes).map(|rest| self.rest = rest).is_some()
    }

    /// Takes bytes for as long as they fit.
    pub(super) fn take_while(&mut self, fits: impl Fn(u8) -> bool) -> &'a [u8] {
        let count = self.rest.iter().position(|&byte| !fits(byte)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(count).unwrap_or((self.rest, &[]));
        self.rest = rest;
        taken
    }

    /// Takes a number of at least one digit that fits into 64 bits.
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut value = digit(self.next()?)?;
        while let Some(next) = self.peek().and_then(digit) {
            value = value.checked_mul(10)?.checked_add(next)?;
            self.next();
        }
        Some(value)
    }

    /// Takes a text in double quotes in which a backslash stands before a byte that is meant as it
    /// is. Only a text with a backslash is copied, into `scratch`.
    pub(super) fn quoted<'b>(&mut self, scratch: &'b mut Vec<u8>) -> Option<&'b [u8]>
    where
        'a: 'b,
    {
        self.expect(b'"')?;
        let plain = |byte: u8| byte != b'"' && byte != b'\\';
        let first = self.take_while(plain);
        if self.eat(b'"') {
            return Some(first);
        }
        scratch.clear();
        scratch.extend_from_slice(first);
        while !self.eat(b'"') {
            self.expect(b'\\')?;
            scratch.push(self.next()?);
            scratch.extend_from_slice(self.take_while(plain));
        }
        Some(scratch)
    }

    /// Takes that many bytes.
    pub(super) fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(taken)
    }

    /// Takes exactly two digits.
    pub(super) fn two_digits(&mut self) -> Option<u32> {
        self.take().copied().and_then(pair)
    }

    /// Takes `.` and one to six digits, as millionths; without a point: 0.
    pub(super) fn micros(&mut self) -> Option<u32> {
        const UNITS: [u32; 6] = [100_000, 10_000, 1_000, 100, 10, 1];
        if !self.eat(b'.') {
            return Some(0);
        }
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        let unit = UNITS.get(digits.len().checked_sub(1)?)?;
        // Six digits at most, so that nothing wraps.
        let value = digits.iter().filter_map(|byte| small(*byte));
        Some(
            value
                .fold(0_u32, |sum, digit| sum.wrapping_mul(10).wrapping_add(digit))
                .wrapping_mul(*unit),
        )
    }
}

/// The value of two ASCII digits.
pub(super) fn pair([tens, ones]: [u8; 2]) -> Option<u32> {
    Some(small(tens)?.wrapping_mul(10).wrapping_add(small(ones)?))
}

/// The value of an ASCII digit.
pub(super) const fn digit(byte: u8) -> Option<u64> {
    let value = byte.wrapping_sub(b'0');
    if value < 10 { Some(value as u64) } else { None }
}

const fn small(byte: u8) -> Option<u32> {
    let value = byte.wrapping_sub(b'0');
    if value < 10 { Some(value as u32) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stop_at_64_bits() {
        assert_eq!(Scan::new(b"18446744073709551615x").number(), Some(u64::MAX));
        assert_eq!(Scan::new(b"18446744073709551616").number(), None);
        assert_eq!(Scan::new(b"x").number(), None);
    }

    #[test]
    fn fractions_count_in_millionths() {
        assert_eq!(Scan::new(b".5").micros(), Some(500_000));
        assert_eq!(Scan::new(b".000001").micros(), Some(1));
        assert_eq!(Scan::new(b".999999").micros(), Some(999_999));
        assert_eq!(Scan::new(b"").micros(), Some(0));
        assert_eq!(Scan::new(b".").micros(), None);
        assert_eq!(Scan::new(b".0000001").micros(), None);
    }
}

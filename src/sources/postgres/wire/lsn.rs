//! Positions in the write-ahead log.
//!
//! Knows nothing of what lies at a position. **Invariant:** order and equality are those of the
//! 64-bit number; the text form is the server's (`pg_lsn`).

use std::fmt;
use std::str::FromStr;

/// A byte position in the write-ahead log; 0 means "none" on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// No position.
    pub const ZERO: Self = Self(0);
}

impl fmt::Display for Lsn {
    /// As the server prints it: two hexadecimal halves without leading zeros.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xffff_ffff)
    }
}

/// The text is not a log position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a log position of the form X/Y")]
pub struct LsnError(String);

impl FromStr for Lsn {
    type Err = LsnError;

    /// Takes what the server's `pg_lsn` input takes: one to eight hexadecimal digits on each side.
    fn from_str(text: &str) -> Result<Self, LsnError> {
        let refused = || LsnError(text.to_owned());
        let (high, low) = text.split_once('/').ok_or_else(refused)?;
        let (high, low) = half(high).zip(half(low)).ok_or_else(refused)?;
        Ok(Self(u64::from(high) << 32 | u64::from(low)))
    }
}

fn half(digits: &str) -> Option<u32> {
    // `from_str_radix` alone would also take a sign.
    if digits.len() > 8 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<u64>) {
        assert_eq!(text.parse::<Lsn>().ok().map(|lsn| lsn.0), expect, "{text}");
    }

    #[test]
    fn text_forms_that_the_server_takes_are_taken() {
        check("0/0", Some(0));
        check("16/B374D848", Some(0x16_b374_d848));
        check("ffffffff/FFFFFFFF", Some(u64::MAX));
        check("00000001/00000002", Some(0x1_0000_0002));
    }

    #[test]
    fn everything_else_is_refused() {
        for text in
            ["", "/", "0", "0/", "/0", "0/0/0", "+1/0", "0/-1", " 0/0", "123456789/0", "g/0"]
        {
            check(text, None);
        }
    }

    proptest::proptest! {
        #[test]
        fn text_and_number_are_one_to_one(number: u64) {
            assert_eq!(Lsn(number).to_string().parse(), Ok(Lsn(number)));
        }
    }

    #[test]
    fn order_is_that_of_the_log() {
        assert!("0/FFFFFFFF".parse::<Lsn>().unwrap() < "1/0".parse().unwrap());
    }
}

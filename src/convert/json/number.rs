//! Decimals as JSON numbers, in the spelling of Java's `BigDecimal.toString`.
//!
//! Knows no schema. **Invariant:** every digit of the unscaled value is written; values of up to
//! 128 bits allocate nothing.

use std::io::Write as _;

use num_bigint::BigInt;

/// Replaces the big-endian two's complement integer that stands raw behind `start` by the decimal
/// number with so many digits after the point.
pub(super) fn append_decimal(out: &mut Vec<u8>, start: usize, scale: i32) {
    let raw = out.get(start..).unwrap_or_default();
    let fill = if raw.first().is_some_and(|first| *first >= 0x80) { 0xff } else { 0 };
    let mut small = [fill; 16];
    match small.len().checked_sub(raw.len()) {
        Some(unused) => {
            for (place, byte) in small.iter_mut().skip(unused).zip(raw) {
                *place = *byte;
            }
            out.truncate(start);
            // A vector takes everything; there is no error to report.
            drop(write!(out, "{}", i128::from_be_bytes(small)));
        }
        None => {
            let large = BigInt::from_signed_bytes_be(raw);
            out.truncate(start);
            drop(write!(out, "{large}"));
        }
    }
    let start = start + usize::from(out.get(start) == Some(&b'-'));
    place_point(out, start, i64::from(scale));
}

/// Puts point and exponent into the digits behind `start`.
fn place_point(out: &mut Vec<u8>, start: usize, scale: i64) {
    let digits = out.len() - start;
    let adjusted = i64::try_from(digits).unwrap_or(i64::MAX) - 1 - scale;
    if scale == 0 {
        return;
    }
    if scale > 0 && adjusted >= -6 {
        match usize::try_from(adjusted) {
            Ok(integer) => out.insert(start + integer + 1, b'.'),
            Err(_) => {
                // `adjusted` is −1 to −6 here: as many zeros as it says, the first before the point.
                let zeros = usize::try_from(-adjusted).unwrap_or_default();
                out.splice(start..start, std::iter::repeat_n(b'0', zeros));
                out.insert(start + 1, b'.');
            }
        }
        return;
    }
    if digits > 1 {
        out.insert(start + 1, b'.');
    }
    if adjusted != 0 {
        drop(write!(out, "E{adjusted:+}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(unscaled: &str, scale: i32, expect: &str) {
        let mut out = b"x".to_vec();
        out.extend(unscaled.parse::<BigInt>().unwrap().to_signed_bytes_be());
        append_decimal(&mut out, 1, scale);
        assert_eq!(String::from_utf8(out).unwrap(), format!("x{expect}"));
    }

    #[test]
    fn decimals_are_spelled_as_java_does() {
        // The examples of BigDecimal.toString's documentation.
        check("123", 0, "123");
        check("-123", 0, "-123");
        check("123", -1, "1.23E+3");
        check("123", -3, "1.23E+5");
        check("123", 1, "12.3");
        check("123", 5, "0.00123");
        check("123", 10, "1.23E-8");
        check("-123", 12, "-1.23E-10");
        check("0", 0, "0");
        check("0", 2, "0.00");
        check("0", 7, "0E-7");
        check("-1", 6, "-0.000001");
        check("1", 7, "1E-7");
        check("1", -2, "1E+2");
        check("-128", 1, "-12.8");
        check("12345", 5, "0.12345");
    }

    #[test]
    fn long_decimals_keep_every_digit() {
        let digits = "9".repeat(60);
        check(&digits, 0, &digits);
        check(&format!("-{digits}"), 60, &format!("-0.{digits}"));
        check(&digits, 59, &format!("9.{}", "9".repeat(59)));
    }
}

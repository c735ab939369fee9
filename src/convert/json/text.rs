//! The spelling of JSON texts and numbers, as Kafka's own JSON writer (Jackson on the JVM) has it.
//!
//! Knows neither schemas nor shapes. **Invariant:** output is UTF-8 and never ends in the middle of
//! a token; nothing here allocates beyond the given buffer.

use std::io::Write as _;

/// Appends a JSON string with its quotes. Only what JSON forbids is escaped; other characters,
/// 0x7F included, stand as they are, and hexadecimal digits are upper case.
pub(in crate::convert) fn append_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    append_escaped(out, text, is_forbidden);
    out.push(b'"');
}

/// Appends the inside of a string, escaping what `escaped` says (ASCII only).
pub(super) fn append_escaped(out: &mut Vec<u8>, text: &str, escaped: impl Fn(u8) -> bool) {
    let mut bytes = text.as_bytes();
    while let Some(at) = bytes.iter().position(|byte| escaped(*byte)) {
        let (plain, rest) = bytes.split_at(at);
        out.extend_from_slice(plain);
        let Some((special, rest)) = rest.split_first() else { return };
        append_escape(out, *special);
        bytes = rest;
    }
    out.extend_from_slice(bytes);
}

/// What must not stand in a JSON string as it is (RFC 8259 §7).
pub(super) const fn is_forbidden(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn append_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: [u8; 16] = *b"0123456789ABCDEF";
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        _ => {
            let [high, low] = [byte >> 4, byte & 0xf].map(|digit| HEX[usize::from(digit)]);
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Appends bytes as a JSON string of one character for each byte (ISO-8859-1), Avro's notation for
/// the defaults of byte fields.
pub(in crate::convert) fn append_latin1(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    for byte in bytes {
        append_escaped(out, char::from(*byte).encode_utf8(&mut [0; 4]), is_forbidden);
    }
    out.push(b'"');
}

/// Replaces the bytes behind `start` by a JSON string of them in base64 (RFC 4648 §4, padded).
pub(in crate::convert) fn append_base64(out: &mut Vec<u8>, start: usize) {
    const DIGITS: [u8; 64] = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let end = out.len();
    out.push(b'"');
    for at in (start..end).step_by(3) {
        let byte = |offset: usize| {
            let index = at + offset;
            if index < end { out.get(index).copied().map(u32::from) } else { None }
        };
        let (second, third) = (byte(1), byte(2));
        let bits = byte(0).unwrap_or(0) << 16 | second.unwrap_or(0) << 8 | third.unwrap_or(0);
        let digit = |shift: u32| DIGITS[(bits >> shift & 0x3f) as usize];
        out.extend_from_slice(&[
            digit(18),
            digit(12),
            second.map_or(b'=', |_| digit(6)),
            third.map_or(b'=', |_| digit(0)),
        ]);
    }
    out.push(b'"');
    out.drain(start..end);
}

/// Appends an integer.
pub(in crate::convert) fn append_integer(out: &mut Vec<u8>, value: i64) {
    let mut digits = [b'0'; 20];
    let mut rest = value.unsigned_abs();
    let mut used = 0;
    for place in digits.iter_mut().rev() {
        let [digit, ..] = (rest % 10).to_le_bytes();
        *place = b'0' + digit;
        rest /= 10;
        used += 1;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(digits.get(digits.len() - used..).unwrap_or_default());
}

/// Appends a double as Java's `Double.toString` spells it. What is not a number (`NaN`, `Infinity`,
/// `-Infinity`) is quoted if `quote` says so, as Jackson does.
pub(in crate::convert) fn append_float64(out: &mut Vec<u8>, value: f64, quote: bool) {
    if !value.is_finite() {
        return append_non_finite(out, value, quote);
    }
    let mut digits = Digits::default();
    digits.read(format_args!("{value:e}"));
    if digits.len == 1 {
        // Java takes the nearest of all two-digit decimals when one digit would be enough.
        digits.read(format_args!("{value:.1e}"));
    }
    digits.append_to(out);
}

/// Appends a float as Java's `Float.toString` spells it; see [`append_float64`].
pub(in crate::convert) fn append_float32(out: &mut Vec<u8>, value: f32, quote: bool) {
    if !value.is_finite() {
        return append_non_finite(out, f64::from(value), quote);
    }
    let mut digits = Digits::default();
    digits.read(format_args!("{value:e}"));
    if digits.len == 1 {
        digits.read(format_args!("{value:.1e}"));
    }
    digits.append_to(out);
}

fn append_non_finite(out: &mut Vec<u8>, value: f64, quote: bool) {
    let word = match value {
        value if value.is_nan() => "NaN",
        value if value > 0.0 => "Infinity",
        _ => "-Infinity",
    };
    if quote {
        append_string(out, word);
    } else {
        out.extend_from_slice(word.as_bytes());
    }
}

fn append_fmt(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    // A vector takes everything; there is no error to report.
    drop(out.write_fmt(arguments));
}

/// The shortest decimal that reads back to the same number: `0.d₁d₂…` × 10^(exponent + 1).
#[derive(Default)]
struct Digits {
    negative: bool,
    digits: [u8; 24],
    len: usize,
    exponent: i32,
}

impl Digits {
    /// Takes Rust's scientific notation (`-1.25e-7`) apart.
    fn read(&mut self, scientific: std::fmt::Arguments<'_>) {
        let mut text = [0_u8; 32];
        let mut rest = text.as_mut_slice();
        drop(rest.write_fmt(scientific));
        let unused = rest.len();
        let used = text.len() - unused;
        *self = Self::default();
        let mut parts = text.iter().take(used);
        for byte in parts.by_ref() {
            match byte {
                b'-' => self.negative = true,
                b'.' => {}
                b'e' => break,
                digit => {
                    if let Some(place) = self.digits.get_mut(self.len) {
                        *place = *digit;
                        self.len += 1;
                    }
                }
            }
        }
        let mut negative = false;
        for byte in parts {
            match byte {
                b'-' => negative = true,
                digit => self.exponent = self.exponent * 10 + i32::from(digit - b'0'),
            }
        }
        if negative {
            self.exponent = -self.exponent;
        }
        while self.len > 1 && self.digit(self.len - 1) == b'0' {
            self.len -= 1;
        }
    }

    fn digit(&self, index: usize) -> u8 {
        if index < self.len { self.digits.get(index).copied().unwrap_or(b'0') } else { b'0' }
    }

    fn append_to(&self, out: &mut Vec<u8>) {
        if self.negative {
            out.push(b'-');
        }
        match self.exponent {
            -3..=-1 => {
                out.extend_from_slice(b"0.");
                out.extend((1..-self.exponent).map(|_| b'0'));
                out.extend((0..self.len).map(|index| self.digit(index)));
            }
            exponent @ 0..=6 => {
                let point = usize::try_from(exponent).map_or(1, |exponent| exponent + 1);
                out.extend((0..point).map(|index| self.digit(index)));
                out.push(b'.');
                out.extend((point..self.len.max(point + 1)).map(|index| self.digit(index)));
            }
            exponent => {
                out.extend_from_slice(&[self.digit(0), b'.']);
                out.extend((1..self.len.max(2)).map(|index| self.digit(index)));
                append_fmt(out, format_args!("E{exponent}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(append: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        append(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[track_caller]
    fn check_float64(value: f64, expect: &str) {
        assert_eq!(written(|out| append_float64(out, value, true)), expect);
    }

    #[track_caller]
    fn check_float32(value: f32, expect: &str) {
        assert_eq!(written(|out| append_float32(out, value, true)), expect);
    }

    #[test]
    fn doubles_are_spelled_as_java_does() {
        check_float64(0.0, "0.0");
        check_float64(-0.0, "-0.0");
        check_float64(1.0, "1.0");
        check_float64(-1.5, "-1.5");
        check_float64(100.0, "100.0");
        check_float64(1_234_567.0, "1234567.0");
        check_float64(9_999_999.0, "9999999.0");
        check_float64(1e7, "1.0E7");
        check_float64(12_345_678.9, "1.23456789E7");
        check_float64(1e10, "1.0E10");
        check_float64(0.001, "0.001");
        check_float64(0.012_5, "0.0125");
        check_float64(0.000_999, "9.99E-4");
        check_float64(1e-5, "1.0E-5");
        check_float64(0.1, "0.1");
        check_float64(f64::MAX, "1.7976931348623157E308");
        check_float64(f64::MIN_POSITIVE, "2.2250738585072014E-308");
        // One digit (5E-324) would do; of the two-digit decimals 4.9 is the nearest.
        check_float64(5e-324, "4.9E-324");
        check_float64(2e-323, "2.0E-323");
        check_float64(2e23, "2.0E23");
        check_float64(f64::NAN, "\"NaN\"");
        check_float64(f64::INFINITY, "\"Infinity\"");
        check_float64(f64::NEG_INFINITY, "\"-Infinity\"");
    }

    #[test]
    fn floats_are_spelled_as_java_does() {
        check_float32(0.1, "0.1");
        check_float32(3.4e38, "3.4E38");
        check_float32(f32::MAX, "3.4028235E38");
        check_float32(1e-45, "1.4E-45");
        check_float32(16_777_216.0, "1.6777216E7");
        check_float32(1.5e-3, "0.0015");
        check_float32(f32::NAN, "\"NaN\"");
    }

    #[test]
    fn integers_have_no_more_digits_than_they_need() {
        for value in [0, 7, -7, 10, 100, -109, i64::MAX, i64::MIN] {
            assert_eq!(written(|out| append_integer(out, value)), value.to_string());
        }
    }

    #[test]
    fn every_double_reads_back() {
        proptest::proptest!(|(bits: u64)| {
            let value = f64::from_bits(bits);
            proptest::prop_assume!(value.is_finite());
            let text = written(|out| append_float64(out, value, true));
            proptest::prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits);
            proptest::prop_assert!(serde_json::from_str::<f64>(&text).is_ok());
        });
    }

    #[test]
    fn strings_escape_what_json_forbids_and_nothing_else() {
        let check = |text: &str, expect: &str| {
            assert_eq!(written(|out| append_string(out, text)), expect);
        };
        check("plain Ü コ 😀 /", "\"plain Ü コ 😀 /\"");
        check("a\"b\\c", r#""a\"b\\c""#);
        check("\u{8}\t\n\u{c}\r", r#""\b\t\n\f\r""#);
        check("\u{0}\u{1f}\u{7f}", "\"\\u0000\\u001F\u{7f}\"");
        check("", "\"\"");
    }

    #[test]
    fn bytes_become_base64_or_one_character_each() {
        let base64 = |bytes: &[u8]| {
            written(|out| {
                out.extend_from_slice(b"x");
                out.extend_from_slice(bytes);
                append_base64(out, 1);
            })
            .replacen('x', "", 1)
        };
        assert_eq!(base64(b""), "\"\"");
        assert_eq!(base64(b"d"), "\"ZA==\"");
        assert_eq!(base64(b"de"), "\"ZGU=\"");
        assert_eq!(base64(b"def"), "\"ZGVm\"");
        assert_eq!(base64(&[0xff, 0xfe, 0xfd, 0xfc]), "\"//79/A==\"");
        assert_eq!(written(|out| append_latin1(out, &[0, b'"', 0xff])), "\"\\u0000\\\"ÿ\"");
    }
}

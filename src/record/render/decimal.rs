//! Exact decimals: as unscaled bytes, as a struct with its own scale, as text, as the nearest double.
//!
//! Up to 38 digits are worked in 128 bits on the stack; longer ones in an arbitrary-precision
//! integer. **Invariant:** only zeros are ever cut from a fraction.

use std::iter::{once, repeat_n};

use num_bigint::BigInt;

use crate::change::{Decimal, DecimalText, ValueError};

use super::{Presence, Primitive, Render, mismatch, unrepresentable};

/// 10^38 is below 2^127.
const MOST_DIGITS: usize = 38;

/// Texts up to this length are put together on the stack before they are read as a double.
const STACK_TEXT: usize = 128;

/// Writes a decimal.
pub(super) fn write(
    value: Decimal<'_>,
    how: &Render,
    out: &mut impl Primitive,
) -> Result<(), ValueError> {
    match value {
        Decimal::Finite(text) => finite(text, how, out),
        Decimal::Scaled { unscaled, scale } => scaled(unscaled, scale, how, out),
        Decimal::NaN => special("NaN", f64::NAN, how, out),
        Decimal::PositiveInfinity => special("Infinity", f64::INFINITY, how, out),
        Decimal::NegativeInfinity => special("-Infinity", f64::NEG_INFINITY, how, out),
    }
}

fn finite(text: DecimalText<'_>, how: &Render, out: &mut impl Primitive) -> Result<(), ValueError> {
    match how {
        Render::Decimal { scale } => Digits::scaled(text, *scale)?.write(out),
        Render::VariableDecimal => {
            let fraction = text.fraction.trim_end_matches('0');
            let scale = i32::try_from(fraction.len())
                .ok()
                .ok_or_else(|| unrepresentable("too many digits after the point"))?;
            let digits = Digits::scaled(DecimalText { fraction, ..text }, scale)?;
            out.begin_struct();
            out.field(0, "scale", Presence::Required);
            out.int32(scale);
            out.field(1, "value", Presence::Required);
            digits.write(out);
            out.end_struct();
        }
        Render::DecimalText { scale } => plain(text, *scale, out)?,
        Render::DecimalDouble => out.float64(double(text)?),
        _ => return Err(mismatch("a decimal")),
    }
    Ok(())
}

/// An integer with a scale: its digits are spelled on the stack, then it is a number like others.
fn scaled(
    unscaled: i64,
    scale: u8,
    how: &Render,
    out: &mut impl Primitive,
) -> Result<(), ValueError> {
    // 19 digits of the number, or as many zeros as its scale, and one before the point.
    let mut digits = [b'0'; 256 + 20];
    let scale = usize::from(scale);
    let mut rest = unscaled.unsigned_abs();
    let mut first = digits.len();
    while rest > 0 || first > digits.len() - scale - 1 {
        first -= 1;
        let digit = (rest % 10) as u8;
        digits[first] = b'0' + digit;
        rest /= 10;
    }
    let (integer, fraction) = digits[first..].split_at(digits.len() - scale - first);
    let spelled = |part| std::str::from_utf8(part).unwrap_or_default();
    let (integer, fraction) = (spelled(integer), spelled(fraction));
    finite(DecimalText { negative: unscaled < 0, integer, fraction }, how, out)
}

fn special(
    word: &str,
    double: f64,
    how: &Render,
    out: &mut impl Primitive,
) -> Result<(), ValueError> {
    match how {
        Render::DecimalText { .. } => out.text(word),
        Render::DecimalDouble => out.float64(double),
        Render::Decimal { .. } | Render::VariableDecimal => {
            return Err(unrepresentable(
                "NaN and Infinity have no place in an exact decimal; \
                 decimal.handling.mode=string or double can carry them",
            ));
        }
        _ => return Err(mismatch("a decimal")),
    }
    Ok(())
}

/// The digits of an unscaled integer: those sent, less zeros cut at the end, plus zeros added.
struct Digits<'a> {
    negative: bool,
    integer: &'a str,
    fraction: &'a str,
    zeros: usize,
}

impl<'a> Digits<'a> {
    /// The value times 10^scale, which must be whole.
    fn scaled(text: DecimalText<'a>, scale: i32) -> Result<Self, ValueError> {
        let DecimalText { negative, integer, fraction } = text;
        let keep = usize::try_from(scale).unwrap_or(0);
        let (fraction, rest) = fraction.split_at_checked(keep).unwrap_or((fraction, ""));
        let cut = if scale < 0 { scale.unsigned_abs() as usize } else { 0 };
        let kept = integer.len().saturating_sub(cut);
        let (integer, low) = integer.split_at_checked(kept).unwrap_or((integer, ""));
        if low.bytes().chain(rest.bytes()).any(|digit| digit != b'0') {
            return Err(unrepresentable("the number has more digits than the published scale"));
        }
        Ok(Self { negative, integer, fraction, zeros: keep - fraction.len() })
    }

    fn each(&self) -> impl Iterator<Item = u8> {
        let zeros = repeat_n(b'0', self.zeros);
        self.integer.bytes().chain(self.fraction.bytes()).chain(zeros).skip_while(|d| *d == b'0')
    }

    /// Big-endian two's complement, as few bytes as hold the sign.
    fn write(&self, out: &mut impl Primitive) {
        let count = self.integer.len() + self.fraction.len() + self.zeros;
        if count <= MOST_DIGITS || self.each().count() <= MOST_DIGITS {
            let magnitude =
                self.each().fold(0_i128, |number, digit| number * 10 + i128::from(digit - b'0'));
            let bytes = if self.negative { -magnitude } else { magnitude }.to_be_bytes();
            let redundant = redundant_signs(&bytes);
            out.octets(bytes.len() - redundant, bytes.into_iter().skip(redundant));
        } else {
            let digits: Vec<u8> = self.each().collect();
            let magnitude = BigInt::parse_bytes(&digits, 10).unwrap_or_default();
            let bytes = if self.negative { -magnitude } else { magnitude }.to_signed_bytes_be();
            out.octets(bytes.len(), bytes.iter().copied());
        }
    }
}

/// How many leading bytes say no more than the sign bit behind them.
fn redundant_signs(bytes: &[u8; 16]) -> usize {
    bytes
        .windows(2)
        .take_while(|pair| matches!(pair, [0x00, 0x00..=0x7f] | [0xff, 0x80..=0xff]))
        .count()
}

/// Plain notation, with exactly `scale` digits after the point if it is given.
fn plain(
    text: DecimalText<'_>,
    scale: Option<u32>,
    out: &mut impl Primitive,
) -> Result<(), ValueError> {
    let keep = scale.map_or(text.fraction.len(), |scale| scale as usize);
    let (fraction, rest) = text.fraction.split_at_checked(keep).unwrap_or((text.fraction, ""));
    if rest.bytes().any(|digit| digit != b'0') {
        return Err(unrepresentable("the number has more digits than the published scale"));
    }
    let sign = usize::from(text.negative);
    let integer = if text.integer.is_empty() { "0" } else { text.integer };
    let point = usize::from(keep > 0);
    out.ascii(
        sign + integer.len() + point + keep,
        repeat_n(b'-', sign)
            .chain(integer.bytes())
            .chain(repeat_n(b'.', point))
            .chain(fraction.bytes())
            .chain(repeat_n(b'0', keep - fraction.len())),
    );
    Ok(())
}

/// The nearest double. Rounding is what the mode means; a number that becomes infinite is refused.
fn double(text: DecimalText<'_>) -> Result<f64, ValueError> {
    let length = text.integer.len() + text.fraction.len() + 3;
    let characters = repeat_n(b'-', usize::from(text.negative))
        .chain(once(b'0'))
        .chain(text.integer.bytes())
        .chain(once(b'.'))
        .chain(text.fraction.bytes());
    let parsed = if length <= STACK_TEXT {
        let mut buffer = [0; STACK_TEXT];
        let mut used = 0;
        for (slot, character) in buffer.iter_mut().zip(characters) {
            *slot = character;
            used += 1;
        }
        parse_double(buffer.get(..used).unwrap_or_default())
    } else {
        parse_double(&characters.collect::<Vec<u8>>())
    };
    parsed
        .filter(|value| value.is_finite())
        .ok_or_else(|| unrepresentable("the number is out of the range of a double"))
}

fn parse_double(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

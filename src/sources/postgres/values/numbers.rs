//! Truth values, integers, floats, decimals, currency: text → scalar.
//!
//! Runs once per cell, so the digit loops are written out. Knows no schema. **Invariant:** a value
//! outside its type's range is an error, never wrapped or rounded.

use super::malformed;
use super::scan::{Scan, digit};
use crate::change::{CellParser, Decimal, DecimalText, Scalar, ValueError};

/// A parser without state: what it is called, the form it expects, and how it reads.
macro_rules! parsers {
    ($($(#[$doc:meta])* $name:ident $kind:literal $form:literal $read:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(in crate::sources::postgres::values) struct $name;

        impl CellParser for $name {
            fn parse<'a>(&'a self, raw: &'a [u8]) -> Result<Scalar<'a>, ValueError> {
                let read: for<'r> fn(&'r [u8]) -> Option<Scalar<'r>> = $read;
                read(raw).ok_or_else(|| malformed($kind, $form))
            }
        }
    )*};
}
pub(super) use parsers;

parsers! {
    /// `boolean`.
    BoolCell "boolean" "t or f" |raw| match raw {
        b"t" => Some(Scalar::Bool(true)),
        b"f" => Some(Scalar::Bool(false)),
        _ => None,
    };
    /// `smallint`.
    Int2Cell "smallint" "an integer of 16 bits" |raw| {
        integer(raw).filter(|&value| i16::try_from(value).is_ok()).map(Scalar::Int)
    };
    /// `integer`.
    Int4Cell "integer" "an integer of 32 bits" |raw| {
        integer(raw).filter(|&value| i32::try_from(value).is_ok()).map(Scalar::Int)
    };
    /// `bigint`.
    Int8Cell "bigint" "an integer of 64 bits" |raw| integer(raw).map(Scalar::Int);
    /// `oid`.
    OidCell "oid" "an unsigned integer of 32 bits" |raw| {
        integer(raw).filter(|&value| u32::try_from(value).is_ok()).map(Scalar::Int)
    };
    /// `real`.
    Float4Cell "real" "a number, NaN, Infinity or -Infinity" |raw| {
        float4(raw).map(Scalar::Float32)
    };
    /// `double precision`.
    Float8Cell "double precision" "a number, NaN, Infinity or -Infinity" |raw| {
        float8(raw).map(Scalar::Float64)
    };
    /// `numeric`.
    NumericCell "numeric" "digits, NaN, Infinity or -Infinity" |raw| numeric(raw).map(Scalar::Decimal);
    /// `money` under `lc_monetary=C`.
    MoneyCell "money" "an amount as lc_monetary=C writes it ($1,234.56)" |raw| {
        money(raw).map(|unscaled| Scalar::Decimal(Decimal::Scaled { unscaled, scale: 2 }))
    };
}

/// An integer of 64 bits with an optional minus sign.
pub(super) fn integer(raw: &[u8]) -> Option<i64> {
    let (negative, digits) = match raw.split_first()? {
        (b'-', digits) => (true, digits),
        _ => (false, raw),
    };
    // 18 digits stay below 2^63, whatever they are: no step can wrap.
    if digits.len() <= 18 {
        let (first, rest) = digits.split_first()?;
        let mut value = digit(*first)?.cast_signed();
        for byte in rest {
            value = value.wrapping_mul(10).wrapping_add(digit(*byte)?.cast_signed());
        }
        return Some(if negative { value.wrapping_neg() } else { value });
    }
    let mut scan = Scan::new(digits);
    let magnitude = scan.number()?;
    scan.end()?;
    signed(negative, magnitude)
}

/// A magnitude with its sign, if 64 bits hold it.
fn signed(negative: bool, magnitude: u64) -> Option<i64> {
    if negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// A float, special values included.
pub(super) fn float4(raw: &[u8]) -> Option<f32> {
    match raw {
        b"NaN" => Some(f32::NAN),
        b"Infinity" => Some(f32::INFINITY),
        b"-Infinity" => Some(f32::NEG_INFINITY),
        _ => float::<f32>(raw).filter(|value| value.is_finite()),
    }
}

/// A double, special values included.
pub(super) fn float8(raw: &[u8]) -> Option<f64> {
    match raw {
        b"NaN" => Some(f64::NAN),
        b"Infinity" => Some(f64::INFINITY),
        b"-Infinity" => Some(f64::NEG_INFINITY),
        _ => float::<f64>(raw).filter(|value| value.is_finite()),
    }
}

/// A number as the server writes floats: `extra_float_digits` above 0 gives the shortest text that
/// reads back to the same value (`float4out`, `float8out`). What else Rust would read is refused.
fn float<F: std::str::FromStr>(raw: &[u8]) -> Option<F> {
    let plain = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'+' | b'-');
    let starts = matches!(raw, [b'0'..=b'9', ..] | [b'-', b'0'..=b'9', ..]);
    if !starts || !raw.iter().all(plain) {
        return None;
    }
    std::str::from_utf8(raw).ok()?.parse().ok()
}

/// A decimal: the server writes no exponent (`numeric_out`).
pub(super) fn numeric(raw: &[u8]) -> Option<Decimal<'_>> {
    match raw {
        b"NaN" => return Some(Decimal::NaN),
        b"Infinity" => return Some(Decimal::PositiveInfinity),
        b"-Infinity" => return Some(Decimal::NegativeInfinity),
        _ => {}
    }
    let mut scan = Scan::new(raw);
    let negative = scan.eat(b'-');
    let integer = digits(&mut scan)?;
    let fraction = if scan.eat(b'.') { digits(&mut scan)? } else { "" };
    scan.end()?;
    Some(Decimal::Finite(DecimalText { negative, integer, fraction }))
}

/// At least one digit.
fn digits<'a>(scan: &mut Scan<'a>) -> Option<&'a str> {
    let digits = scan.take_while(|byte| byte.is_ascii_digit());
    if digits.is_empty() { None } else { std::str::from_utf8(digits).ok() }
}

/// Cents. The C locale has neither separators nor signs of its own, and the server fills in `$`,
/// `,`, `.`, two decimals and a leading minus (`cash_out`, `utils/adt/cash.c`). Its default for
/// a locale that puts negative amounts in parentheses is read as well.
fn money(raw: &[u8]) -> Option<i64> {
    let mut scan = Scan::new(raw);
    let parenthesis = scan.eat(b'(');
    let negative = scan.eat(b'-') || parenthesis;
    scan.eat(b'$');
    let mut magnitude = digit(scan.next()?)?;
    let mut fraction_digits: Option<u8> = None;
    while let Some(byte) = scan.peek() {
        match (byte, fraction_digits) {
            (b',', None) => {}
            (b'.', None) => fraction_digits = Some(0),
            (b'0'..=b'9', _) => {
                magnitude = magnitude.checked_mul(10)?.checked_add(digit(byte)?)?;
                fraction_digits = fraction_digits.map(|count| count.saturating_add(1));
            }
            _ => break,
        }
        scan.next();
    }
    if parenthesis {
        scan.expect(b')')?;
    }
    scan.end()?;
    if fraction_digits != Some(2) {
        return None;
    }
    signed(negative, magnitude)
}

//! Values that are compared: read from cells, kept of constants, put in PostgreSQL's order.
//!
//! One form for each family of types whose comparison is the same. Knows no predicate.
//! **Invariants:** reading and comparing allocate nothing; two values of one family have exactly
//! the order that the server's operators give them.
//!
//! Where each order is from (server sources): `float8_cmp_internal` (float.h: NaN equals itself and
//! is above everything), `cmp_numerics` (numeric.c: NaN above infinity; the scale does not
//! count), `timetz_cmp_internal` (date.c: the instant, then the zone), `interval_cmp_value`
//! (timestamp.c: a month is 30 days, a day 24 hours), `uuid_internal_cmp` and `bytea_cmp` (bytes).

use std::cmp::Ordering;
use std::sync::Arc;

use crate::change::{CellParser, Decimal, DecimalText, Instant, Interval, Scalar, ValueError};

const MICROS_PER_DAY: i128 = 86_400_000_000;

/// A value of a row or a constant.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    /// Integers and truth values.
    Int(i64),
    /// Both precisions.
    Float(f64),
    /// Exact numbers.
    Decimal(Decimal<'a>),
    /// Microseconds of a moment, a time of day or a span.
    Micros(i128),
    /// Microseconds of a time of day in UTC, and seconds west of it.
    Zoned(i128, i32),
    /// Text, and what is compared as such.
    Bytes(&'a [u8]),
}

impl Value<'_> {
    /// The order; `None` for values of different families, which are never compared.
    pub(super) fn compare(self, other: Value<'_>) -> Option<Ordering> {
        Some(match (self, other) {
            (Self::Int(one), Value::Int(other)) => one.cmp(&other),
            (Self::Float(one), Value::Float(other)) => compare_floats(one, other),
            (Self::Decimal(one), Value::Decimal(other)) => compare_decimals(one, other),
            (Self::Micros(one), Value::Micros(other)) => one.cmp(&other),
            (Self::Zoned(one, zone), Value::Zoned(other, other_zone)) => {
                one.cmp(&other).then(zone.cmp(&other_zone))
            }
            (Self::Bytes(one), Value::Bytes(other)) => one.cmp(other),
            _ => return None,
        })
    }
}

fn compare_floats(one: f64, other: f64) -> Ordering {
    match (one.is_nan(), other.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        // Zeros of both signs are equal.
        (false, false) => one.partial_cmp(&other).unwrap_or(Ordering::Equal),
    }
}

fn compare_decimals(one: Decimal<'_>, other: Decimal<'_>) -> Ordering {
    const fn rank(decimal: Decimal<'_>) -> u8 {
        match decimal {
            Decimal::NegativeInfinity => 0,
            Decimal::Finite(_) | Decimal::Scaled { .. } => 1,
            Decimal::PositiveInfinity => 2,
            Decimal::NaN => 3,
        }
    }
    match (one, other) {
        (Decimal::Finite(one), Decimal::Finite(other)) => compare_digits(one, other),
        _ => rank(one).cmp(&rank(other)),
    }
}

fn compare_digits(one: DecimalText<'_>, other: DecimalText<'_>) -> Ordering {
    let (a, b) = (Magnitude::of(one), Magnitude::of(other));
    match (one.negative && !a.is_zero(), other.negative && !b.is_zero()) {
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (false, false) => a.compare(b),
        (true, true) => b.compare(a),
    }
}

#[derive(Clone, Copy)]
struct Magnitude<'a> {
    integer: &'a str,
    fraction: &'a str,
}

impl<'a> Magnitude<'a> {
    fn of(text: DecimalText<'a>) -> Self {
        Self {
            integer: text.integer.trim_start_matches('0'),
            fraction: text.fraction.trim_end_matches('0'),
        }
    }

    const fn is_zero(self) -> bool {
        self.integer.is_empty() && self.fraction.is_empty()
    }

    fn compare(self, other: Self) -> Ordering {
        let digits = self.integer.len().cmp(&other.integer.len());
        digits
            .then_with(|| self.integer.cmp(other.integer))
            .then_with(|| self.fraction.cmp(other.fraction))
    }
}

/// A value of the predicate's text.
#[derive(Clone, Debug)]
pub(super) enum Constant {
    Int(i64),
    Float(f64),
    Decimal(DecimalConstant),
    Micros(i128),
    Zoned(i128, i32),
    Bytes(Box<[u8]>),
}

/// A number of the predicate's text.
#[derive(Clone, Debug)]
pub(super) enum DecimalConstant {
    Finite { negative: bool, integer: Box<str>, fraction: Box<str> },
    NaN,
    PositiveInfinity,
    NegativeInfinity,
}

impl Constant {
    /// As it is compared.
    pub(super) fn value(&self) -> Value<'_> {
        match self {
            Self::Int(value) => Value::Int(*value),
            Self::Float(value) => Value::Float(*value),
            Self::Decimal(decimal) => Value::Decimal(match decimal {
                DecimalConstant::Finite { negative, integer, fraction } => {
                    Decimal::Finite(DecimalText { negative: *negative, integer, fraction })
                }
                DecimalConstant::NaN => Decimal::NaN,
                DecimalConstant::PositiveInfinity => Decimal::PositiveInfinity,
                DecimalConstant::NegativeInfinity => Decimal::NegativeInfinity,
            }),
            Self::Micros(value) => Value::Micros(*value),
            Self::Zoned(micros, west) => Value::Zoned(*micros, *west),
            Self::Bytes(bytes) => Value::Bytes(bytes),
        }
    }
}

/// How the cells of a column become values of the family in which they are compared.
#[derive(Clone, Debug)]
pub(super) enum Reader {
    /// By the type's own parser.
    Parsed(Arc<dyn CellParser>),
    /// Integers as floats.
    IntAsFloat(Arc<dyn CellParser>),
    /// Integers as exact numbers: their text is one.
    Digits,
    /// The text as it is.
    Raw,
    /// The text without the blanks that pad it.
    Trimmed,
}

impl Reader {
    /// The value of a cell.
    pub(super) fn read<'a>(&'a self, raw: &'a [u8]) -> Result<Value<'a>, ValueError> {
        match self {
            Self::Parsed(parser) => value_of(parser.parse(raw)?),
            Self::IntAsFloat(parser) => match value_of(parser.parse(raw)?)? {
                // As the server does: to the nearest double.
                Value::Int(value) => Ok(Value::Float(value as f64)),
                _ => Err(unexpected()),
            },
            Self::Digits => {
                let text = std::str::from_utf8(raw)
                    .map_err(|error| ValueError::Encoding { at: error.valid_up_to() })?;
                let (negative, integer) = match text.strip_prefix('-') {
                    Some(digits) => (true, digits),
                    None => (false, text),
                };
                Ok(Value::Decimal(Decimal::Finite(DecimalText { negative, integer, fraction: "" })))
            }
            Self::Raw => Ok(Value::Bytes(raw)),
            Self::Trimmed => Ok(Value::Bytes(trim_padding(raw))),
        }
    }
}

/// A `char(n)` without the blanks that pad it (`bcTruelen`, varchar.c).
pub(super) fn trim_padding(raw: &[u8]) -> &[u8] {
    let end = raw.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    raw.get(..end).unwrap_or(raw)
}

/// The value of a scalar in its type's own family.
pub(super) fn value_of(scalar: Scalar<'_>) -> Result<Value<'_>, ValueError> {
    Ok(match scalar {
        Scalar::Bool(value) => Value::Int(i64::from(value)),
        Scalar::Int(value) => Value::Int(value),
        Scalar::Float32(value) => Value::Float(f64::from(value)),
        Scalar::Float64(value) => Value::Float(value),
        Scalar::Decimal(value) => Value::Decimal(value),
        Scalar::Date(at) => Value::Micros(micros(at, MICROS_PER_DAY)),
        Scalar::Timestamp(at) | Scalar::ZonedTimestamp(at) => Value::Micros(micros(at, 1)),
        Scalar::Time(value) => Value::Micros(value.into()),
        Scalar::ZonedTime { micros, offset_seconds } => {
            let utc = i128::from(micros) - i128::from(offset_seconds) * 1_000_000;
            Value::Zoned(utc, -offset_seconds)
        }
        Scalar::Interval(Interval::NegativeInfinity) => Value::Micros(i128::MIN),
        Scalar::Interval(Interval::PositiveInfinity) => Value::Micros(i128::MAX),
        Scalar::Interval(Interval::Finite(parts)) => {
            let days = i128::from(parts.months) * 30 + i128::from(parts.days);
            Value::Micros(days * MICROS_PER_DAY + i128::from(parts.micros))
        }
        Scalar::Text(text) => Value::Bytes(text.as_bytes()),
        _ => return Err(unexpected()),
    })
}

const fn micros(at: Instant, unit: i128) -> i128 {
    match at {
        Instant::NegativeInfinity => i128::MIN,
        Instant::At(count) => count.saturating_mul(unit),
        Instant::PositiveInfinity => i128::MAX,
    }
}

/// Only if the program is wrong: a type was taken for one that it is not.
fn unexpected() -> ValueError {
    ValueError::Unrepresentable("a predicate compares a value of another type".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> DecimalText<'_> {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (integer, fraction) = text.split_once('.').unwrap_or((text, ""));
        DecimalText { negative, integer, fraction }
    }

    #[track_caller]
    fn check(one: &str, other: &str, expect: Ordering) {
        assert_eq!(compare_digits(decimal(one), decimal(other)), expect);
        assert_eq!(compare_digits(decimal(other), decimal(one)), expect.reverse());
    }

    #[test]
    fn the_scale_of_a_number_does_not_count() {
        check("1.10", "1.1", Ordering::Equal);
        check("-0.00", "0", Ordering::Equal);
        check("007", "7.0", Ordering::Equal);
        check("10", "9.999", Ordering::Greater);
        check("-10", "-9.999", Ordering::Less);
        check("0.1", "0.09", Ordering::Greater);
        check("-1", "0.00000001", Ordering::Less);
        check("", ".5", Ordering::Less);
    }

    #[test]
    fn nan_is_above_everything_and_equal_to_itself() {
        assert_eq!(compare_floats(f64::NAN, f64::INFINITY), Ordering::Greater);
        assert_eq!(compare_floats(f64::NAN, f64::NAN), Ordering::Equal);
        assert_eq!(compare_floats(-0.0, 0.0), Ordering::Equal);
        let (nan, infinity) = (Decimal::NaN, Decimal::PositiveInfinity);
        assert_eq!(compare_decimals(nan, infinity), Ordering::Greater);
        assert_eq!(compare_decimals(nan, nan), Ordering::Equal);
        let number = Decimal::Finite(decimal("9e"));
        assert_eq!(compare_decimals(infinity, number), Ordering::Greater);
        assert_eq!(compare_decimals(Decimal::NegativeInfinity, number), Ordering::Less);
    }

    #[test]
    fn padding_is_not_part_of_a_char() {
        assert_eq!(trim_padding(b"a b  "), b"a b");
        assert_eq!(trim_padding(b"   "), b"");
        assert_eq!(trim_padding(b"a\t "), b"a\t");
    }
}

//! Literals of a predicate's text → constants, as the server's input functions read them.
//!
//! Accepts the forms that mean the same in every session, and refuses the rest: words whose value
//! depends on when or where they are read (`now`, `today`), moments without a zone where one is
//! needed, notations that are the server's alone. Knows no rows. **Invariant:** a literal that is
//! accepted has the value that the server gives it, rounding included.

use super::sql_type::SqlType;
use super::value::{Constant, DecimalConstant, Value, trim_padding, value_of};
use crate::change::Decimal;
use crate::sources::postgres::values::{TypeCatalogue, resolve};

const DATE: u32 = 1082;
const UUID: u32 = 2950;
const INTERVAL: u32 = 1186;

const MICROS_PER_SECOND: i128 = 1_000_000;
const MICROS_PER_DAY: i128 = 86_400 * MICROS_PER_SECOND;
/// What the server's counts, which begin in 2000, are behind ours.
const DAYS_TO_2000: i128 = 10_957;
/// `MIN_TIMESTAMP` and `END_TIMESTAMP` of datatype/timestamp.h.
const TIMESTAMPS: (i128, i128) = (-211_813_488_000_000_000, 9_223_371_331_200_000_000);
/// The days of `IS_VALID_DATE`.
const DATES: (i128, i128) = (-2_451_545, 2_145_031_949);
/// Numbers with more digits, or a larger exponent, are refused.
const LONGEST_NUMBER: usize = 1_000;

/// Reads a quoted literal as a value of a type.
pub(super) fn read(text: &str, of: &SqlType) -> Result<Constant, String> {
    let word = text.trim_matches(|c: char| c.is_ascii_whitespace());
    match of {
        SqlType::Bool => boolean(word).map(|value| Constant::Int(value.into())),
        SqlType::Int2 => integer(word, i16::MIN.into(), i16::MAX.into()),
        SqlType::Int4 => integer(word, i32::MIN.into(), i32::MAX.into()),
        SqlType::Int8 => integer(word, i64::MIN, i64::MAX),
        SqlType::Numeric => decimal(word),
        SqlType::Float4 => float(word, Precision::Single),
        SqlType::Float8 => float(word, Precision::Double),
        SqlType::Text | SqlType::Varchar => Ok(Constant::Bytes(text.as_bytes().into())),
        SqlType::Char => Ok(Constant::Bytes(trim_padding(text.as_bytes()).into())),
        SqlType::Date => date(word),
        SqlType::Timestamp => timestamp(word, Zone::Refused),
        SqlType::TimestampTz => timestamp(word, Zone::Needed),
        SqlType::Time => time(word, Zone::Refused),
        SqlType::TimeTz => time(word, Zone::Needed),
        SqlType::Interval => standard(INTERVAL, word).ok_or_else(|| {
            "an interval is understood as the server prints it, \
             '1 year 2 mons 3 days 04:05:06'"
                .to_owned()
        }),
        SqlType::Uuid => uuid(word),
        SqlType::Bytea => bytea(text),
        SqlType::Enum { name, labels, .. } => {
            if labels.iter().any(|label| label == text) {
                Ok(Constant::Bytes(text.as_bytes().into()))
            } else {
                Err(format!("the type {name} has no label '{text}'"))
            }
        }
        SqlType::Other { name, .. } => Err(format!("values of the type {name} are not compared")),
    }
    .map_err(|why| {
        if why.is_empty() { format!("'{text}' is no value of the type {of}") } else { why }
    })
}

/// Reads a number that is not quoted: its type, and its value.
pub(super) fn number(text: &str) -> Result<(SqlType, Constant), String> {
    let is_whole = text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    if is_whole && let Ok(value) = text.parse::<i64>() {
        let of = if i32::try_from(value).is_ok() { SqlType::Int4 } else { SqlType::Int8 };
        return Ok((of, Constant::Int(value)));
    }
    decimal(text).map(|value| (SqlType::Numeric, value)).map_err(|why| {
        if why.is_empty() { format!("{text} is not understood as a number") } else { why }
    })
}

/// Casts a number to a type that holds more, as an implicit cast does.
pub(super) fn widen(value: &Constant, from: &SqlType, to: &SqlType) -> Result<Constant, String> {
    let (Some(low), Some(high)) = (from.number_rank(), to.number_rank()) else {
        return Err(format!("{from} cannot be cast to {to} here"));
    };
    if low > high {
        return Err(format!("{from} would have to be rounded to {to}"));
    }
    match (value, to) {
        (Constant::Int(_), SqlType::Int2 | SqlType::Int4 | SqlType::Int8)
        | (Constant::Decimal(_), SqlType::Numeric)
        | (Constant::Float(_), SqlType::Float4 | SqlType::Float8) => Ok(value.clone()),
        (Constant::Int(value), SqlType::Numeric) => decimal(&value.to_string()),
        (Constant::Int(value), SqlType::Float4) => Ok(Constant::Float(f64::from(*value as f32))),
        (Constant::Int(value), SqlType::Float8) => Ok(Constant::Float(*value as f64)),
        (Constant::Decimal(decimal), SqlType::Float4) => {
            float(&decimal_text(decimal), Precision::Single)
        }
        (Constant::Decimal(decimal), SqlType::Float8) => {
            float(&decimal_text(decimal), Precision::Double)
        }
        _ => Err(format!("{from} cannot be cast to {to} here")),
    }
    .map_err(|why| if why.is_empty() { format!("a number is out of range for {to}") } else { why })
}

fn decimal_text(decimal: &DecimalConstant) -> String {
    match decimal {
        DecimalConstant::Finite { negative, integer, fraction } => {
            let sign = if *negative { "-" } else { "" };
            format!("{sign}0{integer}.{fraction}0")
        }
        DecimalConstant::NaN => "NaN".to_owned(),
        DecimalConstant::PositiveInfinity => "Infinity".to_owned(),
        DecimalConstant::NegativeInfinity => "-Infinity".to_owned(),
    }
}

/// `parse_bool_with_len` (bool.c): any beginning of the words that tells them apart.
fn boolean(text: &str) -> Result<bool, String> {
    let word = text.to_ascii_lowercase();
    let begins = |whole: &str, least: usize| word.len() >= least && whole.starts_with(&word);
    if begins("true", 1) || begins("yes", 1) || word == "on" || word == "1" {
        Ok(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || word == "0" {
        Ok(false)
    } else {
        Err(String::new())
    }
}

fn integer(text: &str, least: i64, most: i64) -> Result<Constant, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(String::new());
    }
    let value = text.parse().ok().filter(|value| (least..=most).contains(value));
    value.map(Constant::Int).ok_or_else(String::new)
}

/// One of the words for what is no number.
fn special(text: &str) -> Option<(bool, &'static str)> {
    let lower = text.to_ascii_lowercase();
    let (negative, word) = match lower.strip_prefix('-') {
        Some(word) => (true, word),
        None => (false, lower.strip_prefix('+').unwrap_or(&lower)),
    };
    match word {
        "nan" if lower == "nan" => Some((false, "nan")),
        "inf" | "infinity" => Some((negative, "infinity")),
        _ => None,
    }
}

fn decimal(text: &str) -> Result<Constant, String> {
    let constant = |decimal| Ok(Constant::Decimal(decimal));
    match special(text) {
        Some((_, "nan")) => return constant(DecimalConstant::NaN),
        Some((true, _)) => return constant(DecimalConstant::NegativeInfinity),
        Some((false, _)) => return constant(DecimalConstant::PositiveInfinity),
        None => {}
    }
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            (mantissa, exponent.parse::<i32>().ok().ok_or_else(String::new)?)
        }
        None => (rest, 0),
    };
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{integer}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(String::new());
    }
    let exponent_size = usize::try_from(exponent.unsigned_abs()).unwrap_or(usize::MAX);
    if digits.len() > LONGEST_NUMBER || exponent_size > LONGEST_NUMBER {
        return Err(format!("a number has more than {LONGEST_NUMBER} digits"));
    }
    // The place of the point among the digits.
    let point = i32::try_from(integer.len()).unwrap_or_default() + exponent;
    let (integer, fraction) = if let Ok(point) = usize::try_from(point) {
        let padded = format!("{digits:0<point$}");
        let (integer, fraction) = padded.split_at_checked(point).unwrap_or((&padded, ""));
        (integer.to_owned(), fraction.to_owned())
    } else {
        let zeros = usize::try_from(point.unsigned_abs()).unwrap_or_default();
        (String::new(), format!("{}{digits}", "0".repeat(zeros)))
    };
    constant(DecimalConstant::Finite {
        negative,
        integer: integer.into(),
        fraction: fraction.into(),
    })
}

#[derive(Clone, Copy)]
enum Precision {
    Single,
    Double,
}

/// `float8in_internal`: to the nearest; what becomes infinite or zero on the way is refused.
fn float(text: &str, precision: Precision) -> Result<Constant, String> {
    match special(text) {
        Some((_, "nan")) => return Ok(Constant::Float(f64::NAN)),
        Some((true, _)) => return Ok(Constant::Float(f64::NEG_INFINITY)),
        Some((false, _)) => return Ok(Constant::Float(f64::INFINITY)),
        None => {}
    }
    let is_plain = |byte: u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    if !text.bytes().all(is_plain) {
        return Err(String::new());
    }
    let value = match precision {
        Precision::Single => text.parse::<f32>().map(f64::from),
        Precision::Double => text.parse::<f64>(),
    };
    let value = value.ok().ok_or_else(String::new)?;
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = mantissa.bytes().all(|byte| !byte.is_ascii_digit() || byte == b'0');
    if value.is_infinite() || (value == 0.0 && !is_zero) {
        return Err("a number is out of range".to_owned());
    }
    Ok(Constant::Float(value))
}

/// A text that is as the server would print it, read by the parser of cells.
fn standard(oid: u32, text: &str) -> Option<Constant> {
    let parser = resolve(oid, -1, None, &TypeCatalogue::new(), None).parser;
    let value = parser.parse(text.as_bytes()).ok().and_then(|scalar| value_of(scalar).ok())?;
    Some(match value {
        Value::Int(value) => Constant::Int(value),
        Value::Float(value) => Constant::Float(value),
        Value::Micros(value) => Constant::Micros(value),
        Value::Zoned(micros, west) => Constant::Zoned(micros, west),
        Value::Bytes(bytes) => Constant::Bytes(bytes.into()),
        Value::Decimal(Decimal::NaN) => Constant::Decimal(DecimalConstant::NaN),
        Value::Decimal(_) => return None,
    })
}

fn uuid(text: &str) -> Result<Constant, String> {
    let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
    // Hyphens are allowed behind every fourth digit (`string_to_uuid`, uuid.c).
    let mut digits = String::new();
    for c in inner.chars() {
        match c {
            '-' if !digits.is_empty() && digits.len().is_multiple_of(4) => {}
            _ if c.is_ascii_hexdigit() => digits.push(c.to_ascii_lowercase()),
            _ => return Err(String::new()),
        }
    }
    let is_regular = !inner.contains("--") && !inner.ends_with('-');
    let mut canonical = String::new();
    for (index, c) in digits.chars().enumerate() {
        if matches!(index, 8 | 12 | 16 | 20) {
            canonical.push('-');
        }
        canonical.push(c);
    }
    if digits.len() != 32 || !is_regular {
        return Err(String::new());
    }
    standard(UUID, &canonical).ok_or_else(String::new)
}

/// As cells have it: `\x` and two digits for each byte.
fn bytea(text: &str) -> Result<Constant, String> {
    if let Some(digits) = text.strip_prefix(r"\x") {
        if !digits.len().is_multiple_of(2) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(String::new());
        }
        return Ok(Constant::Bytes(text.to_ascii_lowercase().into_bytes().into()));
    }
    if !text.is_ascii() || text.contains('\\') {
        return Err(r"bytes are understood in the form '\x00ff'".to_owned());
    }
    let mut hex = String::from(r"\x");
    text.bytes().for_each(|byte| hex.push_str(&format!("{byte:02x}")));
    Ok(Constant::Bytes(hex.into_bytes().into()))
}

/// What a literal's zone is to the type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Zone {
    Needed,
    Refused,
}

const WORDS: &str = "words like 'now' and 'today' mean another value each time";
const NO_ZONE: &str = "without a zone its value depends on the session; write it with one \
                       ('… +00')";
const A_ZONE: &str = "the server would ignore the zone; leave it out";
const MOMENT: &str = "a moment is understood as 'YYYY-MM-DD HH:MM:SS', perhaps with a fraction, a \
                      zone (+HH:MM) and BC";

fn infinity(text: &str) -> Option<Constant> {
    match special(text) {
        Some((negative, "infinity")) if text.to_ascii_lowercase().ends_with("infinity") => {
            Some(Constant::Micros(if negative { i128::MIN } else { i128::MAX }))
        }
        _ => None,
    }
}

fn date(text: &str) -> Result<Constant, String> {
    if let Some(constant) = infinity(text).filter(|_| !text.starts_with('+')) {
        return Ok(constant);
    }
    let moment = Moment::parse(text)?;
    if moment.offset.is_some() {
        return Err(A_ZONE.to_owned());
    }
    // A time of day is read, and dropped.
    moment.time.unwrap_or(Ok(0))?;
    let since_2000 = moment.days - DAYS_TO_2000;
    if !(DATES.0..DATES.1).contains(&since_2000) {
        return Err(String::new());
    }
    Ok(Constant::Micros(moment.days * MICROS_PER_DAY))
}

fn timestamp(text: &str, zone: Zone) -> Result<Constant, String> {
    if let Some(constant) = infinity(text).filter(|_| !text.starts_with('+')) {
        return Ok(constant);
    }
    let moment = Moment::parse(text)?;
    let offset = match (zone, moment.offset) {
        (Zone::Needed, Some(offset)) => offset,
        (Zone::Needed, None) => return Err(NO_ZONE.to_owned()),
        (Zone::Refused, Some(_)) => return Err(A_ZONE.to_owned()),
        (Zone::Refused, None) => 0,
    };
    let local = moment.days * MICROS_PER_DAY + moment.time.unwrap_or(Ok(0))?;
    let micros = local - i128::from(offset) * MICROS_PER_SECOND;
    let since_2000 = micros - DAYS_TO_2000 * MICROS_PER_DAY;
    if !(TIMESTAMPS.0..TIMESTAMPS.1).contains(&since_2000) {
        return Err(String::new());
    }
    Ok(Constant::Micros(micros))
}

fn time(text: &str, zone: Zone) -> Result<Constant, String> {
    let (clock, offset) = split_offset(text)?;
    let micros = time_of_day(clock)?;
    match (zone, offset) {
        (Zone::Refused, None) => Ok(Constant::Micros(micros)),
        (Zone::Refused, Some(_)) => Err(A_ZONE.to_owned()),
        (Zone::Needed, None) => Err(NO_ZONE.to_owned()),
        (Zone::Needed, Some(offset)) => {
            Ok(Constant::Zoned(micros - i128::from(offset) * MICROS_PER_SECOND, -offset))
        }
    }
}

/// A date, perhaps with more.
struct Moment {
    days: i128,
    time: Option<Result<i128, String>>,
    offset: Option<i32>,
}

impl Moment {
    fn parse(text: &str) -> Result<Self, String> {
        let malformed = || {
            let word = text.to_ascii_lowercase();
            // those of datetktbl (datetime.c) that stand for a time of when they are read
            let mut varies = ["now", "today", "tomorrow", "yesterday"].iter();
            if varies.any(|one| word.starts_with(one)) {
                WORDS.to_owned()
            } else {
                MOMENT.to_owned()
            }
        };
        let (text, era) = match text.strip_suffix(" BC").or_else(|| text.strip_suffix(" bc")) {
            Some(rest) => (rest, " BC"),
            None => (text, ""),
        };
        let (day, rest) = match text.split_once([' ', 'T']) {
            Some((day, rest)) => (day, Some(rest.trim_start_matches(' '))),
            None => (text, None),
        };
        let year = day.split('-').next().unwrap_or_default();
        if year.len() < 4 {
            return Err(malformed());
        }
        let Some(Constant::Micros(at)) = standard(DATE, &format!("{day}{era}")) else {
            return Err(malformed());
        };
        let days = at.div_euclid(MICROS_PER_DAY);
        let Some(rest) = rest else { return Ok(Self { days, time: None, offset: None }) };
        let (clock, offset) = split_offset(rest)?;
        Ok(Self { days, time: Some(time_of_day(clock)), offset })
    }
}

/// A time of day and its offset in seconds east of UTC.
fn split_offset(text: &str) -> Result<(&str, Option<i32>), String> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Ok((clock.trim_end_matches(' '), Some(0)));
    }
    let Some(at) = text.find(['+', '-']) else { return Ok((text, None)) };
    let (clock, zone) = text.split_at_checked(at).unwrap_or((text, ""));
    let (sign, digits) = match zone.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, zone.trim_start_matches('+')),
    };
    let parts: Vec<Option<i32>> = digits.split(':').map(two_digits).collect();
    let seconds = match *parts.as_slice() {
        [Some(hours)] => Some(hours * 3600),
        [Some(hours), Some(minutes)] if minutes < 60 => Some(hours * 3600 + minutes * 60),
        _ => None,
    };
    // MAX_TZDISP_HOUR of datatype/timestamp.h
    let seconds = seconds.filter(|seconds| *seconds < 16 * 3600).ok_or(MOMENT)?;
    Ok((clock.trim_end_matches(' '), Some(sign * seconds)))
}

fn two_digits(text: &str) -> Option<i32> {
    let is_plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// Microseconds since midnight of `HH:MM`, `HH:MM:SS` or `HH:MM:SS.…`.
fn time_of_day(text: &str) -> Result<i128, String> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (text, None),
    };
    let parts: Vec<Option<i32>> = clock.split(':').map(two_digits).collect();
    let (hours, minutes, seconds) = match (parts.as_slice(), fraction) {
        ([Some(hours), Some(minutes)], None) => (*hours, *minutes, 0),
        ([Some(hours), Some(minutes), Some(seconds)], _) => (*hours, *minutes, *seconds),
        _ => return Err(MOMENT.to_owned()),
    };
    let micros = fraction.map_or(Ok(0), round)?;
    if minutes > 59 || seconds > 59 || hours > 24 {
        return Err(String::new());
    }
    let total = i128::from(hours * 3600 + minutes * 60 + seconds) * MICROS_PER_SECOND + micros;
    if hours == 24 && total > MICROS_PER_DAY {
        return Err(String::new());
    }
    Ok(total)
}

/// Millionths of a second, by way of a C double (`ParseFractionalSecond`, datetime.c).
#[expect(clippy::cast_possible_truncation, reason = "at most a million")]
fn round(digits: &str) -> Result<i128, String> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(MOMENT.to_owned());
    }
    let fraction: f64 = format!("0.{digits}").parse().ok().ok_or(MOMENT)?;
    Ok((fraction * 1e6).round_ties_even() as i128)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The constant as `{:?}` shows it, or why there is none.
    #[track_caller]
    fn check(text: &str, of: &SqlType, expect: &str) {
        let shown = match read(text, of) {
            Ok(constant) => format!("{constant:?}"),
            Err(why) => why,
        };
        assert!(shown.contains(expect), "{of} '{text}': {shown}");
    }

    #[test]
    fn fractions_are_rounded_through_a_double() {
        check("00:00:00.0001255", &SqlType::Time, "Micros(125)");
        check("00:00:00.0001265", &SqlType::Time, "Micros(127)");
        check("23:59:59.9999999", &SqlType::Time, "Micros(86400000000)");
        check("24:00:00.000001", &SqlType::Time, "is no value");
    }

    #[test]
    fn a_time_is_dropped_from_a_date() {
        check("1970-01-02 23:59:59", &SqlType::Date, "Micros(86400000000)");
        check("1970-01-02 25:00:00", &SqlType::Date, "is no value");
        check("0001-01-01 BC", &SqlType::Date, "Micros(-62167219200000000)");
        check("2024-02-30", &SqlType::Date, "a moment is understood");
        check("-infinity", &SqlType::Date, "Micros(-170141183460469231731687303715884105728)");
    }

    #[test]
    fn what_depends_on_a_session_is_refused() {
        check("now", &SqlType::Timestamp, "another value each time");
        check("2024-01-01 00:00:00", &SqlType::TimestampTz, "depends on the session");
        check("2024-01-01 00:00:00+01", &SqlType::Timestamp, "ignore the zone");
        check("1970-01-01T01:00:00+01", &SqlType::TimestampTz, "Micros(0)");
        check("1970-01-01 00:00Z", &SqlType::TimestampTz, "Micros(0)");
        check("12:00", &SqlType::TimeTz, "depends on the session");
        check("12:00+01", &SqlType::TimeTz, "Zoned(39600000000, -3600)");
    }

    #[test]
    fn numbers_have_their_types_range() {
        check("32768", &SqlType::Int2, "is no value");
        check(" -32768 ", &SqlType::Int2, "Int(-32768)");
        check("1_000", &SqlType::Int4, "is no value");
        check("1e400", &SqlType::Float8, "out of range");
        check("1e-400", &SqlType::Float8, "out of range");
        check("0e-400", &SqlType::Float8, "Float(0.0)");
        check("0.1", &SqlType::Float4, "Float(0.10000000149011612)");
        check("1.5e2", &SqlType::Numeric, r#"integer: "150", fraction: """#);
        check("1.5e-2", &SqlType::Numeric, r#"integer: "", fraction: "015""#);
        check("-.5", &SqlType::Numeric, r#"negative: true, integer: "", fraction: "5""#);
        check("nan", &SqlType::Numeric, "NaN");
        assert!(matches!(number("2147483648"), Ok((SqlType::Int8, _))));
        assert!(matches!(number("9223372036854775808"), Ok((SqlType::Numeric, _))));
    }

    #[test]
    fn other_types() {
        check("yes", &SqlType::Bool, "Int(1)");
        check("of", &SqlType::Bool, "Int(0)");
        check("o", &SqlType::Bool, "is no value");
        check("1 year 2 mons", &SqlType::Interval, "Micros(36288000000000)");
        check("1 hour", &SqlType::Interval, "as the server prints it");
        check(r"\xFF", &SqlType::Bytea, "[92, 120, 102, 102]");
        check(
            "{A0EEBC99-9C0B4EF8-BB6D6BB9-BD380A11}",
            &SqlType::Uuid,
            "Bytes([97, 48, 101, 101, 98, 99, 57, 57, 45",
        );
        check("a  ", &SqlType::Char, "Bytes([97])");
    }
}

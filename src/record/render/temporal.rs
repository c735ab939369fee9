//! Dates, times, timestamps and intervals: as numbers, or as ISO 8601 text.
//!
//! The calendar is proleptic Gregorian with a year 0, as ISO 8601 and Java's `java.time` have it;
//! neither the clock nor any time zone of the machine is consulted. **Invariant:** text is built in
//! a buffer on the stack.

use crate::change::{Instant, Interval, IntervalParts, ValueError};

use super::{Primitive, Render, mismatch, unrepresentable};

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// What Debezium publishes for a timestamp's infinities, in milliseconds: the markers of the JDBC
/// driver that it reads through. Existing consumers know them.
const POSITIVE_INFINITY_MILLIS: i64 = 9_223_372_036_825_200;
const NEGATIVE_INFINITY_MILLIS: i64 = -9_223_372_036_832_400;

/// Debezium's factor: 365.25 / 12 days, which is a whole number of microseconds.
const MICROS_PER_MONTH: i128 = 2_629_800_000_000;

/// Days beyond which no source has dates; keeps years within eight digits.
const LAST_DAY: i64 = 3_650_000_000;

/// Writes calendar days.
pub(super) fn date(
    value: Instant,
    how: &Render,
    out: &mut impl Primitive,
) -> Result<(), ValueError> {
    match (how, value) {
        (Render::Days, Instant::NegativeInfinity) => out.int32(i32::MIN),
        (Render::Days, Instant::PositiveInfinity) => out.int32(i32::MAX),
        (Render::Days, Instant::At(days)) => match i32::try_from(days) {
            Ok(days) if days != i32::MIN && days != i32::MAX => out.int32(days),
            _ => return Err(unrepresentable("the date is out of the range of 32-bit days")),
        },
        (Render::IsoDate, Instant::At(days)) => {
            let mut line = Line::new();
            line.date(days)?;
            line.push(b'Z');
            line.send(out);
        }
        (Render::IsoDate, infinity) => out.text(word(infinity)),
        _ => return Err(mismatch("a date")),
    }
    Ok(())
}

/// Writes a time of day without zone. 24:00:00 is kept apart from 00:00:00 in every way.
pub(super) fn time(micros: i64, how: &Render, out: &mut impl Primitive) -> Result<(), ValueError> {
    if !(0..=DAY).contains(&micros) {
        return Err(unrepresentable("the time is not within a day"));
    }
    match how {
        Render::TimeMillis => match (i32::try_from(micros / 1000), micros % 1000) {
            (Ok(millis), 0) => out.int32(millis),
            _ => return Err(unrepresentable("the time is not a whole number of milliseconds")),
        },
        Render::TimeMicros => out.int64(micros),
        Render::TimeNanos => out.int64(micros * 1000),
        Render::IsoTime => {
            let mut line = Line::new();
            line.clock(micros, 0);
            line.push(b'Z');
            line.send(out);
        }
        _ => return Err(mismatch("a time")),
    }
    Ok(())
}

/// Writes a time of day with zone, moved to UTC. The day that it may move into is not part of it.
pub(super) fn zoned_time(
    micros: i64,
    offset_seconds: i32,
    out: &mut impl Primitive,
) -> Result<(), ValueError> {
    if !(0..=DAY).contains(&micros) {
        return Err(unrepresentable("the time is not within a day"));
    }
    let mut line = Line::new();
    line.clock((micros - i64::from(offset_seconds) * SECOND).rem_euclid(DAY), 0);
    line.push(b'Z');
    line.send(out);
    Ok(())
}

/// Writes a wall-clock timestamp.
pub(super) fn timestamp(
    value: Instant,
    how: &Render,
    out: &mut impl Primitive,
) -> Result<(), ValueError> {
    let (negative, positive) = (NEGATIVE_INFINITY_MILLIS, POSITIVE_INFINITY_MILLIS);
    let converted = match how {
        Render::TimestampMillis => number(value, (negative, positive), |micros| {
            (micros.rem_euclid(1000) == 0).then_some(micros.div_euclid(1000))
        }),
        Render::ClockMillis => {
            number(value, (negative, positive), |micros| Some(micros.div_euclid(1000)))
        }
        Render::TimestampMicros => number(value, (negative * 1000, positive * 1000), Some),
        Render::TimestampNanos => {
            number(value, (i64::MIN, i64::MAX), |micros| micros.checked_mul(1000))
        }
        Render::IsoTimestamp => return iso_timestamp(value, 0, out),
        _ => Err(mismatch("a timestamp")),
    };
    out.int64(converted?);
    Ok(())
}

/// Converts microseconds, with markers for the infinities.
fn number(
    value: Instant,
    (negative, positive): (i64, i64),
    convert: impl Fn(i128) -> Option<i128>,
) -> Result<i64, ValueError> {
    match value {
        Instant::NegativeInfinity => Ok(negative),
        Instant::PositiveInfinity => Ok(positive),
        Instant::At(micros) => {
            convert(micros).and_then(|converted| i64::try_from(converted).ok()).ok_or_else(|| {
                unrepresentable("the timestamp does not fit the published unit exactly")
            })
        }
    }
}

/// Writes microseconds since the epoch as text, with at least so many digits of the fraction.
pub(super) fn iso_timestamp(
    value: Instant,
    digits: u8,
    out: &mut impl Primitive,
) -> Result<(), ValueError> {
    let Instant::At(micros) = value else {
        out.text(word(value));
        return Ok(());
    };
    // 64-bit division is several times as fast, and enough but for the last thirty years of 294276.
    let (days, of_day) = match i64::try_from(micros) {
        Ok(micros) => (i128::from(micros.div_euclid(DAY)), micros.rem_euclid(DAY)),
        Err(_) => {
            let day = i128::from(DAY);
            (micros.div_euclid(day), i64::try_from(micros.rem_euclid(day)).unwrap_or(0))
        }
    };
    let mut line = Line::new();
    line.date(days)?;
    line.push(b'T');
    line.clock(of_day, digits);
    line.push(b'Z');
    line.send(out);
    Ok(())
}

const fn word(infinity: Instant) -> &'static str {
    match infinity {
        Instant::NegativeInfinity => "-infinity",
        Instant::PositiveInfinity | Instant::At(_) => "infinity",
    }
}

/// Writes a span of time.
pub(super) fn interval(
    value: Interval,
    how: &Render,
    out: &mut impl Primitive,
) -> Result<(), ValueError> {
    match (how, value) {
        (Render::MicroDuration, Interval::NegativeInfinity) => out.int64(i64::MIN),
        (Render::MicroDuration, Interval::PositiveInfinity) => out.int64(i64::MAX),
        (Render::MicroDuration, Interval::Finite(parts)) => {
            let micros = i128::from(parts.months) * MICROS_PER_MONTH
                + i128::from(parts.days) * i128::from(DAY)
                + i128::from(parts.micros);
            match i64::try_from(micros) {
                Ok(micros) if micros != i64::MIN && micros != i64::MAX => out.int64(micros),
                _ => {
                    return Err(unrepresentable(
                        "the interval is out of the range of 64-bit microseconds",
                    ));
                }
            }
        }
        (Render::IsoInterval, Interval::NegativeInfinity) => out.text("-infinity"),
        (Render::IsoInterval, Interval::PositiveInfinity) => out.text("infinity"),
        (Render::IsoInterval, Interval::Finite(parts)) => iso_interval(parts, out),
        _ => return Err(mismatch("an interval")),
    }
    Ok(())
}

/// All six parts always, each with its own sign, none carried into another: Debezium's form.
fn iso_interval(parts: IntervalParts, out: &mut impl Primitive) {
    let mut line = Line::new();
    line.push(b'P');
    line.part(parts.months / 12, b'Y');
    line.part(parts.months % 12, b'M');
    line.part(parts.days, b'D');
    line.push(b'T');
    line.part(parts.micros / HOUR, b'H');
    line.part(parts.micros % HOUR / MINUTE, b'M');
    let seconds = parts.micros % MINUTE;
    if seconds < 0 {
        line.push(b'-');
    }
    line.number((seconds / SECOND).unsigned_abs(), 1);
    line.fraction((seconds % SECOND).unsigned_abs(), 0);
    line.push(b'S');
    line.send(out);
}

/// A short text on the stack. The longest, an interval of extreme parts, has 87 characters.
struct Line {
    bytes: [u8; 96],
    length: usize,
}

impl Line {
    const fn new() -> Self {
        Self { bytes: [0; 96], length: 0 }
    }

    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.length) {
            *slot = byte;
            self.length += 1;
        }
    }

    /// A number with leading zeros up to the width.
    fn number(&mut self, value: u64, width: usize) {
        let mut digits = [b'0'; 20];
        let mut rest = value;
        let mut first = digits.len();
        while rest > 0 || first > digits.len() - width {
            first -= 1;
            let digit = (rest % 10) as u8;
            digits[first] = b'0' + digit;
            rest /= 10;
        }
        for digit in &digits[first..] {
            self.push(*digit);
        }
    }

    /// A signed number and its unit.
    fn part(&mut self, value: i64, unit: u8) {
        if value < 0 {
            self.push(b'-');
        }
        self.number(value.unsigned_abs(), 1);
        self.push(unit);
    }

    /// Hour, minute, second and fraction of a time of day.
    fn clock(&mut self, micros: i64, least_digits: u8) {
        let micros = micros.unsigned_abs();
        let seconds = micros / SECOND.unsigned_abs();
        self.number(seconds / 3600, 2);
        self.push(b':');
        self.number(seconds / 60 % 60, 2);
        self.push(b':');
        self.number(seconds % 60, 2);
        self.fraction(micros % SECOND.unsigned_abs(), least_digits);
    }

    /// The fraction of a second with its point: no trailing zeros beyond the least digits, nothing
    /// at all if no digit is left.
    fn fraction(&mut self, micros: u64, least_digits: u8) {
        let (mut value, mut width) = (micros, 6);
        while width > usize::from(least_digits.min(6)) && value % 10 == 0 {
            value /= 10;
            width -= 1;
        }
        if width > 0 {
            self.push(b'.');
            self.number(value, width);
        }
    }

    /// Year, month and day. Years beyond four digits have a sign, as ISO 8601 demands.
    fn date(&mut self, days: i128) -> Result<(), ValueError> {
        let days = i64::try_from(days)
            .ok()
            .filter(|days| (-LAST_DAY..=LAST_DAY).contains(days))
            .ok_or_else(|| unrepresentable("the date is beyond any calendar"))?;
        let (year, month, day) = civil(days);
        if year < 0 {
            self.push(b'-');
        } else if year > 9999 {
            self.push(b'+');
        }
        self.number(year.unsigned_abs(), 4);
        self.push(b'-');
        self.number(month, 2);
        self.push(b'-');
        self.number(day, 2);
        Ok(())
    }

    fn send(&self, out: &mut impl Primitive) {
        out.ascii(self.length, self.bytes.iter().copied().take(self.length));
    }
}

/// Days since 1970-01-01 → year, month, day. Counts in eras of 400 years whose years begin in
/// March, so that the leap day is the last day of a year.
fn civil(days: i64) -> (i64, u64, u64) {
    let from_march = days + 719_468;
    let era = from_march.div_euclid(146_097);
    let day_of_era = from_march.rem_euclid(146_097).unsigned_abs();
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + i64::try_from(year_of_era).unwrap_or(0) + i64::from(month <= 2);
    (year, month, day)
}

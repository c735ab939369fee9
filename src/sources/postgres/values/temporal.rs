//! Dates, times, timestamps and intervals: text → scalar.
//!
//! Reads `datestyle=ISO` and `intervalstyle=postgres` (the server's `EncodeDateOnly`,
//! `EncodeTimeOnly`, `EncodeDateTime`, `EncodeInterval` in `utils/adt/datetime.c`). Knows no schema
//! and no time zone but the offset that the text has. **Invariant:** the far ends (BC, infinity, the
//! hour 24, years of six digits) keep their own values.

use super::calendar::days_from_civil;
use super::malformed;
use super::numbers::parsers;
use super::scan::{Scan, pair};
use crate::change::{CellParser, Instant, Interval, IntervalParts, Scalar, ValueError};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_HOUR: i64 = 3_600_000_000;
pub(super) const MICROS_PER_DAY: i64 = 86_400_000_000;

parsers! {
    /// `date`.
    DateCell "date" "YYYY-MM-DD, perhaps BC, or infinity" |raw| {
        instant(raw, |scan| date(scan).map(i128::from)).map(Scalar::Date)
    };
    /// `time without time zone`.
    TimeCell "time" "HH:MM:SS, perhaps with a fraction" |raw| {
        let mut scan = Scan::new(raw);
        let micros = time_of_day(&mut scan)?;
        scan.end()?;
        Some(Scalar::Time(micros))
    };
    /// `time with time zone`.
    TimeTzCell "time with time zone" "HH:MM:SS and an offset" |raw| {
        let mut scan = Scan::new(raw);
        let micros = time_of_day(&mut scan)?;
        let offset_seconds = offset(&mut scan)?;
        scan.end()?;
        Some(Scalar::ZonedTime { micros, offset_seconds })
    };
    /// `timestamp without time zone`.
    TimestampCell "timestamp" "YYYY-MM-DD HH:MM:SS, perhaps BC, or infinity" |raw| {
        instant(raw, |scan| timestamp(scan, |_| Some(0))).map(Scalar::Timestamp)
    };
    /// `timestamp with time zone`.
    TimestampTzCell "timestamp with time zone" "YYYY-MM-DD HH:MM:SS and an offset, perhaps BC, or infinity" |raw| {
        instant(raw, |scan| timestamp(scan, offset)).map(Scalar::ZonedTimestamp)
    };
    /// `interval`.
    IntervalCell "interval" "an interval in intervalstyle postgres" |raw| {
        interval(raw).map(Scalar::Interval)
    };
}

/// One of the two infinities, or what `read` makes of the whole text.
fn instant(raw: &[u8], read: impl FnOnce(&mut Scan<'_>) -> Option<i128>) -> Option<Instant> {
    match raw {
        b"infinity" => return Some(Instant::PositiveInfinity),
        b"-infinity" => return Some(Instant::NegativeInfinity),
        _ => {}
    }
    let mut scan = Scan::new(raw);
    let at = read(&mut scan)?;
    scan.end()?;
    Some(Instant::At(at))
}

/// Year (four to seven digits), month and day as they are written.
fn civil(scan: &mut Scan<'_>) -> Option<(i64, u32, u32)> {
    // A year of four digits, as nearly all are, without a loop.
    let mut ahead = *scan;
    if let Some(&[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2]) = ahead.take() {
        *scan = ahead;
        let year = pair([y1, y2])?.checked_mul(100)?.checked_add(pair([y3, y4])?)?;
        return Some((i64::from(year), pair([m1, m2])?, pair([d1, d2])?));
    }
    let length = scan.rest().len();
    let year = scan.number()?;
    if !(5..=7).contains(&length.checked_sub(scan.rest().len())?) {
        return None;
    }
    scan.expect(b'-')?;
    let month = scan.two_digits()?;
    scan.expect(b'-')?;
    Some((i64::try_from(year).ok()?, month, scan.two_digits()?))
}

/// Days since the epoch. There is no year 0: the text counts 1 BC, 1 AD.
fn days(scan: &mut Scan<'_>, (year, month, day): (i64, u32, u32)) -> Option<i64> {
    if year == 0 {
        return None;
    }
    let year = if scan.eat_all(b" BC") { 1_i64.checked_sub(year)? } else { year };
    days_from_civil(year, month, day)
}

fn date(scan: &mut Scan<'_>) -> Option<i64> {
    let civil = civil(scan)?;
    days(scan, civil)
}

/// Microseconds since midnight. 24:00:00 is a value of its own.
fn time_of_day(scan: &mut Scan<'_>) -> Option<i64> {
    let &[h1, h2, b':', m1, m2, b':', s1, s2] = scan.take()? else {
        return None;
    };
    let (hours, minutes, seconds) = (pair([h1, h2])?, pair([m1, m2])?, pair([s1, s2])?);
    let micros = scan.micros()?;
    if hours > 24 || minutes > 59 || seconds > 59 {
        return None;
    }
    let total = clock(i64::from(hours), minutes, seconds, micros)?;
    (total <= MICROS_PER_DAY).then_some(total)
}

fn clock(hours: i64, minutes: u32, seconds: u32, micros: u32) -> Option<i64> {
    let seconds = i64::from(minutes).checked_mul(60)?.checked_add(i64::from(seconds))?;
    hours
        .checked_mul(MICROS_PER_HOUR)?
        .checked_add(seconds.checked_mul(MICROS_PER_SECOND)?)?
        .checked_add(i64::from(micros))
}

/// Seconds east of UTC: `+02`, `-03:30`, `+01:15:59` (`EncodeTimezone`).
fn offset(scan: &mut Scan<'_>) -> Option<i32> {
    let east = match scan.next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = scan.two_digits()?;
    let minutes = if scan.eat(b':') { scan.two_digits()? } else { 0 };
    let seconds = if scan.eat(b':') { scan.two_digits()? } else { 0 };
    // MAX_TZDISP_HOUR of `datatype/timestamp.h`: the server refuses offsets of 16 hours and more.
    if hours > 15 || minutes > 59 || seconds > 59 {
        return None;
    }
    let total = hours.checked_mul(60)?.checked_add(minutes)?.checked_mul(60)?;
    i32::try_from(total.checked_add(seconds)?).ok()?.checked_mul(east)
}

/// Microseconds since the epoch. The era follows the zone (`0044-03-15 12:00:00+00 BC`).
fn timestamp(
    scan: &mut Scan<'_>,
    offset: impl FnOnce(&mut Scan<'_>) -> Option<i32>,
) -> Option<i128> {
    let civil = civil(scan)?;
    scan.expect(b' ')?;
    let micros = time_of_day(scan)?;
    let offset = i64::from(offset(scan)?);
    let days = days(scan, civil)?;
    let local = i128::from(days).checked_mul(i128::from(MICROS_PER_DAY))?;
    local.checked_add(i128::from(micros.checked_sub(offset.checked_mul(MICROS_PER_SECOND)?)?))
}

/// Parts from large to small, each once at most and separated by blanks:
/// `-1 years +2 mons 3 days -04:05:06.789`. Never empty: nothing at all is `00:00:00`.
fn interval(raw: &[u8]) -> Option<Interval> {
    match raw {
        b"infinity" => return Some(Interval::PositiveInfinity),
        b"-infinity" => return Some(Interval::NegativeInfinity),
        _ => {}
    }
    let mut parts = IntervalParts::default();
    let mut scan = Scan::new(raw);
    // The number of the last part: 1 years, 2 months, 3 days, 4 the time.
    let mut last = 0;
    loop {
        let negative = sign(&mut scan);
        let number = scan.number()?;
        let unit = if scan.eat(b' ') { unit(&mut scan)? } else { 4 };
        if unit <= last {
            return None;
        }
        last = unit;
        if unit == 4 {
            parts.micros = hours_and_less(&mut scan, negative, number)?;
            scan.end()?;
            break;
        }
        let count = i64::try_from(number).ok()?;
        let count = if negative { count.checked_neg()? } else { count };
        match unit {
            1 => parts.months = count.checked_mul(12)?,
            2 => parts.months = parts.months.checked_add(count)?,
            _ => parts.days = count,
        }
        if scan.end().is_some() {
            break;
        }
        scan.expect(b' ')?;
    }
    Some(Interval::Finite(parts))
}

/// Whether a minus stands here. A plus is written after a part that is negative.
fn sign(scan: &mut Scan<'_>) -> bool {
    let negative = scan.eat(b'-');
    if !negative {
        scan.eat(b'+');
    }
    negative
}

fn unit(scan: &mut Scan<'_>) -> Option<u8> {
    match scan.take_while(|byte| byte.is_ascii_lowercase()) {
        b"year" | b"years" => Some(1),
        b"mon" | b"mons" => Some(2),
        b"day" | b"days" => Some(3),
        _ => None,
    }
}

/// Hours do not carry into days, and reach up to all of 64 bits of microseconds.
fn hours_and_less(scan: &mut Scan<'_>, negative: bool, hours: u64) -> Option<i64> {
    scan.expect(b':')?;
    let minutes = scan.two_digits()?;
    scan.expect(b':')?;
    let seconds = scan.two_digits()?;
    let micros = scan.micros()?;
    if minutes > 59 || seconds > 59 {
        return None;
    }
    let rest = clock(0, minutes, seconds, micros)?;
    let hours = i128::from(hours).checked_mul(i128::from(MICROS_PER_HOUR))?;
    let total = hours.checked_add(i128::from(rest))?;
    i64::try_from(if negative { total.checked_neg()? } else { total }).ok()
}

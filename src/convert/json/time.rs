//! Connect's own dates and times as the header converter prints them: unquoted ISO 8601 in UTC.
//!
//! Knows no schema. Where Java picks the notation by the size of the number (a date before 1970
//! would read as a time of day), the schema decides here.

use std::io::Write as _;

const DAY_MILLIS: i64 = 86_400_000;

/// Days since 1970-01-01 as `2020-02-29`.
pub(super) fn append_date(out: &mut Vec<u8>, days: i64) {
    let (year, month, day) = civil(days);
    // A vector takes everything; there is no error to report.
    drop(write!(out, "{year:04}-{month:02}-{day:02}"));
}

/// Milliseconds since midnight as `12:30:00.500Z`.
pub(super) fn append_time(out: &mut Vec<u8>, millis: i64) {
    let (hour, minute) = (millis / 3_600_000, millis / 60_000 % 60);
    let (second, fraction) = (millis / 1000 % 60, millis % 1000);
    drop(write!(out, "{hour:02}:{minute:02}:{second:02}.{fraction:03}Z"));
}

/// Milliseconds since 1970-01-01T00:00Z as `2020-02-29T12:30:00.500Z`.
pub(super) fn append_timestamp(out: &mut Vec<u8>, millis: i64) {
    append_date(out, millis.div_euclid(DAY_MILLIS));
    out.push(b'T');
    append_time(out, millis.rem_euclid(DAY_MILLIS));
}

/// Year, month and day of a day number, proleptic Gregorian. Counts in 400-year eras from 1 March of
/// year 0, so that the leap day is the last of its year.
const fn civil(days: i64) -> (i64, i64, i64) {
    const ERA: i64 = 146_097;
    let since_march_0 = days + 719_468;
    let (era, day_of_era) = (since_march_0.div_euclid(ERA), since_march_0.rem_euclid(ERA));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let january_or_february = if month <= 2 { 1 } else { 0 };
    (era * 400 + year_of_era + january_or_february, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(append: fn(&mut Vec<u8>, i64), value: i64, expect: &str) {
        let mut out = Vec::new();
        append(&mut out, value);
        assert_eq!(String::from_utf8(out).unwrap(), expect);
    }

    #[test]
    fn dates_and_times_are_iso() {
        check(append_date, 0, "1970-01-01");
        check(append_date, -1, "1969-12-31");
        check(append_date, 18_321, "2020-02-29");
        check(append_date, 18_322, "2020-03-01");
        check(append_date, -719_162, "0001-01-01");
        check(append_date, 2_932_896, "9999-12-31");
        check(append_time, 45_000_500, "12:30:00.500Z");
        check(append_time, DAY_MILLIS, "24:00:00.000Z");
        check(append_timestamp, 1_582_938_123_500, "2020-02-29T01:02:03.500Z");
        check(append_timestamp, -1, "1969-12-31T23:59:59.999Z");
    }
}

//! The proleptic Gregorian calendar: civil dates → days since 1970-01-01.
//!
//! Own arithmetic over whole numbers, for every year that PostgreSQL knows (4713 BC to 5874897).
//! Knows no text. **Invariant:** a date that the calendar does not have is no date.

/// Days since 1970-01-01; years are astronomical (1 BC is 0). `None`: no such date, or a year
/// beyond ten million.
pub(super) fn days_from_civil(year: i64, month: u32, day: u32) -> Option<i64> {
    if year.unsigned_abs() > 10_000_000 || day == 0 || day > days_of_month(year, month)? {
        return None;
    }
    days(year, month, day)
}

fn days_of_month(year: i64, month: u32) -> Option<u32> {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => Some(31),
        4 | 6 | 9 | 11 => Some(30),
        2 if is_leap(year) => Some(29),
        2 => Some(28),
        _ => None,
    }
}

const fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// The year is taken to begin in March, so that the leap day is its last, and the months' lengths
/// before it follow one line: (153 m + 2) / 5 days.
fn days(year: i64, month: u32, day: u32) -> Option<i64> {
    let after_february = month > 2;
    let year = if after_february { year } else { year.checked_sub(1)? };
    let month = i64::from(month).checked_add(if after_february { -3 } else { 9 })?;
    let day_of_year =
        month.checked_mul(153)?.checked_add(2)?.div_euclid(5).checked_add(i64::from(day))?;
    let leap_days =
        year.div_euclid(4).checked_sub(year.div_euclid(100))?.checked_add(year.div_euclid(400))?;
    // 0000-02-29, the day before that count begins, is 719 469 days before 1970-01-01.
    year.checked_mul(365)?.checked_add(leap_days)?.checked_add(day_of_year)?.checked_sub(719_469)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(year: i64, month: u32, day: u32, expect: Option<i64>) {
        assert_eq!(days_from_civil(year, month, day), expect);
    }

    #[test]
    fn known_dates() {
        check(1970, 1, 1, Some(0));
        check(1969, 12, 31, Some(-1));
        check(2000, 2, 29, Some(11_016));
        check(2000, 3, 1, Some(11_017));
        check(1, 1, 1, Some(-719_162));
        check(0, 12, 31, Some(-719_163));
        check(-4712, 1, 1, Some(-2_440_550));
        check(5_874_897, 12, 31, Some(2_145_042_905));
        check(1582, 10, 4, Some(-141_438));
    }

    #[test]
    fn dates_that_do_not_exist() {
        check(1900, 2, 29, None);
        check(2023, 4, 31, None);
        check(2023, 13, 1, None);
        check(2023, 0, 1, None);
        check(2023, 1, 0, None);
        check(i64::MAX, 1, 1, None);
        check(i64::MIN, 1, 1, None);
    }

    /// Walks day by day over 800 years around the epoch's start and end of the leap rules.
    #[test]
    fn consecutive_days_have_consecutive_numbers() {
        let mut expect = days_from_civil(-400, 1, 1).unwrap();
        for year in -400..2400 {
            for month in 1..=12 {
                for day in 1..=days_of_month(year, month).unwrap() {
                    check(year, month, day, Some(expect));
                    expect += 1;
                }
            }
        }
    }
}

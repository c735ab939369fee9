//! Properties of all parsers: nothing makes one panic, and what the server could write reads back.
//!
//! The texts are made here in a way of their own, which shares nothing with the parsers.
#![expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails")]

use std::fmt::Write;

use proptest::prelude::*;

use super::*;

/// Every type of the catalogue above, with and without a modifier.
fn all_columns() -> Vec<ResolvedColumn> {
    let catalogue = catalogue();
    let oids = (0..7_000).chain(MOOD..=PRICES).filter(|oid| catalogue.facts(*oid).is_some());
    oids.flat_map(|oid| [(oid, -1), (oid, 3)])
        .map(|(oid, typmod)| resolve(oid, typmod, None, &catalogue, None))
        .collect()
}

/// Bytes that come close to something: the alphabets of all notations, and some of any.
fn near_misses() -> impl Strategy<Value = Vec<u8>> {
    let alphabet = prop_oneof![
        8 => "[0-9]".prop_map(String::into_bytes),
        4 => "[-+:. ,;/(){}\\[\\]\"\\\\=>$x]".prop_map(String::into_bytes),
        1 => "( BC|NULL|infinity|NaN|Infinity| years| mons| days|=>|\\\\x|2024-01-01|12:00:00)".prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 1..3),
    ];
    proptest::collection::vec(alphabet, 0..24).prop_map(|parts| parts.concat())
}

/// A date's text by an independent way: counting days forward or back from a known one.
fn civil_by_walking(mut days: i64) -> (i64, u32, u32) {
    let leap = |year: i64| {
        year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
    };
    // Whole cycles of 400 years have 146 097 days.
    let cycles = days.div_euclid(146_097);
    days = days.rem_euclid(146_097);
    let mut year = 1970 + cycles * 400;
    while days >= 365 + i64::from(leap(year)) {
        days -= 365 + i64::from(leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, u32::try_from(days).unwrap() + 1)
}

/// A year as the server writes it, and what follows the rest of the text.
fn era(year: i64) -> (i64, &'static str) {
    if year > 0 { (year, "") } else { (1 - year, " BC") }
}

fn fraction(micros: i64) -> String {
    if micros == 0 {
        return String::new();
    }
    format!(".{micros:06}").trim_end_matches('0').to_owned()
}

fn clock(micros: i64) -> String {
    let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}{}", seconds % 60, fraction(rest))
}

/// An interval as the server writes it (intervalstyle postgres).
fn interval_text(months: i32, days: i32, micros: i64) -> String {
    let mut text = String::new();
    let mut negative_before = false;
    for (value, unit) in
        [(i64::from(months / 12), "year"), (i64::from(months % 12), "mon"), (days.into(), "day")]
    {
        if value != 0 {
            let blank = if text.is_empty() { "" } else { " " };
            let plus = if negative_before && value > 0 { "+" } else { "" };
            let plural = if value == 1 { "" } else { "s" };
            write!(text, "{blank}{plus}{value} {unit}{plural}").unwrap();
            negative_before = value < 0;
        }
    }
    if micros != 0 || text.is_empty() {
        let blank = if text.is_empty() { "" } else { " " };
        let sign = match (micros < 0, negative_before) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        let magnitude = i64::try_from(micros.unsigned_abs()).unwrap_or(i64::MAX);
        write!(text, "{blank}{sign}{}", clock(magnitude)).unwrap();
    }
    text
}

/// Any text element as the server writes it into an array.
fn array_element(element: Option<&String>) -> String {
    let Some(text) = element else {
        return "NULL".to_owned();
    };
    let special = |c: char| matches!(c, '"' | '\\' | '{' | '}' | ',') || c.is_ascii_whitespace();
    if text.is_empty() || text.eq_ignore_ascii_case("null") || text.contains(special) {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        text.clone()
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_parser_panic(raw in near_misses()) {
        for column in all_columns() {
            let _read = read(&column, &raw);
            if let Some(labels) = &column.labels {
                labels.first_unknown(&raw);
            }
        }
    }

    #[test]
    fn no_bytes_make_a_default_panic(text in "[-0-9a-z'\"()::. ,BN]{0,40}") {
        let catalogue = catalogue();
        for column in all_columns() {
            column_default(Some(&text), &column, &catalogue);
        }
    }

    #[test]
    fn any_number_resolves(oid: u32, typmod: i32, dimensions: i16) {
        resolve(oid, typmod, Some(dimensions), &catalogue(), None);
        for oid in [1042, 1043, 1560, 1562, 1700, 1083, 1114, 1186, 1231, PRICES] {
            resolve(oid, typmod, Some(dimensions), &catalogue(), None);
        }
    }

    #[test]
    fn every_date_reads_back(days in -2_440_588_i64..2_145_042_905) {
        let (year, month, day) = civil_by_walking(days);
        let (year, suffix) = era(year);
        check(1082, &format!("{year:04}-{month:02}-{day:02}{suffix}"), &days.to_string());
    }

    #[test]
    fn every_timestamp_reads_back(micros in -210_866_803_200_000_000_i128..9_224_318_016_000_000_000) {
        let days = i64::try_from(micros.div_euclid(86_400_000_000)).unwrap();
        let time = clock(i64::try_from(micros.rem_euclid(86_400_000_000)).unwrap());
        let (year, month, day) = civil_by_walking(days);
        let (year, suffix) = era(year);
        let date = format!("{year:04}-{month:02}-{day:02}");
        check(1114, &format!("{date} {time}{suffix}"), &micros.to_string());
        check(1184, &format!("{date} {time}+00{suffix}"), &micros.to_string());
    }

    #[test]
    fn every_interval_reads_back(months: i32, days: i32, micros in -i64::MAX..=i64::MAX) {
        for (months, days, micros) in [(months, days, micros), (months, 0, 0), (0, days, micros)] {
            let expect = format!("{months}m {days}d {micros}us");
            check(1186, &interval_text(months, days, micros), &expect);
        }
    }

    #[test]
    fn every_integer_reads_back(wide: i64, narrow: i32) {
        check(20, &wide.to_string(), &wide.to_string());
        check(23, &narrow.to_string(), &narrow.to_string());
    }

    #[test]
    fn every_float_reads_back_bit_for_bit(bits: u64) {
        let value = f64::from_bits(bits);
        let column = resolve(701, -1, None, &catalogue(), None);
        if value.is_finite() {
            let text = format!("{value:e}");
            let Ok(Scalar::Float64(back)) = column.parser.parse(text.as_bytes()) else {
                panic!("{text}");
            };
            prop_assert_eq!(back.to_bits(), bits);
        }
    }

    #[test]
    fn every_amount_reads_back(cents: i64) {
        let magnitude = cents.unsigned_abs();
        let units = (magnitude / 100).to_string();
        let groups: Vec<&str> = units
            .as_bytes()
            .rchunks(3)
            .rev()
            .map(|group| std::str::from_utf8(group).unwrap())
            .collect();
        let sign = if cents < 0 { "-" } else { "" };
        let text = format!("{sign}${}.{:02}", groups.join(","), magnitude % 100);
        check(790, &text, &format!("{cents}e-2"));
    }

    #[test]
    fn every_array_of_text_reads_back(
        elements in proptest::collection::vec(proptest::option::of("[a-z{}\",\\\\ \n\tNUL]{0,6}|.{0,4}"), 0..8),
    ) {
        let texts: Vec<String> = elements.iter().map(|text| array_element(text.as_ref())).collect();
        let shown: Vec<String> = elements
            .iter()
            .map(|text| text.as_ref().map_or("null".to_owned(), |text| format!("{text:?}")))
            .collect();
        check(1009, &format!("{{{}}}", texts.join(",")), &format!("[{}]", shown.join(", ")));
    }

    #[test]
    fn every_byte_string_reads_back(bytes: Vec<u8>) {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        check(17, &format!("\\x{hex}"), &format!("{bytes:x?}"));
    }
}

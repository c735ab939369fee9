//! Every way of rendering, one line per case; the properties beside them.

use std::fmt::Write as _;

use num_bigint::BigInt;
use proptest::prelude::*;

use super::*;
use crate::change::{
    Decimal, DecimalText, EachPair, Instant, Interval, IntervalParts, KeyValueReader, KeyValues,
    Sequence, SequenceReader,
};

/// Spells what is written, and holds the writer's contract.
#[derive(Default)]
struct Spelled(String);

impl Spelled {
    fn presence(&mut self, presence: Presence) {
        match presence {
            Presence::Required => {}
            Presence::Present => self.0.push('?'),
            Presence::Null => self.0.push_str("null"),
        }
    }

    fn hex(&mut self, bytes: &[u8]) {
        self.0.push_str("x'");
        bytes.iter().for_each(|byte| write!(self.0, "{byte:02x}").unwrap());
        self.0.push('\'');
    }
}

impl Primitive for Spelled {
    fn boolean(&mut self, value: bool) {
        write!(self.0, "{value}").unwrap();
    }
    fn int32(&mut self, value: i32) {
        write!(self.0, "{value}").unwrap();
    }
    fn int64(&mut self, value: i64) {
        write!(self.0, "{value}L").unwrap();
    }
    fn float32(&mut self, value: f32) {
        write!(self.0, "{value:?}f").unwrap();
    }
    fn float64(&mut self, value: f64) {
        write!(self.0, "{value:?}d").unwrap();
    }
    fn text(&mut self, value: &str) {
        write!(self.0, "'{value}'").unwrap();
    }
    fn ascii(&mut self, length: usize, text: impl Iterator<Item = u8>) {
        let text: Vec<u8> = text.collect();
        assert_eq!(text.len(), length);
        assert!(text.iter().all(|c| (b' '..0x7f).contains(c) && *c != b'"' && *c != b'\\'));
        self.text(std::str::from_utf8(&text).unwrap());
    }
    fn begin_text(&mut self) -> usize {
        self.0.push('\'');
        self.0.len()
    }
    fn piece(&mut self, text: &str) {
        self.0.push_str(text);
    }
    fn end_text(&mut self, mark: usize) {
        assert!(mark <= self.0.len());
        self.0.push('\'');
    }
    fn bytes(&mut self, value: ByteText<'_>) {
        let mut bytes = Vec::new();
        value.append_to(&mut bytes);
        self.hex(&bytes);
    }
    fn octets(&mut self, length: usize, bytes: impl Iterator<Item = u8>) {
        let bytes: Vec<u8> = bytes.collect();
        assert_eq!(bytes.len(), length);
        self.hex(&bytes);
    }
    fn begin_struct(&mut self) {
        self.0.push('{');
    }
    fn field(&mut self, index: usize, name: &'static str, presence: Presence) {
        write!(self.0, "{index}{name}:").unwrap();
        self.presence(presence);
    }
    fn end_struct(&mut self) {
        self.0.push('}');
    }
    fn begin_array(&mut self) -> usize {
        self.0.push('[');
        self.0.len()
    }
    fn item(&mut self, index: usize, presence: Presence) {
        if index > 0 {
            self.0.push(',');
        }
        self.presence(presence);
    }
    fn end_array(&mut self, mark: usize, count: usize) {
        write!(self.0, "]{count}").unwrap();
        assert!(mark <= self.0.len());
    }
    fn begin_map(&mut self) -> usize {
        self.0.push('<');
        self.0.len()
    }
    fn entry(&mut self, index: usize, key: &str, presence: Presence) {
        write!(self.0, "{index}{key}=").unwrap();
        self.presence(presence);
    }
    fn end_map(&mut self, mark: usize, count: usize) {
        write!(self.0, ">{count}").unwrap();
        assert!(mark <= self.0.len());
    }
}

fn spell(scalar: Scalar<'_>, how: &Render) -> Result<String, ValueError> {
    let mut out = Spelled::default();
    render(scalar, how, &mut out)?;
    Ok(out.0)
}

#[track_caller]
fn check(scalar: Scalar<'_>, how: &Render, expect: &str) {
    assert_eq!(spell(scalar, how).as_deref(), Ok(expect));
}

#[track_caller]
fn check_refused(scalar: Scalar<'_>, how: &Render, reason: &str) {
    let error = spell(scalar, how).unwrap_err().to_string();
    assert!(error.contains(reason), "{error}");
}

fn number(text: &str) -> Scalar<'_> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    Scalar::Decimal(Decimal::Finite(DecimalText { negative, integer, fraction }))
}

fn scaled(unscaled: i64, scale: u8) -> Scalar<'static> {
    Scalar::Decimal(Decimal::Scaled { unscaled, scale })
}

#[test]
fn plain_values_go_as_they_are() {
    check(Scalar::Bool(true), &Render::Boolean, "true");
    check(Scalar::Int(-32768), &Render::Int16, "-32768");
    check(Scalar::Int(i32::MAX.into()), &Render::Int32, "2147483647");
    check(Scalar::Int(i64::MIN), &Render::Int64, "-9223372036854775808L");
    check(Scalar::Float32(1.5), &Render::Float32, "1.5f");
    check(Scalar::Float64(f64::NAN), &Render::Float64, "NaNd");
    check(Scalar::Text("é\"\\"), &Render::Text, "'é\"\\'");
    check_refused(Scalar::Int(32768), &Render::Int16, "out of the published type's range");
    check_refused(Scalar::Int(1 << 31), &Render::Int32, "out of the published type's range");
}

#[test]
fn null_and_unavailable_are_never_values() {
    check_refused(Scalar::Null, &Render::Text, "null");
    check_refused(Scalar::Unavailable, &Render::Text, "not sent");
}

#[test]
fn a_value_of_another_type_is_refused() {
    for how in [Render::Days, Render::Bits, Render::Point, Render::MicroDuration] {
        for scalar in [Scalar::Bool(true), Scalar::Int(1), Scalar::Text("x"), number("1")] {
            check_refused(scalar, &how, "where the column's type has no such value");
        }
    }
}

#[test]
fn byte_strings() {
    for value in [ByteText::Raw(&[0xfb, 0xff, 0x00]), ByteText::Hex(b"FBff00")] {
        check(Scalar::Bytes(value), &Render::Bytes, "x'fbff00'");
        check(Scalar::Bytes(value), &Render::Hex, "'fbff00'");
        check(Scalar::Bytes(value), &Render::Base64 { url_safe: false }, "'+/8A'");
        check(Scalar::Bytes(value), &Render::Base64 { url_safe: true }, "'-_8A'");
    }
    let base64 = Render::Base64 { url_safe: false };
    check(Scalar::Bytes(ByteText::Hex(b"")), &base64, "''");
    check(Scalar::Bytes(ByteText::Hex(b"02")), &base64, "'Ag=='");
    check(Scalar::Bytes(ByteText::Hex(b"fffe")), &base64, "'//4='");
}

#[test]
fn bit_strings_are_little_endian_without_zeros_at_the_end() {
    let bits = |text: &'static [u8]| Scalar::Bits(Bits(text));
    check(bits(b"101010101"), &Render::Bits, "x'5501'");
    check(bits(b"000000001"), &Render::Bits, "x'01'");
    check(bits(b"100000000000"), &Render::Bits, "x'0008'");
    check(bits(b"1111000011110000"), &Render::Bits, "x'f0f0'");
    check(bits(b"1010101010101"), &Render::Bits, "x'5515'");
    check(bits(b"0000000000000000"), &Render::Bits, "x''");
    check(bits(b""), &Render::Bits, "x''");
    check(bits(b"1"), &Render::Bit, "true");
    check(bits(b"0"), &Render::Bit, "false");
    check_refused(bits(b""), &Render::Bit, "not one bit long");
}

#[test]
fn dates() {
    let date = |days| Scalar::Date(Instant::At(days));
    check(date(-2_440_550), &Render::Days, "-2440550");
    check(date(2_145_042_905), &Render::Days, "2145042905");
    check(Scalar::Date(Instant::PositiveInfinity), &Render::Days, "2147483647");
    check(Scalar::Date(Instant::NegativeInfinity), &Render::Days, "-2147483648");
    check_refused(date(i32::MAX.into()), &Render::Days, "out of the range");
    check(date(0), &Render::IsoDate, "'1970-01-01Z'");
    check(date(19_782), &Render::IsoDate, "'2024-02-29Z'");
    check(date(-719_162), &Render::IsoDate, "'0001-01-01Z'");
    check(date(-719_163), &Render::IsoDate, "'0000-12-31Z'");
    check(date(-2_440_550), &Render::IsoDate, "'-4712-01-01Z'");
    check(date(2_932_897), &Render::IsoDate, "'+10000-01-01Z'");
    check(date(2_145_042_905), &Render::IsoDate, "'+5874897-12-31Z'");
    check(Scalar::Date(Instant::PositiveInfinity), &Render::IsoDate, "'infinity'");
    check(Scalar::Date(Instant::NegativeInfinity), &Render::IsoDate, "'-infinity'");
    check_refused(date(i128::MAX), &Render::IsoDate, "beyond any calendar");
}

#[test]
fn times_keep_the_end_of_the_day_apart() {
    let time = Scalar::Time;
    check(time(86_399_999_000), &Render::TimeMillis, "86399999");
    check(time(86_400_000_000), &Render::TimeMillis, "86400000");
    check(time(86_400_000_000), &Render::TimeMicros, "86400000000L");
    check(time(45_296_789_100), &Render::TimeNanos, "45296789100000L");
    check(time(0), &Render::IsoTime, "'00:00:00Z'");
    check(time(86_400_000_000), &Render::IsoTime, "'24:00:00Z'");
    check(time(45_296_789_100), &Render::IsoTime, "'12:34:56.7891Z'");
    check(time(1), &Render::IsoTime, "'00:00:00.000001Z'");
    check_refused(time(1), &Render::TimeMillis, "whole number of milliseconds");
    check_refused(time(-1), &Render::TimeMicros, "not within a day");
    check_refused(time(86_400_000_001), &Render::IsoTime, "not within a day");
}

#[test]
fn zoned_times_move_to_utc() {
    #[track_caller]
    fn check_zoned(micros: i64, offset_seconds: i32, expect: &str) {
        check(Scalar::ZonedTime { micros, offset_seconds }, &Render::ZonedTime, expect);
    }
    check_zoned(45_296_789_012, 7200, "'10:34:56.789012Z'");
    check_zoned(100_000, 14 * 3600, "'10:00:00.1Z'");
    check_zoned(86_400_000_000, 0, "'00:00:00Z'");
    check_zoned(86_400_000_000, -5 * 3600, "'05:00:00Z'");
    check_zoned(0, 57_540, "'08:01:00Z'");
    check_zoned(0, i32::MIN, "'03:14:08Z'");
}

#[test]
fn timestamps() {
    let at = |micros| Scalar::Timestamp(Instant::At(micros));
    let (never, ever) = (Instant::NegativeInfinity, Instant::PositiveInfinity);
    check(at(-100), &Render::TimestampMicros, "-100L");
    check(at(i64::MAX.into()), &Render::TimestampMicros, "9223372036854775807L");
    check(Scalar::Timestamp(ever), &Render::TimestampMicros, "9223372036825200000L");
    check(Scalar::Timestamp(never), &Render::TimestampMicros, "-9223372036832400000L");
    check_refused(at(9_224_318_015_999_999_999), &Render::TimestampMicros, "does not fit");
    check(at(-62_135_596_799_999_000), &Render::TimestampMillis, "-62135596799999L");
    check(at(9_224_318_015_999_999_000), &Render::TimestampMillis, "9224318015999999L");
    check(Scalar::Timestamp(ever), &Render::TimestampMillis, "9223372036825200L");
    check(Scalar::Timestamp(never), &Render::TimestampMillis, "-9223372036832400L");
    check_refused(at(-100), &Render::TimestampMillis, "does not fit");
    check(at(-1), &Render::ClockMillis, "-1L");
    check(Scalar::ZonedTimestamp(Instant::At(1999)), &Render::ClockMillis, "1L");
    check(at(-500_000), &Render::TimestampNanos, "-500000000L");
    check(Scalar::Timestamp(ever), &Render::TimestampNanos, "9223372036854775807L");
    check(Scalar::Timestamp(never), &Render::TimestampNanos, "-9223372036854775808L");
    check_refused(at(i128::MAX), &Render::TimestampNanos, "does not fit");
    check_refused(at(253_402_300_800_000_000), &Render::TimestampNanos, "does not fit");
    check(at(1_709_210_096_789_100), &Render::IsoTimestamp, "'2024-02-29T12:34:56.7891Z'");
    check(at(0), &Render::IsoTimestamp, "'1970-01-01T00:00:00Z'");
    check(Scalar::Timestamp(ever), &Render::IsoTimestamp, "'infinity'");
    check(Scalar::Timestamp(never), &Render::IsoTimestamp, "'-infinity'");
}

#[test]
fn zoned_timestamps_have_the_width_of_their_column() {
    #[track_caller]
    fn check_zoned(micros: i128, digits: u8, expect: &str) {
        let how = Render::ZonedTimestamp { digits };
        check(Scalar::ZonedTimestamp(Instant::At(micros)), &how, expect);
    }
    check_zoned(0, 6, "'1970-01-01T00:00:00.000000Z'");
    check_zoned(0, 3, "'1970-01-01T00:00:00.000Z'");
    check_zoned(0, 0, "'1970-01-01T00:00:00Z'");
    check_zoned(500_000, 0, "'1970-01-01T00:00:00.5Z'");
    check_zoned(-1, 6, "'1969-12-31T23:59:59.999999Z'");
    check_zoned(-62_135_596_800_500_000, 6, "'0000-12-31T23:59:59.500000Z'");
    check_zoned(-210_863_520_000_000_000, 6, "'-4712-01-01T00:00:00.000000Z'");
    check_zoned(9_224_318_015_999_999_999, 6, "'+294276-12-31T23:59:59.999999Z'");
    let how = Render::ZonedTimestamp { digits: 6 };
    check(Scalar::ZonedTimestamp(Instant::PositiveInfinity), &how, "'infinity'");
    check(Scalar::ZonedTimestamp(Instant::NegativeInfinity), &how, "'-infinity'");
    check_refused(Scalar::ZonedTimestamp(Instant::At(i128::MIN)), &how, "beyond any calendar");
}

#[test]
fn intervals() {
    #[track_caller]
    fn check_span(months: i64, days: i64, micros: i64, number: i64, text: &str) {
        let scalar = Scalar::Interval(Interval::Finite(IntervalParts { months, days, micros }));
        check(scalar, &Render::MicroDuration, &format!("{number}L"));
        check(scalar, &Render::IsoInterval, &format!("'{text}'"));
    }
    check_span(0, 0, 0, 0, "P0Y0M0DT0H0M0S");
    check_span(14, 3, 14_706_789_012, 37_091_106_789_012, "P1Y2M3DT4H5M6.789012S");
    check_span(-14, 3, -14_706_700_000, -36_572_706_700_000, "P-1Y-2M3DT-4H-5M-6.7S");
    check_span(119_999, 0, 0, 315_573_370_200_000_000, "P9999Y11M0DT0H0M0S");
    check_span(0, 1, -1_000_000, 86_399_000_000, "P0Y0M1DT0H0M-1S");
    check_span(0, 0, 360_000_000_000_000, 360_000_000_000_000, "P0Y0M0DT100000H0M0S");
    check_span(0, 0, -1000, -1000, "P0Y0M0DT0H0M-0.001S");
    check_span(0, 0, -100_000, -100_000, "P0Y0M0DT0H0M-0.1S");
    let endless = Scalar::Interval(Interval::PositiveInfinity);
    check(endless, &Render::MicroDuration, "9223372036854775807L");
    check(endless, &Render::IsoInterval, "'infinity'");
    let endless = Scalar::Interval(Interval::NegativeInfinity);
    check(endless, &Render::MicroDuration, "-9223372036854775808L");
    check(endless, &Render::IsoInterval, "'-infinity'");
    let huge = IntervalParts { months: i64::MIN, days: i64::MIN, micros: i64::MIN };
    check_refused(
        Scalar::Interval(Interval::Finite(huge)),
        &Render::MicroDuration,
        "out of the range",
    );
    check(
        Scalar::Interval(Interval::Finite(huge)),
        &Render::IsoInterval,
        "'P-768614336404564650Y-8M-9223372036854775808DT-2562047788H0M-54.775808S'",
    );
}

#[test]
fn decimals_of_a_fixed_scale() {
    #[track_caller]
    fn check_at(scale: i32, text: &str, expect: &str) {
        check(number(text), &Render::Decimal { scale }, &format!("x'{expect}'"));
    }
    check_at(2, "99999999.99", "02540be3ff");
    check_at(2, "-99999999.99", "fdabf41c01");
    check_at(2, "1.5", "0096");
    check_at(2, "0", "00");
    check_at(2, "-0.00", "00");
    check_at(2, "1.2800", "0080");
    check_at(2, "-1.28", "80");
    check_at(2, "-1.29", "ff7f");
    check_at(0, "", "00");
    check_at(-2, "850000", "2134");
    check_at(-2, "0", "00");
    check_at(-9, "0", "00");
    check_at(5, "0.00999", "03e7");
    check_at(10, "-9999999999999999999999999999.9999999999", "b4c4b357a5793b85f675ddc000000001");
    check_at(0, "1000000000000000000000000000000000000000", "02f050fe938943acc45f65568000000000");
    check_at(0, "-1000000000000000000000000000000000000000", "fd0faf016c76bc533ba09aa98000000000");
    let scale = Render::Decimal { scale: 2 };
    check_refused(number("1.001"), &scale, "more digits than the published scale");
    check_refused(number("850"), &Render::Decimal { scale: -2 }, "more digits");
    check_refused(number("1"), &Render::Decimal { scale: -2 }, "more digits");
    check_refused(Scalar::Decimal(Decimal::NaN), &scale, "no place in an exact decimal");
}

#[test]
fn decimals_with_their_own_scale() {
    #[track_caller]
    fn check_free(text: &str, scale: i32, value: &str) {
        let expect = format!("{{0scale:{scale}1value:x'{value}'}}");
        check(number(text), &Render::VariableDecimal, &expect);
    }
    check_free("20", 0, "14");
    check_free("17.685", 3, "4515");
    check_free("0.00000000000000000001", 20, "01");
    check_free("10000000000", 0, "02540be400");
    check_free("20.00", 0, "14");
    check_free("1.500", 1, "0f");
    check_free("-0.5", 1, "fb");
    check_free("0.000", 0, "00");
    check_free(
        "12345678901234567890123456789012345678901234567890.1234",
        4,
        "0149f8901b4fa680c05d4ade260396024d12d87e96aff2",
    );
    let infinite = Scalar::Decimal(Decimal::PositiveInfinity);
    check_refused(infinite, &Render::VariableDecimal, "no place in an exact decimal");
}

#[test]
fn decimals_as_text() {
    let own = Render::DecimalText { scale: None };
    let fixed = Render::DecimalText { scale: Some(2) };
    check(number("20.00"), &own, "'20.00'");
    check(number("-.5"), &own, "'-0.5'");
    check(number("99900"), &own, "'99900'");
    check(Scalar::Decimal(Decimal::NaN), &own, "'NaN'");
    check(Scalar::Decimal(Decimal::PositiveInfinity), &own, "'Infinity'");
    check(Scalar::Decimal(Decimal::NegativeInfinity), &own, "'-Infinity'");
    check(number("1.5"), &fixed, "'1.50'");
    check(number("1.500"), &fixed, "'1.50'");
    check(number("-1"), &Render::DecimalText { scale: Some(0) }, "'-1'");
    check_refused(number("1.501"), &fixed, "more digits than the published scale");
}

#[test]
fn decimals_as_doubles() {
    check(number("1.5"), &Render::DecimalDouble, "1.5d");
    check(number("-99999999.99"), &Render::DecimalDouble, "-99999999.99d");
    check(number("0"), &Render::DecimalDouble, "0.0d");
    check(Scalar::Decimal(Decimal::NegativeInfinity), &Render::DecimalDouble, "-infd");
    check(Scalar::Decimal(Decimal::NaN), &Render::DecimalDouble, "NaNd");
    let long = format!("{}.5", "7".repeat(200));
    let nearest: f64 = long.parse().unwrap();
    check(number(&long), &Render::DecimalDouble, &format!("{nearest:?}d"));
    check_refused(number(&"9".repeat(400)), &Render::DecimalDouble, "out of the range of a double");
}

#[test]
fn scaled_integers_are_decimals_too() {
    let cents = Render::Decimal { scale: 2 };
    check(scaled(i64::MIN, 2), &cents, "x'8000000000000000'");
    check(scaled(i64::MAX, 2), &Render::DecimalText { scale: Some(2) }, "'92233720368547758.07'");
    check(scaled(-1, 2), &Render::DecimalText { scale: Some(2) }, "'-0.01'");
    check(scaled(0, 0), &Render::DecimalText { scale: None }, "'0'");
    check(scaled(1234, 2), &Render::Decimal { scale: 4 }, "x'01e208'");
    check(scaled(1500, 2), &Render::VariableDecimal, "{0scale:01value:x'0f'}");
    check(scaled(-129, 2), &Render::DecimalDouble, "-1.29d");
    check(scaled(1, 255), &Render::DecimalDouble, "1e-255d");
    check_refused(scaled(1, 2), &Render::Decimal { scale: 1 }, "more digits");
}

#[test]
fn points_carry_their_well_known_binary() {
    check(
        Scalar::Point { x: 1.5, y: -2.25 },
        &Render::Point,
        "{0x:1.5d1y:-2.25d2wkb:?x'0101000000000000000000f83f00000000000002c0'3srid:null}",
    );
}

#[derive(Debug)]
struct Numbers;

impl SequenceReader for Numbers {
    fn visit(
        &self,
        raw: &[u8],
        each: &mut dyn FnMut(Scalar<'_>) -> Result<(), ValueError>,
    ) -> Result<(), ValueError> {
        raw.iter().try_for_each(|byte| match byte {
            b'n' => each(Scalar::Null),
            b'u' => each(Scalar::Unavailable),
            digit => each(Scalar::Int(i64::from(*digit) - 48)),
        })
    }
}

#[test]
fn arrays() {
    let array = |raw| Scalar::Sequence(Sequence { raw, reader: &Numbers });
    let of = |optional| Render::Array { element: Box::new(Render::Int32), optional };
    check(array(b""), &of(true), "[]0");
    check(array(b"1n2"), &of(true), "[?1,null,?2]3");
    check(array(b"12"), &of(false), "[1,2]2");
    check_refused(array(b"1n"), &of(false), "null");
    check_refused(array(b"1u"), &of(true), "not sent");
}

#[derive(Debug)]
struct Pair;

impl KeyValueReader for Pair {
    fn visit(&self, _: &[u8], each: &mut EachPair<'_>) -> Result<(), ValueError> {
        each("a", Some("1\n"))?;
        each("b", None)
    }
}

#[test]
fn key_value_pairs_become_one_text() {
    let pairs = Scalar::KeyValues(KeyValues { raw: &[], reader: &Pair });
    check(pairs, &Render::JsonObject, r#"'{"a":"1\n","b":null}'"#);
}

/// The reference: arbitrary precision all the way.
fn unscaled_by_reference(text: &str, scale: usize) -> String {
    let (integer, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{integer}{fraction:0<scale$}");
    let bytes = digits.parse::<BigInt>().unwrap().to_signed_bytes_be();
    let mut spelled = Spelled::default();
    spelled.hex(&bytes);
    spelled.0
}

proptest! {
    #[test]
    fn decimals_agree_with_arbitrary_precision(
        text in "-?[1-9][0-9]{0,45}(\\.[0-9]{1,9})?",
        more in 0_usize..6,
    ) {
        let scale = text.split_once('.').map_or(0, |(_, fraction)| fraction.len()) + more;
        let how = Render::Decimal { scale: i32::try_from(scale).unwrap() };
        prop_assert_eq!(spell(number(&text), &how).unwrap(), unscaled_by_reference(&text, scale));
    }

    #[test]
    fn consecutive_days_are_consecutive_dates(days in -1_500_000_000_i128..1_500_000_000) {
        let spell_day = |days| spell(Scalar::Date(Instant::At(days)), &Render::IsoDate).unwrap();
        let (today, tomorrow) = (spell_day(days), spell_day(days + 1));
        let day = |date: &str| date.rsplit('-').next().unwrap().trim_end_matches("Z'")
            .parse::<u32>().unwrap();
        prop_assert!(day(&tomorrow) == day(&today) + 1 || day(&tomorrow) == 1);
        // 400 Gregorian years are 146 097 days.
        let later = spell_day(days + 146_097);
        let month_and_day = |date: &str| date.as_bytes()[date.len() - 8..].to_vec();
        prop_assert_eq!(month_and_day(&today), month_and_day(&later));
    }

    #[test]
    fn base64_reads_back(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        let how = Render::Base64 { url_safe: false };
        let text = spell(Scalar::Bytes(ByteText::Raw(&bytes)), &how).unwrap();
        let digit = |c| "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
            .find(c).map_or(0, |at| u32::try_from(at).unwrap());
        let text = text.trim_matches('\'');
        let mut back = Vec::new();
        for group in text.as_bytes().chunks(4) {
            let word = group.iter().fold(0, |word, c| word << 6 | digit(char::from(*c)));
            back.extend_from_slice(&word.to_be_bytes()[1..]);
        }
        back.truncate(back.len() - text.matches('=').count());
        prop_assert_eq!(back, bytes);
    }

    #[test]
    fn bits_read_back(text in "[01]{0,70}") {
        let bytes = spell(Scalar::Bits(Bits(text.as_bytes())), &Render::Bits).unwrap();
        let hex = bytes.trim_start_matches("x'").trim_matches('\'');
        let bit = |at: usize| {
            let byte = hex.get(at / 8 * 2..at / 8 * 2 + 2).map_or(0, |byte| {
                u8::from_str_radix(byte, 16).unwrap()
            });
            if byte >> (at % 8) & 1 == 1 { '1' } else { '0' }
        };
        let back: String = (0..text.len()).rev().map(bit).collect();
        prop_assert_eq!(back, text);
        prop_assert!(!hex.ends_with("00"));
    }

    #[test]
    fn no_value_panics(micros in any::<i128>(), days in any::<i64>(), zone in any::<i32>()) {
        for how in [Render::IsoTimestamp, Render::TimestampMillis, Render::ClockMillis,
                    Render::TimestampMicros, Render::TimestampNanos] {
            spell(Scalar::Timestamp(Instant::At(micros)), &how).ok();
        }
        let how = Render::ZonedTimestamp { digits: 9 };
        spell(Scalar::ZonedTimestamp(Instant::At(micros)), &how).ok();
        for how in [Render::TimeMillis, Render::TimeNanos, Render::IsoTime] {
            spell(Scalar::Time(days), &how).ok();
        }
        spell(Scalar::ZonedTime { micros: days, offset_seconds: zone }, &Render::ZonedTime).ok();
    }
}

#[derive(Debug)]
struct Pairs;

impl KeyValueReader for Pairs {
    fn visit(&self, raw: &[u8], each: &mut EachPair<'_>) -> Result<(), ValueError> {
        if !raw.is_empty() {
            each("a", Some("1"))?;
            each("b", None)?;
        }
        Ok(())
    }
}

#[test]
fn key_value_pairs_are_a_map_or_a_document() {
    let pairs = |raw| Scalar::KeyValues(KeyValues { raw, reader: &Pairs });
    check(pairs(b"x"), &Render::TextMap, "<0a=?'1'1b=null>2");
    check(pairs(b""), &Render::TextMap, "<>0");
    check(pairs(b"x"), &Render::JsonObject, r#"'{"a":"1","b":null}'"#);
    check_refused(pairs(b"x"), &Render::Text, "no such value");
}

#[test]
fn geometries_are_their_binary_form_and_their_reference_system() {
    let geometry = |srid| Scalar::Geometry { wkb: ByteText::Hex(b"01ff"), srid };
    check(geometry(Some(4326)), &Render::Geometry, "{0wkb:x'01ff'1srid:?4326}");
    check(geometry(None), &Render::Geometry, "{0wkb:x'01ff'1srid:null}");
    check_refused(geometry(None), &Render::Bytes, "no such value");
}

//! Tests over all parsers together: what each type's text reads as, one line for each case.

mod properties;

use std::fmt::Write;

use super::catalogue::TypeRow;
use super::*;
use crate::change::{ColumnType, Decimal, Instant, Interval, Scalar};

const MOOD: u32 = 90_001;
const MOODS: u32 = 90_002;
const ADDR: u32 = 90_003;
const ADDRS: u32 = 90_004;
const PRICE: u32 = 90_005;
const NET_PRICE: u32 = 90_006;
const MATRIX: u32 = 90_007;
const LIST: u32 = 90_008;
const LISTS: u32 = 90_009;
const HSTORE: u32 = 90_010;
const HSTORES: u32 = 90_011;
const CITEXT: u32 = 90_012;
const LTREE: u32 = 90_013;
const ISBN: u32 = 90_014;
const GEOMETRY: u32 = 90_015;
const FLOATRANGE: u32 = 90_016;
const PRICES: u32 = 90_017;

/// A database with types of its own, as [`TYPE_QUERY`] tells them.
fn catalogue() -> TypeCatalogue {
    let row = |oid, name: &str, letter, element_oid, base_oid, base_typmod, dimensions| TypeRow {
        oid,
        name: name.to_owned(),
        namespace: "public".to_owned(),
        letter,
        element_oid,
        delimiter: b',',
        base_oid,
        base_typmod,
        dimensions,
        labels: vec!["sad".to_owned(), "ok".to_owned()],
    };
    let mut catalogue = TypeCatalogue::new();
    for row in [
        row(MOOD, "mood", b'e', 0, 0, -1, 0),
        row(MOODS, "_mood", b'b', MOOD, 0, -1, 0),
        row(ADDR, "addr", b'c', 0, 0, -1, 0),
        row(ADDRS, "_addr", b'b', ADDR, 0, -1, 0),
        row(PRICE, "price", b'd', 0, 1700, (8 << 16 | 3) + 4, 0),
        row(NET_PRICE, "net_price", b'd', 0, PRICE, -1, 0),
        row(MATRIX, "matrix", b'd', 0, 1007, -1, 2),
        row(LIST, "list", b'd', 0, 1007, -1, 1),
        row(LISTS, "_list", b'b', LIST, 0, -1, 0),
        row(HSTORE, "hstore", b'b', 0, 0, -1, 0),
        row(HSTORES, "_hstore", b'b', HSTORE, 0, -1, 0),
        row(CITEXT, "citext", b'b', 0, 0, -1, 0),
        row(LTREE, "ltree", b'b', 0, 0, -1, 0),
        row(ISBN, "isbn", b'b', 0, 0, -1, 0),
        row(GEOMETRY, "geometry", b'b', 0, 0, -1, 0),
        row(FLOATRANGE, "floatrange", b'r', 0, 0, -1, 0),
        row(PRICES, "_price", b'b', PRICE, 0, -1, 0),
    ] {
        catalogue.insert(row.into());
    }
    catalogue
}

/// A scalar as text: one notation for all checks.
fn show(scalar: Scalar<'_>, out: &mut String) -> Result<(), ValueError> {
    let written = match scalar {
        Scalar::Null => write!(out, "null"),
        Scalar::Unavailable => write!(out, "unavailable"),
        Scalar::Bool(value) => write!(out, "{value}"),
        Scalar::Int(value) => write!(out, "{value}"),
        Scalar::Float32(value) => write!(out, "{value:?}f"),
        Scalar::Float64(value) => write!(out, "{value:?}"),
        Scalar::Decimal(Decimal::Finite(digits)) => {
            let sign = if digits.negative { "-" } else { "" };
            write!(out, "{sign}{}|{}", digits.integer, digits.fraction)
        }
        Scalar::Decimal(Decimal::Scaled { unscaled, scale }) => write!(out, "{unscaled}e-{scale}"),
        Scalar::Decimal(special) => write!(out, "{special:?}"),
        Scalar::Date(at) | Scalar::Timestamp(at) | Scalar::ZonedTimestamp(at) => match at {
            Instant::At(at) => write!(out, "{at}"),
            end => write!(out, "{end:?}"),
        },
        Scalar::Time(micros) => write!(out, "{micros}"),
        Scalar::ZonedTime { micros, offset_seconds } => write!(out, "{micros} {offset_seconds:+}"),
        Scalar::Interval(Interval::Finite(parts)) => {
            write!(out, "{}m {}d {}us", parts.months, parts.days, parts.micros)
        }
        Scalar::Interval(end) => write!(out, "{end:?}"),
        Scalar::Text(text) => write!(out, "{text:?}"),
        Scalar::Bytes(bytes) => {
            let mut copy = Vec::new();
            bytes.append_to(&mut copy);
            write!(out, "{copy:x?}")
        }
        Scalar::Bits(bits) => write!(out, "{}", String::from_utf8_lossy(bits.0)),
        Scalar::Point { x, y } => write!(out, "{x:?} {y:?}"),
        Scalar::Sequence(elements) => {
            out.push('[');
            elements.visit(&mut |element| {
                out.push_str(if out.ends_with('[') { "" } else { ", " });
                show(element, out)
            })?;
            write!(out, "]")
        }
        Scalar::Geometry { wkb, srid } => write!(out, "{} bytes, {srid:?}", wkb.len()),
        Scalar::KeyValues(pairs) => return pairs.write_json(&mut |piece| out.push_str(piece)),
    };
    written.unwrap();
    Ok(())
}

fn read(column: &ResolvedColumn, raw: &[u8]) -> Result<String, ValueError> {
    let mut out = String::new();
    show(column.parser.parse(raw)?, &mut out).map(|()| out)
}

#[track_caller]
fn check_bytes(oid: u32, raw: &[u8], expect: &str) {
    let column = resolve(oid, -1, None, &catalogue(), None);
    assert_eq!(read(&column, raw).as_deref(), Ok(expect), "{}", column.native.name);
}

#[track_caller]
fn check(oid: u32, raw: &str, expect: &str) {
    check_bytes(oid, raw.as_bytes(), expect);
}

#[track_caller]
fn refused(oid: u32, raw: &str) {
    let column = resolve(oid, -1, None, &catalogue(), None);
    let error = read(&column, raw.as_bytes()).unwrap_err();
    assert!(matches!(error, ValueError::Malformed { .. }), "{error}");
    assert!(raw.len() < 4 || !error.to_string().contains(raw), "the value is in: {error}");
}

#[test]
fn truth_values() {
    check(16, "t", "true");
    check(16, "f", "false");
    for raw in ["", "true", "T", "1"] {
        refused(16, raw);
    }
}

#[test]
fn integers() {
    check(21, "-32768", "-32768");
    check(21, "32767", "32767");
    check(23, "-2147483648", "-2147483648");
    check(23, "2147483647", "2147483647");
    check(20, "-9223372036854775808", "-9223372036854775808");
    check(20, "9223372036854775807", "9223372036854775807");
    check(20, "999999999999999999", "999999999999999999");
    check(20, "1000000000000000000", "1000000000000000000");
    check(26, "4294967295", "4294967295");
    check(26, "0", "0");
    for (oid, raw) in [
        (21, "32768"),
        (21, "-32769"),
        (23, "2147483648"),
        (20, "9223372036854775808"),
        (20, "-9223372036854775809"),
        (20, "99999999999999999999999"),
        (26, "4294967296"),
        (26, "-1"),
        (23, ""),
        (23, "-"),
        (23, "+1"),
        (23, " 1"),
        (23, "1 "),
        (23, "1.0"),
        (23, "--1"),
        (20, "1000000000000000000x"),
    ] {
        refused(oid, raw);
    }
}

#[test]
fn floats() {
    check(701, "NaN", "NaN");
    check(701, "Infinity", "inf");
    check(701, "-Infinity", "-inf");
    check(701, "-0", "-0.0");
    check(701, "5e-324", "5e-324");
    check(701, "1.7976931348623157e+308", "1.7976931348623157e308");
    check(701, "123456789012345.67", "123456789012345.67");
    check(700, "3.4028235e+38", "3.4028235e38f");
    check(700, "1e-45", "1e-45f");
    check(700, "1.1", "1.1f");
    check(700, "-Infinity", "-inff");
    check(700, "NaN", "NaNf");
    for raw in ["", "inf", "nan", "infinity", "+1", "1e999", "0x1", "1e", ".5", "-", "1_0", "-.5"] {
        refused(701, raw);
        refused(700, raw);
    }
    refused(700, "1e39");
}

#[test]
fn decimals() {
    check(1700, "0", "0|");
    check(1700, "1.10", "1|10");
    check(1700, "-0.5", "-0|5");
    check(1700, "0.00000000000000000001", "0|00000000000000000001");
    check(
        1700,
        "12345678901234567890123456789012345678901234567890.1234",
        "12345678901234567890123456789012345678901234567890|1234",
    );
    check(1700, "NaN", "NaN");
    check(1700, "Infinity", "PositiveInfinity");
    check(1700, "-Infinity", "NegativeInfinity");
    for raw in ["", "-", ".5", "5.", "1e5", "1,5", "+1", "nan", "1.2.3"] {
        refused(1700, raw);
    }
}

#[test]
fn amounts_of_money() {
    check(790, "$0.00", "0e-2");
    check(790, "$1,234.56", "123456e-2");
    check(790, "-$0.01", "-1e-2");
    check(790, "($1,234.56)", "-123456e-2");
    check(790, "$92,233,720,368,547,758.07", "9223372036854775807e-2");
    check(790, "-$92,233,720,368,547,758.08", "-9223372036854775808e-2");
    for raw in ["", "$", "$1", "$1.0", "$1.000", "1,23 €", "$1.234,56", "($1.00", "$1.00)", "£1.00"]
    {
        refused(790, raw);
    }
    refused(790, "$92,233,720,368,547,758.08");
}

#[test]
fn dates() {
    check(1082, "1970-01-01", "0");
    check(1082, "2024-02-29", "19782");
    check(1082, "0001-01-01", "-719162");
    check(1082, "0001-12-31 BC", "-719163");
    check(1082, "1991-02-10 BC", "-1446320");
    check(1082, "4713-01-01 BC", "-2440550");
    check(1082, "10000-01-01", "2932897");
    check(1082, "5874897-12-31", "2145042905");
    check(1082, "infinity", "PositiveInfinity");
    check(1082, "-infinity", "NegativeInfinity");
    for raw in [
        "",
        "2023-02-29",
        "2023-13-01",
        "2023-00-01",
        "2023-01-00",
        "23-01-01",
        "2023-1-1",
        "0000-01-01",
        "01.02.2024",
        "2024-01-01 AD",
        "2024-01-01 BC ",
        "Infinity",
        "99999999-01-01",
        "-2024-01-01",
    ] {
        refused(1082, raw);
    }
}

#[test]
fn times_of_day() {
    check(1083, "00:00:00", "0");
    check(1083, "12:34:56.789012", "45296789012");
    check(1083, "12:34:56.7", "45296700000");
    check(1083, "23:59:59.999999", "86399999999");
    check(1083, "24:00:00", "86400000000");
    check(1266, "12:34:56+02", "45296000000 +7200");
    check(1266, "24:00:00-15:59:59", "86400000000 -57599");
    check(1266, "00:00:00.5+15:59", "500000 +57540");
    check(1266, "00:00:00-03:30", "0 -12600");
    for raw in [
        "",
        "24:00:01",
        "24:00:00.000001",
        "25:00:00",
        "12:60:00",
        "12:00:60",
        "1:00:00",
        "12:00",
        "12:00:00.",
        "12:00:00.1234567",
        "12:00:00 PM",
    ] {
        refused(1083, raw);
    }
    for raw in [
        "12:00:00",
        "12:00:00+16",
        "12:00:00+1",
        "12:00:00Z",
        "12:00:00+02:60",
        "12:00:00+02:00:00:00",
    ] {
        refused(1266, raw);
    }
}

#[test]
fn timestamps() {
    check(1114, "1970-01-01 00:00:00", "0");
    check(1114, "1969-12-31 23:59:59.999999", "-1");
    check(1114, "0001-01-01 00:00:00", "-62135596800000000");
    check(1114, "0044-03-15 12:00:00.5 BC", "-63517780799500000");
    check(1114, "4713-01-01 00:00:00 BC", "-210863520000000000");
    check(1114, "294247-01-10 04:00:54.775807", "9223372036854775807");
    check(1114, "294276-12-31 23:59:59.999999", "9224318015999999999");
    check(1114, "infinity", "PositiveInfinity");
    check(1114, "-infinity", "NegativeInfinity");
    check(1184, "1900-01-01 00:00:00+00", "-2208988800000000");
    check(1184, "0001-12-31 23:40:28+00 BC", "-62135597972000000");
    check(1184, "2024-02-01 15:30:00+05:30", "1706781600000000");
    check(1184, "2024-02-01 05:00:00-05", "1706781600000000");
    check(1184, "294276-12-31 23:59:59.999999+00", "9224318015999999999");
    for raw in [
        "",
        "2024-01-01",
        "2024-01-01T00:00:00",
        "2024-01-01 00:00:00+00",
        "01.02.2024 10:00:00",
        "2024-02-30 00:00:00",
        "now",
    ] {
        refused(1114, raw);
    }
    for raw in ["2024-01-01 00:00:00", "2024-02-01 15:30:00 IST", "2024-01-01 00:00:00 BC+00"] {
        refused(1184, raw);
    }
}

#[test]
fn intervals() {
    check(1186, "00:00:00", "0m 0d 0us");
    check(1186, "1 year 2 mons -3 days +04:05:06.789", "14m -3d 14706789000us");
    check(1186, "-1 years -2 mons +3 days -04:05:06.7", "-14m 3d -14706700000us");
    check(1186, "-178000000 years", "-2136000000m 0d 0us");
    check(
        1186,
        "178956970 years 7 mons 2147483647 days 2562047788:00:54.775807",
        "2147483647m 2147483647d 9223372036854775807us",
    );
    check(
        1186,
        "-178956970 years -8 mons -2147483648 days -2562047788:00:54.775808",
        "-2147483648m -2147483648d -9223372036854775808us",
    );
    check(1186, "1 mon", "1m 0d 0us");
    check(1186, "1 day", "0m 1d 0us");
    check(1186, "1 day -00:00:01", "0m 1d -1000000us");
    check(1186, "-1 years +11 mons", "-1m 0d 0us");
    check(1186, "100000:00:00", "0m 0d 360000000000000us");
    check(1186, "-00:00:00.000001", "0m 0d -1us");
    check(1186, "infinity", "PositiveInfinity");
    check(1186, "-infinity", "NegativeInfinity");
    for raw in [
        "",
        "1",
        "1 2:00:00",
        "P1Y",
        "@ 1 year",
        "1 year 1 year",
        "1 day 1 mon",
        "1 day ",
        "1 day  1:00:00",
        "00:00:00 1 day",
        "00:60:00",
        "00:00:60",
        "1 fortnight",
        "2562047788:00:54.775808",
        "99999999999999999999 days",
        "1-2",
        "1:2:3",
    ] {
        refused(1186, raw);
    }
}

#[test]
fn texts() {
    check(25, "", "\"\"");
    check(1043, "a\tb", "\"a\\tb\"");
    check(1042, "ab    ", "\"ab    \"");
    check(19, "n", "\"n\"");
    check(18, "x", "\"x\"");
    check(114, "{\"a\":1,  \"a\":2}", "\"{\\\"a\\\":1,  \\\"a\\\":2}\"");
    check(142, "<a/>", "\"<a/>\"");
    check(869, "192.168.1.5/24", "\"192.168.1.5/24\"");
    check(3904, "[1,6)", "\"[1,6)\"");
    check(4451, "{[1,3),[5,7)}", "\"{[1,3),[5,7)}\"");
    check(3614, "'a':1 'fat':2A", "\"'a':1 'fat':2A\"");
    check(3220, "16/B374D848", "\"16/B374D848\"");
    check(ADDR, "(\"Main, \"\"st\"\" 1\",)", "\"(\\\"Main, \\\"\\\"st\\\"\\\" 1\\\",)\"");
    check(MOOD, "ok", "\"ok\"");
    check(CITEXT, "MiXed", "\"MiXed\"");
    check(2950, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\"");
    for raw in [
        "",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1",
        "a0eebc999c0b4ef8bb6d6bb9bd380a11",
        "g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    ] {
        refused(2950, raw);
    }
}

#[test]
fn text_that_is_not_utf8_is_refused_with_its_place() {
    for oid in [25, 1042, 114, 142, 869, MOOD, ADDR, CITEXT] {
        let column = resolve(oid, -1, None, &catalogue(), None);
        assert_eq!(read(&column, b"ab\xff\xfe"), Err(ValueError::Encoding { at: 2 }));
    }
}

#[test]
fn bytes_and_bits_and_points() {
    check(17, "\\x", "[]");
    check(17, "\\x00ff41", "[0, ff, 41]");
    check(1560, "1", "1");
    check(1562, "", "");
    check(1562, "10101", "10101");
    check(600, "(1.5,-2.25)", "1.5 -2.25");
    check(600, "(1e+300,-1e-300)", "1e300 -1e-300");
    check(600, "(NaN,-Infinity)", "NaN -inf");
    for raw in ["", "\\", "\\x0", "\\x0g", "\\000\\377", "00ff"] {
        refused(17, raw);
    }
    refused(1560, "102");
    for raw in ["", "(1,2", "1,2", "(1,2,3)", "(1,)", "(1,2) "] {
        refused(600, raw);
    }
}

#[test]
fn arrays() {
    check(1007, "{}", "[]");
    check(1007, "{1,NULL,3}", "[1, null, 3]");
    check(1007, "[0:2]={7,8,9}", "[7, 8, 9]");
    check(1007, "[-1:0]={1,NULL}", "[1, null]");
    check(1009, r#"{"NULL",NULL,"a\"b\\c","",","}"#, r#"["NULL", null, "a\"b\\c", "", ","]"#);
    check(1009, r#"{"null"," g ","{}",é}"#, r#"["null", " g ", "{}", "é"]"#);
    check(1231, "{1,2.50,NaN}", "[1|, 2|50, NaN]");
    check(1000, "{t,f}", "[true, false]");
    check(1001, r#"{"\\x00ff","\\x"}"#, "[[0, ff], []]");
    check(
        1115,
        r#"{"2024-02-29 12:34:56.789012",infinity}"#,
        "[1709210096789012, PositiveInfinity]",
    );
    check(1185, r#"{"2024-02-29 12:34:56+00"}"#, "[1709210096000000]");
    check(1187, r#"{"1 day 02:03:04.5",00:00:01}"#, "[0m 1d 7384500000us, 0m 0d 1000000us]");
    check(791, "{$1.50,\"-$1,000.00\"}", "[150e-2, -100000e-2]");
    check(1003, "{n1,n2}", r#"["n1", "n2"]"#);
    check(1561, "{1010,0001}", "[1010, 0001]");
    check(1017, "{\"(1,2)\"}", "[1.0 2.0]");
    check(1020, "{(1,1),(0,0);(2,2),(1,1)}", r#"["(1,1),(0,0)", "(2,2),(1,1)"]"#);
    check(3221, "{16/B374D848}", r#"["16/B374D848"]"#);
    check(MOODS, "{sad,NULL,\"blue, dark\"}", r#"["sad", null, "blue, dark"]"#);
    check(
        ADDRS,
        r#"{"(a,b)","(\"Main, \"\"st\"\" 1\",)"}"#,
        r#"["(a,b)", "(\"Main, \"\"st\"\" 1\",)"]"#,
    );
    check(HSTORES, r#"{"\"a\"=>\"1\"",NULL}"#, r#"[{"a":"1"}, null]"#);
    check(PRICES, "{1.500}", "[1|500]");
    for raw in [
        "",
        "{",
        "}",
        "{1",
        "{1,}",
        "{,1}",
        "{1}}",
        "{1} ",
        "{1 ",
        "1,2",
        "{\"1}",
        "{\"1\"2}",
        "{1\"2\"}",
        "{1,NULLX}",
        "[0:2={1}",
        "[a]={1}",
        "[0:0]=",
        "={1}",
        "{\"1\\",
        "{{",
    ] {
        let column = resolve(1007, -1, None, &catalogue(), None);
        assert!(read(&column, raw.as_bytes()).is_err(), "{raw}");
    }
}

#[test]
fn arrays_of_more_dimensions_are_refused_in_columns_of_one() {
    for raw in ["{{1,2},{3,4}}", "[1:1][2:3]={{5,6}}", "{{{1}}}"] {
        let column = resolve(1007, -1, Some(1), &catalogue(), None);
        let error = read(&column, raw.as_bytes()).unwrap_err();
        assert!(matches!(error, ValueError::Unrepresentable(_)), "{error}");
    }
}

#[test]
fn key_value_pairs() {
    check(HSTORE, "", "{}");
    check(HSTORE, r#""a"=>"1""#, r#"{"a":"1"}"#);
    check(HSTORE, r#""a"=>"1", "q\""=>"x,y", "b c"=>NULL"#, r#"{"a":"1","q\"":"x,y","b c":null}"#);
    check(HSTORE, r#"""=>"NULL", "\\"=>"""#, r#"{"":"NULL","\\":""}"#);
    for raw in [
        "a=>1",
        "\"a\"",
        "\"a\"=>",
        "\"a\"=>null",
        "\"a\"=>\"1\",",
        "\"a\"=>\"1\", ",
        "\"a\"=>\"1\"\"b\"=>\"2\"",
        "\"a",
    ] {
        refused(HSTORE, raw);
    }
}

#[track_caller]
fn resolves(oid: u32, typmod: i32, dimensions: i16, name: &str, kind: &ColumnType) {
    let column = resolve(oid, typmod, Some(dimensions), &catalogue(), None);
    assert_eq!((column.native.name.as_str(), &column.kind), (name, kind));
    assert_eq!((column.native.id, column.native.modifier), (oid, typmod));
}

fn opaque(name: &str) -> ColumnType {
    ColumnType::Opaque { type_name: name.to_owned() }
}

fn list(element: ColumnType) -> ColumnType {
    ColumnType::Array(Box::new(element))
}

#[test]
fn modifiers_decide_precision_scale_and_length() {
    resolves(1700, -1, 0, "numeric", &ColumnType::VariableDecimal);
    let decimal = |precision, scale| ColumnType::Decimal { precision, scale };
    resolves(1700, 655_366, 0, "numeric(10,2)", &decimal(10, 2));
    resolves(1700, 329_730, 0, "numeric(5,-2)", &decimal(5, -2));
    resolves(1700, 196_619, 0, "numeric(3,7)", &decimal(3, 7));
    resolves(1231, 655_368, 1, "numeric(10,4)[]", &list(decimal(10, 4)));
    resolves(1083, -1, 0, "time without time zone", &ColumnType::Time { precision: 6 });
    resolves(1083, 0, 0, "time(0) without time zone", &ColumnType::Time { precision: 0 });
    resolves(1114, 3, 0, "timestamp(3) without time zone", &ColumnType::Timestamp { precision: 3 });
    resolves(
        1184,
        2,
        0,
        "timestamp(2) with time zone",
        &ColumnType::ZonedTimestamp { precision: 2 },
    );
    resolves(1560, 1, 0, "bit(1)", &ColumnType::Bits { length: Some(1) });
    resolves(1562, -1, 0, "bit varying", &ColumnType::Bits { length: None });
    resolves(1561, 4, 1, "bit(4)[]", &list(ColumnType::Bits { length: Some(4) }));
    resolves(1043, 14, 0, "character varying(10)", &ColumnType::Text);
}

#[test]
fn domains_are_what_is_below_them() {
    let price = ColumnType::Decimal { precision: 8, scale: 3 };
    resolves(PRICE, -1, 0, "public.price", &price);
    resolves(NET_PRICE, -1, 0, "public.net_price", &price);
    resolves(PRICES, -1, 1, "public.price[]", &list(price));
    resolves(LIST, -1, 0, "public.list", &list(ColumnType::Int32));
    resolves(MATRIX, -1, 0, "public.matrix", &opaque("integer[][]"));
    resolves(LISTS, -1, 1, "public.list[]", &opaque("public.list[]"));
}

#[test]
fn arrays_declared_with_dimensions_stay_text() {
    resolves(1007, -1, 1, "integer[]", &list(ColumnType::Int32));
    resolves(1007, -1, 2, "integer[]", &opaque("integer[][]"));
    resolves(1231, 655_368, 3, "numeric(10,4)[]", &opaque("numeric(10,4)[][][]"));
    let column = resolve(1007, -1, Some(2), &catalogue(), None);
    assert_eq!(read(&column, b"{{1,2},{3,4}}").as_deref(), Ok("\"{{1,2},{3,4}}\""));
}

#[test]
fn no_type_is_dropped() {
    for (oid, name) in [
        (3220, "pg_lsn"),
        (3615, "tsquery"),
        (28, "xid"),
        (2205, "regclass"),
        (4451, "int4multirange"),
        (4072, "jsonpath"),
        (603, "box"),
        (718, "circle"),
        (22, "int2vector"),
        (ADDR, "public.addr"),
        (FLOATRANGE, "public.floatrange"),
    ] {
        resolves(oid, -1, 0, name, &opaque(name));
    }
    resolves(GEOMETRY, 9, 0, "public.geometry", &ColumnType::Geometry { geodetic: false });
    resolves(ADDRS, -1, 1, "public.addr[]", &list(opaque("public.addr")));
    resolves(1020, -1, 1, "box[]", &list(opaque("box")));
    resolves(90_999, -1, 0, "type 90999", &opaque("type 90999"));
}

#[test]
fn extensions_are_told_by_name() {
    resolves(HSTORE, -1, 0, "public.hstore", &ColumnType::KeyValues);
    resolves(HSTORES, -1, 1, "public.hstore[]", &list(ColumnType::KeyValues));
    resolves(CITEXT, -1, 0, "public.citext", &ColumnType::Text);
    resolves(LTREE, -1, 0, "public.ltree", &ColumnType::LabelTree);
    resolves(ISBN, -1, 0, "public.isbn", &ColumnType::Text);
}

#[test]
fn a_type_that_is_gone_is_what_the_stream_says_of_it() {
    let told = |namespace, name| {
        let wire = Some(WireType { namespace, name });
        let column = resolve(90_999, -1, None, &TypeCatalogue::new(), wire);
        (column.native.name, column.kind)
    };
    assert_eq!(told("", "int4"), ("integer".to_owned(), ColumnType::Int32));
    assert_eq!(told("", "_int4"), ("integer[]".to_owned(), list(ColumnType::Int32)));
    assert_eq!(told("public", "int4"), ("public.int4".to_owned(), opaque("public.int4")));
    assert_eq!(told("public", "citext"), ("public.citext".to_owned(), ColumnType::Text));
    let vector = |half| ColumnType::Vector { half };
    assert_eq!(told("app", "vector"), ("app.vector".to_owned(), vector(false)));
    assert_eq!(told("app", "halfvec"), ("app.halfvec".to_owned(), vector(true)));
    assert_eq!(told("app", "sparsevec"), ("app.sparsevec".to_owned(), opaque("sparsevec")));
    let globe = ColumnType::Geometry { geodetic: true };
    assert_eq!(told("app", "geography"), ("app.geography".to_owned(), globe));
    assert_eq!(told("app", "mood"), ("app.mood".to_owned(), opaque("app.mood")));
}

#[test]
fn unlisted_labels_are_found() {
    let catalogue = catalogue();
    let label = |oid, raw: &str| {
        let column = resolve(oid, -1, None, &catalogue, None);
        column.labels.unwrap().first_unknown(raw.as_bytes())
    };
    assert_eq!(label(MOOD, "ok"), None);
    assert_eq!(label(MOOD, "happy").as_deref(), Some("happy"));
    assert_eq!(label(MOODS, "{sad,NULL,ok}"), None);
    assert_eq!(label(MOODS, "{sad,happy,glad}").as_deref(), Some("happy"));
    assert_eq!(label(MOODS, "{sad"), None);
    assert!(resolve(25, -1, None, &catalogue, None).labels.is_none());
}

/// Reads a value of an extension's type, told by name.
fn told(name: &str, raw: &str) -> Option<String> {
    let wire = Some(WireType { namespace: "public", name });
    let column = resolve(90_999, -1, None, &TypeCatalogue::new(), wire);
    read(&column, raw.as_bytes()).ok()
}

#[track_caller]
fn check_told(name: &str, raw: &str, expect: Option<&str>) {
    assert_eq!(told(name, raw).as_deref(), expect, "{name} {raw}");
}

#[test]
fn vectors_are_lists_of_numbers() {
    check_told("vector", "[1,2.5,-3e-05]", Some("[1.0, 2.5, -3e-5]"));
    check_told("vector", "[0.1]", Some("[0.1]"));
    check_told("halfvec", "[1,65504]", Some("[1.0f, 65504.0f]"));
    for malformed in ["", "[", "[1", "[1,]", "[,1]", "[1]x", "[a]", "{1}", "[1 ,2]"] {
        check_told("vector", malformed, None);
        check_told("halfvec", malformed, None);
    }
}

#[test]
fn geometries_tell_their_reference_system() {
    let point = "000000000000F03F0000000000000040";
    check_told("geometry", &format!("0101000000{point}"), Some("21 bytes, None"));
    check_told("geometry", &format!("0101000020E6100000{point}"), Some("25 bytes, Some(4326)"));
    check_told("geography", &format!("0020000001000010E6{point}"), Some("25 bytes, Some(4326)"));
    for malformed in ["", "01", "0101000", "0101000020E610", "0201000000", "zz01000000"] {
        check_told("geometry", malformed, None);
    }
}

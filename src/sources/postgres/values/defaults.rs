//! A column's default expression → what a schema can show of it.
//!
//! Reads the text of the server's `pg_get_expr`, once per table version. A default is shown only for
//! the types for which readers of Debezium's schemas know one. Knows no schema. **Invariant:** a
//! literal is shown only if it is certain to be the value that the server fills in; the text of
//! an expression is never taken for its value.
//!
//! | expression | shown as |
//! | --- | --- |
//! | `5`, `true`, `'x'::text`, `('x'::text)::character varying(3)` | literal, if every cast keeps it |
//! | `now()`, `nextval('s'::regclass)`, `(md5('x'::text))::uuid`, `(now() + …)` | computed |
//! | `NULL::integer`, `CURRENT_DATE`, `(1 + 2)`, `('2022-01-01'::date + 1)` | nothing |
//!
//! What begins with a function's call counts as computed, and any other expression as nothing: that
//! is where Debezium draws the line as well, and a schema's type zero would be an invention anyway.

use super::catalogue::{TypeCatalogue, TypeFacts, TypeKind};
use super::resolve::ResolvedColumn;
use super::scan::Scan;
use super::temporal::MICROS_PER_DAY;
use super::type_name::character_limit;
use crate::change::{ColumnDefault, ColumnType, Decimal, Instant, Interval, Scalar};

/// What a schema can show of a column's default.
///
/// `expression` is `pg_get_expr(adbin, 0)` of `pg_attrdef`, read in a session with pinned
/// settings (`search_path=pg_catalog`, `standard_conforming_strings=on` and the display settings).
/// It must be `None` for a generated column, whose expression is no default; an identity column
/// has none.
pub fn column_default(
    expression: Option<&str>,
    column: &ResolvedColumn,
    catalogue: &TypeCatalogue,
) -> Option<ColumnDefault> {
    let expression = expression?;
    let facts = catalogue.facts(column.native.id)?;
    if !is_understood(facts) {
        return None;
    }
    if begins_with_call(expression) {
        return Some(ColumnDefault::Computed);
    }
    let mut scan = Scan::new(expression.as_bytes());
    let constant = constant(&mut scan, 0)?;
    scan.end()?;
    cell(&constant, column, facts).map(ColumnDefault::Literal)
}

fn is_understood(facts: &TypeFacts) -> bool {
    let built_in = matches!(
        facts.name.as_str(),
        "bool"
            | "int2"
            | "int4"
            | "int8"
            | "float4"
            | "float8"
            | "numeric"
            | "text"
            | "varchar"
            | "bpchar"
            | "json"
            | "jsonb"
            | "xml"
            | "uuid"
            | "bit"
            | "varbit"
            | "date"
            | "time"
            | "timestamp"
            | "timestamptz"
            | "interval"
    );
    matches!(facts.kind, TypeKind::Enum { .. }) || (facts.is_built_in() && built_in)
}

/// Whether a function is called first, behind one parenthesis at most.
fn begins_with_call(expression: &str) -> bool {
    let mut scan = Scan::new(expression.as_bytes());
    scan.eat(b'(');
    loop {
        if scan.peek() == Some(b'"') {
            if quoted_identifier(&mut scan).is_none() {
                return false;
            }
        } else if scan.take_while(is_word).is_empty() {
            return false;
        }
        if !scan.eat(b'.') {
            return scan.eat(b'(');
        }
    }
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// A literal and the types that it is cast to, innermost first.
struct Constant {
    text: Vec<u8>,
    form: Form,
    casts: Vec<Cast>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// In quotes: any type's text.
    Quoted,
    /// A bare number.
    Number,
    /// `true` or `false`.
    Truth,
}

/// `::character varying(3)`: the name without modifier and quotes, and the modifier's first number.
struct Cast {
    name: String,
    modifier: Option<u32>,
}

/// Parentheses deeper than this are no default that anybody wrote.
const MAX_DEPTH: u8 = 16;

fn constant(scan: &mut Scan<'_>, depth: u8) -> Option<Constant> {
    let mut constant = match scan.peek()? {
        b'(' if depth < MAX_DEPTH => {
            scan.next();
            let inner = constant(scan, depth.checked_add(1)?)?;
            scan.expect(b')')?;
            inner
        }
        b'\'' | b'B' => {
            scan.eat(b'B');
            Constant { text: quoted_literal(scan)?, form: Form::Quoted, casts: Vec::new() }
        }
        _ => bare(scan)?,
    };
    while scan.eat_all(b"::") {
        constant.casts.push(cast(scan)?);
    }
    Some(constant)
}

/// A number, `true` or `false`. `NULL`, `CURRENT_DATE` and the like are none of these.
fn bare(scan: &mut Scan<'_>) -> Option<Constant> {
    let word = scan.take_while(|byte| is_word(byte) || matches!(byte, b'.' | b'-'));
    let form = match word {
        b"true" | b"false" => Form::Truth,
        _ if super::numbers::numeric(word).is_some() => Form::Number,
        _ => return None,
    };
    Some(Constant { text: word.to_vec(), form, casts: Vec::new() })
}

/// Only the quote itself is doubled (`simple_quote_literal` of `utils/adt/ruleutils.c`).
fn quoted_literal(scan: &mut Scan<'_>) -> Option<Vec<u8>> {
    scan.expect(b'\'')?;
    let mut text = Vec::new();
    loop {
        text.extend_from_slice(scan.take_while(|byte| byte != b'\''));
        scan.expect(b'\'')?;
        if !scan.eat(b'\'') {
            return Some(text);
        }
        text.push(b'\'');
    }
}

fn quoted_identifier(scan: &mut Scan<'_>) -> Option<String> {
    scan.expect(b'"')?;
    let mut name = Vec::new();
    loop {
        name.extend_from_slice(scan.take_while(|byte| byte != b'"'));
        scan.expect(b'"')?;
        if !scan.eat(b'"') {
            return String::from_utf8(name).ok();
        }
        name.push(b'"');
    }
}

/// A type's name as `format_type` writes it. The modifier may stand inside of it.
fn cast(scan: &mut Scan<'_>) -> Option<Cast> {
    let mut cast = Cast { name: String::new(), modifier: None };
    loop {
        match scan.peek() {
            Some(b'"') => cast.name.push_str(&quoted_identifier(scan)?),
            Some(b'(') if cast.modifier.is_none() => {
                scan.next();
                cast.modifier = Some(u32::try_from(scan.number()?).ok()?);
                scan.take_while(|byte| matches!(byte, b',' | b'-' | b'0'..=b'9'));
                scan.expect(b')')?;
            }
            _ => {
                let part = scan.take_while(|byte| is_word(byte) || matches!(byte, b' ' | b'.'));
                if part.is_empty() {
                    break;
                }
                cast.name.push_str(std::str::from_utf8(part).ok()?);
            }
        }
    }
    Some(cast)
}

/// The constant as the column's cells would have it, if that is certain.
fn cell(constant: &Constant, column: &ResolvedColumn, facts: &TypeFacts) -> Option<Vec<u8>> {
    let text = match &column.kind {
        ColumnType::Bool if constant.form == Form::Truth && only(constant, &["boolean"]) => {
            if constant.text == b"true" {
                b"t".to_vec()
            } else {
                b"f".to_vec()
            }
        }
        ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64
            if only(constant, &["smallint", "integer", "bigint", "numeric"]) =>
        {
            constant.text.clone()
        }
        ColumnType::Float32 if only(constant, &["real", "numeric"]) => constant.text.clone(),
        ColumnType::Float64 if only(constant, &["double precision", "numeric"]) => {
            constant.text.clone()
        }
        ColumnType::Decimal { scale, .. } if only(constant, &["numeric"]) => {
            at_scale(&constant.text, *scale)?
        }
        ColumnType::VariableDecimal if only(constant, &["numeric"]) => constant.text.clone(),
        ColumnType::Text => characters(constant, column, facts)?,
        ColumnType::Json if only(constant, &[facts.name.as_str()]) => constant.text.clone(),
        ColumnType::Xml if only(constant, &["xml"]) => constant.text.clone(),
        ColumnType::Uuid if only(constant, &["uuid"]) => constant.text.clone(),
        ColumnType::Bits { length } if only(constant, &["bit", "bit varying"]) => {
            bits(&constant.text, *length, facts)?
        }
        ColumnType::Enum { labels }
            if constant.form == Form::Quoted && constant.casts.len() == 1 =>
        {
            labels.iter().find(|label| label.as_bytes() == constant.text)?.as_bytes().to_vec()
        }
        _ => moment(constant, column)?,
    };
    reads_back(&text, column).then_some(text)
}

/// Whether all casts are to these types, without modifiers: casts that keep the text.
fn only(constant: &Constant, names: &[&str]) -> bool {
    let fits = |cast: &Cast| names.contains(&cast.name.as_str()) && cast.modifier.is_none();
    constant.casts.iter().all(fits)
}

/// Whether the column's own parser reads it, and can show it.
fn reads_back(text: &[u8], column: &ResolvedColumn) -> bool {
    match column.parser.parse(text) {
        Ok(Scalar::Decimal(value)) => matches!(value, Decimal::Finite(_)),
        Ok(_) => true,
        Err(_) => false,
    }
}

/// A decimal with exactly the column's digits after the point. What would have to be rounded is
/// not shown; the cast that rounds it is not part of the expression's text.
fn at_scale(text: &[u8], scale: i32) -> Option<Vec<u8>> {
    let Some(Decimal::Finite(digits)) = super::numbers::numeric(text) else {
        return None;
    };
    let wanted = usize::try_from(scale).unwrap_or(0);
    let (kept, cut) = digits.fraction.split_at_checked(wanted).unwrap_or((digits.fraction, ""));
    let below_units = usize::try_from(scale.checked_neg()?).unwrap_or(0);
    let zeros = |text: &str| text.bytes().all(|digit| digit == b'0');
    let rounded = digits.integer.bytes().rev().take(below_units).any(|digit| digit != b'0');
    if !zeros(cut) || rounded {
        return None;
    }
    let mut out = Vec::new();
    out.extend_from_slice(if digits.negative { b"-" } else { b"" });
    out.extend_from_slice(digits.integer.as_bytes());
    if wanted > 0 {
        out.push(b'.');
        out.extend_from_slice(kept.as_bytes());
        out.resize(out.len().checked_add(wanted.checked_sub(kept.len())?)?, b'0');
    }
    Some(out)
}

/// Text that no cast cuts. A default of `character(n)` stays without padding, as Debezium shows it.
fn characters(constant: &Constant, column: &ResolvedColumn, facts: &TypeFacts) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(&constant.text).ok()?;
    let length = u32::try_from(text.chars().count()).ok()?;
    for cast in &constant.casts {
        let blanks_lost = match cast.name.as_str() {
            "text" | "character varying" => false,
            "bpchar" | "character" => facts.name != "bpchar",
            _ => return None,
        };
        if cast.modifier.is_some_and(|limit| length > limit) || (blanks_lost && text.ends_with(' '))
        {
            return None;
        }
    }
    let limit = character_limit(column.native.modifier);
    (limit.is_none_or(|limit| length <= limit)).then(|| constant.text.clone())
}

/// A bit string of the column's length.
fn bits(text: &[u8], length: Option<u32>, facts: &TypeFacts) -> Option<Vec<u8>> {
    let bits = u32::try_from(text.len()).ok()?;
    let fits = match length {
        Some(length) if facts.name == "varbit" => bits <= length,
        Some(length) => bits == length,
        None => true,
    };
    fits.then(|| text.to_vec())
}

/// Dates, times, intervals: nothing below the column's precision, which would be rounded away.
fn moment(constant: &Constant, column: &ResolvedColumn) -> Option<Vec<u8>> {
    let mut text = constant.text.clone();
    let (name, precision) = match &column.kind {
        ColumnType::Date => ("date", 6),
        ColumnType::Time { precision } => ("time without time zone", *precision),
        ColumnType::Timestamp { precision } => ("timestamp without time zone", *precision),
        ColumnType::ZonedTimestamp { precision } => ("timestamp with time zone", *precision),
        ColumnType::Interval => ("interval", interval_precision(column.native.modifier)?),
        _ => return None,
    };
    let day = matches!(column.kind, ColumnType::Timestamp { .. })
        && text.len() == "YYYY-MM-DD".len()
        && only(constant, &["date"]);
    if day {
        text.extend_from_slice(b" 00:00:00");
    } else if constant.casts.is_empty() || constant.casts.iter().any(|cast| cast.name != name) {
        return None;
    }
    let finest = constant.casts.iter().filter_map(|cast| cast.modifier).min();
    let precision = finest.map_or(u32::from(precision), |finest| finest.min(precision.into()));
    let micros = match column.parser.parse(&text).ok()? {
        Scalar::Time(micros) => micros,
        Scalar::Timestamp(Instant::At(micros)) | Scalar::ZonedTimestamp(Instant::At(micros)) => {
            i64::try_from(micros.checked_rem_euclid(MICROS_PER_DAY.into())?).ok()?
        }
        Scalar::Interval(Interval::Finite(parts)) => parts.micros,
        _ => 0,
    };
    let unit = 10_i64.checked_pow(6_u32.checked_sub(precision)?)?;
    (micros.checked_rem(unit)? == 0).then_some(text)
}

/// Digits of an interval's seconds. `None`: the column keeps only some fields (`year to month`).
fn interval_precision(typmod: i32) -> Option<u8> {
    let Ok(packed) = u32::try_from(typmod) else {
        return Some(6);
    };
    let all_fields = (packed >> 16) & 0x7fff == 0x7fff;
    all_fields
        .then(|| u8::try_from(packed & 0xffff).ok().filter(|digits| *digits <= 6).unwrap_or(6))
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::TypeRow;
    use super::super::resolve::resolve;
    use super::*;

    const TONE: u32 = 90_001;
    const DOMAIN: u32 = 90_002;

    fn catalogue() -> TypeCatalogue {
        let mut catalogue = TypeCatalogue::new();
        let row = |oid, letter, base_oid| TypeRow {
            oid,
            name: "tone".to_owned(),
            namespace: "public".to_owned(),
            letter,
            element_oid: 0,
            delimiter: b',',
            base_oid,
            base_typmod: -1,
            dimensions: 0,
            labels: vec!["low".to_owned(), "high".to_owned()],
        };
        catalogue.insert(row(TONE, b'e', 0).into());
        catalogue.insert(row(DOMAIN, b'd', 23).into());
        catalogue
    }

    #[track_caller]
    fn shown((oid, typmod): (u32, i32), expression: &str) -> Option<ColumnDefault> {
        let catalogue = catalogue();
        let column = resolve(oid, typmod, None, &catalogue, None);
        column_default(Some(expression), &column, &catalogue)
    }

    #[track_caller]
    fn literal(column: (u32, i32), expression: &str, expect: &str) {
        let expect = ColumnDefault::Literal(expect.as_bytes().to_vec());
        assert_eq!(shown(column, expression), Some(expect));
    }

    #[track_caller]
    fn computed(column: (u32, i32), expression: &str) {
        assert_eq!(shown(column, expression), Some(ColumnDefault::Computed));
    }

    #[track_caller]
    fn nothing(column: (u32, i32), expression: &str) {
        assert_eq!(shown(column, expression), None);
    }

    const BOOL: (u32, i32) = (16, -1);
    const INT2: (u32, i32) = (21, -1);
    const INT4: (u32, i32) = (23, -1);
    const INT8: (u32, i32) = (20, -1);
    const REAL: (u32, i32) = (700, -1);
    const DOUBLE: (u32, i32) = (701, -1);
    const NUMERIC: (u32, i32) = (1700, -1);
    const NUMERIC_10_2: (u32, i32) = (1700, (10 << 16 | 2) + 4);
    const NUMERIC_5_MINUS_2: (u32, i32) = (1700, 329_730);
    const TEXT: (u32, i32) = (25, -1);
    const VARCHAR: (u32, i32) = (1043, -1);
    const VARCHAR_3: (u32, i32) = (1043, 7);
    const CHAR_4: (u32, i32) = (1042, 8);
    const UUID: (u32, i32) = (2950, -1);
    const DATE: (u32, i32) = (1082, -1);
    const TIME: (u32, i32) = (1083, -1);
    const TIMESTAMP: (u32, i32) = (1114, -1);
    const TIMESTAMP_3: (u32, i32) = (1114, 3);
    const TIMESTAMPTZ: (u32, i32) = (1184, -1);
    const INTERVAL: (u32, i32) = (1186, -1);

    /// All expressions are the server's own text of them.
    #[test]
    fn literals_are_shown_as_cells() {
        literal(INT4, "1234", "1234");
        literal(INT4, "'-7'::integer", "-7");
        literal(INT2, "3", "3");
        literal(INT8, "'-9223372036854775808'::bigint", "-9223372036854775808");
        literal(BOOL, "true", "t");
        literal(BOOL, "false", "f");
        literal(REAL, "1.5", "1.5");
        literal(DOUBLE, "'10000000000'::numeric", "10000000000");
        literal(DOUBLE, "'NaN'::double precision", "NaN");
        literal(NUMERIC, "3.50", "3.50");
        literal(NUMERIC, "'-1.5'::numeric", "-1.5");
        literal(NUMERIC_10_2, "1.00", "1.00");
        literal(NUMERIC_10_2, "2", "2.00");
        literal(NUMERIC_10_2, "'-0.5000'::numeric", "-0.50");
        literal(NUMERIC_5_MINUS_2, "12300", "12300");
        literal(TEXT, "'it''s \\ ::back'::text", "it's \\ ::back");
        literal(TEXT, "''::text", "");
        literal(TEXT, "5", "5");
        literal(VARCHAR, "'x'::character varying(3)", "x");
        literal(VARCHAR, "('x'::character varying)::character varying(3)", "x");
        literal(CHAR_4, "'ab'::bpchar", "ab");
        literal((114, -1), "'[\"it''s\"]'::json", "[\"it's\"]");
        literal((3802, -1), "'{\"a\": 1}'::jsonb", "{\"a\": 1}");
        literal((142, -1), "'<a/>'::xml", "<a/>");
        literal((1560, 3), "'101'::\"bit\"", "101");
        literal((1560, 1), "B'1'::\"bit\"", "1");
        literal((1562, -1), "'11'::\"bit\"", "11");
        literal((1562, 5), "'11'::\"bit\"", "11");
        literal((TONE, -1), "'high'::public.tone", "high");
        let uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        literal(UUID, &format!("'{uuid}'::uuid"), uuid);
    }

    #[test]
    fn literal_moments_are_shown_as_cells() {
        literal(DATE, "'2020-02-29'::date", "2020-02-29");
        literal(DATE, "'0044-03-15 BC'::date", "0044-03-15 BC");
        literal(TIME, "'12:30:00.5'::time without time zone", "12:30:00.5");
        let day = "2020-02-29 01:02:03";
        literal(TIMESTAMP, &format!("'{day}'::timestamp without time zone"), day);
        literal(TIMESTAMP, "'2020-01-01'::date", "2020-01-01 00:00:00");
        literal(
            TIMESTAMP_3,
            "('2020-01-01 00:00:00.5'::timestamp without time zone)::timestamp(3) without time zone",
            "2020-01-01 00:00:00.5",
        );
        let instant = "2020-02-29 01:02:03+00";
        literal(TIMESTAMPTZ, &format!("'{instant}'::timestamp with time zone"), instant);
        literal(INTERVAL, "'1 day 02:00:00'::interval", "1 day 02:00:00");
        literal((1186, 0x7fff_0000), "'00:00:02'::interval(0)", "00:00:02");
    }

    #[test]
    fn calls_are_computed() {
        computed(INT4, "nextval('public.preset_id_seq'::regclass)");
        computed(INT4, "length('four'::text)");
        computed(UUID, "(md5('x'::text))::uuid");
        computed(UUID, "public.\"Make\"()");
        computed(TIMESTAMPTZ, "(now() + '1 day'::interval)");
        computed(TIMESTAMPTZ, "CURRENT_TIMESTAMP(3)");
        computed(INT4, "COALESCE(NULL::integer, 5)");
    }

    #[test]
    fn other_expressions_are_not_taken_for_literals() {
        nothing(INT4, "(1 + 2)");
        nothing(INT4, "NULL::integer");
        nothing(TEXT, "NULL::character varying");
        nothing(DATE, "('2022-01-01'::date + 1)");
        nothing(DATE, "('now'::text)::date");
        nothing(DATE, "CURRENT_DATE");
        nothing(TEXT, "CURRENT_USER");
        nothing(TEXT, "('x'::text || lower('Y'::text))");
        nothing(TEXT, "('x'::text COLLATE \"C\")");
        nothing(BOOL, "(NOT true)");
        nothing(BOOL, "(1)::boolean");
        nothing(INT4, "((random() * (100)::double precision))::integer");
        nothing(TEXT, "'x");
        nothing(TEXT, "'x'::");
        nothing(TEXT, "((((((((((((((((((((((((((((((((((((((((");
        nothing(INT4, "");
    }

    #[test]
    fn literals_that_a_cast_changes_are_not_shown() {
        nothing(INT4, "1.7");
        nothing(NUMERIC, "(3.7)::integer");
        nothing(NUMERIC_10_2, "1.005");
        nothing(NUMERIC_5_MINUS_2, "12340");
        nothing(NUMERIC, "'NaN'::numeric");
        nothing(VARCHAR, "'abcdef'::character varying(3)");
        nothing(VARCHAR_3, "'abcdef'::character varying");
        nothing(TEXT, "'ab  '::bpchar");
        nothing(DOUBLE, "(0.1)::real");
        nothing((1560, 5), "'101'::\"bit\"");
        nothing(TIMESTAMP_3, "'2020-01-01 00:00:00.123456'::timestamp without time zone");
        nothing(TIMESTAMPTZ, "'2020-01-01'::date");
        nothing((1186, 458_751), "'1 day'::interval");
        nothing(TEXT, "'2020-01-01'::date");
    }

    #[test]
    fn types_without_shown_defaults_have_none() {
        nothing((26, -1), "5");
        nothing((790, -1), "2.5");
        nothing((17, -1), "'\\x01'::bytea");
        nothing((1007, -1), "'{1,2}'::integer[]");
        nothing((869, -1), "'10.0.0.1'::inet");
        nothing((1266, -1), "'10:00:00+02'::time with time zone");
        nothing((19, -1), "'nm'::name");
        nothing((DOMAIN, -1), "5");
        nothing((99_999, -1), "5");
    }
}

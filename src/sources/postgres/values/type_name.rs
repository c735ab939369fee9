//! Types' names as people write them, with modifiers.
//!
//! The same text as the server's `format_type` under `search_path=pg_catalog`
//! (`utils/adt/format_type.c`), made from facts and modifier, because the stream has only numbers.
//! Knows no neutral type. Modifiers of extension types are their own secret, and are not shown.

use super::catalogue::{TypeCatalogue, TypeFacts, TypeKind};

/// The name of a type with its modifier (−1: none).
pub(super) fn type_name(facts: &TypeFacts, typmod: i32, catalogue: &TypeCatalogue) -> String {
    if let TypeKind::Array { element_oid, .. } = facts.kind
        && let Some(element) = catalogue.facts(element_oid)
        && !matches!(element.kind, TypeKind::Array { .. })
    {
        return format!("{}[]", type_name(element, typmod, catalogue));
    }
    if facts.is_built_in() { built_in_name(&facts.name, typmod) } else { qualified(facts) }
}

/// The name with the schema that it is in; built-in types stand alone.
fn qualified(facts: &TypeFacts) -> String {
    format!("{}.{}", quoted(&facts.namespace), quoted(&facts.name))
}

fn quoted(identifier: &str) -> String {
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    let digit_first = identifier.as_bytes().first().is_none_or(u8::is_ascii_digit);
    if !digit_first && identifier.bytes().all(plain) {
        identifier.to_owned()
    } else {
        format!("\"{}\"", identifier.replace('"', "\"\""))
    }
}

fn built_in_name(name: &str, typmod: i32) -> String {
    let (base, suffix, modifier) = match name {
        "bool" => return "boolean".to_owned(),
        "int2" => return "smallint".to_owned(),
        "int4" => return "integer".to_owned(),
        "int8" => return "bigint".to_owned(),
        "float4" => return "real".to_owned(),
        "float8" => return "double precision".to_owned(),
        // A type of its own: `char` without quotes is `character(1)`.
        "char" => return "\"char\"".to_owned(),
        // `bit` and `character` without modifier would mean a length of 1.
        "bit" if typmod < 0 => return "\"bit\"".to_owned(),
        "bpchar" if typmod < 0 => return "bpchar".to_owned(),
        "bit" => ("bit", "", length(typmod)),
        "varbit" => ("bit varying", "", length(typmod)),
        "bpchar" => ("character", "", characters(typmod)),
        "varchar" => ("character varying", "", characters(typmod)),
        "numeric" => ("numeric", "", numeric_modifier(typmod)),
        "time" => ("time", " without time zone", length(typmod)),
        "timetz" => ("time", " with time zone", length(typmod)),
        "timestamp" => ("timestamp", " without time zone", length(typmod)),
        "timestamptz" => ("timestamp", " with time zone", length(typmod)),
        "interval" => ("interval", "", interval_modifier(typmod)),
        _ => return name.to_owned(),
    };
    format!("{base}{modifier}{suffix}")
}

fn length(typmod: i32) -> String {
    if typmod < 0 { String::new() } else { format!("({typmod})") }
}

fn characters(typmod: i32) -> String {
    character_limit(typmod).map(|limit| format!("({limit})")).unwrap_or_default()
}

fn numeric_modifier(typmod: i32) -> String {
    numeric_limits(typmod)
        .map(|(precision, scale)| format!("({precision},{scale})"))
        .unwrap_or_default()
}

/// The most characters that `character varying(n)` and `character(n)` hold. The modifier counts the
/// length word of old as well (VARHDRSZ).
pub(super) fn character_limit(typmod: i32) -> Option<u32> {
    u32::try_from(typmod.checked_sub(4)?).ok()
}

/// Precision and scale of `numeric(p,s)`. The scale has 11 bits with a sign from PostgreSQL 15; a
/// scale of older servers is at most 1000, and reads the same (`make_numeric_typmod`).
pub(super) fn numeric_limits(typmod: i32) -> Option<(u32, i32)> {
    let packed = u32::try_from(typmod.checked_sub(4)?).ok()?;
    let scale = i32::try_from((packed & 0x7ff) ^ 1024).ok()?.checked_sub(1024)?;
    Some((packed >> 16, scale))
}

/// Fields and precision of an interval: bits of fields in the upper half, precision in the lower
/// (`intervaltypmodout`; bit numbers from `utils/datetime.h`).
fn interval_modifier(typmod: i32) -> String {
    const YEAR: u32 = 1 << 2;
    const MONTH: u32 = 1 << 1;
    const DAY: u32 = 1 << 3;
    const HOUR: u32 = 1 << 10;
    const MINUTE: u32 = 1 << 11;
    const SECOND: u32 = 1 << 12;
    const FULL_RANGE: u32 = 0x7fff;
    const FULL_PRECISION: u32 = 0xffff;
    const FIELDS: &[(u32, &str)] = &[
        (YEAR, " year"),
        (MONTH, " month"),
        (DAY, " day"),
        (HOUR, " hour"),
        (MINUTE, " minute"),
        (SECOND, " second"),
        (YEAR | MONTH, " year to month"),
        (DAY | HOUR, " day to hour"),
        (DAY | HOUR | MINUTE, " day to minute"),
        (DAY | HOUR | MINUTE | SECOND, " day to second"),
        (HOUR | MINUTE, " hour to minute"),
        (HOUR | MINUTE | SECOND, " hour to second"),
        (MINUTE | SECOND, " minute to second"),
    ];
    let Ok(packed) = u32::try_from(typmod) else {
        return String::new();
    };
    let (range, precision) = ((packed >> 16) & FULL_RANGE, packed & FULL_PRECISION);
    let fields = FIELDS.iter().find(|(bits, _)| *bits == range).map_or("", |(_, text)| text);
    if precision == FULL_PRECISION { fields.to_owned() } else { format!("{fields}({precision})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(oid: u32, typmod: i32, expect: &str) {
        let catalogue = TypeCatalogue::new();
        assert_eq!(type_name(catalogue.facts(oid).unwrap(), typmod, &catalogue), expect);
    }

    /// Number, modifier and text as `format_type` of a server gave them.
    #[test]
    fn names_are_those_of_format_type() {
        check(16, -1, "boolean");
        check(1560, -1, "\"bit\"");
        check(1560, 1, "bit(1)");
        check(1561, 1, "bit(1)[]");
        check(1562, -1, "bit varying");
        check(1562, 7, "bit varying(7)");
        check(1042, -1, "bpchar");
        check(1042, 5, "character(1)");
        check(1014, -1, "bpchar[]");
        check(18, -1, "\"char\"");
        check(1043, 24, "character varying(20)");
        check(1015, 7, "character varying(3)[]");
        check(1700, -1, "numeric");
        check(1700, 329_730, "numeric(5,-2)");
        check(1700, 196_619, "numeric(3,7)");
        check(1231, 655_368, "numeric(10,4)[]");
        check(1186, 470_286_339, "interval day to second(3)");
        check(1186, 458_751, "interval year to month");
        check(1186, 2_147_418_114, "interval(2)");
        check(1186, 402_718_719, "interval minute to second");
        check(1186, -1, "interval");
        check(1114, 0, "timestamp(0) without time zone");
        check(1184, 3, "timestamp(3) with time zone");
        check(1183, 0, "time(0) without time zone[]");
        check(1266, -1, "time with time zone");
        check(869, -1, "inet");
        check(2205, -1, "regclass");
    }

    #[test]
    fn names_of_users_are_qualified_and_quoted_where_needed() {
        let facts = TypeFacts {
            oid: 90_001,
            name: "Mood \"x\"".to_owned(),
            namespace: "app".to_owned(),
            kind: TypeKind::Composite,
        };
        assert_eq!(type_name(&facts, -1, &TypeCatalogue::new()), "app.\"Mood \"\"x\"\"\"");
    }
}

//! A column's type as a Java driver describes it: upper-case name, length, scale.
//!
//! These are the numbers that `column.propagate.source.type` publishes, and the lengths to which
//! hashes are cut. They are those of pgjdbc's `TypeInfoCache` (`getPrecision`, `getScale`,
//! `getDisplaySize`), observed for each type. Pure.

use super::catalogue::{TypeCatalogue, TypeKind};
use super::type_name::{character_limit, numeric_limits};
use crate::change::DeclaredType;

/// Java's largest int: a length without limit.
const UNLIMITED: u32 = i32::MAX.unsigned_abs();
/// Domains over domains are followed so far.
const MAX_DEPTH: u8 = 64;

/// Describes a type; `default` is the column's default expression, if it has one.
pub fn declared_type(
    type_oid: u32,
    typmod: i32,
    default: Option<&str>,
    catalogue: &TypeCatalogue,
) -> DeclaredType {
    let Some(facts) = catalogue.facts(type_oid) else {
        return DeclaredType { name: String::new(), length: UNLIMITED, scale: Some(0) };
    };
    let counts = default.is_some_and(|default| default.contains("nextval("));
    let name = match facts.name.as_str() {
        "int2" if counts => "smallserial",
        "int4" if counts => "serial",
        "int8" if counts => "bigserial",
        name => name,
    };
    let (length, scale) = limits(type_oid, typmod, catalogue);
    DeclaredType { name: name.to_uppercase(), length, scale }
}

/// Length and scale: of an array its elements', of a domain its base type's.
fn limits(type_oid: u32, typmod: i32, catalogue: &TypeCatalogue) -> (u32, Option<i32>) {
    let (mut oid, mut typmod) = (type_oid, typmod);
    for _ in 0..MAX_DEPTH {
        let Some(facts) = catalogue.facts(oid) else { break };
        match facts.kind {
            TypeKind::Array { element_oid, .. } => oid = element_oid,
            TypeKind::Domain { base_oid, base_typmod, .. } => {
                oid = base_oid;
                typmod = base_typmod;
            }
            _ if facts.is_built_in() => return built_in(&facts.name, typmod),
            _ => break,
        }
    }
    (UNLIMITED, Some(0))
}

fn built_in(name: &str, typmod: i32) -> (u32, Option<i32>) {
    let whole = |length| (length, Some(0));
    // The modifier of times is the number of digits; without one there are six, and a point.
    let digits = u32::try_from(typmod).ok();
    let seconds = |before: u32| {
        let fraction =
            digits.map_or(7, |digits| if digits == 0 { 0 } else { digits.saturating_add(1) });
        (
            before.saturating_add(fraction),
            Some(digits.and_then(|digits| digits.try_into().ok()).unwrap_or(6)),
        )
    };
    match name {
        "bool" | "char" => whole(1),
        "int2" => whole(5),
        "int4" | "oid" => whole(10),
        "int8" => whole(19),
        "float4" => (8, Some(8)),
        "float8" => (17, Some(17)),
        "numeric" => match numeric_limits(typmod) {
            Some((precision, scale)) => (precision, Some(scale)),
            None => (0, None),
        },
        "bpchar" | "varchar" => whole(character_limit(typmod).unwrap_or(UNLIMITED)),
        "bit" | "varbit" => whole(digits.unwrap_or(UNLIMITED)),
        "date" => whole(13),
        "time" => seconds(8),
        "timetz" => seconds(14),
        "timestamp" => seconds(22),
        "timestamptz" => seconds(28),
        "interval" => (49, Some(digits.map_or(6, |typmod| interval_digits(typmod & 0xffff)))),
        _ => whole(UNLIMITED),
    }
}

/// An interval's modifier has the digits in its lower half; all bits set: as many as there are.
fn interval_digits(lower: u32) -> i32 {
    i32::try_from(lower).ok().filter(|digits| *digits <= 6).unwrap_or(6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, typmod: i32, default: Option<&str>, expect: (&str, u32, Option<i32>)) {
        let catalogue = TypeCatalogue::new();
        let oid = catalogue.built_in(name).map_or(0, |facts| facts.oid);
        let declared = declared_type(oid, typmod, default, &catalogue);
        assert_eq!((declared.name.as_str(), declared.length, declared.scale), expect, "{name}");
    }

    #[test]
    fn types_are_described_as_the_java_driver_does() {
        check("int4", -1, None, ("INT4", 10, Some(0)));
        check("int4", -1, Some("nextval('t_id_seq'::regclass)"), ("SERIAL", 10, Some(0)));
        check("int8", -1, Some("nextval('s'::regclass)"), ("BIGSERIAL", 19, Some(0)));
        check("varchar", 24, None, ("VARCHAR", 20, Some(0)));
        check("varchar", -1, None, ("VARCHAR", UNLIMITED, Some(0)));
        check("bpchar", 7, None, ("BPCHAR", 3, Some(0)));
        check("numeric", (5 << 16 | 2) + 4, None, ("NUMERIC", 5, Some(2)));
        check("numeric", -1, None, ("NUMERIC", 0, None));
        check("float4", -1, None, ("FLOAT4", 8, Some(8)));
        check("timestamp", 3, None, ("TIMESTAMP", 26, Some(3)));
        check("timestamp", -1, None, ("TIMESTAMP", 29, Some(6)));
        check("timestamptz", -1, None, ("TIMESTAMPTZ", 35, Some(6)));
        check("time", 2, None, ("TIME", 11, Some(2)));
        check("interval", -1, None, ("INTERVAL", 49, Some(6)));
        check("varbit", 7, None, ("VARBIT", 7, Some(0)));
        check("_varchar", 11, None, ("_VARCHAR", 7, Some(0)));
        check("money", -1, None, ("MONEY", UNLIMITED, Some(0)));
    }
}

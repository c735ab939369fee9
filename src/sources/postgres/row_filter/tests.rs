//! What is compiled, what is refused and where, and what is sent to the server.

use std::sync::Arc;

use super::*;
use crate::change::{BeforeImage, Cell, Column, DeclaredType, RowImage, TableId, TableVersion};
use crate::filter::{Image, Truth};
use crate::sources::postgres::catalogue::{ColumnFacts, TableFacts, testing};
use crate::sources::postgres::values::{TypeCatalogue, TypeFacts, TypeKind, resolve};
use crate::sources::postgres::wire::ReplicaIdentity;

/// Columns of all kinds: name, type, collation.
const COLUMNS: &[(&str, u32, TextOrder)] = &[
    ("i2", 21, TextOrder::Unknown),
    ("i4", 23, TextOrder::Unknown),
    ("i8", 20, TextOrder::Unknown),
    ("n", 1700, TextOrder::Unknown),
    ("f4", 700, TextOrder::Unknown),
    ("f8", 701, TextOrder::Unknown),
    ("b", 16, TextOrder::Unknown),
    ("t", 25, TextOrder::Locale),
    ("c", 25, TextOrder::Bytewise),
    ("loose", 25, TextOrder::Loose),
    ("v", 1043, TextOrder::Locale),
    ("p", 1042, TextOrder::Locale),
    ("d", 1082, TextOrder::Unknown),
    ("ts", 1114, TextOrder::Unknown),
    ("tz", 1184, TextOrder::Unknown),
    ("tm", 1083, TextOrder::Unknown),
    ("u", 2950, TextOrder::Unknown),
    ("by", 17, TextOrder::Unknown),
    ("j", 3802, TextOrder::Unknown),
    ("iv", 1186, TextOrder::Unknown),
    ("Odd \"name", 23, TextOrder::Unknown),
];

fn version(types: &TypeCatalogue) -> TableVersion {
    let column = |(name, oid, _): &(&str, u32, TextOrder)| {
        let resolved = resolve(*oid, -1, None, types, None);
        Column {
            name: (*name).to_owned(),
            kind: resolved.kind,
            nullable: true,
            default: None,
            native: resolved.native,
            declared: DeclaredType::default(),
            identity: true,
            comment: None,
            parser: resolved.parser,
        }
    };
    TableVersion {
        table: TableId { namespace: "public".to_owned(), name: "t".to_owned() },
        native_id: 1,
        epoch: 1,
        fingerprint: 1,
        columns: COLUMNS.iter().map(column).collect(),
        key: Vec::new(),
        before_image: BeforeImage::Full,
        identity: "full".to_owned(),
        comment: None,
    }
}

fn facts() -> TableFacts {
    let column = |(name, oid, text_order): &(&str, u32, TextOrder)| ColumnFacts {
        text_order: *text_order,
        ..testing::column(1, name, *oid)
    };
    TableFacts {
        replica_identity: ReplicaIdentity::Full,
        ..testing::table(COLUMNS.iter().map(column).collect())
    }
}

fn compiled(text: &str) -> Result<Predicate, String> {
    let (types, facts) = (TypeCatalogue::new(), facts());
    let version = version(&types);
    let scope = Scope { version: &version, facts: Some(&facts), types: &types };
    compile_text(text, &scope).map_err(|refusal| format!("{}, at {}", refusal.why, refusal.at))
}

/// The SQL that is sent.
#[track_caller]
fn check_sql(text: &str, expect: &str) {
    assert_eq!(compiled(text).map(|predicate| predicate.sql).as_deref(), Ok(expect));
}

/// Part of the reason for which it is refused.
#[test]
fn a_text_that_is_not_understood_names_its_columns_all_the_same() {
    let version = version(&TypeCatalogue::new());
    let named = |text: &str| {
        let columns = named_columns(text, &version);
        columns.iter().map(|index| version.columns[*index].name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(named("lower(t) = 'x' AND I4 = 1 OR t = 'y'"), ["t", "i4"]);
    assert_eq!(named("\"Odd \"\"name\" && D > d '2020-01-01'"), ["Odd \"name", "d"]);
    assert_eq!(named("f(1) = 1::n AND CAST(1 AS i8) = b(1)"), Vec::<String>::new());
    assert_eq!(named("i4 = 'open"), Vec::<String>::new());
}

#[track_caller]
fn check_refused(text: &str, expect: &str) {
    let why = compiled(text).map(|predicate| predicate.sql).expect_err("refused");
    assert!(why.contains(expect), "{text}: {why}");
}

/// Part of the reason for which a configuration with it is refused.
#[track_caller]
fn check_malformed(text: &str, expect: &str) {
    let fault = check_syntax(text).expect_err("refused");
    assert!(fault.message().contains(expect), "{fault}");
}

/// The value of a predicate over one column; `None` is NULL, `?` a value that was not sent.
#[track_caller]
fn check_value(text: &str, cell: Option<&str>, expect: Truth) {
    let predicate = compiled(text).expect("compiled");
    let raw = cell.unwrap_or_default();
    let of_column = match cell {
        None => Cell::Null,
        Some("?") => Cell::Unavailable,
        Some(text) => Cell::Raw { start: 0, len: u32::try_from(text.len()).expect("short") },
    };
    let cells = vec![of_column; COLUMNS.len()];
    let row = RowImage { bytes: raw.as_bytes(), before: None, after: Some(&cells), reread: &[] };
    let truth = predicate.node.evaluate(&Image::new(row, &cells));
    assert_eq!(truth, Ok(expect), "{text} of {cell:?}");
}

#[test]
fn what_is_sent_is_what_was_understood() {
    check_sql(
        "i4=1 and not b or t like 'a%'",
        r#"((("i4" = (1)) AND (NOT "b")) OR ("t" LIKE 'a%'))"#,
    );
    check_sql("I4 <> -5", r#"("i4" <> (-5))"#);
    check_sql(r#""Odd ""name" in (1, 2, null)"#, r#"("Odd ""name" IN ((1), (2), NULL))"#);
    check_sql("t = 'it''s'", r#"("t" = 'it''s')"#);
    check_sql("i8 not between 1 and 2", r#"(NOT ("i8" BETWEEN (1) AND (2)))"#);
}

#[test]
fn what_is_not_evaluated_is_refused_with_its_place() {
    check_refused("TRY_CAST(i4 AS bigint) = 1", "not a column, a literal or a simple cast");
    check_refused("i4 == 1", "the operator == is not evaluated, at line 1, column 4");
    check_refused("i4 = 1 && i8 = 2", "the operator && is not evaluated: write AND");
    check_refused("i4 = 1 AND x = 2", "single quotes: 'x'), at line 1, column 12");
    check_refused("now() > ts", "functions are not evaluated");
    check_refused("ts > current_timestamp", "");
    check_refused("i4 + 1 = 2", "the operator + is not evaluated here");
    check_refused("t < 'a'", "collation, which is not C");
    check_refused("loose = 'a'", "non-deterministic");
    check_refused("t ILIKE 'a'", "ILIKE");
    check_refused("i4 IN (SELECT 1)", "IN is evaluated with a list only");
    check_refused("tz = '2024-01-01'", "depends on the session");
    check_refused("ts = 'now'", "another value each time");
    check_refused("j = '1'", "the type jsonb is not compared with a literal");
    check_refused("i4 = 'x'", "'x' is no value of the type int4");
    check_refused("i4 = 1 garbage", "more than one condition");
    check_refused("i4 =", "it is no SQL");
    check_refused("user = 'a'", "");
    check_refused("'a' = 'a'", "two constants");
    check_refused("i4", "a condition is needed");
    check_refused("n = f8", "numeric column");
    check_refused("t = 1", "is not compared");
    check_refused("d = tz", "is not compared");
    check_refused("t LIKE v", "the pattern of LIKE");
    check_refused(r"t LIKE 'a\'", "ends with its escape");
    check_refused("i4 =\n", "it is no SQL");
    check_refused("i4 IN (1", "line 1, column 9");
    let deep = |count: usize| format!("{}b{}", "(".repeat(count), ")".repeat(count));
    let nots = |count: usize| format!("{}b", "NOT ".repeat(count));
    check_malformed(&deep(51), "nested more than 50 deep, at line 1, column 51");
    check_malformed(&"(".repeat(5000), "nested more than 50 deep, at line 1, column 51");
    check_malformed(&nots(3000), "nested more than 50 deep, at line 1, column 201");
    check_malformed(&"x".repeat(20_000), "more than 16384, at line 1, column 16385");
    for deepest in [deep(50), nots(50), format!("{}b{}", "(b AND ".repeat(50), ")".repeat(50))] {
        check_syntax(&deepest).expect("nested as deep as may be");
        let joined = format!("({deepest}) IS NOT TRUE");
        compiled(&format!("({joined}) OR ({deepest})")).expect("as filters are joined");
    }
    check_refused(&format!("i4 = 1{}", " IS NULL".repeat(500)), "nested too deeply");
    check_refused("ts = 'epoch'", "a moment is understood as");
    check_refused("ts = 'J2451545'", "a moment is understood as");
    check_refused("ts = 'Tomorrow'", "another value each time");
}

/// Beside the enum `e` (of 'sad', 'ok'), which is ordered by its definition.
fn enum_refusal(text: &str) -> Option<String> {
    const MOOD: u32 = 90_000;
    let mut types = TypeCatalogue::new();
    types.insert(TypeFacts {
        oid: MOOD,
        name: "mood".to_owned(),
        namespace: "public".to_owned(),
        kind: TypeKind::Enum { labels: ["sad".to_owned(), "ok".to_owned()].into() },
    });
    let mut version = version(&types);
    let resolved = resolve(MOOD, -1, None, &types, None);
    let column = version.columns.first_mut()?;
    (column.name, column.native, column.parser) =
        ("e".to_owned(), resolved.native, resolved.parser);
    let scope = Scope { version: &version, facts: None, types: &types };
    let refused = compile_text(text, &scope).err()?;
    Some(format!("{}, at {}", refused.why, refused.at))
}

#[test]
fn enums_are_compared_for_equality_only() {
    for equal in
        ["e = 'ok'", "e <> 'ok'", "e IN ('ok', 'sad')", "e IS DISTINCT FROM 'ok'", "e IS NULL"]
    {
        assert_eq!(enum_refusal(equal), None, "{equal}");
    }
    for order in [
        "e > 'ok'",
        "e < 'ok'",
        "e >= 'ok'",
        "e <= 'ok'",
        "'ok' < e",
        "e < e",
        "e BETWEEN 'ok' AND 'sad'",
        "e NOT BETWEEN 'ok' AND 'sad'",
    ] {
        let why = enum_refusal(order).expect(order);
        assert!(why.contains("only equality is evaluated, at line 1, column"), "{order}: {why}");
    }
}

#[test]
fn an_enum_as_text_is_refused() {
    for text in ["e::text = 'ok'", "e::text LIKE 'o%'", "CAST(e AS varchar) IN ('ok', 'sad')"] {
        let why = enum_refusal(text).expect(text);
        assert!(why.contains("compare the column with labels"), "{text}: {why}");
    }
}

#[test]
fn what_beginners_write_is_refused_with_what_is_meant() {
    check_refused("t = eu", "(a text is written in single quotes: 'eu'), at line 1, column 5");
    check_refused("t = \"eu\"", "(a text is written in single quotes: 'eu')");
    check_refused("nosuch = 1", "there is no column nosuch");
    check_malformed(" where t = 'eu'", "without the word WHERE, at line 1, column 2");
    check_malformed("t = 'eu' ;", "a filter is one condition, without ';', at line 1, column 10");
    check_malformed("t = 'eu'; DROP TABLE t", "without ';'");
    assert_eq!(compiled("\"t\" = 'where'").err(), None);
}

#[test]
fn all_parts_of_a_chain_are_told() {
    let text = "nosuch = 1 AND i4 = 1 AND (now() > ts OR i4 = 'x')\nAND t < 'a'";
    for words in [
        "there is no column nosuch",
        "at line 1, column 1; ",
        "functions are not evaluated",
        "line 1, column 28; ",
        "at line 1, column 47; ",
        "COLLATE \"C\" behind it to compare bytes, at line 2, column 5",
    ] {
        check_refused(text, words);
    }
    let long = "x = 1 AND ".repeat(20) + "x = 1";
    check_refused(&long, "column 71");
    assert!(!compiled(&long).expect_err("refused").contains("column 81"));
}

#[test]
fn nulls_and_values_that_were_not_sent() {
    check_value("i4 < 10", None, Truth::Unknown);
    check_value("NOT i4 < 10", None, Truth::Unknown);
    check_value("i4 < 10", Some("?"), Truth::Missing);
    check_value("i4 IS NULL", None, Truth::True);
    check_value("i4 IS NULL", Some("?"), Truth::Missing);
    check_value("i4 IS NOT NULL", Some("?"), Truth::Missing);
    check_value("i4 < 10 AND false", Some("?"), Truth::False);
    check_value("i4 < 10 OR true", Some("?"), Truth::True);
    check_value("(i4 < 10) IS UNKNOWN", Some("?"), Truth::Missing);
    check_value("(i4 < 10) IS UNKNOWN", None, Truth::True);
    check_value("i4 IS DISTINCT FROM 1", None, Truth::True);
    check_value("i4 IS DISTINCT FROM NULL", Some("?"), Truth::Missing);
    check_value("i4 IN (1, NULL)", Some("1"), Truth::True);
    check_value("i4 IN (1, NULL)", Some("2"), Truth::Unknown);
    check_value("i4 NOT IN (1, NULL)", Some("2"), Truth::Unknown);
    check_value("t LIKE '%x%'", Some("?"), Truth::Missing);
}

#[test]
fn the_servers_odd_corners() {
    check_value("f8 > 'Infinity'", Some("NaN"), Truth::True);
    check_value("n = 'NaN'", Some("NaN"), Truth::True);
    check_value("n = 1.1", Some("1.10"), Truth::True);
    // one element is compared as a double, several as the column's own type
    check_value("f4 = 0.1", Some("0.1"), Truth::False);
    check_value("f4 IN (0.1)", Some("0.1"), Truth::False);
    check_value("f4 IN (0.1, 0.2)", Some("0.1"), Truth::True);
    check_value("i4 = 5.0", Some("5"), Truth::True);
    check_value("i4 IN (5.5, 5.0)", Some("5"), Truth::True);
    check_value("p = 'ab'", Some("ab   "), Truth::True);
    check_value("p = 'ab  '", Some("ab   "), Truth::True);
    check_value("p LIKE 'ab'", Some("ab   "), Truth::False);
    check_value("p = 'ab'::text", Some("ab   "), Truth::True);
    check_value("p = 'ab '::text", Some("ab   "), Truth::False);
    check_value("p::text LIKE 'ab'", Some("ab   "), Truth::True);
    check_value("d = '2024-01-01 23:00'", Some("2024-01-01"), Truth::True);
    check_value("d = timestamp '2024-01-01 23:00'", Some("2024-01-01"), Truth::False);
    check_value("c < 'b'", Some("a"), Truth::True);
    check_value("t COLLATE \"C\" < 'b'", Some("Z"), Truth::True);
    check_value("iv = interval '1 mon'", Some("30 days"), Truth::True);
    check_value("b", Some("t"), Truth::True);
    check_value("b IS NOT TRUE", None, Truth::True);
    check_value(
        "u = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
        Some("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        Truth::True,
    );
}

#[test]
fn a_shared_version_is_not_changed() {
    let types = TypeCatalogue::new();
    let version = Arc::new(version(&types));
    let facts = facts();
    let scope = Scope { version: &version, facts: Some(&facts), types: &types };
    let described = facts.descriptor(false);
    let bound = BoundFilter::bind("i4 = 1", &scope, (&described, &Labels::new())).expect("bound");
    assert_eq!(bound.sql, r#"("i4" = (1))"#);
}

#[test]
fn no_depth_and_no_length_overflows_the_stack() {
    let chains =
        ["b AND ", "b OR ", "i4 = 1 OR ", "(b OR NOT b) AND ", "NOT ", "NOT(", "(", "i4 = -"];
    for chain in chains {
        for count in [30, 45, 200, 16_000 / chain.len()] {
            let text = chain.repeat(count) + "b" + &")".repeat(chain.matches('(').count() * count);
            // whatever comes of it
            drop(compiled(&text));
        }
    }
    for tail in ["::int8", " IS TRUE", " IS NOT NULL", " IS NOT DISTINCT FROM i4", " COLLATE \"C\""]
    {
        for count in [30, 45, 200, 16_000 / tail.len()] {
            drop(compiled(&format!("i4{}", tail.repeat(count))));
            drop(compiled(&format!("b{}", tail.repeat(count))));
        }
    }
}

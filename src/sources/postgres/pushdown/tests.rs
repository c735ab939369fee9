//! What of a publication's row filters is found wanting.

use super::*;
use crate::sources::postgres::catalogue::RelationKind;
use crate::sources::postgres::publication::Member;

const SHOWN: &str = "(v < 10)";

fn table() -> RelationEntry {
    RelationEntry {
        oid: 7,
        namespace: "public".to_owned(),
        name: "t".to_owned(),
        kind: RelationKind::Table,
        is_logged: true,
        partition_of: None,
    }
}

fn selection() -> Selection {
    let pushed = Pushed { sql: "(\"v\" < (10))".to_owned(), shown: SHOWN.to_owned() };
    Selection {
        captured: vec![table()],
        published: vec![table()],
        pushed: BTreeMap::from([(7, pushed)]),
        ..Selection::default()
    }
}

fn facts(row_filter: Option<&str>) -> PublicationFacts {
    let member = Member {
        oid: 7,
        entry: 70,
        namespace: "public".to_owned(),
        name: "t".to_owned(),
        row_filter: row_filter.map(str::to_owned),
        column_list: None,
    };
    PublicationFacts { members: vec![member], ..PublicationFacts::default() }
}

/// What is said of a publication; empty: nothing.
#[track_caller]
fn check(change: impl FnOnce(&mut PublicationFacts), row_filter: Option<&str>, expect: &str) {
    let mut facts = facts(row_filter);
    change(&mut facts);
    let faults = drift("p", &facts, &selection());
    match faults.as_slice() {
        [] => assert_eq!(expect, ""),
        [fault] => {
            assert_eq!(fault.code(), Code::FilterPushdownDrift);
            assert!(!expect.is_empty() && fault.to_string().contains(expect), "{fault}");
        }
        more => panic!("{more:?}"),
    }
}

#[test]
fn only_the_very_filter_will_do() {
    check(|_| {}, Some(SHOWN), "");
    check(|_| {}, Some("(v < 100)"), "has the row filter (v < 100) for \"public.t\"");
    check(|_| {}, None, "has no row filter for \"public.t\", and row.filter.public.t is (v < 10)");
    check(|_| {}, None, "DROP TABLE ONLY \"public\".\"t\"; ALTER PUBLICATION \"p\" ADD TABLE ONLY");
    check(|_| {}, None, "ADD TABLE ONLY \"public\".\"t\" WHERE ((\"v\" < (10))); COMMIT");
}

#[test]
fn what_carries_a_table_otherwise_makes_its_filter_void() {
    check(|facts| facts.scope = Scope::AllTables, None, "all tables");
    check(|facts| facts.schemas.push("public".to_owned()), Some(SHOWN), "the whole schema");
    check(|facts| facts.schemas.push("other".to_owned()), Some(SHOWN), "");
    // that it is not carried at all is told by others
    check(|facts| facts.members.clear(), None, "");
}

#[test]
fn tables_are_listed_with_their_filters() {
    let listed = table_list(&[table()], &selection());
    assert_eq!(listed, r#"ONLY "public"."t" WHERE (("v" < (10)))"#);
    assert_eq!(table_list(&[table()], &Selection::default()), r#"ONLY "public"."t""#);
}

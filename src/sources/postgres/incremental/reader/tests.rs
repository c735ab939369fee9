use super::*;
use crate::sources::postgres::catalogue::testing::table;
use crate::sources::postgres::incremental::work::Aim;

fn facts() -> TableFacts {
    TableFacts { name: "it\"em".to_owned(), ..table(Vec::new()) }
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

fn copied(choice: Choice) -> String {
    let wanted = Wanted {
        facts: Arc::new(facts()),
        work: TableWork::new("public", "it\"em", Aim::Read),
        columns: texts(&["a", "b"]),
        choice,
        rows: 10,
    };
    let range = Range {
        from: "ONLY t".to_owned(),
        within: Some("x".to_owned()),
        scanned: None,
        then: None,
    };
    copy_statement(&wanted, &range)
}

#[test]
fn rows_are_chosen_by_all_conditions() {
    assert_eq!(
        copied(Choice::Rows(texts(&["p OR q", "r"]))),
        r#"COPY (SELECT "a", "b" FROM ONLY t WHERE (x) AND (p OR q) AND (r)) TO STDOUT"#
    );
    assert_eq!(
        copied(Choice::Rows(Vec::new())),
        r#"COPY (SELECT "a", "b" FROM ONLY t WHERE (x)) TO STDOUT"#
    );
}

#[test]
fn moved_rows_are_those_on_which_two_filters_differ() {
    let moved = |before: Option<&str>, now: Option<&str>| {
        copied(Choice::Moved { before: before.map(str::to_owned), now: now.map(str::to_owned) })
    };
    assert_eq!(
        moved(Some("p"), Some("q")),
        "COPY (SELECT ((q) IS TRUE), \"a\", \"b\" FROM ONLY t \
         WHERE (x) AND ((p) IS TRUE) <> ((q) IS TRUE)) TO STDOUT"
    );
    assert_eq!(
        moved(None, Some("q")),
        "COPY (SELECT ((q) IS TRUE), \"a\", \"b\" FROM ONLY t \
         WHERE (x) AND TRUE <> ((q) IS TRUE)) TO STDOUT"
    );
}

#[test]
fn the_fence_is_a_position_that_a_stream_reaches() {
    assert_eq!(fence(Lsn(8192 * 5 + 24), 8192), Lsn(8192 * 5));
    assert_eq!(fence(Lsn(8192 * 5 + 40), 8192), Lsn(8192 * 5));
    assert_eq!(fence(Lsn(8192 * 5 + 48), 8192), Lsn(8192 * 5 + 48));
    assert_eq!(fence(Lsn(77), 0), Lsn(77));
}

fn leaf(oid: u32, file: u32, blocks: u64) -> Leaf {
    Leaf { oid, name: format!("l{oid}"), file, blocks, rows_per_block: 10.0 }
}

/// Leaf, next and end of the cursor after the range, and the range's condition.
#[track_caller]
fn check(
    leaves: &[Leaf],
    known: Option<(u32, u32, u64, u64)>,
    within: Option<(&str, &str)>,
    then: Option<(u32, u64, u64)>,
) {
    let range = next_blocks(7, leaves, known, 30);
    let found = range.as_ref().map(|range| (range.from.as_str(), range.within.as_deref()));
    assert_eq!(found, within.map(|(from, within)| (from, Some(within))));
    let cursor = range.and_then(|range| range.then).map(|cursor| match cursor.at {
        At::Blocks { leaf, next, end, .. } => (leaf, next, end),
        At::Key { .. } => panic!("a key"),
    });
    assert_eq!(cursor, then);
}

#[test]
fn blocks_are_read_one_range_after_the_other() {
    let two = [leaf(1, 1, 4), leaf(2, 2, 2)];
    let ctid = |from: u64, to: u64| format!("ctid >= '({from},0)'::tid AND ctid < '({to},0)'::tid");
    check(&two, None, Some(("ONLY l1", &ctid(0, 3))), Some((1, 3, 4)));
    check(&two, Some((1, 1, 3, 4)), Some(("ONLY l1", &ctid(3, 4))), Some((2, 0, 2)));
    check(&two[1..], Some((2, 2, 0, 2)), Some(("ONLY l2", &ctid(0, 2))), None);
    // rows that were moved to another file are read from its beginning
    check(&two, Some((1, 9, 3, 4)), Some(("ONLY l1", &ctid(0, 3))), Some((1, 3, 4)));
    // blocks that were added since hold only what the stream has shown
    check(&[leaf(1, 1, 90)], Some((1, 1, 3, 4)), Some(("ONLY l1", &ctid(3, 4))), None);
    check(&[leaf(1, 1, 0)], None, None, None);
    check(&[], Some((1, 1, 0, 1)), None, None);
}

#[test]
fn the_key_is_the_primary_key_or_the_identity() {
    use crate::sources::postgres::catalogue::KeyFacts;
    let with = |columns: &[&str]| Some(KeyFacts { columns: texts(columns), is_immediate: true });
    let mut table = facts();
    assert_eq!(key(&table), None);
    table.identity_index = with(&["b"]);
    assert_eq!(key(&table), Some(&texts(&["b"])[..]));
    table.primary_key = with(&["a"]);
    assert_eq!(key(&table), Some(&texts(&["a"])[..]));
}

#[test]
fn a_table_that_somebody_alters_is_tried_again_soon() {
    let check = |code: Code, text: &str, expect: Code| {
        assert_eq!(named(&code.fault(text)).code(), expect, "{text}");
    };
    let held = "could not obtain lock on relation \"public.t\" (SQLSTATE 55P03)";
    check(Code::SourceUnreachable, held, Code::SnapshotStale);
    check(Code::SourceQuery, "column \"v\" does not exist (SQLSTATE 42703)", Code::SnapshotStale);
    check(Code::SourceQuery, "no relation (SQLSTATE 42P01)", Code::TableMissing);
    check(Code::SourceUnreachable, "the connection is gone", Code::SourceUnreachable);
}

//! What becomes of tuples, line by line of the server's behaviour. A case names the relation
//! (`d *id v`: identity letter, columns, `*` for identity columns; the key are the first column, or
//! those with `!`), the message (`n` null, `u` unchanged, `K`/`O` before the old row), and the
//! outcome (`?` unavailable).

use super::super::decode::{Decoder, Output};
use super::super::relations::InstalledTable;
use super::super::wire::writer::{Sent, Writer, begin, delete, insert, relation, update};
use super::super::wire::{Lsn, RelationId};
use crate::change::{Cell, RowImage};

fn tuple(text: &str) -> Vec<Sent<'_>> {
    text.split_whitespace()
        .map(|value| match value {
            "n" => Sent::Null,
            "u" => Sent::Unchanged,
            "binary" => Sent::Binary("x"),
            text => Sent::Text(text),
        })
        .collect()
}

fn message(text: &str) -> Writer {
    let (operation, rest) = text.split_once(' ').unwrap();
    let (old, new) = match rest.split_once(" > ") {
        Some((old, new)) => (Some(old), new),
        None if operation == "D" => (Some(rest), ""),
        None => (None, rest),
    };
    let old = old.map(|old| (old.as_bytes()[0], tuple(old.trim_start_matches(['K', 'O']))));
    match operation {
        "I" => insert(1, &tuple(new)),
        "U" => update(1, old.as_ref().map(|(kind, old)| (*kind, &**old)), &tuple(new)),
        _ => old.map(|(kind, old)| delete(1, kind, &old)).unwrap(),
    }
}

fn image(row: RowImage<'_>, cells: &[Cell]) -> String {
    let show = |cell: &Cell| match row.raw(*cell) {
        Some(raw) => String::from_utf8(raw.to_vec()).unwrap(),
        None if *cell == Cell::Null => "n".to_owned(),
        None => "?".to_owned(),
    };
    cells.iter().map(show).collect::<Vec<_>>().join(" ")
}

fn outcome(described: &str, row: &str) -> String {
    let mut words = described.split_whitespace();
    let identity = words.next().unwrap().as_bytes()[0];
    let words: Vec<_> = words.collect();
    let columns: Vec<_> = words
        .iter()
        .map(|word| (word.contains('*'), word.trim_matches(['*', '!']), 25, -1))
        .collect();
    let marked: Vec<_> =
        words.iter().enumerate().filter(|(_, word)| word.contains('!')).map(|(i, _)| i).collect();
    let key = if marked.is_empty() && !words.is_empty() { vec![0] } else { marked };
    let mut decoder = Decoder::new();
    decoder.frame(&begin(10, 1).framed(Lsn(1))).unwrap();
    decoder.frame(&relation(1, "t", identity, &columns).framed(Lsn(0))).unwrap();
    decoder.install(RelationId(1), InstalledTable { index: 0, key }).unwrap();
    let frame = message(row).framed(Lsn(2));
    match decoder.frame(&frame) {
        Ok(Output::Row(change)) => {
            let before = change.row.before.map(|cells| image(change.row, cells));
            let after = change.row.after.map(|cells| image(change.row, cells));
            let images = [before, after].map(|image| image.unwrap_or_else(|| "-".to_owned()));
            format!("{:?}: {}", change.kind, images.join(" > "))
        }
        Ok(other) => format!("{other:?}"),
        Err(fault) => {
            assert_eq!(fault.place().table.as_deref(), Some("public.t"));
            let column = fault.place().column.as_deref().unwrap_or("-");
            format!("{} at {column}", fault.code())
        }
    }
}

#[track_caller]
fn check(described: &str, row: &str, expect: &str) {
    assert_eq!(outcome(described, row), expect, "{described}: {row}");
}

const REFUSED: &str = "TG-E-IMAGE-INCONSISTENT at";

#[test]
fn an_insert_is_the_row_after() {
    check("d *id v", "I 1 n", "Create: - > 1 n");
    check("d", "I ", "Create: - > ");
    // A row filter let a changed row in.
    check("d *id v", "I 1 u", "Create: - > 1 ?");
}

#[test]
fn an_update_without_an_old_row_keeps_its_key() {
    check("d *id v b", "U 1 n u", "Update: - > 1 n ?");
    check("i id *code! v", "U 2 a u", "Update: - > 2 a ?");
    // Servers before 14.2 leave the key tuple out where the key is stored out of line.
    check("d *id v", "U u 2", "Update: - > ? 2");
}

#[test]
fn a_key_tuple_says_not_sent_where_it_says_null() {
    check("d *id v b", "U K1 n n > 2 n u", "KeyChange: 1 ? ? > 2 n ?");
    check("d *id v b", "D K1 n n", "Delete: 1 ? ? > -");
    check("d *id *part v", "U K1 1 n > 1 2 x", "Update: 1 1 ? > 1 2 x");
    check("d *id! *part! v", "U K1 1 n > 1 2 x", "KeyChange: 1 1 ? > 1 2 x");
}

#[test]
fn an_unchanged_value_is_completed_from_whatever_old_row_holds_it() {
    check("f *id *v *b", "U O1 2 big > 1 3 u", "Update: 1 2 big > 1 3 big");
    check("f *id *v *b", "U O1 n big > 2 n u", "KeyChange: 1 n big > 2 n big");
    check("d *k v", "U Kbig n > u 2", "Update: big ? > big 2");
    check("d *k! *l! v", "U Kbig 1 n > u 2 3", "KeyChange: big 1 ? > big 2 3");
    // A leaf with full identity under a root with a key: the key tuple holds more than the key.
    check("d *id v b", "U K1 2 big > 1 3 u", "Update: 1 2 big > 1 3 big");
    check("n id v b", "U K1 n big > 1 3 u", "Update: 1 ? big > 1 3 big");
}

#[test]
fn a_full_old_row_is_null_where_it_says_null() {
    check("f *id *v", "U O1 n > 1 2", "Update: 1 n > 1 2");
    check("f *id *v", "D O1 n", "Delete: 1 n > -");
    check("f *id! *v!", "U On n > n n", "Update: n n > n n");
    check("f *id! *v!", "U O1 n > 1 2", "KeyChange: 1 n > 1 2");
    check("f *id! *v!", "U O1 2 > 1 n", "KeyChange: 1 2 > 1 n");
    check("f", "D O", "Delete:  > -");
}

#[test]
fn the_key_is_compared_by_value_and_only_where_both_values_are_known() {
    check("f *id *v", "U O1 2 > 1 2", "Update: 1 2 > 1 2");
    check("d *id v!", "U K1 n > 2 5", "Update: 1 ? > 2 5");
    check("f *id *v!", "U O1 2 > 2 2", "Update: 1 2 > 2 2");
}

#[test]
fn what_contradicts_the_identity_is_refused() {
    // Root FULL, leaf with a key.
    check("f *id *v", "U 1 2", &format!("{REFUSED} -"));
    check("f *id *v", "D K1 n", &format!("{REFUSED} -"));
    check("f *id *v *b", "U O1 2 n > 1 2 u", &format!("{REFUSED} b"));
    check("f *id *v", "U O1 u > 1 2", &format!("{REFUSED} v"));
    check("d *id v", "U O1 2 > 1 2", &format!("{REFUSED} -"));
    check("d *id v", "D O1 2", &format!("{REFUSED} -"));
    // Root and leaf with different keys.
    check("d *id v", "D Kn 2", &format!("{REFUSED} id"));
    check("d *id v", "U Ku n > 1 2", &format!("{REFUSED} id"));
    // A generated key column that is not published (before 18).
    check("d v", "D Kn", &format!("{REFUSED} -"));
    check("d v", "U Kn > 1", &format!("{REFUSED} -"));
}

#[test]
fn rows_that_do_not_fit_their_description_are_refused() {
    check("d *id v", "I 1", "TG-E-PROTOCOL-UNEXPECTED at -");
    check("d *id v", "I 1 2 3", "TG-E-PROTOCOL-UNEXPECTED at -");
    check("d *id v", "U K1 > 1 2", "TG-E-PROTOCOL-UNEXPECTED at -");
    check("d *id v", "I 1 binary", "TG-E-PROTOCOL-UNEXPECTED at v");
}

//! Values that the open transaction has carried already, for later images of the same row.
//!
//! A row's large values are sent when they are written; an update of the same row in the same
//! transaction leaves them out as unchanged. What was sent a moment ago completes such an image
//! exactly: the server sends what was committed, in order. Between decoder and stage; knows no
//! types. **Invariants:** a value is filled in only if the same transaction sent it for the same row
//! of the same description, and nothing since has replaced it, sent or not; a transaction that would
//! need more than [`LIMIT`] remembers nothing from there on.
//!
//! What replaces values without sending them is a change of the table: a rewrite, a partition that
//! is exchanged or emptied, rows that were written while they were not published. Behind each of
//! those the server describes the table anew before its next row (of a partition under its root's
//! name, the root; seen on 14 and 18), so a description, also one that repeats the last, voids what
//! was remembered of the table. It describes tables for its own reasons, too: then a value that is
//! known stays marked.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::ops::Range;

use super::decode::RowChange;
use super::wire::RelationId;
use crate::change::{Cell, ChangeKind, RowImage};

/// Bytes that are remembered of a transaction.
const LIMIT: usize = 8 << 20;
/// A tuple up to this size has nothing moved out of line (`TOAST_TUPLE_THRESHOLD`, with 8 KB pages).
const SMALLEST_TUPLE: usize = 2_000;
/// No more bytes are stored for a character of text: the tersest text is that of a JSON document of
/// one-digit numbers, two characters for twelve bytes.
const BYTES_A_CHARACTER: usize = 8;
/// What a column takes besides.
const BYTES_A_COLUMN: usize = 32;

/// How a table version's rows are remembered.
#[derive(Clone, Debug, Default)]
pub(super) struct SiblingRule {
    /// The columns by which the source tells rows apart.
    pub(super) identity: Vec<usize>,
    /// Columns that are never filled in.
    pub(super) unfit: Vec<usize>,
}

/// The rows of the open transaction that may have values out of line.
#[derive(Debug, Default)]
pub(super) struct Siblings {
    /// The newest row of each hash; others follow by [`Row::next`].
    heads: HashMap<u64, usize>,
    hasher: RandomState,
    rows: Vec<Row>,
    /// By table, the first row that is not void.
    floors: HashMap<RelationId, usize>,
    values: Vec<Value>,
    /// What rows are told by, and values.
    bytes: Vec<u8>,
    is_full: bool,
    name: Vec<u8>,
    scratch: Scratch,
}

#[derive(Debug)]
struct Row {
    name: Range<usize>,
    /// Empty: the row was replaced or went.
    values: Range<usize>,
    next: Option<usize>,
}

#[derive(Debug)]
struct Value {
    column: usize,
    bytes: Range<usize>,
}

/// Where an image is completed.
#[derive(Debug, Default)]
struct Scratch {
    bytes: Vec<u8>,
    before: Vec<Cell>,
    after: Vec<Cell>,
}

impl Siblings {
    /// A table is described: what is not sent may be other than it was.
    pub(super) fn forget_table(&mut self, relation: RelationId) {
        if !self.rows.is_empty() {
            self.floors.insert(relation, self.rows.len());
        }
    }

    /// The transaction is over, or rows went without being named.
    pub(super) fn clear(&mut self) {
        if self.rows.is_empty() && !self.is_full {
            return;
        }
        self.heads.clear();
        self.rows.clear();
        self.floors.clear();
        self.values.clear();
        self.bytes.clear();
        self.is_full = false;
    }

    /// Completes a row's image as far as the transaction has carried what it leaves out, and
    /// remembers it. `None`: the image stays as it is.
    pub(super) fn pass<'s>(
        &'s mut self,
        change: &RowChange<'s>,
        rule: &SiblingRule,
    ) -> Option<RowImage<'s>> {
        if self.is_full {
            return None;
        }
        let known = self.find(change, &rule.identity);
        let Some(after) = change.row.after else {
            self.forget(known);
            return None;
        };
        let earlier = known.and_then(|row| self.rows.get(row)).map(|row| row.values.clone());
        let is_completed = known.is_some_and(|row| self.complete(row, &change.row, after));
        if change.row.before.is_some() || change.kind == ChangeKind::Create {
            // whatever had the name that the row has now is gone
            let gone = self.named(change, &rule.identity, after);
            self.forget(gone);
        }
        if known.is_some() || may_be_out_of_line(after) {
            self.forget(known);
            self.remember(change, rule, earlier.as_ref().filter(|_| is_completed));
        }
        is_completed.then(|| RowImage {
            bytes: &self.scratch.bytes,
            before: change.row.before.map(|_| self.scratch.before.as_slice()),
            after: Some(&self.scratch.after),
            reread: &[],
        })
    }

    /// The row as it was before the change, if it is remembered.
    fn find(&mut self, change: &RowChange<'_>, identity: &[usize]) -> Option<usize> {
        if self.rows.is_empty() || change.kind == ChangeKind::Create {
            return None;
        }
        let row = &change.row;
        // Without an old row none of its identity has changed.
        self.named(change, identity, row.before.or(row.after)?)
    }

    /// The row that has the name of an image of the change.
    fn named(
        &mut self,
        change: &RowChange<'_>,
        identity: &[usize],
        image: &[Cell],
    ) -> Option<usize> {
        if self.rows.is_empty() {
            return None;
        }
        self.name.clear();
        append_name(change.index, identity, (change.row.bytes, image), &mut self.name)?;
        let floor = match self.floors.is_empty() {
            true => 0,
            false => self.floors.get(&change.relation).copied().unwrap_or_default(),
        };
        let mut next = self.heads.get(&self.hasher.hash_one(&self.name)).copied();
        // newer rows come first
        while let Some(index) = next.filter(|index| *index >= floor) {
            let row = self.rows.get(index)?;
            if !row.values.is_empty() && self.bytes.get(row.name.clone()) == Some(&*self.name) {
                return Some(index);
            }
            next = row.next;
        }
        None
    }

    fn forget(&mut self, row: Option<usize>) {
        if let Some(row) = row.and_then(|index| self.rows.get_mut(index)) {
            row.values = 0..0;
        }
    }

    /// Puts remembered values in the place of those that were left out. Says whether there are any.
    fn complete(&mut self, known: usize, row: &RowImage<'_>, after: &[Cell]) -> bool {
        let Some(values) = self.rows.get(known).and_then(|row| self.values.get(row.values.clone()))
        else {
            return false;
        };
        let is_missing = |value: &&Value| after.get(value.column) == Some(&Cell::Unavailable);
        if !values.iter().any(|value| is_missing(&value)) {
            return false;
        }
        let Scratch { bytes, before: old, after: new } = &mut self.scratch;
        bytes.clear();
        bytes.extend_from_slice(row.bytes);
        old.clear();
        old.extend_from_slice(row.before.unwrap_or_default());
        new.clear();
        new.extend_from_slice(after);
        for value in values.iter().filter(is_missing) {
            let Some(content) = self.bytes.get(value.bytes.clone()) else { continue };
            let place = (u32::try_from(bytes.len()), u32::try_from(content.len()));
            if let ((Ok(start), Ok(len)), Some(cell)) = (place, new.get_mut(value.column)) {
                bytes.extend_from_slice(content);
                *cell = Cell::Raw { start, len };
            }
        }
        true
    }

    /// `earlier`: the row's remembered values, if they have completed this image. What came from
    /// them is not copied: however often a row is changed, its large values are kept once.
    fn remember(
        &mut self,
        change: &RowChange<'_>,
        rule: &SiblingRule,
        earlier: Option<&Range<usize>>,
    ) {
        let Some(sent) = change.row.after else { return };
        let (source, cells) = match earlier {
            Some(_) => (self.scratch.bytes.as_slice(), self.scratch.after.as_slice()),
            None => (change.row.bytes, sent),
        };
        let structures = size_of::<Row>() + cells.len() * size_of::<Value>();
        if self.size() + change.row.bytes.len() + structures > LIMIT {
            self.clear();
            self.is_full = true;
            return;
        }
        let start = self.bytes.len();
        let named = append_name(change.index, &rule.identity, (source, cells), &mut self.bytes);
        let name = start..self.bytes.len();
        if named.is_none() {
            return self.bytes.truncate(start);
        }
        let first = self.values.len();
        let all_fit = rule.unfit.is_empty();
        for (column, (sent, cell)) in sent.iter().zip(cells).enumerate() {
            if !all_fit && rule.unfit.contains(&column) {
                continue;
            }
            let kept = match sent {
                Cell::Unavailable => earlier.and_then(|values| {
                    self.values.get(values.clone())?.iter().find(|it| it.column == column)
                }),
                Cell::Null | Cell::Raw { .. } => None,
            };
            let bytes = match (kept, raw(source, *cell)) {
                (Some(value), _) => value.bytes.clone(),
                (None, Some(content)) => {
                    let start = self.bytes.len();
                    self.bytes.extend_from_slice(content);
                    start..self.bytes.len()
                }
                (None, None) => continue,
            };
            self.values.push(Value { column, bytes });
        }
        let hash = self.hasher.hash_one(self.bytes.get(name.clone()).unwrap_or_default());
        let next = self.heads.insert(hash, self.rows.len());
        self.rows.push(Row { name, values: first..self.values.len(), next });
    }

    /// What is held, in bytes.
    fn size(&self) -> usize {
        self.bytes.len() + size_of_val(&*self.rows) + size_of_val(&*self.values)
    }
}

/// Whether a row of these cells may have a value out of line: then or later.
fn may_be_out_of_line(cells: &[Cell]) -> bool {
    let text: usize = cells
        .iter()
        .map(|cell| match cell {
            Cell::Raw { len, .. } => *len as usize,
            Cell::Null | Cell::Unavailable => 0,
        })
        .sum();
    text.saturating_mul(BYTES_A_CHARACTER) + cells.len() * BYTES_A_COLUMN > SMALLEST_TUPLE
}

/// What a row is told by: its table's version and the values of its identity. `None`: one of them
/// was not sent.
fn append_name(
    table: usize,
    identity: &[usize],
    (bytes, cells): (&[u8], &[Cell]),
    name: &mut Vec<u8>,
) -> Option<()> {
    name.extend_from_slice(&table.to_le_bytes());
    for column in identity {
        let value = raw(bytes, *cells.get(*column)?)?;
        name.extend_from_slice(&value.len().to_le_bytes());
        name.extend_from_slice(value);
    }
    Some(())
}

fn raw(bytes: &[u8], cell: Cell) -> Option<&[u8]> {
    RowImage { bytes, before: None, after: None, reread: &[] }.raw(cell)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::sources::postgres::wire::{Lsn, RelationId};

    /// `-`: NULL, `*`: not sent, anything else: the text.
    fn cells(words: &[&str], bytes: &mut Vec<u8>) -> Vec<Cell> {
        let mut cell = |word: &&str| match *word {
            "-" => Cell::Null,
            "*" => Cell::Unavailable,
            text => {
                let start = u32::try_from(bytes.len()).unwrap();
                bytes.extend_from_slice(text.as_bytes());
                Cell::Raw { start, len: u32::try_from(text.len()).unwrap() }
            }
        };
        words.iter().map(&mut cell).collect()
    }

    /// Passes a change of table 0, told by its first column; gives the row after.
    fn pass(
        siblings: &mut Siblings,
        kind: ChangeKind,
        before: Option<&[&str]>,
        after: Option<&[&str]>,
    ) -> Option<Vec<String>> {
        pass_of(siblings, 0, kind, before, after)
    }

    fn pass_of(
        siblings: &mut Siblings,
        index: usize,
        kind: ChangeKind,
        before: Option<&[&str]>,
        after: Option<&[&str]>,
    ) -> Option<Vec<String>> {
        let mut bytes = b"frame".to_vec();
        let before = before.map(|words| cells(words, &mut bytes));
        let after = after.map(|words| cells(words, &mut bytes));
        let row = RowImage {
            bytes: &bytes,
            before: before.as_deref(),
            after: after.as_deref(),
            reread: &[],
        };
        let change = RowChange { relation: TABLE, index, kind, row, lsn: Lsn(1), sequence: 1 };
        let rule = SiblingRule { identity: vec![0], unfit: vec![UNFIT] };
        let image = siblings.pass(&change, &rule).unwrap_or(row);
        assert_eq!(image.before.map(<[Cell]>::len), before.as_ref().map(Vec::len));
        let show = |cell: &Cell| match cell {
            Cell::Null => "-".to_owned(),
            Cell::Unavailable => "*".to_owned(),
            cell @ Cell::Raw { .. } => {
                String::from_utf8_lossy(image.raw(*cell).unwrap_or_default()).into_owned()
            }
        };
        image.after.map(|cells| cells.iter().map(show).collect())
    }

    /// The column that is never filled in.
    const UNFIT: usize = 3;
    const TABLE: RelationId = RelationId(1);

    fn long() -> String {
        "x".repeat(3_000)
    }

    use ChangeKind::{Create, Delete, KeyChange, Update};

    #[test]
    fn what_the_transaction_inserted_completes_its_updates() {
        let (mut siblings, long) = (Siblings::default(), long());
        pass(&mut siblings, Create, None, Some(&["1", &long, "a"]));
        pass(&mut siblings, Create, None, Some(&["2", "y", "b"]));
        let row = pass(&mut siblings, Update, None, Some(&["1", "*", "c"])).unwrap();
        assert_eq!(row, ["1", &long, "c"]);
        // and the completed row the next one
        let row = pass(&mut siblings, Update, None, Some(&["1", "*", "*"])).unwrap();
        assert_eq!(row, ["1", &long, "c"]);
        let row = pass(&mut siblings, Update, None, Some(&["1", "-", "d"])).unwrap();
        assert_eq!(row, ["1", "-", "d"]);
        let row = pass(&mut siblings, Update, None, Some(&["1", "*", "d"])).unwrap();
        assert_eq!(row, ["1", "*", "d"], "what was replaced is not remembered");
    }

    #[test]
    fn a_row_is_followed_through_changes_of_its_key_and_lost_with_its_end() {
        let (mut siblings, long) = (Siblings::default(), long());
        pass(&mut siblings, Create, None, Some(&["1", &long]));
        let row = pass(&mut siblings, KeyChange, Some(&["1", "*"]), Some(&["2", "*"])).unwrap();
        assert_eq!(row, ["2", &long]);
        assert_eq!(pass(&mut siblings, Update, None, Some(&["1", "*"])).unwrap(), ["1", "*"]);
        assert_eq!(pass(&mut siblings, Update, None, Some(&["2", "*"])).unwrap(), ["2", &long]);
        pass(&mut siblings, Delete, Some(&["2", "*"]), None);
        assert_eq!(pass(&mut siblings, Update, None, Some(&["2", "*"])).unwrap(), ["2", "*"]);
        pass(&mut siblings, Create, None, Some(&["3", &long]));
        assert_eq!(pass(&mut siblings, Update, None, Some(&["3", "*"])).unwrap(), ["3", &long]);
    }

    #[test]
    fn rows_of_other_tables_and_transactions_are_others() {
        let (mut siblings, long) = (Siblings::default(), long());
        pass(&mut siblings, Create, None, Some(&["1", &long]));
        let row = pass_of(&mut siblings, 1, Update, None, Some(&["1", "*"])).unwrap();
        assert_eq!(row, ["1", "*"]);
        siblings.clear();
        assert_eq!(pass(&mut siblings, Update, None, Some(&["1", "*"])).unwrap(), ["1", "*"]);
    }

    #[test]
    fn what_a_table_was_described_anew_since_is_not_filled_in() {
        let (mut siblings, long, new) = (Siblings::default(), long(), "y".repeat(3_000));
        pass(&mut siblings, Create, None, Some(&["1", &long]));
        siblings.forget_table(RelationId(2));
        assert_eq!(pass(&mut siblings, Update, None, Some(&["1", "*"])).unwrap(), ["1", &long]);
        siblings.forget_table(TABLE);
        assert_eq!(pass(&mut siblings, Update, None, Some(&["1", "*"])).unwrap(), ["1", "*"]);
        pass(&mut siblings, Update, None, Some(&["1", &new]));
        assert_eq!(pass(&mut siblings, Update, None, Some(&["1", "*"])).unwrap(), ["1", &new]);
        // and the next transaction begins with nothing
        siblings.clear();
        pass(&mut siblings, Create, None, Some(&["1", &long]));
        assert_eq!(pass(&mut siblings, Update, None, Some(&["1", "*"])).unwrap(), ["1", &long]);
    }

    #[test]
    fn a_row_that_takes_a_name_ends_what_was_remembered_of_it() {
        let (mut siblings, long) = (Siblings::default(), long());
        for (kind, before) in [(Create, None), (KeyChange, Some(&["2", "*"][..]))] {
            pass(&mut siblings, Create, None, Some(&["1", &long]));
            // the row that was inserted went without a word; the one that comes is too short to be
            // remembered
            pass(&mut siblings, kind, before, Some(&["1", "short"]));
            assert_eq!(pass(&mut siblings, Update, None, Some(&["1", "*"])).unwrap(), ["1", "*"]);
        }
    }

    #[test]
    fn what_may_read_otherwise_by_now_is_not_filled_in() {
        let (mut siblings, long) = (Siblings::default(), long());
        pass(&mut siblings, Create, None, Some(&["1", &long, "a", &long]));
        for _ in 0..2 {
            let row = pass(&mut siblings, Update, None, Some(&["1", "*", "b", "*"])).unwrap();
            assert_eq!(row, ["1", &long, "b", "*"]);
        }
    }

    #[test]
    fn a_row_that_is_changed_again_and_again_is_kept_once() {
        let (mut siblings, large) = (Siblings::default(), "x".repeat(LIMIT / 4));
        pass(&mut siblings, Create, None, Some(&["1", &large, "a"]));
        for number in 0..50 {
            let number = number.to_string();
            let row = pass(&mut siblings, Update, None, Some(&["1", "*", &number])).unwrap();
            assert_eq!((row[1].len(), &row[2]), (large.len(), &number));
        }
        let row = pass(&mut siblings, KeyChange, Some(&["1", "*", "*"]), Some(&["2", "*", "k"]));
        assert_eq!(row.unwrap()[1].len(), large.len());
        let row = pass(&mut siblings, Update, None, Some(&["2", "*", "*"])).unwrap();
        assert_eq!((row[1].len(), row[2].as_str()), (large.len(), "k"));
    }

    #[test]
    fn a_transaction_beyond_the_limit_remembers_nothing_from_there_on() {
        let (mut siblings, large) = (Siblings::default(), "x".repeat(LIMIT / 2));
        pass(&mut siblings, Create, None, Some(&["1", &large]));
        assert_eq!(
            pass(&mut siblings, Update, None, Some(&["1", "*"])).unwrap()[1].len(),
            LIMIT / 2
        );
        pass(&mut siblings, Create, None, Some(&["2", &large]));
        pass(&mut siblings, Create, None, Some(&["3", &long()]));
        for key in ["1", "2", "3"] {
            assert_eq!(pass(&mut siblings, Update, None, Some(&[key, "*"])).unwrap(), [key, "*"]);
        }
        siblings.clear();
        pass(&mut siblings, Create, None, Some(&["3", &long()]));
        assert_eq!(pass(&mut siblings, Update, None, Some(&["3", "*"])).unwrap(), ["3", &long()]);
    }

    proptest! {
        /// Whatever happens to rows, an image is completed with what the row holds, or not at all;
        /// and it is completed whenever the transaction has said what the row holds.
        #[test]
        fn an_image_is_completed_with_what_the_row_holds(
            steps in prop::collection::vec((0..6_u8, 0..4_usize, 0..4_usize, any::<bool>()), 1..60),
        ) {
            let mut siblings = Siblings::default();
            let mut table: HashMap<String, String> = HashMap::new();
            let mut said = std::collections::HashSet::new();
            for (number, (what, key, other, changes)) in steps.into_iter().enumerate() {
                let (key, other) = (key.to_string(), other.to_string());
                let value = format!("{number}{}", long());
                match what {
                    0 if !table.contains_key(&key) => {
                        pass(&mut siblings, Create, None, Some(&[&key, &value]));
                        table.insert(key.clone(), value);
                        said.insert(key);
                    }
                    1 if table.contains_key(&key) => {
                        if changes {
                            table.insert(key.clone(), value);
                            said.insert(key.clone());
                        }
                        let holds = table.get(&key).cloned().unwrap_or_default();
                        let sent = if changes { holds.as_str() } else { "*" };
                        let row = pass(&mut siblings, Update, None, Some(&[&key, sent])).unwrap();
                        let expect = if said.contains(&key) { holds.as_str() } else { "*" };
                        prop_assert_eq!(row, [key.as_str(), expect]);
                    }
                    2 if table.contains_key(&key) && !table.contains_key(&other) => {
                        let row =
                            pass(&mut siblings, KeyChange, Some(&[&key, "*"]), Some(&[&other, "*"]))
                                .unwrap();
                        let holds = table.remove(&key).unwrap_or_default();
                        let was_said = said.remove(&key);
                        let expect = if was_said { holds.as_str() } else { "*" };
                        prop_assert_eq!(row, [other.as_str(), expect]);
                        table.insert(other.clone(), holds);
                        if was_said {
                            said.insert(other);
                        }
                    }
                    // values are replaced and rows go without a word, and the table is described
                    4 => {
                        table.retain(|name, holds| {
                            holds.push('!');
                            *name != key
                        });
                        said.clear();
                        siblings.forget_table(TABLE);
                    }
                    3 if table.remove(&key).is_some() => {
                        said.remove(&key);
                        pass(&mut siblings, Delete, Some(&[&key, "*"]), None);
                    }
                    _ => {
                        // the next transaction
                        if what == 0 {
                            siblings.clear();
                            said.clear();
                        }
                    }
                }
            }
        }
    }
}

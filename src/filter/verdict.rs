//! What becomes of a change by what a predicate says of the row before and after it.
//!
//! | before | after | of a change | becomes |
//! |---|---|---|---|
//! | – | in | create, read | published |
//! | – | out | create, read | left out |
//! | in | – | delete | published |
//! | out | – | delete | left out |
//! | in | in | update, with or without another key | published |
//! | in | out | the same | moved out: a delete of the old key |
//! | out | in | the same | moved in: a create of the new key |
//! | out | out | the same | left out |
//! | | | truncate, message | published |
//!
//! While rows are looked for on which an earlier predicate and this one differ, a row before of which
//! the earlier is true and this one is not may have been published, or not (`perhaps`):
//!
//! | before | after | of a change | becomes |
//! |---|---|---|---|
//! | perhaps | – | delete | found out: a delete of the key |
//! | perhaps | out | update, with or without another key | found out |
//! | perhaps | in | the same | replaced: a create, behind a delete of the old key if it is another |
//!
//! In is TRUE, out is FALSE or UNKNOWN; MISSING, wherever it stands, stops. Knows no types.
//! **Invariants:** a change becomes a delete only if the row before is known to have been in (or
//! perhaps in); no verdict shows an image that is not known to be in.

use std::fmt;

use super::program::{Image, Node, TestError};
use super::truth::Truth;
use crate::change::{ChangeKind, RowImage};

/// What becomes of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is published as what it is.
    Publish,
    /// It is left out.
    LeaveOut,
    /// It is published as a create of the row after.
    MovedIn,
    /// It is published as a delete of the row before.
    MovedOut,
    /// Its row before may have been published: it is published as a delete of the key alone.
    FoundOut,
    /// Its row before may have been published, and its row after is in: it is published as a create
    /// of the row after, and as a delete of the key before if that is another one.
    Replaced,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Publish => "in",
            Self::LeaveOut => "out",
            Self::MovedIn => "moved in",
            Self::MovedOut => "moved out",
            Self::FoundOut => "found out",
            Self::Replaced => "replaced",
        })
    }
}

/// Why there is no verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The row before lacks a column that decides.
    Before(usize),
    /// The row after lacks a column that decides.
    After(usize),
    /// A change without an image that it must have.
    NoImage,
    /// A cell cannot be understood.
    Cell(TestError),
}

/// On which side of a predicate a row before is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    In,
    /// Out, and in by an earlier predicate.
    Perhaps,
    Out,
}

/// A predicate over the rows of one table version.
#[derive(Debug)]
pub struct Filter {
    program: Node,
    /// The columns that it reads.
    columns: Box<[usize]>,
    /// The columns that an update without an image of the row before has left alone.
    identity: Box<[usize]>,
    /// By what a row may have been published before a change, if it was not by this predicate: true
    /// of whatever this one is true of.
    earlier: Option<Box<Self>>,
}

impl Filter {
    /// `columns` are those that the program reads; `identity` those that did not change where a
    /// change comes without the row before.
    pub fn new(program: Node, columns: Vec<usize>, identity: Vec<usize>) -> Self {
        Self { program, columns: columns.into(), identity: identity.into(), earlier: None }
    }

    /// Rows may have been published before a change if `earlier` is true of them, which must be so of
    /// all of which this predicate is true.
    #[must_use]
    pub fn with_earlier(self, earlier: Self) -> Self {
        Self { earlier: Some(Box::new(earlier)), ..self }
    }

    /// What the predicate says of an image.
    ///
    /// # Errors
    /// A cell cannot be understood.
    pub fn evaluate(&self, image: &Image<'_>) -> Result<Truth, TestError> {
        self.program.evaluate(image)
    }

    /// What becomes of a change.
    ///
    /// # Errors
    /// A value that decides was not sent, or cannot be understood.
    pub fn judge(&self, kind: ChangeKind, row: &RowImage<'_>) -> Result<Verdict, Stop> {
        self.judge_reading(kind, row, Truth::Missing)
    }

    /// The same, if what was not sent read as `unsent`. For the test that shows what becomes of
    /// rows if that is not MISSING.
    ///
    /// # Errors
    /// As [`Filter::judge`].
    #[doc(hidden)]
    pub fn judge_reading(
        &self,
        kind: ChangeKind,
        row: &RowImage<'_>,
        unsent: Truth,
    ) -> Result<Verdict, Stop> {
        match kind {
            ChangeKind::Truncate
            | ChangeKind::Message
            | ChangeKind::MovedIn
            | ChangeKind::MovedOut
            | ChangeKind::FoundOut => Ok(Verdict::Publish),
            ChangeKind::Read | ChangeKind::Create => {
                Ok(if self.after(row, unsent)? { Verdict::Publish } else { Verdict::LeaveOut })
            }
            ChangeKind::Delete => Ok(match self.before(row, unsent)? {
                Side::In => Verdict::Publish,
                Side::Perhaps => Verdict::FoundOut,
                Side::Out => Verdict::LeaveOut,
            }),
            ChangeKind::Update | ChangeKind::KeyChange => {
                let after = self.after(row, unsent)?;
                Ok(match (self.before(row, unsent)?, after) {
                    (Side::In, true) => Verdict::Publish,
                    (Side::In, false) => Verdict::MovedOut,
                    (Side::Perhaps, true) => Verdict::Replaced,
                    (Side::Perhaps, false) => Verdict::FoundOut,
                    (Side::Out, true) => Verdict::MovedIn,
                    (Side::Out, false) => Verdict::LeaveOut,
                })
            }
        }
    }

    fn after(&self, row: &RowImage<'_>, unsent: Truth) -> Result<bool, Stop> {
        let cells = row.after.ok_or(Stop::NoImage)?;
        self.is_in(&Image::new(*row, cells).misread(unsent), Stop::After)
    }

    fn before(&self, row: &RowImage<'_>, unsent: Truth) -> Result<Side, Stop> {
        let Some(earlier) = &self.earlier else {
            return Ok(if self.was_in(row, unsent)? { Side::In } else { Side::Out });
        };
        if !earlier.was_in(row, unsent)? {
            return Ok(Side::Out);
        }
        Ok(match self.was_in(row, unsent) {
            Ok(true) => Side::In,
            // what the earlier one is sure of needs no value that was not sent
            Ok(false) | Err(Stop::Before(_)) => Side::Perhaps,
            Err(stop) => return Err(stop),
        })
    }

    fn was_in(&self, row: &RowImage<'_>, unsent: Truth) -> Result<bool, Stop> {
        let image = match (row.before, row.after) {
            (Some(cells), _) => Image::new(*row, cells),
            (None, Some(after)) => Image::unchanged(*row, after, &self.identity),
            (None, None) => return Err(Stop::NoImage),
        };
        self.is_in(&image.misread(unsent), Stop::Before)
    }

    fn is_in(&self, image: &Image<'_>, missing: fn(usize) -> Stop) -> Result<bool, Stop> {
        match self.evaluate(image).map_err(Stop::Cell)? {
            Truth::True => Ok(true),
            Truth::False | Truth::Unknown => Ok(false),
            Truth::Missing => {
                let unsent = |column: &&usize| matches!(image.cell(**column), super::Sight::Unsent);
                Err(missing(self.columns.iter().find(unsent).copied().unwrap_or_default()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Cell;
    use crate::filter::{Sight, Test};

    /// Column 1 is `t`.
    #[derive(Debug)]
    struct IsT;

    impl Test for IsT {
        fn test(&self, image: &Image<'_>) -> Result<Truth, TestError> {
            Ok(match image.cell(1) {
                Sight::Unsent => image.unsent(),
                Sight::Null => Truth::Unknown,
                Sight::Value(raw) => Truth::of(raw == b"t"),
            })
        }
    }

    fn cell(letter: char) -> Cell {
        match letter {
            't' => Cell::Raw { start: 0, len: 1 },
            'f' => Cell::Raw { start: 1, len: 1 },
            'n' => Cell::Null,
            _ => Cell::Unavailable,
        }
    }

    /// Images by what column 1 holds: t, f, n (NULL), ? (not sent), - (no image at all).
    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "one line for each case")]
    fn check(kind: ChangeKind, before: char, after: char, expect: Result<Verdict, Stop>) {
        let filter = Filter::new(Node::Test(Box::new(IsT)), vec![1], vec![0]);
        let image = |letter| (letter != '-').then(|| [cell('t'), cell(letter)]);
        let (before, after) = (image(before), image(after));
        let row = RowImage {
            bytes: b"tf",
            before: before.as_ref().map(<[Cell; 2]>::as_slice),
            after: after.as_ref().map(<[Cell; 2]>::as_slice),
            reread: &[],
        };
        assert_eq!(filter.judge(kind, &row), expect);
    }

    #[test]
    fn every_cell_of_the_truth_table() {
        use ChangeKind::{Create, Delete, KeyChange, Read, Truncate, Update};
        use Verdict::{LeaveOut, MovedIn, MovedOut, Publish};
        for kind in [Update, KeyChange] {
            check(kind, 't', 't', Ok(Publish));
            for out in ['f', 'n'] {
                check(kind, 't', out, Ok(MovedOut));
                check(kind, out, 't', Ok(MovedIn));
                check(kind, out, 'f', Ok(LeaveOut));
                check(kind, out, 'n', Ok(LeaveOut));
                check(kind, out, '?', Err(Stop::After(1)));
                check(kind, '?', out, Err(Stop::Before(1)));
            }
            check(kind, 't', '?', Err(Stop::After(1)));
            check(kind, '?', 't', Err(Stop::Before(1)));
            check(kind, '?', '?', Err(Stop::After(1)));
            // nothing was sent of the row before, and column 1 is not part of the identity
            check(kind, '-', 't', Err(Stop::Before(1)));
            check(kind, '-', '-', Err(Stop::NoImage));
        }
        for kind in [Create, Read] {
            check(kind, '-', 't', Ok(Publish));
            check(kind, '-', 'f', Ok(LeaveOut));
            check(kind, '-', 'n', Ok(LeaveOut));
            check(kind, '-', '?', Err(Stop::After(1)));
        }
        check(Delete, 't', '-', Ok(Publish));
        check(Delete, 'f', '-', Ok(LeaveOut));
        check(Delete, 'n', '-', Ok(LeaveOut));
        check(Delete, '?', '-', Err(Stop::Before(1)));
        check(Truncate, '-', '-', Ok(Publish));
    }

    /// Column 1 is `t` or NULL.
    #[derive(Debug)]
    struct IsNotF;

    impl Test for IsNotF {
        fn test(&self, image: &Image<'_>) -> Result<Truth, TestError> {
            Ok(match image.cell(1) {
                Sight::Unsent => image.unsent(),
                Sight::Null => Truth::True,
                Sight::Value(raw) => Truth::of(raw == b"t"),
            })
        }
    }

    #[test]
    fn what_an_earlier_predicate_let_through_may_have_been_published() {
        use ChangeKind::{Create, Delete, KeyChange, Update};
        use Verdict::{FoundOut, LeaveOut, MovedIn, MovedOut, Publish, Replaced};
        let filter = Filter::new(Node::Test(Box::new(IsT)), vec![1], vec![0])
            .with_earlier(Filter::new(Node::Test(Box::new(IsNotF)), vec![1], vec![0]));
        let judged = |kind, before: char, after: char| {
            let image = |letter| (letter != '-').then(|| [cell('t'), cell(letter)]);
            let (before, after) = (image(before), image(after));
            let row = RowImage {
                bytes: b"tf",
                before: before.as_ref().map(<[Cell; 2]>::as_slice),
                after: after.as_ref().map(<[Cell; 2]>::as_slice),
                reread: &[],
            };
            filter.judge(kind, &row)
        };
        for kind in [Update, KeyChange] {
            assert_eq!(judged(kind, 't', 't'), Ok(Publish));
            assert_eq!(judged(kind, 't', 'n'), Ok(MovedOut));
            assert_eq!(judged(kind, 'n', 't'), Ok(Replaced));
            assert_eq!(judged(kind, 'n', 'n'), Ok(FoundOut));
            assert_eq!(judged(kind, 'n', 'f'), Ok(FoundOut));
            assert_eq!(judged(kind, 'f', 't'), Ok(MovedIn));
            assert_eq!(judged(kind, 'f', 'n'), Ok(LeaveOut));
            assert_eq!(judged(kind, '?', 't'), Err(Stop::Before(1)));
        }
        assert_eq!(judged(Delete, 't', '-'), Ok(Publish));
        assert_eq!(judged(Delete, 'n', '-'), Ok(FoundOut));
        assert_eq!(judged(Delete, 'f', '-'), Ok(LeaveOut));
        assert_eq!(judged(Create, '-', 'n'), Ok(LeaveOut));
    }

    #[test]
    fn an_update_without_the_row_before_left_the_identity_alone() {
        let filter = Filter::new(Node::Test(Box::new(IsT)), vec![1], vec![1]);
        for (letter, expect) in [('t', Verdict::Publish), ('f', Verdict::LeaveOut)] {
            let after = [cell('t'), cell(letter)];
            let row = RowImage { bytes: b"tf", before: None, after: Some(&after), reread: &[] };
            assert_eq!(filter.judge(ChangeKind::Update, &row), Ok(expect));
        }
    }
}

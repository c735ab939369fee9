//! A predicate as it runs: a tree of logic over tests of cells.
//!
//! Made once per table version by the source, run once or twice per row. Knows no types.
//! **Invariants:** running allocates nothing; a column that was not sent reads as MISSING, through
//! `IS NULL` too.

use std::fmt;

use super::truth::Truth;
use crate::change::{Cell, RowImage, ValueError};

/// A predicate, or a part of one.
#[derive(Debug)]
pub enum Node {
    /// Always the same.
    Always(Truth),
    /// All hold.
    All(Box<[Self]>),
    /// One holds.
    Any(Box<[Self]>),
    /// It does not hold.
    Not(Box<Self>),
    /// `IS TRUE`, `IS FALSE` (`Some`) or `IS UNKNOWN` (`None`).
    Is(Box<Self>, Option<bool>),
    /// The column is NULL.
    IsNull(usize),
    /// What only the source can tell.
    Test(Box<dyn Test>),
}

/// A test of a row's cells in the source's notation.
pub trait Test: Send + Sync + fmt::Debug {
    /// Looks at the row.
    ///
    /// # Errors
    /// A cell is not of the form that its type prescribes.
    fn test(&self, image: &Image<'_>) -> Result<Truth, TestError>;
}

/// A cell that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestError {
    /// Its column.
    pub column: usize,
    /// What is wrong.
    pub error: ValueError,
}

/// One image of a row, as a predicate sees it.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    row: RowImage<'a>,
    cells: &'a [Cell],
    /// Only these columns are known; `None`: all that were sent.
    known: Option<&'a [usize]>,
    /// As what a column reads that was not sent: MISSING, but in tests of that very rule.
    unsent: Truth,
}

/// What an image has of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight<'a> {
    /// Nothing: it was not sent.
    Unsent,
    /// NULL.
    Null,
    /// These bytes.
    Value(&'a [u8]),
}

impl<'a> Image<'a> {
    /// An image with everything that was sent of it.
    pub const fn new(row: RowImage<'a>, cells: &'a [Cell]) -> Self {
        Self { row, cells, known: None, unsent: Truth::Missing }
    }

    /// The row before a change that left these columns alone, of which nothing else was sent:
    /// they are as they are after it.
    pub const fn unchanged(row: RowImage<'a>, after: &'a [Cell], known: &'a [usize]) -> Self {
        Self { row, cells: after, known: Some(known), unsent: Truth::Missing }
    }

    /// The same image, to show what would become of rows if what was not sent read as something
    /// else. For tests only.
    #[doc(hidden)]
    #[must_use]
    pub const fn misread(self, unsent: Truth) -> Self {
        Self { unsent, ..self }
    }

    /// A column's cell.
    pub fn cell(&self, column: usize) -> Sight<'a> {
        if self.known.is_some_and(|known| !known.contains(&column)) {
            return Sight::Unsent;
        }
        match self.cells.get(column) {
            None | Some(Cell::Unavailable) => Sight::Unsent,
            Some(Cell::Null) => Sight::Null,
            Some(cell) => self.row.raw(*cell).map_or(Sight::Unsent, Sight::Value),
        }
    }

    /// As what a column reads that was not sent.
    pub const fn unsent(&self) -> Truth {
        self.unsent
    }
}

impl Node {
    /// What the predicate says of a row.
    ///
    /// # Errors
    /// A cell is not of the form that its type prescribes.
    pub fn evaluate(&self, image: &Image<'_>) -> Result<Truth, TestError> {
        match self {
            Self::Always(truth) => Ok(*truth),
            Self::All(nodes) => {
                let mut all = Truth::True;
                for node in nodes {
                    all = all.and(node.evaluate(image)?);
                    if all == Truth::False {
                        break;
                    }
                }
                Ok(all)
            }
            Self::Any(nodes) => {
                let mut any = Truth::False;
                for node in nodes {
                    any = any.or(node.evaluate(image)?);
                    if any == Truth::True {
                        break;
                    }
                }
                Ok(any)
            }
            Self::Not(node) => node.evaluate(image).map(Truth::not),
            Self::Is(node, asked) => node.evaluate(image).map(|truth| truth.is(*asked)),
            Self::IsNull(column) => Ok(match image.cell(*column) {
                Sight::Unsent => image.unsent(),
                Sight::Null => Truth::True,
                Sight::Value(_) => Truth::False,
            }),
            Self::Test(test) => test.test(image),
        }
    }
}

//! The tests of cells that a predicate consists of.
//!
//! What a compiled predicate runs for each row. Knows neither text nor types of SQL: how a cell is
//! read was decided when the predicate was compiled. **Invariants:** nothing is allocated; a NULL
//! gives UNKNOWN (where SQL says so), a cell that was not sent gives what the image says of it.

use super::like::Pattern;
use super::value::{Constant, Reader, Value};
use crate::change::ValueError;
use crate::filter::{Image, Sight, Test, TestError, Truth};

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    /// As it is written.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    /// Whether it asks for nothing but equality.
    pub(super) const fn is_equality(self) -> bool {
        matches!(self, Self::Equal | Self::NotEqual)
    }

    const fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// One side of a comparison.
#[derive(Debug)]
pub(super) enum Side {
    Column { index: usize, reader: Reader },
    Constant(Constant),
}

/// What a side has for a row.
enum Seen<'a> {
    Unsent,
    Null,
    Value(Value<'a>),
}

impl Side {
    fn see<'a>(&'a self, image: &Image<'a>) -> Result<Seen<'a>, TestError> {
        match self {
            Self::Constant(constant) => Ok(Seen::Value(constant.value())),
            Self::Column { index, reader } => match image.cell(*index) {
                Sight::Unsent => Ok(Seen::Unsent),
                Sight::Null => Ok(Seen::Null),
                Sight::Value(raw) => reader
                    .read(raw)
                    .map(Seen::Value)
                    .map_err(|error| TestError { column: *index, error }),
            },
        }
    }

    /// The column, for faults.
    const fn column(&self) -> usize {
        match self {
            Self::Column { index, .. } => *index,
            Self::Constant(_) => 0,
        }
    }
}

/// `left operator right`.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) operator: Operator,
    pub(super) left: Side,
    pub(super) right: Side,
}

impl Test for Comparison {
    fn test(&self, image: &Image<'_>) -> Result<Truth, TestError> {
        match (self.left.see(image)?, self.right.see(image)?) {
            // A NULL decides, whatever the other one is.
            (Seen::Null, _) | (_, Seen::Null) => Ok(Truth::Unknown),
            (Seen::Unsent, _) | (_, Seen::Unsent) => Ok(image.unsent()),
            (Seen::Value(left), Seen::Value(right)) => {
                let order = left.compare(right).ok_or_else(|| mixed(self.left.column()))?;
                Ok(Truth::of(self.operator.holds(order)))
            }
        }
    }
}

/// `left IS NOT DISTINCT FROM right`.
#[derive(Debug)]
pub(super) struct Same {
    pub(super) left: Side,
    pub(super) right: Side,
}

impl Test for Same {
    fn test(&self, image: &Image<'_>) -> Result<Truth, TestError> {
        Ok(match (self.left.see(image)?, self.right.see(image)?) {
            (Seen::Unsent, _) | (_, Seen::Unsent) => image.unsent(),
            (Seen::Null, Seen::Null) => Truth::True,
            (Seen::Null, Seen::Value(_)) | (Seen::Value(_), Seen::Null) => Truth::False,
            (Seen::Value(left), Seen::Value(right)) => {
                let order = left.compare(right).ok_or_else(|| mixed(self.left.column()))?;
                Truth::of(order.is_eq())
            }
        })
    }
}

/// `column IN (constants)`.
#[derive(Debug)]
pub(super) struct Membership {
    index: usize,
    reader: Reader,
    /// In order.
    constants: Box<[Constant]>,
    /// NULL is among them.
    has_null: bool,
}

impl Membership {
    /// The constants are of one family, the reader's.
    pub(super) fn new(
        (index, reader): (usize, Reader),
        mut constants: Vec<Constant>,
        has_null: bool,
    ) -> Self {
        constants.sort_by(|one, other| {
            one.value().compare(other.value()).unwrap_or(std::cmp::Ordering::Equal)
        });
        Self { index, reader, constants: constants.into(), has_null }
    }
}

impl Test for Membership {
    fn test(&self, image: &Image<'_>) -> Result<Truth, TestError> {
        let raw = match image.cell(self.index) {
            Sight::Unsent => return Ok(image.unsent()),
            Sight::Null => return Ok(Truth::Unknown),
            Sight::Value(raw) => raw,
        };
        let value =
            self.reader.read(raw).map_err(|error| TestError { column: self.index, error })?;
        let found = self.constants.binary_search_by(|constant| {
            constant.value().compare(value).unwrap_or(std::cmp::Ordering::Less)
        });
        Ok(match found {
            Ok(_) => Truth::True,
            Err(_) if self.has_null => Truth::Unknown,
            Err(_) => Truth::False,
        })
    }
}

/// `column LIKE pattern`.
#[derive(Debug)]
pub(super) struct Like {
    pub(super) index: usize,
    pub(super) reader: Reader,
    pub(super) pattern: Pattern,
}

impl Test for Like {
    fn test(&self, image: &Image<'_>) -> Result<Truth, TestError> {
        let at = |error| TestError { column: self.index, error };
        match image.cell(self.index) {
            Sight::Unsent => Ok(image.unsent()),
            Sight::Null => Ok(Truth::Unknown),
            Sight::Value(raw) => match self.reader.read(raw).map_err(at)? {
                Value::Bytes(text) => Ok(Truth::of(self.pattern.matches(text))),
                _ => Err(mixed(self.index)),
            },
        }
    }
}

/// Only if the program is wrong.
fn mixed(column: usize) -> TestError {
    let error =
        ValueError::Unrepresentable("a predicate compares values of two families".to_owned());
    TestError { column, error }
}

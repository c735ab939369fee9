//! The four values of a predicate.
//!
//! SQL's three, and one for "one of the three, but a value that decides it was not sent". Knows no
//! rows. **Invariant:** MISSING becomes another value only where that is the answer whatever the
//! missing value is.

/// What a predicate says of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// SQL's UNKNOWN: a NULL leaves it open.
    Unknown,
    /// One of the other three; the value that would tell which was not sent.
    Missing,
}

impl Truth {
    /// All values.
    pub const ALL: [Self; 4] = [Self::True, Self::False, Self::Unknown, Self::Missing];

    /// The value of a comparison.
    pub const fn of(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }

    /// Both hold.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::False, _) | (_, Self::False) => Self::False,
            (Self::Missing, _) | (_, Self::Missing) => Self::Missing,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::True, Self::True) => Self::True,
        }
    }

    /// One of them holds.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::True, _) | (_, Self::True) => Self::True,
            (Self::Missing, _) | (_, Self::Missing) => Self::Missing,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::False, Self::False) => Self::False,
        }
    }

    /// The contrary.
    #[must_use]
    pub const fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Unknown | Self::Missing => self,
        }
    }

    /// `IS TRUE`, `IS FALSE` (`Some`), `IS UNKNOWN` (`None`): a question with a definite answer,
    /// unless it is not known what is asked about.
    #[must_use]
    pub const fn is(self, asked: Option<bool>) -> Self {
        match (self, asked) {
            (Self::Missing, _) => Self::Missing,
            (Self::True, Some(true)) | (Self::False, Some(false)) | (Self::Unknown, None) => {
                Self::True
            }
            _ => Self::False,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Truth::{self, False, Missing, True, Unknown};

    /// The values that are meant by one.
    fn meant(truth: Truth) -> &'static [Truth] {
        match truth {
            True => &[True],
            False => &[False],
            Unknown => &[Unknown],
            Missing => &[True, False, Unknown],
        }
    }

    /// Whatever the missing values are, a definite answer is the answer.
    #[track_caller]
    fn check(of: impl Fn(Truth, Truth) -> Truth) {
        for one in Truth::ALL {
            for other in Truth::ALL {
                let answer = of(one, other);
                for one in meant(one) {
                    for other in meant(other) {
                        assert!(meant(answer).contains(&of(*one, *other)), "{one:?} {other:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_definite_answer_holds_whatever_is_missing() {
        check(Truth::and);
        check(Truth::or);
        check(|one, _| one.not());
        check(|one, _| one.is(Some(true)));
        check(|one, _| one.is(Some(false)));
        check(|one, _| one.is(None));
    }

    #[test]
    fn missing_gives_way_only_to_what_decides() {
        assert_eq!(False.and(Missing), False);
        assert_eq!(True.or(Missing), True);
        assert_eq!(True.and(Missing), Missing);
        assert_eq!(Unknown.and(Missing), Missing);
        assert_eq!(False.or(Missing), Missing);
        assert_eq!(Unknown.or(Missing), Missing);
        assert_eq!(Missing.not(), Missing);
        assert_eq!(Missing.is(None), Missing);
        assert_eq!(Missing.is(Some(true)), Missing);
    }

    #[test]
    fn three_values_are_sqls() {
        assert_eq!(Unknown.and(False), False);
        assert_eq!(Unknown.and(True), Unknown);
        assert_eq!(Unknown.or(True), True);
        assert_eq!(Unknown.or(False), Unknown);
        assert_eq!(Unknown.not(), Unknown);
        assert_eq!(Unknown.is(None), True);
        assert_eq!(True.is(None), False);
        assert_eq!(Unknown.is(Some(false)), False);
    }
}

//! `Filter`: a record that a predicate picks does not come out.
//!
//! Where the predicate is decided when the plan is compiled there is nothing to do here.
//! **Invariant:** what a row decides is a guard, added to those that the record has.

use crate::record::{Guard, RecordShape};

/// The record, but not for rows that pass the guard.
pub(super) fn unless(record: RecordShape, guard: Guard) -> RecordShape {
    let guard = match (record.guard, guard.negated()) {
        (Guard::Always, guard) => guard,
        (own, guard) => Guard::All(vec![own, guard]),
    };
    RecordShape { guard, ..record }
}

//! Which rows are published: predicates over row images, and what becomes of a change by them.
//!
//! ```text
//! row image → program → TRUE | FALSE | UNKNOWN | MISSING
//! (before, after) → verdict: publish, leave out, moved in, moved out – or stop
//! ```
//!
//! Between a source's row images and the records. Knows no database and no types: what a comparison
//! means is the source's ([`Test`]), which makes the programs too. **Invariants:** a value that was
//! not sent is never read as NULL; what cannot be decided without it stops and never becomes a
//! verdict; evaluating allocates nothing.

mod program;
mod truth;
mod verdict;

pub use program::{Image, Node, Sight, Test, TestError};
pub use truth::Truth;
pub use verdict::{Filter, Stop, Verdict};

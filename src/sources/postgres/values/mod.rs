//! PostgreSQL's text representation of values → neutral scalars.
//!
//! Between the frames and the plan: [`resolve`] turns a column's type into a neutral type and a
//! parser, once per table version; the parser turns a cell's bytes into a scalar, once per row.
//! Knows neither the wire nor the socket, and asks no catalogue: what it must be told about types
//! comes as [`TypeFacts`], and [`TypeCatalogue::missing`] says what to ask for.
//!
//! The text of a value depends on the session. The parsers read what a session sends whose settings
//! are pinned (`datestyle=ISO`, `timezone=UTC`, `intervalstyle=postgres`, `bytea_output=hex`,
//! `lc_monetary=C`, `client_encoding=UTF8`), and refuse other forms instead of guessing.
//!
//! **Invariant:** no input makes a parser panic, and none is read as anything but the value that the
//! server wrote: what does not fit is an error, never a clamped or wrapped value.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::expect_used)]

mod catalogue;
mod resolve;
mod type_name;
mod vector;
mod declared;

mod scan;
mod numbers;
mod calendar;
mod temporal;
mod text;
mod array;
mod hstore;
mod labels;
mod defaults;

#[cfg(test)]
mod tests;

pub use catalogue::{TYPE_QUERY, TypeCatalogue, TypeFacts, TypeKind, TypeRow};
pub use declared::declared_type;
pub use defaults::column_default;
pub use labels::LabelCheck;
pub use resolve::{ResolvedColumn, WireType, resolve};

use crate::change::ValueError;

/// The error of a parser: which type, and which form was expected. Never the value itself.
fn malformed(kind: &'static str, expected: &'static str) -> ValueError {
    ValueError::Malformed { kind, detail: format!("expected {expected}") }
}

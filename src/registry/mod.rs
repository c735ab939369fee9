//! The schema registry: schemas in, ids out.
//!
//! Stands beside the path of a change: asked once per table version, never per row. Knows neither
//! tables nor records. **Invariants:** an error is never remembered; a schema is registered at most
//! once at a time, however many callers ask, and none at all where that is not wanted; a definite refusal is never retried; no password stands
//! in a message.

mod client;
mod essence;
mod outcome;
mod settings;
mod subject;
#[cfg(test)]
mod tests;

pub use client::{Registry, Waiting};
pub use settings::{Address, Authentication, Lookup, Settings};
pub use subject::SubjectNaming;

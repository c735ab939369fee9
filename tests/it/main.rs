//! Hermetic tests of the whole crate: one binary, one module per subject.

#![expect(clippy::unwrap_used, reason = "tests panic, they do not return errors")]

mod allocations;
mod crashes;
mod docs;
mod examples;
mod house;
mod replay;
mod streams;
mod transforms;
mod rest;
mod schemas;
#[path = "../../benches/micro/workload.rs"]
mod workload;

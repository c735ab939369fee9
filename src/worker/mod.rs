//! Runs a connector's task: builds its parts, restarts them after faults that heal, and tells its
//! state.
//!
//! Knows what a source, a stage and a publisher are; knows no REST and no other connector.
//! **Invariant:** one task owns one publisher and one source at a time; both are gone before the
//! next attempt builds new ones.

mod doubt;
mod lifecycle;
mod rehearsal;
mod run;
mod runtime;
mod services;
mod task;
mod trial;

pub use crate::kafka::WrittenTopics;
pub use crate::observe::ChunkProgress;
pub use crate::sources::{OrderDesk, SnapshotAction, SnapshotRequest, SnapshotTable};
pub use lifecycle::{Backoff, Target, TaskState};
pub use runtime::{BoxFuture, Finding, Runtime, Worker, foreseen, is_foreseen, row_filters};
pub use task::{TaskControl, TaskHandle};
pub use trial::{Look, TriedRecord};

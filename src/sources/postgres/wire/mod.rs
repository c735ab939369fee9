//! pgoutput and the replication protocol, sans-IO: bytes in, typed messages out.
//!
//! Stands between the connection, which hands over the payload of a `CopyData`, and the decoder,
//! which keeps the state. Imports nothing but the standard library and its own files: it must not
//! know tables, row images, sockets or clocks.
//! **Invariants:** every length and count is proved against the bytes that are left before it is
//! used; a message is accepted only if no byte is left over; messages borrow from the frame;
//! nothing derived from input panics or allocates by a number that the input names.

#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::expect_used)]

mod lsn;
mod reader;
mod frame;
mod message;
mod transaction;
mod relation;
mod row;
mod tuple;
mod streaming;
mod prepare;

#[cfg(test)]
pub(crate) mod writer;
#[cfg(test)]
mod tests;

pub use frame::{Frame, Keepalive, StatusUpdate, WireTime, XLogData};
pub use lsn::{Lsn, LsnError};
pub use message::{AbortForm, Block, Context, Message};
pub use prepare::{BeginPrepare, CommitPrepared, Prepare, RollbackPrepared};
pub use reader::{DecodeError, Reader, Span};
pub use relation::{Relation, RelationColumn, RelationId, ReplicaIdentity, TypeName};
pub use row::{Delete, Insert, OldTuple, RelationIds, Truncate, Update};
pub use streaming::{StreamAbort, StreamAborted, StreamCommit, StreamStart};
pub use transaction::{Begin, Commit, LogicalMessage, Origin, Xid};
pub use tuple::{Tuple, TupleValue};

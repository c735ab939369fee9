//! The logical messages of pgoutput: one enum, told apart by their first byte.
//!
//! Whether rows carry a transaction id depends on the place in the stream and not on the message,
//! so the caller says it ([`Context`]). Layouts: PostgreSQL manual, "Logical Replication Message
//! Formats".

use super::prepare::{BeginPrepare, CommitPrepared, Prepare, RollbackPrepared};
use super::reader::{DecodeError, Reader};
use super::relation::{Relation, TypeName};
use super::row::{Delete, Insert, Truncate, Update};
use super::streaming::{StreamAbort, StreamCommit, StreamStart};
use super::transaction::{Begin, Commit, LogicalMessage, Origin, Xid};
use super::tuple::TupleValue;

/// Where in the stream a message stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Block {
    /// In an ordinary transaction, or between transactions.
    #[default]
    Plain,
    /// Between stream start and stream stop: rows, relations and types name their (sub)transaction.
    Streamed,
}

impl Block {
    pub(super) fn xid(self, reader: &mut Reader<'_>) -> Result<Option<Xid>, DecodeError> {
        match self {
            Self::Plain => Ok(None),
            Self::Streamed => reader.u32("transaction id").map(|xid| Some(Xid(xid))),
        }
    }
}

/// How much a stream abort says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AbortForm {
    /// The two transaction ids.
    #[default]
    Short,
    /// Position and time as well: `streaming = parallel` (protocol 4).
    Positioned,
}

/// What the layout of messages depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The place in the stream.
    pub block: Block,
    /// What was negotiated about aborts.
    pub aborts: AbortForm,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// `B`.
    Begin(Begin),
    /// `C`.
    Commit(Commit),
    /// `O`.
    Origin(Origin<'a>),
    /// `R`.
    Relation(Relation<'a>),
    /// `Y`.
    TypeName(TypeName<'a>),
    /// `I`.
    Insert(Insert<'a>),
    /// `U`.
    Update(Update<'a>),
    /// `D`.
    Delete(Delete<'a>),
    /// `T`.
    Truncate(Truncate<'a>),
    /// `M`.
    Logical(LogicalMessage<'a>),
    /// `S`.
    StreamStart(StreamStart),
    /// `E`.
    StreamStop,
    /// `c`.
    StreamCommit(StreamCommit),
    /// `A`.
    StreamAbort(StreamAbort),
    /// `p`.
    StreamPrepare(Prepare<'a>),
    /// `b`.
    BeginPrepare(BeginPrepare<'a>),
    /// `P`.
    Prepare(Prepare<'a>),
    /// `K`.
    CommitPrepared(CommitPrepared<'a>),
    /// `r`.
    RollbackPrepared(RollbackPrepared<'a>),
}

impl<'a> Message<'a> {
    /// Reads one message, which must end where the bytes end. `values` is emptied, and holds the
    /// message's tuples.
    ///
    /// # Errors
    /// The bytes are not exactly one message of the protocol.
    pub fn decode(
        mut reader: Reader<'a>,
        context: Context,
        values: &'a mut Vec<TupleValue>,
    ) -> Result<Self, DecodeError> {
        values.clear();
        let r = &mut reader;
        let at = r.position();
        let message = match r.u8("message tag")? {
            b'I' => Self::Insert(Insert::decode(r, context.block, values)?),
            b'U' => Self::Update(Update::decode(r, context.block, values)?),
            b'D' => Self::Delete(Delete::decode(r, context.block, values)?),
            b'B' => Self::Begin(Begin::decode(r)?),
            b'C' => Self::Commit(Commit::decode(r)?),
            b'O' => Self::Origin(Origin::decode(r)?),
            b'R' => Self::Relation(Relation::decode(r, context.block)?),
            b'Y' => Self::TypeName(TypeName::decode(r, context.block)?),
            b'T' => Self::Truncate(Truncate::decode(r, context.block)?),
            b'M' => Self::Logical(LogicalMessage::decode(r, context.block)?),
            b'S' => Self::StreamStart(StreamStart::decode(r)?),
            b'E' => Self::StreamStop,
            b'c' => Self::StreamCommit(StreamCommit::decode(r)?),
            b'A' => Self::StreamAbort(StreamAbort::decode(r, context.aborts)?),
            b'p' => Self::StreamPrepare(Prepare::decode(r)?),
            b'b' => Self::BeginPrepare(BeginPrepare::decode(r)?),
            b'P' => Self::Prepare(Prepare::decode(r)?),
            b'K' => Self::CommitPrepared(CommitPrepared::decode(r)?),
            b'r' => Self::RollbackPrepared(RollbackPrepared::decode(r)?),
            byte => return Err(DecodeError::Unknown { what: "message tag", at, byte }),
        };
        let name = message.name();
        reader.all(name)?;
        Ok(message)
    }

    /// The message's name in the manual, lower case.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Begin(_) => "begin",
            Self::Commit(_) => "commit",
            Self::Origin(_) => "origin",
            Self::Relation(_) => "relation",
            Self::TypeName(_) => "type",
            Self::Insert(_) => "insert",
            Self::Update(_) => "update",
            Self::Delete(_) => "delete",
            Self::Truncate(_) => "truncate",
            Self::Logical(_) => "logical message",
            Self::StreamStart(_) => "stream start",
            Self::StreamStop => "stream stop",
            Self::StreamCommit(_) => "stream commit",
            Self::StreamAbort(_) => "stream abort",
            Self::StreamPrepare(_) => "stream prepare",
            Self::BeginPrepare(_) => "begin prepare",
            Self::Prepare(_) => "prepare",
            Self::CommitPrepared(_) => "commit prepared",
            Self::RollbackPrepared(_) => "rollback prepared",
        }
    }
}

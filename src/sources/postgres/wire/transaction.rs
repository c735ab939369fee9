//! Messages that frame a transaction, and logical messages.

use std::fmt;

use super::frame::WireTime;
use super::lsn::Lsn;
use super::message::Block;
use super::reader::{DecodeError, Reader};

/// A transaction id (32 bits, wraps around).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Xid(pub u32);

impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The transaction's first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin {
    /// Where its commit record begins: the same as in [`Commit::commit_lsn`].
    pub final_lsn: Lsn,
    /// When it was committed; for a replicated transaction, at its origin.
    pub commit_time: WireTime,
    /// Its id.
    pub xid: Xid,
}

impl Begin {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            final_lsn: Lsn(reader.u64("commit position")?),
            commit_time: WireTime(reader.i64("commit time")?),
            xid: Xid(reader.u32("transaction id")?),
        })
    }
}

/// The transaction's last message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Where its commit record begins.
    pub commit_lsn: Lsn,
    /// Where its commit record ends: what to acknowledge, and where the stream goes on.
    pub end_lsn: Lsn,
    /// When it was committed.
    pub commit_time: WireTime,
}

impl Commit {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.flags("commit flags", 0)?;
        Ok(Self {
            commit_lsn: Lsn(reader.u64("commit position")?),
            end_lsn: Lsn(reader.u64("end position")?),
            commit_time: WireTime(reader.i64("commit time")?),
        })
    }
}

/// Where a replicated transaction comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    /// Its commit position there.
    pub commit_lsn: Lsn,
    /// The replication origin's name.
    pub name: &'a str,
}

impl<'a> Origin<'a> {
    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            commit_lsn: Lsn(reader.u64("origin position")?),
            name: reader.text("origin name")?,
        })
    }
}

/// What an application wrote with `pg_logical_emit_message`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogicalMessage<'a> {
    /// The (sub)transaction, in a streamed block.
    pub xid: Option<Xid>,
    /// Whether it belongs to the transaction around it. If not, it is sent at once, before the
    /// transaction that wrote it, and even if that one aborts.
    pub transactional: bool,
    /// Its position.
    pub lsn: Lsn,
    /// What the application files it under.
    pub prefix: &'a str,
    /// What it says.
    pub content: &'a [u8],
}

impl<'a> LogicalMessage<'a> {
    pub(super) fn decode(reader: &mut Reader<'a>, block: Block) -> Result<Self, DecodeError> {
        let xid = block.xid(reader)?;
        Ok(Self {
            xid,
            transactional: reader.flags("logical message flags", 1)? != 0,
            lsn: Lsn(reader.u64("logical message position")?),
            prefix: reader.text("logical message prefix")?,
            content: reader.sized("logical message content")?,
        })
    }
}

//! Messages about transactions that are sent while they run (protocol 2 and later).

use super::frame::WireTime;
use super::lsn::Lsn;
use super::message::AbortForm;
use super::reader::{DecodeError, Reader};
use super::transaction::{Commit, Xid};

/// A block of a running transaction begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamStart {
    /// The top transaction.
    pub xid: Xid,
    /// Whether this is its first block.
    pub first_segment: bool,
}

impl StreamStart {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            xid: Xid(reader.u32("transaction id")?),
            first_segment: reader.flags("first segment", 1)? != 0,
        })
    }
}

/// A streamed transaction was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamCommit {
    /// The top transaction.
    pub xid: Xid,
    /// As at the end of an ordinary one.
    pub commit: Commit,
}

impl StreamCommit {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { xid: Xid(reader.u32("transaction id")?), commit: Commit::decode(reader)? })
    }
}

/// A streamed transaction, or a part of it, was rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamAbort {
    /// The top transaction.
    pub xid: Xid,
    /// The subtransaction; the top transaction itself if all of it went.
    pub subxid: Xid,
    /// Where and when, if that was asked for.
    pub aborted: Option<StreamAborted>,
}

/// Where and when a streamed transaction was rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamAborted {
    /// The abort record's position.
    pub lsn: Lsn,
    /// The time.
    pub time: WireTime,
}

impl StreamAbort {
    pub(super) fn decode(reader: &mut Reader<'_>, form: AbortForm) -> Result<Self, DecodeError> {
        let xid = Xid(reader.u32("transaction id")?);
        let subxid = Xid(reader.u32("subtransaction id")?);
        let aborted = match form {
            AbortForm::Short => None,
            AbortForm::Positioned => Some(StreamAborted {
                lsn: Lsn(reader.u64("abort position")?),
                time: WireTime(reader.i64("abort time")?),
            }),
        };
        Ok(Self { xid, subxid, aborted })
    }
}

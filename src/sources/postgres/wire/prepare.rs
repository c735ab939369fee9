//! Messages about two-phase commit (protocol 3 and later).

use super::frame::WireTime;
use super::lsn::Lsn;
use super::reader::{DecodeError, Reader};
use super::transaction::Xid;

/// The first message of a transaction that was prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeginPrepare<'a> {
    /// Where its prepare record begins.
    pub prepare_lsn: Lsn,
    /// Where its prepare record ends.
    pub end_lsn: Lsn,
    /// When it was prepared.
    pub prepare_time: WireTime,
    /// Its id.
    pub xid: Xid,
    /// The name it was prepared under.
    pub gid: &'a str,
}

impl<'a> BeginPrepare<'a> {
    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            prepare_lsn: Lsn(reader.u64("prepare position")?),
            end_lsn: Lsn(reader.u64("end position")?),
            prepare_time: WireTime(reader.i64("prepare time")?),
            xid: Xid(reader.u32("transaction id")?),
            gid: reader.text("global transaction id")?,
        })
    }
}

/// The last message of a transaction that was prepared (also of a streamed one).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepare<'a> {
    /// Where its prepare record begins.
    pub prepare_lsn: Lsn,
    /// Where its prepare record ends.
    pub end_lsn: Lsn,
    /// When it was prepared.
    pub prepare_time: WireTime,
    /// Its id.
    pub xid: Xid,
    /// The name it was prepared under.
    pub gid: &'a str,
}

impl<'a> Prepare<'a> {
    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.flags("prepare flags", 0)?;
        Ok(Self {
            prepare_lsn: Lsn(reader.u64("prepare position")?),
            end_lsn: Lsn(reader.u64("end position")?),
            prepare_time: WireTime(reader.i64("prepare time")?),
            xid: Xid(reader.u32("transaction id")?),
            gid: reader.text("global transaction id")?,
        })
    }
}

/// A prepared transaction was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitPrepared<'a> {
    /// Where its commit record begins.
    pub commit_lsn: Lsn,
    /// Where its commit record ends.
    pub end_lsn: Lsn,
    /// When it was committed.
    pub commit_time: WireTime,
    /// Its id.
    pub xid: Xid,
    /// The name it was prepared under.
    pub gid: &'a str,
}

impl<'a> CommitPrepared<'a> {
    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.flags("commit flags", 0)?;
        Ok(Self {
            commit_lsn: Lsn(reader.u64("commit position")?),
            end_lsn: Lsn(reader.u64("end position")?),
            commit_time: WireTime(reader.i64("commit time")?),
            xid: Xid(reader.u32("transaction id")?),
            gid: reader.text("global transaction id")?,
        })
    }
}

/// A prepared transaction was rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollbackPrepared<'a> {
    /// Where its prepare record ended.
    pub prepare_end_lsn: Lsn,
    /// Where its rollback record ends.
    pub rollback_end_lsn: Lsn,
    /// When it was prepared.
    pub prepare_time: WireTime,
    /// When it was rolled back.
    pub rollback_time: WireTime,
    /// Its id.
    pub xid: Xid,
    /// The name it was prepared under.
    pub gid: &'a str,
}

impl<'a> RollbackPrepared<'a> {
    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.flags("rollback flags", 0)?;
        Ok(Self {
            prepare_end_lsn: Lsn(reader.u64("prepare position")?),
            rollback_end_lsn: Lsn(reader.u64("rollback position")?),
            prepare_time: WireTime(reader.i64("prepare time")?),
            rollback_time: WireTime(reader.i64("rollback time")?),
            xid: Xid(reader.u32("transaction id")?),
            gid: reader.text("global transaction id")?,
        })
    }
}

//! Messages that change rows.
//!
//! Does not judge what a tuple means: `n` in an old tuple may be NULL or "not sent", which only the
//! relation's identity tells.

use super::message::Block;
use super::reader::{DecodeError, Reader};
use super::relation::RelationId;
use super::transaction::Xid;
use super::tuple::{Tuple, TupleValue, decode_tuple};

/// A row appeared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insert<'a> {
    /// The (sub)transaction, in a streamed block.
    pub xid: Option<Xid>,
    /// The table.
    pub relation: RelationId,
    /// The row.
    pub new: Tuple<'a>,
}

impl<'a> Insert<'a> {
    pub(super) fn decode(
        reader: &mut Reader<'_>,
        block: Block,
        values: &'a mut Vec<TupleValue>,
    ) -> Result<Self, DecodeError> {
        let xid = block.xid(reader)?;
        let relation = RelationId(reader.u32("relation id")?);
        expect_new(reader)?;
        decode_tuple(reader, values)?;
        Ok(Self { xid, relation, new: values })
    }
}

/// What the server says of the row before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldTuple<'a> {
    /// `K`: the identity columns; the others are `n`, which does not mean NULL.
    Key(Tuple<'a>),
    /// `O`: the whole row, as the published relation's identity promises.
    Full(Tuple<'a>),
}

/// A row changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update<'a> {
    /// The (sub)transaction, in a streamed block.
    pub xid: Option<Xid>,
    /// The table.
    pub relation: RelationId,
    /// The row before, if it was sent.
    pub old: Option<OldTuple<'a>>,
    /// The row after.
    pub new: Tuple<'a>,
}

impl<'a> Update<'a> {
    pub(super) fn decode(
        reader: &mut Reader<'_>,
        block: Block,
        values: &'a mut Vec<TupleValue>,
    ) -> Result<Self, DecodeError> {
        let xid = block.xid(reader)?;
        let relation = RelationId(reader.u32("relation id")?);
        let at = reader.position();
        let old: Option<fn(Tuple<'a>) -> OldTuple<'a>> = match reader.u8("tuple kind")? {
            b'N' => None,
            b'K' => Some(OldTuple::Key),
            b'O' => Some(OldTuple::Full),
            byte => return Err(DecodeError::Unknown { what: "tuple kind", at, byte }),
        };
        if old.is_some() {
            decode_tuple(reader, values)?;
            expect_new(reader)?;
        }
        let old_columns = values.len();
        decode_tuple(reader, values)?;
        let (old_values, new) = values.split_at(old_columns);
        Ok(Self { xid, relation, old: old.map(|kind| kind(old_values)), new })
    }
}

/// A row went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delete<'a> {
    /// The (sub)transaction, in a streamed block.
    pub xid: Option<Xid>,
    /// The table.
    pub relation: RelationId,
    /// The row.
    pub old: OldTuple<'a>,
}

impl<'a> Delete<'a> {
    pub(super) fn decode(
        reader: &mut Reader<'_>,
        block: Block,
        values: &'a mut Vec<TupleValue>,
    ) -> Result<Self, DecodeError> {
        let xid = block.xid(reader)?;
        let relation = RelationId(reader.u32("relation id")?);
        let at = reader.position();
        let kind: fn(Tuple<'a>) -> OldTuple<'a> = match reader.u8("tuple kind")? {
            b'K' => OldTuple::Key,
            b'O' => OldTuple::Full,
            byte => return Err(DecodeError::Unknown { what: "tuple kind", at, byte }),
        };
        decode_tuple(reader, values)?;
        Ok(Self { xid, relation, old: kind(values) })
    }
}

/// All rows of some tables went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncate<'a> {
    /// The (sub)transaction, in a streamed block.
    pub xid: Option<Xid>,
    /// `CASCADE` was said.
    pub cascade: bool,
    /// `RESTART IDENTITY` was said.
    pub restart_identity: bool,
    /// The published tables among those that were emptied.
    pub relations: RelationIds<'a>,
}

impl<'a> Truncate<'a> {
    pub(super) fn decode(reader: &mut Reader<'a>, block: Block) -> Result<Self, DecodeError> {
        let xid = block.xid(reader)?;
        let count = reader.count32("truncated relation count", size_of::<u32>())?;
        let options = reader.flags("truncate options", 3)?;
        let ids = reader.take("truncated relations", count.saturating_mul(size_of::<u32>()))?;
        Ok(Self {
            xid,
            cascade: options & 1 != 0,
            restart_identity: options & 2 != 0,
            relations: RelationIds(ids),
        })
    }
}

/// A list of relations in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelationIds<'a>(&'a [u8]);

impl RelationIds<'_> {
    /// The relations in the server's order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = RelationId> {
        self.0.as_chunks::<4>().0.iter().map(|id| RelationId(u32::from_be_bytes(*id)))
    }
}

fn expect_new(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    let at = reader.position();
    match reader.u8("tuple kind")? {
        b'N' => Ok(()),
        byte => Err(DecodeError::Unknown { what: "tuple kind", at, byte }),
    }
}

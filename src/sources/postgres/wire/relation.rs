//! What the stream says of tables and types. Rare, so the column list may allocate.

use std::fmt;

use super::message::Block;
use super::reader::{DecodeError, Reader};
use super::transaction::Xid;

/// The server's number of a relation: a recreated table has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelationId(pub u32);

impl fmt::Display for RelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How old rows are told (`pg_class.relreplident`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReplicaIdentity {
    /// `d`: by the primary key, if there is one.
    Default,
    /// `n`: not at all.
    Nothing,
    /// `f`: by the whole row.
    Full,
    /// `i`: by the columns of an index.
    Index,
}

impl ReplicaIdentity {
    /// The letter on the wire and in the catalogue.
    pub const fn letter(self) -> u8 {
        match self {
            Self::Default => b'd',
            Self::Nothing => b'n',
            Self::Full => b'f',
            Self::Index => b'i',
        }
    }

    /// The word of `ALTER TABLE … REPLICA IDENTITY`, lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Nothing => "nothing",
            Self::Full => "full",
            Self::Index => "index",
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = reader.position();
        match reader.u8("replica identity")? {
            b'd' => Ok(Self::Default),
            b'n' => Ok(Self::Nothing),
            b'f' => Ok(Self::Full),
            b'i' => Ok(Self::Index),
            byte => Err(DecodeError::Unknown { what: "replica identity", at, byte }),
        }
    }
}

/// A table as of the place in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation<'a> {
    /// The (sub)transaction, in a streamed block.
    pub xid: Option<Xid>,
    /// Its number.
    pub oid: RelationId,
    /// Its schema; empty means `pg_catalog`.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// How its old rows are told. With `publish_via_partition_root` this is the root's setting,
    /// while the tuples follow the leaf's.
    pub replica_identity: ReplicaIdentity,
    /// The published columns; tuples follow this order.
    pub columns: Vec<RelationColumn<'a>>,
}

/// A column of a [`Relation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelationColumn<'a> {
    /// Part of the replica identity.
    pub identity: bool,
    /// Its name.
    pub name: &'a str,
    /// The number of its type.
    pub type_oid: u32,
    /// The type's modifier; −1: none.
    pub typmod: i32,
}

/// Flags, an empty name, type and modifier.
const SMALLEST_COLUMN: usize = 10;

impl<'a> Relation<'a> {
    pub(super) fn decode(reader: &mut Reader<'a>, block: Block) -> Result<Self, DecodeError> {
        let xid = block.xid(reader)?;
        let oid = RelationId(reader.u32("relation id")?);
        let namespace = reader.text("relation namespace")?;
        let name = reader.text("relation name")?;
        let replica_identity = ReplicaIdentity::decode(reader)?;
        let count = reader.count16("relation column count", SMALLEST_COLUMN)?;
        let mut columns = Vec::with_capacity(count);
        for _ in 0..count {
            columns.push(RelationColumn {
                identity: reader.flags("column flags", 1)? != 0,
                name: reader.text("column name")?,
                type_oid: reader.u32("column type")?,
                typmod: reader.i32("column type modifier")?,
            });
        }
        Ok(Self { xid, oid, namespace, name, replica_identity, columns })
    }
}

/// The name of a type that is not built in. For a domain the number is the domain's, and the name
/// its base type's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeName<'a> {
    /// The (sub)transaction, in a streamed block.
    pub xid: Option<Xid>,
    /// Its number.
    pub oid: u32,
    /// Its schema; empty means `pg_catalog`.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

impl<'a> TypeName<'a> {
    pub(super) fn decode(reader: &mut Reader<'a>, block: Block) -> Result<Self, DecodeError> {
        let xid = block.xid(reader)?;
        Ok(Self {
            xid,
            oid: reader.u32("type id")?,
            namespace: reader.text("type namespace")?,
            name: reader.text("type name")?,
        })
    }
}

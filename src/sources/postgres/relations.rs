//! What the stream has said of each relation, and what the driver answered.
//!
//! A relation message speaks of the place in the log where it stands, so it is the only thing by
//! which rows are decoded. Knows no catalogue: the driver asks it and installs the answer.
//! **Invariant:** a description that says something new takes the relation back to
//! [`RelationState::WaitingForCatalog`]; no row passes in that state.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::wire;
use super::wire::{RelationId, ReplicaIdentity};
use crate::error::{Code, Fault};

/// A table as of a place in the stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelationDescriptor {
    /// The server's number of the table.
    #[serde(with = "super::state::relation_number")]
    pub oid: RelationId,
    /// Its schema.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How its old rows are told.
    #[serde(with = "super::state::identity_letter")]
    pub replica_identity: ReplicaIdentity,
    /// The published columns; rows follow this order.
    pub columns: Vec<RelationColumn>,
}

/// A column of a [`RelationDescriptor`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelationColumn {
    /// Part of the replica identity (under FULL every column is).
    pub identity: bool,
    /// Its name.
    pub name: String,
    /// The number of its type.
    pub type_oid: u32,
    /// The type's modifier; −1: none.
    pub typmod: i32,
}

impl RelationDescriptor {
    /// Takes a message over. An empty namespace means `pg_catalog` on the wire, and is written out.
    pub fn from_wire(relation: &wire::Relation<'_>) -> Self {
        let namespace = match relation.namespace {
            "" => "pg_catalog",
            namespace => namespace,
        };
        let columns = relation.columns.iter().map(|column| RelationColumn {
            identity: column.identity,
            name: column.name.to_owned(),
            type_oid: column.type_oid,
            typmod: column.typmod,
        });
        Self {
            oid: relation.oid,
            namespace: namespace.to_owned(),
            name: relation.name.to_owned(),
            replica_identity: relation.replica_identity,
            columns: columns.collect(),
        }
    }

    /// `namespace.name`, for people.
    pub fn qualified_name(&self) -> String {
        format!("{}.{}", self.namespace, self.name)
    }

    /// A number for everything that the stream says of the table, the same in every run and
    /// version of the program: FNV-1a (64 bits) over, in this order, namespace, name, relation
    /// number, identity letter, column count, and for each column identity flag, name, type number
    /// and modifier. Text is preceded by its length in bytes (64 bits); numbers are big-endian.
    ///
    /// Stored with table states and offsets, so the recipe must not change.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Fnv::default();
        hash.text(&self.namespace);
        hash.text(&self.name);
        hash.bytes(&self.oid.0.to_be_bytes());
        hash.bytes(&[self.replica_identity.letter()]);
        hash.length(self.columns.len());
        for column in &self.columns {
            hash.bytes(&[u8::from(column.identity)]);
            hash.text(&column.name);
            hash.bytes(&column.type_oid.to_be_bytes());
            hash.bytes(&column.typmod.to_be_bytes());
        }
        hash.value()
    }

    /// The first column of this table's identity that the given leaf's identity lacks.
    ///
    /// With `publish_via_partition_root` flags and letter of a message are the root's, while the
    /// contents of old tuples follow the leaf's identity. Only if the leaf's covers the root's do
    /// they mean what they say.
    pub fn identity_missing_in(&self, leaf: &Self) -> Option<&str> {
        let covered =
            |name: &str| leaf.columns.iter().any(|column| column.identity && column.name == name);
        let mut identity = self.columns.iter().filter(|column| column.identity);
        let missing = identity.find(|column| !covered(&column.name)).map(|column| &*column.name);
        // An index over all columns flags them all as well, but sends no old row if none changed.
        let needs_full = self.replica_identity == ReplicaIdentity::Full
            && leaf.replica_identity != ReplicaIdentity::Full;
        missing.or_else(|| needs_full.then(|| self.columns.first().map_or("", |first| &first.name)))
    }
}

/// What a table became on the driver's side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledTable {
    /// The driver's own number for the table version; handed back with every row.
    pub index: usize,
    /// The columns by which records are keyed, as indexes into the descriptor's.
    pub key: Vec<usize>,
}

/// Where a relation stands.
#[derive(Clone, Debug)]
pub enum RelationState {
    /// Entered by a description that says something new; left by the driver's answer.
    WaitingForCatalog(Arc<RelationDescriptor>),
    /// Entered by `install`; left by a description that says something new.
    Ready {
        /// What rows are decoded by.
        descriptor: Arc<RelationDescriptor>,
        /// What the driver made of it.
        table: InstalledTable,
    },
    /// Entered by `exclude`; left by a description that says something new (a renamed table may be
    /// captured). Keeps no more than it must: a publication of all tables can name very many.
    Excluded {
        /// Of the description that was judged.
        fingerprint: u64,
    },
}

/// All relations that the stream has named.
#[derive(Clone, Debug, Default)]
pub(super) struct Relations(HashMap<RelationId, RelationState>);

impl Relations {
    pub(super) fn state(&self, oid: RelationId) -> Option<&RelationState> {
        self.0.get(&oid)
    }

    /// By what changes of a relation are decoded; `None`: they are not wanted.
    pub(super) fn wanted(
        &self,
        oid: RelationId,
    ) -> Result<Option<(&RelationDescriptor, &InstalledTable)>, Fault> {
        match self.0.get(&oid) {
            Some(RelationState::Ready { descriptor, table }) => Ok(Some((descriptor, table))),
            Some(RelationState::Excluded { .. }) => Ok(None),
            Some(RelationState::WaitingForCatalog(descriptor)) => Err(Code::RelationUnknown
                .fault("a change came before the relation's description was answered")
                .at_table(descriptor.qualified_name())),
            None => Err(Code::RelationUnknown.fault(format!("relation {oid} was not described"))),
        }
    }

    /// The descriptions of those of which rows are wanted.
    pub(super) fn captured(&self) -> impl Iterator<Item = &Arc<RelationDescriptor>> {
        self.0.values().filter_map(|state| match state {
            RelationState::Ready { descriptor, .. } => Some(descriptor),
            RelationState::WaitingForCatalog(_) | RelationState::Excluded { .. } => None,
        })
    }

    /// Takes note of a description; `false` if it says what was already answered.
    pub(super) fn describe(&mut self, descriptor: &Arc<RelationDescriptor>) -> bool {
        let answered = match self.0.get(&descriptor.oid) {
            None | Some(RelationState::WaitingForCatalog(_)) => false,
            Some(RelationState::Ready { descriptor: known, .. }) => known == descriptor,
            Some(RelationState::Excluded { fingerprint }) => {
                *fingerprint == descriptor.fingerprint()
            }
        };
        if !answered {
            let waiting = RelationState::WaitingForCatalog(Arc::clone(descriptor));
            self.0.insert(descriptor.oid, waiting);
        }
        !answered
    }

    /// Answers a description. `false` if there is none to answer, or the key is not within it.
    pub(super) fn install(&mut self, oid: RelationId, table: InstalledTable) -> bool {
        let Some(state) = self.0.get_mut(&oid) else { return false };
        let descriptor = match &*state {
            RelationState::WaitingForCatalog(descriptor)
            | RelationState::Ready { descriptor, .. } => Arc::clone(descriptor),
            RelationState::Excluded { .. } => return false,
        };
        if table.key.iter().any(|index| *index >= descriptor.columns.len()) {
            return false;
        }
        *state = RelationState::Ready { descriptor, table };
        true
    }

    /// Answers a description: its rows are not wanted. `false` if there is none to answer.
    pub(super) fn exclude(&mut self, oid: RelationId) -> bool {
        let Some(state) = self.0.get_mut(&oid) else { return false };
        let fingerprint = match &*state {
            RelationState::WaitingForCatalog(descriptor)
            | RelationState::Ready { descriptor, .. } => descriptor.fingerprint(),
            RelationState::Excluded { fingerprint } => *fingerprint,
        };
        *state = RelationState::Excluded { fingerprint };
        true
    }
}

/// FNV-1a, 64 bits, over parts whose borders are part of the hash.
pub(super) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(super) fn length(&mut self, length: usize) {
        self.bytes(&(length as u64).to_be_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.length(text.len());
        self.bytes(text.as_bytes());
    }

    pub(super) const fn value(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(identity: ReplicaIdentity, columns: &[(&str, bool)]) -> RelationDescriptor {
        let column = |(name, identity): &(&str, bool)| RelationColumn {
            identity: *identity,
            name: (*name).to_owned(),
            type_oid: 23,
            typmod: -1,
        };
        RelationDescriptor {
            oid: RelationId(16_384),
            namespace: "public".to_owned(),
            name: "t".to_owned(),
            replica_identity: identity,
            columns: columns.iter().map(column).collect(),
        }
    }

    fn sample() -> RelationDescriptor {
        descriptor(ReplicaIdentity::Default, &[("id", true), ("v", false)])
    }

    #[test]
    fn the_fingerprint_is_pinned() {
        assert_eq!(sample().fingerprint(), 0x3e14_21b3_d508_b95e);
    }

    #[test]
    fn everything_that_the_stream_says_is_in_the_fingerprint() {
        let changes: [fn(&mut RelationDescriptor); 10] = [
            |d| d.oid = RelationId(1),
            |d| d.namespace = "p".to_owned(),
            |d| d.name = "t2".to_owned(),
            |d| d.replica_identity = ReplicaIdentity::Index,
            |d| d.columns.swap(0, 1),
            |d| d.columns.truncate(1),
            |d| d.columns[1].identity = true,
            |d| d.columns[1].name = "w".to_owned(),
            |d| d.columns[1].type_oid = 25,
            |d| d.columns[1].typmod = 8,
        ];
        let mut seen = std::collections::HashSet::from([sample().fingerprint()]);
        for (number, change) in changes.iter().enumerate() {
            let mut changed = sample();
            change(&mut changed);
            assert!(seen.insert(changed.fingerprint()), "change {number}");
        }
    }

    #[test]
    fn the_border_between_two_names_is_in_the_fingerprint() {
        let (mut one, mut two) = (sample(), sample());
        (one.namespace, one.name) = ("ab".to_owned(), "c".to_owned());
        (two.namespace, two.name) = ("a".to_owned(), "bc".to_owned());
        assert_ne!(one.fingerprint(), two.fingerprint());
    }

    #[track_caller]
    fn check_leaf(root: &RelationDescriptor, leaf: &RelationDescriptor, expect: Option<&str>) {
        assert_eq!(root.identity_missing_in(leaf), expect);
    }

    #[test]
    fn a_leafs_identity_must_cover_its_roots() {
        use ReplicaIdentity::{Default, Full, Index, Nothing};
        let full = descriptor(Full, &[("id", true), ("v", true)]);
        let by_id = descriptor(Default, &[("id", true), ("v", false)]);
        let by_v = descriptor(Index, &[("v", true), ("id", false)]);
        let by_all = descriptor(Index, &[("v", true), ("id", true)]);
        let none = descriptor(Nothing, &[("id", false), ("v", false)]);
        check_leaf(&full, &full, None);
        check_leaf(&full, &by_id, Some("v"));
        check_leaf(&full, &by_all, Some("id"));
        check_leaf(&by_id, &by_id, None);
        check_leaf(&by_id, &full, None);
        check_leaf(&by_id, &by_v, Some("id"));
        check_leaf(&by_id, &none, Some("id"));
        check_leaf(&none, &full, None);
    }

    #[test]
    fn an_identical_description_needs_no_new_answer_but_a_different_one_does() {
        let mut relations = Relations::default();
        let (first, mut second) = (Arc::new(sample()), sample());
        let oid = first.oid;
        assert!(relations.describe(&first), "new");
        assert!(relations.describe(&first), "still not answered");
        assert!(relations.install(oid, InstalledTable { index: 0, key: vec![0] }));
        assert!(!relations.describe(&Arc::new(sample())), "answered");
        second.columns[1].typmod = 5;
        let second = Arc::new(second);
        assert!(relations.describe(&second));
        assert!(matches!(relations.state(oid), Some(RelationState::WaitingForCatalog(_))));
        assert!(relations.exclude(oid));
        assert!(!relations.describe(&second), "judged");
        assert!(relations.describe(&first), "may be captured under its new description");
    }

    #[test]
    fn an_answer_must_fit_its_question() {
        let mut relations = Relations::default();
        let oid = RelationId(16_384);
        assert!(!relations.install(oid, InstalledTable { index: 0, key: vec![] }));
        assert!(!relations.exclude(oid));
        assert!(relations.describe(&Arc::new(sample())));
        assert!(!relations.install(oid, InstalledTable { index: 0, key: vec![2] }));
    }
}

//! What is remembered of each table's definition across restarts.
//!
//! The last versions of a table: what the stream said, and what of the catalogue was used. Written
//! in the Kafka transaction of the control record that announced the version, so a replayed
//! description finds itself here, is not announced twice, and compiles the same schema.
//! **Invariant:** the version that a place in the stream belongs to is the newest one announced at
//! or before that place.

use serde::{Deserialize, Serialize};

use super::catalogue::TableFacts;
use super::probe::Sight;
use super::relations::RelationDescriptor;
use super::row_filter::Applied;
use super::values::TypeRow;
use super::wire::Lsn;
use crate::error::{Code, Fault};
use crate::stage::TableState;

/// Where in the stream a description holds from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Place {
    /// The commit position of the transaction; for a snapshot's versions, the snapshot's position.
    #[serde(with = "lsn_text")]
    pub(super) commit: Lsn,
    /// The number of the change before which it holds.
    pub(super) sequence: u64,
}

/// A version as it was announced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownVersion {
    /// Its epoch.
    pub(super) epoch: u64,
    /// Where it was announced.
    pub(super) place: Place,
    /// What the stream said.
    pub(super) descriptor: RelationDescriptor,
    /// What of the catalogue was used.
    pub(super) facts: Option<TableFacts>,
    /// What was known of its types that a user made: they may be gone when its rows are read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) types: Vec<TypeRow>,
}

impl KnownVersion {
    fn is_named(&self, namespace: &str, name: &str) -> bool {
        self.descriptor.namespace == namespace && self.descriptor.name == name
    }
}

/// So many names of before are remembered of a table.
const FORMER_NAMES: usize = 8;

/// The versions of one table, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TableHistory {
    versions: Vec<KnownVersion>,
    /// The last version under each name that the table had before, oldest first.
    former: Vec<KnownVersion>,
    /// Where and how its versions are announced.
    pub(super) told: Option<String>,
    /// The row filter by which the table's rows are published.
    pub(super) filter: Option<String>,
    /// What that filter's columns were when it was applied; `None`: that is not known yet.
    pub(super) applied: Option<Applied>,
    /// How the catalogue had the table when it was last looked at.
    pub(super) sight: Option<Sight>,
    /// What the server left out by itself, and so is not known here.
    pub(super) pushed: Option<PushedDown>,
    /// The id of the change that was told of last as one at which the task stops.
    pub(super) refused: Option<String>,
    /// The topics hold rows by an earlier filter too: another one was applied from then on only.
    pub(super) is_mixed: bool,
    /// The table was not captured any more at some start: what was written since is not published.
    pub(super) has_left: bool,
}

/// Up to where the publication's row filter decided what comes of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PushedDown {
    /// A position of the stream.
    #[serde(with = "lsn_text")]
    pub(super) until: Lsn,
    /// The number under which the publication lists the table with that filter.
    pub(super) entry: u32,
}

impl PushedDown {
    /// It still does.
    pub(super) const fn by(entry: u32) -> Self {
        Self { until: Lsn(u64::MAX), entry }
    }

    /// Whether it still does.
    pub(super) const fn lasts(self) -> bool {
        self.until.0 == u64::MAX
    }
}

/// The stored form.
#[derive(Serialize, Deserialize)]
struct Stored {
    format: u32,
    versions: Vec<KnownVersion>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    former: Vec<KnownVersion>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    filter: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    applied: Option<Applied>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sight: Option<Sight>,
    pushed: Option<PushedDown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_mixed: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_left: bool,
}

const FORMAT: u32 = 1;

impl TableHistory {
    /// Reads a stored history.
    ///
    /// # Errors
    /// `OFFSET-MALFORMED`: another format, or not one at all.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Fault> {
        let malformed = |what: String| {
            Code::OffsetMalformed
                .fault(format!("a stored table state cannot be understood: {what}"))
        };
        let stored: Stored =
            serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
        if stored.format != FORMAT {
            return Err(malformed(format!(
                "format {}, this program knows {FORMAT}",
                stored.format
            )));
        }
        Ok(Self {
            versions: stored.versions,
            former: stored.former,
            told: stored.told,
            filter: stored.filter,
            applied: stored.applied,
            sight: stored.sight,
            pushed: stored.pushed,
            refused: stored.refused,
            is_mixed: stored.is_mixed,
            has_left: stored.has_left,
        })
    }

    /// The state to be stored, under the table's number.
    ///
    /// # Errors
    /// Only if the program is wrong.
    pub(super) fn encode(&self) -> Result<TableState, Fault> {
        let newest =
            self.versions.last().ok_or_else(|| Code::Internal.fault("an empty table history"))?;
        let stored = Stored {
            format: FORMAT,
            versions: self.versions.clone(),
            former: self.former.clone(),
            told: self.told.clone(),
            filter: self.filter.clone(),
            applied: self.applied.clone(),
            sight: self.sight.clone(),
            pushed: self.pushed,
            refused: self.refused.clone(),
            is_mixed: self.is_mixed,
            has_left: self.has_left,
        };
        let value = serde_json::to_vec(&stored)
            .map_err(|error| Code::Internal.fault("a table state").caused_by(&error))?;
        Ok(TableState { key: newest.descriptor.oid.0.to_string(), value: Some(value) })
    }

    /// The version that a place belongs to.
    pub(super) fn at(&self, place: Place) -> Option<&KnownVersion> {
        self.versions.iter().rev().find(|version| version.place <= place)
    }

    /// Whether the table had this name in a version that is remembered.
    pub(super) fn was_named(&self, namespace: &str, name: &str) -> bool {
        self.versions.iter().any(|version| {
            (version.descriptor.namespace.as_str(), version.descriptor.name.as_str())
                == (namespace, name)
        })
    }

    /// The newest version.
    pub(super) fn newest(&self) -> Option<&KnownVersion> {
        self.versions.last()
    }

    /// The last version under a name, which may be another one by now.
    pub(super) fn under(&self, namespace: &str, name: &str) -> Option<&KnownVersion> {
        let versions = self.newest().into_iter().chain(self.former.iter().rev());
        versions.into_iter().find(|version| version.is_named(namespace, name))
    }

    /// What was known of types, newest version first.
    pub(super) fn types(&self) -> impl Iterator<Item = &[TypeRow]> {
        self.versions.iter().rev().map(|version| version.types.as_slice())
    }

    /// Adds a version. Of earlier ones only those are kept that a replay of the same transaction
    /// can meet: its own, and the last one before it.
    pub(super) fn push(&mut self, version: KnownVersion) {
        let commit = version.place.commit;
        if let Some(last) = self.versions.last() {
            let RelationDescriptor { namespace, name, .. } = &version.descriptor;
            if !last.is_named(namespace, name) {
                let last = last.clone();
                let RelationDescriptor { namespace, name, .. } = &last.descriptor;
                self.former.retain(|one| !one.is_named(namespace, name));
                self.former.push(last);
                let surplus = self.former.len().saturating_sub(FORMER_NAMES);
                self.former.drain(..surplus);
            }
        }
        self.versions.push(version);
        let before = self.versions.iter().filter(|known| known.place.commit < commit).count();
        self.versions.drain(..before.saturating_sub(1));
    }
}

/// Positions as `X/Y`: 64 bits do not fit the numbers of other JSON readers.
mod lsn_text {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::sources::postgres::wire::Lsn;

    pub(super) fn serialize<S: Serializer>(lsn: &Lsn, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(lsn)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Lsn, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// A relation's number as a number.
pub(super) mod relation_number {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::sources::postgres::wire::RelationId;

    pub(in crate::sources::postgres) fn serialize<S: Serializer>(
        relation: &RelationId,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        out.serialize_u32(relation.0)
    }

    pub(in crate::sources::postgres) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<RelationId, D::Error> {
        u32::deserialize(from).map(RelationId)
    }
}

/// A replica identity as its letter.
pub(super) mod identity_letter {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::sources::postgres::wire::ReplicaIdentity;

    pub(in crate::sources::postgres) fn serialize<S: Serializer>(
        identity: &ReplicaIdentity,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        out.serialize_char(char::from(identity.letter()))
    }

    pub(in crate::sources::postgres) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<ReplicaIdentity, D::Error> {
        match char::deserialize(from)? {
            'd' => Ok(ReplicaIdentity::Default),
            'n' => Ok(ReplicaIdentity::Nothing),
            'f' => Ok(ReplicaIdentity::Full),
            'i' => Ok(ReplicaIdentity::Index),
            other => Err(D::Error::custom(format!("'{other}' is no replica identity"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::postgres::wire::{RelationId, ReplicaIdentity};

    fn version(epoch: u64, commit: u64, sequence: u64) -> KnownVersion {
        KnownVersion {
            epoch,
            place: Place { commit: Lsn(commit), sequence },
            descriptor: RelationDescriptor {
                oid: RelationId(7),
                namespace: "public".to_owned(),
                name: "t".to_owned(),
                replica_identity: ReplicaIdentity::Full,
                columns: Vec::new(),
            },
            facts: None,
            types: Vec::new(),
        }
    }

    fn epochs(history: &TableHistory) -> Vec<u64> {
        history.versions.iter().map(|version| version.epoch).collect()
    }

    #[test]
    fn a_replayed_transaction_finds_the_versions_that_it_announced() {
        let mut history = TableHistory::default();
        for (epoch, commit, sequence) in [(1, 10, 0), (2, 20, 1), (3, 30, 4), (4, 30, 9)] {
            history.push(version(epoch, commit, sequence));
        }
        assert_eq!(epochs(&history), [2, 3, 4]);
        let at = |commit, sequence| {
            history.at(Place { commit: Lsn(commit), sequence }).map(|version| version.epoch)
        };
        assert_eq!(at(30, 1), Some(2));
        assert_eq!(at(30, 4), Some(3));
        assert_eq!(at(30, 8), Some(3));
        assert_eq!(at(30, 9), Some(4));
        assert_eq!(at(31, 1), Some(4));
        assert_eq!(at(15, 1), None);
    }

    #[test]
    fn the_last_version_under_each_name_is_remembered() {
        let mut history = TableHistory::default();
        for (epoch, name) in [(1, "t"), (2, "t"), (3, "u"), (4, "u"), (5, "v"), (6, "u")] {
            let mut version = version(epoch, 10 * epoch, 0);
            name.clone_into(&mut version.descriptor.name);
            history.push(version);
        }
        let under = |name| history.under("public", name).map(|version| version.epoch);
        assert_eq!(
            (under("t"), under("u"), under("v"), under("w")),
            (Some(2), Some(6), Some(5), None)
        );
        let bytes = history.encode().unwrap().value.unwrap();
        assert_eq!(TableHistory::decode(&bytes).unwrap(), history);
    }

    #[test]
    fn a_history_comes_back_and_another_format_is_refused() {
        let mut history = TableHistory::default();
        history.push(version(1, u64::MAX, 3));
        let state = history.encode().unwrap();
        assert_eq!(state.key, "7");
        let bytes = state.value.unwrap();
        assert_eq!(TableHistory::decode(&bytes).unwrap(), history);
        let other = String::from_utf8(bytes).unwrap().replace("\"format\":1", "\"format\":9");
        let fault = TableHistory::decode(other.as_bytes()).unwrap_err();
        assert_eq!(fault.code(), Code::OffsetMalformed);
        assert!(TableHistory::decode(b"x").is_err());
    }
}

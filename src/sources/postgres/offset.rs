//! The source offset: where this connector resumes, as one record of fixed size.
//!
//! Written by the publisher inside the Kafka transaction that it belongs to, and opaque to it.
//! **Invariants:** an offset names the server (system identifier, timeline) and the slot it is
//! meaningful for; a record of another length, version or checksum is refused, never guessed at.

use super::wire::Lsn;
use crate::error::{Code, Fault};

/// Bytes of an encoded offset.
pub const ENCODED_LEN: usize = 176;

const VERSION: u8 = 1;
const SLOT_LEN: usize = 63;

/// Where a connector stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The server's system identifier.
    pub system_id: u64,
    /// The server's timeline.
    pub timeline: u32,
    /// The slot that the positions belong to (at most 63 bytes).
    pub slot: String,
    /// Tells this attempt at creating the slot from others.
    pub nonce: u64,
    /// How far the connector got.
    pub phase: Phase,
    /// How far inside the next transaction Kafka already holds, if it was split.
    pub inside: Option<Inside>,
    /// Fingerprint of the settings that change record bytes.
    pub settings_fingerprint: u64,
    /// Fingerprint of the publication.
    pub publication_fingerprint: u64,
    /// Tells a publication that was altered from one that was not, also if it says the same again;
    /// 0: not known.
    pub publication_stamp: u64,
}

/// How far a connector got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The slot is about to be created; whatever has its name after this was made by us.
    Creating,
    /// The initial snapshot is under way. Rows of it may be visible; which tables are read through is
    /// among the table states.
    Snapshot {
        /// The position that the snapshot shows; if an earlier one was interrupted, that which it showed.
        consistent_point: Lsn,
        /// There is a slot that has everything since, and that the stream is going to begin with.
        has_slot: bool,
    },
    /// Every transaction that ends at or before this position is in Kafka.
    Streaming {
        /// The end of the last transaction (or a keepalive's position).
        end: Lsn,
    },
    /// The snapshot is done, and no stream was asked for (`snapshot.mode=initial_only`).
    SnapshotDone {
        /// The position that the snapshot showed.
        consistent_point: Lsn,
    },
}

/// A place inside a transaction: everything up to and including it is in Kafka.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    /// The transaction's commit position.
    pub commit: Lsn,
    /// The last change whose records are all in Kafka.
    pub sequence: u64,
}

impl Offset {
    /// Encodes it: version, phase, numbers big-endian, the slot's name zero-padded, a number
    /// that earlier versions left 0, a checksum.
    pub fn encode(&self) -> Vec<u8> {
        let (phase, position, flags) = match self.phase {
            Phase::Creating => (1, Lsn(0), 0),
            Phase::Snapshot { consistent_point, has_slot } => {
                (2, consistent_point, u8::from(has_slot))
            }
            Phase::Streaming { end } => (3, end, 0),
            Phase::SnapshotDone { consistent_point } => (4, consistent_point, 0),
        };
        let (commit, sequence) =
            self.inside.map_or((0, 0), |inside| (inside.commit.0, inside.sequence));
        let mut out = Vec::with_capacity(ENCODED_LEN);
        out.extend([VERSION, phase, flags, u8::from(self.inside.is_some())]);
        out.extend(self.timeline.to_be_bytes());
        for number in [
            self.system_id,
            position.0,
            self.nonce,
            commit,
            sequence,
            self.settings_fingerprint,
            self.publication_fingerprint,
        ] {
            out.extend(number.to_be_bytes());
        }
        let slot: Vec<u8> = self.slot.bytes().take(SLOT_LEN).collect();
        out.push(u8::try_from(slot.len()).unwrap_or(0));
        out.extend(&slot);
        out.resize(out.len() + SLOT_LEN - slot.len(), 0);
        out.extend(self.publication_stamp.to_be_bytes());
        out.resize(ENCODED_LEN - 8, 0);
        out.extend(checksum(&out).to_be_bytes());
        out
    }

    /// What a person is told of it.
    pub fn describe(&self) -> serde_json::Value {
        let (phase, position) = match self.phase {
            Phase::Creating => ("creating", None),
            Phase::Snapshot { consistent_point, .. } => ("snapshot", Some(consistent_point)),
            Phase::Streaming { end } => ("streaming", Some(end)),
            Phase::SnapshotDone { consistent_point } => ("snapshot_done", Some(consistent_point)),
        };
        serde_json::json!({
            "phase": phase,
            "lsn": position.map(|position| position.0),
            "position": position.map(|position| position.to_string()),
            "slot": self.slot,
            "system_id": self.system_id.to_string(),
            "timeline": self.timeline,
        })
    }

    /// Decodes what [`Offset::encode`] wrote.
    ///
    /// # Errors
    /// `OFFSET-MALFORMED`: another length, version, phase or checksum.
    pub fn decode(bytes: &[u8]) -> Result<Self, Fault> {
        let malformed =
            |what: &str| Code::OffsetMalformed.fault(format!("the stored offset has {what}"));
        let (body, sum) = bytes
            .split_last_chunk::<8>()
            .filter(|(body, _)| body.len() == ENCODED_LEN - 8)
            .ok_or_else(|| malformed(&format!("{} bytes instead of {ENCODED_LEN}", bytes.len())))?;
        if checksum(body) != u64::from_be_bytes(*sum) {
            return Err(malformed("a wrong checksum"));
        }
        let mut fields = Fields(body);
        let [version, phase, flags, has_inside] = fields.take();
        if version != VERSION {
            return Err(malformed(&format!("version {version}, this program knows {VERSION}")));
        }
        let timeline = u32::from_be_bytes(fields.take());
        let [system_id, position, nonce, commit, sequence, settings, publication] =
            std::array::from_fn(|_| u64::from_be_bytes(fields.take()));
        let [slot_len] = fields.take();
        let slot: [u8; SLOT_LEN] = fields.take();
        let stamp = u64::from_be_bytes(fields.take());
        let slot = slot
            .get(..usize::from(slot_len))
            .and_then(|name| std::str::from_utf8(name).ok())
            .ok_or_else(|| malformed("an illegal slot name"))?;
        let position = Lsn(position);
        let phase = match phase {
            1 => Phase::Creating,
            2 => Phase::Snapshot { consistent_point: position, has_slot: flags & 1 == 1 },
            3 => Phase::Streaming { end: position },
            4 => Phase::SnapshotDone { consistent_point: position },
            other => return Err(malformed(&format!("phase {other}"))),
        };
        Ok(Self {
            system_id,
            timeline,
            slot: slot.to_owned(),
            nonce,
            phase,
            inside: (has_inside == 1).then_some(Inside { commit: Lsn(commit), sequence }),
            settings_fingerprint: settings,
            publication_fingerprint: publication,
            publication_stamp: stamp,
        })
    }
}

/// Reads fixed-size fields; the length was checked before, so a short rest reads as zeros.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((field, rest)) => {
                self.0 = rest;
                *field
            }
            None => [0; N],
        }
    }
}

/// FNV-1a, 64 bits: guards against truncation and foreign records, not against malice.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(phase: Phase, inside: Option<Inside>) -> Offset {
        Offset {
            system_id: u64::MAX - 3,
            timeline: 7,
            slot: "a_slot".to_owned(),
            nonce: 42,
            phase,
            inside,
            settings_fingerprint: 11,
            publication_fingerprint: 12,
            publication_stamp: 13,
        }
    }

    #[test]
    fn every_phase_comes_back_from_a_record_of_fixed_size() {
        let inside = Some(Inside { commit: Lsn(9), sequence: 77 });
        for phase in [
            Phase::Creating,
            Phase::Snapshot { consistent_point: Lsn(5), has_slot: true },
            Phase::Snapshot { consistent_point: Lsn(5), has_slot: false },
            Phase::Streaming { end: Lsn(u64::MAX) },
            Phase::SnapshotDone { consistent_point: Lsn(6) },
        ] {
            for inside in [None, inside] {
                let original = offset(phase, inside);
                let bytes = original.encode();
                assert_eq!(bytes.len(), ENCODED_LEN);
                assert_eq!(Offset::decode(&bytes).unwrap(), original);
            }
        }
        let mut long = offset(Phase::Creating, None);
        long.slot = "s".repeat(SLOT_LEN);
        assert_eq!(Offset::decode(&long.encode()).unwrap(), long);
    }

    #[test]
    fn a_damaged_offset_is_refused_wherever_it_is_damaged() {
        let bytes = offset(Phase::Streaming { end: Lsn(1) }, None).encode();
        for index in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[index] ^= 0x10;
            let fault = Offset::decode(&damaged).unwrap_err();
            assert_eq!(fault.code(), Code::OffsetMalformed, "byte {index}");
            assert!(Offset::decode(&bytes[..index]).is_err(), "cut at {index}");
        }
    }
}

//! What a `CopyData` of the replication stream holds: log data or a keepalive; and what we answer.
//!
//! Does not look into log data. Layouts: PostgreSQL manual, "Streaming Replication Protocol".

use super::lsn::Lsn;
use super::reader::{DecodeError, Reader};

/// A moment as the protocol says it: microseconds since 2000-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WireTime(pub i64);

/// 2000-01-01T00:00:00Z in microseconds since 1970-01-01T00:00:00Z.
const EPOCH_MICROS: i64 = 946_684_800_000_000;

impl WireTime {
    /// The moment that is so many microseconds after 1970-01-01T00:00:00Z.
    pub const fn from_unix_micros(micros: i64) -> Self {
        Self(micros.saturating_sub(EPOCH_MICROS))
    }

    /// Microseconds since 1970-01-01T00:00:00Z. Saturates: a commit time that an origin supplies
    /// may be any number.
    pub const fn unix_micros(self) -> i64 {
        self.0.saturating_add(EPOCH_MICROS)
    }
}

/// A piece of the log.
#[derive(Clone, Copy, Debug)]
pub struct XLogData<'a> {
    /// The change's position; 0 for messages that have none (relation, type).
    pub wal_start: Lsn,
    /// For logical decoding the same as the start.
    pub wal_end: Lsn,
    /// The server's clock.
    pub sent_at: WireTime,
    /// The message, still to be decoded.
    pub payload: Reader<'a>,
}

/// A sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// How far the server has read its log.
    pub wal_end: Lsn,
    /// The server's clock.
    pub sent_at: WireTime,
    /// Whether the server wants an answer now.
    pub reply_requested: bool,
}

/// A frame of the replication stream.
#[derive(Clone, Copy, Debug)]
pub enum Frame<'a> {
    /// `w`.
    XLogData(XLogData<'a>),
    /// `k`.
    Keepalive(Keepalive),
}

impl<'a> Frame<'a> {
    /// Reads the payload of a `CopyData`.
    ///
    /// # Errors
    /// It is neither kind, or too short, or (keepalive) too long.
    pub fn decode(frame: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(frame);
        match reader.u8("frame tag")? {
            b'w' => Ok(Self::XLogData(XLogData {
                wal_start: Lsn(reader.u64("start position")?),
                wal_end: Lsn(reader.u64("end position")?),
                sent_at: WireTime(reader.i64("clock")?),
                payload: reader,
            })),
            b'k' => {
                let keepalive = Keepalive {
                    wal_end: Lsn(reader.u64("end position")?),
                    sent_at: WireTime(reader.i64("clock")?),
                    reply_requested: reader.flags("reply request", 1)? != 0,
                };
                reader.all("keepalive")?;
                Ok(Self::Keepalive(keepalive))
            }
            byte => Err(DecodeError::Unknown { what: "frame tag", at: 0, byte }),
        }
    }
}

/// What the client tells the server. Each position is that of the last byte plus one; the slot
/// moves by `flushed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusUpdate {
    /// Received and written.
    pub written: Lsn,
    /// Durable: the server may forget everything before.
    pub flushed: Lsn,
    /// Applied.
    pub applied: Lsn,
    /// The client's clock.
    pub clock: WireTime,
    /// Whether the server shall answer at once.
    pub reply_requested: bool,
}

impl StatusUpdate {
    /// The size of an encoded update.
    pub const LENGTH: usize = 34;

    /// Appends the payload of the `CopyData`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.reserve(Self::LENGTH);
        out.push(b'r');
        for position in [self.written, self.flushed, self.applied] {
            out.extend_from_slice(&position.0.to_be_bytes());
        }
        out.extend_from_slice(&self.clock.0.to_be_bytes());
        out.push(u8::from(self.reply_requested));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_data_keeps_its_payload_and_positions() {
        let mut bytes = vec![b'w'];
        bytes.extend(5_u64.to_be_bytes());
        bytes.extend(6_u64.to_be_bytes());
        bytes.extend((-7_i64).to_be_bytes());
        bytes.extend(b"xyz");
        let Ok(Frame::XLogData(data)) = Frame::decode(&bytes) else { panic!("log data") };
        assert_eq!((data.wal_start, data.wal_end, data.sent_at), (Lsn(5), Lsn(6), WireTime(-7)));
        assert_eq!((data.payload.position(), data.payload.left()), (25, 3));
    }

    #[test]
    fn a_keepalive_is_read_to_its_end() {
        let mut bytes = vec![b'k'];
        bytes.extend(0x1_0000_0000_u64.to_be_bytes());
        bytes.extend(9_i64.to_be_bytes());
        bytes.push(1);
        let Ok(Frame::Keepalive(keepalive)) = Frame::decode(&bytes) else { panic!("keepalive") };
        assert_eq!(
            keepalive,
            Keepalive { wal_end: Lsn(1 << 32), sent_at: WireTime(9), reply_requested: true }
        );
        bytes.push(0);
        assert!(matches!(Frame::decode(&bytes), Err(DecodeError::LeftOver { at: 18, .. })));
    }

    #[test]
    fn other_frames_are_refused() {
        assert!(matches!(Frame::decode(b"h"), Err(DecodeError::Unknown { byte: b'h', .. })));
        assert!(matches!(Frame::decode(b""), Err(DecodeError::Missing { .. })));
    }

    #[test]
    fn a_status_update_has_the_servers_layout() {
        let update = StatusUpdate {
            written: Lsn(3),
            flushed: Lsn(2),
            applied: Lsn(1),
            clock: WireTime::from_unix_micros(EPOCH_MICROS + 5),
            reply_requested: true,
        };
        let mut out = Vec::new();
        update.encode(&mut out);
        assert_eq!(out.len(), StatusUpdate::LENGTH);
        let mut reader = Reader::new(&out);
        assert_eq!(reader.u8("tag"), Ok(b'r'));
        assert_eq!(reader.u64("written"), Ok(3));
        assert_eq!(reader.u64("flushed"), Ok(2));
        assert_eq!(reader.u64("applied"), Ok(1));
        assert_eq!(reader.i64("clock"), Ok(5));
        assert_eq!(reader.u8("reply"), Ok(1));
        assert_eq!(reader.all("update"), Ok(()));
    }

    #[test]
    fn times_saturate_instead_of_wrapping() {
        assert_eq!(WireTime(i64::MAX).unix_micros(), i64::MAX);
        assert_eq!(WireTime::from_unix_micros(i64::MIN), WireTime(i64::MIN));
        assert_eq!(WireTime(0).unix_micros(), EPOCH_MICROS);
    }
}

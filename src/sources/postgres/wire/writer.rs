//! Builds messages for tests: the other direction of the protocol, with nothing left out.

use super::frame::WireTime;
use super::lsn::Lsn;

/// Appends fields in network byte order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

/// A column of a tuple.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sent<'a> {
    Null,
    Unchanged,
    Text(&'a str),
    Binary(&'a str),
}

/// A column of a relation: identity flag, name, type, modifier.
pub(crate) type Described<'a> = (bool, &'a str, u32, i32);

impl Writer {
    pub(crate) fn tag(tag: u8) -> Self {
        Self::default().u8(tag)
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u8(self, number: u8) -> Self {
        self.bytes(&[number])
    }

    pub(crate) fn count16(self, count: usize) -> Self {
        self.bytes(&i16::try_from(count).unwrap().to_be_bytes())
    }

    pub(crate) fn count32(self, count: usize) -> Self {
        self.bytes(&i32::try_from(count).unwrap().to_be_bytes())
    }

    pub(crate) fn u32(self, number: u32) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    pub(crate) fn i32(self, number: i32) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    pub(crate) fn lsn(self, lsn: u64) -> Self {
        self.bytes(&lsn.to_be_bytes())
    }

    pub(crate) fn time(self, time: i64) -> Self {
        self.bytes(&time.to_be_bytes())
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes()).u8(0)
    }

    pub(crate) fn tuple(self, kind: u8, values: &[Sent<'_>]) -> Self {
        let start = self.u8(kind).count16(values.len());
        values.iter().fold(start, |writer, value| match value {
            Sent::Null => writer.u8(b'n'),
            Sent::Unchanged => writer.u8(b'u'),
            Sent::Text(text) => writer.u8(b't').count32(text.len()).bytes(text.as_bytes()),
            Sent::Binary(text) => writer.u8(b'b').count32(text.len()).bytes(text.as_bytes()),
        })
    }

    /// Wraps the message into log data at a position.
    pub(crate) fn framed(self, lsn: Lsn) -> Vec<u8> {
        let sent_at = WireTime::from_unix_micros(1_800_000_000_000_000);
        Self::tag(b'w').lsn(lsn.0).lsn(lsn.0).time(sent_at.0).bytes(&self.0).0
    }
}

pub(crate) fn begin(commit_lsn: u64, xid: u32) -> Writer {
    Writer::tag(b'B').lsn(commit_lsn).time(1).u32(xid)
}

pub(crate) fn commit(commit_lsn: u64, end_lsn: u64) -> Writer {
    Writer::tag(b'C').u8(0).lsn(commit_lsn).lsn(end_lsn).time(1)
}

pub(crate) fn relation(oid: u32, name: &str, identity: u8, columns: &[Described<'_>]) -> Writer {
    let start = Writer::tag(b'R').u32(oid).text("public").text(name).u8(identity);
    columns.iter().fold(start.count16(columns.len()), |writer, (flag, name, type_oid, typmod)| {
        writer.u8(u8::from(*flag)).text(name).u32(*type_oid).i32(*typmod)
    })
}

pub(crate) fn type_name(oid: u32, namespace: &str, name: &str) -> Writer {
    Writer::tag(b'Y').u32(oid).text(namespace).text(name)
}

pub(crate) fn insert(oid: u32, new: &[Sent<'_>]) -> Writer {
    Writer::tag(b'I').u32(oid).tuple(b'N', new)
}

pub(crate) fn update(oid: u32, old: Option<(u8, &[Sent<'_>])>, new: &[Sent<'_>]) -> Writer {
    let start = Writer::tag(b'U').u32(oid);
    let start = match old {
        Some((kind, old)) => start.tuple(kind, old),
        None => start,
    };
    start.tuple(b'N', new)
}

pub(crate) fn delete(oid: u32, kind: u8, old: &[Sent<'_>]) -> Writer {
    Writer::tag(b'D').u32(oid).tuple(kind, old)
}

pub(crate) fn truncate(options: u8, oids: &[u32]) -> Writer {
    let start = Writer::tag(b'T').count32(oids.len()).u8(options);
    oids.iter().fold(start, |writer, oid| writer.u32(*oid))
}

pub(crate) fn logical(transactional: bool, lsn: u64, prefix: &str, content: &str) -> Writer {
    let start = Writer::tag(b'M').u8(u8::from(transactional)).lsn(lsn).text(prefix);
    start.count32(content.len()).bytes(content.as_bytes())
}

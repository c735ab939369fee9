//! Messages of the frontend/backend protocol over a byte stream: framing and buffering.
//!
//! The bottom of everything that talks to the server. Knows the frame (a tag, a length, a body;
//! manual, "Message Formats") and no message's meaning.
//! **Invariants:** a body borrows from the one receive buffer and is never copied or allocated for;
//! memory grows only with bytes that really arrived; both directions may be cancelled at any await
//! without losing or repeating a byte.

use std::io;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::error::{Code, Fault};

/// Free space wanted before each read: the larger a read, the fewer the wake-ups on both sides.
const READ_BYTES: usize = 256 * 1024;
/// A buffer that one long message stretched beyond this is given back afterwards.
const KEEP_BYTES: usize = 4 * 1024 * 1024;
/// Before the server has proved who it is, it cannot make us buffer more (libpq has such limits).
pub(super) const HANDSHAKE_LIMIT: usize = 64 * 1024;
/// The server's own limit on one message (`MaxAllocSize`, memutils.h).
pub(super) const MESSAGE_LIMIT: usize = 0x3fff_ffff;
/// Tag and length.
const HEAD: usize = 5;

/// One message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) tag: u8,
    pub(super) body: &'a [u8],
}

/// The receiving direction.
#[derive(Debug)]
pub(super) struct Incoming<R> {
    reader: R,
    buffer: BytesMut,
    /// Length of the message that was handed out last; it goes with the next call.
    handed_out: usize,
    limit: usize,
    endpoint: Arc<str>,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    /// Begins to receive. `endpoint` is named in faults.
    pub(super) fn new(reader: R, endpoint: Arc<str>) -> Self {
        let buffer = BytesMut::with_capacity(READ_BYTES);
        Self { reader, buffer, handed_out: 0, limit: HANDSHAKE_LIMIT, endpoint }
    }

    /// Sets the limit on one message.
    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// The connection ended, or a message is malformed or longer than the limit.
    pub(super) async fn next(&mut self) -> Result<Frame<'_>, Fault> {
        let tag = self.wait().await?;
        Ok(Frame { tag, body: self.body() })
    }

    /// Waits for the next message and tells its tag; [`Self::body`] then has its body.
    ///
    /// # Errors
    /// Like [`Self::next`].
    pub(super) async fn wait(&mut self) -> Result<u8, Fault> {
        loop {
            if let Some(tag) = self.advance()? {
                return Ok(tag);
            }
            self.fill().await?;
        }
    }

    /// Goes to the next message, if all of it has arrived already, and tells its tag.
    ///
    /// # Errors
    /// A message is malformed or longer than the limit.
    pub(super) fn advance(&mut self) -> Result<Option<u8>, Fault> {
        self.release();
        let Some(total) = self.complete()? else { return Ok(None) };
        self.handed_out = total;
        Ok(self.buffer.first().copied())
    }

    /// The body of the message that was handed out last.
    pub(super) fn body(&self) -> &[u8] {
        self.buffer.get(HEAD..self.handed_out).unwrap_or_default()
    }

    /// The length of the message at the front, once all of it is there.
    fn complete(&self) -> Result<Option<usize>, Fault> {
        Ok(self.announced()?.filter(|total| *total <= self.buffer.len()))
    }

    /// The length that the message at the front claims, tag included.
    fn announced(&self) -> Result<Option<usize>, Fault> {
        let Some(&[tag, a, b, c, d]) = self.buffer.first_chunk::<HEAD>() else { return Ok(None) };
        let length = u32::from_be_bytes([a, b, c, d]);
        // The length counts itself, not the tag.
        match usize::try_from(length).ok().filter(|length| *length >= HEAD - 1) {
            Some(length) if length <= self.limit => Ok(Some(length + 1)),
            _ => Err(Code::ProtocolUnexpected.fault(format!(
                "message 0x{tag:02x} from {} claims {length} bytes, {} are allowed",
                self.endpoint, self.limit
            ))),
        }
    }

    fn release(&mut self) {
        self.buffer.advance(self.handed_out);
        let was_long = self.handed_out > KEEP_BYTES;
        self.handed_out = 0;
        if was_long && self.buffer.len() < READ_BYTES {
            let mut fresh = BytesMut::with_capacity(READ_BYTES);
            fresh.extend_from_slice(&self.buffer);
            self.buffer = fresh;
        }
    }

    /// Reads what is there, at least one byte.
    async fn fill(&mut self) -> Result<(), Fault> {
        let missing = self.announced()?.map_or(0, |total| total.saturating_sub(self.buffer.len()));
        // Doubling bounds what a false length can make us allocate by what was really sent.
        let wanted = missing.min(self.buffer.len()).max(READ_BYTES / 4);
        if self.buffer.capacity() - self.buffer.len() < wanted {
            self.buffer.reserve(wanted.max(READ_BYTES));
        }
        match self.reader.read_buf(&mut self.buffer).await {
            Ok(0) => Err(Code::SourceUnreachable
                .fault(format!("the server at {} closed the connection", self.endpoint))),
            Ok(_) => Ok(()),
            Err(error) => Err(lost(&self.endpoint, &error)),
        }
    }
}

/// The sending direction.
#[derive(Debug)]
pub(super) struct Outgoing<W> {
    writer: W,
    buffer: BytesMut,
    endpoint: Arc<str>,
}

impl<W: AsyncWrite + Unpin> Outgoing<W> {
    /// Begins to send.
    pub(super) fn new(writer: W, endpoint: Arc<str>) -> Self {
        Self { writer, buffer: BytesMut::new(), endpoint }
    }

    /// Where messages are appended for the next [`Self::flush`].
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Sends what was appended. If it is cancelled, the next call goes on at the same byte.
    ///
    /// # Errors
    /// The connection ended.
    pub(super) async fn flush(&mut self) -> Result<(), Fault> {
        while !self.buffer.is_empty() {
            match self.writer.write_buf(&mut self.buffer).await {
                Ok(0) => return Err(lost(&self.endpoint, &io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) => return Err(lost(&self.endpoint, &error)),
            }
        }
        self.writer.flush().await.map_err(|error| lost(&self.endpoint, &error))
    }

    /// Says goodbye and closes the direction, as far as that still is possible.
    pub(super) async fn shutdown(&mut self) {
        postgres_protocol::message::frontend::terminate(&mut self.buffer);
        let goodbye = async {
            self.flush().await?;
            self.writer.shutdown().await.map_err(|error| lost(&self.endpoint, &error))
        };
        if let Err(fault) = goodbye.await {
            tracing::debug!(error = %fault, "closing a connection that was closed already");
        }
    }
}

/// The fault of a broken connection.
pub(super) fn lost(endpoint: &str, error: &io::Error) -> Fault {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    // TLS 1.3 lets a server refuse our certificate after the handshake, by an alert.
    let code = match tls {
        Some(rustls::Error::AlertReceived(_)) => Code::SourceTls,
        _ => Code::SourceUnreachable,
    };
    code.fault(format!("the connection to {endpoint} broke")).caused_by(error)
}

/// Reads the parts of a message body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body<'a>(pub(super) &'a [u8]);

impl<'a> Body<'a> {
    /// The next `count` bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    /// One byte.
    pub(super) fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// A 16-bit count.
    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// A 32-bit number.
    pub(super) fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// Text up to a zero byte, in whatever encoding the server is in before it knows ours.
    pub(super) fn text(&mut self) -> Option<std::borrow::Cow<'a, str>> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let text = self.bytes(end)?;
        self.byte()?;
        Some(String::from_utf8_lossy(text))
    }
}

/// The fault of a message whose body is not of its form.
pub(super) fn malformed(tag: u8) -> Fault {
    Code::ProtocolUnexpected.fault(format!("malformed message '{}'", tag.escape_ascii()))
}

/// The fault of a message that has no place here.
pub(super) fn unexpected(tag: u8, during: &str) -> Fault {
    let tag = tag.escape_ascii();
    Code::ProtocolUnexpected.fault(format!("unexpected message '{tag}' {during}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).expect("a short body");
        [&[tag][..], &length.to_be_bytes(), body].concat()
    }

    fn incoming(bytes: &[u8]) -> Incoming<&[u8]> {
        Incoming::new(bytes, "test:1".into())
    }

    #[tokio::test]
    async fn messages_come_whole_and_in_order() {
        let bytes = [frame(b'a', b"one"), frame(b'b', b""), frame(b'c', &[7; 300_000])].concat();
        let mut incoming = incoming(&bytes);
        incoming.set_limit(MESSAGE_LIMIT);
        let first = incoming.next().await.expect("first");
        assert_eq!((first.tag, first.body), (b'a', &b"one"[..]));
        assert_eq!(incoming.advance().expect("well-formed"), Some(b'b'));
        assert_eq!(incoming.body(), b"");
        assert_eq!(incoming.advance().expect("well-formed so far"), None);
        let third = incoming.next().await.expect("third");
        assert_eq!((third.tag, third.body.len()), (b'c', 300_000));
        let end = incoming.next().await.expect_err("the end");
        assert_eq!(end.code(), Code::SourceUnreachable);
        assert!(end.message().contains("test:1"), "{end}");
    }

    #[tokio::test]
    async fn a_stream_cut_anywhere_yields_the_same_messages() {
        let bytes = [frame(b'x', b"payload"), frame(b'y', b"!")].concat();
        for cut in 0..=bytes.len() {
            let (mut near, far) = tokio::io::duplex(64);
            let mut incoming = Incoming::new(far, "test:1".into());
            let (before, after) = bytes.split_at(cut);
            near.write_all(before).await.expect("room");
            // A read that is given up half way must not lose what it had.
            let early = tokio::time::timeout(std::time::Duration::ZERO, incoming.wait()).await;
            let seen = early.is_ok();
            near.write_all(after).await.expect("room");
            if !seen {
                let first = incoming.next().await.expect("first");
                assert_eq!((first.tag, first.body), (b'x', &b"payload"[..]));
            }
            let second = incoming.next().await.expect("second");
            assert_eq!((second.tag, second.body), (b'y', &b"!"[..]), "cut at {cut}");
        }
    }

    #[track_caller]
    fn check_refused(bytes: &[u8]) {
        let mut incoming = incoming(bytes);
        incoming.buffer.extend_from_slice(bytes);
        assert_eq!(incoming.advance().expect_err("refused").code(), Code::ProtocolUnexpected);
    }

    #[test]
    fn impossible_lengths_are_refused() {
        check_refused(&[b'd', 0, 0, 0, 3]);
        check_refused(&[b'd', 0xff, 0xff, 0xff, 0xff]);
        check_refused(&[b'd', 0, 1, 0, 1]); // one more than the handshake allows
    }

    #[tokio::test]
    async fn a_long_message_does_not_keep_its_memory() {
        let bytes = [frame(b'l', &vec![1; 3 * KEEP_BYTES]), frame(b's', b"short")].concat();
        let mut incoming = incoming(&bytes);
        incoming.set_limit(MESSAGE_LIMIT);
        assert_eq!(incoming.next().await.expect("long").body.len(), 3 * KEEP_BYTES);
        assert_eq!(incoming.next().await.expect("short").body, b"short");
        assert!(incoming.buffer.capacity() <= 2 * READ_BYTES);
    }

    #[tokio::test]
    async fn a_cancelled_send_goes_on_at_the_same_byte() {
        let (near, mut far) = tokio::io::duplex(3);
        let mut outgoing = Outgoing::new(near, "test:1".into());
        outgoing.buffer().extend_from_slice(b"0123456789");
        let given_up =
            tokio::time::timeout(std::time::Duration::from_millis(1), outgoing.flush()).await;
        assert!(given_up.is_err());
        let read = async {
            let mut seen = [0; 10];
            far.read_exact(&mut seen).await.expect("ten bytes");
            seen
        };
        let (sent, seen) = tokio::join!(outgoing.flush(), read);
        sent.expect("sent");
        assert_eq!(&seen, b"0123456789");
    }
}

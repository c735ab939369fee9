//! The replication stream: `CopyBoth`, one direction for each half.
//!
//! Hands the payload of each `CopyData` to the decoder as it lies in the receive buffer, and sends
//! status updates. Does not look into payloads. The halves are independent, so that the server
//! hears from us while nobody reads. Protocol: manual, "Streaming Replication Protocol".
//! **Invariants:** a notice that changes are being left out ends the stream with a fault; the end
//! of the stream is `None` only if we asked for it; both halves may be cancelled at any await.

use bytes::BufMut;
use postgres_protocol::message::frontend;
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf, WriteHalf};

use super::channel::{Incoming, Outgoing, malformed, unexpected};
use super::query::log_notice;
use super::server_message::{During, ServerMessage};
use super::{Connection, Socket};
use crate::error::{Code, Fault};
use crate::sources::postgres::session::ServerVersion;
use crate::sources::postgres::wire::{Lsn, StatusUpdate};

/// What the stream is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions<'a> {
    /// The publication, spelled as the catalogue spells it.
    pub publication: &'a str,
    /// Whether logical messages are wanted (from version 14 on).
    pub messages: bool,
}

impl StreamOptions<'_> {
    /// Protocol 1: whole transactions, after their commit.
    const PROTOCOL: u32 = 1;

    fn command(&self, slot: &str, start: Lsn, version: ServerVersion) -> String {
        // The list of names is split like a list of identifiers, and folded to lower case unless
        // quoted; outside it is a string constant (`SplitIdentifierString`, varlena.c).
        let publication = format!("\"{}\"", self.publication.replace('"', "\"\""));
        let publication = publication.replace('\'', "''");
        let messages = if self.messages && version.major() >= 14 { ", messages 'on'" } else { "" };
        format!(
            "START_REPLICATION SLOT {} LOGICAL {start} (proto_version '{}', \
             publication_names '{publication}'{messages})",
            super::identifier(slot),
            Self::PROTOCOL
        )
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Attaches to a slot and starts the stream.
    ///
    /// The server begins at the later of `start` and what the slot has confirmed, whatever is
    /// asked; comparing them is for the caller.
    ///
    /// # Errors
    /// The slot is missing, lost, in use or foreign, or the connection breaks.
    pub async fn start_replication(
        mut self,
        slot: &str,
        start: Lsn,
        options: &StreamOptions<'_>,
    ) -> Result<ReplicationStream<S>, Fault> {
        self.enter_stream(slot, start, options).await?;
        Ok(self.into_stream())
    }

    /// As [`Self::start_replication`], but a refusal leaves the connection usable.
    pub(crate) async fn enter_stream(
        &mut self,
        slot: &str,
        start: Lsn,
        options: &StreamOptions<'_>,
    ) -> Result<(), Fault> {
        let what = format!("starting the stream of the replication slot \"{slot}\"");
        let command = options.command(slot, start, self.version);
        self.send_query(&what, &command).await?;
        let mut refusal = None;
        loop {
            let frame = self.incoming.next().await?;
            match frame.tag {
                b'W' => return Ok(()),
                b'E' => {
                    let message =
                        ServerMessage::parse(frame.body).ok_or_else(|| malformed(b'E'))?;
                    let fault = message.fault(During::StartStream, &what);
                    if message.is_final() {
                        return Err(fault);
                    }
                    refusal.get_or_insert(fault);
                }
                b'Z' => {
                    self.idle = true;
                    return Err(refusal.unwrap_or_else(|| unexpected(b'Z', &what)));
                }
                b'N' | b'S' => log_notice(frame.tag, frame.body),
                other => return Err(unexpected(other, &what)),
            }
        }
    }

    /// Turns a connection in which the stream was entered into the stream.
    pub(crate) fn into_stream(self) -> ReplicationStream<S> {
        ReplicationStream {
            reader: ReplicationReader { incoming: self.incoming, phase: Phase::Streaming },
            writer: ReplicationWriter { outgoing: self.outgoing, payload: Vec::new() },
        }
    }
}

/// The running stream.
#[derive(Debug)]
pub struct ReplicationStream<S = Socket> {
    reader: ReplicationReader<S>,
    writer: ReplicationWriter<S>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> ReplicationStream<S> {
    /// See [`ReplicationReader::next`].
    ///
    /// # Errors
    /// See [`ReplicationReader::next`].
    pub async fn next(&mut self) -> Result<Option<&[u8]>, Fault> {
        self.reader.next().await
    }

    /// See [`ReplicationWriter::send_status`].
    ///
    /// # Errors
    /// The connection broke.
    pub async fn send_status(&mut self, update: &StatusUpdate) -> Result<(), Fault> {
        self.writer.send_status(update).await
    }

    /// The two directions, to be used by different tasks.
    pub fn into_split(self) -> (ReplicationReader<S>, ReplicationWriter<S>) {
        (self.reader, self.writer)
    }
}

/// Where the receiving half is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Streaming,
    /// The server sent `CopyDone`. It may still send the rest of the transaction that it was at.
    Ending,
    Ended,
}

/// The receiving half of the stream.
#[derive(Debug)]
pub struct ReplicationReader<S = Socket> {
    incoming: Incoming<ReadHalf<S>>,
    phase: Phase,
}

impl<S: AsyncRead + Unpin> ReplicationReader<S> {
    /// Waits for the next payload. `None`: the stream ended because we asked for it.
    ///
    /// # Errors
    /// The server reports an error or leaves changes out, the connection breaks, or a message is
    /// malformed.
    pub async fn next(&mut self) -> Result<Option<&[u8]>, Fault> {
        while self.phase != Phase::Ended {
            let tag = self.incoming.wait().await?;
            if self.is_payload(tag)? {
                return Ok(Some(self.incoming.body()));
            }
        }
        Ok(None)
    }

    /// The next payload, if it has arrived already.
    ///
    /// # Errors
    /// Like [`Self::next`].
    pub fn try_next(&mut self) -> Result<Option<&[u8]>, Fault> {
        while self.phase != Phase::Ended {
            let Some(tag) = self.incoming.advance()? else { return Ok(None) };
            if self.is_payload(tag)? {
                return Ok(Some(self.incoming.body()));
            }
        }
        Ok(None)
    }

    fn is_payload(&mut self, tag: u8) -> Result<bool, Fault> {
        match (tag, self.phase) {
            (b'd', Phase::Streaming) => return Ok(true),
            (b'd', Phase::Ending) | (b'C', Phase::Ending) | (b'S', _) => {}
            (b'c', _) => self.phase = Phase::Ending,
            (b'Z', Phase::Ending) => self.phase = Phase::Ended,
            // A server that shuts down ends the command without ending the copy (`WalSndDone`).
            (b'C', _) => {
                return Err(Code::StreamStopped.fault("the server ends the stream to shut down"));
            }
            (b'N', _) => self.heed_notice()?,
            (b'E', _) => return Err(self.error()),
            (other, _) => return Err(unexpected(other, "on the replication stream")),
        }
        Ok(false)
    }

    fn heed_notice(&self) -> Result<(), Fault> {
        let body = self.incoming.body();
        let notice = ServerMessage::parse(body).ok_or_else(|| malformed(b'N'))?;
        if notice.tells_of_lost_publication() {
            return Err(Code::PublicationMissing
                .fault(format!("the server leaves changes out of the stream: {notice}"))
                .hint(
                    "The publication does not exist at the place that the server decodes; creating \
                     it again does not bring those changes back. Drop the slot, delete the \
                     connector's offset and snapshot anew.",
                ));
        }
        log_notice(b'N', body);
        Ok(())
    }

    fn error(&self) -> Fault {
        ServerMessage::parse(self.incoming.body()).map_or_else(
            || malformed(b'E'),
            |message| message.fault(During::Stream, "the server ends the stream"),
        )
    }
}

/// The sending half of the stream.
#[derive(Debug)]
pub struct ReplicationWriter<S = Socket> {
    outgoing: Outgoing<WriteHalf<S>>,
    payload: Vec<u8>,
}

impl<S: AsyncWrite + Unpin> ReplicationWriter<S> {
    /// Tells the server how far we are. It may forget everything before `update.flushed`.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn send_status(&mut self, update: &StatusUpdate) -> Result<(), Fault> {
        self.payload.clear();
        update.encode(&mut self.payload);
        let out = self.outgoing.buffer();
        out.put_u8(b'd');
        // The length counts itself.
        out.put_u32(u32::try_from(self.payload.len() + 4).unwrap_or(u32::MAX));
        out.put_slice(&self.payload);
        self.outgoing.flush().await
    }

    /// Asks the server to end the stream; the reader then comes to its end.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn finish(&mut self) -> Result<(), Fault> {
        frontend::copy_done(self.outgoing.buffer());
        self.outgoing.flush().await
    }

    /// Says goodbye and closes the direction.
    pub async fn close(mut self) {
        self.outgoing.shutdown().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_command(publication: &str, messages: bool, version: u32, expect: &str) {
        let options = StreamOptions { publication, messages };
        let command = options.command("s_1", Lsn(0x1_0000_00AB), ServerVersion(version));
        assert_eq!(command, format!("START_REPLICATION SLOT \"s_1\" LOGICAL 1/AB ({expect})"));
    }

    #[test]
    fn names_survive_both_layers_of_quoting() {
        check_command("p", false, 150_004, r#"proto_version '1', publication_names '"p"'"#);
        check_command(
            "Pub-X",
            true,
            140_000,
            r#"proto_version '1', publication_names '"Pub-X"', messages 'on'"#,
        );
        check_command(
            "a'b\"c",
            false,
            150_004,
            r#"proto_version '1', publication_names '"a''b""c"'"#,
        );
    }

    #[test]
    fn a_server_before_14_is_not_asked_for_messages() {
        check_command("p", true, 130_023, r#"proto_version '1', publication_names '"p"'"#);
    }
}

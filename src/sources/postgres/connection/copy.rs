//! `COPY … TO STDOUT`: the rows of a table as they arrive.
//!
//! Hands out each row's bytes from the receive buffer. Does not know COPY's notation. Protocol:
//! manual, "COPY Operations": one `CopyData` for each row.
//! **Invariant:** a copy that is given up leaves its connection unusable, never out of step.

use tokio::io::{AsyncRead, AsyncWrite};

use super::channel::{malformed, unexpected};
use super::query::{is_asynchronous, log_notice};
use super::server_message::{During, ServerMessage};
use super::{Connection, Socket};
use crate::error::Fault;

/// A running copy.
#[derive(Debug)]
pub struct CopyOut<'c, S = Socket> {
    connection: &'c mut Connection<S>,
    what: String,
    ended: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Starts a `COPY … TO STDOUT`. `what` says for people what it reads.
    ///
    /// # Errors
    /// The server refuses, or the connection breaks.
    pub async fn copy_out(&mut self, what: &str, sql: &str) -> Result<CopyOut<'_, S>, Fault> {
        self.send_query(what, sql).await?;
        let mut copy = CopyOut { connection: self, what: what.to_owned(), ended: false };
        loop {
            match copy.connection.incoming.wait().await? {
                b'H' => return Ok(copy),
                b'E' => return Err(copy.refusal().await),
                tag if is_asynchronous(tag) => log_notice(tag, copy.connection.incoming.body()),
                other => return Err(unexpected(other, what)),
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> CopyOut<'_, S> {
    /// Waits for the next row. `None`: that was all, and the connection is ready again.
    ///
    /// # Errors
    /// The server reports an error, or the connection breaks.
    pub async fn next(&mut self) -> Result<Option<&[u8]>, Fault> {
        while !self.ended {
            match self.connection.incoming.wait().await? {
                b'd' => return Ok(Some(self.connection.incoming.body())),
                b'c' | b'C' => {}
                b'Z' => {
                    self.connection.idle = true;
                    self.ended = true;
                }
                b'E' => return Err(self.refusal().await),
                tag if is_asynchronous(tag) => log_notice(tag, self.connection.incoming.body()),
                other => return Err(unexpected(other, &self.what)),
            }
        }
        Ok(None)
    }

    /// Reads the error that just arrived and what follows it, up to the server's readiness.
    async fn refusal(&mut self) -> Fault {
        let Some(message) = ServerMessage::parse(self.connection.incoming.body()) else {
            return malformed(b'E');
        };
        let fault = message.fault(During::Copy, &self.what);
        self.ended = true;
        while !message.is_final() {
            match self.connection.incoming.wait().await {
                Ok(b'Z') => {
                    self.connection.idle = true;
                    break;
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        fault
    }
}

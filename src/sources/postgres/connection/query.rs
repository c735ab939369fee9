//! Statements and their rows, by the simple query protocol.
//!
//! One round trip for each call; a walsender understands no other protocol, so every connection
//! uses this one. Knows no catalogue. Protocol: manual, "Simple Query" of the message flow.
//! **Invariant:** a connection whose exchange was given up half way refuses the next one, so that
//! an answer can never be taken for the answer to another question.

use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use postgres_protocol::escape;
use postgres_protocol::message::frontend;
use tokio::io::{AsyncRead, AsyncWrite};

use super::Connection;
use super::channel::{Body, malformed, unexpected};
use super::server_message::{During, ServerMessage};
use crate::error::{Code, Fault};

/// Writes a text as an SQL literal.
pub fn literal(text: &str) -> String {
    escape::escape_literal(text)
}

/// Writes a name as an SQL identifier.
pub fn identifier(name: &str) -> String {
    escape::escape_identifier(name)
}

/// One row of an answer. Values are text.
#[derive(Clone, Debug)]
pub struct Row {
    bytes: Box<[u8]>,
    cells: Vec<Option<Range<usize>>>,
}

impl Row {
    /// Reads the body of a `DataRow` message.
    pub(in crate::sources::postgres) fn parse(body: &[u8]) -> Option<Self> {
        let mut rest = Body(body);
        let count = rest.u16()?;
        // Each cell takes four bytes at least, so the count cannot make us allocate in vain.
        let mut cells = Vec::with_capacity(usize::from(count).min(body.len() / 4));
        for _ in 0..count {
            let cell = match usize::try_from(rest.i32()?) {
                Ok(length) => {
                    let start = body.len() - rest.0.len();
                    rest.bytes(length)?;
                    Some(start..start + length)
                }
                // A length of -1 is NULL.
                Err(_) => None,
            };
            cells.push(cell);
        }
        Some(Self { bytes: body.into(), cells })
    }

    /// The bytes of a cell; `None` is NULL.
    ///
    /// # Errors
    /// There is no such cell.
    pub fn bytes(&self, index: usize) -> Result<Option<&[u8]>, Fault> {
        let cell = self.cells.get(index).ok_or_else(|| {
            Code::ProtocolUnexpected
                .fault(format!("a row of {} columns, number {index} is needed", self.cells.len()))
        })?;
        Ok(cell.clone().and_then(|range| self.bytes.get(range)))
    }

    /// The text of a cell; `None` is NULL.
    ///
    /// # Errors
    /// There is no such cell, or it is not UTF-8.
    pub fn optional(&self, index: usize) -> Result<Option<&str>, Fault> {
        let Some(bytes) = self.bytes(index)? else { return Ok(None) };
        std::str::from_utf8(bytes).map(Some).map_err(|error| {
            Code::ServerEncoding
                .fault(format!("the server sent text that is not UTF-8 (column {index})"))
                .caused_by(&error)
        })
    }

    /// The text of a cell that cannot be NULL.
    ///
    /// # Errors
    /// There is no such cell, or it is NULL or not UTF-8.
    pub fn text(&self, index: usize) -> Result<&str, Fault> {
        self.optional(index)?.ok_or_else(|| {
            Code::ProtocolUnexpected.fault(format!("the server sent NULL for column {index}"))
        })
    }

    /// A truth value; NULL is false.
    ///
    /// # Errors
    /// There is no such cell.
    pub fn is_true(&self, index: usize) -> Result<bool, Fault> {
        Ok(self.bytes(index)? == Some(b"t"))
    }

    /// A number or another type that has a text form.
    ///
    /// # Errors
    /// The cell is NULL, or not of that form.
    pub fn parse_as<T: FromStr<Err: std::error::Error>>(&self, index: usize) -> Result<T, Fault> {
        let text = self.text(index)?;
        text.parse().map_err(|error: T::Err| {
            Code::ProtocolUnexpected
                .fault(format!("the server sent \"{text}\" for column {index}"))
                .caused_by(&error)
        })
    }

    /// A number or another type that has a text form; `None` is NULL.
    ///
    /// # Errors
    /// The cell is not of that form.
    pub fn optional_as<T: FromStr<Err: std::error::Error>>(
        &self,
        index: usize,
    ) -> Result<Option<T>, Fault> {
        match self.bytes(index)? {
            None => Ok(None),
            Some(_) => self.parse_as(index).map(Some),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Runs one or more statements and returns their rows. `what` says for people what they do.
    ///
    /// # Errors
    /// The server refuses one, does not answer in time, or the connection breaks.
    pub async fn query(&mut self, what: &str, sql: &str) -> Result<Vec<Row>, Fault> {
        let limit = self.query_limit;
        self.run(what, sql, During::Statement, limit).await
    }

    /// Runs a statement that yields exactly one row.
    ///
    /// # Errors
    /// Like [`Self::query`], or there is another number of rows.
    pub async fn query_one(&mut self, what: &str, sql: &str) -> Result<Row, Fault> {
        let rows = self.query(what, sql).await?;
        one_row(what, rows)
    }

    /// Runs a statement or command and waits until the server is ready for the next.
    pub(super) async fn run(
        &mut self,
        what: &str,
        sql: &str,
        during: During,
        limit: Option<Duration>,
    ) -> Result<Vec<Row>, Fault> {
        let Some(limit) = limit else { return self.exchange(what, sql, during).await };
        // The server ends a statement of a control session by itself at this limit; a little later
        // we no longer wait for it to say so.
        let patience = limit + limit / 4 + Duration::from_millis(500);
        match tokio::time::timeout(patience, self.exchange(what, sql, during)).await {
            Ok(outcome) => outcome,
            Err(elapsed) => Err(Code::SourceUnreachable
                .fault(format!("{what}: no answer from {}", self.endpoint))
                .caused_by(&elapsed)
                .hint("Raise database.query.timeout.ms, or see what blocks the statement.")),
        }
    }

    async fn exchange(&mut self, what: &str, sql: &str, during: During) -> Result<Vec<Row>, Fault> {
        self.send_query(what, sql).await?;
        let mut rows = Vec::new();
        let mut refusal = None;
        loop {
            let frame = self.incoming.next().await?;
            match frame.tag {
                b'D' => rows.push(Row::parse(frame.body).ok_or_else(|| malformed(b'D'))?),
                b'T' | b'C' | b'I' => {}
                b'E' => {
                    let message =
                        ServerMessage::parse(frame.body).ok_or_else(|| malformed(b'E'))?;
                    let fault = message.fault(during, what);
                    if message.is_final() {
                        return Err(fault);
                    }
                    refusal.get_or_insert(fault);
                }
                b'Z' => {
                    self.idle = true;
                    return refusal.map_or(Ok(rows), Err);
                }
                tag if is_asynchronous(tag) => log_notice(tag, frame.body),
                other => return Err(unexpected(other, what)),
            }
        }
    }

    /// Sends a statement. Until its end is read, the connection does not take another.
    pub(super) async fn send_query(&mut self, what: &str, sql: &str) -> Result<(), Fault> {
        if !std::mem::replace(&mut self.idle, false) {
            return Err(Code::SourceUnreachable.fault(format!(
                "{what}: an exchange with {} was given up before; reconnect",
                self.endpoint
            )));
        }
        if let Err(error) = frontend::query(sql, self.outgoing.buffer()) {
            self.outgoing.buffer().clear();
            self.idle = true;
            return Err(Code::Internal
                .fault(format!("{what}: the statement cannot be sent"))
                .caused_by(&error));
        }
        self.outgoing.flush().await
    }
}

/// Takes the only row.
pub(super) fn one_row(what: &str, rows: Vec<Row>) -> Result<Row, Fault> {
    let count = rows.len();
    let mut rows = rows.into_iter();
    match (rows.next(), rows.next()) {
        (Some(row), None) => Ok(row),
        _ => Err(Code::ProtocolUnexpected.fault(format!("{what}: {count} rows instead of one"))),
    }
}

/// Messages that may come at any time: notices, changed parameters, notifications.
pub(super) const fn is_asynchronous(tag: u8) -> bool {
    matches!(tag, b'N' | b'S' | b'A')
}

/// Writes a notice to the log; the other asynchronous messages need nothing.
pub(super) fn log_notice(tag: u8, body: &[u8]) {
    if tag == b'N'
        && let Some(message) = ServerMessage::parse(body)
    {
        tracing::warn!(severity = message.severity, "the source says: {message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_text_null_or_refused() {
        let body = [&[0, 3][..], &[0, 0, 0, 2], b"42", &[0xff; 4], &[0, 0, 0, 1], b"t"].concat();
        let row = Row::parse(&body).expect("well-formed");
        assert_eq!(row.parse_as::<u32>(0).expect("a number"), 42);
        assert_eq!(row.optional(1).expect("a cell"), None);
        assert_eq!(row.optional_as::<u32>(1).expect("a cell"), None);
        assert!(row.is_true(2).expect("a cell"));
        assert!(row.text(1).is_err());
        assert!(row.parse_as::<u32>(2).is_err());
        assert!(row.bytes(3).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_row_panics(body in proptest::collection::vec(proptest::num::u8::ANY, 0..60)) {
            if let Some(row) = Row::parse(&body) {
                for index in 0..4 {
                    drop(row.optional(index));
                }
            }
        }
    }
}

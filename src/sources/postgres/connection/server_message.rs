//! What the server says about an error or a notice, and the coded fault that it means here.
//!
//! Every `ErrorResponse` of every connection passes through [`ServerMessage::fault`]. Knows no
//! socket. The decision uses the SQLSTATE and the names of server routines, which are never
//! translated; the text, which may be in any language, only where nothing else tells apart.
//! Source: manual, "Error and Notice Message Fields" and "PostgreSQL Error Codes".

use std::fmt;

use super::channel::Body;
use crate::error::{Code, Fault};

/// In the middle of what a message arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum During {
    /// Reaching the server: start-up and authentication.
    Connect,
    /// A statement.
    Statement,
    /// The rows of a table.
    Copy,
    /// A command of the replication protocol.
    Replication,
    /// The attachment to a slot.
    StartStream,
    /// The stream.
    Stream,
}

/// The fields of an `ErrorResponse` or `NoticeResponse` that are of use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerMessage {
    /// Not translated (`V`), or as the server has it.
    pub(super) severity: String,
    /// SQLSTATE.
    pub(super) state: String,
    pub(super) text: String,
    pub(super) detail: Option<String>,
    pub(super) hint: Option<String>,
    /// The routine of the server that reported it.
    pub(super) routine: Option<String>,
    /// What it was doing, in the server's language.
    pub(super) context: Option<String>,
}

/// Of a lock that was not had in time.
const LOCKED: &str = "Somebody alters the table, or a transaction that did has not ended: pg_locks and \
                      pg_stat_activity name it. It is tried again.";

const NO_OUTPUT: &str = "The column's type cannot be shown as text. Leave the column out of the publication \
    (a column list, from PostgreSQL 15 on), or its table out of the connector. The server decodes with the \
    catalogue of then: a change that is in the log already passes with a new slot and snapshot only.";

impl ServerMessage {
    /// Reads the body of an `ErrorResponse` or `NoticeResponse`.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let mut body = Body(body);
        let mut message = Self::default();
        loop {
            let field = body.byte()?;
            if field == 0 {
                return Some(message);
            }
            let text = body.text()?.into_owned();
            match field {
                b'S' if message.severity.is_empty() => message.severity = text,
                b'V' => message.severity = text,
                b'C' => message.state = text,
                b'M' => message.text = text,
                b'D' => message.detail = Some(text),
                b'H' => message.hint = Some(text),
                b'R' => message.routine = Some(text),
                b'W' => message.context = Some(text),
                _ => {}
            }
        }
    }

    /// Whether a notice on the stream means that changes are being left out. A server from 18 on
    /// warns so, and goes on, when the publication does not exist at the place that it decodes
    /// (`LoadPublications`, pgoutput.c).
    pub(super) fn tells_of_lost_publication(&self) -> bool {
        self.state == "55000" || self.speaks_of("publication")
    }

    /// Whether the server ends the connection with it.
    pub(super) fn is_final(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }

    /// The fault that an error means. `what` says what was attempted.
    pub(super) fn fault(&self, during: During, what: &str) -> Fault {
        let (code, hint) = self.meaning(during);
        let mut fault = code.fault(format!("{what}: {self}"));
        if let (During::Stream, Some(position)) = (during, self.position()) {
            fault = fault.at_position(position);
        }
        match hint {
            Some(hint) => fault.hint(hint),
            None => fault,
        }
    }

    /// Where in the log the change stands that it was about to send: `associated LSN X/X`, in any
    /// language (`output_plugin_error_callback`, logical.c).
    fn position(&self) -> Option<&str> {
        let is_hex = |text: &str| {
            (1..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let mut words = self.context.as_deref()?.split_whitespace().rev();
        words.find(|word| {
            word.split_once('/').is_some_and(|(high, low)| is_hex(high) && is_hex(low))
        })
    }

    /// Whether a type's output function refuses (`trigger_out`, "cannot display a value of type …"):
    /// the names of the server's own all end so.
    fn is_of_an_output_function(&self) -> bool {
        let may_heal = ["53", "57"].iter().any(|class| self.state.starts_with(class));
        !may_heal && self.routine.as_deref().is_some_and(|name| name.ends_with("_out"))
    }

    fn meaning(&self, during: During) -> (Code, Option<&'static str>) {
        if self.is_of_an_output_function() {
            return (Code::ValueUnrepresentable, Some(NO_OUTPUT));
        }
        let general = match during {
            During::Connect => self.meaning_at_connect(),
            During::Statement => None,
            During::Copy => self.meaning_of_values(),
            During::Replication => self.meaning_at_replication(),
            During::StartStream => self.meaning_at_start(),
            During::Stream => self.meaning_in_stream(),
        };
        general.unwrap_or_else(|| self.meaning_anywhere(during))
    }

    fn meaning_at_connect(&self) -> Option<(Code, Option<&'static str>)> {
        Some(match self.state.as_str() {
            // A pooler answers so to the start-up parameter `replication`.
            "08P01" => (Code::PoolerDetected, None),
            "42704" | "22023" => (Code::SessionNotPinned, None),
            "42501" => (
                Code::ReplicationPermission,
                Some("ALTER ROLE … REPLICATION, and GRANT CONNECT ON DATABASE … to the role."),
            ),
            _ => return None,
        })
    }

    fn meaning_at_replication(&self) -> Option<(Code, Option<&'static str>)> {
        Some(match self.state.as_str() {
            // Somebody who takes replication commands for SQL sits in between.
            "42601" => (Code::PoolerDetected, None),
            "42704" => (Code::SlotMissing, None),
            "42710" => (Code::SlotForeign, None),
            // "all replication slots are in use"
            "53400" => (Code::SlotHeadroom, None),
            "55000" => match self.routine.as_deref() {
                Some("CheckLogicalDecodingRequirements") if self.speaks_of("wal_level") => {
                    (Code::WalLevel, None)
                }
                _ => return None,
            },
            "0A000" | "25006" => (Code::SourceStandby, None),
            _ => return None,
        })
    }

    fn meaning_at_start(&self) -> Option<(Code, Option<&'static str>)> {
        if self.state != "55000" {
            return self.meaning_at_replication();
        }
        // The routines differ from version to version; what is not recognised is retried, and the
        // slot's facts, read before each start, name it then.
        let lost = ["can no longer", "exceeded the maximum", "invalidated", "has been lost"];
        let other = ["was not created in this database", "physical replication slot"];
        if lost.iter().any(|words| self.speaks_of(words)) {
            Some((Code::SlotLost, None))
        } else if other.iter().any(|words| self.speaks_of(words)) {
            Some((Code::SlotMismatch, None))
        } else {
            self.meaning_at_replication()
        }
    }

    fn meaning_in_stream(&self) -> Option<(Code, Option<&'static str>)> {
        Some(match self.state.as_str() {
            "42704" => (
                Code::PublicationMissing,
                Some(
                    "The server decodes with the catalogue of then, so creating the publication \
                     again does not help: drop the slot, delete the connector's offset and \
                     snapshot anew.",
                ),
            ),
            // Two publications, or two states of one, contradict each other.
            "0A000" => (Code::PublicationChanged, None),
            // A file of the log is gone.
            "58P01" => (Code::SlotLost, None),
            _ => return self.meaning_of_values(),
        })
    }

    /// What the server cannot send.
    fn meaning_of_values(&self) -> Option<(Code, Option<&'static str>)> {
        Some(match self.state.as_str() {
            "22021" | "22P05" => (Code::ValueEncoding, None),
            "54000" => (Code::ValueTooLarge, None),
            "XX000" if self.speaks_of("invalid memory alloc request size") => {
                (Code::ValueTooLarge, None)
            }
            _ => return None,
        })
    }

    fn meaning_anywhere(&self, during: During) -> (Code, Option<&'static str>) {
        let state = self.state.as_str();
        let is_of_stream = matches!(during, During::Stream | During::StartStream);
        // connection, rolled back, resources, intervention, system
        let may_heal = ["08", "40", "53", "57", "58"].iter().any(|class| state.starts_with(class));
        let code = match state {
            "28P01" | "28000" => Code::SourceAuthentication,
            "3D000" => Code::SourceDatabaseMissing,
            // a file that the server may not read or write just now
            "42501" if during == During::Stream && self.is_of_a_file() => Code::StreamStopped,
            "42501" => Code::ReplicationPermission,
            "25006" => Code::SourceStandby,
            "55006" => Code::SlotActive,
            "57014" => {
                return (
                    Code::SourceUnreachable,
                    Some("Raise database.query.timeout.ms, or see what blocks the statement."),
                );
            }
            // in use, or not in the state that it takes
            _ if is_of_stream && (may_heal || state.starts_with("55")) => Code::StreamStopped,
            _ if is_of_stream => Code::StreamBroken,
            _ if may_heal => Code::SourceUnreachable,
            "55P03" => return (Code::SourceUnreachable, Some(LOCKED)),
            _ => Code::SourceQuery,
        };
        (code, None)
    }

    /// Whether the operating system refused something, and no right that somebody could grant
    /// (`aclcheck_error` and its like; `errcode_for_file_access` is told by all others).
    fn is_of_a_file(&self) -> bool {
        let routine = self.routine.as_deref().unwrap_or_default();
        !routine.is_empty() && !routine.starts_with("aclcheck_error")
    }

    fn speaks_of(&self, words: &str) -> bool {
        [Some(&self.text), self.detail.as_ref(), self.routine.as_ref()]
            .into_iter()
            .flatten()
            .any(|text| text.to_lowercase().contains(words))
    }
}

impl fmt::Display for ServerMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SQLSTATE {}", self.text, self.state)?;
        for (name, part) in [("detail", &self.detail), ("hint", &self.hint)] {
            if let Some(part) = part {
                write!(f, ", {name}: {part}")?;
            }
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(state: &str, text: &str, routine: &str) -> ServerMessage {
        ServerMessage {
            severity: "ERROR".into(),
            state: state.into(),
            text: text.into(),
            routine: Some(routine.into()),
            ..ServerMessage::default()
        }
    }

    #[test]
    fn fields_are_read_and_the_untranslated_severity_wins() {
        let body =
            b"SFEHLER\0VERROR\0C42704\0MPublikation \"p\" existiert nicht\0Rget_publication_oid\0\0";
        let parsed = ServerMessage::parse(body).expect("well-formed");
        assert_eq!(parsed.severity, "ERROR");
        assert_eq!(parsed.state, "42704");
        assert_eq!(parsed.routine.as_deref(), Some("get_publication_oid"));
        assert_eq!(ServerMessage::parse(b"SERROR\0"), None);
        assert_eq!(ServerMessage::parse(b"SERROR"), None);
    }

    #[track_caller]
    fn check(during: During, state: &str, text: &str, expect: Code) {
        assert_eq!(message(state, text, "").fault(during, "trying").code(), expect);
    }

    #[test]
    fn errors_while_connecting() {
        use During::Connect;
        check(Connect, "28P01", "password authentication failed", Code::SourceAuthentication);
        check(Connect, "28000", "no pg_hba.conf entry", Code::SourceAuthentication);
        check(Connect, "3D000", "database does not exist", Code::SourceDatabaseMissing);
        check(Connect, "53300", "sorry, too many clients already", Code::SourceUnreachable);
        check(Connect, "57P03", "the database system is starting up", Code::SourceUnreachable);
        check(Connect, "42501", "must be superuser or …", Code::ReplicationPermission);
        check(Connect, "08P01", "unsupported startup parameter", Code::PoolerDetected);
    }

    #[test]
    fn errors_of_replication_commands() {
        use During::{Replication, StartStream};
        check(Replication, "42601", "syntax error", Code::PoolerDetected);
        check(Replication, "42710", "slot already exists", Code::SlotForeign);
        check(Replication, "53400", "all replication slots are in use", Code::SlotHeadroom);
        check(Replication, "42501", "must be superuser", Code::ReplicationPermission);
        check(StartStream, "55006", "slot is active for PID 7", Code::SlotActive);
        check(StartStream, "42704", "slot does not exist", Code::SlotMissing);
        check(StartStream, "55000", "can no longer access replication slot", Code::SlotLost);
        check(StartStream, "55000", "This slot has been invalidated because …", Code::SlotLost);
        check(StartStream, "55000", "slot was not created in this database", Code::SlotMismatch);
        check(StartStream, "55000", "etwas anderes", Code::StreamStopped);
    }

    #[test]
    fn errors_of_the_stream() {
        use During::{Copy, Stream};
        check(Stream, "42704", "publication \"p\" does not exist", Code::PublicationMissing);
        check(Stream, "57P01", "terminating connection", Code::StreamStopped);
        check(Stream, "22021", "invalid byte sequence", Code::ValueEncoding);
        check(Stream, "XX000", "invalid memory alloc request size 1174405123", Code::ValueTooLarge);
        check(Copy, "XX000", "invalid memory alloc request size 1174405123", Code::ValueTooLarge);
        check(Copy, "22P05", "character with byte sequence 0x8f 0xa2", Code::ValueEncoding);
        check(Copy, "42P01", "relation \"t\" does not exist", Code::SourceQuery);
        check(Copy, "53100", "no space left on device", Code::SourceUnreachable);
        check(Stream, "XX000", "something else", Code::StreamBroken);
        check(Stream, "22P03", "invalid internal value for enum: 7", Code::StreamBroken);
        check(Stream, "53200", "out of memory", Code::StreamStopped);
        let spilled = "could not open file \"….spill\": Permission denied";
        for (routine, code) in [
            ("ReorderBufferSerializeTXN", Code::StreamStopped),
            ("aclcheck_error", Code::ReplicationPermission),
        ] {
            let fault = message("42501", spilled, routine).fault(Stream, "x");
            assert_eq!(fault.code(), code, "{routine}");
        }
        check(Stream, "58P01", "requested WAL segment has already been removed", Code::SlotLost);
    }

    #[test]
    fn an_error_of_the_stream_has_the_place_of_the_change() {
        #[track_caller]
        fn check(during: During, context: &str, expect: Option<&str>) {
            let mut error = message("XX000", "invalid memory alloc request size 1174405123", "");
            error.context = Some(context.into());
            assert_eq!(error.fault(during, "x").place().position.as_deref(), expect);
        }
        let english = "slot \"a_1/b\", output plugin \"pgoutput\", in the change callback, \
                       associated LSN 1A/235A180";
        check(During::Stream, english, Some("1A/235A180"));
        check(During::Stream, "Slot »s«, im Callback change, zugehörige LSN 0/F", Some("0/F"));
        check(During::Statement, english, None);
        check(During::Stream, "COPY t, column x/y", None);
        check(During::Stream, "", None);
    }

    #[test]
    fn a_type_without_output_is_told_from_contradicting_publications() {
        let text = "cannot display a value of type trigger";
        for during in [During::Stream, During::Statement] {
            let fault = message("0A000", text, "trigger_out").fault(during, "x");
            assert_eq!(fault.code(), Code::ValueUnrepresentable, "{fault}");
        }
        let text = "cannot use different column lists";
        let fault = message("0A000", text, "pgoutput_column_list_init").fault(During::Stream, "x");
        assert_eq!(fault.code(), Code::PublicationChanged);
        let fault = message("57014", "canceling statement", "byteaout_out");
        assert_eq!(fault.fault(During::Stream, "x").code(), Code::SourceUnreachable);
    }

    #[test]
    fn errors_of_statements() {
        use During::Statement;
        check(Statement, "42501", "permission denied for table t", Code::ReplicationPermission);
        check(Statement, "57014", "canceling statement", Code::SourceUnreachable);
        check(Statement, "40001", "could not serialize", Code::SourceUnreachable);
        check(Statement, "42P01", "relation does not exist", Code::SourceQuery);
    }

    #[test]
    fn a_notice_of_a_skipped_publication_is_known_in_any_language() {
        assert!(message("55000", "Publikation ausgelassen", "").tells_of_lost_publication());
        assert!(
            message("01000", "skipped loading publication \"p\"", "").tells_of_lost_publication()
        );
        assert!(!message("01000", "something harmless", "").tells_of_lost_publication());
    }
}

//! Messages that applications write into the log: which are published, and as what.
//!
//! Stands between the decoder and the stage, for `pg_logical_emit_message`. Knows no record format.
//! **Invariants:** a message is counted in its transaction whether it is published or not; nothing
//! is registered or created for messages before there is one.

use regex::Regex;

use super::decode::MessageOutput;
use super::session::ServerVersion;
use crate::change::{Cell, RowImage};
use crate::error::{Code, Fault};
use crate::stage::{OpenTable, Services, Stage};

/// The first version whose pgoutput sends messages.
const SINCE: u32 = 14;

/// Which messages are published: anchored, case-insensitive patterns over their prefixes.
#[derive(Clone, Debug, Default)]
pub struct MessageFilter {
    /// `message.prefix.include.list`.
    pub include: Option<Vec<Regex>>,
    /// `message.prefix.exclude.list`.
    pub exclude: Option<Vec<Regex>>,
}

impl MessageFilter {
    /// Whether a message of this prefix is published.
    pub fn wants(&self, prefix: &str) -> bool {
        let any = |list: &Option<Vec<Regex>>| {
            list.as_ref().map(|patterns| patterns.iter().any(|pattern| pattern.is_match(prefix)))
        };
        any(&self.include).unwrap_or(true) && !any(&self.exclude).unwrap_or(false)
    }

    /// Whether a server of this version can send messages.
    pub const fn are_sent_by(version: ServerVersion) -> bool {
        version.major() >= SINCE
    }

    /// Refuses a server that cannot send what was asked for by name.
    ///
    /// # Errors
    /// `SERVER-VERSION`.
    pub fn check(&self, version: ServerVersion) -> Result<(), Fault> {
        if self.include.is_none() || Self::are_sent_by(version) {
            return Ok(());
        }
        Err(Code::ServerVersion
            .fault(format!(
                "message.prefix.include.list asks for logical decoding messages; the server has \
                 version {version}, and pgoutput sends them from {SINCE} on"
            ))
            .hint("Take message.prefix.include.list away, or upgrade the server."))
    }

    /// A fingerprint of settings, made to depend on the filter too: a half published transaction
    /// is only finished under the filter that it was begun with.
    pub(super) fn mix(&self, fingerprint: u64) -> u64 {
        let lists = [('+', &self.include), ('-', &self.exclude)];
        let patterns = lists.into_iter().flat_map(|(sign, list)| {
            list.iter().flatten().map(move |pattern| (sign, pattern.as_str()))
        });
        patterns.fold(fingerprint, |hash, (sign, pattern)| {
            // FNV-1a; no pattern holds the byte 255
            let bytes = std::iter::once(sign as u8).chain(pattern.bytes()).chain([u8::MAX]);
            bytes.fold(hash, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            })
        })
    }
}

/// Takes messages to the stage.
#[derive(Debug, Default)]
pub(super) struct Messages {
    filter: MessageFilter,
    /// Opened by the first message.
    table: Option<Box<OpenTable>>,
    /// Prefix and content of the message at hand.
    bytes: Vec<u8>,
    cells: Vec<Cell>,
}

impl Messages {
    /// Publishes what the filter lets through.
    pub(super) fn new(filter: MessageFilter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Whether a message of this prefix is published. Notes of event triggers never are.
    pub(super) fn wants(&self, prefix: &str) -> bool {
        prefix != super::ddl::PREFIX && self.filter.wants(prefix)
    }

    /// The message as a row of two cells, and what writes it.
    ///
    /// # Errors
    /// Messages cannot be published, or registry or broker refuse.
    pub(super) async fn prepare<S: Services>(
        &mut self,
        message: &MessageOutput<'_>,
        stage: &mut Stage<S>,
    ) -> Result<(&mut OpenTable, RowImage<'_>), Fault> {
        let table = match self.table.take() {
            Some(table) => table,
            None => Box::new(stage.open_messages().await?),
        };
        let table = self.table.insert(table);
        self.bytes.clear();
        self.cells.clear();
        for part in [message.prefix.as_bytes(), message.content] {
            // a frame is far smaller than 4 GiB: the server's limit on a value is 1 GiB
            let place = |length| u32::try_from(length).unwrap_or(u32::MAX);
            self.cells.push(Cell::Raw { start: place(self.bytes.len()), len: place(part.len()) });
            self.bytes.extend_from_slice(part);
        }
        let row =
            RowImage { bytes: &self.bytes, before: None, after: Some(&self.cells), reread: &[] };
        Ok((table, row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(patterns: &[&str]) -> Option<Vec<Regex>> {
        let pattern = |text: &&str| Regex::new(&format!("^(?i:{text})$")).expect("a pattern");
        Some(patterns.iter().map(pattern).collect())
    }

    #[track_caller]
    fn check(filter: &MessageFilter, prefix: &str, expect: bool) {
        assert_eq!(filter.wants(prefix), expect, "{prefix:?}");
    }

    #[test]
    fn prefixes_are_included_or_excluded_as_a_whole() {
        let filter = MessageFilter { include: list(&["audit", "by.*"]), exclude: None };
        check(&filter, "audit", true);
        check(&filter, "bytes", true);
        check(&filter, "audit2", false);
        check(&filter, "", false);
        let filter = MessageFilter { include: None, exclude: list(&["audit"]) };
        check(&filter, "audit", false);
        check(&filter, "", true);
        check(&MessageFilter::default(), "", true);
    }

    #[test]
    fn only_what_was_asked_for_by_name_is_missed() {
        let named = MessageFilter { include: list(&["a"]), exclude: None };
        let code = |filter: &MessageFilter, major: u32| {
            filter.check(ServerVersion(major * 10_000)).err().map(|fault| fault.code())
        };
        assert_eq!(code(&named, 13), Some(Code::ServerVersion));
        assert_eq!(code(&named, 14), None);
        assert_eq!(code(&MessageFilter::default(), 13), None);
    }

    #[test]
    fn the_filter_is_part_of_the_fingerprint() {
        let filters = [
            MessageFilter::default(),
            MessageFilter { include: list(&["a", "b"]), exclude: None },
            MessageFilter { include: list(&["b", "a"]), exclude: None },
            MessageFilter { include: None, exclude: list(&["a", "b"]) },
        ];
        let prints: std::collections::HashSet<_> =
            filters.iter().map(|filter| filter.mix(7)).collect();
        assert_eq!(prints.len(), filters.len());
        assert_eq!(filters[0].mix(7), 7);
    }
}

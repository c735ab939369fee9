//! Recorded streams of real servers through the decoder, compared with a readable dump.
//!
//! `tests/fixtures/streams/<script>.txt` is what every server version must say of
//! `integration/capture/scripts/<script>.sql`; where a version says it differently, its own
//! `pg<major>-<script>.txt` holds that. Positions, transaction ids and empty transactions are left
//! out (they differ from one recording to the next); `=` marks a change at its predecessor's
//! position.

use std::fmt::Write as _;

use expect_test::expect_file;

use tidegate::change::{Cell, ChangeKind, RowImage};
use tidegate::error::Code;
use tidegate::sources::postgres::decode::{Decoder, Output, RowChange};
use tidegate::sources::postgres::relations::{InstalledTable, RelationDescriptor};
use tidegate::sources::postgres::wire::{
    AbortForm, Block, Context, Frame, Lsn, Message, ReplicaIdentity,
};

use crate::streams;

/// A driver without catalogue: it answers every question at once, and writes everything down.
#[derive(Default)]
struct Replay {
    decoder: Decoder,
    tables: Vec<String>,
    last_lsn: Lsn,
    dump: String,
}

impl Replay {
    fn run(frames: &[Vec<u8>]) -> Self {
        let mut replay = Self::default();
        for frame in frames {
            if !replay.feed(frame) {
                break;
            }
        }
        replay
    }

    /// Feeds a frame; `false` after a fault.
    fn feed(&mut self, frame: &[u8]) -> bool {
        let mut scribe = Scribe { tables: &self.tables, last_lsn: &mut self.last_lsn };
        let mut question = None;
        let line = match self.decoder.frame(frame) {
            Ok(Output::Keepalive(keepalive)) => {
                assert!(keepalive.wal_end > Lsn::ZERO);
                assert!(keepalive.server_clock > RECORDED_AFTER);
                return true;
            }
            Ok(Output::Commit(commit)) if commit.messages == 0 => {
                let start = self.dump.rfind("begin").unwrap();
                self.dump.truncate(start);
                return true;
            }
            Ok(Output::Relation { descriptor, sequence }) => {
                let line = format!("  relation before {sequence}: {}", describe(&descriptor));
                question = Some(descriptor);
                line
            }
            Ok(output) => scribe.line(&output),
            Err(fault) => format!("  {}: {}", fault.code(), fault.message()),
        };
        writeln!(self.dump, "{line}").unwrap();
        if let Some(descriptor) = question {
            let table = InstalledTable { index: self.tables.len(), key: key_of(&descriptor) };
            self.tables.push(descriptor.qualified_name());
            self.decoder.install(descriptor.oid, table).unwrap();
        }
        !line.starts_with("  TG-E")
    }
}

/// Long before the first recording, in microseconds since 1970.
const RECORDED_AFTER: i64 = 1_700_000_000_000_000;

struct Scribe<'n> {
    tables: &'n [String],
    last_lsn: &'n mut Lsn,
}

impl Scribe<'_> {
    fn line(&mut self, output: &Output<'_>) -> String {
        match output {
            Output::Begin(transaction) if transaction.commit_micros < RECORDED_AFTER => {
                format!("begin, committed at {}", transaction.commit_micros)
            }
            Output::Begin(_) => "begin".to_owned(),
            Output::RelationRepeated { .. } => "  relation repeated".to_owned(),
            Output::Row(change) => self.row(change),
            Output::Truncate(truncate) => {
                let tables = truncate.relations.iter().map(|table| &*self.tables[table.index]);
                let tables = tables.collect::<Vec<_>>().join(", ");
                let cascade = if truncate.cascade { " cascade" } else { "" };
                let restart = if truncate.restart_identity { " restart identity" } else { "" };
                let same = self.same(truncate.lsn);
                format!("  {} truncate {tables}{cascade}{restart}{same}", truncate.sequence)
            }
            Output::Commit(commit) => format!("  commit of {}", commit.messages),
            Output::Origin { commit_lsn, name } => format!("  origin {name} at {commit_lsn}"),
            Output::Message(message) => {
                let kind = if message.transactional { "message" } else { "loose message" };
                let content = String::from_utf8_lossy(message.content);
                let same = self.same(message.lsn);
                let (sequence, prefix) = (message.sequence, message.prefix);
                format!("  {sequence} {kind} {prefix:?} {content:?}{same}")
            }
            Output::Ignored => "  ignored".to_owned(),
            Output::Keepalive(_) | Output::Relation { .. } => String::new(),
        }
    }

    fn same(&mut self, lsn: Lsn) -> &'static str {
        if std::mem::replace(self.last_lsn, lsn) == lsn { " =" } else { "" }
    }

    fn row(&mut self, change: &RowChange<'_>) -> String {
        let kind = match change.kind {
            ChangeKind::Read => "read",
            ChangeKind::Create => "create",
            ChangeKind::Update => "update",
            ChangeKind::KeyChange => "key change",
            ChangeKind::Delete => "delete",
            ChangeKind::Truncate => "truncate",
            ChangeKind::MovedIn => "moved in",
            ChangeKind::MovedOut => "moved out",
            ChangeKind::FoundOut => "found out",
            ChangeKind::Message => "message",
        };
        let image = |cells| image(change.row, cells);
        let before = change.row.before.map(|cells| image(cells) + " → ").unwrap_or_default();
        let after = change.row.after.map(image).unwrap_or_default();
        let (table, same) = (&self.tables[change.index], self.same(change.lsn));
        format!("  {} {kind} {table} {before}{after}{same}", change.sequence)
    }
}

fn describe(descriptor: &RelationDescriptor) -> String {
    let columns: Vec<_> = descriptor
        .columns
        .iter()
        .map(|column| {
            let flag = if column.identity { "*" } else { "" };
            // Numbers of the server's own types are the same everywhere, others are not.
            let type_oid = match column.type_oid {
                own if own < 10_000 => own.to_string(),
                _ => "user".to_owned(),
            };
            format!("{flag}{}:{type_oid}/{}", column.name, column.typmod)
        })
        .collect();
    let identity = descriptor.replica_identity.as_str();
    format!("{} {identity} ({})", descriptor.qualified_name(), columns.join(", "))
}

/// What the catalogue would say, as far as the scripts need it: under FULL the key is `id`.
fn key_of(descriptor: &RelationDescriptor) -> Vec<usize> {
    let is_full = descriptor.replica_identity == ReplicaIdentity::Full;
    let columns = descriptor.columns.iter().enumerate();
    let key = columns.filter(|(_, c)| if is_full { c.name == "id" } else { c.identity });
    key.map(|(index, _)| index).collect()
}

fn image(row: RowImage<'_>, cells: &[Cell]) -> String {
    let cells: Vec<_> = cells
        .iter()
        .map(|cell| match row.raw(*cell).map(String::from_utf8_lossy) {
            None if *cell == Cell::Null => "null".to_owned(),
            None => "?".to_owned(),
            Some(text) if text.len() > 200 => {
                let head: String = text.chars().take(8).collect();
                format!("{head:?}…{}", text.len())
            }
            Some(text) => format!("{text:?}"),
        })
        .collect();
    format!("[{}]", cells.join(", "))
}

fn check(script: &str) {
    for (name, frames) in streams::recorded(script) {
        let own = streams::folder().join(format!("{name}.txt"));
        let shared = streams::folder().join(format!("{script}.txt"));
        let expect = if own.exists() { own } else { shared };
        expect_file![expect].assert_eq(&Replay::run(&frames).dump);
    }
}

#[test]
fn every_form_of_dml_arrives_in_order() {
    check("dml");
}

#[test]
fn old_rows_hold_what_the_identity_says() {
    check("identity");
}

#[test]
fn unchanged_values_stored_out_of_line_are_completed_or_marked() {
    check("toast");
}

#[test]
fn rows_are_in_the_shape_of_their_place_in_the_log() {
    check("ddl");
}

#[test]
fn leaves_come_under_their_root() {
    check("partitions");
}

#[test]
fn a_leaf_with_a_narrower_identity_than_its_root_is_refused_before_its_first_row() {
    check("partitions-mismatch");
}

#[test]
fn rows_enter_and_leave_a_row_filter() {
    check("filters");
}

#[test]
fn what_stands_around_rows_is_told_apart() {
    check("transactions");
}

#[test]
fn values_come_in_their_text_form() {
    check("types");
}

/// What streamed and prepared transactions consist of, message by message; runs are counted.
fn summary(name: &str, frames: &[Vec<u8>]) -> String {
    let aborts = if name.ends_with("parallel") { AbortForm::Positioned } else { AbortForm::Short };
    let mut context = Context { block: Block::Plain, aborts };
    let mut values = Vec::new();
    let mut runs: Vec<(String, usize)> = Vec::new();
    for frame in frames {
        let Frame::XLogData(data) = Frame::decode(frame).unwrap() else { continue };
        let message = Message::decode(data.payload, context, &mut values).unwrap();
        match message {
            Message::StreamStart(_) => context.block = Block::Streamed,
            Message::StreamStop => context.block = Block::Plain,
            _ => {}
        }
        let said = match &message {
            Message::StreamStart(start) => format!("stream start, first: {}", start.first_segment),
            Message::StreamAbort(abort) => format!(
                "stream abort, of a part: {}, with position: {}",
                abort.xid != abort.subxid,
                abort.aborted.is_some()
            ),
            Message::BeginPrepare(prepare) => format!("begin prepare {}", prepare.gid),
            Message::Prepare(prepare) => format!("prepare {}", prepare.gid),
            Message::StreamPrepare(prepare) => format!("stream prepare {}", prepare.gid),
            Message::CommitPrepared(commit) => format!("commit prepared {}", commit.gid),
            Message::RollbackPrepared(rollback) => format!("rollback prepared {}", rollback.gid),
            other => other.name().to_owned(),
        };
        match runs.last_mut() {
            Some((last, count)) if *last == said => *count += 1,
            _ => runs.push((said, 1)),
        }
    }
    runs.iter().fold(String::new(), |text, (said, count)| match count {
        1 => text + said + "\n",
        _ => format!("{text}{said} ×{count}\n"),
    })
}

#[test]
fn streamed_and_prepared_transactions_are_read_but_refused() {
    for script in ["streamed", "streamed-parallel", "two-phase"] {
        for (name, frames) in streams::recorded(script) {
            let expect = streams::folder().join(format!("{script}.txt"));
            expect_file![expect].assert_eq(&summary(&name, &frames));
            let dump = Replay::run(&frames).dump;
            assert!(dump.contains("TG-E-PROTOCOL-UNEXPECTED"), "{name}: {dump}");
        }
    }
}

/// What a restart sees again: commit position, number, kind and image of every change.
fn identities(frames: &[Vec<u8>]) -> Vec<String> {
    let mut replay = Replay::default();
    let mut seen = Vec::new();
    for frame in frames {
        if let Ok(Output::Row(change)) = replay.decoder.clone().frame(frame) {
            let commit_lsn = replay.decoder.transaction().unwrap().commit_lsn;
            let after = image(change.row, change.row.after.unwrap());
            seen.push(format!("{commit_lsn}#{} {:?} {after}", change.sequence, change.kind));
        }
        assert!(replay.feed(frame));
    }
    seen
}

#[test]
fn a_change_has_the_same_number_for_a_session_that_begins_later() {
    for ((name, whole), (_, again)) in
        streams::recorded("resume").into_iter().zip(streams::recorded("resume-again"))
    {
        let (whole, again) = (identities(&whole), identities(&again));
        assert_eq!(again.len(), 7, "{name}");
        assert_eq!(whole[whole.len() - again.len()..], again, "{name}");
    }
    check("resume");
    check("resume-again");
}

/// Commit positions order a stream; the positions of its changes do not, and do not name them either.
#[test]
fn positions_of_commits_grow_and_positions_of_changes_do_not() {
    let mut seen = [false; 3];
    for (name, frames) in streams::all() {
        let mut replay = Replay::default();
        let (mut last_commit, mut last_end, mut last_row) = (Lsn::ZERO, Lsn::ZERO, Lsn::ZERO);
        for frame in &frames {
            match replay.decoder.clone().frame(frame) {
                Ok(Output::Commit(commit)) => {
                    assert!(last_commit < commit.commit_lsn, "{name}");
                    assert!(commit.commit_lsn < commit.end_lsn, "{name}");
                    (last_commit, last_end) = (commit.commit_lsn, commit.end_lsn);
                }
                Ok(Output::Row(change)) => {
                    // The rows of one COPY; a row right behind the commit before it; a row that was
                    // written before a transaction that was sent before its own.
                    seen[0] |= change.lsn == last_row;
                    seen[1] |= change.lsn == last_end;
                    seen[2] |= change.lsn < last_commit;
                    last_row = change.lsn;
                }
                _ => {}
            }
            if !replay.feed(frame) {
                break;
            }
        }
    }
    assert_eq!(seen, [true; 3]);
}

#[test]
fn a_frame_cut_anywhere_is_refused_and_changes_nothing() {
    for (name, frames) in streams::all() {
        let mut replay = Replay::default();
        for frame in &frames {
            let position = replay.decoder.position();
            for cut in 0..frame.len() {
                let fault = replay.decoder.frame(&frame[..cut]).unwrap_err();
                assert_eq!(fault.code(), Code::ProtocolUnexpected, "{name}");
                assert_eq!(fault.place().position.as_deref(), Some(&*position), "{name}");
            }
            let mut longer = frame.clone();
            longer.push(0);
            assert!(replay.decoder.frame(&longer).is_err(), "{name}");
            if !replay.feed(frame) {
                break;
            }
        }
        assert_eq!(replay.dump, Replay::run(&frames).dump, "{name}");
    }
}

/// Whatever the bytes, the decoder answers with a fault or with cells that lie within the frame.
#[test]
fn mutated_streams_never_panic_and_cells_lie_within_the_frame() {
    let streams: Vec<_> = streams::all()
        .into_iter()
        .filter(|(_, frames)| frames.len() < 200)
        .map(|(_, frames)| frames.into_iter().filter(|f| f.len() < 1_000).collect::<Vec<_>>())
        .collect();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = move |limit: usize| {
        // Xorshift: the same in every run.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % limit
    };
    for _ in 0..60 {
        for frames in &streams {
            let mut decoder = Decoder::new();
            let (victim, mut index) = (below(frames.len()), 0);
            for (number, frame) in frames.iter().enumerate() {
                let mut frame = frame.clone();
                // A fault ends a stream; going on after it must still be safe.
                if number == victim || below(20) == 0 {
                    let at = below(frame.len());
                    frame[at] = u8::try_from(below(256)).unwrap();
                }
                feed_and_check(&mut decoder, &frame, &mut index);
            }
        }
    }
}

fn feed_and_check(decoder: &mut Decoder, frame: &[u8], index: &mut usize) {
    let question = match decoder.frame(frame) {
        Ok(Output::Relation { descriptor, .. }) => descriptor,
        Ok(Output::Row(change)) => {
            for cell in change.row.before.into_iter().chain(change.row.after).flatten() {
                assert_eq!(matches!(cell, Cell::Raw { .. }), change.row.raw(*cell).is_some());
            }
            return;
        }
        Ok(_) | Err(_) => return,
    };
    *index += 1;
    let table = InstalledTable { index: *index, key: key_of(&question) };
    decoder.install(question.oid, table).unwrap();
}

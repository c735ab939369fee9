//! Recorded streams of real servers through the decoder, compared with a readable dump.
//!
//! `tests/fixtures/streams/<script>.txt` is what every server version must say of
//! `integration/capture/scripts/<script>.sql`; where a version says it differently, its own
//! `pg<major>-<script>.txt` holds that. Positions and transaction ids are numbered by first
//! appearance, so that recordings of different servers can be compared.

use std::collections::HashMap;
use std::fmt::Write as _;

use expect_test::expect_file;

use tidegate::change::{Cell, ChangeKind, RowImage};
use tidegate::error::Code;
use tidegate::sources::postgres::decode::{Decoder, Output, RowChange};
use tidegate::sources::postgres::relations::{InstalledTable, RelationDescriptor};
use tidegate::sources::postgres::wire::ReplicaIdentity;

use crate::streams;

/// A driver without catalogue: it answers every question at once, and writes everything down.
#[derive(Default)]
struct Replay {
    decoder: Decoder,
    tables: Vec<String>,
    positions: HashMap<u64, usize>,
    xids: HashMap<u32, usize>,
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
        let mut line = String::new();
        let mut question = None;
        match self.decoder.frame(frame) {
            Ok(Output::Relation { descriptor, sequence }) => {
                line = format!("relation before {sequence}: {}", describe(&descriptor));
                question = Some(descriptor);
            }
            Ok(output) => {
                let mut names = Names {
                    tables: &self.tables,
                    positions: &mut self.positions,
                    xids: &mut self.xids,
                };
                names.write(&mut line, &output);
            }
            Err(fault) => {
                writeln!(self.dump, "  {}: {}", fault.code(), fault.message()).unwrap();
                return false;
            }
        }
        if let Some(descriptor) = question {
            let table = InstalledTable { index: self.tables.len(), key: key_of(&descriptor) };
            self.tables.push(descriptor.qualified_name());
            self.decoder.install(descriptor.oid, table).unwrap();
        }
        if !line.is_empty() {
            let indent = if line.starts_with("begin") { "" } else { "  " };
            writeln!(self.dump, "{indent}{line}").unwrap();
        }
        true
    }
}

struct Names<'n> {
    tables: &'n [String],
    positions: &'n mut HashMap<u64, usize>,
    xids: &'n mut HashMap<u32, usize>,
}

impl Names<'_> {
    fn position(&mut self, lsn: u64) -> usize {
        let next = self.positions.len() + 1;
        *self.positions.entry(lsn).or_insert(next)
    }

    fn write(&mut self, line: &mut String, output: &Output<'_>) {
        match output {
            Output::Keepalive(keepalive) => {
                assert!(keepalive.wal_end.0 > 0);
                assert!(keepalive.server_clock > 1_700_000_000_000_000);
            }
            Output::Begin(transaction) => {
                let next = self.xids.len() + 1;
                let xid = *self.xids.entry(transaction.xid.0).or_insert(next);
                let at = self.position(transaction.commit_lsn.0);
                write!(line, "begin {xid}, commits at @{at}").unwrap();
                if transaction.commit_micros < 1_700_000_000_000_000 {
                    write!(line, ", time {}", transaction.commit_micros).unwrap();
                }
            }
            Output::Relation { .. } => unreachable!("handled before"),
            Output::RelationRepeated(_) => line.push_str("relation repeated"),
            Output::Row(change) => self.write_row(line, change),
            Output::Truncate(truncate) => {
                let tables: Vec<_> =
                    truncate.relations.iter().map(|table| &*self.tables[table.index]).collect();
                write!(line, "{} truncate {}", truncate.sequence, tables.join(", ")).unwrap();
                for (said, word) in
                    [(truncate.cascade, " cascade"), (truncate.restart_identity, " restart")]
                {
                    line.push_str(if said { word } else { "" });
                }
                write!(line, " @{}", self.position(truncate.lsn.0)).unwrap();
            }
            Output::Commit(commit) => {
                let (at, end) =
                    (self.position(commit.commit_lsn.0), self.position(commit.end_lsn.0));
                write!(line, "commit @{at} to @{end}, {} changes", commit.messages).unwrap();
            }
            Output::Origin { commit_lsn, name } => {
                write!(line, "origin {name} at {commit_lsn}").unwrap();
            }
            Output::Message(message) => {
                let kind = if message.transactional { "message" } else { "loose message" };
                write!(
                    line,
                    "{} {kind} {:?} {:?} @{}",
                    message.sequence,
                    message.prefix,
                    String::from_utf8_lossy(message.content),
                    self.position(message.lsn.0)
                )
                .unwrap();
            }
            Output::Ignored => line.push_str("ignored"),
        }
    }

    fn write_row(&mut self, line: &mut String, change: &RowChange<'_>) {
        let kind = match change.kind {
            ChangeKind::Read => "read",
            ChangeKind::Create => "create",
            ChangeKind::Update => "update",
            ChangeKind::KeyChange => "key change",
            ChangeKind::Delete => "delete",
            ChangeKind::Truncate => "truncate",
        };
        write!(line, "{} {kind} {}", change.sequence, self.tables[change.index]).unwrap();
        if let Some(before) = change.row.before {
            write!(line, " {} →", image(change.row, before)).unwrap();
        }
        if let Some(after) = change.row.after {
            write!(line, " {}", image(change.row, after)).unwrap();
        }
        write!(line, " @{}", self.position(change.lsn.0)).unwrap();
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
    for _ in 0..400 {
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

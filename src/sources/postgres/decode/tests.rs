//! The order of the stream: what is allowed where, what is asked and answered, how it is numbered.

use super::super::relations::{InstalledTable, RelationState};
use super::super::wire::writer::{
    Described as Column, Sent, Writer, begin, commit, delete, insert, logical, relation, truncate,
    type_name, update,
};
use super::super::wire::{Lsn, RelationId, WireTime, Xid};
use super::{
    CommitOutput, Decoder, KeepaliveOutput, MessageOutput, Output, RowChange, Transaction,
    TruncatedTable,
};
use crate::change::{Cell, ChangeKind};
use crate::error::{Code, Fault};

const ID_V: &[Column<'_>] = &[(true, "id", 23, -1), (false, "v", 25, -1)];
const ROW: &[Sent<'_>] = &[Sent::Text("1"), Sent::Text("x")];
const KEY: &[Sent<'_>] = &[Sent::Text("1"), Sent::Null];

/// A decoder and the short form of what it says.
#[derive(Default)]
struct Stream(Decoder);

impl Stream {
    /// In an open transaction at commit position 0/64.
    fn open() -> Self {
        let mut stream = Self::default();
        stream.say(begin(100, 7));
        stream
    }

    /// As [`Self::open`], with `public.t` (number 1) installed as table 5.
    fn with_table() -> Self {
        let mut stream = Self::open();
        stream.say(relation(1, "t", b'd', ID_V));
        stream.answer(1, 5);
        stream
    }

    fn say(&mut self, message: Writer) -> String {
        match self.0.frame(&message.framed(Lsn(50))) {
            Ok(Output::Relation { descriptor, sequence }) => {
                format!("relation {} before {sequence}", descriptor.name)
            }
            Ok(Output::RelationRepeated { relation, .. }) => format!("repeated {relation}"),
            Ok(Output::Row(row)) => format!("{:?} {} #{}", row.kind, row.index, row.sequence),
            Ok(Output::Begin(_)) => "begin".to_owned(),
            Ok(Output::Commit(commit)) => format!("commit of {}", commit.messages),
            Ok(Output::Ignored) => "ignored".to_owned(),
            Ok(Output::Truncate(truncate)) => {
                format!("truncate {} #{}", truncate.relations.len(), truncate.sequence)
            }
            Ok(Output::Message(message)) => format!("message #{}", message.sequence),
            Ok(other) => format!("{other:?}"),
            Err(fault) => {
                format!("{} at {}", fault.code(), fault.place().position.as_deref().unwrap())
            }
        }
    }

    fn answer(&mut self, oid: u32, index: usize) {
        self.0.install(RelationId(oid), InstalledTable { index, key: vec![0] }).unwrap();
    }

    #[track_caller]
    fn check(&mut self, message: Writer, expect: &str) {
        assert_eq!(self.say(message), expect);
    }
}

#[test]
fn a_transaction_goes_from_begin_to_commit() {
    let mut decoder = Decoder::new();
    let expect =
        Transaction { xid: Xid(7), commit_lsn: Lsn(100), commit_micros: WireTime(1).unix_micros() };
    assert_eq!(decoder.transaction(), None);
    let frame = begin(100, 7).framed(Lsn(1));
    assert!(matches!(decoder.frame(&frame), Ok(Output::Begin(found)) if found == expect));
    assert_eq!(decoder.transaction(), Some(&expect));
    let frame = commit(100, 120).framed(Lsn(120));
    let Ok(Output::Commit(found)) = decoder.frame(&frame) else { panic!("commit") };
    let expect = CommitOutput {
        commit_lsn: Lsn(100),
        end_lsn: Lsn(120),
        commit_micros: WireTime(1).unix_micros(),
        messages: 0,
    };
    assert_eq!(found, expect);
    assert_eq!(decoder.transaction(), None);
}

#[test]
fn nothing_of_a_transaction_stands_outside_one() {
    for message in [
        commit(100, 120),
        Writer::tag(b'O').lsn(1).text("far"),
        relation(1, "t", b'd', ID_V),
        type_name(1, "", "x"),
        insert(1, ROW),
        truncate(0, &[1]),
        logical(true, 1, "p", "c"),
    ] {
        Stream::default().check(message, "TG-E-PROTOCOL-UNEXPECTED at 0/0");
    }
    Stream::open().check(begin(200, 8), "TG-E-PROTOCOL-UNEXPECTED at 0/64#0");
}

#[test]
fn a_commit_must_be_that_of_its_begin() {
    Stream::open().check(commit(101, 120), "TG-E-PROTOCOL-UNEXPECTED at 0/64#0");
}

#[test]
fn commits_only_go_forward() {
    let mut stream = Stream::open();
    stream.check(commit(100, 120), "commit of 0");
    stream.check(begin(100, 8), "TG-E-PROTOCOL-UNEXPECTED at 0/64");
    stream.check(begin(101, 8), "begin");
}

#[test]
fn what_was_not_asked_for_is_refused() {
    let two_phase =
        |tag: &[u8]| Writer::default().bytes(tag).lsn(1).lsn(2).time(3).u32(4).text("gid");
    for message in [
        Writer::tag(b'S').u32(7).u8(1),
        Writer::tag(b'E'),
        Writer::tag(b'c').u32(7).u8(0).lsn(1).lsn(2).time(3),
        Writer::tag(b'A').u32(7).u32(7),
        two_phase(b"p\0"),
        two_phase(b"b"),
        two_phase(b"P\0"),
        two_phase(b"K\0"),
        Writer::tag(b'r').u8(0).lsn(1).lsn(2).time(3).time(9).u32(4).text("gid"),
    ] {
        Stream::default().check(message, "TG-E-PROTOCOL-UNEXPECTED at 0/0");
    }
}

#[test]
fn a_row_waits_for_its_relations_answer() {
    let mut stream = Stream::open();
    stream.check(insert(1, ROW), "TG-E-RELATION-UNKNOWN at 0/64#1");
    let mut stream = Stream::open();
    stream.check(relation(1, "t", b'd', ID_V), "relation t before 1");
    stream.check(insert(1, ROW), "TG-E-RELATION-UNKNOWN at 0/64#1");
    stream.answer(1, 5);
    stream.check(insert(1, ROW), "Create 5 #2");
}

#[test]
fn a_changed_definition_needs_a_new_answer_also_within_a_transaction() {
    let mut stream = Stream::with_table();
    stream.check(insert(1, ROW), "Create 5 #1");
    stream.check(relation(1, "t", b'd', ID_V), "repeated 1");
    stream.check(insert(1, ROW), "Create 5 #2");
    let wider = [ID_V, &[(false, "w", 23, -1)]].concat();
    stream.check(relation(1, "t", b'd', &wider), "relation t before 3");
    assert!(matches!(
        stream.0.relation(RelationId(1)),
        Some(RelationState::WaitingForCatalog(descriptor)) if descriptor.columns.len() == 3
    ));
    let row = [ROW, &[Sent::Null]].concat();
    stream.check(insert(1, &row), "TG-E-RELATION-UNKNOWN at 0/64#3");
    stream.answer(1, 6);
    stream.check(insert(1, &row), "Create 6 #4");
}

#[test]
fn descriptions_are_not_numbered_but_every_change_is() {
    let mut stream = Stream::with_table();
    stream.check(relation(2, "u", b'd', ID_V), "relation u before 1");
    stream.0.exclude(RelationId(2)).unwrap();
    stream.check(type_name(9, "public", "mood"), "ignored");
    stream.check(insert(2, ROW), "ignored");
    stream.check(update(1, None, ROW), "Update 5 #2");
    stream.check(delete(2, b'K', KEY), "ignored");
    stream.check(truncate(0, &[2]), "ignored");
    stream.check(logical(true, 50, "p", "c"), "message #5");
    stream.check(truncate(0, &[2, 1]), "truncate 1 #6");
    stream.check(relation(2, "u", b'd', ID_V), "repeated 2");
    stream.check(delete(1, b'K', KEY), "Delete 5 #7");
    stream.check(commit(100, 120), "commit of 7");
    stream.check(logical(false, 150, "p", "c"), "message #0");
    stream.check(begin(200, 8), "begin");
    stream.check(insert(1, ROW), "Create 5 #1");
}

#[test]
fn a_message_of_no_transaction_stands_between_two() {
    let mut stream = Stream::open();
    stream.check(logical(false, 50, "p", "c"), "TG-E-PROTOCOL-UNEXPECTED at 0/64#0");
}

#[test]
fn an_excluded_relation_is_judged_anew_when_it_changes() {
    let mut stream = Stream::open();
    stream.say(relation(2, "u", b'd', ID_V));
    stream.0.exclude(RelationId(2)).unwrap();
    stream.check(relation(2, "renamed", b'd', ID_V), "relation renamed before 1");
    stream.check(insert(2, ROW), "TG-E-RELATION-UNKNOWN at 0/64#1");
}

#[test]
fn an_answer_without_question_is_refused() {
    let mut decoder = Decoder::new();
    let table = InstalledTable { index: 0, key: vec![] };
    let code = |result: Result<(), Fault>| result.unwrap_err().code();
    assert_eq!(code(decoder.install(RelationId(1), table)), Code::Internal);
    assert_eq!(code(decoder.exclude(RelationId(1))), Code::Internal);
}

#[test]
fn a_truncate_names_the_captured_tables_in_order() {
    let mut stream = Stream::with_table();
    stream.say(relation(3, "w", b'd', ID_V));
    stream.answer(3, 9);
    let frame = truncate(3, &[3, 1]).framed(Lsn(50));
    let Ok(Output::Truncate(found)) = stream.0.frame(&frame) else { panic!("truncate") };
    let table = |oid, index| TruncatedTable { relation: RelationId(oid), index };
    assert_eq!(found.relations, [table(3, 9), table(1, 5)]);
    assert_eq!((found.cascade, found.restart_identity, found.lsn), (true, true, Lsn(50)));
    stream.check(truncate(0, &[1, 4]), "TG-E-RELATION-UNKNOWN at 0/64#2");
}

#[test]
fn a_row_of_a_root_is_refused_if_the_leaf_described_with_it_has_a_narrower_identity() {
    let full: &[Column<'_>] = &[(true, "id", 23, -1), (true, "v", 25, -1)];
    let mut stream = Stream::open();
    stream.say(relation(1, "root", b'f', full));
    stream.answer(1, 5);
    stream.say(relation(2, "leaf", b'f', full));
    stream.0.exclude(RelationId(2)).unwrap();
    stream.check(insert(1, ROW), "Create 5 #1");
    // A leaf that comes later, with a type between the two descriptions.
    stream.check(relation(1, "root", b'f', full), "repeated 1");
    stream.check(type_name(9, "public", "mood"), "ignored");
    stream.check(relation(3, "late", b'd', ID_V), "relation late before 2");
    stream.0.exclude(RelationId(3)).unwrap();
    let frame = insert(1, ROW).framed(Lsn(50));
    let fault = stream.0.frame(&frame).unwrap_err();
    assert_eq!(fault.code(), Code::ImageInconsistent);
    let text = fault.to_string();
    assert!(text.contains("ALTER TABLE public.late REPLICA IDENTITY FULL"), "{text}");
    assert!(text.contains("exclude public.root"), "{text}");
}

#[test]
fn descriptions_of_unrelated_tables_are_not_compared() {
    let full: &[Column<'_>] = &[(true, "id", 23, -1), (true, "v", 25, -1)];
    let mut stream = Stream::open();
    stream.say(relation(1, "whole", b'f', full));
    stream.answer(1, 5);
    stream.say(relation(2, "keyed", b'd', ID_V));
    stream.answer(2, 6);
    // A truncate describes all its tables first.
    stream.check(truncate(0, &[1, 2]), "truncate 2 #1");
    stream.check(insert(1, ROW), "Create 5 #2");
    stream.check(relation(2, "keyed", b'd', ID_V), "repeated 2");
    stream.check(insert(2, ROW), "Create 6 #3");
    stream.check(insert(1, ROW), "Create 5 #4");
}

#[test]
fn type_names_are_remembered() {
    let mut stream = Stream::open();
    assert_eq!(stream.0.type_name(9), None);
    stream.check(type_name(9, "public", "mood"), "ignored");
    assert_eq!(stream.0.type_name(9), Some(("public", "mood")));
}

#[test]
fn messages_and_origins_are_handed_on() {
    let mut stream = Stream::open();
    let frame = Writer::tag(b'O').lsn(3).text("far").framed(Lsn(1));
    let origin = stream.0.frame(&frame);
    assert!(matches!(origin, Ok(Output::Origin { commit_lsn: Lsn(3), name: "far" })));
    let frame = logical(true, 40, "p", "c").framed(Lsn(40));
    let Ok(Output::Message(found)) = stream.0.frame(&frame) else { panic!("message") };
    let expect = MessageOutput {
        transactional: true,
        prefix: "p",
        content: b"c",
        lsn: Lsn(40),
        sequence: 1,
    };
    assert_eq!(found, expect);
    // What is not transactional comes between transactions as well.
    Stream::default().check(logical(false, 40, "p", "c"), "message #0");
}

#[test]
fn a_keepalive_says_how_far_the_server_is() {
    let mut decoder = Decoder::new();
    let frame = Writer::tag(b'k').lsn(77).time(0).u8(1).0;
    let Ok(Output::Keepalive(found)) = decoder.frame(&frame) else { panic!("keepalive") };
    let expect = KeepaliveOutput {
        wal_end: Lsn(77),
        reply_requested: true,
        server_clock: 946_684_800_000_000,
    };
    assert_eq!(found, expect);
}

#[test]
fn a_malformed_frame_says_where_and_what() {
    let mut stream = Stream::with_table();
    stream.say(insert(1, ROW));
    let mut frame = insert(1, ROW).framed(Lsn(50));
    frame.pop();
    let fault = stream.0.frame(&frame).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "TG-E-PROTOCOL-UNEXPECTED: malformed message (position 0/64#1): column value at byte 40 \
         needs 1 bytes, 0 are left. Report it with the position; check for a proxy between worker \
         and server."
    );
}

#[test]
fn a_snapshot_row_is_a_read() {
    let cells = [Cell::Raw { start: 0, len: 1 }, Cell::Null];
    let read = RowChange::read((RelationId(1), 5), b"1\n", &cells, (Lsn(9), 3));
    assert_eq!((read.kind, read.sequence, read.row.before), (ChangeKind::Read, 3, None));
    assert_eq!(read.row.raw(cells[0]), Some(&b"1"[..]));
}

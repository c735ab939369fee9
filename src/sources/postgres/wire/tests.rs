//! Every message of the protocol, whole, cut, lengthened and mutilated.

use super::frame::{Frame, WireTime};
use super::message::{AbortForm, Block, Context, Message};
use super::reader::{DecodeError, Reader};
use super::writer::{
    Sent, Writer, begin, commit, delete, insert, logical, relation, truncate, type_name, update,
};
use super::{
    Begin, BeginPrepare, Commit, CommitPrepared, LogicalMessage, Lsn, OldTuple, Origin, Prepare,
    Relation, RelationColumn, RelationId, ReplicaIdentity, RollbackPrepared, Span, StreamAbort,
    StreamAborted, StreamCommit, StreamStart, Tuple, TupleValue, TypeName, Xid,
};

const PLAIN: Context = Context { block: Block::Plain, aborts: AbortForm::Short };
const STREAMED: Context = Context { block: Block::Streamed, aborts: AbortForm::Positioned };

fn decode(bytes: &[u8], context: Context) -> Result<Message<'_>, DecodeError> {
    // Leaked, so that a message can be handed out without its memory. It is a test.
    Message::decode(Reader::new(bytes), context, Box::leak(Box::default()))
}

/// Decodes, and shows that not a byte may be missing or too many.
#[track_caller]
fn decode_exactly(bytes: &[u8], context: Context) -> Message<'_> {
    let message = decode(bytes, context).unwrap();
    for cut in 0..bytes.len() {
        let (head, _) = bytes.split_at(cut);
        assert!(decode(head, context).is_err(), "{} cut at {cut}", message.name());
    }
    let mut longer = bytes.to_vec();
    longer.push(0);
    assert!(
        matches!(decode(&longer, context), Err(DecodeError::LeftOver { at, left: 1, .. }) if at == bytes.len()),
        "{} with a byte more",
        message.name()
    );
    message
}

#[track_caller]
fn check(writer: &Writer, context: Context, expect: &Message<'_>) {
    assert_eq!(&decode_exactly(&writer.0, context), expect);
}

/// The same message inside a streamed block: the transaction id follows the tag.
fn streamed(writer: &Writer) -> Writer {
    let (tag, rest) = writer.0.split_first().unwrap();
    Writer::tag(*tag).u32(77).bytes(rest)
}

#[test]
fn transactions_are_framed_by_begin_and_commit() {
    let expect = Begin { final_lsn: Lsn(9), commit_time: WireTime(1), xid: Xid(700) };
    check(&begin(9, 700), PLAIN, &Message::Begin(expect));
    let expect = Commit { commit_lsn: Lsn(9), end_lsn: Lsn(12), commit_time: WireTime(1) };
    check(&commit(9, 12), PLAIN, &Message::Commit(expect));
    let writer = Writer::tag(b'O').lsn(5).text("far");
    check(&writer, PLAIN, &Message::Origin(Origin { commit_lsn: Lsn(5), name: "far" }));
}

#[test]
fn reserved_flags_are_refused() {
    let mut bytes = commit(9, 12).0;
    if let Some(flags) = bytes.get_mut(1) {
        *flags = 1;
    }
    assert_eq!(
        decode(&bytes, PLAIN),
        Err(DecodeError::Unknown { what: "commit flags", at: 1, byte: 1 })
    );
    let writer = truncate(4, &[1]);
    assert!(matches!(decode(&writer.0, PLAIN), Err(DecodeError::Unknown { byte: 4, .. })));
}

#[test]
fn relations_are_described_with_their_columns() {
    let writer =
        relation(16_384, "t", b'i', &[(true, "id", 23, -1), (false, "Näme", 1700, 655_368)]);
    let column =
        |identity, name, type_oid, typmod| RelationColumn { identity, name, type_oid, typmod };
    let expect = Relation {
        xid: None,
        oid: RelationId(16_384),
        namespace: "public",
        name: "t",
        replica_identity: ReplicaIdentity::Index,
        columns: vec![column(true, "id", 23, -1), column(false, "Näme", 1700, 655_368)],
    };
    check(&writer, PLAIN, &Message::Relation(expect.clone()));
    check(
        &streamed(&writer),
        STREAMED,
        &Message::Relation(Relation { xid: Some(Xid(77)), ..expect }),
    );
    let expect = Relation {
        xid: None,
        oid: RelationId(1),
        namespace: "public",
        name: "empty",
        replica_identity: ReplicaIdentity::Nothing,
        columns: vec![],
    };
    check(&relation(1, "empty", b'n', &[]), PLAIN, &Message::Relation(expect));
}

#[test]
fn types_are_named() {
    let expect = TypeName { xid: None, oid: 16_616, namespace: "", name: "int4" };
    check(&type_name(16_616, "", "int4"), PLAIN, &Message::TypeName(expect));
    let expect = TypeName { xid: Some(Xid(77)), ..expect };
    check(&streamed(&type_name(16_616, "", "int4")), STREAMED, &Message::TypeName(expect));
}

#[test]
fn an_inserted_tuple_says_where_its_values_lie() {
    let sent = [Sent::Text("ab"), Sent::Null, Sent::Unchanged, Sent::Binary("xyz"), Sent::Text("")];
    for (writer, context, shift) in
        [(insert(5, &sent), PLAIN, 0), (streamed(&insert(5, &sent)), STREAMED, 4)]
    {
        let Message::Insert(insert) = decode_exactly(&writer.0, context) else { panic!("insert") };
        assert_eq!(insert.relation, RelationId(5));
        let span = |start: u32, len| Span { start: start.saturating_add(shift), len };
        let expect = [
            TupleValue::Text(span(13, 2)),
            TupleValue::Null,
            TupleValue::Unchanged,
            TupleValue::Binary(span(22, 3)),
            TupleValue::Text(span(30, 0)),
        ];
        assert_eq!(insert.new, expect);
    }
}

#[test]
fn updates_and_deletes_carry_the_kind_of_their_old_row() {
    let (old, new) = ([Sent::Text("1"), Sent::Null], [Sent::Text("2"), Sent::Unchanged]);
    for (kind, context) in [(b'K', PLAIN), (b'O', PLAIN), (b'K', STREAMED)] {
        let writer = update(5, Some((kind, &old)), &new);
        let writer = if context == PLAIN { writer } else { streamed(&writer) };
        let Message::Update(update) = decode_exactly(&writer.0, context) else { panic!("update") };
        let tuple = match update.old {
            Some(OldTuple::Key(tuple)) if kind == b'K' => tuple,
            Some(OldTuple::Full(tuple)) if kind == b'O' => tuple,
            other => panic!("{other:?}"),
        };
        assert!(matches!(tuple, [TupleValue::Text(_), TupleValue::Null]));
        assert!(matches!(update.new, [TupleValue::Text(_), TupleValue::Unchanged]));
        let bytes = delete(5, kind, &old).0;
        let Message::Delete(delete) = decode_exactly(&bytes, PLAIN) else { panic!("delete") };
        assert_eq!(matches!(delete.old, OldTuple::Key(_)), kind == b'K');
    }
    let bytes = update(5, None, &new).0;
    let Message::Update(update) = decode_exactly(&bytes, PLAIN) else { panic!("update") };
    assert_eq!(update.old, None);
}

#[test]
fn unknown_letters_are_refused_with_their_place() {
    let unknown = |what, at, byte| Err(DecodeError::Unknown { what, at, byte });
    assert_eq!(decode(b"Z", PLAIN), unknown("message tag", 0, b'Z'));
    let none: [Sent<'_>; 0] = [];
    let kind = Writer::tag(b'U').u32(1).tuple(b'X', &none);
    assert_eq!(decode(&kind.0, PLAIN), unknown("tuple kind", 5, b'X'));
    let kind = Writer::tag(b'D').u32(1).tuple(b'N', &none);
    assert_eq!(decode(&kind.0, PLAIN), unknown("tuple kind", 5, b'N'));
    let column = Writer::tag(b'I').u32(1).u8(b'N').count16(1).u8(b'x');
    assert_eq!(decode(&column.0, PLAIN), unknown("column kind", 8, b'x'));
    assert_eq!(
        decode(&relation(1, "t", b'q', &[]).0, PLAIN),
        unknown("replica identity", 14, b'q')
    );
}

#[test]
fn a_truncate_lists_its_relations() {
    for (options, cascade, restart_identity) in
        [(0, false, false), (1, true, false), (2, false, true), (3, true, true)]
    {
        let writer = streamed(&truncate(options, &[3, 1, 2]));
        let Message::Truncate(truncate) = decode_exactly(&writer.0, STREAMED) else {
            panic!("truncate")
        };
        assert_eq!((truncate.cascade, truncate.restart_identity), (cascade, restart_identity));
        assert_eq!(truncate.relations.iter().map(|oid| oid.0).collect::<Vec<_>>(), [3, 1, 2]);
    }
}

#[test]
fn logical_messages_carry_prefix_and_content() {
    let expect = LogicalMessage {
        xid: None,
        transactional: true,
        lsn: Lsn(4),
        prefix: "p",
        content: b"\0\xc3\xa9",
    };
    check(&logical(true, 4, "p", "\0é"), PLAIN, &Message::Logical(expect));
    let expect = LogicalMessage { transactional: false, xid: Some(Xid(77)), ..expect };
    check(&streamed(&logical(false, 4, "p", "\0é")), STREAMED, &Message::Logical(expect));
}

#[test]
fn streamed_blocks_and_their_ends() {
    let writer = Writer::tag(b'S').u32(7).u8(1);
    let expect = StreamStart { xid: Xid(7), first_segment: true };
    check(&writer, PLAIN, &Message::StreamStart(expect));
    check(&Writer::tag(b'E'), STREAMED, &Message::StreamStop);
    let writer = Writer::tag(b'c').u32(7).u8(0).lsn(1).lsn(2).time(3);
    let commit = Commit { commit_lsn: Lsn(1), end_lsn: Lsn(2), commit_time: WireTime(3) };
    check(&writer, PLAIN, &Message::StreamCommit(StreamCommit { xid: Xid(7), commit }));
    let short = Writer::tag(b'A').u32(7).u32(8);
    let expect = StreamAbort { xid: Xid(7), subxid: Xid(8), aborted: None };
    check(&short, PLAIN, &Message::StreamAbort(expect));
    let aborted = Some(StreamAborted { lsn: Lsn(5), time: WireTime(6) });
    let positioned = short.lsn(5).time(6);
    check(&positioned, STREAMED, &Message::StreamAbort(StreamAbort { aborted, ..expect }));
}

#[test]
fn two_phase_messages() {
    let (prepare_lsn, end_lsn, xid, gid) = (Lsn(1), Lsn(2), Xid(4), "gid");
    let prepare_time = WireTime(3);
    let body = |tag: &[u8]| Writer::default().bytes(tag).lsn(1).lsn(2).time(3).u32(4).text("gid");
    let expect = BeginPrepare { prepare_lsn, end_lsn, prepare_time, xid, gid };
    check(&body(b"b"), PLAIN, &Message::BeginPrepare(expect));
    let expect = Prepare { prepare_lsn, end_lsn, prepare_time, xid, gid };
    check(&body(b"P\0"), PLAIN, &Message::Prepare(expect));
    check(&body(b"p\0"), PLAIN, &Message::StreamPrepare(expect));
    let expect =
        CommitPrepared { commit_lsn: Lsn(1), end_lsn, commit_time: prepare_time, xid, gid };
    check(&body(b"K\0"), PLAIN, &Message::CommitPrepared(expect));
    let writer = Writer::tag(b'r').u8(0).lsn(1).lsn(2).time(3).time(9).u32(4).text("gid");
    let expect = RollbackPrepared {
        prepare_end_lsn: Lsn(1),
        rollback_end_lsn: Lsn(2),
        prepare_time,
        rollback_time: WireTime(9),
        xid,
        gid,
    };
    check(&writer, PLAIN, &Message::RollbackPrepared(expect));
}

#[test]
fn a_declared_count_never_outgrows_the_bytes() {
    let columns = Writer::tag(b'I').u32(1).u8(b'N').count16(i16::MAX as usize);
    assert!(matches!(decode(&columns.0, PLAIN), Err(DecodeError::Missing { left: 0, .. })));
    let columns = Writer::tag(b'R').u32(1).text("").text("").u8(b'd').count16(1).bytes(&[0; 9]);
    assert!(matches!(decode(&columns.0, PLAIN), Err(DecodeError::Missing { needed: 10, .. })));
    let relations = Writer::tag(b'T').i32(i32::MAX).u8(0).u32(1);
    assert!(matches!(decode(&relations.0, PLAIN), Err(DecodeError::Missing { .. })));
    let value = Writer::tag(b'I').u32(1).u8(b'N').count16(1).u8(b't').i32(-1);
    assert!(matches!(decode(&value.0, PLAIN), Err(DecodeError::Negative { value: -1, .. })));
}

/// `SplitMix64`: a generator that is the same everywhere, so that a failing seed can be named.
struct Random(u64);

impl Random {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap().checked_rem(limit).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}

/// Reads whatever can be read.
fn exhaust(frame: &[u8], values: &mut Vec<TupleValue>) {
    let Ok(Frame::XLogData(data)) = Frame::decode(frame) else { return };
    for block in [Block::Plain, Block::Streamed] {
        for aborts in [AbortForm::Short, AbortForm::Positioned] {
            match Message::decode(data.payload, Context { block, aborts }, values) {
                Ok(Message::Insert(insert)) => assert_within(insert.new, frame),
                Ok(Message::Update(update)) => assert_within(update.new, frame),
                Ok(Message::Delete(delete)) => {
                    let (OldTuple::Key(old) | OldTuple::Full(old)) = delete.old;
                    assert_within(old, frame);
                }
                Ok(Message::Truncate(truncate)) => {
                    assert!(truncate.relations.iter().len() <= frame.len());
                }
                Ok(_) => {}
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}

fn assert_within(tuple: Tuple<'_>, frame: &[u8]) {
    for value in tuple {
        if let TupleValue::Text(span) | TupleValue::Binary(span) = value {
            let end = span.start.checked_add(span.len).unwrap();
            assert!(end as usize <= frame.len());
        }
    }
}

fn recorded_frames() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/streams");
    let mut frames = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "bin") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let mut rest = &*bytes;
        while let Some((length, tail)) = rest.split_first_chunk::<4>() {
            let (frame, tail) = tail.split_at(u32::from_be_bytes(*length) as usize);
            if frame.len() < 600 {
                frames.push(frame.to_vec());
            }
            rest = tail;
        }
    }
    frames.sort();
    frames.dedup();
    frames
}

fn mutilate(frame: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let at = random.below(frame.len());
        match random.below(5) {
            0 => frame.truncate(at),
            1 => frame.insert(at.min(frame.len()), random.byte()),
            2 if at < frame.len() => drop(frame.remove(at)),
            3 => {
                // A length or count that promises far too much.
                for byte in frame.iter_mut().skip(at).take(4) {
                    *byte = if random.below(2) == 0 { 0xff } else { 0x7f };
                }
            }
            _ => {
                if let Some(byte) = frame.get_mut(at) {
                    *byte = random.byte();
                }
            }
        }
    }
}

#[test]
fn arbitrary_bytes_never_panic() {
    let frames = recorded_frames();
    assert!(frames.len() > 100);
    let mut values = Vec::new();
    for seed in 0..60_000 {
        let mut random = Random(seed);
        let mut frame = match random.below(3) {
            0 => (0..random.below(80)).map(|_| random.byte()).collect(),
            1 => {
                let tags = b"BCORYIUDTMSEcApbPKr";
                let tag = tags.get(random.below(tags.len())).copied().unwrap_or_default();
                let body: Vec<u8> = (0..random.below(60)).map(|_| random.byte() % 6).collect();
                Writer::tag(tag).bytes(&body).framed(Lsn(1))
            }
            _ => frames.get(random.below(frames.len())).cloned().unwrap_or_default(),
        };
        exhaust(&frame, &mut values);
        mutilate(&mut frame, &mut random);
        exhaust(&frame, &mut values);
    }
}

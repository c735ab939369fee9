//! One frame: `cargo +nightly fuzz run message` (seeds: `fuzz/seed.py`).

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate::sources::postgres::wire::{AbortForm, Block, Context, Frame, Message, OldTuple, Tuple, TupleValue};

fuzz_target!(|frame: &[u8]| {
    let Ok(Frame::XLogData(data)) = Frame::decode(frame) else { return };
    let mut values = Vec::new();
    for block in [Block::Plain, Block::Streamed] {
        for aborts in [AbortForm::Short, AbortForm::Positioned] {
            match Message::decode(data.payload, Context { block, aborts }, &mut values) {
                Ok(Message::Insert(insert)) => assert_within(insert.new, frame),
                Ok(Message::Update(update)) => {
                    if let Some(OldTuple::Key(old) | OldTuple::Full(old)) = update.old {
                        assert_within(old, frame);
                    }
                    assert_within(update.new, frame);
                }
                Ok(Message::Delete(delete)) => {
                    let (OldTuple::Key(old) | OldTuple::Full(old)) = delete.old;
                    assert_within(old, frame);
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
});

fn assert_within(tuple: Tuple<'_>, frame: &[u8]) {
    for value in tuple {
        if let TupleValue::Text(span) | TupleValue::Binary(span) = value {
            assert!(span.start as usize + span.len as usize <= frame.len());
        }
    }
}

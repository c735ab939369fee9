//! A whole stream: frames, each preceded by its length (16 bits, big-endian, so that mutation hits
//! it often). `cargo +nightly fuzz run decoder` (seeds: `fuzz/seed.py`).

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate::change::Cell;
use tidegate::sources::postgres::decode::{Decoder, Output};
use tidegate::sources::postgres::relations::InstalledTable;

fuzz_target!(|bytes: &[u8]| {
    let mut decoder = Decoder::new();
    let mut rest = bytes;
    while let Some((length, tail)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(tail.len());
        let (frame, tail) = tail.split_at(length);
        rest = tail;
        let question = match decoder.frame(frame) {
            Ok(Output::Relation { descriptor, .. }) => descriptor,
            Ok(Output::Row(change)) => {
                for cell in change.row.before.into_iter().chain(change.row.after).flatten() {
                    assert_eq!(matches!(cell, Cell::Raw { .. }), change.row.raw(*cell).is_some());
                }
                continue;
            }
            Ok(_) | Err(_) => continue,
        };
        // A third of the relations is excluded, the others are keyed by their identity.
        if question.oid.0 % 3 == 0 {
            decoder.exclude(question.oid).expect("it was just described");
            continue;
        }
        let columns = question.columns.iter().enumerate();
        let key = columns.filter(|(_, column)| column.identity).map(|(index, _)| index).collect();
        let table = InstalledTable { index: 0, key };
        decoder.install(question.oid, table).expect("it was just described");
    }
});

//! A note of event triggers, signed and not: `cargo +nightly fuzz run ddl_note`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    tidegate::sources::postgres::ddl::read_arbitrary(bytes);
});

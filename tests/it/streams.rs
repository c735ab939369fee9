//! Recorded streams: what `integration/capture` wrote down of real servers.

use std::path::PathBuf;

/// The recordings of a script, one for each server version that has one: name and frames.
pub(crate) fn recorded(script: &str) -> Vec<(String, Vec<Vec<u8>>)> {
    let names = (13..=18).map(|major| format!("pg{major}-{script}"));
    let found: Vec<_> = names
        .filter_map(|name| {
            let bytes = std::fs::read(folder().join(format!("{name}.bin"))).ok()?;
            Some((name, split(&bytes)))
        })
        .collect();
    assert!(!found.is_empty(), "no recording of {script}");
    found
}

/// All recordings.
pub(crate) fn all() -> Vec<(String, Vec<Vec<u8>>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "bin") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            found.push((name, split(&std::fs::read(&path).unwrap())));
        }
    }
    found.sort();
    found
}

/// Where they are.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/streams")
}

fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (frame, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        frames.push(frame.to_vec());
        bytes = rest;
    }
    assert!(bytes.is_empty(), "half a length at the end");
    frames
}

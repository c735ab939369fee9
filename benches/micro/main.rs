//! Decode, image and encode, row by row: how long it takes, and how many instructions.
//!
//! Without arguments it prints nanoseconds and bytes per row of every workload. With the name of a
//! workload, a format and a number of rows it only runs them, for a tool that counts from outside
//! (`make bench-micro`).

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for developers")]
#![expect(clippy::disallowed_methods, reason = "a stopwatch")]

mod workload;

use std::time::Instant;

use workload::{WORKLOADS, Written, frames, run};

const ROWS: usize = 100_000;

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|it| !it.starts_with("--")).collect();
    let formats = [("avro", Written::Avro), ("json", Written::Json)];
    if let [name, format, rows] = arguments.as_slice() {
        let workload = WORKLOADS.into_iter().find(|it| it.name == name).expect("a workload");
        let (_, written) = formats.into_iter().find(|it| it.0 == format).expect("avro or json");
        let outcome = run(workload, written, &frames(workload, rows.parse().unwrap()));
        println!("{outcome:?}");
        return;
    }
    println!("{:16} {:5} {:>8} {:>8} {:>8}", "workload", "", "ns/row", "in B", "out B");
    for workload in WORKLOADS {
        let rows = if workload.name.ends_with("10kb") { ROWS / 10 } else { ROWS };
        let frames = frames(workload, rows);
        let sent: usize = frames.iter().map(Vec::len).sum();
        for (name, written) in formats {
            let took = (0..5).map(|_| {
                let began = Instant::now();
                let outcome = run(workload, written, &frames);
                assert_eq!(outcome.records > 0, workload.is_published, "{}", workload.name);
                (began.elapsed(), outcome.bytes)
            });
            let (took, bytes) = took.min().expect("five runs");
            let nanos = took.as_nanos() / rows as u128;
            println!(
                "{:16} {name:5} {nanos:8} {:8} {:8}",
                workload.name,
                sent / rows,
                bytes / rows
            );
        }
    }
}

//! From frame to hand-over nothing is allocated for a row.
//!
//! Counted, not timed: twice as many rows must not allocate more, but for what each read and each
//! transaction costs.

use allocation_counter::measure;

use crate::workload::{WORKLOADS, Workload, Written, frames, reads, run};

/// What a read may allocate: an item of the queue, and room that a batch did not have before.
const READ: u64 = 6;
/// What a transaction may allocate: offsets.
const TRANSACTION: u64 = 20;
const ROWS: usize = 4_000;
/// The workloads of plain rows; those behind them count what settings cost.
const OF_ROWS: usize = 10;

/// Allocations, and how many of them are not the rows'.
fn allocations(workload: Workload, written: Written, rows: usize) -> (u64, u64) {
    let frames = frames(workload, rows);
    let mut records = 0;
    let counted = measure(|| records = run(workload, written, &frames).records);
    let is_right = if workload.is_published { records >= rows } else { records == 0 };
    assert!(is_right, "{}: {records} records of {rows} rows", workload.name);
    let transactions = rows.div_ceil(1000) as u64;
    (counted.count_total, READ * reads(&frames).count() as u64 + TRANSACTION * transactions)
}

fn check(written: Written) {
    for workload in WORKLOADS.into_iter().take(OF_ROWS) {
        let rows = if workload.name == "insert-10kb" { ROWS / 10 } else { ROWS };
        let (once, allowed_once) = allocations(workload, written, rows);
        let (twice, allowed_twice) = allocations(workload, written, 2 * rows);
        let (more, allowed) = (twice.saturating_sub(once), allowed_twice - allowed_once);
        assert!(more <= allowed, "{}: {more} for {rows} rows more, not {allowed}", workload.name);
        assert!(allowed < rows as u64, "the bound is below one for a row");
    }
}

#[test]
fn a_row_in_avro_allocates_nothing() {
    check(Written::Avro);
}

#[test]
fn a_row_in_json_allocates_nothing() {
    check(Written::Json);
}

//! Debezium's keys for details of snapshots that no source here carries out.
//!
//! Knows no source. What a source does carry out stands in the source's own table.

use super::keys;
use crate::config::{Choice, Rule, Table};

/// Every table of this file.
pub const TABLES: [&Table; 1] = [&SNAPSHOT_DETAILS];

keys! {
    /// Details of snapshots.
    SNAPSHOT_DETAILS "Snapshot Details"
    supported {}
    no effect {
        "snapshot.fetch.size" Int ("10240") "rows are taken as the server sends them" Rule::AtLeast(0);
        "query.fetch.size" Int ("0") "rows are taken as the server sends them" Rule::AtLeast(0);
        "snapshot.isolation.mode" String ("serializable")
            "all tables are read in one read-only snapshot; for reading that is as strong as serializable"
            Rule::OneOf(&[
                Choice::of("serializable"),
                Choice::of("repeatable_read"),
                Choice::of("read_committed"),
                Choice::of("read_uncommitted"),
            ]);
        "snapshot.lock.timeout.ms" Long ("10000") "a snapshot takes no locks that it would have to wait for";
        "snapshot.max.threads.multiplier" Int ("1") "a large table is cut by its size and snapshot.max.threads" Rule::AtLeast(1);
        "snapshot.max.threads.multiplier.<table>" Int () "a large table is cut by its size and snapshot.max.threads";
        "legacy.snapshot.max.threads" Boolean ("false") "connections take tables and parts of large ones alike";
        "snapshot.mode.configuration.based.snapshot.schema" Boolean ("false")
            "definitions come with the stream; nothing has to be read of them beforehand";
        "snapshot.mode.configuration.based.snapshot.on.schema.error" Boolean ("false")
            "definitions come with the stream; there is no history of them that could be lost";
    }
    refused {
        "snapshot.locking.mode" String ("none") "a snapshot takes no table locks";
        "snapshot.locking.mode.custom.name" String () "it names a Java class";
        "snapshot.query.mode" String ("select_all") "whole tables are read";
        "snapshot.query.mode.custom.name" String () "it names a Java class";
        "snapshot.mode.custom.name" String () "it names a Java class";
        "streaming.delay.ms" Long ("0") "streaming begins at once";
    }
}

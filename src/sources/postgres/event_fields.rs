//! The source block: which fields it has, and their values for one change.
//!
//! The block is Debezium's for PostgreSQL (`io.debezium.connector.postgresql.Source`, version 1),
//! field by field. Constant parts are compiled into the plan; what changes is handed over by index.
//! **Invariant:** the text of `sequence` and of the commit position lives in buffers that are
//! reused: nothing is allocated per row.

use std::fmt::Write as _;
use std::sync::Arc;

use super::decode::Transaction;
use super::wire::Lsn;
use crate::change::{Instant, Scalar};
use crate::plan::{ControlOrigin, Provenance, SourceBlock, SourceField};
use crate::record::{Field, Kind, Literal, Render, Schema};

/// Number of changing fields.
pub(super) const EVENT_FIELDS: usize = 7;

const TIME: usize = 0;
const SNAPSHOT: usize = 1;
const SEQUENCE: usize = 2;
const TRANSACTION_ID: usize = 3;
const POSITION: usize = 4;
const ORIGIN: usize = 5;
const ORIGIN_POSITION: usize = 6;

/// The source's name in envelopes and schema names.
const CONNECTOR: &str = "postgresql";
/// Header that carries the commit position of a record's transaction.
const POSITION_HEADER: &str = "__tidegate.commit_lsn";

/// The marker of a snapshot row, or of a streamed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SnapshotMarker {
    /// The very first row.
    First,
    /// The first row of a table.
    FirstInTable,
    /// Any other row.
    Within,
    /// The last row of a table.
    LastInTable,
    /// The very last row.
    Last,
    /// A row of a chunk that was read beside the stream.
    Incremental,
    /// Not a snapshot row.
    Streamed,
}

impl SnapshotMarker {
    const ALLOWED: &'static str =
        "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental";

    const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::FirstInTable => "first_in_data_collection",
            Self::Within => "true",
            Self::LastInTable => "last_in_data_collection",
            Self::Last => "last",
            Self::Incremental => "incremental",
            Self::Streamed => "false",
        }
    }
}

/// Declares the block. `name` is the topic prefix.
pub fn source_block(name: &str, database: &str) -> SourceBlock {
    let text = || Schema::new(Kind::String);
    let long = || Schema::new(Kind::Int64);
    let constant = |value: &str| SourceField::Constant(Literal::String(value.to_owned()));
    let event = |index, render| SourceField::Event { index, render };
    let snapshot = text()
        .named("io.debezium.data.Enum", Some(1))
        .parameter("allowed", SnapshotMarker::ALLOWED)
        .optional()
        .default_value(Some(Literal::String("false".to_owned())));
    let fields = [
        ("version", text(), constant(env!("CARGO_PKG_VERSION"))),
        ("connector", text(), constant(CONNECTOR)),
        ("name", text(), constant(name)),
        ("ts_ms", long(), event(TIME, Render::ClockMillis)),
        ("snapshot", snapshot, event(SNAPSHOT, Render::Text)),
        ("db", text(), constant(database)),
        ("sequence", text().optional(), event(SEQUENCE, Render::Text)),
        ("ts_us", long().optional(), event(TIME, Render::TimestampMicros)),
        ("ts_ns", long().optional(), event(TIME, Render::TimestampNanos)),
        ("schema", text(), SourceField::Namespace),
        ("table", text(), SourceField::Table),
        ("txId", long().optional(), event(TRANSACTION_ID, Render::Int64)),
        ("lsn", long().optional(), event(POSITION, Render::Int64)),
        ("xmin", long().optional(), SourceField::Constant(Literal::Null)),
        ("origin", text().optional(), event(ORIGIN, Render::Text)),
        ("origin_lsn", long().optional(), event(ORIGIN_POSITION, Render::Int64)),
    ];
    let (schemas, sources) = fields
        .into_iter()
        .map(|(name, schema, source)| {
            (Field { name: name.to_owned(), schema: Arc::new(schema) }, source)
        })
        .unzip();
    SourceBlock {
        schema: Arc::new(
            Schema::new(Kind::Struct(schemas))
                .named("io.debezium.connector.postgresql.Source", Some(1)),
        ),
        fields: sources,
        connector: CONNECTOR.to_owned(),
        position_header: POSITION_HEADER.to_owned(),
        announced,
    }
}

/// The block's changing fields in a record about a table's definition.
fn announced(origin: &ControlOrigin<'_>) -> Vec<(&'static str, Literal)> {
    let position = origin.commit_position.parse::<Lsn>().ok();
    let is_of_snapshot = origin.provenance == Provenance::Catalogue;
    vec![
        ("ts_ms", Literal::Int(origin.micros.div_euclid(1000))),
        ("ts_us", Literal::Int(origin.micros)),
        ("ts_ns", origin.micros.checked_mul(1000).map_or(Literal::Null, Literal::Int)),
        ("snapshot", Literal::String(if is_of_snapshot { "true" } else { "false" }.to_owned())),
        ("lsn", position.map_or(Literal::Null, |lsn| Literal::Int(lsn.0.cast_signed()))),
    ]
}

/// The values for one change.
#[derive(Debug)]
pub(super) struct Values<'a> {
    /// By the index that the block declares.
    pub(super) values: [Scalar<'a>; EVENT_FIELDS],
    /// The commit position as the header shows it.
    pub(super) commit_position: &'a str,
}

/// The values of the changing fields, kept up to date along the stream.
#[derive(Debug, Default)]
pub(super) struct EventFields {
    /// The end of the last transaction, or where an earlier stream ended; `None` behind a snapshot.
    last_commit: Option<Lsn>,
    time_micros: i64,
    transaction_id: Option<i64>,
    /// The commit position as the header shows it.
    commit_position: String,
    /// The two-element list of `sequence`, as JSON text.
    sequence: String,
    origin: Option<(String, Lsn)>,
}

impl EventFields {
    /// A transaction begins.
    pub(super) fn begin(&mut self, transaction: &Transaction) {
        self.time_micros = transaction.commit_micros;
        self.transaction_id = Some(i64::from(transaction.xid.0));
        self.origin = None;
        self.set_commit_position(transaction.commit_lsn);
    }

    /// The transaction came from elsewhere.
    pub(super) fn set_origin(&mut self, name: &str, commit: Lsn) {
        self.origin = Some((name.to_owned(), commit));
    }

    /// The transaction ended here.
    pub(super) const fn commit(&mut self, end: Lsn) {
        self.last_commit = Some(end);
    }

    /// A message that belongs to no transaction ends here. The server does not say when it was
    /// written.
    pub(super) fn message(&mut self, end: Lsn, now_micros: i64) {
        self.time_micros = now_micros;
        self.transaction_id = None;
        self.origin = None;
        self.last_commit = Some(end);
        self.set_commit_position(end);
    }

    /// A snapshot begins that shows the database at this position.
    pub(super) fn begin_snapshot(&mut self, position: Lsn, transaction_id: Option<i64>) {
        self.transaction_id = transaction_id;
        self.origin = None;
        self.set_commit_position(position);
    }

    /// A chunk is published where the stream stands, behind the transaction that ended last. Its
    /// rows have no transaction. The next one may commit at the very place; records begin at
    /// multiples of eight, so the byte before is a position between the two that none has.
    pub(super) fn begin_chunk(&mut self, place: Lsn, micros: i64) {
        self.time_micros = micros;
        self.transaction_id = None;
        self.origin = None;
        self.set_commit_position(Lsn(place.0.saturating_sub(1)));
    }

    /// When the snapshot's rows are read, microseconds since the epoch.
    pub(super) const fn set_time(&mut self, micros: i64) {
        self.time_micros = micros;
    }

    /// The values for a change at this position.
    pub(super) fn values(&mut self, position: Lsn, marker: SnapshotMarker) -> Values<'_> {
        self.sequence.clear();
        let own = (marker != SnapshotMarker::Incremental).then_some(position);
        // writing to a String cannot fail
        match (self.last_commit, own) {
            (Some(end), Some(own)) => write!(self.sequence, "[\"{}\",\"{}\"]", end.0, own.0),
            (None, Some(own)) => write!(self.sequence, "[null,\"{}\"]", own.0),
            (Some(end), None) => write!(self.sequence, "[\"{}\",null]", end.0),
            (None, None) => write!(self.sequence, "[null,null]"),
        }
        .unwrap_or_default();
        let mut values = [Scalar::Null; EVENT_FIELDS];
        values[TIME] = Scalar::Timestamp(Instant::At(i128::from(self.time_micros)));
        values[SNAPSHOT] = Scalar::Text(marker.as_str());
        values[SEQUENCE] = Scalar::Text(&self.sequence);
        values[TRANSACTION_ID] = self.transaction_id.map_or(Scalar::Null, Scalar::Int);
        if let Some(own) = own {
            values[POSITION] = Scalar::Int(own.0.cast_signed());
        }
        if let Some((name, commit)) = &self.origin {
            values[ORIGIN] = Scalar::Text(name);
            values[ORIGIN_POSITION] = Scalar::Int(commit.0.cast_signed());
        }
        Values { values, commit_position: &self.commit_position }
    }

    fn set_commit_position(&mut self, position: Lsn) {
        self.commit_position.clear();
        write!(self.commit_position, "{position}").unwrap_or_default();
    }
}

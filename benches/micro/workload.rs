//! Streams as a server sends them, and the path from their frames to the publisher's queue.
//!
//! For measurements only: the frames are made here, for every column's text is chosen. Their form is
//! that of the manual, "Logical Replication Message Formats".

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tidegate::config::{ConnectorConfig, Environment, TypedConnector, WorkerConfig};
use tidegate::convert::Converters;
use tidegate::error::Fault;
use tidegate::kafka::{
    CleanupPolicy, Received, SizeLimits, Staged, TopicFacts, TopicList, channel,
};
use tidegate::sources::SourceSettings;
use tidegate::sources::postgres::replay::replay;
use tidegate::stage::{Services, Side, Stage, StageSettings};

/// Rows of one transaction.
const TRANSACTION_ROWS: usize = 1000;
/// What one read brings at least.
const READ_BYTES: usize = 64 << 10;

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    identity: u8,
    columns: fn() -> Vec<Column>,
    row: fn(usize) -> Row,
    /// What its connector has beyond the defaults.
    settings: &'static [(&'static str, &'static str)],
    /// How many of its rows become records: all, or none.
    pub(crate) is_published: bool,
}

/// A column: whether it belongs to the identity, its name, its type's number and modifier.
type Column = (bool, String, u32, i32);

/// A row of a message: the tag, the old tuple with its kind, the new tuple.
type Row = (u8, Option<(u8, Vec<Cell>)>, Vec<Cell>);

/// A column of a tuple.
#[derive(Clone, Debug)]
enum Cell {
    Null,
    Unchanged,
    Text(String),
}

/// All of them.
pub(crate) const WORKLOADS: [Workload; 28] = [
    Workload {
        name: "insert-5",
        identity: b'd',
        columns: narrow,
        row: |n| insert(narrow_row(n)),
        settings: &[],
        is_published: true,
    },
    Workload {
        name: "insert-30",
        identity: b'd',
        columns: wide,
        row: |n| insert(wide_row(n)),
        settings: &[],
        is_published: true,
    },
    Workload {
        name: "update-key",
        identity: b'd',
        columns: narrow,
        row: |n| (b'U', None, narrow_row(n)),
        settings: &[],
        is_published: true,
    },
    Workload {
        name: "key-change",
        identity: b'd',
        columns: narrow,
        row: |n| (b'U', Some((b'K', key_only(narrow_row(n + 1)))), narrow_row(n)),
        settings: &[],
        is_published: true,
    },
    Workload {
        name: "update-full",
        identity: b'f',
        columns: wide,
        row: |n| (b'U', Some((b'O', wide_row(n + 1))), wide_row(n)),
        settings: &[],
        is_published: true,
    },
    Workload {
        name: "delete",
        identity: b'd',
        columns: narrow,
        row: |n| (b'D', Some((b'K', key_only(narrow_row(n)))), Vec::new()),
        settings: &[],
        is_published: true,
    },
    Workload {
        name: "insert-10kb",
        identity: b'd',
        columns: large,
        row: |n| insert(large_row(n, 320)),
        settings: &[],
        is_published: true,
    },
    Workload {
        name: "unchanged-10kb",
        identity: b'd',
        columns: large,
        row: |n| (b'U', None, unchanged(n)),
        settings: &[],
        is_published: true,
    },
    Workload {
        name: "rejected",
        identity: b'f',
        columns: wide,
        row: |n| (b'U', Some((b'O', wide_row(n + 1))), wide_row(n)),
        settings: &[("row.filter.public.t", FILTER_NONE)],
        is_published: false,
    },
    Workload {
        name: "let-through",
        identity: b'f',
        columns: wide,
        row: |n| (b'U', Some((b'O', wide_row(n + 1))), wide_row(n)),
        settings: &[("row.filter.public.t", FILTER_ALL)],
        is_published: true,
    },
    // A large value that comes, and that is taken from the old row instead.
    Workload {
        name: "update-10kb",
        identity: b'f',
        columns: large,
        row: |n| (b'U', Some((b'O', large_row(n, 320))), large_row(n, 320)),
        settings: &[],
        is_published: true,
    },
    Workload {
        name: "backfill-10kb",
        identity: b'f',
        columns: large,
        row: |n| (b'U', Some((b'O', large_row(n, 320))), unchanged(n)),
        settings: &[],
        is_published: true,
    },
    // The same from the same transaction: each row is written, and then updated.
    Workload {
        name: "twice-10kb",
        identity: b'd',
        columns: large,
        row: |n| match n % 2 {
            0 => insert(large_row(n / 2, 320)),
            _ => (b'U', None, large_row(n / 2, 320)),
        },
        settings: &[("toast.mode", "sentinel")],
        is_published: true,
    },
    Workload {
        name: "sibling-10kb",
        identity: b'd',
        columns: large,
        row: |n| match n % 2 {
            0 => insert(large_row(n / 2, 320)),
            _ => (b'U', None, unchanged(n / 2)),
        },
        settings: &[],
        is_published: true,
    },
    typed("typed", &[]),
    typed(
        "all-modes",
        &[
            ("decimal.handling.mode", "string"),
            ("time.precision.mode", "isostring"),
            ("interval.handling.mode", "string"),
            ("binary.handling.mode", "hex"),
            ("column.mask.with.12.chars", "public\\.t\\.(c19|c20)"),
        ],
    ),
    typed("masked", &[("column.mask.with.12.chars", "public\\.t\\.(c19|c20|c21|c22|c23)")]),
    typed("cut", &[("column.truncate.to.20.chars", "public\\.t\\.(c19|c20|c21|c22|c23|c29)")]),
    typed("decimal-string", &[("decimal.handling.mode", "string")]),
    typed("decimal-double", &[("decimal.handling.mode", "double")]),
    typed("time-iso", &[("time.precision.mode", "isostring")]),
    typed("time-connect", &[("time.precision.mode", "connect")]),
    typed("time-micro", &[("time.precision.mode", "microseconds")]),
    typed("time-nano", &[("time.precision.mode", "nanoseconds")]),
    typed("interval-string", &[("interval.handling.mode", "string")]),
    typed("bytes-hex", &[("binary.handling.mode", "hex")]),
    typed("bytes-base64", &[("binary.handling.mode", "base64")]),
    typed("money-4", &[("money.fraction.digits", "4")]),
];

/// Inserts of rows with a column of each type that can be published in several ways.
const fn typed(name: &'static str, settings: &'static [(&'static str, &'static str)]) -> Workload {
    Workload {
        name,
        identity: b'd',
        columns: every_mode,
        row: |n| insert(every_mode_row(n)),
        settings,
        is_published: true,
    }
}

/// The rows are those of `update-full`: what these cost is to be compared with it.
const FILTER_ALL: &str = "c01 BETWEEN 0 AND 1000 AND c09 > 0 AND c14 > '2000-01-01'";
const FILTER_NONE: &str = "c14 > '2000-01-01' AND c09 > 0 AND c01 IN (-1, -2, -3)";

fn insert(cells: Vec<Cell>) -> Row {
    (b'I', None, cells)
}

fn text(value: impl std::fmt::Display) -> Cell {
    Cell::Text(value.to_string())
}

fn key_only(mut cells: Vec<Cell>) -> Vec<Cell> {
    cells.iter_mut().skip(1).for_each(|cell| *cell = Cell::Null);
    cells
}

fn columns(described: &[(&str, u32, i32)]) -> Vec<Column> {
    let column = |(index, (name, oid, modifier)): (usize, &(&str, u32, i32))| {
        (index == 0, (*name).to_owned(), *oid, *modifier)
    };
    described.iter().enumerate().map(column).collect()
}

/// The modifier of `numeric(precision,scale)`.
const fn digits(precision: i32, scale: i32) -> i32 {
    (precision << 16 | scale) + 4
}

const BOOL: u32 = 16;
const BYTEA: u32 = 17;
const INT8: u32 = 20;
const INT2: u32 = 21;
const INT4: u32 = 23;
const TEXT: u32 = 25;
const FLOAT4: u32 = 700;
const FLOAT8: u32 = 701;
const MONEY: u32 = 790;
const INET: u32 = 869;
const INT4_ARRAY: u32 = 1007;
const BPCHAR: u32 = 1042;
const VARCHAR: u32 = 1043;
const DATE: u32 = 1082;
const TIME: u32 = 1083;
const TIMESTAMP: u32 = 1114;
const TIMESTAMPTZ: u32 = 1184;
const INTERVAL: u32 = 1186;
const NUMERIC: u32 = 1700;
const UUID: u32 = 2950;
const JSONB: u32 = 3802;

fn narrow() -> Vec<Column> {
    columns(&[
        ("id", INT8, -1),
        ("customer_id", INT4, -1),
        ("amount", NUMERIC, digits(12, 2)),
        ("status", TEXT, -1),
        ("created_at", TIMESTAMPTZ, -1),
    ])
}

fn narrow_row(n: usize) -> Vec<Cell> {
    vec![
        text(1_000_000 + n),
        text(n * 7 % 100_000),
        text(format_args!("{}.{:02}", n * 31 % 10_000, n % 100)),
        text(["new", "paid", "shipped", "done"][n % 4]),
        text(format_args!("2026-01-{:02} 12:{:02}:{:02}.5+00", 1 + n % 28, n % 60, n * 7 % 60)),
    ]
}

fn wide() -> Vec<Column> {
    columns(&[
        ("id", INT8, -1),
        ("c01", INT4, -1),
        ("c02", INT4, -1),
        ("c03", INT8, -1),
        ("c04", INT8, -1),
        ("c05", INT2, -1),
        ("c06", BOOL, -1),
        ("c07", BOOL, -1),
        ("c08", NUMERIC, digits(12, 2)),
        ("c09", NUMERIC, digits(20, 6)),
        ("c10", NUMERIC, -1),
        ("c11", FLOAT4, -1),
        ("c12", FLOAT8, -1),
        ("c13", DATE, -1),
        ("c14", TIMESTAMP, -1),
        ("c15", TIMESTAMPTZ, -1),
        ("c16", TIME, -1),
        ("c17", UUID, -1),
        ("c18", JSONB, -1),
        ("c19", TEXT, -1),
        ("c20", TEXT, -1),
        ("c21", TEXT, -1),
        ("c22", TEXT, -1),
        ("c23", VARCHAR, 104),
        ("c24", VARCHAR, 54),
        ("c25", BPCHAR, 14),
        ("c26", BYTEA, -1),
        ("c27", INET, -1),
        ("c28", INT4_ARRAY, -1),
        ("c29", TEXT, -1),
    ])
}

fn wide_row(n: usize) -> Vec<Cell> {
    let (two, day) = (n % 60, 1 + n % 28);
    let mut cells: Vec<Cell> =
        [1_000_000 + n, n % 1000, n % 777, n * 100_000, n * 12_345, n % 100].map(text).into();
    cells.extend(["t", "f"].map(text));
    cells.extend(
        [
            format!("{}.{:02}", n % 10_000, n % 100),
            format!("{}.123456", n % 10_000),
            format!("{}.{}", n % 1000, n % 10),
            format!("{}.25", n % 1000),
            format!("{}.142857142857", n % 1000),
            format!("2026-01-{day:02}"),
            format!("2026-01-{day:02} 12:30:{two:02}.5"),
            format!("2026-01-{day:02} 12:30:{two:02}.5+00"),
            format!("12:30:{two:02}"),
            format!("c4ca4238-a0b9-2382-0dcc-{n:012x}"),
            format!(
                "{{\"a\": {n}, \"b\": \"c4ca4238a0b923820dcc509a6f75849b\", \"c\": [1, 2, 3]}}"
            ),
            format!("{}{n}", "x".repeat(40)),
            format!("{}{n}", "y".repeat(60)),
            format!("c4ca4238a0b923820dcc{n:012x}"),
            format!("c4ca4238a0b923820dcd{n:012x}"),
            format!("name {n}"),
            "short".to_owned(),
            format!("ch{two:02}      "),
            format!("\\xc4ca4238a0b923820dcc{n:012x}"),
            format!("10.0.{two}.{day}"),
            format!("{{{},{},{}}}", n % 1000, two, day),
        ]
        .map(Cell::Text),
    );
    cells.push(if n.is_multiple_of(5) { Cell::Null } else { text("z".repeat(100)) });
    cells
}

fn large() -> Vec<Column> {
    columns(&[("id", INT8, -1), ("n", INT4, -1), ("body", TEXT, -1)])
}

fn large_row(n: usize, pieces: usize) -> Vec<Cell> {
    let mut body = String::new();
    for piece in 0..pieces {
        write!(body, "{:032x}", n * pieces + piece).unwrap();
    }
    vec![text(n), text(n % 7), Cell::Text(body)]
}

/// The same row with the large value left out.
fn unchanged(n: usize) -> Vec<Cell> {
    vec![text(n), text(n % 7), Cell::Unchanged]
}

fn every_mode() -> Vec<Column> {
    let mut all = wide();
    all.extend(
        columns(&[("", 0, 0), ("c30", INTERVAL, -1), ("c31", MONEY, -1)]).into_iter().skip(1),
    );
    all
}

fn every_mode_row(n: usize) -> Vec<Cell> {
    let mut cells = wide_row(n);
    cells.push(text(format_args!("{} mons {} days 04:{:02}:06.5", n % 12, n % 28, n % 60)));
    cells.push(text(format_args!("${}.{:02}", n % 1000, n % 100)));
    cells
}

/// The frames of a connection that sends so many rows.
pub(crate) fn frames(workload: Workload, rows: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut position = 0x1_0000_0000_u64;
    for first in (0..rows).step_by(TRANSACTION_ROWS) {
        let commit = position + 0x10_0000;
        frames
            .push(frame(position, &[b"B", &commit.to_be_bytes(), &TIME_OF_ALL, &[0, 0, 2, 0xc5]]));
        if first == 0 {
            frames.push(frame(0, &[&relation(workload)]));
        }
        for n in first..rows.min(first + TRANSACTION_ROWS) {
            position += 80;
            frames.push(frame(position, &[&change((workload.row)(n))]));
        }
        position = commit + 48;
        let (at, end) = (commit.to_be_bytes(), position.to_be_bytes());
        frames.push(frame(position, &[b"C", &[0], &at, &end, &TIME_OF_ALL]));
    }
    frames
}

/// Microseconds since 2000-01-01.
const TIME_OF_ALL: [u8; 8] = 820_000_000_000_000_u64.to_be_bytes();
const RELATION: u32 = 16_500;

fn frame(position: u64, message: &[&[u8]]) -> Vec<u8> {
    let at = position.to_be_bytes();
    let mut frame = [b"w", &at[..], &at, &TIME_OF_ALL].concat();
    message.iter().for_each(|part| frame.extend_from_slice(part));
    frame
}

fn count(count: usize) -> [u8; 2] {
    u16::try_from(count).unwrap().to_be_bytes()
}

fn relation(workload: Workload) -> Vec<u8> {
    let columns = (workload.columns)();
    let mut message =
        [b"R", &RELATION.to_be_bytes()[..], b"public\0t\0", &[workload.identity]].concat();
    message.extend(count(columns.len()));
    for (identity, name, oid, modifier) in columns {
        message.push(u8::from(identity || workload.identity == b'f'));
        message.extend_from_slice(name.as_bytes());
        message.push(0);
        message.extend(oid.to_be_bytes());
        message.extend(modifier.to_be_bytes());
    }
    message
}

fn change((tag, old, new): Row) -> Vec<u8> {
    let mut message = vec![tag];
    message.extend(RELATION.to_be_bytes());
    if let Some((kind, cells)) = old {
        tuple(kind, &cells, &mut message);
    }
    if tag != b'D' {
        tuple(b'N', &new, &mut message);
    }
    message
}

fn tuple(kind: u8, cells: &[Cell], message: &mut Vec<u8>) {
    message.push(kind);
    message.extend(count(cells.len()));
    for cell in cells {
        match cell {
            Cell::Null => message.push(b'n'),
            Cell::Unchanged => message.push(b'u'),
            Cell::Text(text) => {
                message.push(b't');
                message.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
                message.extend_from_slice(text.as_bytes());
            }
        }
    }
}

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Avro,
    Json,
}

struct Outside;

impl Services for Outside {
    async fn schema_id(&mut self, _: &str, _: Side, _: &str) -> Result<u32, Fault> {
        Ok(1)
    }

    async fn topic(&mut self, _: &str) -> Result<TopicFacts, Fault> {
        Ok(TopicFacts {
            partitions: 1,
            cleanup_policy: Some(CleanupPolicy::Delete),
            max_message_bytes: Some(1 << 20),
            created: false,
        })
    }
}

fn connector(written: Written, settings: &[(&str, &str)]) -> TypedConnector {
    let converter = match written {
        Written::Avro => "AvroConverter",
        Written::Json => "JsonConverter",
    };
    let config: ConnectorConfig = [
        ("name", "c"),
        ("connector.class", "io.debezium.connector.postgresql.PostgresConnector"),
        ("topic.prefix", "p"),
        ("database.hostname", "db"),
        ("database.user", "u"),
        ("database.password", "p"),
        ("database.dbname", "d"),
        ("key.converter", converter),
        ("value.converter", converter),
        ("key.converter.schema.registry.url", "http://registry"),
        ("value.converter.schema.registry.url", "http://registry"),
        ("key.converter.schemas.enable", "false"),
        ("value.converter.schemas.enable", "false"),
    ]
    .into_iter()
    .chain(settings.iter().copied())
    .filter(|(key, _)| !key.contains("registry") || written == Written::Avro)
    .filter(|(key, _)| !key.contains("enable") || written == Written::Json)
    .map(|(key, value)| (key.to_owned(), Some(value.to_owned())))
    .collect();
    let environment: Environment = Arc::new(|_name| None);
    let worker = WorkerConfig::parse("bootstrap.servers=localhost:9092\n", &environment);
    TypedConnector::parse(&config, &worker.unwrap()).unwrap()
}

/// What came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) records: usize,
    pub(crate) bytes: usize,
}

/// The frames by the reads that bring them.
pub(crate) fn reads(frames: &[Vec<u8>]) -> impl Iterator<Item = &[Vec<u8>]> {
    let mut bytes = 0;
    frames.chunk_by(move |frame, _| {
        bytes += frame.len();
        let goes_on = bytes < READ_BYTES;
        bytes *= usize::from(goes_on);
        goes_on
    })
}

/// The whole path from frames to hand-over. Batches come back as the publisher gives them back.
#[inline(never)]
pub(crate) fn run(workload: Workload, written: Written, frames: &[Vec<u8>]) -> Outcome {
    let connector = connector(written, workload.settings);
    let SourceSettings::Postgres(source) = connector.source.clone();
    let settings = StageSettings {
        source: connector.source.block(&connector.plan.topic_prefix),
        plan: Arc::new(connector.plan),
        converters: Converters {
            key: connector.key.converter,
            value: connector.value.converter,
            headers: connector.headers,
        },
        control_topic: None,
        stage_bytes: connector.stage_bytes,
        hand_over_bytes: 256 << 10,
        sizes: SizeLimits::new(&connector.kafka),
        metrics: Arc::default(),
    };
    let (sender, mut receiver) = channel(1 << 30);
    let stage = Stage::new(settings, Outside, TopicList::new(), sender);
    let mut outcome = Outcome::default();
    let take = || {
        while let Received::Staged(staged) = receiver.recv_timeout(Duration::ZERO) {
            if let Staged::Records { batch, .. } = staged {
                outcome.records += batch.records().len();
                outcome.bytes += batch.byte_len();
                receiver.recycle(batch);
            }
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(replay(Arc::new(*source), stage, reads(frames), take)).unwrap();
    outcome
}

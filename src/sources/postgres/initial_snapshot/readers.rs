//! Several connections that read the tables of one exported snapshot side by side.
//!
//! Cuts large tables into ranges of blocks, hands them to the connections one after another, and
//! passes on what they read in batches of rows. Knows no record format. **Invariants:** all
//! connections see the same snapshot; a row is in exactly one range; what waits to be published is
//! bounded by the number of connections.

use std::collections::VecDeque;
use std::iter;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::Instrument as _;

use crate::change::Cell;
use crate::error::{Code, Fault};
use crate::sources::postgres::ConnectionSettings;
use crate::sources::postgres::relations::RelationDescriptor;
use crate::sources::postgres::snapshot::{Blocks, SnapshotRow, SnapshotSession, SnapshotTable};
use crate::sources::postgres::unsent;

/// A batch is passed on when it has so many bytes.
const BATCH_BYTES: usize = 128 * 1024;
/// Batches that wait, for each connection.
const BATCHES: usize = 2;
/// Ranges of a large table for each connection: the last ones end at about the same time.
const RANGES: u64 = 4;
/// A range has at least so many blocks.
const MIN_BLOCKS: u64 = 1024;

/// A table that is to be read.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) oid: u32,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    pub(super) is_partitioned: bool,
    pub(super) predicate: Option<String>,
    /// A query of its rows, instead of the whole table.
    pub(super) query: Option<String>,
    pub(super) limit: Option<u64>,
    /// By which a fault of the server's is placed.
    pub(super) described: RelationDescriptor,
    /// How many blocks it has about, if it can be read in ranges of them.
    pub(super) blocks: Option<u64>,
}

impl Source {
    fn table<'a>(&'a self, columns: &'a [&'a str], blocks: Option<Blocks>) -> SnapshotTable<'a> {
        SnapshotTable {
            oid: self.oid,
            namespace: &self.namespace,
            name: &self.name,
            columns,
            is_partitioned: self.is_partitioned,
            predicate: self.predicate.as_deref(),
            query: self.query.as_deref(),
            blocks,
            limit: self.limit,
        }
    }

    /// The ranges in which so many connections read it.
    fn ranges(&self, connections: usize) -> Vec<Option<Blocks>> {
        let whole = vec![None];
        let Some(blocks) = self.blocks.filter(|_| connections > 1) else { return whole };
        let size = (blocks / (connections as u64 * RANGES)).max(MIN_BLOCKS);
        let count = blocks / size;
        if count < 2 {
            return whole;
        }
        // the last one has no end: the table may have grown
        let range = |number: u64| Blocks {
            first: number * size,
            end: (number + 1 < count).then_some((number + 1) * size),
        };
        (0..count).map(|number| Some(range(number))).collect()
    }
}

/// Something of the table of this number.
#[derive(Debug)]
pub(super) enum Piece {
    /// A range of it begins to be read.
    Begun(usize),
    /// Rows; at least one.
    Rows(usize, Batch),
    /// A range of it is read.
    Ended(usize),
}

/// Rows of one table, one behind the other.
#[derive(Debug)]
pub(super) struct Batch {
    columns: usize,
    bytes: Vec<u8>,
    cells: Vec<Cell>,
    /// Where each row's bytes begin.
    starts: Vec<usize>,
}

impl Batch {
    fn new(columns: usize) -> Self {
        Self { columns, bytes: Vec::new(), cells: Vec::new(), starts: Vec::new() }
    }

    fn push(&mut self, row: SnapshotRow<'_>) {
        self.starts.push(self.bytes.len());
        self.bytes.extend_from_slice(row.bytes);
        self.cells.extend_from_slice(row.cells);
    }

    fn is_full(&self) -> bool {
        self.bytes.len() + self.cells.len() * size_of::<Cell>() >= BATCH_BYTES
    }

    /// How many rows there are.
    pub(super) const fn len(&self) -> usize {
        self.starts.len()
    }

    /// The bytes of a row and its cells, which point into them.
    pub(super) fn row(&self, number: usize) -> Option<(&[u8], &[Cell])> {
        let start = *self.starts.get(number)?;
        let end = self.starts.get(number + 1).copied().unwrap_or(self.bytes.len());
        let cells = self.cells.get(number * self.columns..(number + 1) * self.columns)?;
        Some((self.bytes.get(start..end)?, cells))
    }
}

type Queue = Arc<Mutex<VecDeque<(usize, Option<Blocks>)>>>;

/// See the module. Ends its connections when it is dropped.
#[derive(Debug)]
pub(super) struct Readers {
    tasks: JoinSet<()>,
    pieces: mpsc::Receiver<Result<Piece, Fault>>,
    /// Ranges of each table.
    pub(super) ranges: Vec<usize>,
}

impl Readers {
    /// Begins to read. `first` is a connection that is in the snapshot already; up to
    /// `connections` in all are opened, where there is a name by which others can import it.
    pub(super) fn start(
        settings: &ConnectionSettings,
        first: SnapshotSession,
        exported: Option<&str>,
        connections: usize,
        sources: Vec<Source>,
    ) -> Self {
        let connections = if exported.is_some() { connections.max(1) } else { 1 };
        let mut queue = VecDeque::new();
        let mut ranges = Vec::with_capacity(sources.len());
        for (number, source) in sources.iter().enumerate() {
            let own = source.ranges(connections);
            ranges.push(own.len());
            queue.extend(own.into_iter().map(|range| (number, range)));
        }
        let connections = connections.min(queue.len()).max(1);
        let (sender, pieces) = mpsc::channel(connections * BATCHES);
        let (queue, sources) = (Arc::new(Mutex::new(queue)), Arc::new(sources));
        let mut tasks = JoinSet::new();
        let worker = |session| {
            work(session, Arc::clone(&queue), Arc::clone(&sources), sender.clone())
                .in_current_span()
        };
        tasks.spawn(worker(Joining::There(first)));
        for _ in 1..connections {
            let name = exported.unwrap_or_default().to_owned();
            tasks.spawn(worker(Joining::Import(Box::new(settings.clone()), name)));
        }
        Self { tasks, pieces, ranges }
    }

    /// Waits for what is read next. `None`: that was all.
    ///
    /// # Errors
    /// A table cannot be read, or a connection breaks.
    pub(super) async fn next(&mut self) -> Option<Result<Piece, Fault>> {
        match self.pieces.recv().await {
            Some(piece) => Some(piece),
            // all senders are gone: in good order, or one of them in a panic
            None => match self.tasks.join_next().await? {
                Ok(()) => None,
                Err(broken) => Some(Err(Code::Internal.fault("a reader broke").caused_by(&broken))),
            },
        }
    }
}

enum Joining {
    There(SnapshotSession),
    Import(Box<ConnectionSettings>, String),
}

/// Reads ranges until there are none left, or somebody has lost interest.
async fn work(
    joining: Joining,
    queue: Queue,
    sources: Arc<Vec<Source>>,
    out: mpsc::Sender<Result<Piece, Fault>>,
) {
    if let Err(fault) = read_ranges(joining, &queue, &sources, &out).await {
        drop(out.send(Err(fault)).await);
    }
}

async fn read_ranges(
    joining: Joining,
    queue: &Queue,
    sources: &[Source],
    out: &mpsc::Sender<Result<Piece, Fault>>,
) -> Result<(), Fault> {
    let mut session = match joining {
        Joining::There(session) => session,
        Joining::Import(settings, name) => SnapshotSession::begin(&settings, Some(&name)).await?,
    };
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some((number, range)) = next else { break };
        let Some(source) = sources.get(number) else { break };
        if !read_range(&mut session, (number, source), range, out).await? {
            return Ok(());
        }
    }
    session.finish().await
}

/// False: nobody wants the rows any more.
async fn read_range(
    session: &mut SnapshotSession,
    (number, source): (usize, &Source),
    range: Option<Blocks>,
    out: &mpsc::Sender<Result<Piece, Fault>>,
) -> Result<bool, Fault> {
    let columns: Vec<&str> = source.columns.iter().map(String::as_str).collect();
    let table = source.table(&columns, range);
    let placed = |fault| unsent::place(fault, Some(&source.described), iter::empty());
    let mut reader = session.read_table(&table).await.map_err(placed)?;
    if out.send(Ok(Piece::Begun(number))).await.is_err() {
        return Ok(false);
    }
    let mut batch = Batch::new(columns.len());
    while let Some(row) = reader.next_row().await.map_err(placed)? {
        batch.push(row);
        if batch.is_full() {
            let full = std::mem::replace(&mut batch, Batch::new(columns.len()));
            if out.send(Ok(Piece::Rows(number, full))).await.is_err() {
                return Ok(false);
            }
        }
    }
    if batch.len() > 0 && out.send(Ok(Piece::Rows(number, batch))).await.is_err() {
        return Ok(false);
    }
    Ok(out.send(Ok(Piece::Ended(number))).await.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::postgres::wire::{RelationId, ReplicaIdentity};

    #[track_caller]
    fn check_ranges(
        blocks: Option<u64>,
        connections: usize,
        expect: &[Option<(u64, Option<u64>)>],
    ) {
        let source = Source {
            oid: 1,
            namespace: "s".to_owned(),
            name: "t".to_owned(),
            columns: Vec::new(),
            is_partitioned: false,
            predicate: None,
            query: None,
            limit: None,
            described: RelationDescriptor {
                oid: RelationId(1),
                namespace: "s".to_owned(),
                name: "t".to_owned(),
                replica_identity: ReplicaIdentity::Default,
                columns: Vec::new(),
            },
            blocks,
        };
        let ranges = source.ranges(connections);
        let found: Vec<_> =
            ranges.iter().map(|range| range.map(|blocks| (blocks.first, blocks.end))).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn large_tables_are_cut_without_gaps_and_the_last_range_is_open() {
        check_ranges(None, 4, &[None]);
        check_ranges(Some(1_000_000), 1, &[None]);
        check_ranges(Some(0), 4, &[None]);
        check_ranges(Some(2047), 4, &[None]);
        check_ranges(Some(2048), 4, &[Some((0, Some(1024))), Some((1024, None))]);
        check_ranges(
            Some(16_000),
            1 + 1,
            &[
                Some((0, Some(2000))),
                Some((2000, Some(4000))),
                Some((4000, Some(6000))),
                Some((6000, Some(8000))),
                Some((8000, Some(10_000))),
                Some((10_000, Some(12_000))),
                Some((12_000, Some(14_000))),
                Some((14_000, None)),
            ],
        );
    }

    #[test]
    fn rows_of_a_batch_come_back_one_by_one() {
        let mut batch = Batch::new(2);
        let cells = [Cell::Raw { start: 0, len: 1 }, Cell::Null];
        batch.push(SnapshotRow { bytes: b"a", cells: &cells });
        batch.push(SnapshotRow { bytes: b"", cells: &[Cell::Null, Cell::Null] });
        batch.push(SnapshotRow { bytes: b"xyz", cells: &cells });
        let bytes: Vec<_> = (0..3).map(|number| batch.row(number).expect("there").0).collect();
        assert_eq!(bytes, [&b"a"[..], b"", b"xyz"]);
        assert_eq!(batch.row(2).expect("there").1, cells);
        assert_eq!(batch.row(3), None);
    }
}

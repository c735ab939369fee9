//! One chunk of a table, read on a connection of its own, in a snapshot of its own.
//!
//! ```text
//! BEGIN REPEATABLE READ → LOCK TABLE … NOWAIT → snapshot and fence → definition → range → COPY → COMMIT
//! ```
//!
//! The lock comes before the snapshot (manual, `LOCK`): so the definition that the snapshot shows
//! is the one by which rows are read, and what emptied or rewrote the table before is seen. It is
//! the lock of any SELECT. Decides nothing about the stream. **Invariants:** nothing is written;
//! a table that somebody alters is not waited for; rows are the text that the stream would send.

mod key_order;

use std::sync::Arc;
use std::time::Duration;

use self::key_order::{KeyOrder, list};
use super::placement::Window;
use super::work::{At, Cursor, TableWork};
use crate::change::Cell;
use crate::error::{Code, Fault};
use crate::sources::postgres::Settings;
use crate::sources::postgres::catalogue::{TableFacts, fetch_tables};
use crate::sources::postgres::connection::{Connection, Purpose, Row, identifier, literal};
use crate::sources::postgres::snapshot::{RowBuffer, Visibility};
use crate::sources::postgres::wire::Lsn;

/// How long the first look may take: the stream stands still meanwhile.
const LOOK_LIMIT: Duration = Duration::from_secs(10);
/// Rows of a block of which nothing is known.
const ROWS_PER_BLOCK: f64 = 50.0;
/// The transactions of other databases.
const ABROAD: &str = "\
    SELECT l.transactionid::text::int8 FROM pg_catalog.pg_locks l \
    JOIN pg_catalog.pg_stat_activity a USING (pid) \
    WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted \
    AND a.datname <> pg_catalog.current_database()";
/// The longest header of a page of the log (`SizeOfXLogLongPHD`, `xlog_internal.h`).
const PAGE_HEADER: u64 = 40;

/// What a chunk's transaction sees, before a row is read.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    /// Which transactions it sees.
    pub(super) window: Window,
    /// The table's definition, as text that is another one if it is another definition.
    pub(super) stamp: String,
    /// The table's number.
    pub(super) oid: u32,
}

/// What is to be read.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// The table.
    pub(super) facts: Arc<TableFacts>,
    /// How far it is read.
    pub(super) work: TableWork,
    /// The columns, in the order of the stream.
    pub(super) columns: Vec<String>,
    /// Which rows, as SQL.
    pub(super) choice: Choice,
    /// About so many rows.
    pub(super) rows: u64,
}

/// Which rows of a range are published, as SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Those of which all of these are true.
    Rows(Vec<String>),
    /// Those on which two filters differ; `None`: everything is in.
    Moved {
        /// The earlier filter.
        before: Option<String>,
        /// The filter of now.
        now: Option<String>,
    },
    /// All of them, with their side of this filter; `None`: everything is in.
    Sides(Option<String>),
}

/// The rows of a chunk.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    bytes: Vec<u8>,
    cells: Vec<Cell>,
    /// Where each row ends in `bytes` and in `cells`, and whether it is in.
    ends: Vec<(usize, usize, bool)>,
    /// Rows that were looked at.
    pub(super) scanned: u64,
    /// Where the next chunk begins; `None`: the table is through.
    pub(super) then: Option<Cursor>,
}

/// A row of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkRow<'a> {
    /// What the cells point into.
    pub(super) bytes: &'a [u8],
    /// In the order of the columns.
    pub(super) cells: &'a [Cell],
    /// The filter of now lets it through.
    pub(super) is_in: bool,
}

impl Chunk {
    /// The rows, in no particular order.
    pub(super) fn rows(&self) -> impl Iterator<Item = ChunkRow<'_>> {
        let mut start = (0, 0);
        self.ends.iter().map(move |(bytes, cells, is_in)| {
            let row = ChunkRow {
                bytes: self.bytes.get(start.0..*bytes).unwrap_or_default(),
                cells: self.cells.get(start.1..*cells).unwrap_or_default(),
                is_in: *is_in,
            };
            start = (*bytes, *cells);
            row
        })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Their bytes.
    pub(super) fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    fn push(&mut self, bytes: &[u8], cells: &[Cell], is_in: bool) {
        self.bytes.extend_from_slice(bytes);
        self.cells.extend_from_slice(cells);
        self.ends.push((self.bytes.len(), self.cells.len(), is_in));
    }
}

/// A part of a table.
#[derive(Debug, PartialEq, Eq)]
struct Range {
    /// The relation, as SQL.
    from: String,
    /// Which of its rows, as SQL; `None`: all.
    within: Option<String>,
    scanned: Option<u64>,
    then: Option<Cursor>,
}

/// The connection on which chunks are read.
#[derive(Debug)]
pub(super) struct Reader {
    settings: Arc<Settings>,
    connection: Option<Connection>,
    /// A transaction was begun on it.
    is_open: bool,
    /// How the table's key is ordered.
    order: KeyOrder,
    /// See [`key_order::SIGNATURE`].
    signature: String,
    rows: RowBuffer,
}

impl Reader {
    /// Connects when it is first used.
    pub(super) fn new(settings: Arc<Settings>) -> Self {
        Self {
            settings,
            connection: None,
            is_open: false,
            order: KeyOrder::None,
            signature: String::new(),
            rows: RowBuffer::default(),
        }
    }

    /// Whether there is a connection, as far as is known.
    pub(super) const fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Opens the connection.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub(super) async fn open(&mut self) -> Result<(), Fault> {
        self.connect().await.map(drop)
    }

    /// Begins a chunk's transaction.
    ///
    /// # Errors
    /// `SNAPSHOT-STALE`: somebody alters the table; `TABLE-MISSING`: it is gone; or the server
    /// cannot be asked, or refuses.
    pub(super) async fn look(&mut self, work: &TableWork) -> Result<Sight, Fault> {
        let looked = tokio::time::timeout(LOOK_LIMIT, self.begin(work)).await;
        let outcome = looked.unwrap_or_else(|elapsed| {
            self.connection = None;
            Err(Code::SourceUnreachable.fault("a chunk cannot be begun").caused_by(&elapsed))
        });
        if outcome.is_err() {
            self.end().await;
        }
        outcome.map_err(|fault| named(&fault).at_table(work.qualified_name()))
    }

    async fn begin(&mut self, work: &TableWork) -> Result<Sight, Fault> {
        self.connect().await?;
        self.is_open = true;
        let connection = self.connect().await?;
        let rows = connection.query("taking a chunk's snapshot", &look_statement(work)).await?;
        let [sight, table] = rows.as_slice() else {
            return Err(Code::TableMissing.fault("the table is gone"));
        };
        let text = sight.text(0)?;
        let seen = Visibility::parse(text).ok_or_else(|| {
            Code::ProtocolUnexpected.fault(format!("the server describes a snapshot as \"{text}\""))
        })?;
        let fence = fence(sight.parse_as(1)?, sight.parse_as(2)?);
        let (oid, stamp) = (table.parse_as(0)?, table.text(1)?.to_owned());
        self.order = KeyOrder::read(table.optional(2)?)?;
        table.optional(3)?.unwrap_or_default().clone_into(&mut self.signature);
        Ok(Sight { window: Window { seen, fence }, oid, stamp })
    }

    async fn connect(&mut self) -> Result<&mut Connection, Fault> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.settings.connection, Purpose::Snapshot).await?,
        };
        Ok(self.connection.insert(connection))
    }

    /// The definition of the table, as the chunk's transaction sees it.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub(super) async fn facts(&mut self, oid: u32) -> Result<TableFacts, Fault> {
        let connection = self.connect().await?;
        let facts = fetch_tables(connection, &[oid]).await?.into_iter().next();
        facts.ok_or_else(|| Code::TableMissing.fault("the table is gone"))
    }

    /// Where the server's log ends: what the stream has shown by there was done before.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub(super) async fn position(&mut self) -> Result<Lsn, Fault> {
        let connection = self.connect().await?;
        let sql = "SELECT pg_catalog.pg_current_wal_insert_lsn(), \
                   pg_catalog.current_setting('wal_block_size')";
        let rows = connection.query("looking for the end of the log", sql).await?;
        let row = rows.first().ok_or_else(|| Code::ProtocolUnexpected.fault("no answer"))?;
        Ok(fence(row.parse_as(0)?, row.parse_as(1)?))
    }

    /// Which of these transactions belong to sessions that are certainly not committing, or to other
    /// databases, of which the stream shows nothing. The latter every role can see (`pg_locks`).
    ///
    /// A commit waits for nothing of this kind between its record and its being seen
    /// (`CommitTransaction`, xact.c).
    ///
    /// # Errors
    /// The server cannot be asked.
    pub(super) async fn elsewhere(&mut self, ids: &[u64]) -> Result<Vec<u64>, Fault> {
        let sql = format!(
            "SELECT backend_xid::text::int8 FROM pg_catalog.pg_stat_activity \
             WHERE backend_xid IS NOT NULL AND (state LIKE 'idle in transaction%' \
             OR (state = 'active' AND (wait_event_type IN ('Lock', 'Client', 'Timeout') \
             OR wait_event LIKE 'DataFile%' OR wait_event LIKE 'BufFile%'))) UNION {ABROAD}"
        );
        self.among(ids, &sql).await
    }

    /// Which of these transactions belong to other databases.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub(super) async fn abroad(&mut self, ids: &[u64]) -> Result<Vec<u64>, Fault> {
        self.among(ids, ABROAD).await
    }

    /// Those of the ids that a statement finds.
    async fn among(&mut self, ids: &[u64], sql: &str) -> Result<Vec<u64>, Fault> {
        let connection = self.connect().await?;
        let rows = connection.query("looking at open transactions", sql).await?;
        let found = rows.iter().map(|row| row.parse_as(0)).collect::<Result<Vec<u32>, _>>()?;
        // what is shown there has 32 bits
        let is_found = |id: &&u64| found.iter().any(|xid| u64::from(*xid) == **id & 0xffff_ffff);
        Ok(ids.iter().filter(is_found).copied().collect())
    }

    /// Reads the rows, and ends the transaction.
    ///
    /// # Errors
    /// The server refuses, or the connection breaks.
    pub(super) async fn read(&mut self, wanted: &Wanted) -> Result<Chunk, Fault> {
        let outcome = self.read_range(wanted).await;
        self.end().await;
        outcome.map_err(|fault| named(&fault).at_table(wanted.work.qualified_name()))
    }

    async fn read_range(&mut self, wanted: &Wanted) -> Result<Chunk, Fault> {
        let Some(range) = self.range(wanted).await? else { return Ok(Chunk::default()) };
        let statement = copy_statement(wanted, &range);
        let mut chunk = Chunk { then: range.then, ..Chunk::default() };
        let has_side = matches!(wanted.choice, Choice::Moved { .. } | Choice::Sides(_));
        let columns = wanted.columns.len() + usize::from(has_side);
        self.connect().await?;
        let Self { connection: Some(connection), rows, .. } = self else { return Ok(chunk) };
        let mut copy = connection.copy_out("reading a chunk", &statement).await?;
        while let Some(line) = copy.next().await? {
            let row = rows.read(line, columns).ok_or_else(|| {
                Code::ProtocolUnexpected.fault("a row of a chunk is not of the expected form")
            })?;
            let (cells, is_in) = match row.cells.split_first() {
                Some((side, cells)) if has_side => (cells, is_true(row.bytes, *side)),
                _ => (row.cells, true),
            };
            chunk.push(row.bytes, cells, is_in);
        }
        chunk.scanned = range.scanned.unwrap_or(chunk.len() as u64);
        Ok(chunk)
    }

    /// Ends the transaction; a connection that does not answer is given up.
    pub(super) async fn end(&mut self) {
        let is_open = std::mem::take(&mut self.is_open);
        let Some(connection) = self.connection.as_mut().filter(|_| is_open) else { return };
        let ending = connection.query("ending a chunk's transaction", "ROLLBACK");
        if !matches!(tokio::time::timeout(LOOK_LIMIT, ending).await, Ok(Ok(_))) {
            self.connection = None;
        }
    }

    /// The next range. `None`: there are no more rows.
    async fn range(&mut self, wanted: &Wanted) -> Result<Option<Range>, Fault> {
        let Wanted { facts, work, rows, .. } = wanted;
        let cursor = work.cursor.as_ref().filter(|cursor| cursor.oid == facts.oid);
        match key(facts).filter(|columns| self.order.is_of(columns)) {
            Some(columns) => {
                let known = cursor.and_then(|cursor| match &cursor.at {
                    // in another order what follows is not what was not read yet
                    At::Key { columns: own, order, after, last }
                        if own == columns && (order.is_empty() || *order == self.signature) =>
                    {
                        Some((after.clone(), last.clone()))
                    }
                    At::Key { .. } | At::Blocks { .. } => None,
                });
                self.key_range(facts, columns, known, *rows).await
            }
            None => {
                let known = cursor.and_then(|cursor| match &cursor.at {
                    At::Blocks { leaf, file, next, end } => Some((*leaf, *file, *next, *end)),
                    At::Key { .. } => None,
                });
                self.block_range(facts, known, *rows).await
            }
        }
    }

    async fn key_range(
        &mut self,
        facts: &TableFacts,
        columns: &[String],
        known: Option<(Option<Vec<String>>, Vec<String>)>,
        rows: u64,
    ) -> Result<Option<Range>, Fault> {
        let order = std::mem::take(&mut self.order);
        let connection = self.connect().await?;
        let from = relation(facts);
        let texts = |row: &Row| -> Result<Vec<String>, Fault> {
            (0..columns.len()).map(|index| row.text(index).map(str::to_owned)).collect()
        };
        let (after, last) = match known {
            Some(known) => known,
            None => {
                let sql = order.last_statement(&from, columns);
                let found = connection.query("looking for a table's last key", &sql).await?;
                let Some(row) = found.first() else { return Ok(None) };
                (None, texts(row)?)
            }
        };
        let rest = order.condition(columns, after.as_deref(), &last);
        let sql = order.boundary_statement(&from, columns, &rest, rows);
        let found = connection.query("looking for a chunk's last key", &sql).await?;
        let Some(row) = found.first() else { return Ok(None) };
        let upto = texts(row)?;
        let scanned: u64 = row.parse_as(columns.len())?;
        let within = Some(order.condition(columns, after.as_deref(), &upto));
        let then = (scanned >= rows && upto != last).then(|| Cursor {
            oid: facts.oid,
            at: At::Key {
                columns: columns.to_vec(),
                order: self.signature.clone(),
                after: Some(upto),
                last,
            },
        });
        Ok(Some(Range { from, within, scanned: Some(scanned), then }))
    }

    async fn block_range(
        &mut self,
        facts: &TableFacts,
        known: Option<(u32, u32, u64, u64)>,
        rows: u64,
    ) -> Result<Option<Range>, Fault> {
        let connection = self.connect().await?;
        let first = known.map_or(0, |(leaf, ..)| leaf);
        let found = connection.query("looking for a table's blocks", &leaves(facts, first)).await?;
        let leaves = found.iter().map(Leaf::read).collect::<Result<Vec<_>, _>>()?;
        Ok(next_blocks(facts.oid, &leaves, known, rows))
    }
}

/// A relation with rows.
#[derive(Debug)]
struct Leaf {
    oid: u32,
    name: String,
    file: u32,
    blocks: u64,
    rows_per_block: f64,
}

impl Leaf {
    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            oid: row.parse_as(0)?,
            name: row.text(1)?.to_owned(),
            file: row.optional_as(2)?.unwrap_or(0),
            blocks: row.parse_as(3)?,
            rows_per_block: row.parse_as(4)?,
        })
    }

    /// About so many blocks have so many rows.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an estimate of a positive number"
    )]
    fn blocks_of(&self, rows: u64) -> u64 {
        let density = if self.rows_per_block >= 1.0 { self.rows_per_block } else { ROWS_PER_BLOCK };
        ((rows as f64 / density) as u64).max(1)
    }
}

/// The next blocks of the first leaf that has some. `known`: leaf, file, next block, end.
fn next_blocks(
    oid: u32,
    leaves: &[Leaf],
    known: Option<(u32, u32, u64, u64)>,
    rows: u64,
) -> Option<Range> {
    for (place, leaf) in leaves.iter().enumerate() {
        let (next, end) = match known {
            Some((own, file, next, end)) if (own, file) == (leaf.oid, leaf.file) => (next, end),
            _ => (0, leaf.blocks),
        };
        if next >= end {
            continue;
        }
        let upto = end.min(next.saturating_add(leaf.blocks_of(rows)));
        let at = |leaf: &Leaf, next, end| At::Blocks { leaf: leaf.oid, file: leaf.file, next, end };
        let at = if upto < end {
            Some(at(leaf, upto, end))
        } else {
            leaves.get(place + 1).map(|leaf| at(leaf, 0, leaf.blocks))
        };
        return Some(Range {
            from: format!("ONLY {}", leaf.name),
            within: Some(format!("ctid >= '({next},0)'::tid AND ctid < '({upto},0)'::tid")),
            scanned: None,
            then: at.map(|at| Cursor { oid, at }),
        });
    }
    None
}

/// The columns by which a table's rows can be told; `None`: there are none.
pub(super) fn key(facts: &TableFacts) -> Option<&[String]> {
    let key = facts.primary_key.as_ref().or(facts.identity_index.as_ref())?;
    Some(key.columns.as_slice()).filter(|columns| !columns.is_empty())
}

/// The end of the log as a position that a stream which has read everything reaches. Where the next
/// record would begin a page, the server names the place behind the page's header.
fn fence(end: Lsn, page: u64) -> Lsn {
    match end.0.checked_rem(page) {
        Some(inside) if inside <= PAGE_HEADER => Lsn(end.0 - inside),
        _ => end,
    }
}

fn look_statement(work: &TableWork) -> String {
    let table = format!("{}.{}", identifier(&work.namespace), identifier(&work.name));
    // The snapshot is the first statement's that needs one; the fence is read right behind it.
    format!(
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY, NOT DEFERRABLE; \
         LOCK TABLE {table} IN ACCESS SHARE MODE NOWAIT; \
         SELECT pg_catalog.pg_current_snapshot()::text, pg_catalog.pg_current_wal_insert_lsn(), \
         pg_catalog.current_setting('wal_block_size'); \
         SELECT c.oid, concat_ws('|', c.oid, c.relreplident, \
         (SELECT string_agg(concat_ws(',', a.attnum, quote_ident(a.attname), a.atttypid, \
             a.atttypmod, a.attgenerated, a.attnotnull), ';' ORDER BY a.attnum) \
          FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), \
         (SELECT string_agg(concat_ws(',', i.indexrelid, i.indkey, i.indisprimary, i.indisreplident), \
             ';' ORDER BY i.indexrelid) \
          FROM pg_index i WHERE i.indrelid = c.oid AND (i.indisprimary OR i.indisreplident))), \
         {}, {} FROM pg_class c WHERE c.oid = {}::regclass",
        key_order::QUERY,
        key_order::SIGNATURE,
        literal(&table)
    )
}

fn leaves(facts: &TableFacts, first: u32) -> String {
    let oid = facts.oid;
    let relations = if facts.is_partitioned {
        format!("SELECT t.relid FROM pg_partition_tree({oid}) t WHERE t.isleaf")
    } else {
        format!("SELECT {oid}::oid")
    };
    format!(
        "SELECT c.oid, format('%I.%I', n.nspname, c.relname), pg_relation_filenode(c.oid), \
         pg_relation_size(c.oid) / current_setting('block_size')::int8, \
         greatest(c.reltuples, 0)::float8 / greatest(c.relpages, 1) \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind = 'r' AND c.oid >= {first} AND c.oid IN ({relations}) ORDER BY c.oid"
    )
}

fn relation(facts: &TableFacts) -> String {
    let only = if facts.is_partitioned { "" } else { "ONLY " };
    format!("{only}{}.{}", identifier(&facts.namespace), identifier(&facts.name))
}

fn copy_statement(wanted: &Wanted, range: &Range) -> String {
    let columns = list(&wanted.columns, identifier);
    let truth = |filter: &Option<String>| {
        filter.as_ref().map_or_else(|| "TRUE".to_owned(), |sql| format!("(({sql}) IS TRUE)"))
    };
    let with_side = |now: &Option<String>| {
        let comma = if columns.is_empty() { "" } else { ", " };
        format!("{}{comma}{columns}", truth(now))
    };
    let mut conditions: Vec<String> =
        range.within.iter().map(|within| format!("({within})")).collect();
    let selected = match &wanted.choice {
        Choice::Rows(all) => {
            conditions.extend(all.iter().map(|sql| format!("({sql})")));
            columns.clone()
        }
        Choice::Moved { before, now } => {
            conditions.push(format!("{} <> {}", truth(before), truth(now)));
            with_side(now)
        }
        Choice::Sides(now) => with_side(now),
    };
    let filter = if conditions.is_empty() {
        String::new()
    } else {
        format!(" WHERE {}", conditions.join(" AND "))
    };
    format!("COPY (SELECT {selected} FROM {}{filter}) TO STDOUT", range.from)
}

fn is_true(bytes: &[u8], cell: Cell) -> bool {
    match cell {
        Cell::Raw { start, .. } => bytes.get(start as usize) == Some(&b't'),
        Cell::Null | Cell::Unavailable => false,
    }
}

/// Names the faults that mean that the table is another one than before.
fn named(fault: &Fault) -> Fault {
    let state = |state: &str| fault.message().contains(&format!("SQLSTATE {state}"));
    // a lock that is not to be had is among what passes by itself
    if !matches!(fault.code(), Code::SourceQuery | Code::SourceUnreachable) {
        return fault.clone();
    }
    match () {
        // lock not available, undefined column (altered meanwhile), a cancelled statement
        () if ["55P03", "42703", "57014"].into_iter().any(state) => {
            Code::SnapshotStale.fault(fault.message())
        }
        // undefined table or schema
        () if ["42P01", "3F000"].into_iter().any(state) => {
            Code::TableMissing.fault("the table is gone")
        }
        () => fault.clone(),
    }
}

#[cfg(test)]
mod tests;

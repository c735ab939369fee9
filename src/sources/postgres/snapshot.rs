//! Reads whole tables as of one position, as the cells of rows.
//!
//! Imports an exported snapshot into a read-only transaction and streams each table through
//! `COPY … TO STDOUT`, un-escaped into one reused buffer. Knows no types: a cell is the same text
//! that the stream would send. Notation: manual, `COPY`, "Text Format".
//! **Invariants:** a row costs no allocation; a table that was rewritten after the snapshot's
//! position, which would read as empty, is noticed and never read.

use tokio::io::{AsyncRead, AsyncWrite};

use super::ConnectionSettings;
use super::connection::{Connection, CopyOut, Purpose, Socket, identifier, literal};
use crate::change::Cell;
use crate::error::{Code, Fault};

/// A table to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotTable<'a> {
    /// `pg_class.oid`.
    pub oid: u32,
    /// Its schema.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The columns that are wanted, in this order.
    pub columns: &'a [&'a str],
    /// A partitioned table is read with its partitions; any other without what inherits from it.
    pub is_partitioned: bool,
    /// Only rows of which this is true, as SQL.
    pub predicate: Option<&'a str>,
    /// The rows of this query, instead of the table's.
    pub query: Option<&'a str>,
    /// Only rows in these blocks.
    pub blocks: Option<Blocks>,
    /// Not more rows than these.
    pub limit: Option<u64>,
}

/// A range of a table's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// The first one.
    pub first: u64,
    /// The one behind the last; `None`: up to the table's end.
    pub end: Option<u64>,
}

impl Blocks {
    fn condition(self) -> String {
        let end = self.end.map(|end| format!(" AND ctid < '({end},0)'::pg_catalog.tid"));
        format!("ctid >= '({},0)'::pg_catalog.tid{}", self.first, end.unwrap_or_default())
    }
}

impl SnapshotTable<'_> {
    fn qualified(&self) -> String {
        format!("{}.{}", identifier(self.namespace), identifier(self.name))
    }

    fn copy_statement(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(|name| identifier(name)).collect();
        let only = if self.is_partitioned { "" } else { "ONLY " };
        let limit = self.limit.map(|limit| format!(" LIMIT {limit}")).unwrap_or_default();
        let rows = match self.query {
            Some(query) => format!("({query}) AS {}", identifier(self.name)),
            None => format!("{only}{}", self.qualified()),
        };
        let blocks = self.blocks.filter(|_| self.query.is_none()).map(Blocks::condition);
        let filter = match (self.predicate, blocks) {
            (None, None) => String::new(),
            (Some(sql), None) => format!(" WHERE {sql}"),
            (None, Some(blocks)) => format!(" WHERE {blocks}"),
            (Some(sql), Some(blocks)) => format!(" WHERE ({sql}) AND {blocks}"),
        };
        let columns = columns.join(", ");
        format!("COPY (SELECT {columns} FROM {rows}{filter}{limit}) TO STDOUT")
    }

    fn place(&self) -> String {
        format!("{}.{}", self.namespace, self.name)
    }
}

/// One row, valid until the next is asked for.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotRow<'a> {
    /// What the cells point into.
    pub bytes: &'a [u8],
    /// In the order of the columns that were asked for.
    pub cells: &'a [Cell],
}

/// A transaction that sees the database as of one position.
#[derive(Debug)]
pub struct SnapshotSession<S = Socket> {
    connection: Connection<S>,
    rows: RowBuffer,
}

impl SnapshotSession {
    /// Opens a connection and begins the transaction. `snapshot` is the exported name; `None` takes
    /// a snapshot of its own.
    ///
    /// # Errors
    /// `SNAPSHOT-STALE`: the snapshot is gone with its exporter; or the server cannot be reached.
    pub async fn begin(
        settings: &ConnectionSettings,
        snapshot: Option<&str>,
    ) -> Result<Self, Fault> {
        let connection = Connection::open(settings, Purpose::Snapshot).await?;
        Self::begin_on(connection, snapshot).await
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> SnapshotSession<S> {
    async fn begin_on(
        mut connection: Connection<S>,
        snapshot: Option<&str>,
    ) -> Result<Self, Fault> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY, NOT DEFERRABLE";
        connection.query("beginning the snapshot", begin).await?;
        // Without an import the first query takes the snapshot.
        let import = match snapshot {
            Some(name) => format!("SET TRANSACTION SNAPSHOT {}", literal(name)),
            None => "SELECT pg_catalog.pg_current_snapshot()".to_owned(),
        };
        connection.query("taking the snapshot", &import).await.map_err(stale)?;
        Ok(Self { connection, rows: RowBuffer::default() })
    }

    /// The connection inside the transaction, for questions to the catalogue as of the snapshot.
    pub fn connection(&mut self) -> &mut Connection<S> {
        &mut self.connection
    }

    /// Which transactions the snapshot sees (`pg_current_snapshot()`).
    ///
    /// # Errors
    /// The connection breaks, or the server is older than version 13.
    pub async fn visibility(&mut self) -> Result<Visibility, Fault> {
        let sql = "SELECT pg_catalog.pg_current_snapshot()::text";
        let row = self.connection.query_one("reading the snapshot's transactions", sql).await?;
        let text = row.text(0)?;
        Visibility::parse(text).ok_or_else(|| {
            Code::ProtocolUnexpected.fault(format!("the server describes a snapshot as \"{text}\""))
        })
    }

    /// Starts to read a table.
    ///
    /// # Errors
    /// `SNAPSHOT-STALE`: the table was rewritten, altered or dropped after the snapshot;
    /// `REPLICATION-PERMISSION`: it may not be read, or not all of its rows.
    pub async fn read_table(
        &mut self,
        table: &SnapshotTable<'_>,
    ) -> Result<TableReader<'_, S>, Fault> {
        let place = table.place();
        self.check_not_rewritten(table).await.map_err(|fault| fault.at_table(place.clone()))?;
        let what = format!("reading the table \"{place}\"");
        let copy = self
            .connection
            .copy_out(&what, &table.copy_statement())
            .await
            .map_err(|fault| stale(fault).at_table(place.clone()))?;
        Ok(TableReader { copy, rows: &mut self.rows, columns: table.columns.len(), table: place })
    }

    /// `ALTER TABLE` in its rewriting forms and `TRUNCATE` put a new file in the place of the old,
    /// whose rows an older snapshot does not see: the table would read as empty (manual, "Caveats"
    /// of concurrency control). The transaction's own view of `pg_class` still has the old file.
    /// `VACUUM FULL` and `CLUSTER` look the same and are not told apart.
    async fn check_not_rewritten(&mut self, table: &SnapshotTable<'_>) -> Result<(), Fault> {
        let only = if table.is_partitioned { "" } else { "ONLY " };
        // The lock, which every later alteration waits for, comes first.
        let sql = format!(
            "LOCK TABLE {only}{} IN ACCESS SHARE MODE; \
             SELECT t.oid::pg_catalog.regclass::text FROM ({}) t(oid) \
             JOIN pg_catalog.pg_class c ON c.oid = t.oid \
             WHERE c.relkind = 'r' \
             AND c.relfilenode IS DISTINCT FROM pg_catalog.pg_relation_filenode(c.oid)",
            table.qualified(),
            if table.is_partitioned {
                format!("SELECT relid::oid FROM pg_catalog.pg_partition_tree({})", table.oid)
            } else {
                format!("SELECT {}::oid", table.oid)
            }
        );
        let rows =
            self.connection.query("locking the table for reading", &sql).await.map_err(stale)?;
        match rows.first() {
            None => Ok(()),
            Some(row) => Err(Code::SnapshotStale.fault(format!(
                "the table {} was rewritten or emptied after the snapshot's position",
                row.text(0)?
            ))),
        }
    }

    /// Ends the transaction and closes the connection.
    ///
    /// # Errors
    /// The connection breaks.
    pub async fn finish(mut self) -> Result<(), Fault> {
        self.connection.query("ending the snapshot", "COMMIT").await?;
        self.connection.close().await;
        Ok(())
    }
}

/// Names the faults that mean that the database moved on under the snapshot.
fn stale(fault: Fault) -> Fault {
    // undefined snapshot (22023 up to version 16, 42704 later), column, table, schema
    let states = ["22023", "42704", "42703", "42P01", "3F000"];
    let is_stale = fault.code() == Code::SourceQuery
        && states.iter().any(|state| fault.message().contains(&format!("SQLSTATE {state}")));
    if is_stale { Code::SnapshotStale.fault(fault.message()) } else { fault }
}

/// The transactions that a snapshot sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visibility {
    /// Every transaction before this one had ended.
    pub xmin: u64,
    /// This one and all later ones had not begun to write.
    pub xmax: u64,
    /// Between the two, those that were under way.
    pub in_progress: Vec<u64>,
}

impl Visibility {
    /// Reads `xmin:xmax:xip,…`; the numbers have 64 bits, the upper half counts wraparounds.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let mut number = || parts.next()?.parse().ok();
        let (xmin, xmax) = (number()?, number()?);
        let list = parts.next()?;
        let in_progress = list
            .split(',')
            .filter(|word| !word.is_empty())
            .map(|word| word.parse().ok())
            .collect::<Option<_>>()?;
        Some(Self { xmin, xmax, in_progress })
    }

    /// Whether the snapshot sees what a transaction of the stream did. The stream's number has 32
    /// bits; it is taken for the one that is nearest to the snapshot.
    pub fn sees(&self, xid: u32) -> bool {
        let full = self.widen(xid);
        full < self.xmin || (full < self.xmax && !self.in_progress.contains(&full))
    }

    pub(super) fn widen(&self, xid: u32) -> u64 {
        let epoch = self.xmax & !u64::from(u32::MAX);
        let same = epoch | u64::from(xid);
        let half = 1_u64 << 31;
        if same > self.xmax.saturating_add(half) {
            same.saturating_sub(1 << 32)
        } else if same.saturating_add(half) < self.xmax {
            same.saturating_add(1 << 32)
        } else {
            same
        }
    }
}

/// A table that is being read.
#[derive(Debug)]
pub struct TableReader<'s, S = Socket> {
    copy: CopyOut<'s, S>,
    rows: &'s mut RowBuffer,
    columns: usize,
    table: String,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TableReader<'_, S> {
    /// Waits for the next row. `None`: that was the table.
    ///
    /// # Errors
    /// The server reports an error, the connection breaks, or a row is not of the expected form.
    pub async fn next_row(&mut self) -> Result<Option<SnapshotRow<'_>>, Fault> {
        let line = match self.copy.next().await {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(None),
            Err(fault) => return Err(stale(fault).at_table(self.table.clone())),
        };
        match self.rows.read(line, self.columns) {
            Some(row) => Ok(Some(row)),
            None => Err(Code::ProtocolUnexpected
                .fault(format!("a row is not of {} columns in COPY's text form", self.columns))
                .at_table(self.table.clone())),
        }
    }
}

/// The cells of one row, and its text where escapes had to be undone.
#[derive(Debug, Default)]
pub(super) struct RowBuffer {
    cells: Vec<Cell>,
    text: Vec<u8>,
}

impl RowBuffer {
    /// Splits a line of COPY's text form. `None`: it is not of that form, or has another number of
    /// columns.
    pub(super) fn read<'a>(
        &'a mut self,
        line: &'a [u8],
        columns: usize,
    ) -> Option<SnapshotRow<'a>> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        self.cells.clear();
        let bytes = if line.contains(&b'\\') {
            self.unescape(line)?;
            &self.text
        } else {
            self.split(line)?;
            line
        };
        // A row of no columns is an empty line, like a row of one empty text.
        if columns == 0 && bytes.is_empty() {
            self.cells.clear();
        }
        (self.cells.len() == columns).then_some(SnapshotRow { bytes, cells: &self.cells })
    }

    /// A line without escapes has no NULL either; its cells lie in it as they are.
    fn split(&mut self, line: &[u8]) -> Option<()> {
        let mut start = 0;
        for cell in line.split(|byte| *byte == b'\t') {
            self.cells.push(raw(start, cell.len())?);
            start += cell.len() + 1;
        }
        Some(())
    }

    fn unescape(&mut self, line: &[u8]) -> Option<()> {
        self.text.clear();
        for cell in line.split(|byte| *byte == b'\t') {
            if cell == b"\\N" {
                self.cells.push(Cell::Null);
                continue;
            }
            let start = self.text.len();
            let mut rest = cell;
            while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
                let (plain, escaped) = rest.split_at_checked(at)?;
                self.text.extend_from_slice(plain);
                let (_, escaped) = escaped.split_first()?;
                let (letter, after) = escaped.split_first()?;
                self.text.push(meaning(*letter)?);
                rest = after;
            }
            self.text.extend_from_slice(rest);
            self.cells.push(raw(start, self.text.len() - start)?);
        }
        Some(())
    }
}

fn raw(start: usize, len: usize) -> Option<Cell> {
    Some(Cell::Raw { start: u32::try_from(start).ok()?, len: u32::try_from(len).ok()? })
}

/// The escapes that the server writes (`CopyAttributeOutText`, copyto.c).
const fn meaning(letter: u8) -> Option<u8> {
    Some(match letter {
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'\\' => b'\\',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(row: SnapshotRow<'_>) -> Vec<Option<Vec<u8>>> {
        let image =
            crate::change::RowImage { bytes: row.bytes, before: None, after: None, reread: &[] };
        row.cells.iter().map(|cell| image.raw(*cell).map(<[u8]>::to_vec)).collect()
    }

    #[track_caller]
    fn check(line: &[u8], columns: usize, expect: Option<&[Option<&[u8]>]>) {
        let mut buffer = RowBuffer::default();
        let found = buffer.read(line, columns).map(cells);
        let expect: Option<Vec<Option<Vec<u8>>>> =
            expect.map(|cells| cells.iter().map(|cell| cell.map(<[u8]>::to_vec)).collect());
        assert_eq!(found, expect, "{:?}", line.escape_ascii().to_string());
    }

    #[test]
    fn lines_become_cells() {
        check(b"1\tabc\n", 2, Some(&[Some(b"1"), Some(b"abc")]));
        check(b"1\t\\N\n", 2, Some(&[Some(b"1"), None]));
        check(b"\t\n", 2, Some(&[Some(b""), Some(b"")]));
        check(b"\n", 1, Some(&[Some(b"")]));
        check(b"\n", 0, Some(&[]));
        check(b"\\N\n", 1, Some(&[None]));
        check(b"\\\\N\t\\\\.\n", 2, Some(&[Some(b"\\N"), Some(b"\\.")]));
        check(
            b"a\\tb\\nc\\\\\t\\b\\f\\r\\v\n",
            2,
            Some(&[Some(b"a\tb\nc\\"), Some(b"\x08\x0c\r\x0b")]),
        );
    }

    #[test]
    fn lines_of_another_form_are_refused() {
        check(b"1\t2\n", 1, None);
        check(b"1\n", 2, None);
        check(b"1\n", 0, None);
        check(b"\\\n", 1, None);
        check(b"\\x41\n", 1, None);
        check(b"a\\Nb\n", 1, None);
    }

    /// As the server writes it.
    fn escape(cells: &[Option<Vec<u8>>]) -> Vec<u8> {
        let mut line = Vec::new();
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                line.push(b'\t');
            }
            match cell {
                None => line.extend(b"\\N"),
                Some(bytes) => {
                    for byte in bytes {
                        let letter = b"bfnrtv\\".iter().find(|l| meaning(**l) == Some(*byte));
                        match letter {
                            Some(letter) => line.extend([b'\\', *letter]),
                            None => line.push(*byte),
                        }
                    }
                }
            }
        }
        line.push(b'\n');
        line
    }

    proptest::proptest! {
        #[test]
        fn what_the_server_escapes_comes_back(
            cells_in in proptest::collection::vec(
                proptest::option::of(proptest::collection::vec(1_u8..=255, 0..12)), 1..6)
        ) {
            let mut buffer = RowBuffer::default();
            let line = escape(&cells_in);
            let found = buffer.read(&line, cells_in.len()).map(cells);
            assert_eq!(found, Some(cells_in));
        }

        #[test]
        fn no_line_panics(line in proptest::collection::vec(proptest::num::u8::ANY, 0..40)) {
            let mut buffer = RowBuffer::default();
            for columns in 0..4 {
                drop(buffer.read(&line, columns).map(cells));
            }
        }
    }

    #[test]
    fn partitioned_tables_are_read_with_their_partitions_and_others_alone() {
        let mut table = SnapshotTable {
            oid: 1,
            namespace: "s",
            name: "T\"x",
            columns: &["a", "b c"],
            is_partitioned: false,
            predicate: None,
            query: None,
            blocks: None,
            limit: None,
        };
        assert_eq!(
            table.copy_statement(),
            r#"COPY (SELECT "a", "b c" FROM ONLY "s"."T""x") TO STDOUT"#
        );
        table.is_partitioned = true;
        assert_eq!(table.copy_statement(), r#"COPY (SELECT "a", "b c" FROM "s"."T""x") TO STDOUT"#);
        table.is_partitioned = false;
        table.predicate = Some("a > 1 OR a IS NULL");
        table.blocks = Some(Blocks { first: 8, end: Some(16) });
        assert_eq!(
            table.copy_statement(),
            r#"COPY (SELECT "a", "b c" FROM ONLY "s"."T""x" WHERE (a > 1 OR a IS NULL) AND ctid >= '(8,0)'::pg_catalog.tid AND ctid < '(16,0)'::pg_catalog.tid) TO STDOUT"#
        );
        table.predicate = None;
        table.query = Some("SELECT * FROM s.old");
        assert_eq!(
            table.copy_statement(),
            r#"COPY (SELECT "a", "b c" FROM (SELECT * FROM s.old) AS "T""x") TO STDOUT"#
        );
    }

    #[test]
    fn a_snapshot_sees_what_had_ended() {
        let seen = Visibility::parse("100:105:101,103").expect("well-formed");
        for (xid, expect) in [
            (99, true),
            (100, true),
            (101, false),
            (102, true),
            (103, false),
            (104, true),
            (105, false),
        ] {
            assert_eq!(seen.sees(xid), expect, "{xid}");
        }
        assert_eq!(Visibility::parse("1:2"), None);
        assert_eq!(Visibility::parse("1:x:"), None);
        assert!(Visibility::parse("7:7:").expect("well-formed").in_progress.is_empty());
    }

    #[test]
    fn numbers_of_the_stream_are_taken_for_the_nearest() {
        let wrap = 3_u64 << 32;
        let text = format!("{}:{}:", wrap + 10, wrap + 10);
        let seen = Visibility::parse(&text).expect("well-formed");
        assert!(seen.sees(9) && seen.sees(u32::MAX - 5));
        assert!(!seen.sees(10) && !seen.sees(1 << 30));
        let text = format!("{}:{}:", wrap - 10, wrap - 10);
        let seen = Visibility::parse(&text).expect("well-formed");
        assert!(!seen.sees(5) && seen.sees(u32::MAX - 20));
    }
}

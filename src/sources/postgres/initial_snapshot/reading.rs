//! Rows of the snapshot → records, in the order in which they are read.
//!
//! Holds the last row of each table until it is known what follows it. **Invariant:** the first row
//! of all, of each table, the last of each table and of all are marked as that, however many
//! connections read; that a table is read is said with its last row, or behind it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::readers::{Batch, Piece, Readers};
use crate::error::Fault;
use crate::observe::{ChunkProgress, Gauge, SourceMetrics, TableProgress};
use crate::sources::postgres::catalogue::TableFacts;
use crate::sources::postgres::decode::RowChange;
use crate::sources::postgres::event_fields::SnapshotMarker;
use crate::sources::postgres::incremental::{FIRST, Work};
use crate::sources::postgres::publishing::Publishing;
use crate::sources::postgres::status::clock_micros;
use crate::sources::postgres::tables::Place;
use crate::sources::postgres::wire::{Lsn, RelationId};
use crate::stage::{OffsetRecord, Services};

/// Between two words on how far it is.
const TOLD: Duration = Duration::from_secs(10);

/// A table that is being read.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) relation: RelationId,
    /// The index of its description.
    pub(super) index: usize,
    pub(super) estimate: Option<u64>,
    rows: u64,
    counted: Arc<Gauge>,
    /// Ranges that are still to be read.
    open: usize,
    /// A batch of which all but the last row is published.
    held: Option<Batch>,
}

pub(super) struct Reading<'a, S> {
    pub(super) publishing: Publishing<'a, S>,
    /// Where it is noted which tables are read.
    pub(super) work: &'a mut Work,
    /// That is to be stored with the rows that are complete next.
    pub(super) is_unsaved: bool,
    pub(super) position: Lsn,
    /// The offset that batches of the snapshot carry.
    pub(super) record: OffsetRecord,
    /// How many rows were published.
    pub(super) ordinal: u64,
    pub(super) stop: watch::Receiver<bool>,
    pub(super) metrics: &'a SourceMetrics,
    pub(super) tables: Vec<Table>,
    /// The table that was read through last, and its last row.
    pub(super) last: Option<(usize, Batch)>,
}

impl<S: Services> Reading<'_, S> {
    /// Describes a table and opens it, so that its baseline is out even if it has no rows.
    pub(super) async fn announce(
        &mut self,
        facts: TableFacts,
        generated: bool,
    ) -> Result<usize, Fault> {
        let place = Place { commit: self.position, sequence: 0 };
        let publishing = &mut self.publishing;
        publishing.tables.set_time(clock_micros());
        let table = publishing.tables.describe_snapshot(facts, generated, place).await?;
        publishing.tables.open(table.index, publishing.stage).await?;
        Ok(table.index)
    }

    /// Publishes all that is read; false: told to stop.
    pub(super) async fn follow(&mut self, mut readers: Readers) -> Result<bool, Fault> {
        for (table, ranges) in self.tables.iter_mut().zip(&readers.ranges) {
            table.open = *ranges;
        }
        self.publishing.now_micros = clock_micros();
        self.publishing.fields.set_time(self.publishing.now_micros);
        let began = Instant::now();
        let mut tell = tokio::time::interval_at(began + TOLD, TOLD);
        loop {
            let piece = tokio::select! {
                piece = readers.next() => piece,
                _ = tell.tick() => {
                    self.tell(began);
                    continue;
                }
            };
            match piece.transpose()? {
                None => break,
                Some(Piece::Begun(number)) => self.begun(number),
                Some(Piece::Rows(number, batch)) => self.rows(number, batch).await?,
                Some(Piece::Ended(number)) => self.ended(number).await?,
            }
            if *self.stop.borrow() {
                return Ok(false);
            }
        }
        if let Some((number, batch)) = self.last.take() {
            self.emit_last(number, &batch, Follows::Nothing).await?;
            self.is_through(number);
        }
        self.commit().await?;
        self.publishing.stage.hand_over().await?;
        Ok(true)
    }

    fn begun(&mut self, number: usize) {
        let Some(table) = self.tables.get(number) else { return };
        self.metrics.incremental.update(|progress| {
            let Some(one) = progress.tables.get_mut(number) else { return };
            if one.state == "waiting" {
                tracing::info!(table = table.name, rows = table.estimate, "reading");
                one.state = "running";
            }
        });
    }

    async fn rows(&mut self, number: usize, batch: Batch) -> Result<(), Fault> {
        if let Some((other, last)) = self.last.take() {
            self.emit_last(other, &last, Follows::OtherTable).await?;
            self.is_through(other);
        }
        if let Some(held) = self.tables.get_mut(number).and_then(|table| table.held.take()) {
            self.emit_last(number, &held, Follows::SameTable).await?;
        }
        for row in 0..batch.len().saturating_sub(1) {
            self.emit(number, (&batch, row), Follows::SameTable).await?;
        }
        if let Some(table) = self.tables.get_mut(number) {
            table.held = Some(batch);
        }
        Ok(())
    }

    async fn ended(&mut self, number: usize) -> Result<(), Fault> {
        let Some(table) = self.tables.get_mut(number) else { return Ok(()) };
        table.open = table.open.saturating_sub(1);
        if table.open > 0 {
            return Ok(());
        }
        let held = table.held.take();
        // the one that is held is published with the next one, or as the last of all
        let rows = table.rows + u64::from(held.is_some());
        tracing::info!(table = table.name, rows, "read");
        self.metrics.snapshot.end_table();
        self.metrics.incremental.update(|progress| {
            if let Some(one) = progress.tables.get_mut(number) {
                (one.state, one.rows, one.scanned) = ("completed", rows, rows);
                one.seconds_left = None;
            }
        });
        let Some(held) = held else {
            self.is_through(number);
            return Ok(());
        };
        if let Some((other, last)) = self.last.replace((number, held)) {
            self.emit_last(other, &last, Follows::OtherTable).await?;
            self.is_through(other);
        }
        Ok(())
    }

    /// All rows of a table are written.
    fn is_through(&mut self, number: usize) {
        let Some(table) = self.tables.get(number) else { return };
        self.is_unsaved |= self.work.note_read(table.relation.0, &table.name, table.rows);
    }

    async fn emit_last(
        &mut self,
        table: usize,
        batch: &Batch,
        follows: Follows,
    ) -> Result<(), Fault> {
        self.emit(table, (batch, batch.len().saturating_sub(1)), follows).await
    }

    async fn emit(
        &mut self,
        number: usize,
        (batch, row): (&Batch, usize),
        follows: Follows,
    ) -> Result<(), Fault> {
        let (Some((bytes, cells)), Some(table)) = (batch.row(row), self.tables.get_mut(number))
        else {
            return Ok(());
        };
        self.ordinal += 1;
        table.rows += 1;
        table.counted.set(table.rows.cast_signed());
        let marker = marker(self.ordinal, table.rows, follows);
        let place = (self.position, self.ordinal);
        let change = RowChange::read((table.relation, table.index), bytes, cells, place);
        // What the server has let through is judged once more, in the same words.
        self.publishing.tables.confirm(&change)?;
        self.publishing.write(&change, 0, marker).await?;
        if self.publishing.stage.is_full() {
            self.commit().await?;
            self.publishing.now_micros = clock_micros();
            self.publishing.fields.set_time(self.publishing.now_micros);
        }
        Ok(())
    }

    /// Rows of a snapshot are complete one by one.
    async fn commit(&mut self) -> Result<(), Fault> {
        let stage = &mut self.publishing.stage;
        if std::mem::take(&mut self.is_unsaved) && self.work.is_first() {
            stage.accompany(self.work.state()?);
        }
        stage.commit(self.record.clone(), self.record.clone(), None).await?;
        stage.hand_over().await
    }

    /// Says how far it is.
    fn tell(&self, began: Instant) {
        let rows: u64 = self.tables.iter().map(|table| table.rows).sum();
        let read = self.tables.iter().filter(|table| table.open == 0).count();
        let rate = rows / began.elapsed().as_secs().max(1);
        let rest = |table: &Table| match table.open {
            0 => Some(0),
            _ => Some(table.estimate?.saturating_sub(table.rows)),
        };
        let seconds = |rest: u64| rest.div_ceil(rate.max(1));
        let left = self.tables.iter().map(rest).sum::<Option<u64>>().map(seconds);
        tracing::info!(
            tables_read = read,
            tables = self.tables.len(),
            rows,
            rows_per_second = rate,
            seconds_left = left,
            "the snapshot is under way"
        );
        self.metrics.incremental.update(|progress| {
            for (one, table) in progress.tables.iter_mut().zip(&self.tables) {
                if one.state == "running" {
                    (one.rows, one.scanned) = (table.rows, table.rows);
                    one.seconds_left = rest(table).map(seconds);
                }
            }
        });
    }
}

impl Table {
    pub(super) fn new(facts: &TableFacts, index: usize, metrics: &SourceMetrics) -> Self {
        let name = facts.qualified_name();
        let counted = metrics.snapshot.begin_table(&name);
        Self {
            counted,
            name,
            relation: RelationId(facts.oid),
            index,
            estimate: facts.estimated_rows,
            rows: 0,
            open: 0,
            held: None,
        }
    }
}

/// Shows the tables before they are read, and those that are read otherwise, or are read already.
pub(super) fn show(metrics: &SourceMetrics, tables: &[Table], others: Vec<TableProgress>) {
    if tables.is_empty() {
        metrics.snapshot.begin(clock_micros());
    }
    for other in others.iter().filter(|other| !other.is_open()) {
        metrics.snapshot.begin_table(&other.table).set(other.rows.cast_signed());
    }
    let left = others.iter().filter(|other| other.is_open()).count();
    metrics.snapshot.set_counts(tables.len() + others.len(), tables.len() + left);
    metrics.incremental.begin(FIRST);
    metrics.incremental.update(|progress: &mut ChunkProgress| {
        progress.tables = tables
            .iter()
            .map(|table| TableProgress {
                table: table.name.clone(),
                state: "waiting",
                estimate: table.estimate,
                ..TableProgress::default()
            })
            .chain(others)
            .collect();
    });
}

/// What comes after a row of the snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follows {
    SameTable,
    OtherTable,
    Nothing,
}

/// Of a row by its number, and that in its table, from one on.
const fn marker(ordinal: u64, in_table: u64, follows: Follows) -> SnapshotMarker {
    let (is_first, is_first_of_table) = (ordinal == 1, in_table == 1);
    match follows {
        Follows::Nothing => SnapshotMarker::Last,
        Follows::OtherTable if is_first && is_first_of_table => SnapshotMarker::First,
        Follows::OtherTable => SnapshotMarker::LastInTable,
        Follows::SameTable if is_first => SnapshotMarker::First,
        Follows::SameTable if is_first_of_table => SnapshotMarker::FirstInTable,
        Follows::SameTable => SnapshotMarker::Within,
    }
}

//! The first start: a slot, a snapshot that begins exactly where the slot does, its rows.
//!
//! Rows take the same way as streamed ones, through the same table versions. Knows no record
//! format. **Invariants:** the intent is in Kafka before the slot is created, so that a slot found
//! after a crash is known as ours; a crash in the snapshot is answered by beginning again.

use std::iter;
use std::sync::Arc;

use tokio::sync::watch;

use super::Settings;
use super::capture::{self, Selection};
use super::catalogue::{self, TableFacts};
use super::connection::{Connection, CreatedSlot};
use super::decode::RowChange;
use super::driver::combine;
use super::event_fields::SnapshotMarker;
use super::offset::{Offset, Phase};
use super::publishing::Publishing;
use super::settings::SnapshotMode;
use super::slot::{self, SlotFacts};
use super::snapshot::{SnapshotSession, SnapshotTable};
use super::status::clock_micros;
use super::tables::{Place, Tables};
use super::unsent;
use super::wire::{Lsn, RelationId};
use crate::change::Cell;
use crate::error::Fault;
use crate::observe::SnapshotMetrics;
use crate::stage::{OffsetRecord, Services, Stage};

/// What the first start works with.
pub(super) struct SnapshotTask<'a, S> {
    pub(super) settings: &'a Arc<Settings>,
    pub(super) stage: &'a mut Stage<S>,
    pub(super) tables: &'a mut Tables,
    pub(super) template: &'a Offset,
    /// Stored generated columns are published.
    pub(super) generated: bool,
    /// Where the slot of an interrupted snapshot of ours begins.
    pub(super) began_at: Option<Lsn>,
    pub(super) stop: watch::Receiver<bool>,
    pub(super) metrics: &'a SnapshotMetrics,
}

/// Makes the slot, takes the snapshot if one is wanted, and says where the stream begins; `None`:
/// no stream is wanted, or the source was told to stop.
///
/// # Errors
/// Anything on the way; an attempt that follows begins again.
pub(super) async fn run<S: Services>(
    mut task: SnapshotTask<'_, S>,
    connection: &mut Connection,
    premade: Option<SlotFacts>,
) -> Result<Option<Phase>, Fault> {
    let mode = task.settings.snapshot_mode;
    let owns_slot =
        (premade.is_none() || task.began_at.is_some()) && mode != SnapshotMode::InitialOnly;
    let created = match (&premade, mode) {
        (Some(slot), SnapshotMode::NoData) => {
            slot::check_kind(slot, &task.database())?;
            return task.stream_from(slot.confirmed.unwrap_or(Lsn::ZERO)).await;
        }
        (Some(slot), _) if task.began_at.is_some() => {
            slot::check_kind(slot, &task.database())?;
            tracing::warn!(
                slot = task.settings.slot_name,
                "an earlier snapshot was interrupted; it is repeated, and the stream follows from where that one began"
            );
            task.create_slot(connection, false).await?
        }
        (Some(slot), _) => {
            slot::check_kind(slot, &task.database())?;
            tracing::info!(
                slot = task.settings.slot_name,
                "the replication slot exists; the snapshot is taken through a temporary one"
            );
            task.create_slot(connection, false).await?
        }
        (None, _) => task.create_slot(connection, owns_slot).await?,
    };
    let consistent_point = created.consistent_point;
    if mode == SnapshotMode::NoData {
        return task.stream_from(consistent_point).await;
    }
    let begin = task.began_at.unwrap_or(consistent_point);
    task.store(Phase::Snapshot { consistent_point: begin, owns_slot }).await?;
    let outcome = task.read_tables(&created, owns_slot).await;
    task.metrics.end(matches!(outcome, Ok(true)), clock_micros());
    if !outcome? {
        return Ok(None);
    }
    if premade.is_some() || mode == SnapshotMode::InitialOnly {
        // Left alone, it would keep the server's log until this connection ends.
        connection.drop_slot(&created.name).await?;
    }
    if mode == SnapshotMode::InitialOnly {
        task.store(Phase::SnapshotDone { consistent_point }).await?;
        return Ok(None);
    }
    task.stream_from(begin).await
}

/// A row that waits to learn whether it is the last one.
struct PendingRow {
    table: usize,
    relation: RelationId,
    bytes: Vec<u8>,
    cells: Vec<Cell>,
    ordinal_in_table: u64,
    is_there: bool,
}

impl PendingRow {
    const fn none() -> Self {
        Self {
            table: 0,
            relation: RelationId(0),
            bytes: Vec::new(),
            cells: Vec::new(),
            ordinal_in_table: 0,
            is_there: false,
        }
    }
}

impl<S: Services> SnapshotTask<'_, S> {
    fn database(&self) -> String {
        self.settings.connection.database.clone()
    }

    async fn store(&mut self, phase: Phase) -> Result<(), Fault> {
        let record = self.record(phase);
        self.stage.store(Some(record)).await
    }

    fn record(&self, phase: Phase) -> OffsetRecord {
        OffsetRecord(Arc::from(Offset { phase, ..self.template.clone() }.encode()))
    }

    async fn stream_from(mut self, end: Lsn) -> Result<Option<Phase>, Fault> {
        let phase = Phase::Streaming { end };
        self.store(phase).await?;
        Ok(Some(phase))
    }

    /// `permanent`: the slot that will be streamed from. Otherwise one that lives as long as the
    /// connection.
    async fn create_slot(
        &mut self,
        connection: &mut Connection,
        permanent: bool,
    ) -> Result<CreatedSlot, Fault> {
        if permanent {
            self.store(Phase::Creating).await?;
            let temporary = self.settings.trial.is_some();
            return connection.create_slot(&self.settings.slot_name, temporary).await;
        }
        let name = format!("tidegate_snapshot_{:016x}", self.template.nonce);
        connection.create_slot(&name, true).await
    }

    /// Reads all captured tables; false: told to stop.
    async fn read_tables(&mut self, created: &CreatedSlot, owns_slot: bool) -> Result<bool, Fault> {
        let settings = Arc::clone(self.settings);
        let mut session =
            SnapshotSession::begin(&settings.connection, created.snapshot.as_deref()).await?;
        let facts = self.captured(&mut session).await?;
        let generated = self.generated;
        let position = created.consistent_point;
        let begin = self.began_at.unwrap_or(position);
        let record = self.record(Phase::Snapshot { consistent_point: begin, owns_slot });
        let offset = Offset { phase: Phase::Creating, ..self.template.clone() };
        let mut publishing = Publishing::resume(self.stage, self.tables, offset, position);
        publishing.fields.begin_snapshot(position, None);
        let metrics = self.metrics;
        metrics.begin(clock_micros());
        let mut reading = Reading {
            metrics,
            publishing,
            position,
            record,
            pending: PendingRow::none(),
            ordinal: 0,
            row_limit: settings.trial.as_ref().and_then(|trial| trial.rows),
            stop: self.stop.clone(),
        };
        let mut tables = Vec::with_capacity(facts.len());
        for facts in facts {
            tables.push(reading.announce(facts, generated).await?);
        }
        tables.retain(|(facts, _)| settings.snapshot_reads(&facts.qualified_name()));
        metrics.set_tables(tables.len());
        for (facts, index) in &tables {
            if !reading.table(&mut session, facts, *index).await? {
                return Ok(false);
            }
        }
        reading.finish().await?;
        session.finish().await?;
        Ok(true)
    }

    /// The captured tables in the order of their names, as the snapshot sees them.
    async fn captured(&self, session: &mut SnapshotSession) -> Result<Vec<TableFacts>, Fault> {
        let connection = session.connection();
        let relations = catalogue::list_relations(connection).await?;
        let via_root = self.settings.publish_via_partition_root;
        let selection = capture::select(&relations, &self.settings.tables, via_root)
            .or_else(|faults| combine(&faults).map(|()| Selection::default()))?;
        let oids: Vec<u32> = selection.captured.iter().map(|entry| entry.oid).collect();
        catalogue::fetch_tables(connection, &oids).await
    }
}

struct Reading<'a, S> {
    publishing: Publishing<'a, S>,
    position: Lsn,
    /// The offset that batches of the snapshot carry.
    record: OffsetRecord,
    pending: PendingRow,
    ordinal: u64,
    /// Of each table, not more rows than these.
    row_limit: Option<u64>,
    stop: watch::Receiver<bool>,
    metrics: &'a SnapshotMetrics,
}

impl<S: Services> Reading<'_, S> {
    /// Describes a table and opens it, so that its baseline is out even if it has no rows.
    async fn announce(
        &mut self,
        facts: TableFacts,
        generated: bool,
    ) -> Result<(TableFacts, usize), Fault> {
        let place = Place { commit: self.position, sequence: 0 };
        let publishing = &mut self.publishing;
        let table = publishing.tables.describe_snapshot(facts.clone(), generated, place).await?;
        publishing.tables.open(table.index, publishing.stage).await?;
        Ok((facts, table.index))
    }

    /// Reads one table; false: told to stop.
    async fn table(
        &mut self,
        session: &mut SnapshotSession,
        facts: &TableFacts,
        index: usize,
    ) -> Result<bool, Fault> {
        let names: Vec<String> =
            self.publishing.tables.column_names(index).into_iter().map(str::to_owned).collect();
        let columns: Vec<&str> = names.iter().map(String::as_str).collect();
        let predicate = self.publishing.tables.predicate(index)?;
        let table = SnapshotTable {
            oid: facts.oid,
            namespace: &facts.namespace,
            name: &facts.name,
            columns: &columns,
            is_partitioned: facts.is_partitioned,
            predicate: predicate.as_deref(),
            limit: self.row_limit,
        };
        tracing::info!(table = facts.qualified_name(), rows = facts.estimated_rows, "reading");
        let described = facts.descriptor(true);
        let placed = |fault| unsent::place(fault, Some(&described), iter::empty());
        let mut reader = session.read_table(&table).await.map_err(placed)?;
        self.publishing.now_micros = clock_micros();
        self.publishing.fields.set_time(self.publishing.now_micros);
        let rows = self.metrics.begin_table(&facts.qualified_name());
        let mut ordinal_in_table = 0_u64;
        while let Some(row) = reader.next_row().await.map_err(placed)? {
            let is_first_of_table = ordinal_in_table == 0;
            self.emit(if is_first_of_table { Follows::OtherTable } else { Follows::SameTable })
                .await?;
            ordinal_in_table += 1;
            rows.set(ordinal_in_table.cast_signed());
            let pending = &mut self.pending;
            pending.bytes.clear();
            pending.bytes.extend_from_slice(row.bytes);
            pending.cells.clear();
            pending.cells.extend_from_slice(row.cells);
            pending.table = index;
            pending.relation = RelationId(facts.oid);
            pending.ordinal_in_table = ordinal_in_table;
            pending.is_there = true;
            if *self.stop.borrow() {
                return Ok(false);
            }
        }
        self.metrics.end_table();
        tracing::info!(table = facts.qualified_name(), rows = ordinal_in_table, "read");
        Ok(true)
    }

    async fn finish(&mut self) -> Result<(), Fault> {
        self.emit(Follows::Nothing).await?;
        self.commit().await?;
        self.publishing.stage.hand_over().await
    }

    /// Publishes the row that waits, now that it is known what follows it.
    async fn emit(&mut self, follows: Follows) -> Result<(), Fault> {
        if !std::mem::take(&mut self.pending.is_there) {
            return Ok(());
        }
        self.ordinal += 1;
        let marker = self.marker(follows);
        let Self { publishing, pending, position, ordinal, .. } = self;
        let change = RowChange::read(
            (pending.relation, pending.table),
            &pending.bytes,
            &pending.cells,
            (*position, *ordinal),
        );
        // What the server has let through is judged once more, in the same words.
        publishing.tables.confirm(&change)?;
        publishing.write(&change, 0, marker).await?;
        if publishing.stage.is_full() {
            self.commit().await?;
            self.publishing.now_micros = clock_micros();
            self.publishing.fields.set_time(self.publishing.now_micros);
        }
        Ok(())
    }

    const fn marker(&self, follows: Follows) -> SnapshotMarker {
        let is_first = self.ordinal == 1;
        let is_first_of_table = self.pending.ordinal_in_table == 1;
        match follows {
            Follows::Nothing => SnapshotMarker::Last,
            Follows::OtherTable if is_first && is_first_of_table => SnapshotMarker::First,
            Follows::OtherTable => SnapshotMarker::LastInTable,
            Follows::SameTable if is_first => SnapshotMarker::First,
            Follows::SameTable if is_first_of_table => SnapshotMarker::FirstInTable,
            Follows::SameTable => SnapshotMarker::Within,
        }
    }

    /// Rows of a snapshot are complete one by one.
    async fn commit(&mut self) -> Result<(), Fault> {
        let stage = &mut self.publishing.stage;
        stage.commit(self.record.clone(), self.record.clone(), None).await?;
        stage.hand_over().await
    }
}

/// What comes after a row of the snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follows {
    SameTable,
    OtherTable,
    Nothing,
}

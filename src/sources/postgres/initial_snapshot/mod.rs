//! The first start: a slot, a snapshot that begins exactly where the slot does, its rows.
//!
//! Rows take the same way as streamed ones, through the same table versions. Knows no record
//! format. **Invariants:** the intent is in Kafka before the slot is created, so that a slot found
//! after a crash is known as ours; a crash in the snapshot is answered by beginning again.

mod readers;
mod reading;

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::watch;

use self::readers::{Readers, Source};
use self::reading::{Reading, Table};
use super::Settings;
use super::capture::{self, Selection};
use super::catalogue::{self, TableFacts};
use super::connection::{Connection, CreatedSlot};
use super::driver::{combine, told_to_stop};
use super::incremental::{OLDEST, Work};
use super::offset::{Offset, Phase};
use super::publishing::Publishing;
use super::settings::{SnapshotMode, SnapshotOrder};
use super::slot::{self, SlotFacts};
use super::snapshot::SnapshotSession;
use super::status::clock_micros;
use super::tables::Tables;
use super::wire::Lsn;
use crate::error::Fault;
use crate::observe::SourceMetrics;
use crate::stage::{OffsetRecord, Services, Stage};

/// What the first start works with.
pub(super) struct SnapshotTask<'a, S> {
    pub(super) settings: &'a Arc<Settings>,
    pub(super) stage: &'a mut Stage<S>,
    pub(super) tables: &'a mut Tables,
    /// What is to be read beside the stream, and how the last snapshot ended.
    pub(super) work: &'a mut Work,
    pub(super) template: &'a Offset,
    /// Stored generated columns are published.
    pub(super) generated: bool,
    /// Where a snapshot of ours began that was interrupted: the slot has everything since.
    pub(super) began_at: Option<Lsn>,
    pub(super) stop: watch::Receiver<bool>,
    pub(super) metrics: &'a SourceMetrics,
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
    if mode.reads_rows() && !task.wait().await {
        return Ok(None);
    }
    let has_slot = mode != SnapshotMode::InitialOnly;
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
        (None, _) => task.create_slot(connection, has_slot).await?,
    };
    let Some(created) = created else { return Ok(None) };
    let consistent_point = created.consistent_point;
    if mode == SnapshotMode::NoData {
        return task.stream_from(consistent_point).await;
    }
    let begin = task.began_at.unwrap_or(consistent_point);
    task.store(Phase::Snapshot { consistent_point: begin, has_slot }).await?;
    let outcome = task.read_tables(&created, has_slot).await;
    task.metrics.snapshot.end(matches!(outcome, Ok(true)), clock_micros());
    if !outcome? {
        return Ok(None);
    }
    if let Some(shown) = task.metrics.incremental.progress() {
        task.work.follow_first(&shown);
        task.stage.remember(task.work.state()?);
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

impl<S: Services> SnapshotTask<'_, S> {
    fn database(&self) -> String {
        self.settings.connection.database.clone()
    }

    /// Waits as long as the configuration says; false: told to stop.
    async fn wait(&mut self) -> bool {
        let delay = self.settings.snapshot_delay;
        if delay.is_zero() || self.settings.trial.is_some() {
            return true;
        }
        tracing::info!(seconds = delay.as_secs(), "the snapshot waits (snapshot.delay.ms)");
        tokio::time::timeout(delay, told_to_stop(&mut self.stop)).await.is_err()
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
    /// connection. `None`: told to stop.
    async fn create_slot(
        &mut self,
        connection: &mut Connection,
        permanent: bool,
    ) -> Result<Option<CreatedSlot>, Fault> {
        if permanent {
            self.store(Phase::Creating).await?;
        }
        let Self { settings, template, stop, .. } = self;
        let canceller = connection.canceller();
        let temporary = !permanent || settings.trial.is_some();
        let creating = async {
            let name = &settings.slot_name;
            if !permanent {
                let name = format!("tidegate_snapshot_{:016x}", template.nonce);
                connection.create_slot(&name, true).await
            } else if settings.slot_use.fails_over && !temporary {
                connection.create_failover_slot(name).await
            } else {
                connection.create_slot(name, temporary).await
            }
        };
        tokio::pin!(creating);
        tokio::select! {
            created = &mut creating => return created.map(Some),
            () = told_to_stop(stop) => {}
        }
        // The server waits for every transaction that is open, and would go on with that without us.
        canceller.cancel(&settings.connection).await?;
        Ok(creating.await.ok())
    }

    /// Reads all captured tables; false: told to stop.
    async fn read_tables(&mut self, created: &CreatedSlot, has_slot: bool) -> Result<bool, Fault> {
        let settings = Arc::clone(self.settings);
        let exported = created.snapshot.as_deref();
        let mut session = SnapshotSession::begin(&settings.connection, exported).await?;
        let facts = self.captured(&mut session).await?;
        let threads = self.threads();
        let blocks = blocks(&mut session, &facts, threads).await?;
        let generated = self.generated;
        let position = created.consistent_point;
        let begin = self.began_at.unwrap_or(position);
        let record = self.record(Phase::Snapshot { consistent_point: begin, has_slot });
        let offset = Offset { phase: Phase::Creating, ..self.template.clone() };
        let mut publishing = Publishing::resume(self.stage, self.tables, offset, position);
        publishing.fields.begin_snapshot(position, None);
        let metrics = self.metrics;
        metrics.snapshot.begin(clock_micros());
        let mut reading = Reading {
            metrics,
            publishing,
            position,
            record,
            ordinal: 0,
            stop: self.stop.clone(),
            tables: Vec::new(),
            last: None,
        };
        let mut sources = Vec::new();
        for facts in facts {
            let index = reading.announce(facts.clone(), generated).await?;
            if !settings.snapshot_reads(&facts.qualified_name()) {
                continue;
            }
            let names = reading.publishing.tables.column_names(index);
            sources.push(Source {
                oid: facts.oid,
                columns: names.into_iter().map(str::to_owned).collect(),
                is_partitioned: facts.is_partitioned,
                predicate: reading.publishing.tables.predicate(index)?,
                query: settings.snapshot_query(&facts.qualified_name()).map(str::to_owned),
                limit: settings.trial.as_ref().and_then(|trial| trial.rows),
                described: facts.descriptor(true),
                blocks: blocks.get(&facts.oid).copied(),
                namespace: facts.namespace.clone(),
                name: facts.name.clone(),
            });
            reading.tables.push(Table::new(&facts, index, metrics));
        }
        reading::show(metrics, &reading.tables, self.work.tables());
        let readers = Readers::start(&settings.connection, session, exported, threads, sources);
        reading.follow(readers).await
    }

    /// How many connections read. Few rows of each table are read by one.
    fn threads(&self) -> usize {
        if self.settings.trial.is_some() { 1 } else { self.settings.snapshot_threads }
    }

    /// The captured tables in the order of reading, as the snapshot sees them.
    async fn captured(&self, session: &mut SnapshotSession) -> Result<Vec<TableFacts>, Fault> {
        let connection = session.connection();
        let relations = catalogue::list_relations(connection).await?;
        let via_root = self.settings.publish_via_partition_root;
        let selection = capture::select(&relations, &self.settings.tables, via_root)
            .or_else(|faults| combine(&faults).map(|()| Selection::default()))?;
        let oids: Vec<u32> = selection.captured.iter().map(|entry| entry.oid).collect();
        let mut facts = catalogue::fetch_tables(connection, &oids).await?;
        match self.settings.snapshot_order {
            SnapshotOrder::Names => {}
            SnapshotOrder::SmallestFirst => facts.sort_by_key(|table| table.estimated_rows),
            SnapshotOrder::LargestFirst => {
                facts.sort_by_key(|table| std::cmp::Reverse(table.estimated_rows));
            }
        }
        Ok(facts)
    }
}

/// How many blocks tables have that can be read in ranges of them: those with rows of their own,
/// where the server finds a range without reading what lies before it.
async fn blocks(
    session: &mut SnapshotSession,
    facts: &[TableFacts],
    threads: usize,
) -> Result<HashMap<u32, u64>, Fault> {
    let connection = session.connection();
    let whole: Vec<String> = facts
        .iter()
        .filter(|table| !table.is_partitioned)
        .map(|table| table.oid.to_string())
        .collect();
    if threads < 2 || whole.is_empty() || connection.version().major() < OLDEST {
        return Ok(HashMap::new());
    }
    let sql = format!(
        "SELECT t.oid, pg_catalog.pg_relation_size(t.oid::pg_catalog.regclass) \
         / pg_catalog.current_setting('block_size')::bigint \
         FROM pg_catalog.unnest('{{{}}}'::pg_catalog.oid[]) t(oid)",
        whole.join(",")
    );
    let rows = connection.query("asking for the sizes of tables", &sql).await?;
    let mut blocks = HashMap::with_capacity(rows.len());
    for row in &rows {
        if let Some(count) = row.optional_as(1)? {
            blocks.insert(row.parse_as(0)?, count);
        }
    }
    Ok(blocks)
}

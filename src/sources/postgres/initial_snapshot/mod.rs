//! The first start: a slot, a snapshot that begins exactly where the slot does, its rows.
//!
//! Rows take the same way as streamed ones, through the same table versions. Knows no record
//! format. **Invariants:** the intent is in Kafka before the slot is created, so that a slot found
//! after a crash is known as ours; which tables are read becomes visible with their last rows, and a
//! crash is answered by reading the others (`rest`).

mod readers;
mod reading;
mod rest;

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::watch;

use self::readers::{Readers, Source};
use self::reading::{Reading, Table};
pub(super) use self::rest::Interrupted;
use self::rest::Rest;
use super::Settings;
use super::capture::{self, Selection};
use super::catalogue::{self, TableFacts};
use super::connection::{Connection, CreatedSlot};
use super::driver::{combine, told_to_stop};
use super::incremental::{OLDEST, TableWork, Work};
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
    /// A snapshot of ours that was interrupted: the slot has everything since.
    pub(super) interrupted: Option<Interrupted>,
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
    if let Some(slot) = &premade {
        slot::check_kind(slot, &task.database())?;
    }
    if mode == SnapshotMode::NoData {
        let begin = match &premade {
            Some(slot) => slot.confirmed.unwrap_or(Lsn::ZERO),
            None => match task.create_slot(connection, true).await? {
                Some(created) => created.consistent_point,
                None => return Ok(None),
            },
        };
        if task.work.end_first(None, Vec::new()) {
            task.stage.remember(task.work.state()?);
        }
        return task.stream_from(begin, None).await;
    }
    let rest = task.rest(connection).await?;
    if let (Some(Interrupted { begin, .. }), Some(rest)) = (&task.interrupted, &rest)
        && rest.again.is_empty()
    {
        let begin = *begin;
        reading::show(task.metrics, &[], rest.others());
        return task.stream_from(begin, Some(rest.beside.clone())).await;
    }
    if task.interrupted.is_none() && !task.wait().await {
        return Ok(None);
    }
    let has_slot = mode != SnapshotMode::InitialOnly;
    if premade.is_some() && task.interrupted.is_none() {
        tracing::info!(
            slot = task.settings.slot_name,
            "the replication slot exists; the snapshot is taken through a temporary one"
        );
    }
    let is_permanent = premade.is_none() && has_slot;
    let Some(created) = task.create_slot(connection, is_permanent).await? else { return Ok(None) };
    let begin = task.interrupted.as_ref().map_or(created.consistent_point, |one| one.begin);
    if !task.read(&created, (begin, has_slot), rest.as_ref()).await? {
        return Ok(None);
    }
    if !is_permanent {
        // Left alone, it would keep the server's log until this connection ends.
        connection.drop_slot(&created.name).await?;
    }
    if !has_slot {
        task.end(Vec::new())?;
        task.store(Phase::SnapshotDone { consistent_point: created.consistent_point }).await?;
        return Ok(None);
    }
    task.stream_from(begin, Some(rest.map(|rest| rest.beside).unwrap_or_default())).await
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

    /// The stream begins there. `beside`: what is to be read beside it, where a snapshot was taken.
    async fn stream_from(
        mut self,
        end: Lsn,
        beside: Option<Vec<TableWork>>,
    ) -> Result<Option<Phase>, Fault> {
        if let Some(beside) = beside {
            self.end(beside)?;
        }
        let phase = Phase::Streaming { end };
        self.store(phase).await?;
        Ok(Some(phase))
    }

    /// The snapshot is through, but for what is to be read beside the stream. That is kept with the
    /// next position that is stored.
    fn end(&mut self, beside: Vec<TableWork>) -> Result<(), Fault> {
        if beside.is_empty() {
            self.metrics.snapshot.end(true, clock_micros());
        }
        let shown = self.metrics.incremental.progress();
        if self.work.end_first(shown.as_ref(), beside) {
            self.stage.remember(self.work.state()?);
        }
        Ok(())
    }

    /// What an interrupted snapshot left to be read; `None`: everything is read.
    async fn rest(&mut self, connection: &mut Connection) -> Result<Option<Rest>, Fault> {
        let Some(interrupted) = &self.interrupted else { return Ok(None) };
        let (settings, begin) = (self.settings, interrupted.begin);
        let first = self.work.first_at(begin);
        if let Some(why) = rest::obstacle(settings, interrupted, first) {
            tracing::warn!(
                slot = settings.slot_name,
                why,
                "an earlier snapshot was interrupted; it is repeated, and the stream follows from where that one began"
            );
            return Ok(None);
        }
        let Some(first) = first else { return Ok(None) };
        let oids: Vec<u32> = interrupted.captured.iter().map(|table| table.oid).collect();
        let facts = self.ordered(catalogue::fetch_tables(connection, &oids).await?);
        let now = (connection.version(), interrupted);
        let rest = rest::rest(settings, now, &facts, first);
        tracing::info!(
            slot = settings.slot_name,
            position = %begin,
            read = rest.read.len(),
            beside_the_stream = rest.beside.len(),
            again = rest.again.len(),
            "an earlier snapshot was interrupted; tables that it has read are not read again, and \
             the stream follows from where it began"
        );
        Ok(Some(rest))
    }

    /// Reads what is to be read before the stream, which is to begin at `begin`; false: told to stop.
    async fn read(
        &mut self,
        created: &CreatedSlot,
        (begin, has_slot): (Lsn, bool),
        rest: Option<&Rest>,
    ) -> Result<bool, Fault> {
        if rest.is_none() && has_slot {
            self.work.begin_first(begin);
        }
        if has_slot {
            self.stage.remember(self.work.state()?);
        }
        let phase = Phase::Snapshot { consistent_point: begin, has_slot };
        self.store(phase).await?;
        let outcome = self.read_tables(created, phase, rest).await;
        if !matches!(outcome, Ok(true)) {
            self.metrics.snapshot.end(false, clock_micros());
        }
        outcome
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

    /// Reads the captured tables; false: told to stop.
    async fn read_tables(
        &mut self,
        created: &CreatedSlot,
        phase: Phase,
        rest: Option<&Rest>,
    ) -> Result<bool, Fault> {
        let settings = Arc::clone(self.settings);
        let exported = created.snapshot.as_deref();
        let mut session = SnapshotSession::begin(&settings.connection, exported).await?;
        let mut facts = self.captured(&mut session).await?;
        facts.retain(|table| rest.is_none_or(|rest| rest.again.contains(&table.oid)));
        let threads = self.threads();
        let blocks = blocks(&mut session, &facts, threads).await?;
        let generated = self.generated;
        let position = created.consistent_point;
        let record = self.record(phase);
        let offset = Offset { phase: Phase::Creating, ..self.template.clone() };
        let mut publishing = Publishing::resume(self.stage, self.tables, offset, position);
        publishing.fields.begin_snapshot(position, None);
        let metrics = self.metrics;
        metrics.snapshot.begin(clock_micros());
        let mut reading = Reading {
            metrics,
            publishing,
            work: self.work,
            is_unsaved: true,
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
        let left = reading.tables.iter().map(|table| table.name.clone());
        let beside = rest.iter().flat_map(|rest| &rest.beside).map(TableWork::qualified_name);
        reading.work.set_left(left.chain(beside).collect());
        let waiting = reading.work.tables().iter().map(TableWork::progress);
        let others = rest.map(Rest::others).unwrap_or_default();
        reading::show(metrics, &reading.tables, waiting.chain(others).collect());
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
        Ok(self.ordered(catalogue::fetch_tables(connection, &oids).await?))
    }

    /// In the order of reading.
    fn ordered(&self, mut facts: Vec<TableFacts>) -> Vec<TableFacts> {
        match self.settings.snapshot_order {
            SnapshotOrder::Names => {}
            SnapshotOrder::SmallestFirst => facts.sort_by_key(|table| table.estimated_rows),
            SnapshotOrder::LargestFirst => {
                facts.sort_by_key(|table| std::cmp::Reverse(table.estimated_rows));
            }
        }
        facts
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

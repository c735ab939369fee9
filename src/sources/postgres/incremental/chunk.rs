//! A chunk on its way out: its rows, the progress that goes with them, and what is told of it.
//!
//! **Invariants:** the rows of a chunk and the progress behind it become visible together; each row
//! has a place of its own: the stream's position and the row's number in the table's snapshot.

use tokio::time::Instant;

use super::reader::{Chunk, ChunkRow};
use super::{Aim, CHUNK_BYTES, Incremental, Publishing, TableFacts, TableWork};
use crate::change::{ChangeKind, RowImage};
use crate::error::Fault;
use crate::observe::ChunkProgress;
use crate::sources::postgres::decode::RowChange;
use crate::sources::postgres::status::clock_micros;
use crate::sources::postgres::tables::RereadTable;
use crate::sources::postgres::wire::{Lsn, RelationId};
use crate::stage::Services;

impl Incremental {
    /// Publishes a chunk where the stream stands.
    pub(super) async fn publish<S: Services>(
        &mut self,
        chunk: &Chunk,
        facts: &TableFacts,
        publishing: &mut Publishing<'_, S>,
    ) -> Result<(), Fault> {
        let generated = self.tools.generated;
        let index = publishing.chunk_version(&facts.descriptor(generated)).await?;
        let Some(work) = self.work.tables.first_mut() else { return Ok(()) };
        work.chunks += 1;
        work.estimate = work.estimate.or(facts.estimated_rows);
        let mut published = work.rows;
        let is_refilter = work.aim.is_refilter();
        let is_first_look = work.chunks == 1 && work.aim == Aim::Initial;
        let clears = work.chunks == 1 && matches!(work.aim, Aim::Rewritten { clears: true, .. });
        if is_refilter {
            publishing.check_retelling(index).await?;
        }
        if is_first_look {
            // its baseline is out even if it has no rows
            publishing.tables.open(index, publishing.stage).await?;
        }
        let position = publishing.begin_chunk();
        if clears {
            publishing.clear((RelationId(facts.oid), index), position).await?;
        }
        for row in chunk.rows() {
            let kind = kind(&row, is_refilter);
            let place = (position, published + 1);
            let change = change(&row, kind, (RelationId(facts.oid), index), place);
            published += u64::from(publishing.chunk_row(&change).await?);
        }
        self.advance(chunk, published);
        // labels may have changed their names since it was looked at
        if chunk.then.is_none() && !self.former_can_be_asked(facts, publishing).await? {
            self.tell_anew(publishing);
            return publishing.keep(self.state()?).await;
        }
        if chunk.then.is_none() {
            if is_refilter && let Some(table) = self.work.tables.first() {
                publishing.tables.end_refilter(&table.namespace, &table.name);
            }
            if let Some(table) = self.work.tables.first_mut()
                && matches!(table.aim, Aim::Rewritten { .. })
            {
                table.through = Some(position.to_string());
                publishing.keep(self.state()?).await?;
                return self.end_rewritten(publishing).await;
            }
            return self.finish(publishing).await;
        }
        self.show_table();
        publishing.keep(self.state()?).await
    }

    /// The first table is through. Whoever is told so finds its rows.
    async fn finish<S: Services>(
        &mut self,
        publishing: &mut Publishing<'_, S>,
    ) -> Result<(), Fault> {
        self.show_table();
        let Some(table) = self.take_first(true) else { return Ok(()) };
        if let Some(mut shown) = self.tools.metrics.incremental.progress() {
            mark(&mut shown, &table.qualified_name(), None);
            self.work.take_ends(&shown);
        }
        let position = publishing.position();
        publishing.keep_visibly(self.work.state()?).await?;
        self.show_end(&table, position, None);
        Ok(())
    }

    /// If all rows of a rewritten table are published: tells it.
    pub(super) async fn end_rewritten<S: Services>(
        &mut self,
        publishing: &mut Publishing<'_, S>,
    ) -> Result<(), Fault> {
        let Some(table) = self.work.tables.first() else { return Ok(()) };
        let (Some(through), Aim::Rewritten { by, .. }) = (&table.through, &table.aim) else {
            return Ok(());
        };
        let by = by.clone();
        let position = through.parse().unwrap_or_else(|_| publishing.position());
        let (namespace, name, rows) = (table.namespace.clone(), table.name.clone(), table.rows);
        self.end_table(position, None);
        let reread = RereadTable { table: (&namespace, &name), by: &by, position, rows };
        publishing.tell_reread(reread, self.state()?).await
    }

    /// Takes note of what was read, and chooses the next chunk's size.
    fn advance(&mut self, chunk: &Chunk, published: u64) {
        let Some(work) = self.work.tables.first_mut() else { return };
        self.pace.get_or_insert_with(|| (Instant::now(), work.scanned));
        work.rows = published;
        work.scanned += chunk.scanned;
        work.cursor.clone_from(&chunk.then);
        let limit = self.tools.settings.chunk_rows;
        self.rows = next_rows(self.rows, chunk.byte_len(), limit);
    }

    /// The first table is through, or given up.
    pub(super) fn end_table(&mut self, position: Lsn, fault: Option<&Fault>) {
        self.show_table();
        if let Some(table) = self.take_first(fault.is_none()) {
            self.show_end(&table, position, fault);
        }
    }

    fn take_first(&mut self, is_through: bool) -> Option<TableWork> {
        if self.work.tables.is_empty() {
            return None;
        }
        let table = self.work.tables.remove(0);
        if let Some(next) = table.next().filter(|_| is_through) {
            self.work.tables.insert(0, next);
        }
        self.pace = None;
        self.definition = None;
        Some(table)
    }

    fn show_end(&self, table: &TableWork, position: Lsn, fault: Option<&Fault>) {
        let name = table.qualified_name();
        self.tools.metrics.incremental.update(|progress| mark(progress, &name, fault));
        self.tools.metrics.snapshot.end_table();
        if fault.is_none() {
            tracing::info!(
                table = name,
                rows = table.rows,
                chunks = table.chunks,
                %position,
                "the incremental snapshot has read a table"
            );
        }
        if self.work.tables.is_empty() {
            self.tools.metrics.snapshot.end(fault.is_none(), clock_micros());
        }
        self.show_all();
    }

    /// Shows everything that is to be read; what was read before stays shown until a new snapshot.
    pub(super) fn show_all(&self) {
        let metrics = &self.tools.metrics;
        let work = &self.work;
        if work.tables.is_empty() {
            return;
        }
        work.show(metrics);
        metrics.incremental.update(|progress| {
            progress.paused = work.paused;
            let is_there = |name: &str| work.tables.iter().any(|one| one.qualified_name() == name);
            for one in &mut progress.tables {
                if one.is_open() && !is_there(&one.table) {
                    one.state = "stopped";
                    one.seconds_left = None;
                }
            }
            for table in &work.tables {
                let name = table.qualified_name();
                if !progress.tables.iter().any(|one| one.table == name && one.is_open()) {
                    progress.tables.push(table.progress());
                }
            }
            metrics.snapshot.set_counts(progress.tables.len(), work.tables.len());
        });
        metrics.snapshot.set_paused(work.paused);
    }

    /// Shows how far the first table is.
    fn show_table(&self) {
        let Some(work) = self.work.tables.first() else { return };
        let name = work.qualified_name();
        let seconds_left = self.seconds_left();
        let metrics = &self.tools.metrics;
        metrics.snapshot.begin_table(&name).set(work.rows.cast_signed());
        metrics.incremental.update(|progress: &mut ChunkProgress| {
            progress.waiting = None;
            let open = progress.tables.iter_mut().find(|one| one.table == name && one.is_open());
            let Some(one) = open else { return };
            one.state = "running";
            one.rows = work.rows;
            one.scanned = work.scanned;
            one.estimate = work.estimate;
            one.chunks = work.chunks;
            one.seconds_left = seconds_left;
        });
    }

    /// Why nothing is read at the moment.
    pub(super) fn note_waiting(&self, why: Option<String>) {
        self.tools.metrics.incremental.update(|progress| progress.waiting = why);
    }

    fn seconds_left(&self) -> Option<u64> {
        let work = self.work.tables.first()?;
        let (since, before) = self.pace?;
        let rest = work.estimate?.saturating_sub(work.scanned);
        let millis = u64::try_from(since.elapsed().as_millis()).ok()?;
        let read = work.scanned.saturating_sub(before);
        (read > 0).then(|| (rest.saturating_mul(millis) / read).div_ceil(1000))
    }
}

/// How a table ended.
fn mark(progress: &mut ChunkProgress, name: &str, fault: Option<&Fault>) {
    progress.waiting = None;
    if let Some(one) = progress.tables.iter_mut().rev().find(|one| one.table == name) {
        one.state = if fault.is_some() { "failed" } else { "completed" };
        one.fault = fault.map(ToString::to_string);
        one.seconds_left = None;
    }
}

/// What a row of a chunk is published as.
const fn kind(row: &ChunkRow<'_>, is_refilter: bool) -> ChangeKind {
    match (is_refilter, row.is_in) {
        (false, _) => ChangeKind::Read,
        (true, true) => ChangeKind::MovedIn,
        (true, false) => ChangeKind::FoundOut,
    }
}

fn change<'a>(
    row: &ChunkRow<'a>,
    kind: ChangeKind,
    table: (RelationId, usize),
    place: (Lsn, u64),
) -> RowChange<'a> {
    let read = RowChange::read(table, row.bytes, row.cells, place);
    let (before, after) = match kind {
        ChangeKind::FoundOut => (Some(row.cells), None),
        _ => (None, Some(row.cells)),
    };
    RowChange { kind, row: RowImage { before, after, ..read.row }, ..read }
}

/// Twice as many rows as long as they are light, half as many if they are heavy.
fn next_rows(rows: u64, bytes: usize, limit: u64) -> u64 {
    let next = if bytes > CHUNK_BYTES {
        rows / 2
    } else if bytes < CHUNK_BYTES / 2 {
        rows.saturating_mul(2)
    } else {
        rows
    };
    next.clamp(1, limit.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_grow_to_what_is_configured_and_shrink_under_heavy_rows() {
        assert_eq!(next_rows(256, 10, 1024), 512);
        assert_eq!(next_rows(1024, 10, 1024), 1024);
        assert_eq!(next_rows(512, CHUNK_BYTES + 1, 1024), 256);
        assert_eq!(next_rows(512, CHUNK_BYTES - 1, 1024), 512);
        assert_eq!(next_rows(1, usize::MAX, 1024), 1);
        assert_eq!(next_rows(7, 0, 3), 3);
    }
}

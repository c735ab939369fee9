//! Snapshots beside the running stream, in chunks that are placed exactly.
//!
//! A chunk is read on a second connection in a snapshot of its own. Its rows go out where the
//! stream has shown every transaction that this snapshot sees, and none that it does not
//! (`placement`). So a chunk's rows are what a reader of the stream has at that place anyway, or
//! would have; no row is dropped in favour of a streamed one, no key is needed, and nothing is
//! written to the source.
//!
//! ```text
//! stream   … commit ┃ stands still for one look  ┃ goes on …  ┃ stands still until it is read ┃ …
//! reader            ┃ lock, snapshot, fence       ┃ definition, range, COPY …                  ┃
//!                                                             the place: all seen, none unseen
//! ```
//!
//! **Why the topic ends as the table.** Take any row at the end.
//! - *In the order of a key* every key belongs to one chunk. What changed under that key before the
//!   chunk's place is in the chunk (also what the stream sent incompletely, with a marker for an
//!   unchanged large value); what changed behind it comes behind it. A change of the key is a
//!   delete and a create under another key, and complete or said not to be (`key.change.toast`).
//! - *In the order of blocks* a row can move, between two chunks' snapshots, from blocks that are
//!   still to be read to blocks that were: no chunk sees it. Then the update that moved it is
//!   behind the place of the chunk that covers the row's new block, so the stream has it; it must
//!   be complete. It is, because blocks are the order only of tables without a key: their updates
//!   carry the whole old row (`REPLICA IDENTITY FULL`), or cannot be made at all. Blocks that are
//!   added behind the end known at the beginning hold only such rows. Rows that move without a
//!   change (`VACUUM FULL`, `CLUSTER`) come with a new file, with which the table is begun again.
//! - *Rows behind the last key* that was there at the beginning came to be since: the stream has
//!   them.
//!
//! Progress is stored in the Kafka transaction of a chunk's last rows, so after a crash the next
//! chunk is the one behind. A chunk too large for one transaction can have been published in part
//! then; it is read and placed anew, which is right for the same reasons.
//!
//! For a changed row filter the same chunks are read for rows on which the two filters differ.
//! Until its table is through, the stream's rows count as published before a change if either of
//! the two filters lets them through: which of them holds for a row depends on whether the row
//! was touched since. A delete too many is of a row that is out in any case.
//!
//! A table that was rewritten ([`Incremental::upset`]) is read from its beginning, whatever was read
//! of it before: the command held the table's lock until its end was seen, so a chunk saw all of it
//! or, placed before, nothing. Where readers would be left with rows that nobody deletes (rows may
//! have other keys now), a truncate goes before its first chunk: each row that there was at that
//! place is in a chunk, or was changed before its chunk and is in the stream.
//!
//! **Invariants:** a look, and whatever waits for a place, happens between transactions; whatever
//! goes wrong with the reader leaves the stream alone, but for a changed filter, which may not be
//! left half done.

mod chunk;
mod first;
mod orders;
mod placement;
mod reader;
mod signals;
mod work;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::Instrument as _;

pub(super) use self::first::{FIRST, FirstSnapshot};
pub(super) use self::orders::OLDEST;
pub use self::orders::plan;
use self::placement::{Doubt, Placement, Step};
use self::reader::{Choice, Chunk, Reader, Sight, Wanted};
pub(super) use self::signals::Signals;
pub use self::work::pending;
pub(super) use self::work::{Aim, FormerFilter, STATE_KEY, TableWork, Work};
use super::Settings;
use super::catalogue::TableFacts;
use super::decode::Transaction;
use super::driver::told_to_stop;
use super::publishing::Publishing;
use super::status::{Progress, clock_micros};
use super::tables::Upheaval;
use super::wire::Lsn;
use crate::error::{Code, Fate, Fault};
use crate::observe::SourceMetrics;
use crate::sources::{Order, Orders};
use crate::stage::{Services, TableState};

/// Rows of a chunk weigh about so much at most, whatever is configured: they are held in memory.
const CHUNK_BYTES: usize = 4 << 20;
/// A chunk's first size; it grows as far as it is configured.
const FIRST_ROWS: u64 = 256;
/// How long the stream stands still for a chunk.
const HOLD_LIMIT: Duration = Duration::from_secs(10);
/// How long the connection of a chunk that cannot be placed is waited for.
const LOST_LIMIT: Duration = Duration::from_secs(90);
/// Between two questions to the server how far it has read.
const ASK_AGAIN: Duration = Duration::from_millis(20);
/// Until a transaction that the stream has shown is seen by snapshots.
const UNTIL_SEEN: Duration = Duration::from_millis(5);
/// Between two looks at transactions of which it is not known whether the stream has shown them.
const UNTIL_KNOWN: Duration = Duration::from_millis(200);
/// Between two attempts at a table that somebody alters.
const UNTIL_FREE: Duration = Duration::from_millis(200);
/// Between two attempts at a table that is not captured: only another configuration changes that.
const UNTIL_CAPTURED: Duration = Duration::from_secs(10);
/// After a fault of the connection, at first and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// What it works with.
pub(super) struct Tools {
    /// The settings.
    pub(super) settings: Arc<Settings>,
    /// Stored generated columns are published.
    pub(super) generated: bool,
    /// Where it shows what it does.
    pub(super) metrics: Arc<SourceMetrics>,
    /// By which the server is asked how far it has read.
    pub(super) progress: Progress,
    /// Turns true when the stream has to end.
    pub(super) stop: watch::Receiver<bool>,
}

/// See the module.
pub(super) struct Incremental {
    tools: Tools,
    inbox: tokio::sync::OwnedMutexGuard<mpsc::Receiver<Order>>,
    /// Orders that wait for the end of a transaction.
    waiting: Vec<Order>,
    work: Work,
    /// `None`: nothing is read, and the stream is not listened to.
    placement: Option<Placement>,
    /// `None`: a chunk is being read.
    reader: Option<Reader>,
    flight: Option<Flight>,
    definition: Option<Definition>,
    /// About so many rows are read at once.
    rows: u64,
    /// Nothing is tried before.
    rest: Option<Instant>,
    backoff: Duration,
    /// The first table was not there under its name when the server's log ended here.
    gone: Option<Lsn>,
    /// A table that came to be published, and the transactions that were open then, and are.
    writers: Option<(String, Vec<u64>)>,
    /// A table that the role may not read.
    denied: Option<String>,
    /// When the reading of the first table began in this run, and how many rows were read by then.
    pace: Option<(Instant, u64)>,
}

impl std::fmt::Debug for Incremental {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Incremental").field("work", &self.work).finish_non_exhaustive()
    }
}

/// A chunk that is being read.
#[derive(Debug)]
struct Flight {
    reading: JoinHandle<(Reader, Result<Chunk, Fault>)>,
    /// Of the table; `None`: nothing is read, a connection is opened.
    facts: Option<Arc<TableFacts>>,
    /// It cannot be placed; only its connection is waited for.
    is_lost: bool,
    since: Instant,
}

impl Flight {
    fn new(
        reading: JoinHandle<(Reader, Result<Chunk, Fault>)>,
        facts: Option<Arc<TableFacts>>,
    ) -> Self {
        Self { reading, is_lost: facts.is_none(), facts, since: Instant::now() }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// A table as its last chunk saw it.
#[derive(Clone, Debug)]
struct Definition {
    table: TableWork,
    stamp: String,
    facts: Arc<TableFacts>,
    columns: Vec<String>,
    choice: Choice,
}

impl Definition {
    fn is_of(&self, table: &TableWork, stamp: &str) -> bool {
        let own = &self.table;
        self.stamp == stamp
            && (&own.namespace, &own.name, &own.condition, &own.aim)
                == (&table.namespace, &table.name, &table.condition, &table.aim)
    }
}

impl Incremental {
    /// Goes on with what is stored.
    pub(super) async fn begin(tools: Tools, work: Work, orders: &Orders) -> Self {
        let reader = Some(Reader::new(Arc::clone(&tools.settings)));
        let rows = tools.settings.chunk_rows.min(FIRST_ROWS);
        let this = Self {
            tools,
            inbox: Arc::clone(orders).lock_owned().await,
            waiting: Vec::new(),
            work,
            placement: None,
            reader,
            flight: None,
            definition: None,
            rows,
            rest: Some(Instant::now()),
            backoff: BACKOFF.0,
            gone: None,
            writers: None,
            denied: None,
            pace: None,
        };
        this.show_all();
        this
    }

    /// Whether the stream is listened to.
    pub(super) const fn is_awake(&self) -> bool {
        self.placement.is_some()
    }

    fn is_wanted(&self) -> bool {
        !self.work.tables.is_empty() && !self.work.paused
    }

    /// Waits until there is something to do. `is_between`: no transaction is open.
    pub(super) async fn call(&mut self, is_between: bool) {
        let due = self.rest.filter(|_| is_between && self.is_wanted());
        let timer = async {
            match due {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            order = self.inbox.recv() => match order {
                Some(order) => self.waiting.push(order),
                None => std::future::pending().await,
            },
            () = timer => {}
        }
    }

    /// Tables are to be read anew, beginning behind the transaction that ended last. Whoever calls
    /// this from the stream's course keeps [`Self::state`] with that transaction.
    ///
    /// # Errors
    /// `SNAPSHOT-CONFLICT`: one of them is being read. Then none is added.
    pub(super) fn reread(&mut self, tables: Vec<TableWork>) -> Result<(), Fault> {
        self.work.add(tables, &snapshot_id())?;
        self.rest = Some(Instant::now());
        Ok(())
    }

    /// Takes over what notes said of tables; answers whether that has to be stored.
    ///
    /// A chunk of such a table that is being read belongs behind this place: whatever it saw of the
    /// table, it saw behind the command. It is read again from the table's beginning with the rest.
    pub(super) fn upset(&mut self, upheavals: Vec<Upheaval>) -> bool {
        let mut is_changed = false;
        for upheaval in upheavals {
            match upheaval {
                Upheaval::Rewritten { table: (namespace, name), by, clears } => {
                    let table = TableWork::new(&namespace, &name, Aim::Rewritten { by, clears });
                    if self
                        .work
                        .tables
                        .first()
                        .is_some_and(|first| (&first.namespace, &first.name) == (&namespace, &name))
                    {
                        self.pace = None;
                        self.lose();
                    }
                    self.work.begin_again(table, &snapshot_id());
                    is_changed = true;
                }
                Upheaval::Renamed { from, to } => {
                    is_changed |= self.work.rename((&from.0, &from.1), to);
                }
            }
        }
        if is_changed {
            self.definition = None;
            self.rest = Some(Instant::now());
            self.show_all();
        }
        is_changed
    }

    /// What has to be stored.
    ///
    /// # Errors
    /// Only if the program is wrong.
    pub(super) fn state(&mut self) -> Result<TableState, Fault> {
        let shown = self.tools.metrics.incremental.progress();
        shown.iter().for_each(|shown| self.work.take_ends(shown));
        self.work.state()
    }

    /// No transaction is open: orders are carried out, and the next chunk is begun.
    ///
    /// # Errors
    /// The publisher has ended, or a changed filter cannot be carried through.
    pub(super) async fn between<S: Services>(
        &mut self,
        publishing: &mut Publishing<'_, S>,
    ) -> Result<(), Fault> {
        self.carry_out_orders(publishing).await?;
        if !self.is_wanted() {
            self.placement = None;
            self.lose();
            self.allow(|_| true);
        }
        self.collect_lost(publishing).await?;
        if self.flight.is_some() || !self.is_wanted() {
            self.ask_again();
            return Ok(());
        }
        self.end_rewritten(publishing).await?;
        if self.rest.is_some_and(|until| until > Instant::now()) || !self.is_wanted() {
            return Ok(());
        }
        self.rest_for(UNTIL_KNOWN);
        if publishing.is_half_published() {
            return Ok(());
        }
        self.look(publishing).await
    }

    /// A transaction begins in the stream.
    ///
    /// # Errors
    /// As [`Self::between`].
    pub(super) async fn before<S: Services>(
        &mut self,
        transaction: &Transaction,
        publishing: &mut Publishing<'_, S>,
    ) -> Result<(), Fault> {
        let Some(placement) = &mut self.placement else { return Ok(()) };
        match placement.begin(transaction.xid, transaction.commit_lsn) {
            Step::GoOn => Ok(()),
            // what Kafka has already stands before everything that is still to come
            Step::Here if publishing.has(transaction) => {
                self.lose();
                Ok(())
            }
            Step::Here => self.place(publishing).await,
            Step::TakeAgain => {
                self.lose();
                Ok(())
            }
        }
    }

    /// Everything that commits before this position was shown.
    ///
    /// # Errors
    /// As [`Self::between`].
    pub(super) async fn reached<S: Services>(
        &mut self,
        position: Lsn,
        publishing: &mut Publishing<'_, S>,
    ) -> Result<(), Fault> {
        let step = self.placement.as_mut().map(|placement| placement.reached(position));
        if step == Some(Step::Here) {
            self.place(publishing).await?;
        }
        self.between(publishing).await
    }

    /// While a place is waited for in a quiet stream, the server says where it is only if it is
    /// asked.
    fn ask_again(&mut self) {
        let is_waiting = self.flight.as_ref().is_some_and(|flight| !flight.is_lost);
        let now = Instant::now();
        if is_waiting && self.rest.is_none_or(|until| until <= now) {
            self.tools.progress.ask_server();
            self.rest = Some(now + ASK_AGAIN);
        }
    }

    fn rest_for(&mut self, time: Duration) {
        self.rest = Some(Instant::now() + time);
    }

    /// What is being read cannot be placed.
    fn lose(&mut self) {
        if let Some(placement) = &mut self.placement {
            placement.give_up();
        }
        if let Some(flight) = &mut self.flight {
            flight.is_lost = true;
            self.rest = Some(Instant::now() + UNTIL_SEEN);
        }
    }

    /// Takes the connection of a lost chunk back, or one that was opened.
    async fn collect_lost<S: Services>(
        &mut self,
        publishing: &mut Publishing<'_, S>,
    ) -> Result<(), Fault> {
        let is_over = self
            .flight
            .as_ref()
            .is_some_and(|flight| flight.is_lost && flight.reading.is_finished());
        if !is_over {
            if let Some(flight) = self.flight.as_ref().filter(|flight| flight.is_lost) {
                if flight.since.elapsed() > LOST_LIMIT {
                    self.flight = None;
                    self.reader = Some(Reader::new(Arc::clone(&self.tools.settings)));
                }
                self.rest_for(UNTIL_SEEN);
            }
            return Ok(());
        }
        let Some(mut flight) = self.flight.take() else { return Ok(()) };
        let (reader, outcome) = (&mut flight.reading).await.map_err(|error| ended(&error))?;
        self.reader = Some(reader);
        self.rest = Some(Instant::now());
        match outcome {
            Err(fault) if self.is_wanted() => self.troubled(fault, publishing).await,
            _ => Ok(()),
        }
    }

    /// Opens the connection, while the stream goes on.
    fn connect(&mut self, mut reader: Reader) {
        let opening = async move {
            let outcome = reader.open().await;
            (reader, outcome.map(|()| Chunk::default()))
        };
        let reading = tokio::spawn(opening.in_current_span());
        self.flight = Some(Flight::new(reading, None));
        self.rest_for(UNTIL_SEEN);
    }

    /// Takes a snapshot for the next chunk, and begins to read.
    async fn look<S: Services>(&mut self, publishing: &mut Publishing<'_, S>) -> Result<(), Fault> {
        let (Some(table), Some(mut reader)) =
            (self.work.tables.first().cloned(), self.reader.take())
        else {
            return Ok(());
        };
        if !reader.is_connected() {
            self.connect(reader);
            return Ok(());
        }
        match self.try_look(&table, &mut reader, publishing).await {
            Ok(Some((step, wanted))) => {
                self.backoff = BACKOFF.0;
                self.note_waiting(None);
                self.allow(|denied| *denied == table.qualified_name());
                let facts = Arc::clone(&wanted.facts);
                let reading = async move {
                    let outcome = reader.read(&wanted).await;
                    (reader, outcome)
                };
                let reading = tokio::spawn(reading.in_current_span());
                self.flight = Some(Flight::new(reading, Some(facts)));
                if step == Step::Here {
                    return self.place(publishing).await;
                }
                self.rest = None;
                self.ask_again();
                Ok(())
            }
            Ok(None) => {
                reader.end().await;
                self.reader = Some(reader);
                Ok(())
            }
            Err(fault) => {
                reader.end().await;
                self.reader = Some(reader);
                self.troubled(fault, publishing).await
            }
        }
    }

    /// `None`: the snapshot is of no use; it is tried again.
    async fn try_look<S: Services>(
        &mut self,
        table: &TableWork,
        reader: &mut Reader,
        publishing: &mut Publishing<'_, S>,
    ) -> Result<Option<(Step, Wanted)>, Fault> {
        // listened to before the snapshot is taken, so that nothing is missed
        self.placement.get_or_insert_default();
        let sight = reader.look(table).await?;
        self.gone = None;
        if table.joins && table.chunks == 0 && self.awaits_writers(table, &sight, reader).await? {
            return Ok(None);
        }
        let Some(placement) = &mut self.placement else { return Ok(None) };
        let step = match placement.open(sight.window, publishing.position()) {
            Ok(step) => step,
            Err(Doubt::Shown(_)) => {
                self.rest_for(UNTIL_SEEN);
                return Ok(None);
            }
            Err(Doubt::Unknown(ids)) => {
                let cleared = reader.elsewhere(&ids).await?;
                placement.clear(&cleared);
                self.rest_for(UNTIL_SEEN);
                if cleared.len() < ids.len() {
                    self.note_waiting(Some(format!(
                        "for transactions that were open when it began: {ids:?}"
                    )));
                    self.rest_for(UNTIL_KNOWN);
                }
                return Ok(None);
            }
        };
        let outcome = self.define(table, (sight.oid, sight.stamp), reader, publishing).await;
        if outcome.is_err()
            && let Some(placement) = &mut self.placement
        {
            placement.give_up();
        }
        let Definition { facts, columns, choice, .. } = outcome?;
        let Some(work) = self.work.tables.first().cloned() else { return Ok(None) };
        Ok(Some((step, Wanted { facts, work, columns, choice, rows: self.rows })))
    }

    /// Whether transactions are still open that were when a table had come to be published. What they
    /// wrote to it before is not in the stream, so the first chunk must see it.
    async fn awaits_writers(
        &mut self,
        table: &TableWork,
        sight: &Sight,
        reader: &mut Reader,
    ) -> Result<bool, Fault> {
        let name = table.qualified_name();
        let open = &sight.window.seen.in_progress;
        let (_, ids) = match self.writers.take() {
            Some(known) if known.0 == name => self.writers.insert(known),
            _ => self.writers.insert((name, open.clone())),
        };
        ids.retain(|id| open.contains(id));
        if ids.is_empty() {
            return Ok(false);
        }
        let abroad = reader.abroad(ids).await?;
        ids.retain(|id| !abroad.contains(id));
        if ids.is_empty() {
            return Ok(false);
        }
        let ids = ids.clone();
        self.note_waiting(Some(format!(
            "for transactions that were open when it came to be published: {ids:?}"
        )));
        self.rest_for(UNTIL_KNOWN);
        Ok(true)
    }

    /// The table's definition as the chunk's snapshot shows it.
    async fn define<S: Services>(
        &mut self,
        table: &TableWork,
        (oid, stamp): (u32, String),
        reader: &mut Reader,
        publishing: &mut Publishing<'_, S>,
    ) -> Result<Definition, Fault> {
        let known = self.definition.as_ref().filter(|known| known.is_of(table, &stamp)).cloned();
        let facts = match &known {
            // of labels no stamp tells
            Some(known) if !table.aim.asks_labels() => return Ok(known.clone()),
            Some(known) => known.facts.as_ref().clone(),
            None => reader.facts(oid).await?,
        };
        let can_be_asked = self.former_can_be_asked(&facts, publishing).await?;
        match known {
            Some(known) if can_be_asked => return Ok(known),
            _ if can_be_asked => {}
            _ => self.tell_anew(publishing),
        }
        let first = self.work.tables.first().cloned();
        let table = &first.ok_or_else(|| Code::Internal.fault("a chunk of no table"))?;
        let settings = &self.tools.settings;
        if !settings.tables.captures(&table.namespace, &table.name) {
            let name = table.qualified_name();
            return Err(Code::TableMissing.fault("the table is not captured").at_table(name));
        }
        let descriptor = facts.descriptor(self.tools.generated);
        let columns = descriptor.columns.into_iter().map(|column| column.name).collect();
        let filter = settings.row_filters.of(&table.namespace, &table.name).map(str::to_owned);
        let tables = &mut publishing.tables;
        let generated = self.tools.generated;
        let mut sql = async |text: Option<&String>| match text {
            Some(text) => tables.predicate_for(&facts, generated, text).await.map(Some),
            None => Ok(None),
        };
        let choice = match &table.aim {
            Aim::Read | Aim::Initial | Aim::Rewritten { .. } => {
                let all = [sql(filter.as_ref()).await?, sql(table.condition.as_ref()).await?];
                Choice::Rows(all.into_iter().flatten().collect())
            }
            Aim::Retell => Choice::Sides(sql(filter.as_ref()).await?),
            Aim::Refilter(before) => {
                let now = sql(filter.as_ref()).await?;
                let before = before.as_ref().map(|before| &before.text);
                match sql(before).await {
                    Ok(before) => Choice::Moved { before, now },
                    // it cannot be asked of these columns any more: all rows are told anew
                    Err(fault) if fault.code() == Code::FilterUnsupported => Choice::Sides(now),
                    Err(fault) => return Err(fault),
                }
            }
        };
        let facts = Arc::new(facts);
        let definition = Definition { table: table.clone(), stamp, facts, columns, choice };
        Ok(self.definition.insert(definition).clone())
    }

    /// Whether it is known, if a changed filter moved rows of the first table, which of them may have
    /// been published before.
    async fn former_can_be_asked<S: Services>(
        &self,
        facts: &TableFacts,
        publishing: &mut Publishing<'_, S>,
    ) -> Result<bool, Fault> {
        let Some(Aim::Refilter(former)) = self.work.tables.first().map(|one| &one.aim) else {
            return Ok(true);
        };
        publishing.tables.can_be_asked(former.as_ref(), (facts, self.tools.generated)).await
    }

    /// All rows of the first table are told, from its beginning: what of them was published by the
    /// former filter cannot be asked any more.
    fn tell_anew<S: Services>(&mut self, publishing: &mut Publishing<'_, S>) {
        self.pace = None;
        self.definition = None;
        if let Some(table) = self.work.tables.first_mut() {
            tracing::warn!(
                table = table.qualified_name(),
                "the former row filter of a table cannot be asked any more: all rows are told anew"
            );
            table.tell_anew();
            publishing.tables.forget_former(table);
        }
    }

    /// The stream is where the chunk belongs: it is waited for and published.
    async fn place<S: Services>(
        &mut self,
        publishing: &mut Publishing<'_, S>,
    ) -> Result<(), Fault> {
        if self.flight.as_ref().is_none_or(|flight| flight.is_lost) {
            return Ok(());
        }
        let Some(mut flight) = self.flight.take() else { return Ok(()) };
        let Some(facts) = flight.facts.take() else { return Ok(()) };
        let joined = tokio::select! {
            // not published: the stream ends here
            () = told_to_stop(&mut self.tools.stop) => None,
            joined = tokio::time::timeout(HOLD_LIMIT, &mut flight.reading) => Some(joined),
        };
        self.rest = Some(Instant::now());
        match joined {
            None => Ok(()),
            Some(Ok(joined)) => {
                let (reader, outcome) = joined.map_err(|error| ended(&error))?;
                self.reader = Some(reader);
                match outcome {
                    Ok(chunk) => self.publish(&chunk, &facts, publishing).await,
                    Err(fault) => self.troubled(fault, publishing).await,
                }
            }
            Some(Err(_elapsed)) => {
                self.reader = Some(Reader::new(Arc::clone(&self.tools.settings)));
                self.rows = (self.rows / 4).max(1);
                tracing::warn!(
                    table = facts.qualified_name(),
                    rows = self.rows,
                    "a chunk was not read in {} s; a smaller one is tried",
                    HOLD_LIMIT.as_secs()
                );
                Ok(())
            }
        }
    }

    /// A table that could not be read can be, or is not to be any more.
    fn allow(&mut self, is_it: impl FnOnce(&String) -> bool) {
        if self.denied.take_if(|denied| is_it(denied)).is_some() {
            self.tools.metrics.wait_for(None);
        }
    }

    /// A table is not there under its name. Whether the stream may still tell that it has another
    /// one by now: it has not shown yet what the server had done when the table was missed first.
    async fn may_come(&mut self, position: Lsn) -> bool {
        if let Some(gone) = self.gone {
            self.tools.progress.ask_server();
            return position < gone;
        }
        let Some(reader) = &mut self.reader else { return true };
        // what goes wrong with the connection is met again by the next chunk
        self.gone = reader.position().await.ok();
        true
    }

    fn is_captured(&self, table: &TableWork) -> bool {
        self.tools.settings.tables.captures(&table.namespace, &table.name)
    }

    /// The first table is not captured, and what is looked for in it is needed when it is again: then
    /// all its rows, for what becomes of them meanwhile the stream does not say. Others come first.
    async fn put_off<S: Services>(
        &mut self,
        publishing: &mut Publishing<'_, S>,
    ) -> Result<(), Fault> {
        self.rest_for(UNTIL_CAPTURED);
        let Some(first) = self.work.tables.first() else { return Ok(()) };
        let is_kept = matches!(first.aim, Aim::Refilter(_)) || first.cursor.is_some();
        if is_kept && first.aim.is_refilter() {
            self.tell_anew(publishing);
        }
        let next = self.work.tables.iter().position(|table| self.is_captured(table));
        if let Some(next) = next {
            self.work.tables.rotate_left(next);
            self.definition = None;
            self.pace = None;
            self.rest_for(UNTIL_FREE);
        }
        if is_kept || next.is_some() {
            publishing.keep(self.state()?).await?;
        }
        Ok(())
    }

    /// A chunk cannot be read. The stream goes on; what is tried next depends on why.
    async fn troubled<S: Services>(
        &mut self,
        fault: Fault,
        publishing: &mut Publishing<'_, S>,
    ) -> Result<(), Fault> {
        self.lose();
        self.note_waiting(Some(fault.to_string()));
        if fault.code() == Code::SnapshotStale {
            tracing::debug!(error = %fault, "a chunk is tried again");
            self.rest_for(UNTIL_FREE);
            return Ok(());
        }
        let Some(table) = self.work.tables.first().cloned() else { return Ok(()) };
        let is_needed = table.aim.is_needed();
        // a privilege that is granted is seen by the next attempt, and without the rows the topic is
        // wrong; a restart would not read them either if the table was given up
        let may_be_granted = fault.code() == Code::ReplicationPermission
            && matches!(table.aim, Aim::Read | Aim::Initial);
        if fault.fate() == Fate::Retry || may_be_granted {
            tracing::warn!(error = %fault, wait_ms = self.backoff.as_millis(), "a chunk cannot be read");
            self.rest_for(self.backoff);
            self.backoff = (self.backoff * 2).min(BACKOFF.1);
            if may_be_granted {
                // others need not wait for that
                self.denied = Some(table.qualified_name());
                self.tools.metrics.wait_for(Some(fault));
                self.work.put_last();
                (self.pace, self.definition) = (None, None);
            }
            return Ok(());
        }
        let is_gone = fault.code() == Code::TableMissing;
        if is_needed && !is_gone {
            return Err(fault);
        }
        let is_captured = self.is_captured(&table);
        // of a first snapshot it is read anew when it is captured again, like any other
        let is_left = table.aim == Aim::Initial && !table.retells;
        if is_needed && !is_captured && !is_left {
            return self.put_off(publishing).await;
        }
        if is_needed && is_captured && self.may_come(publishing.position()).await {
            self.rest_for(UNTIL_FREE);
            return Ok(());
        }
        if table.is_of_changed_filter() {
            if let Some(moved) = publishing.tables.moved_away(&table).await? {
                return Err(moved);
            }
            publishing.give_up_refilter(&table)?;
        }
        tracing::error!(
            table = table.qualified_name(),
            error = %fault,
            "the incremental snapshot of a table is given up"
        );
        self.gone = None;
        self.end_table(publishing.position(), Some(&fault));
        publishing.keep(self.state()?).await
    }
}

fn ended(error: &tokio::task::JoinError) -> Fault {
    Code::Internal.fault("the reader of a chunk ended").caused_by(error)
}

/// Tells one snapshot from others.
fn snapshot_id() -> String {
    format!("{:x}", clock_micros())
}

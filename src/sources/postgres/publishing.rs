//! Decoded changes → the stage: what of a transaction is published, and where it stands then.
//!
//! Decides by positions of transactions and numbers of changes, never by a row's own position.
//! Asks the catalogue only through [`Tables`]. **Invariants:** a transaction that the offset has is
//! not published again; of a transaction that Kafka holds half, only the other half is.

use std::sync::Arc;

use super::ddl::Note;
use super::decode::{CommitOutput, MessageOutput, Output, RowChange, Transaction, TruncateOutput};
use super::event_fields::{EventFields, SnapshotMarker};
use super::incremental::{Incremental, Signals, TableWork};
use super::messages::Messages;
use super::offset::{Inside, Offset, Phase};
use super::probe::Look;
use super::relations::RelationDescriptor;
use super::reselect::Reread;
use super::siblings::Siblings;
use super::status::clock_micros;
use super::tables::{Place, RereadTable, Tables};
use super::wire::{Lsn, RelationId, Xid};
use crate::change::{Cell, ChangeKind, Event, RowImage};
use crate::error::{Code, Fault};
use crate::stage::{OffsetRecord, Services, Stage, TableState};

/// No change has more records. What two changes make of one message is numbered so far apart.
const PARTS: u32 = 3;

/// What is to be done with the transaction that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// None is open.
    Between,
    /// Kafka has it.
    Discard,
    /// Kafka has its changes up to this one.
    SkipThrough(u64),
    /// All of it is new.
    Publish,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Publishing<'a, S> {
    pub(super) stage: &'a mut Stage<S>,
    pub(super) tables: &'a mut Tables,
    pub(super) fields: EventFields,
    /// What becomes of messages.
    pub(super) messages: Messages,
    /// Snapshots beside the stream; taken out while they do something.
    pub(super) chunks: Option<Box<Incremental>>,
    /// The clock as it was when the socket was last waited for, microseconds since the epoch.
    pub(super) now_micros: i64,
    /// Where the stream stands.
    offset: Offset,
    /// The end of the last transaction (or keepalive) that is on its way.
    end: Lsn,
    /// Where Kafka stood when this stream began.
    resume: Lsn,
    /// How far inside the first transaction Kafka stood then.
    inside: Option<Inside>,
    /// How far inside the open transaction records were handed over.
    held: Option<Inside>,
    commit: Lsn,
    xid: Xid,
    mode: Mode,
    /// Rows of the open transaction; taken out while one of them is written.
    siblings: Option<Box<Siblings>>,
    /// Orders of the open transaction.
    signals: Signals,
    /// A heartbeat waits for the end of the open transaction.
    is_beat_due: bool,
    /// Looks at tables that wait for it, too.
    looks: Vec<Look>,
}

impl<'a, S: Services> Publishing<'a, S> {
    /// Goes on after `offset`, which is streaming.
    pub(super) fn resume(
        stage: &'a mut Stage<S>,
        tables: &'a mut Tables,
        offset: Offset,
        end: Lsn,
    ) -> Self {
        let here = Offset { phase: Phase::Streaming { end }, ..offset.clone() };
        stage.stand_at(OffsetRecord(Arc::from(here.encode())));
        Self {
            stage,
            tables,
            fields: EventFields::default(),
            messages: Messages::default(),
            chunks: None,
            now_micros: 0,
            end,
            resume: end,
            inside: offset.inside,
            held: None,
            offset: Offset { inside: None, ..offset },
            commit: Lsn::ZERO,
            xid: Xid(0),
            mode: Mode::Between,
            siblings: None,
            signals: Signals::default(),
            is_beat_due: false,
            looks: Vec::new(),
        }
    }

    /// Takes over what a frame said, questions excepted.
    ///
    /// # Errors
    /// A change cannot be published, or the publisher has ended.
    pub(super) async fn take(&mut self, output: Output<'_>) -> Result<(), Fault> {
        match output {
            Output::Begin(transaction) => {
                if self.chunks.as_ref().is_some_and(|chunks| chunks.is_awake()) {
                    Box::pin(self.chunks_before(&transaction)).await?;
                }
                self.begin(&transaction);
                Ok(())
            }
            Output::Origin { commit_lsn, name } => {
                self.fields.set_origin(name, commit_lsn);
                Ok(())
            }
            Output::Row(change) => self.row(change).await,
            Output::Truncate(truncate) => self.truncate(truncate).await,
            Output::Commit(commit) => {
                self.commit(commit).await?;
                self.chunks_reached(commit.end_lsn).await
            }
            Output::Keepalive(keepalive) => {
                self.idle_at(keepalive.wal_end);
                self.chunks_reached(keepalive.wal_end).await
            }
            Output::Message(message) if message.transactional => self.message(&message).await,
            Output::Message(message) => self.lone_message(&message).await,
            Output::Relation { .. } | Output::RelationRepeated { .. } | Output::Ignored => Ok(()),
        }
    }

    async fn chunks_before(&mut self, transaction: &Transaction) -> Result<(), Fault> {
        let Some(mut chunks) = self.chunks.take() else { return Ok(()) };
        let outcome = chunks.before(transaction, self).await;
        self.chunks = Some(chunks);
        outcome
    }

    async fn chunks_reached(&mut self, position: Lsn) -> Result<(), Fault> {
        let is_awake = self.chunks.as_ref().is_some_and(|chunks| chunks.is_awake());
        if !is_awake || self.mode != Mode::Between {
            return Ok(());
        }
        let Some(mut chunks) = self.chunks.take() else { return Ok(()) };
        let outcome = Box::pin(chunks.reached(position, self)).await;
        self.chunks = Some(chunks);
        outcome
    }

    /// What was read has arrived in the stage: snapshots beside the stream go on, unless a
    /// transaction is open.
    pub(super) async fn chunks_between(&mut self) -> Result<(), Fault> {
        if self.mode != Mode::Between {
            return Ok(());
        }
        let Some(mut chunks) = self.chunks.take() else { return Ok(()) };
        let outcome = Box::pin(chunks.between(self)).await;
        self.chunks = Some(chunks);
        outcome
    }

    /// Waits until snapshots beside the stream have something to do.
    pub(super) async fn chunks_call(&mut self) {
        match &mut self.chunks {
            Some(chunks) => chunks.call(self.mode == Mode::Between).await,
            None => std::future::pending().await,
        }
    }

    /// Where the stream stands between two transactions.
    pub(super) const fn position(&self) -> Lsn {
        self.end
    }

    /// Whether Kafka holds the beginning of a transaction whose end is still to come.
    pub(super) const fn is_half_published(&self) -> bool {
        self.inside.is_some()
    }

    /// Whether Kafka has a transaction, or the beginning of it.
    pub(super) fn has(&self, transaction: &Transaction) -> bool {
        transaction.commit_lsn < self.resume
            || self.inside.is_some_and(|inside| inside.commit >= transaction.commit_lsn)
    }

    /// The version of a table for rows that are published here.
    ///
    /// # Errors
    /// The table is not captured, or the catalogue cannot be asked.
    pub(super) async fn chunk_version(
        &mut self,
        descriptor: &RelationDescriptor,
    ) -> Result<usize, Fault> {
        let place = Place { commit: self.end, sequence: 0 };
        self.tables.version_at(descriptor, place).await
    }

    /// Rows of a chunk follow; answers where they stand.
    pub(super) fn begin_chunk(&mut self) -> Lsn {
        self.now_micros = clock_micros();
        self.fields.begin_chunk(self.end, self.now_micros);
        self.end
    }

    /// Whether rows of a version can be told anew.
    ///
    /// # Errors
    /// Why not, or registry or broker refuse.
    pub(super) async fn check_retelling(&mut self, index: usize) -> Result<(), Fault> {
        self.tables.open(index, self.stage).await?.check_retelling()
    }

    /// A row of a chunk. Says whether anything is published of it: what the connector skips is not.
    ///
    /// # Errors
    /// It is not on the side of its table's filter that the server says, or cannot be published.
    pub(super) async fn chunk_row(&mut self, change: &RowChange<'_>) -> Result<bool, Fault> {
        self.tables.confirm(change)?;
        let before = self.stage.written_records();
        let mut scratch = Vec::new();
        let change = match change.kind {
            ChangeKind::FoundOut => &self.tables.by_key(*change, &mut scratch)?,
            _ => change,
        };
        self.write(change, 0, SnapshotMarker::Incremental).await?;
        let is_published = self.stage.written_records() > before;
        if self.stage.is_full() {
            self.commit_here().await?;
            self.now_micros = clock_micros();
            self.fields.set_time(self.now_micros);
        }
        Ok(is_published)
    }

    /// What was published of a table is void; its rows follow.
    ///
    /// # Errors
    /// It cannot be published.
    pub(super) async fn clear(
        &mut self,
        (relation, index): (RelationId, usize),
        position: Lsn,
    ) -> Result<(), Fault> {
        let row = RowImage { bytes: &[], before: None, after: None, reread: &[] };
        let kind = ChangeKind::Truncate;
        let change = RowChange { relation, index, kind, row, lsn: position, sequence: 0 };
        self.write(&change, 0, SnapshotMarker::Incremental).await
    }

    /// Notes said something of tables that may be read beside the stream: what has to be read again
    /// is stored with the records that say so.
    ///
    /// # Errors
    /// Only if the program is wrong.
    pub(super) fn take_upheavals(&mut self) -> Result<(), Fault> {
        let upheavals = self.tables.take_upheavals();
        let Some(chunks) = self.chunks.as_mut().filter(|_| !upheavals.is_empty()) else {
            return Ok(());
        };
        if chunks.upset(upheavals) {
            self.stage.remember(chunks.state()?);
        }
        Ok(())
    }

    /// Rows of a table are not looked for any more that a changed filter moved.
    ///
    /// # Errors
    /// Only if the program is wrong.
    pub(super) fn give_up_refilter(&mut self, table: &TableWork) -> Result<(), Fault> {
        self.tables.give_up_refilter(table, self.stage)
    }

    /// A rewritten table was read again.
    ///
    /// # Errors
    /// Registry or broker refuse, or the publisher has ended.
    pub(super) async fn tell_reread(
        &mut self,
        reread: RereadTable<'_>,
        state: TableState,
    ) -> Result<(), Fault> {
        self.tables.set_time(self.now_micros);
        self.tables.tell_reread(reread, state, self.stage).await?;
        self.commit_here().await
    }

    /// Keeps a state with the rows that were written since the last transaction.
    ///
    /// # Errors
    /// The publisher has ended.
    pub(super) async fn keep(&mut self, state: TableState) -> Result<(), Fault> {
        self.stage.accompany(state);
        self.commit_here().await
    }

    /// Keeps a state with the rows that were written, and waits until readers see both.
    ///
    /// # Errors
    /// The publisher has ended.
    pub(super) async fn keep_visibly(&mut self, state: TableState) -> Result<(), Fault> {
        self.keep(state).await?;
        self.stage.store(Some(self.record(self.inside))).await
    }

    /// Keeps a state, and waits until it is in Kafka.
    ///
    /// # Errors
    /// The publisher has ended.
    pub(super) async fn store(&mut self, state: TableState) -> Result<(), Fault> {
        self.stage.remember(state);
        self.stage.store(Some(self.record(self.inside))).await
    }

    /// What is wrong with the publication is told: how it was altered until the task is started again
    /// is not told once more. In the middle of a transaction nothing can be stored. Answers what the
    /// stream ends by.
    pub(super) async fn told(&mut self, fault: Fault) -> Fault {
        if self.mode != Mode::Between {
            return fault;
        }
        self.offset.publication_stamp = 0;
        Box::pin(self.commit_here()).await.err().unwrap_or(fault)
    }

    async fn commit_here(&mut self) -> Result<(), Fault> {
        let here = self.record(self.inside);
        self.stage.commit(here.clone(), here, None).await?;
        self.stage.hand_over().await
    }

    /// Where a description that arrives now takes effect.
    pub(super) const fn place(&self, sequence: u64) -> Place {
        // a description in a transaction that Kafka has is the one that holds where the stream resumes
        let commit = if self.commit.0 < self.resume.0 { self.resume } else { self.commit };
        Place { commit, sequence }
    }

    /// Counts a change that Kafka has already, so that what follows in its transaction is numbered
    /// behind it.
    async fn count_again(&mut self, index: usize, kind: ChangeKind) -> Result<(), Fault> {
        if self.stage.counts_events() && matches!(self.mode, Mode::SkipThrough(_)) {
            let table = self.tables.open(index, self.stage).await?;
            self.stage.count_again(table, kind);
        }
        Ok(())
    }

    fn begin(&mut self, transaction: &Transaction) {
        self.commit = transaction.commit_lsn;
        self.xid = transaction.xid;
        self.fields.begin(transaction);
        self.tables.set_time(transaction.commit_micros);
        self.signals.drain();
        if self.inside.is_some_and(|inside| inside.commit < transaction.commit_lsn) {
            self.inside = None;
        }
        self.held = self.inside.filter(|inside| inside.commit == transaction.commit_lsn);
        self.mode = match self.held {
            _ if transaction.commit_lsn < self.resume => Mode::Discard,
            Some(inside) => Mode::SkipThrough(inside.sequence),
            None => Mode::Publish,
        };
        if self.stage.counts_events() && self.mode != Mode::Discard {
            // The same whenever it is read; the number alone comes again after four billion.
            let id = format!("{}:{}", transaction.xid.0, transaction.commit_lsn.0);
            self.stage.begin(id, transaction.commit_micros);
        }
    }

    /// Everything up to here was read and nothing is open: the server may forget it as soon as
    /// what is on its way is in Kafka.
    fn idle_at(&mut self, position: Lsn) {
        if self.mode == Mode::Between && position > self.end {
            self.end = position;
            // what Kafka holds of a transaction that comes again stays said until it has come
            let record = self.record(self.inside);
            self.stage.mark(record);
        }
    }

    /// Whether what stands at this place of the open transaction is not in Kafka yet.
    pub(super) const fn is_new(&self, sequence: u64) -> bool {
        !self.is_published(sequence)
    }

    const fn is_published(&self, sequence: u64) -> bool {
        match self.mode {
            Mode::Publish => false,
            Mode::SkipThrough(last) => sequence <= last,
            Mode::Between | Mode::Discard => true,
        }
    }

    async fn row(&mut self, change: RowChange<'_>) -> Result<(), Fault> {
        if self.mode == Mode::Discard {
            return Ok(());
        }
        let role = self.tables.role(change.index);
        if role.gives_orders {
            // also what Kafka has already: orders are carried out with the transaction's end
            self.signals.take(&change);
        }
        if !role.is_captured {
            return Ok(());
        }
        // What is published already is remembered too: what follows must be completed as it was.
        let mut siblings = self.siblings.take().unwrap_or_default();
        let completed = match self.tables.sibling_rule(change.index) {
            Some(rule) => siblings.pass(&change, rule),
            None => None,
        };
        let row = completed.unwrap_or(change.row);
        let outcome = self.complete_row(RowChange { row, ..change }).await;
        self.siblings = Some(siblings);
        outcome
    }

    async fn complete_row(&mut self, change: RowChange<'_>) -> Result<(), Fault> {
        if self.tables.is_filtered(change.index) {
            return self.filtered_row(change).await;
        }
        if self.is_published(change.sequence) {
            return self.count_again(change.index, change.kind).await;
        }
        self.write_change(&change, 0).await?;
        self.spill_if_full(change.sequence).await
    }

    async fn filtered_row(&mut self, change: RowChange<'_>) -> Result<(), Fault> {
        let mut scratch = Vec::new();
        let changes = self.filter(change, &mut scratch).await?;
        if self.is_published(change.sequence) {
            for change in changes.iter().flatten() {
                self.count_again(change.index, change.kind).await?;
            }
            return Ok(());
        }
        let [Some(first), second] = &changes else { return Ok(()) };
        self.write_change(first, 0).await?;
        if let Some(second) = second {
            self.write_change(second, PARTS).await?;
        }
        self.spill_if_full(change.sequence).await
    }

    /// A change of the open transaction; `first_part`: the number of its first record among those of
    /// the message.
    async fn write_change(&mut self, change: &RowChange<'_>, first_part: u32) -> Result<(), Fault> {
        if change.kind == ChangeKind::FoundOut {
            self.check_retelling(change.index).await?;
        }
        let reread = match change.kind {
            ChangeKind::KeyChange if self.tables.reselects() => self.reread(change).await?,
            _ => None,
        };
        let row = reread.as_ref().map_or(change.row, |reread| reread.image(&change.row));
        self.write(&RowChange { row, ..*change }, first_part, SnapshotMarker::Streamed).await
    }

    /// Reads what the create of a changed key would have markers for.
    async fn reread(&mut self, change: &RowChange<'_>) -> Result<Option<Reread>, Fault> {
        let table = self.tables.open(change.index, self.stage).await?;
        let columns: Vec<usize> = table.lacking(change.kind, &change.row).collect();
        if columns.is_empty() {
            return Ok(None);
        }
        self.tables.reselect(change.index, &change.row, columns).await
    }

    /// What a change is for those who see only rows of which the table's filter is true.
    async fn filter<'c>(
        &mut self,
        change: RowChange<'c>,
        scratch: &'c mut Vec<Cell>,
    ) -> Result<[Option<RowChange<'c>>; 2], Fault> {
        // A renamed label would be no label of the predicate's.
        if self.tables.has_unknown_label(change.index, &change.row) {
            self.tables.learn_labels(change.index, &change.row).await?;
        }
        let place = format_args!("{}, message {}", self.commit, change.sequence);
        self.tables.filter(change, scratch).map_err(|fault| fault.at_position(place.to_string()))
    }

    async fn truncate(&mut self, truncate: TruncateOutput<'_>) -> Result<(), Fault> {
        self.forget_siblings();
        if self.is_published(truncate.sequence) {
            for table in truncate.relations {
                if self.tables.role(table.index).is_captured {
                    self.count_again(table.index, ChangeKind::Truncate).await?;
                }
            }
            return Ok(());
        }
        for (part, table) in (0..).zip(truncate.relations) {
            if !self.tables.role(table.index).is_captured {
                continue;
            }
            let change = RowChange {
                relation: table.relation,
                index: table.index,
                kind: ChangeKind::Truncate,
                row: RowImage { bytes: &[], before: None, after: None, reread: &[] },
                lsn: truncate.lsn,
                sequence: truncate.sequence,
            };
            self.write(&change, part, SnapshotMarker::Streamed).await?;
        }
        self.spill_if_full(truncate.sequence).await
    }

    /// Encodes a change into the stage. A null that the catalogue did not expect makes a new
    /// version of the table, in which the column is nullable.
    pub(super) async fn write(
        &mut self,
        change: &RowChange<'_>,
        first_part: u32,
        marker: SnapshotMarker,
    ) -> Result<(), Fault> {
        // every column can contradict the catalogue once
        for _ in 0..=self.tables.column_count(change.index) {
            if self.tables.has_unknown_label(change.index, &change.row) {
                self.tables.learn_labels(change.index, &change.row).await?;
            }
            let table = self.tables.open(change.index, self.stage).await?;
            let fields = self.fields.values(change.lsn, marker);
            let event = Event {
                kind: change.kind,
                row: change.row,
                source: &fields.values,
                commit_position: fields.commit_position,
                sequence: change.sequence,
                first_part,
                processed_micros: self.now_micros,
                transaction: None,
            };
            match self.stage.write(table, &event).await {
                Err(fault) if fault.code() == Code::NullUnexpected => {
                    self.tables.allow_null(change.index, &fault)?;
                }
                outcome => return outcome,
            }
        }
        Err(Code::Internal.fault("a null is refused by a nullable column"))
    }

    /// Reads a note of the open transaction; `None`: Kafka has what it says, or it says nothing that
    /// is believed.
    pub(super) fn read_note(&mut self, message: &MessageOutput<'_>) -> Option<Note> {
        if self.is_published(message.sequence) {
            return None;
        }
        self.tables.read_note(message, self.xid)
    }

    /// A message of the open transaction.
    async fn message(&mut self, message: &MessageOutput<'_>) -> Result<(), Fault> {
        if !self.messages.wants(message.prefix) {
            return Ok(());
        }
        if self.is_published(message.sequence) {
            if self.stage.counts_events() && matches!(self.mode, Mode::SkipThrough(_)) {
                let (table, _) = self.messages.prepare(message, self.stage).await?;
                self.stage.count_again(table, ChangeKind::Message);
            }
            return Ok(());
        }
        self.write_message(message).await?;
        self.spill_if_full(message.sequence).await
    }

    /// A message that belongs to no transaction: it stands in the log by itself, and the stream
    /// shows it between those transactions whose commits are before and behind it. So it is a
    /// whole of its own, with a position after it, at which the server goes on behind it: it asks
    /// of messages what it asks of commits, whether their record begins before the position.
    async fn lone_message(&mut self, message: &MessageOutput<'_>) -> Result<(), Fault> {
        if message.lsn <= self.resume {
            return Ok(());
        }
        let is_wanted = self.messages.wants(message.prefix);
        let before = self.record(self.inside);
        self.fields.message(message.lsn, self.now_micros);
        if is_wanted {
            self.write_message(message).await?;
        }
        self.end = self.end.max(message.lsn);
        let end = self.record(self.inside);
        if is_wanted {
            return self.stage.commit(before, end, None).await;
        }
        self.stage.mark(end);
        Ok(())
    }

    async fn write_message(&mut self, message: &MessageOutput<'_>) -> Result<(), Fault> {
        let (table, row) = self.messages.prepare(message, self.stage).await?;
        let fields = self.fields.values(message.lsn, SnapshotMarker::Streamed);
        let event = Event {
            kind: ChangeKind::Message,
            row,
            source: &fields.values,
            commit_position: fields.commit_position,
            sequence: message.sequence,
            first_part: 0,
            processed_micros: self.now_micros,
            transaction: None,
        };
        self.stage.write(table, &event).await
    }

    async fn spill_if_full(&mut self, sequence: u64) -> Result<(), Fault> {
        if self.stage.is_full() {
            let before = self.record(self.held);
            self.held = Some(Inside { commit: self.commit, sequence });
            let inside = self.record(self.held);
            self.stage.spill(before, inside).await?;
        }
        Ok(())
    }

    /// A table is described, anew or as before.
    pub(super) fn described(&mut self, relation: RelationId) {
        if let Some(siblings) = &mut self.siblings {
            siblings.forget_table(relation);
        }
    }

    fn forget_siblings(&mut self) {
        if let Some(siblings) = &mut self.siblings {
            siblings.clear();
        }
    }

    /// A heartbeat is due: it goes out as soon as no transaction is open.
    pub(super) async fn beat(&mut self) -> Result<(), Fault> {
        self.is_beat_due = true;
        self.beat_if_due().await
    }

    async fn beat_if_due(&mut self) -> Result<(), Fault> {
        if !self.is_beat_due || self.mode != Mode::Between {
            return Ok(());
        }
        self.is_beat_due = false;
        let offset = self.record(self.inside);
        let end = self.end.to_string();
        self.stage.heartbeat(self.now_micros, &end, offset).await
    }

    /// A table looks other than it did: that is told as soon as no transaction is open.
    pub(super) async fn look(&mut self, look: Look) -> Result<(), Fault> {
        self.looks.push(look);
        self.tell_looks().await
    }

    async fn tell_looks(&mut self) -> Result<(), Fault> {
        if self.looks.is_empty() || self.mode != Mode::Between {
            return Ok(());
        }
        self.tables.set_time(clock_micros());
        for look in std::mem::take(&mut self.looks) {
            self.tables.take_look(look, self.stage).await?;
        }
        let offset = self.record(self.inside);
        self.stage.commit(offset.clone(), offset, None).await
    }

    async fn commit(&mut self, commit: CommitOutput) -> Result<(), Fault> {
        self.forget_siblings();
        self.fields.commit(commit.end_lsn);
        let mode = std::mem::replace(&mut self.mode, Mode::Between);
        if mode == Mode::Discard {
            return Ok(());
        }
        let held = self.held.take();
        let before = self.record(held);
        if self.inside.is_some_and(|inside| inside.commit <= commit.commit_lsn) {
            self.inside = None;
        }
        self.end = commit.end_lsn;
        self.obey().await?;
        let end = self.record(None);
        self.stage.commit(before, end, Some(commit.commit_micros)).await?;
        self.tell_looks().await?;
        self.beat_if_due().await
    }

    /// Carries out what the rows of the transaction order; it is stored with its end.
    async fn obey(&mut self) -> Result<(), Fault> {
        let signals = self.signals.drain();
        let Some(chunks) = self.chunks.as_mut().filter(|_| !signals.is_empty()) else {
            return Ok(());
        };
        if Box::pin(chunks.obey(signals, self.end)).await? {
            self.stage.accompany(chunks.state()?);
        }
        Ok(())
    }

    fn record(&self, inside: Option<Inside>) -> OffsetRecord {
        let phase = Phase::Streaming { end: self.end };
        let offset = Offset { phase, inside, ..self.offset.clone() };
        OffsetRecord(Arc::from(offset.encode()))
    }
}

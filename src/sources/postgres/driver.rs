//! The source's course: where it stands, what has to happen first, then the stream.
//!
//! ```text
//! no offset ─► publication ─► slot ─► snapshot ─► stream
//! creating ─► drop the half-made slot ─┘
//! snapshot ─► keep our slot, read what is left ─┘
//! streaming ─► compare slot and offset ─► stream
//!                       └ lost, and snapshot.mode=when_needed ─► as with no offset
//! ```
//!
//! Performs what the sans-IO parts ask for. Knows no record format and no Kafka.
//! **Invariants:** nothing is created before the preflight passes; the intent is stored before the
//! slot is created; the stream is not started before the slot was held against the offset.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::Settings;
use super::capture::{Selection, select};
use super::catalogue::{RelationEntry, list_relations};
use super::connection::{Connection, Purpose, ReplicationReader, StreamOptions, identifier};
use super::ddl;
use super::decode::Decoder;
use super::frames::frame_in;
use super::heartbeat::Heart;
use super::incremental::{Incremental, TableWork, Tools, Work};
use super::initial_snapshot::{self, Interrupted, SnapshotTask};
use super::messages::{MessageFilter, Messages};
use super::offset::{Offset, Phase};
use super::preflight;
use super::probe::Probe;
use super::publication::{self, Member, PublicationFacts, PublishedName};
use super::publication_watch::{PublicationWatch, Seen};
use super::publishing::Publishing;
use super::pushdown;
use super::rejoin;
use super::session::ServerVersion;
use super::settings::SnapshotMode;
use super::slot::{self, Standing};
use super::status::{Progress, StatusKeeper, clock_micros};
use super::tables::{DdlCapture, Origin, Tables};
use super::wire::Lsn;
use crate::error::{Code, Fate, Fault};
use crate::observe::SourceMetrics;
use crate::plan::Operation;
use crate::sources::{Heartbeats, Orders, Start};
use crate::stage::{OffsetRecord, Services, Stage};

/// The server answers every status update; if it says nothing for so long it is gone, and the
/// network did not tell. Long enough for a server that is busy with a huge transaction.
const SILENCE: Duration = Duration::from_secs(300);
/// How long an orderly end of the stream may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// Captures until it is told to stop.
///
/// # Errors
/// A fault that ends this attempt. If it is definite it was handed to the publisher too, behind
/// everything that is complete.
pub async fn run<S: Services>(
    settings: Arc<Settings>,
    start: Start,
    mut stage: Stage<S>,
) -> Result<(), Fault> {
    let mut stop = start.stop.clone();
    let own = Arc::clone(&settings);
    let course = async {
        let outcome = Course::begin(settings, start, &mut stage).await;
        let outcome = outcome.map_err(|fault| rejoin::again_if_wanted(&own, fault));
        if let Err(fault) = &outcome {
            settle(&mut stage, fault).await;
        }
        // the publisher commits what is complete when the queue ends
        drop(stage);
        match outcome? {
            Some(Streamed { reader, status }) => status.leave(reader).await?,
            None => return Ok(()),
        }
        if own.slot_use.goes_on_stop { rejoin::drop_slot(&own).await } else { Ok(()) }
    };
    tokio::select! {
        outcome = course => outcome,
        // the course ends by itself when it is told to stop, unless it waits for something slow
        () = stopped_for(&mut stop, FAREWELL) => Ok(()),
    }
}

async fn stopped_for(stop: &mut watch::Receiver<bool>, patience: Duration) {
    told_to_stop(stop).await;
    tokio::time::sleep(patience).await;
}

/// Waits for the order to stop. A sender that is gone is one as well.
pub(super) async fn told_to_stop(stop: &mut watch::Receiver<bool>) {
    while !*stop.borrow_and_update() {
        if stop.changed().await.is_err() {
            return;
        }
    }
}

/// What is complete goes out before the attempt ends.
async fn settle<S: Services>(stage: &mut Stage<S>, fault: &Fault) {
    let outcome = match fault.fate() {
        Fate::Halt => stage.fail(fault.clone()).await,
        // the open transaction is not committed half: with the queue's end it is withdrawn
        Fate::Retry => tokio::time::timeout(FAREWELL, stage.hand_over()).await.unwrap_or(Ok(())),
    };
    if let Err(other) = outcome {
        tracing::debug!(error = %other, "the publisher ended first");
    }
}

/// A stream that ended because that was wanted.
struct Streamed {
    reader: ReplicationReader,
    status: StatusKeeper,
}

struct Course<'a, S> {
    settings: Arc<Settings>,
    stage: &'a mut Stage<S>,
    tables: Tables,
    committed: watch::Receiver<Option<OffsetRecord>>,
    heartbeats: Option<Heartbeats>,
    stop: watch::Receiver<bool>,
    metrics: Arc<SourceMetrics>,
    orders: Orders,
    /// What is to be read beside the stream.
    work: Work,
    /// What offsets of this course have in common.
    template: Offset,
    /// The names under which the publication's rows come.
    published: Vec<PublishedName>,
    /// The publication publishes stored generated columns.
    generated: bool,
    /// The tables that it lists.
    members: Vec<Member>,
    /// What told the publication from others before this course looked after it: fingerprint, stamp.
    found: Option<(u64, u64)>,
    /// The tables that are captured.
    captured: Vec<RelationEntry>,
    /// Those of them that it did not carry then.
    joined: HashSet<u32>,
    /// The end of what was published before this course began, if it goes on behind that.
    resumed_at: Option<Lsn>,
    /// Where it was then.
    resumed: Option<Offset>,
    /// The first attempt since the task was started.
    is_first: bool,
}

impl<'a, S: Services> Course<'a, S> {
    async fn begin(
        settings: Arc<Settings>,
        start: Start,
        stage: &'a mut Stage<S>,
    ) -> Result<Option<Streamed>, Fault> {
        let mut stored =
            start.offset.as_ref().map(|record| Offset::decode(&record.0)).transpose()?;
        if let Some(stored) = &stored
            && stored.slot != settings.slot_name
        {
            return Err(Code::SlotMismatch.fault(format!(
                "the stored offset belongs to the replication slot \"{}\", slot.name is \"{}\"",
                stored.slot, settings.slot_name
            )));
        }
        let mut connection = Connection::open(&settings.connection, Purpose::Replication).await?;
        let examined = slot::examine(&mut connection, &settings.slot_name, stored.as_ref()).await?;
        let standing =
            rejoin::hold_against(&settings, &mut connection, &mut stored, examined).await?;
        let origin = Origin {
            system: standing.system.system_id.to_string(),
            database: standing.system.database.clone(),
        };
        let tables = Tables::new(Arc::clone(&settings), origin, &start.states, stage.metrics())?;
        let template = Offset {
            system_id: standing.system.system_id,
            timeline: standing.system.timeline,
            slot: settings.slot_name.clone(),
            nonce: nonce(),
            phase: Phase::Creating,
            inside: None,
            settings_fingerprint: settings.ddl.mix(
                settings
                    .row_filters
                    .mix(settings.messages.mix(stage.plan_settings().fingerprint())),
            ),
            publication_fingerprint: 0,
            publication_stamp: 0,
        };
        let work = Work::find(&start.states)?;
        let Start { committed, heartbeats, stop, metrics, orders, is_first, .. } = start;
        work.show(&metrics);
        metrics.incremental.set_recalled();
        let course = Self {
            settings,
            stage,
            tables,
            committed,
            heartbeats,
            stop,
            metrics,
            orders,
            work,
            template,
            published: Vec::new(),
            generated: false,
            members: Vec::new(),
            found: None,
            captured: Vec::new(),
            joined: HashSet::new(),
            resumed_at: None,
            resumed: None,
            is_first,
        };
        course.follow(connection, standing, stored).await
    }

    async fn follow(
        mut self,
        mut connection: Connection,
        standing: Standing,
        stored: Option<Offset>,
    ) -> Result<Option<Streamed>, Fault> {
        let phase = stored.as_ref().map(|offset| offset.phase);
        let offset = match phase {
            Some(Phase::Streaming { end }) => {
                self.resumed_at = Some(end);
                self.resumed.clone_from(&stored);
                self.resume(&mut connection, stored, end).await?
            }
            Some(Phase::SnapshotDone { .. })
                if self.settings.snapshot_mode == SnapshotMode::InitialOnly =>
            {
                tracing::info!(
                    "the initial snapshot is done; snapshot.mode=initial_only ends here"
                );
                return self.idle().await;
            }
            _ => {
                let Some(offset) = self.start_anew(&mut connection, standing, stored).await? else {
                    return self.idle().await;
                };
                offset
            }
        };
        if self.settings.slot_use.fails_over && self.settings.trial.is_none() {
            slot::let_fail_over(&mut connection, &self.settings.slot_name).await?;
        }
        self.stream(connection, offset).await.map(Some)
    }

    /// Looks at everything that may have changed since the stream was read last.
    async fn resume(
        &mut self,
        connection: &mut Connection,
        stored: Option<Offset>,
        end: Lsn,
    ) -> Result<Offset, Fault> {
        self.tables.refuse_changed_filters(Some(end)).await?;
        let generated = match self.publish(true).await {
            Ok(generated) => generated,
            Err(fault) => return Err(Box::pin(self.told(fault, stored.as_ref())).await?),
        };
        let is_learnt = Box::pin(self.tables.look_at_filters(generated, self.stage)).await?;
        let now = pushdown::position(connection).await?;
        let place = Some((end, now));
        let is_noted = self.tables.note_pushdown(self.stage, &self.members, place)?;
        Box::pin(self.refuse_altered(stored.as_ref())).await?;
        let is_opened = Box::pin(self.tables.open_control(self.stage)).await?;
        let is_other = is_learnt || is_noted || is_opened;
        let here = stored.as_ref().filter(|_| is_other).map(Offset::encode);
        let offset = self.check_half_published(stored)?;
        if let Some(here) = here {
            // a source that is quiet has no transaction with which it would be stored
            self.stage.store(Some(OffsetRecord(Arc::from(here)))).await?;
        }
        Ok(offset)
    }

    /// A publication that was altered while nobody looked, and says the same again, stops once: who
    /// starts the task again has read why.
    async fn refuse_altered(&mut self, stored: Option<&Offset>) -> Result<(), Fault> {
        let Some(stored) = stored.filter(|stored| stored.publication_stamp != 0) else {
            return Ok(());
        };
        let now = &self.template;
        if stored.publication_fingerprint != now.publication_fingerprint
            || stored.publication_stamp == now.publication_stamp
        {
            return Ok(());
        }
        let fault = publication::altered(&self.settings.publication_name);
        Err(Box::pin(self.told(fault, Some(stored))).await?)
    }

    /// Whoever starts the task again has read what is wrong with the publication: how it was altered
    /// until then is not told once more.
    async fn told(&mut self, fault: Fault, stored: Option<&Offset>) -> Result<Fault, Fault> {
        let is_of_publication =
            matches!(fault.code(), Code::PublicationChanged | Code::FilterPushdownDrift);
        if let Some(stored) = stored.filter(|one| is_of_publication && one.publication_stamp != 0) {
            let known = Offset { publication_stamp: 0, ..stored.clone() };
            let record = OffsetRecord(Arc::from(known.encode()));
            self.stage.store(Some(record)).await?;
        }
        Ok(fault)
    }

    /// A transaction that was split is only finished by what began it.
    fn check_half_published(&self, stored: Option<Offset>) -> Result<Offset, Fault> {
        let stored = stored.ok_or_else(|| Code::Internal.fault("an offset is missing"))?;
        let settings_changed = stored.settings_fingerprint != self.template.settings_fingerprint;
        let publication_changed =
            stored.publication_fingerprint != self.template.publication_fingerprint;
        if let Some(inside) = stored.inside
            && (settings_changed || publication_changed)
        {
            let what = if settings_changed { "configuration" } else { "publication" };
            return Err(Code::OffsetConfigChanged
                .fault(format!("a transaction is half published, and the {what} changed since"))
                .at_position(inside.commit.to_string()));
        }
        Ok(Offset { phase: stored.phase, inside: stored.inside, ..self.template.clone() })
    }

    /// The way from nothing to the stream. `None`: no stream is wanted.
    async fn start_anew(
        &mut self,
        connection: &mut Connection,
        standing: Standing,
        stored: Option<Offset>,
    ) -> Result<Option<Offset>, Fault> {
        let ours = stored.as_ref().is_some_and(|stored| stored.phase == Phase::Creating);
        let premade = match standing.slot {
            Some(_) if ours => {
                tracing::warn!(
                    slot = self.settings.slot_name,
                    "an earlier start was interrupted; its replication slot is dropped and made anew"
                );
                slot::drop_when_free(connection, &self.settings).await?;
                None
            }
            other => other,
        };
        combine(&preflight::check_beside(&self.settings, true).await)?;
        // what an earlier attempt published is not taken back
        self.tables.refuse_changed_filters(None).await?;
        let generated = self.publish(premade.is_some()).await?;
        Box::pin(self.tables.look_at_filters(generated, self.stage)).await?;
        let interrupted = self.interrupted(stored.as_ref().filter(|_| premade.is_some()));
        // rows are left alone that were published by the filter that the publication had then
        let place = match interrupted.as_ref().filter(|one| one.is_intact) {
            Some(one) => Some((one.begin, pushdown::position(connection).await?)),
            None => None,
        };
        self.tables.note_pushdown(self.stage, &self.members, place)?;
        let task = SnapshotTask {
            settings: &self.settings,
            stage: self.stage,
            tables: &mut self.tables,
            work: &mut self.work,
            template: &self.template,
            generated,
            interrupted,
            stop: self.stop.clone(),
            metrics: &self.metrics,
        };
        let Some(phase) = initial_snapshot::run(task, connection, premade).await? else {
            return Ok(None);
        };
        self.tables.reset();
        Ok(Some(Offset { phase, ..self.template.clone() }))
    }

    /// What is known of a first snapshot that was interrupted: rows of it are visible, and only the
    /// slot that it began with has the deletes since. So the stream begins where that one did.
    fn interrupted(&mut self, stored: Option<&Offset>) -> Option<Interrupted> {
        let stored = stored?;
        let Phase::Snapshot { consistent_point: begin, has_slot: true } = stored.phase else {
            return None;
        };
        let then = (stored.publication_fingerprint, stored.publication_stamp);
        Some(Interrupted {
            begin,
            is_intact: stored.publication_stamp != 0 && self.found == Some(then),
            captured: std::mem::take(&mut self.captured),
            joined: std::mem::take(&mut self.joined),
            reads_all: self.is_first && self.settings.snapshot_mode == SnapshotMode::Always,
        })
    }

    /// Sees to the publication; says whether it publishes stored generated columns.
    async fn publish(&mut self, slot_exists: bool) -> Result<bool, Fault> {
        let settings = &Arc::clone(&self.settings);
        let mut control = Connection::open(&settings.connection, Purpose::Control).await?;
        let relations = list_relations(&mut control).await?;
        let via_root = settings.publish_via_partition_root;
        let mut selection = match select(&relations, &settings.tables, via_root) {
            Ok(selection) => selection,
            Err(faults) => return combine(&faults).map(|()| false),
        };
        self.refuse_gaps(&mut control, &selection, slot_exists).await?;
        let found = publication::read_publication(&mut control, &settings.publication_name).await?;
        self.found = found.as_ref().map(|facts| (facts.fingerprint(), facts.stamp()));
        let is_new = |table: &&RelationEntry| !found.as_ref().is_some_and(|one| one.carries(table));
        self.joined = selection.captured.iter().filter(is_new).map(|table| table.oid).collect();
        combine(&pushdown::want(&mut control, settings, &mut selection, found.as_ref()).await?)?;
        let are_read = self.queue_joining(&selection, found.as_ref(), control.version()).await?;
        let ensured = publication::ensure(&mut control, settings, &selection, slot_exists).await;
        let ensured = match ensured {
            Ok(ensured) => ensured,
            Err(faults) => return combine(&faults).map(|()| false),
        };
        control.close().await;
        // what was not streamed yet is read with the others
        let is_joining = self.resumed.is_some() || !settings.snapshot_mode.reads_rows();
        if slot_exists && is_joining && !are_read && !ensured.added.is_empty() {
            tracing::warn!(
                publication = settings.publication_name,
                tables = ensured.added.join(", "),
                "tables were added; rows that they had before are not in the stream: \
                 POST /connectors/{{name}}/snapshots reads them"
            );
        }
        self.note_captured(&selection)?;
        self.captured.clone_from(&selection.captured);
        self.tell_needless(&selection, &ensured.facts);
        self.template.publication_fingerprint = ensured.facts.fingerprint();
        self.template.publication_stamp = ensured.facts.stamp();
        self.published = ensured.facts.names;
        self.generated = ensured.facts.generated;
        self.members = ensured.facts.members;
        Ok(ensured.facts.generated)
    }

    /// Notes which tables are to be read beside the stream, before the publication is altered:
    /// afterwards nobody could tell that they are new. Says whether there are any.
    async fn queue_joining(
        &mut self,
        selection: &Selection,
        found: Option<&PublicationFacts>,
        version: ServerVersion,
    ) -> Result<bool, Fault> {
        let (Some(offset), Some(facts)) = (&self.resumed, found) else { return Ok(false) };
        let server = (version, self.is_first);
        let tables = {
            let has_left = |oid| self.tables.has_left(oid);
            let known = (&self.work, &has_left as &dyn Fn(u32) -> bool);
            rejoin::joining(&self.settings, server, (selection, facts), known)?
        };
        if tables.is_empty() {
            return Ok(false);
        }
        let names: Vec<_> = tables.iter().map(TableWork::qualified_name).collect();
        let record = OffsetRecord(Arc::from(offset.encode()));
        self.work.add(tables, &format!("{:x}", nonce()))?;
        self.stage.remember(self.work.state()?);
        self.stage.store(Some(record)).await?;
        tracing::info!(tables = names.join(", "), "tables are read beside the stream");
        Ok(true)
    }

    /// What comes back has missed what was written meanwhile.
    fn note_captured(&mut self, selection: &Selection) -> Result<(), Fault> {
        let back = self.tables.note_captured(selection, self.stage)?;
        for name in back.iter().filter(|_| self.resumed.is_some()) {
            if self.work.tables().iter().any(|table| table.qualified_name() == *name) {
                tracing::warn!(
                    table = name,
                    "the table was not captured for a while; its rows are read beside the stream, and \
                     those that were deleted meanwhile stay in the topic"
                );
            } else {
                tracing::warn!(
                    table = name,
                    "the table was not captured for a while, and what was written to it meanwhile is \
                     not in the stream: POST /connectors/{{name}}/snapshots reads its rows"
                );
            }
        }
        Ok(())
    }

    /// What was captured and is not any more costs the server something as long as the publication
    /// has it. It stays there: whoever else reads the publication would lose it.
    fn tell_needless(&self, selection: &Selection, facts: &PublicationFacts) {
        let is_needless = |member: &&Member| {
            self.tables.was_captured(member.oid, &member.namespace, &member.name)
                && !selection.published.iter().any(|table| table.oid == member.oid)
        };
        for member in facts.members.iter().filter(is_needless) {
            let publication = identifier(&self.settings.publication_name);
            let (schema, name) = (identifier(&member.namespace), identifier(&member.name));
            tracing::info!(
                "\"{}.{}\" is not captured any more and stays in the publication; if nobody else \
                 reads it: ALTER PUBLICATION {publication} DROP TABLE {schema}.{name};",
                member.namespace,
                member.name
            );
        }
    }

    /// A table that was captured and is not published any more has lost what was written meanwhile;
    /// publishing it again would hide that.
    async fn refuse_gaps(
        &self,
        control: &mut Connection,
        selection: &Selection,
        slot_exists: bool,
    ) -> Result<(), Fault> {
        let settings = &self.settings;
        let facts = publication::read_publication(control, &settings.publication_name).await?;
        let Some(facts) = facts.filter(|_| slot_exists) else { return Ok(()) };
        let lost = selection.captured.iter().find(|table| {
            !facts.carries(table)
                && self.tables.was_captured(table.oid, &table.namespace, &table.name)
        });
        let Some(table) = lost else { return Ok(()) };
        let name = table.qualified_name();
        Err(Code::PublicationChanged
            .fault(format!(
                "the publication \"{}\" does not carry \"{name}\" any more; \
                 what was written to it since is not in the stream",
                settings.publication_name
            ))
            .at_table(name)
            .hint(
                "Drop the slot and delete the connector's offset to snapshot anew; or accept the \
                 loss by adding the table to the publication yourself, and restart the task.",
            ))
    }

    /// Nothing more to do until told to stop.
    async fn idle(mut self) -> Result<Option<Streamed>, Fault> {
        told_to_stop(&mut self.stop).await;
        Ok(None)
    }

    /// Whether the server is asked for messages: it can, and somebody may want them.
    fn wants_messages(&self, version: ServerVersion) -> Result<bool, Fault> {
        self.settings.messages.check(version)?;
        let skipped = self.stage.plan_settings().skipped.contains(Operation::Message);
        let is_wanted = !skipped || self.settings.ddl.takes_notes();
        Ok(is_wanted && MessageFilter::are_sent_by(version))
    }

    /// If notes are wanted: sees that the event triggers are there, and learns whose to believe.
    async fn take_notes(&mut self) -> Result<(), Fault> {
        let settings = &self.settings;
        if !settings.ddl.takes_notes() {
            return Ok(());
        }
        let mut control = Connection::open(&settings.connection, Purpose::Control).await?;
        ddl::require(&mut control, &settings.connection.user).await?;
        let key = ddl::read_key(&mut control).await?;
        control.close().await;
        self.tables.ddl = Some(DdlCapture::new(key, self.generated));
        Ok(())
    }

    /// What is read beside the stream.
    async fn chunks(&mut self, progress: &Progress) -> Incremental {
        let tools = Tools {
            settings: Arc::clone(&self.settings),
            generated: self.generated,
            metrics: Arc::clone(&self.metrics),
            progress: progress.clone(),
            stop: self.stop.clone(),
        };
        Incremental::begin(tools, std::mem::take(&mut self.work), &self.orders).await
    }

    /// Looks after the publication.
    fn watch(&mut self) -> PublicationWatch {
        let seen = Seen {
            fingerprint: self.template.publication_fingerprint,
            stamp: self.template.publication_stamp,
            names: std::mem::take(&mut self.published),
            members: std::mem::take(&mut self.members),
        };
        PublicationWatch::start(Arc::clone(&self.settings), seen, self.tables.watched.clone())
    }

    async fn stream(mut self, connection: Connection, offset: Offset) -> Result<Streamed, Fault> {
        let Phase::Streaming { end } = offset.phase else {
            return Err(Code::Internal.fault("only a streaming offset can be streamed from"));
        };
        self.take_notes().await?;
        let messages = self.wants_messages(connection.version())?;
        let options = StreamOptions { publication: &self.settings.publication_name, messages };
        let stream = slot::attach(connection, &self.settings, end, &options, &self.metrics).await?;
        tracing::info!(slot = self.settings.slot_name, position = %end, "streaming");
        let _connected = self.metrics.connect();
        self.settings.trial.iter().for_each(|trial| trial.streaming.notify_one());
        let (mut reader, writer) = stream.into_split();
        let mut status =
            StatusKeeper::start(writer, self.committed.clone(), self.settings.status_interval, end);
        let mut watch = self.watch();
        let chunks = self.chunks(status.progress()).await;
        let mut heart = Heart::start(&self.settings, self.heartbeats.take());
        let mut probe = Probe::start(&self.settings, self.tables.sights());
        let mut heard = Instant::now();
        let mut decoder = Decoder::new();
        let mut publishing = Publishing::resume(self.stage, &mut self.tables, offset, end);
        publishing.messages = Messages::new(self.settings.messages.clone());
        publishing.chunks = Some(Box::new(chunks));
        self.resumed_at.iter().for_each(|end| publishing.fields.commit(*end));
        loop {
            tokio::select! {
                biased;
                () = told_to_stop(&mut self.stop) => break,
                fault = status.broken() => return Err(fault),
                fault = watch.changed() => return Err(publishing.told(fault).await),
                () = publishing.chunks_call() => {}
                () = heart.beat() => {
                    publishing.now_micros = clock_micros();
                    publishing.beat().await?;
                }
                look = probe.next() => publishing.look(look).await?,
                frame = reader.next() => match frame.map_err(|fault| decoder.unsent(fault))? {
                    Some(frame) => {
                        heard = Instant::now();
                        publishing.now_micros = clock_micros();
                        frame_in(&mut decoder, &mut publishing, status.progress(), frame).await?;
                    }
                    None => return Err(Code::StreamStopped.fault("the server ended the stream")),
                },
                () = tokio::time::sleep_until(heard + SILENCE) => {
                    return Err(Code::SourceUnreachable.fault(format!(
                        "the server has said nothing for {} s, though it was asked to",
                        SILENCE.as_secs()
                    )));
                }
            }
            // what has arrived already is taken without looking at anything else
            while let Some(frame) = reader.try_next().map_err(|fault| decoder.unsent(fault))? {
                frame_in(&mut decoder, &mut publishing, status.progress(), frame).await?;
            }
            publishing.stage.hand_over().await?;
            publishing.chunks_between().await?;
        }
        publishing.stage.hand_over().await?;
        Ok(Streamed { reader, status })
    }
}

/// All faults as one; none is no fault.
pub(super) fn combine(faults: &[Fault]) -> Result<(), Fault> {
    match faults {
        [] => Ok(()),
        [only] => Err(only.clone()),
        [first, ..] => Err(first.code().fault_of_many(faults)),
    }
}

/// Tells this course's attempt at creating a slot from others.
fn nonce() -> u64 {
    clock_micros().cast_unsigned() ^ (u64::from(std::process::id()) << 40)
}

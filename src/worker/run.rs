//! A task's life: attempts, waits between them, what is told of it.
//!
//! Each attempt builds publisher, stage and source anew; the stored offset decides where it goes
//! on. This is the only place that asks for a fault's fate. **Invariant:** an attempt has ended,
//! publisher and source included, before the next one begins.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::doubt::Doubt;
use super::lifecycle::{Backoff, Target, TaskState};
use super::services::{LiveServices, Registries};
use super::task::TaskControl;
use crate::config::TypedConnector;
use crate::convert::Converters;
use crate::error::{Code, Fate, Fault};
use crate::kafka::{Publisher, SizeLimits, Stored, TopicList, Topics, WrittenTopics, channel};
use crate::observe::{StageMetrics, TaskMetrics, TaskRegistration};
use crate::sources;
use crate::stage::{Stage, StageSettings};

/// Complete transactions are handed over at the latest when so many bytes are there.
const HAND_OVER_BYTES: usize = 256 << 10;
/// An attempt that lasted so long did well: the next wait is the first one again.
const DID_WELL: Duration = Duration::from_secs(60);
/// How long publisher and source may take to end.
const GRACE: Duration = Duration::from_secs(15);

/// Runs a connector's task until it is told to stop.
pub(super) async fn run(
    connector: Arc<TypedConnector>,
    written: WrittenTopics,
    control: TaskControl,
    task: TaskRegistration,
) {
    // at the level of what is always shown: each line of the log says whose it is
    let span = tracing::error_span!("connector", name = connector.name);
    // as long as the task lives, not only while it runs; ends with the set
    let mut health = JoinSet::new();
    let watching = watch_health(Arc::clone(&connector), Arc::clone(&task.metrics));
    health.spawn(watching.instrument(span.clone()));
    live(&connector, control, (&task, &written)).instrument(span).await;
}

async fn watch_health(connector: Arc<TypedConnector>, metrics: Arc<TaskMetrics>) {
    let caught_up = |micros| metrics.publisher.caught_up(micros);
    connector.source.watch_health(&connector.name, &metrics.source, &caught_up).await;
}

/// Another prefix is another place for everything, and the change would go unnoticed.
fn refuse_elsewhere(stored: &Stored, connector: &TypedConnector) -> Result<(), Fault> {
    match &stored.elsewhere {
        Some(other) if stored.offset.is_none() => Err(Code::OffsetElsewhere.fault(format!(
            "the connector has published with topic.prefix={other}, and has nothing with \
             topic.prefix={}",
            connector.kafka.source_partition
        ))),
        _ => Ok(()),
    }
}

async fn live(
    connector: &TypedConnector,
    mut control: TaskControl,
    (task, written): (&TaskRegistration, &WrittenTopics),
) {
    let retry = connector.retry;
    let mut backoff = Backoff::new(retry.first_wait, retry.longest_wait);
    let mut failures = 0;
    let mut doubt = Doubt::default();
    let mut is_first = true;
    loop {
        match wait_for_work(&mut control).await {
            Target::Stopped => return,
            Target::Started | Target::Paused => {}
        }
        let began = Instant::now();
        let tried = attempt(connector, &mut control, (task, written), (is_first, &mut doubt)).await;
        is_first = false;
        let Err(fault) = tried else { continue };
        task.metrics.fault(&fault, wall_clock_micros());
        if began.elapsed() > DID_WELL {
            backoff.reset();
            failures = 0;
        }
        failures += 1;
        let is_over = doubt.is_over(&fault) || retry.limit.is_some_and(|limit| failures > limit);
        if fault.fate() == Fate::Halt || is_over {
            tracing::error!(connector = connector.name, error = %fault, "the task failed");
            control.state.send_replace(TaskState::Failed(fault));
            if control.target.wait_for(|target| *target == Target::Stopped).await.is_err() {
                tracing::debug!("the task's owner is gone");
            }
            return;
        }
        let wait = backoff.advance();
        tracing::warn!(
            connector = connector.name,
            error = %fault,
            wait_ms = wait.as_millis(),
            "the task starts again"
        );
        control.state.send_replace(TaskState::Running { waiting: Some(fault) });
        let stopped = control.target.wait_for(|target| *target != Target::Started);
        drop(tokio::time::timeout(wait, stopped).await);
    }
}

/// Waits while the connector is paused.
async fn wait_for_work(control: &mut TaskControl) -> Target {
    loop {
        let target = *control.target.borrow_and_update();
        match target {
            Target::Started | Target::Stopped => return target,
            Target::Paused => {
                control.state.send_replace(TaskState::Paused);
            }
        }
        if control.target.changed().await.is_err() {
            return Target::Stopped;
        }
    }
}

/// One attempt; `Ok`: it ended because something else is wanted.
async fn attempt(
    connector: &TypedConnector,
    control: &mut TaskControl,
    (task, written): (&TaskRegistration, &WrittenTopics),
    (is_first, doubt): (bool, &mut Doubt),
) -> Result<(), Fault> {
    let parts = tokio::select! {
        parts = Parts::build(connector, &task.metrics, (written, &control.orders)) => {
            parts.inspect_err(|_| task.worker().tasks_refused.add(1))?
        }
        () = not_started(&mut control.target) => return Ok(()),
    };
    doubt.begin(parts.start.offset.as_ref());
    task.worker().tasks_started.add(1);
    control.state.send_replace(TaskState::Running { waiting: None });
    let parts = Parts { start: sources::Start { is_first, ..parts.start }, ..parts };
    parts.run(connector, control).await
}

async fn not_started(target: &mut watch::Receiver<Target>) {
    // an owner that is gone wants nothing any more
    drop(target.wait_for(|target| *target != Target::Started).await);
}

struct Parts {
    publisher: Publisher,
    stage: Stage<LiveServices>,
    start: sources::Start,
    stop: watch::Sender<bool>,
    registries: Registries,
}

impl Parts {
    async fn build(
        connector: &TypedConnector,
        metrics: &TaskMetrics,
        (written, orders): (&WrittenTopics, &sources::Orders),
    ) -> Result<Self, Fault> {
        let registries = Registries::new(&connector.key, &connector.value, &metrics.registry)?;
        let topics = Arc::new(Topics::connect(&connector.kafka).await?);
        let list = TopicList::noting(written.clone());
        let (sender, receiver) = channel(connector.queue_bytes);
        let counts = Arc::clone(&metrics.publisher);
        let publisher = Publisher::start(&connector.kafka, list.clone(), receiver, counts).await?;
        let stored = publisher.stored().await?;
        refuse_elsewhere(&stored, connector)?;
        let settings = stage_settings(connector, Arc::clone(&metrics.stage));
        let services = LiveServices::new(registries.clone(), topics);
        let stage = Stage::new(settings, services, list, sender);
        let (stop, stop_receiver) = watch::channel(false);
        let start = sources::Start {
            is_first: true,
            offset: stored.offset,
            states: stored.states,
            committed: publisher.committed(),
            heartbeats: connector.heartbeats.clone(),
            stop: stop_receiver,
            metrics: Arc::clone(&metrics.source),
            orders: Arc::clone(orders),
        };
        Ok(Self { publisher, stage, start, stop, registries })
    }

    async fn run(self, connector: &TypedConnector, control: &mut TaskControl) -> Result<(), Fault> {
        let Self { mut publisher, stage, start, stop, registries } = self;
        start.metrics.wait_for(None);
        let waiting = start.metrics.waiting();
        let mut source = Box::pin(connector.source.run(start, stage));
        let watching = async {
            tokio::join!(
                watch_registries(&registries, &control.state),
                watch_source(waiting, &control.state)
            );
        };
        tokio::pin!(watching);
        let ended = tokio::select! {
            outcome = &mut source => Ended::Source(outcome),
            outcome = publisher.ended() => Ended::Publisher(outcome),
            () = not_started(&mut control.target) => Ended::Told,
            () = &mut watching => Ended::Told,
        };
        stop.send_replace(true);
        match ended {
            Ended::Publisher(outcome) => {
                drop(source);
                outcome
            }
            Ended::Source(outcome) => {
                drop(source);
                conclude(outcome, publisher).await
            }
            Ended::Told => {
                let outcome = tokio::time::timeout(GRACE, source).await.unwrap_or(Ok(()));
                conclude(outcome, publisher).await
            }
        }
    }
}

/// A random text for each attempt, in the form of a UUID.
fn run_id() -> String {
    let random = || RandomState::new().build_hasher().finish();
    let (high, low) = (random(), random());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        (low >> 48) & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

/// What the connector's stage is told.
pub(super) fn stage_settings(
    connector: &TypedConnector,
    metrics: Arc<StageMetrics>,
) -> StageSettings {
    let mut plan = connector.plan.clone();
    plan.notices.run_id = run_id();
    StageSettings {
        plan: Arc::new(plan),
        source: connector.source.block(&connector.plan.topic_prefix),
        converters: Converters {
            key: connector.key.converter,
            value: connector.value.converter,
            headers: connector.headers,
        },
        control_topic: Some(connector.schema_changes_topic.clone()),
        stage_bytes: connector.stage_bytes,
        hand_over_bytes: HAND_OVER_BYTES.min(connector.stage_bytes),
        sizes: SizeLimits::new(&connector.kafka),
        metrics,
    }
}

enum Ended {
    Source(Result<(), Fault>),
    Publisher(Result<(), Fault>),
    Told,
}

/// The source is gone, so the publisher ends too. Its fault is the deeper one.
async fn conclude(source: Result<(), Fault>, mut publisher: Publisher) -> Result<(), Fault> {
    match tokio::time::timeout(GRACE, publisher.ended()).await {
        Ok(Err(fault)) => Err(fault),
        Ok(Ok(())) => source,
        Err(_elapsed) => source.and(Err(Code::KafkaUnreachable
            .fault("the publisher did not end in time; what it held is read again"))),
    }
}

/// The wall clock, microseconds since the epoch; only for what is counted.
#[expect(clippy::disallowed_methods, reason = "this driver is where the clock is read")]
fn wall_clock_micros() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_micros()).ok())
        .unwrap_or(0)
}

/// Shows in the state what the source waits for. Never ends.
async fn watch_source(
    mut waiting: watch::Receiver<Option<Fault>>,
    state: &watch::Sender<TaskState>,
) {
    while waiting.changed().await.is_ok() {
        let fault = waiting.borrow_and_update().clone();
        state.send_replace(TaskState::Running { waiting: fault });
    }
    std::future::pending::<()>().await;
}

/// Shows in the state that a registry is waited for. Never ends.
async fn watch_registries(registries: &Registries, state: &watch::Sender<TaskState>) {
    let Some(registry) = registries.all().next() else {
        return std::future::pending().await;
    };
    let mut waiting = registry.waiting();
    loop {
        if waiting.changed().await.is_err() {
            return std::future::pending().await;
        }
        let fault = waiting.borrow_and_update().as_ref().map(|waiting| {
            Code::RegistryUnreachable.fault(format!(
                "waiting for the registry ({} attempts): {}: {}",
                waiting.attempts, waiting.what, waiting.cause
            ))
        });
        state.send_replace(TaskState::Running { waiting: fault });
    }
}

//! One process runs all connectors; their configurations live in a local directory.
//!
//! **Invariants:** operations that change a connector are serialised; neither reads nor the
//! operations of other connectors wait for them. Nothing is started once the worker shuts down.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::store::{Kept, Store};
use super::{ConnectorInfo, ConnectorStatus, HerderError, Removed};
use crate::config::{ConnectorConfig, Validation};
use crate::error::{Code, Fate, Fault};
use crate::worker::{
    ChunkProgress, OrderDesk, Runtime, SnapshotAction, SnapshotRequest, Target, TaskHandle,
    TaskState, WrittenTopics, foreseen, row_filters,
};

/// How long a task may take to commit and leave when it is stopped.
const GRACE: Duration = Duration::from_secs(20);

/// The herder of a standalone worker.
#[derive(Debug)]
pub struct Standalone {
    runtime: Arc<dyn Runtime>,
    store: Store,
    connectors: Mutex<BTreeMap<String, Entry>>,
    turns: Turns,
    /// Set while the connectors are locked.
    shuts_down: AtomicBool,
}

#[derive(Debug)]
struct Entry {
    config: ConnectorConfig,
    target: Target,
    task: Slot,
    /// Kept over restarts and new configurations.
    written: WrittenTopics,
}

/// What stands where a connector's task would be.
#[derive(Debug)]
enum Slot {
    /// No task: the connector is stopped, or between two tasks.
    Empty,
    /// The task.
    Task(TaskHandle),
    /// The configuration could not be started.
    Refused(Fault),
}

/// What a configuration is put in the place of.
#[derive(Clone, Copy)]
enum Expected<'a> {
    /// There is no connector of the name; its wanted state.
    Nothing(Target),
    /// There is none, or any.
    NoneOrAny,
    /// There is one.
    Any,
    /// There is one with this configuration.
    This(&'a ConnectorConfig),
}

/// What became of a configuration.
enum Put {
    Created,
    Replaced,
    /// Another one than the expected was there.
    Overtaken,
}

/// One operation at a time for each name.
#[derive(Debug, Default)]
struct Turns(Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>);

impl Turns {
    /// Waits until it is its turn, which ends as the answer is dropped.
    async fn of(&self, name: &str) -> tokio::sync::OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // nobody has or waits for those
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(name.to_owned()).or_default())
        };
        turn.lock_owned().await
    }
}

impl Standalone {
    /// Opens the store and starts every connector in it.
    ///
    /// # Errors
    /// The store cannot be read. A connector that cannot be started is FAILED, not an error.
    pub fn open(runtime: Arc<dyn Runtime>, store: Store) -> Result<Self, Fault> {
        let kept = store.load()?;
        let herder = Self {
            runtime,
            store,
            connectors: Mutex::new(BTreeMap::new()),
            turns: Turns::default(),
            shuts_down: AtomicBool::new(false),
        };
        for (name, Kept { config, target_state }) in kept {
            herder.install(&name, config, target_state, WrittenTopics::default());
        }
        Ok(herder)
    }

    /// The names, sorted.
    pub fn names(&self) -> Vec<String> {
        self.locked().keys().cloned().collect()
    }

    /// A connector's description.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn info(&self, name: &str) -> Result<ConnectorInfo, HerderError> {
        self.with(name, |entry| ConnectorInfo {
            name: name.to_owned(),
            config: entry.config.clone(),
            tasks: if entry.target == Target::Stopped { Vec::new() } else { vec![0] },
            notes: Vec::new(),
        })
    }

    /// A connector's state and its tasks'. Never missing for a connector that exists.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn status(&self, name: &str) -> Result<ConnectorStatus, HerderError> {
        self.with(name, |entry| {
            let (tasks, trace) = match &entry.task {
                Slot::Empty => (Vec::new(), None),
                Slot::Task(task) => (vec![(0, task.state())], None),
                Slot::Refused(fault) => {
                    (vec![(0, TaskState::Failed(fault.clone()))], Some(fault.to_string()))
                }
            };
            let state = match (entry.target, &entry.task) {
                (Target::Stopped, _) => "STOPPED",
                (_, Slot::Refused(_)) => "FAILED",
                (_, Slot::Empty) => "UNASSIGNED",
                (Target::Paused, Slot::Task(_)) => "PAUSED",
                (Target::Started, Slot::Task(_)) => "RUNNING",
            };
            ConnectorStatus { name: name.to_owned(), state, trace, tasks }
        })
    }

    /// Every key of a configuration with its value and faults.
    pub async fn describe(&self, config: &ConnectorConfig) -> Validation {
        self.runtime.describe(config).await
    }

    /// Creates a connector.
    ///
    /// # Errors
    /// The name is illegal or taken, the configuration has faults, or the store failed.
    pub async fn create(
        &self,
        name: &str,
        config: ConnectorConfig,
        target: Target,
    ) -> Result<ConnectorInfo, HerderError> {
        check_name(name)?;
        if self.locked().contains_key(name) {
            return Err(HerderError::Exists(name.to_owned()));
        }
        self.put(name, config, Expected::Nothing(target)).await?;
        self.info(name)
    }

    /// Creates a connector or replaces its configuration; says whether it is new.
    ///
    /// # Errors
    /// The name is illegal, the configuration has faults, or the store failed.
    pub async fn put_config(
        &self,
        name: &str,
        config: ConnectorConfig,
    ) -> Result<(bool, ConnectorInfo), HerderError> {
        check_name(name)?;
        let exists = self.locked().contains_key(name);
        let expected = if exists { Expected::Any } else { Expected::NoneOrAny };
        let foreseen = self.foresee(name, &config).await;
        let new = matches!(self.put(name, config, expected).await?, Put::Created);
        Ok((new, self.noted(name, foreseen.filter(|_| !new))?))
    }

    /// Changes keys of a connector's configuration; `None` removes one. What others change
    /// meanwhile is kept.
    ///
    /// # Errors
    /// There is none of that name, the configuration has faults, or the store failed.
    pub async fn patch_config(
        &self,
        name: &str,
        changes: &ConnectorConfig,
    ) -> Result<ConnectorInfo, HerderError> {
        loop {
            let before = self.with(name, |entry| entry.config.clone())?;
            let config = patched(&before, changes);
            let foreseen = self.foresee(name, &config).await;
            // checking takes its time, and others do not wait for it: who was overtaken by another
            // change begins again with what that left
            match self.put(name, config, Expected::This(&before)).await? {
                Put::Overtaken => {}
                Put::Created | Put::Replaced => return self.noted(name, foreseen),
            }
        }
    }

    fn noted(&self, name: &str, note: Option<String>) -> Result<ConnectorInfo, HerderError> {
        let mut info = self.info(name)?;
        if let Some(note) = note {
            tracing::warn!(connector = name, "{note}");
            info.notes.push(note);
        }
        Ok(info)
    }

    /// What the task of a connector that is there will stop with, if its row filters are others now.
    async fn foresee(&self, name: &str, config: &ConnectorConfig) -> Option<String> {
        let is_other = |entry: &Entry| row_filters(&entry.config) != row_filters(config);
        if !self.with(name, is_other).unwrap_or_default() {
            return None;
        }
        let mut config = config.clone();
        config.entry("name".to_owned()).or_insert_with(|| Some(name.to_owned()));
        self.runtime.foresee(&config).await.map(|fault| foreseen(&fault))
    }

    async fn put(
        &self,
        name: &str,
        mut config: ConnectorConfig,
        expected: Expected<'_>,
    ) -> Result<Put, HerderError> {
        match config.get("name") {
            None => {
                config.insert("name".to_owned(), Some(name.to_owned()));
            }
            Some(Some(inside)) if inside == name => {}
            Some(inside) => {
                return Err(HerderError::BadRequest(format!(
                    "Connector name configuration ({}) doesn't match connector name in the URL or request ({name})",
                    inside.as_deref().unwrap_or("null")
                )));
            }
        }
        let faults = self.runtime.validate(&config).await;
        if !faults.is_empty() {
            return Err(HerderError::Invalid(faults));
        }
        let _turn = self.turns.of(name).await;
        let before = self.with(name, |entry| (entry.target, entry.config.clone())).ok();
        let target = match (expected, &before) {
            (Expected::Nothing(target), None) => target,
            (Expected::Nothing(_), Some(_)) => return Err(HerderError::Exists(name.to_owned())),
            (Expected::NoneOrAny, None) => Target::Started,
            // it was deleted meanwhile, and is not made anew by who wanted to change it
            (Expected::Any | Expected::This(_), None) => {
                return Err(HerderError::NotFound(name.to_owned()));
            }
            (Expected::This(known), Some((_, config))) if known != config => {
                return Ok(Put::Overtaken);
            }
            (_, Some((target, _))) => *target,
        };
        let kept = Kept { config: config.clone(), target_state: target };
        self.store.put(name, &kept).map_err(HerderError::Store)?;
        self.stop_task(name).await;
        let written = self.with(name, |entry| entry.written.clone()).unwrap_or_default();
        self.install(name, config, target, written);
        Ok(if before.is_none() { Put::Created } else { Put::Replaced })
    }

    /// Stops and forgets a connector. What it made elsewhere stays, but for what is asked for. If
    /// others use that nothing happens; if it cannot be removed all the same the connector stays
    /// too, and is stopped.
    ///
    /// # Errors
    /// There is none of that name, the store failed, or the source or Kafka refuse.
    pub async fn delete(&self, name: &str, removed: Removed) -> Result<(), HerderError> {
        let _turn = self.turns.of(name).await;
        let config = self.with(name, |entry| entry.config.clone())?;
        if removed.source {
            let others = self.others(name);
            self.runtime.check_release(&config, &others).await.map_err(HerderError::of)?;
        }
        if removed.source || removed.offsets {
            self.halt(name, &config).await?;
        }
        if removed.source {
            self.runtime.release(&config).await.map_err(HerderError::of)?;
        }
        if removed.offsets {
            self.runtime.reset_offset(&config).await.map_err(HerderError::Store)?;
        }
        self.store.remove(name).map_err(HerderError::Store)?;
        self.stop_task(name).await;
        self.locked().remove(name);
        Ok(())
    }

    /// The configurations of all connectors but one.
    fn others(&self, name: &str) -> Vec<(String, ConnectorConfig)> {
        let connectors = self.locked();
        let others = connectors.iter().filter(|(other, _)| *other != name);
        others.map(|(name, entry)| (name.clone(), entry.config.clone())).collect()
    }

    /// Stops a connector for good, whatever comes behind it.
    async fn halt(&self, name: &str, config: &ConnectorConfig) -> Result<(), HerderError> {
        let target_state = Target::Stopped;
        let kept = Kept { config: config.clone(), target_state };
        self.store.put(name, &kept).map_err(HerderError::Store)?;
        self.stop_task(name).await;
        if let Some(entry) = self.locked().get_mut(name) {
            entry.target = target_state;
        }
        Ok(())
    }

    /// Changes the wanted state.
    ///
    /// # Errors
    /// There is none of that name, or the store failed.
    pub async fn set_target(&self, name: &str, target: Target) -> Result<(), HerderError> {
        let _turn = self.turns.of(name).await;
        let (before, config) = self.with(name, |entry| (entry.target, entry.config.clone()))?;
        if before == target {
            return Ok(());
        }
        let kept = Kept { config: config.clone(), target_state: target };
        self.store.put(name, &kept).map_err(HerderError::Store)?;
        if target == Target::Stopped {
            self.stop_task(name).await;
        }
        let mut connectors = self.locked();
        if let Some(entry) = connectors.get_mut(name) {
            entry.target = target;
            match &entry.task {
                Slot::Task(task) => task.set_target(target),
                Slot::Empty if target != Target::Stopped => {
                    entry.task = self.start(name, &config, target, &entry.written);
                }
                Slot::Empty | Slot::Refused(_) => {}
            }
        }
        Ok(())
    }

    /// The connector's source partition and offset; `None`: it has none.
    ///
    /// # Errors
    /// There is none of that name, or the offset cannot be read.
    pub async fn offset(
        &self,
        name: &str,
    ) -> Result<Option<(serde_json::Value, serde_json::Value)>, HerderError> {
        let config = self.with(name, |entry| entry.config.clone())?;
        self.runtime.offset(&config).await.map_err(HerderError::Store)
    }

    /// Forgets the connector's offset, so that it begins anew.
    ///
    /// # Errors
    /// There is none of that name, it is not stopped, or Kafka refuses.
    pub async fn reset_offset(&self, name: &str) -> Result<(), HerderError> {
        let _turn = self.turns.of(name).await;
        let config = self.stopped(name, "their offsets can be modified")?;
        self.runtime.reset_offset(&config).await.map_err(HerderError::Store)
    }

    /// Has the connector go on behind what another program published, by that program's offset.
    ///
    /// # Errors
    /// There is none of that name, it is not stopped, the offset cannot be gone on from, or Kafka
    /// or the source refuses.
    pub async fn take_over(
        &self,
        name: &str,
        partition: &serde_json::Value,
        offset: &serde_json::Value,
    ) -> Result<(), HerderError> {
        let _turn = self.turns.of(name).await;
        let config = self.stopped(name, "their offsets can be modified")?;
        let outcome = self.runtime.take_over(&config, partition, offset).await;
        outcome.map_err(|fault| match fault.fate() {
            Fate::Halt => HerderError::BadRequest(fault.to_string()),
            Fate::Retry => HerderError::Store(fault),
        })
    }

    /// The configuration of a connector that is stopped.
    fn stopped(&self, name: &str, before: &str) -> Result<ConnectorConfig, HerderError> {
        let (target, config) = self.with(name, |entry| (entry.target, entry.config.clone()))?;
        if target == Target::Stopped {
            return Ok(config);
        }
        Err(HerderError::BadRequest(format!(
            "Connectors must be in the STOPPED state before {before}; stop it first: \
             PUT /connectors/{name}/stop"
        )))
    }

    /// Takes the configured row filters for those by which the connector's tables are published
    /// from its offset on. Answers how many tables have another one now. With `resnapshot`, rows
    /// on which the filters differ are looked for when it runs.
    ///
    /// # Errors
    /// There is none of that name, it is not stopped, or Kafka refuses.
    pub async fn adopt_filters(&self, name: &str, resnapshot: bool) -> Result<usize, HerderError> {
        let _turn = self.turns.of(name).await;
        let config = self.stopped(name, "a row filter can be applied")?;
        self.runtime.adopt_filters(&config, resnapshot).await.map_err(HerderError::of)
    }

    /// Reads tables anew beside the connector's stream.
    ///
    /// # Errors
    /// There is none of that name, its stream does not run, or the request cannot be carried out.
    pub async fn start_snapshot(
        &self,
        name: &str,
        request: &SnapshotRequest,
    ) -> Result<(), HerderError> {
        let config = self.with(name, |entry| entry.config.clone())?;
        self.desk(name)?;
        let tables = self.runtime.plan_snapshot(&config, request).await.map_err(HerderError::of)?;
        self.order_snapshot(name, SnapshotAction::Start(tables)).await
    }

    /// Stops, holds or goes on with what is read beside the connector's stream.
    ///
    /// # Errors
    /// There is none of that name, its stream does not run, or nothing is read.
    pub async fn order_snapshot(
        &self,
        name: &str,
        action: SnapshotAction,
    ) -> Result<(), HerderError> {
        self.desk(name)?.give(action).await.map_err(HerderError::of)
    }

    /// The last snapshot of the connector whose task is there; `None`: there was none, or the task
    /// has not begun yet.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn chunk_progress(&self, name: &str) -> Result<Option<ChunkProgress>, HerderError> {
        self.with(name, |entry| match &entry.task {
            Slot::Task(task) => task.chunk_progress(),
            Slot::Empty | Slot::Refused(_) => None,
        })
    }

    /// The same of a connector whose stream does not run, as it is stored; `None`: there was none.
    ///
    /// # Errors
    /// There is none of that name, or Kafka refuses.
    pub async fn stored_snapshot(&self, name: &str) -> Result<Option<ChunkProgress>, HerderError> {
        let recalls = self.with(name, |entry| match &entry.task {
            Slot::Task(task) => task.recalls_snapshots(),
            Slot::Empty | Slot::Refused(_) => false,
        })?;
        if recalls && self.desk(name).is_ok() {
            return Ok(None);
        }
        let config = self.with(name, |entry| entry.config.clone())?;
        self.runtime.stored_snapshot(&config).await.map_err(HerderError::Store)
    }

    /// Where orders for the connector's source are given.
    fn desk(&self, name: &str) -> Result<OrderDesk, HerderError> {
        let desk = self.with(name, |entry| match &entry.task {
            Slot::Task(task) if matches!(task.state(), TaskState::Running { .. }) => {
                Some(task.desk())
            }
            Slot::Task(_) | Slot::Empty | Slot::Refused(_) => None,
        })?;
        desk.ok_or_else(|| {
            HerderError::Conflict(Code::SnapshotConflict.fault(
                "the connector's task does not run; tables are read beside its running stream",
            ))
        })
    }

    /// The topics to which the connector has written since the worker began, or since the last
    /// reset; none for a connector that is not there.
    pub fn topics(&self, name: &str) -> Vec<Arc<str>> {
        self.with(name, |entry| entry.written.names()).unwrap_or_default()
    }

    /// Begins that list anew.
    pub fn reset_topics(&self, name: &str) {
        if let Ok(written) = self.with(name, |entry| entry.written.clone()) {
            written.reset();
        }
    }

    /// Restarts the connector's task. With `only_failed`, only if it failed.
    ///
    /// # Errors
    /// There is none of that name.
    pub async fn restart(&self, name: &str, only_failed: bool) -> Result<(), HerderError> {
        let _turn = self.turns.of(name).await;
        let (target, config, failed) = self.with(name, |entry| {
            let failed = match &entry.task {
                Slot::Empty => false,
                Slot::Task(task) => matches!(task.state(), TaskState::Failed(_)),
                Slot::Refused(_) => true,
            };
            (entry.target, entry.config.clone(), failed)
        })?;
        if target == Target::Stopped || (only_failed && !failed) {
            return Ok(());
        }
        self.stop_task(name).await;
        let written = self.with(name, |entry| entry.written.clone())?;
        self.install(name, config, target, written);
        Ok(())
    }

    /// Stops all tasks; configurations and wanted states stay as they are.
    pub async fn shut_down(&self) {
        let tasks: Vec<_> = {
            let mut connectors = self.locked();
            self.shuts_down.store(true, Ordering::Relaxed);
            let tasks = connectors.iter_mut().filter_map(|(name, entry)| {
                match std::mem::replace(&mut entry.task, Slot::Empty) {
                    Slot::Task(task) => Some((name.clone(), task)),
                    Slot::Empty | Slot::Refused(_) => None,
                }
            });
            tasks.collect()
        };
        for (_, task) in &tasks {
            task.set_target(Target::Stopped);
        }
        for (name, task) in tasks {
            if !task.stop(GRACE).await {
                tracing::warn!(connector = name, "the task did not end in time and was cut off");
            }
        }
    }

    /// To be called with the connectors locked, so that no task is started behind a shut-down.
    fn start(
        &self,
        name: &str,
        config: &ConnectorConfig,
        target: Target,
        written: &WrittenTopics,
    ) -> Slot {
        if target == Target::Stopped || self.shuts_down.load(Ordering::Relaxed) {
            return Slot::Empty;
        }
        match self.runtime.start(name, config, target, written.clone()) {
            Ok(task) => Slot::Task(task),
            Err(fault) => {
                tracing::error!(connector = name, error = %fault, "the connector cannot be started");
                Slot::Refused(fault)
            }
        }
    }

    async fn stop_task(&self, name: &str) {
        let task = self
            .locked()
            .get_mut(name)
            .map(|entry| std::mem::replace(&mut entry.task, Slot::Empty));
        if let Some(Slot::Task(task)) = task
            && !task.stop(GRACE).await
        {
            tracing::warn!(connector = name, "the task did not end in time and was cut off");
        }
    }

    fn with<T>(&self, name: &str, read: impl FnOnce(&Entry) -> T) -> Result<T, HerderError> {
        self.locked().get(name).map(read).ok_or_else(|| HerderError::NotFound(name.to_owned()))
    }

    /// Starts a connector, in the place of what there was of it.
    fn install(&self, name: &str, config: ConnectorConfig, target: Target, written: WrittenTopics) {
        let mut connectors = self.locked();
        let task = self.start(name, &config, target, &written);
        connectors.insert(name.to_owned(), Entry { config, target, task, written });
    }

    /// The map is left consistent by every statement, so a poisoned lock is still good.
    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Entry>> {
        self.connectors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A configuration with changes; `None` removes a key.
fn patched(config: &ConnectorConfig, changes: &ConnectorConfig) -> ConnectorConfig {
    let mut config = config.clone();
    for (key, value) in changes {
        if value.is_some() {
            config.insert(key.clone(), value.clone());
        } else {
            config.shift_remove(key);
        }
    }
    config
}

fn check_name(name: &str) -> Result<(), HerderError> {
    let reason = if name.is_empty() {
        "must not be empty"
    } else if name.chars().any(char::is_control) {
        "must not have control characters"
    } else if name.contains('/') {
        "must not have a '/': it could not be addressed by a URL"
    } else if !Store::can_keep(name) {
        "must not be longer than 240 bytes (80 beyond letters, digits, - and _)"
    } else {
        return Ok(());
    };
    Err(HerderError::BadRequest(format!("Connector name '{}' {reason}", name.escape_debug())))
}

//! Checks configurations and starts tasks, for a herder.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use super::lifecycle::{Backoff, Target};
use super::rehearsal::{idle_rules, rehearse};
use super::run::run;
use super::services::Registries;
use super::task::TaskHandle;
use super::trial::{Look, TriedRecord, try_out};
use crate::config::{
    ConfigFault, ConnectorConfig, TypedConnector, Validation, WorkerConfig, summarize, validate,
};
use crate::error::{Code, Fault};
use crate::kafka::offsets;
use crate::kafka::{ClientKind, ClientProperties, Topics, WrittenTopics, cluster_id};
use crate::observe::{ChunkProgress, Observer, TaskIdentity};
use crate::plan::TablePlan;
use crate::sources::{SnapshotRequest, SnapshotTable};

/// A future that a [`Runtime`] gives back.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Checks configurations and starts tasks: the worker, or a stand-in in tests.
pub trait Runtime: Send + Sync + std::fmt::Debug + 'static {
    /// All faults of a configuration, those included that only the live services can tell. Leaves
    /// nothing behind.
    fn validate<'a>(&'a self, config: &'a ConnectorConfig) -> BoxFuture<'a, Vec<Fault>>;

    /// Every key of the configuration's class with its value and faults, as a form shows them.
    fn describe<'a>(&'a self, config: &'a ConnectorConfig) -> BoxFuture<'a, Validation>;

    /// What the connector's task will stop with, going on with what is stored, though nothing is
    /// wrong with the configuration; `None`: nothing that is known.
    fn foresee<'a>(&'a self, config: &'a ConnectorConfig) -> BoxFuture<'a, Option<Fault>>;

    /// The connector's source partition and offset; `None`: it has none.
    fn offset<'a>(
        &'a self,
        config: &'a ConnectorConfig,
    ) -> BoxFuture<'a, Result<Option<(Value, Value)>, Fault>>;

    /// Forgets the connector's offset and table states, so that it begins anew.
    fn reset_offset<'a>(&'a self, config: &'a ConnectorConfig) -> BoxFuture<'a, Result<(), Fault>>;

    /// Sees that what the connector made at its source can be removed, and that none of the others
    /// uses it.
    fn check_release<'a>(
        &'a self,
        config: &'a ConnectorConfig,
        others: &'a [(String, ConnectorConfig)],
    ) -> BoxFuture<'a, Result<(), Fault>>;

    /// Removes what the connector made at its source.
    fn release<'a>(&'a self, config: &'a ConnectorConfig) -> BoxFuture<'a, Result<(), Fault>>;

    /// Stores the offset that goes on behind another program's.
    fn take_over<'a>(
        &'a self,
        config: &'a ConnectorConfig,
        partition: &'a Value,
        offset: &'a Value,
    ) -> BoxFuture<'a, Result<(), Fault>>;

    /// Takes the configured row filters for those by which the connector's tables are published
    /// from its offset on. Answers how many tables have another one now. With `resnapshot`, rows
    /// on which the filters differ are looked for when it runs.
    fn adopt_filters<'a>(
        &'a self,
        config: &'a ConnectorConfig,
        resnapshot: bool,
    ) -> BoxFuture<'a, Result<usize, Fault>>;

    /// What is stored of the last snapshot beside the stream; `None`: there was none.
    fn stored_snapshot<'a>(
        &'a self,
        config: &'a ConnectorConfig,
    ) -> BoxFuture<'a, Result<Option<ChunkProgress>, Fault>>;

    /// The tables that a request for a snapshot beside the stream means.
    fn plan_snapshot<'a>(
        &'a self,
        config: &'a ConnectorConfig,
        request: &'a SnapshotRequest,
    ) -> BoxFuture<'a, Result<Vec<SnapshotTable>, Fault>>;

    /// Starts the connector's task, which notes the topics to which it has written.
    ///
    /// # Errors
    /// The configuration cannot be understood.
    fn start(
        &self,
        name: &str,
        config: &ConnectorConfig,
        target: Target,
        written: WrittenTopics,
    ) -> Result<TaskHandle, Fault>;
}

/// Whoever submits a configuration waits for the answer, so a cluster that does not answer is not
/// waited for as long as a running task would.
const PATIENCE: Duration = Duration::from_secs(10);

/// How the keys of row filters begin.
const ROW_FILTER: &str = "row.filter.";

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The key that it is about.
    pub key: String,
    /// What is wrong, where, and what mends it.
    pub fault: Fault,
}

/// The worker.
#[derive(Clone, Debug)]
pub struct Worker {
    config: Arc<WorkerConfig>,
    observer: Observer,
}

impl Worker {
    /// A worker with this configuration. Nothing is asked of anybody yet.
    pub fn new(config: Arc<WorkerConfig>) -> Self {
        Self { config, observer: Observer::default() }
    }

    /// Where its tasks show what they count.
    pub fn observer(&self) -> Observer {
        self.observer.clone()
    }

    /// Learns the id of the Kafka cluster, as soon as it can be reached.
    pub async fn learn_cluster_id(self, found: watch::Sender<Option<String>>) {
        let layers = self.config.clients.of(ClientKind::Consumer);
        let Ok(properties) = ClientProperties::translate(ClientKind::Consumer, layers.iter())
        else {
            return;
        };
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        loop {
            match cluster_id(&properties, self.config.request_timeout).await {
                Ok(id) => {
                    found.send_replace(Some(id));
                    return;
                }
                Err(fault) => tracing::debug!(error = %fault, "the cluster's id is not known yet"),
            }
            tokio::time::sleep(backoff.advance()).await;
        }
    }

    /// Everything that is wrong with a configuration, and which key each fault is about. Needs no
    /// worker that runs, and leaves nothing behind.
    pub async fn examine(&self, config: &ConnectorConfig) -> Vec<Finding> {
        match TypedConnector::parse(config, &self.config) {
            Ok(connector) => self
                .validate_live(&connector)
                .await
                .into_iter()
                .map(|fault| {
                    let key = match fault.code() {
                        Code::KafkaUnreachable | Code::KafkaClient | Code::KafkaAuthentication => {
                            "bootstrap.servers"
                        }
                        _ => connector.source.blamed_key(&fault),
                    };
                    Finding { key: key.to_owned(), fault }
                })
                .collect(),
            Err(faults) => {
                let told = faults
                    .iter()
                    .map(|fault| Finding { key: fault.key.clone(), fault: fault.to_fault() });
                let rest = self.examine_rest(config, &faults).await;
                told.chain(rest.into_iter().map(|(key, fault)| Finding { key, fault })).collect()
            }
        }
    }

    /// What else is wrong with a configuration of which nothing but row filters cannot be read, and
    /// the key: otherwise that would be told only when they are mended.
    async fn examine_rest(
        &self,
        config: &ConnectorConfig,
        faults: &[ConfigFault],
    ) -> Vec<(String, Fault)> {
        let is_filter = |fault: &&ConfigFault| fault.key.starts_with(ROW_FILTER);
        if !faults.iter().all(|fault| is_filter(&fault)) {
            return Vec::new();
        }
        let mut rest = config.clone();
        faults.iter().for_each(|fault| drop(rest.shift_remove(&fault.key)));
        let Ok(connector) = TypedConnector::parse(&rest, &self.config) else { return Vec::new() };
        let mut found = self.validate_live(&connector).await;
        // without those filters the source has what it should not have
        found.retain(|fault| {
            !matches!(fault.code(), Code::PublicationChanged | Code::FilterPushdownDrift)
        });
        found
            .into_iter()
            .map(|fault| (connector.source.blamed_key(&fault).to_owned(), fault))
            .collect()
    }

    /// What a person may want to know of a configuration, though nothing is wrong.
    pub async fn notes(&self, config: &ConnectorConfig) -> Vec<String> {
        let Ok(connector) = TypedConnector::parse(config, &self.config) else { return Vec::new() };
        let of_source = connector.source.notes().await;
        let of_rules = idle_rules_now(&connector).await;
        let foreseen = self.foresee(config).await.map(|fault| foreseen(&fault));
        of_source.into_iter().chain(of_rules).chain(foreseen).collect()
    }

    /// Passes what the connector would publish to `reader`, as JSON, without Kafka and registries,
    /// until that answers false or the look is told to stop. Leaves nothing behind.
    ///
    /// # Errors
    /// What a task would meet.
    pub async fn try_out(
        &self,
        config: &ConnectorConfig,
        look: Look,
        reader: impl FnMut(&TriedRecord<'_>) -> bool + Send + 'static,
    ) -> Result<(), Fault> {
        try_out(&self.parse(config)?, look, reader).await
    }

    fn parse(&self, config: &ConnectorConfig) -> Result<TypedConnector, Fault> {
        TypedConnector::parse(config, &self.config).map_err(|faults| summarize(&faults))
    }

    async fn validate_live(&self, connector: &TypedConnector) -> Vec<Fault> {
        let mut kafka_settings = connector.kafka.clone();
        kafka_settings.request_timeout = kafka_settings.request_timeout.min(PATIENCE);
        let (source, topics, registry) = tokio::join!(
            connector.source.check(),
            Topics::connect(&kafka_settings),
            check_registries(connector),
        );
        let (topics, kafka) = match topics {
            Ok(topics) => (Some(topics), None),
            Err(fault) => (None, Some(fault)),
        };
        // what the tables would become is only asked where they can be read
        let rehearsed = if source.is_empty() {
            match connector.source.versions().await {
                Ok(versions) => rehearse(connector, versions, topics.as_ref()).await,
                Err(fault) => vec![fault],
            }
        } else {
            Vec::new()
        };
        source.into_iter().chain(kafka).chain(registry).chain(rehearsed).collect()
    }
}

impl Runtime for Worker {
    fn validate<'a>(&'a self, config: &'a ConnectorConfig) -> BoxFuture<'a, Vec<Fault>> {
        Box::pin(async move {
            let faults: Vec<Fault> =
                self.examine(config).await.into_iter().map(|finding| finding.fault).collect();
            if let (true, Ok(connector)) = (faults.is_empty(), self.parse(config)) {
                for note in idle_rules_now(&connector).await {
                    tracing::warn!(connector = connector.name, "{note}");
                }
            }
            faults
        })
    }

    fn describe<'a>(&'a self, config: &'a ConnectorConfig) -> BoxFuture<'a, Validation> {
        Box::pin(async move {
            let mut validation = validate(config, &self.config);
            let found = match TypedConnector::parse(config, &self.config) {
                Ok(connector) => {
                    let found = self.validate_live(&connector).await.into_iter();
                    found
                        .map(|fault| (connector.source.blamed_key(&fault).to_owned(), fault))
                        .collect()
                }
                Err(faults) => self.examine_rest(config, &faults).await,
            };
            for (key, fault) in found {
                validation.blame(&key, fault.to_string());
            }
            if let (0, Ok(connector)) = (validation.error_count, self.parse(config)) {
                validation.notes = idle_rules_now(&connector).await;
                if !row_filters(config).is_empty() {
                    validation.notes.extend(self.foresee(config).await.iter().map(foreseen));
                }
            }
            validation
        })
    }

    fn foresee<'a>(&'a self, config: &'a ConnectorConfig) -> BoxFuture<'a, Option<Fault>> {
        Box::pin(async move {
            let connector = self.parse(config).ok()?;
            let mut settings = connector.kafka.clone();
            settings.request_timeout = settings.request_timeout.min(PATIENCE);
            let foreseen = async {
                let stored = offsets::glance(&settings).await?;
                let Some(offset) = &stored.offset else { return Ok(None) };
                match connector.source.foresee(offset, &stored.states)? {
                    None => connector.source.foresee_gap(offset).await,
                    foreseen => Ok(foreseen),
                }
            };
            // whatever cannot be read is the task's matter
            foreseen.await.unwrap_or_else(|fault: Fault| {
                tracing::debug!(error = %fault, "what is stored cannot be looked at");
                None
            })
        })
    }

    fn offset<'a>(
        &'a self,
        config: &'a ConnectorConfig,
    ) -> BoxFuture<'a, Result<Option<(Value, Value)>, Fault>> {
        Box::pin(async move {
            let connector = self.parse(config)?;
            let stored = offsets::peek(&connector.kafka).await?;
            let Some(offset) = stored.offset else { return Ok(None) };
            let partition = serde_json::json!({ "server": connector.kafka.source_partition });
            Ok(Some((partition, connector.source.describe_offset(&offset)?)))
        })
    }

    fn reset_offset<'a>(&'a self, config: &'a ConnectorConfig) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(async move { offsets::reset(&self.parse(config)?.kafka).await })
    }

    fn check_release<'a>(
        &'a self,
        config: &'a ConnectorConfig,
        others: &'a [(String, ConnectorConfig)],
    ) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(async move {
            let own = self.parse(config)?.source;
            // what cannot be parsed cannot run either
            let others: Vec<_> = others
                .iter()
                .filter_map(|(name, config)| Some((name, self.parse(config).ok()?.source)))
                .collect();
            let others: Vec<_> =
                others.iter().map(|(name, source)| (name.as_str(), source)).collect();
            own.check_release(&others).await
        })
    }

    fn release<'a>(&'a self, config: &'a ConnectorConfig) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(async move { self.parse(config)?.source.release().await })
    }

    fn take_over<'a>(
        &'a self,
        config: &'a ConnectorConfig,
        partition: &'a Value,
        offset: &'a Value,
    ) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(async move {
            let TypedConnector { kafka, source, .. } = self.parse(config)?;
            if *partition != serde_json::json!({ "server": kafka.source_partition }) {
                return Err(Code::OffsetImport.fault(format!(
                    "the partition {partition} is not this connector's, {{\"server\": \"{}\"}}: \
                     the topic prefix must be the same",
                    kafka.source_partition
                )));
            }
            if offsets::stored(&kafka).await?.offset.is_some() {
                return Err(Code::OffsetImport
                    .fault("this connector has an offset of its own, which says what is published")
                    .hint("DELETE /connectors/{name}/offsets first, if that is to be forgotten."));
            }
            let offset = source.take_over(offset).await?;
            offsets::store(&kafka, offset).await
        })
    }

    fn adopt_filters<'a>(
        &'a self,
        config: &'a ConnectorConfig,
        resnapshot: bool,
    ) -> BoxFuture<'a, Result<usize, Fault>> {
        Box::pin(async move {
            let TypedConnector { kafka, source, plan, .. } = self.parse(config)?;
            let rewrite = move |at: &_, states: &[_]| {
                let block = source.block(&plan.topic_prefix);
                let adopted = source.adopt_filters(at, states, resnapshot, &|version| {
                    let table = version.table.to_string();
                    let plan = TablePlan::compile(Arc::new(version), &plan, &block)?;
                    plan.untellable.map_or(Ok(()), |fault| Err(fault.at_table(table)))
                });
                adopted.map(|(states, tables)| offsets::Restated { states, tables })
            };
            offsets::restate(&kafka, rewrite).await
        })
    }

    fn stored_snapshot<'a>(
        &'a self,
        config: &'a ConnectorConfig,
    ) -> BoxFuture<'a, Result<Option<ChunkProgress>, Fault>> {
        Box::pin(async move {
            let connector = self.parse(config)?;
            let stored = offsets::peek(&connector.kafka).await?;
            connector.source.stored_snapshot(&stored.states)
        })
    }

    fn plan_snapshot<'a>(
        &'a self,
        config: &'a ConnectorConfig,
        request: &'a SnapshotRequest,
    ) -> BoxFuture<'a, Result<Vec<SnapshotTable>, Fault>> {
        Box::pin(async move { self.parse(config)?.source.plan_snapshot(request).await })
    }

    fn start(
        &self,
        name: &str,
        config: &ConnectorConfig,
        target: Target,
        written: WrittenTopics,
    ) -> Result<TaskHandle, Fault> {
        let counts = self.observer.worker();
        let connector = self.parse(config).inspect_err(|_| counts.connectors_refused.add(1))?;
        counts.connectors_started.add(1);
        for note in &connector.notes {
            tracing::warn!(connector = name, key = note.key, "{}", note.message);
        }
        let identity = TaskIdentity {
            connector: name.to_owned(),
            task: 0,
            plugin: connector.source.plugin(),
            server: connector.plan.topic_prefix.clone(),
        };
        let task = self.observer.register(identity);
        let connector = Arc::new(connector);
        let shown = Arc::clone(&task.metrics.source);
        let handle =
            TaskHandle::spawn(target, move |control| run(connector, written, control, task));
        Ok(handle.showing(shown))
    }
}

/// Which rules for columns do nothing with the tables as they are now, as notes.
async fn idle_rules_now(connector: &TypedConnector) -> Vec<String> {
    if connector.plan.columns.idle(&[]).is_empty() {
        return Vec::new();
    }
    match connector.source.versions().await {
        Ok(versions) => idle_rules(connector, &versions),
        // that they cannot be read is told elsewhere
        Err(_) => Vec::new(),
    }
}

/// How notes of what is foreseen begin.
const FORESEEN: &str = "with this configuration the task stops until that is done: ";

/// What is foreseen, as a note.
pub fn foreseen(fault: &Fault) -> String {
    format!("{FORESEEN}{fault}")
}

/// Whether a note says that the task will stop.
pub fn is_foreseen(note: &str) -> bool {
    note.starts_with(FORESEEN)
}

/// What decides by which rows a connector's tables are published.
pub fn row_filters(config: &ConnectorConfig) -> BTreeMap<&str, Option<&str>> {
    let keys = config.iter().filter(|(key, _)| key.starts_with(ROW_FILTER));
    keys.map(|(key, value)| (key.as_str(), value.as_deref())).collect()
}

async fn check_registries(connector: &TypedConnector) -> Vec<Fault> {
    let registries = match Registries::new(&connector.key, &connector.value, &Arc::default()) {
        Ok(registries) => registries,
        Err(fault) => return vec![fault],
    };
    let mut faults = Vec::new();
    for registry in registries.all() {
        if let Err(fault) = registry.check().await
            && !faults.contains(&fault)
        {
            faults.push(fault);
        }
    }
    faults
}

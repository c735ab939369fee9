//! Topics: what they are, and how they come to be.
//!
//! Answers the reader's questions before it stages a record: does the topic exist, may it be
//! created, what does it accept. Knows no source. **Invariants:** a topic is created by the
//! connector's rules or not at all (never by merely asking for it); every wait has a limit.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::admin::{
    AdminClient, AdminOptions, ConfigResource, NewTopic, OwnedResourceSpecifier, ResourceSpecifier,
    TopicReplication,
};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::Metadata;

use super::client::{self, Events, clock};
use super::faults;
use super::settings::{InternalTopic, KafkaSettings, TopicTemplate};
use crate::error::{Code, Fault};

/// Topics asked for in one request.
const CHUNK: usize = 200;
/// Above this number of topics one question for all topics of the cluster is cheaper.
const FEW: usize = 8;
/// How long a healthy cluster may take to answer.
const QUICKLY: Duration = Duration::from_millis(500);
/// Pause between two looks for a topic that was just created.
const SETTLE: Duration = Duration::from_millis(50);

/// `cleanup.policy` of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanupPolicy {
    /// `delete`: by age and size.
    Delete,
    /// `compact`: the last record of each key stays. Records without a key are refused.
    Compact,
    /// Both.
    CompactDelete,
}

impl CleanupPolicy {
    fn parse(text: &str) -> Self {
        match (text.contains("compact"), text.contains("delete")) {
            (true, true) => Self::CompactDelete,
            (true, false) => Self::Compact,
            (false, _) => Self::Delete,
        }
    }

    /// Whether the broker refuses records without a key.
    pub const fn needs_key(self) -> bool {
        matches!(self, Self::Compact | Self::CompactDelete)
    }
}

/// What is known about a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicFacts {
    /// Its partitions.
    pub partitions: i32,
    /// `cleanup.policy`; `None` if the principal may not describe the topic's configuration.
    pub cleanup_policy: Option<CleanupPolicy>,
    /// `max.message.bytes`; `None` as above.
    pub max_message_bytes: Option<usize>,
    /// Whether it was created just now.
    pub created: bool,
}

/// Creates and describes topics.
pub struct Topics {
    /// The client; `None` only while it is dropped.
    admin: Option<Arc<AdminClient<Events>>>,
    settings: KafkaSettings,
}

impl fmt::Debug for Topics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topics").finish_non_exhaustive()
    }
}

impl Drop for Topics {
    fn drop(&mut self) {
        client::dispose(self.admin.take());
    }
}

impl Topics {
    /// Connects, and sees that the cluster answers.
    ///
    /// # Errors
    /// The properties are wrong, the cluster does not answer, or it refuses the credentials.
    pub async fn connect(settings: &KafkaSettings) -> Result<Self, Fault> {
        let admin = client::make(&client::admin_config(settings), "admin client")?;
        let this = Self { admin: Some(Arc::new(admin)), settings: settings.clone() };
        // Any name would do: only the answer counts.
        this.partitions(vec![settings.offsets_topic.name.clone()]).await?;
        Ok(this)
    }

    fn admin(&self) -> Result<&Arc<AdminClient<Events>>, Fault> {
        self.admin.as_ref().ok_or_else(|| Code::Internal.fault("the Kafka client is closed"))
    }

    /// Sees that a topic exists, creating it by the connector's rules if need be.
    ///
    /// # Errors
    /// It does not exist and may not be created, the cluster refuses, or does not answer.
    pub async fn ensure(&self, topic: &str) -> Result<TopicFacts, Fault> {
        let facts = self.ensure_all(&[topic]).await?;
        facts.into_iter().next().ok_or_else(|| Code::Internal.fault("no facts for one topic"))
    }

    /// [`Self::ensure`] for many at once; the facts come in the order of the names.
    ///
    /// # Errors
    /// As for one.
    pub async fn ensure_all(&self, topics: &[&str]) -> Result<Vec<TopicFacts>, Fault> {
        let mut found = self.look_up(topics).await?;
        let is_missing = |topic: &&str| !found.contains_key(*topic);
        let missing: Vec<&str> = topics.iter().copied().filter(is_missing).collect();
        let created: HashSet<&str> = missing.iter().copied().collect();
        if let Some(topic) = missing.first() {
            let creation = &self.settings.topic_creation;
            if !creation.enabled {
                return Err(missing_topic(topic));
            }
            let new: Vec<(&str, TopicTemplate)> =
                missing.iter().map(|topic| (*topic, creation.template(topic))).collect();
            self.create(&new).await?;
            self.await_creation(&missing, &mut found).await?;
        }
        let mut facts = self.describe_found(topics, &found).await?;
        for (topic, facts) in topics.iter().zip(&mut facts) {
            facts.created = created.contains(topic);
        }
        Ok(facts)
    }

    /// What is known about a topic; `None` if it does not exist.
    ///
    /// # Errors
    /// The cluster refuses or does not answer.
    pub async fn describe(&self, topic: &str) -> Result<Option<TopicFacts>, Fault> {
        let found = self.look_up(&[topic]).await?;
        if found.is_empty() {
            return Ok(None);
        }
        Ok(self.describe_found(&[topic], &found).await?.into_iter().next())
    }

    /// Asks the broker whether it would create a topic of this name, without creating it.
    ///
    /// # Errors
    /// It would not, or does not answer.
    pub async fn try_creation(&self, topic: &str) -> Result<(), Fault> {
        if !self.settings.topic_creation.enabled {
            return Err(missing_topic(topic));
        }
        let template = self.settings.topic_creation.template(topic);
        self.request_creation(&[(topic, template)], &self.options().validate_only(true)).await
    }

    /// Sees that an internal topic exists, compacted; the number of its partitions.
    pub(super) async fn ensure_internal(&self, topic: &InternalTopic) -> Result<i32, Fault> {
        let name = topic.name.as_str();
        let mut found = self.look_up(&[name]).await?;
        if found.is_empty() {
            let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            let template = TopicTemplate {
                partitions: topic.partitions,
                replication_factor: topic.replication_factor,
                // Small segments, because the active one is never compacted.
                configs: vec![
                    setting("cleanup.policy", "compact"),
                    setting("segment.bytes", "16777216"),
                ],
            };
            self.create(&[(name, template)]).await?;
            self.await_creation(&[name], &mut found).await?;
        }
        let facts = self.describe_found(&[name], &found).await?.into_iter().next();
        let facts = facts.ok_or_else(|| missing_topic(name))?;
        if facts.cleanup_policy.is_some_and(|policy| policy != CleanupPolicy::Compact) {
            return Err(Code::TopicCreation
                .fault(format!("the internal topic '{name}' does not have cleanup.policy=compact"))
                .hint("Set its cleanup.policy to compact, or records in it expire and are lost."));
        }
        Ok(facts.partitions)
    }

    /// Partitions of those that exist.
    async fn look_up(&self, topics: &[&str]) -> Result<HashMap<String, i32>, Fault> {
        self.partitions(topics.iter().map(|topic| (*topic).to_owned()).collect()).await
    }

    /// Partitions of these topics, as far as they exist.
    async fn partitions(&self, topics: Vec<String>) -> Result<HashMap<String, i32>, Fault> {
        let admin = Arc::clone(self.admin()?);
        let settings = self.settings.clone();
        blocking(move || {
            let wanted: HashSet<&str> = topics.iter().map(String::as_str).collect();
            let mut found = HashMap::new();
            let questions: Vec<Option<&str>> = if topics.len() > FEW {
                vec![None]
            } else {
                topics.iter().map(|topic| Some(topic.as_str())).collect()
            };
            for topic in questions {
                let answer = admin.inner().fetch_metadata(topic, QUICKLY);
                found.extend(match answer.and_then(|metadata| existing(&metadata, &wanted)) {
                    Ok(found) => found,
                    Err(_) => ask_patiently(&settings, topic, &wanted)?,
                });
            }
            Ok(found)
        })
        .await
    }

    async fn create(&self, topics: &[(&str, TopicTemplate)]) -> Result<(), Fault> {
        for chunk in topics.chunks(CHUNK) {
            self.request_creation(chunk, &self.options()).await?;
        }
        Ok(())
    }

    async fn request_creation(
        &self,
        topics: &[(&str, TopicTemplate)],
        options: &AdminOptions,
    ) -> Result<(), Fault> {
        let new = topics.iter().map(|(name, template)| {
            let replication = TopicReplication::Fixed(template.replication_factor);
            let topic = NewTopic::new(name, template.partitions, replication);
            template.configs.iter().fold(topic, |topic, (key, value)| topic.set(key, value))
        });
        let new: Vec<NewTopic<'_>> = new.collect();
        let outcomes = self.admin()?.create_topics(&new, options).await;
        let outcomes = outcomes.map_err(|error| self.request_failed(&error, "create topics"))?;
        for outcome in outcomes {
            match outcome {
                // Somebody else was faster.
                Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
                Err((topic, error)) => {
                    let template = topics.iter().find(|(name, _)| *name == topic);
                    return Err(self.not_created(&topic, template.map(|(_, t)| t), error).await);
                }
            }
        }
        Ok(())
    }

    async fn not_created(
        &self,
        topic: &str,
        template: Option<&TopicTemplate>,
        error: RDKafkaErrorCode,
    ) -> Fault {
        let brokers = self.broker_count().await.ok();
        let code = match template {
            Some(template) if is_shortage(error, template.replication_factor, brokers) => {
                Code::KafkaUnreachable
            }
            _ => faults::definite(error).unwrap_or(Code::TopicCreation),
        };
        let mut text = format!("topic '{topic}' cannot be created");
        if let Some(template) = template {
            let TopicTemplate { partitions, replication_factor, configs } = template;
            text.push_str(&format!(
                " with partitions={partitions}, replication.factor={replication_factor}"
            ));
            for (name, value) in configs {
                text.push_str(&format!(", {name}={value}"));
            }
        }
        if let Some(brokers) = brokers {
            text.push_str(&format!(" on a cluster of {brokers} brokers"));
        }
        let fault = code.fault(text).at_table(topic).caused_by(&error);
        if code == Code::KafkaAuthorization {
            return fault.hint(format!("Grant Create on topic '{topic}', or create it."));
        }
        fault
    }

    async fn broker_count(&self) -> Result<usize, Fault> {
        let admin = Arc::clone(self.admin()?);
        let topic = self.settings.offsets_topic.name.clone();
        blocking(move || {
            admin
                .inner()
                .fetch_metadata(Some(&topic), Duration::from_secs(1))
                .map(|metadata| metadata.brokers().len())
                .map_err(|error| faults::fault(&error, "brokers", Code::KafkaUnreachable))
        })
        .await
    }

    /// Waits until the new topics have their partitions everywhere.
    async fn await_creation(
        &self,
        topics: &[&str],
        found: &mut HashMap<String, i32>,
    ) -> Result<(), Fault> {
        let deadline = clock() + self.settings.request_timeout;
        loop {
            let open: Vec<&str> =
                topics.iter().copied().filter(|topic| !found.contains_key(*topic)).collect();
            let Some(topic) = open.first() else { return Ok(()) };
            if clock() >= deadline {
                return Err(Code::KafkaUnreachable
                    .fault(format!("topic '{topic}' was created but does not appear")));
            }
            found.extend(self.look_up(&open).await?);
            tokio::time::sleep(SETTLE).await;
        }
    }

    async fn describe_found(
        &self,
        topics: &[&str],
        found: &HashMap<String, i32>,
    ) -> Result<Vec<TopicFacts>, Fault> {
        let mut facts = Vec::with_capacity(topics.len());
        for chunk in topics.chunks(CHUNK) {
            let resources: Vec<_> = chunk.iter().map(|t| ResourceSpecifier::Topic(t)).collect();
            let answers = self.admin()?.describe_configs(&resources, &self.options()).await;
            let answers =
                answers.map_err(|error| self.request_failed(&error, "describe topics"))?;
            // In any order; what may not be described has no name.
            let configs: HashMap<String, ConfigResource> = answers
                .into_iter()
                .flatten()
                .filter_map(|config| match &config.specifier {
                    OwnedResourceSpecifier::Topic(name) => Some((name.clone(), config)),
                    _ => None,
                })
                .collect();
            for topic in chunk {
                let value =
                    |name: &str| configs.get(*topic).and_then(|c| c.get(name)?.value.as_deref());
                facts.push(TopicFacts {
                    partitions: found.get(*topic).copied().unwrap_or(0),
                    cleanup_policy: value("cleanup.policy").map(CleanupPolicy::parse),
                    max_message_bytes: value("max.message.bytes").and_then(|t| t.parse().ok()),
                    created: false,
                });
            }
        }
        Ok(facts)
    }

    fn options(&self) -> AdminOptions {
        let timeout = self.settings.request_timeout;
        AdminOptions::new().request_timeout(Some(timeout)).operation_timeout(Some(timeout))
    }

    fn request_failed(&self, error: &KafkaError, what: &str) -> Fault {
        let servers = self.settings.admin.bootstrap_servers();
        let attempted = format!("the request to {what} at bootstrap.servers '{servers}' failed");
        faults::fault(error, &attempted, Code::KafkaUnreachable)
    }
}

/// Asks until there is an answer, or the time is over. Through a client of its own, which tells
/// why there is none: the admin client tells nobody.
fn ask_patiently(
    settings: &KafkaSettings,
    topic: Option<&str>,
    wanted: &HashSet<&str>,
) -> Result<HashMap<String, i32>, Fault> {
    let attempted = topic.map_or_else(
        || "the topics cannot be listed".to_owned(),
        |topic| format!("topic '{topic}' cannot be looked up"),
    );
    let probe: BaseConsumer<Events> = client::make(&client::consumer_config(settings), "consumer")?;
    let answer = client::ask(&probe, settings, &attempted, |timeout| {
        let metadata = probe.fetch_metadata(topic, timeout)?;
        existing(&metadata, wanted)
    });
    client::dispose(probe);
    answer
}

/// Partitions of those topics that exist and are wanted.
fn existing(
    metadata: &Metadata,
    wanted: &HashSet<&str>,
) -> Result<HashMap<String, i32>, KafkaError> {
    let mut found = HashMap::new();
    for topic in metadata.topics() {
        let name = topic.name();
        if !wanted.contains(name) {
            continue;
        }
        // The list of partitions must not be touched if there is an error: it has no memory then.
        match topic.error().map(RDKafkaErrorCode::from) {
            None => {
                let partitions = i32::try_from(topic.partitions().len()).unwrap_or(i32::MAX);
                found.insert(name.to_owned(), partitions);
            }
            Some(
                RDKafkaErrorCode::UnknownTopicOrPartition
                | RDKafkaErrorCode::UnknownTopic
                // It is being created.
                | RDKafkaErrorCode::LeaderNotAvailable,
            ) => {}
            Some(code) => return Err(KafkaError::MetadataFetch(code)),
        }
    }
    Ok(found)
}

fn missing_topic(topic: &str) -> Fault {
    Code::TopicMissing
        .fault(format!(
            "topic '{topic}' does not exist, and the worker's topic.creation.enable is false"
        ))
        .hint(format!("Create '{topic}', or set the worker's topic.creation.enable=true."))
        .at_table(topic)
}

/// Runs what blocks on a thread where that is allowed.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Code::Internal.fault("a blocking call did not come back").caused_by(&error))
    })
}

/// Whether a cluster has fewer brokers for a moment than the topic needs: one that its controller
/// has lost from sight comes back, and the settings are not wrong.
fn is_shortage(error: RDKafkaErrorCode, replication_factor: i32, brokers: Option<usize>) -> bool {
    let wanted = usize::try_from(replication_factor).unwrap_or(1).max(1);
    error == RDKafkaErrorCode::InvalidReplicationFactor
        && (wanted == 1 || brokers.is_some_and(|brokers| brokers == 0 || brokers >= wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_lost_from_sight_is_no_wrong_setting() {
        let short = RDKafkaErrorCode::InvalidReplicationFactor;
        assert!(is_shortage(short, -1, Some(0)));
        assert!(is_shortage(short, 1, None));
        assert!(is_shortage(short, 3, Some(0)));
        assert!(is_shortage(short, 3, Some(3)));
        assert!(!is_shortage(short, 3, Some(1)));
        assert!(!is_shortage(short, 3, None));
        assert!(!is_shortage(RDKafkaErrorCode::InvalidPartitions, 1, Some(1)));
    }
}

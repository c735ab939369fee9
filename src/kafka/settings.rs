//! What the Kafka side is told, typed.
//!
//! Built by `config` from worker and connector keys. Knows no Kafka client. **Invariant:** what is
//! forced for exactly-once delivery is not a setting.

use std::time::Duration;

use regex::Regex;

use super::properties::ClientProperties;

/// `transaction.timeout.ms` unless the producer's properties say otherwise, as in Java's client.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(60);

/// Everything that one task's Kafka side needs to know.
#[derive(Clone, Debug)]
pub struct KafkaSettings {
    /// The producer's connection and behaviour (worker properties under `producer.override.*`).
    pub producer: ClientProperties,
    /// The same for the clients that read internal topics.
    pub consumer: ClientProperties,
    /// The same for topic creation and description.
    pub admin: ClientProperties,
    /// The connector's name: decides partition and key of what is stored.
    pub connector: String,
    /// What the source calls its partition; the second half of the offset record's key.
    pub source_partition: String,
    /// The transactional id, [`transactional_id`].
    pub transactional_id: String,
    /// Where the offset is stored.
    pub offsets_topic: InternalTopic,
    /// Where table states are stored.
    pub states_topic: InternalTopic,
    /// Where a Kafka transaction ends.
    pub boundaries: BoundarySettings,
    /// How topics come to be.
    pub topic_creation: TopicCreation,
    /// Limit on one request to the cluster (metadata, creation, description, reading offsets).
    pub request_timeout: Duration,
}

impl KafkaSettings {
    /// `transaction.timeout.ms` of the producer.
    pub fn transaction_timeout(&self) -> Duration {
        self.producer
            .get("transaction.timeout.ms")
            .and_then(|text| text.parse().ok())
            .map_or(TRANSACTION_TIMEOUT, Duration::from_millis)
    }
}

/// The transactional id of a connector's only task, as Kafka Connect forms it (KIP-618).
pub fn transactional_id(group_id: &str, connector: &str) -> String {
    format!("{group_id}-{connector}-0")
}

/// Where a Kafka transaction ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundarySettings {
    /// `transaction.linger.ms`: a Kafka transaction of whole source transactions is committed at
    /// the latest after this time.
    pub linger: Duration,
    /// `transaction.max.bytes`: beyond this a Kafka transaction is committed; a larger source
    /// transaction is split.
    pub max_bytes: usize,
    /// `offset.flush.interval.ms`: least time between two commits that only move the offset.
    pub offset_flush_interval: Duration,
}

impl Default for BoundarySettings {
    fn default() -> Self {
        Self {
            linger: Duration::from_millis(100),
            max_bytes: 256 << 20,
            offset_flush_interval: Duration::from_secs(5),
        }
    }
}

/// A compacted topic that the worker keeps for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalTopic {
    /// Its name.
    pub name: String,
    /// Its partitions if it has to be created; −1: the broker's default.
    pub partitions: i32,
    /// Its replicas if it has to be created; −1: the broker's default.
    pub replication_factor: i32,
}

impl InternalTopic {
    /// A topic with as many partitions as Kafka Connect gives its offsets topic, and the broker's
    /// default replication.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), partitions: 25, replication_factor: -1 }
    }
}

/// `topic.creation.*`: how topics come to be.
#[derive(Clone, Debug)]
pub struct TopicCreation {
    /// The worker's `topic.creation.enable`.
    pub enabled: bool,
    /// `topic.creation.default.*`; without it the broker's defaults.
    pub default: TopicTemplate,
    /// `topic.creation.<group>.*` in the order of `topic.creation.groups`; the first that fits wins.
    pub groups: Vec<TopicGroup>,
}

impl Default for TopicCreation {
    fn default() -> Self {
        Self { enabled: true, default: TopicTemplate::default(), groups: Vec::new() }
    }
}

impl TopicCreation {
    /// How a topic of this name is created.
    pub fn template(&self, topic: &str) -> TopicTemplate {
        let Some(group) = self.groups.iter().find(|group| group.takes(topic)) else {
            return self.default.clone();
        };
        TopicTemplate {
            partitions: group.partitions.unwrap_or(self.default.partitions),
            replication_factor: group.replication_factor.unwrap_or(self.default.replication_factor),
            configs: group.configs.clone(),
        }
    }
}

/// How a topic is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicTemplate {
    /// Partitions; −1: the broker's default.
    pub partitions: i32,
    /// Replicas; −1: the broker's default.
    pub replication_factor: i32,
    /// Topic configuration.
    pub configs: Vec<(String, String)>,
}

impl Default for TopicTemplate {
    fn default() -> Self {
        Self { partitions: -1, replication_factor: -1, configs: Vec::new() }
    }
}

/// One group of `topic.creation.groups`. What it leaves out comes from the default group, except
/// the topic configuration, as in Kafka Connect.
#[derive(Clone, Debug, Default)]
pub struct TopicGroup {
    /// Its name.
    pub name: String,
    /// Patterns of the topics that belong to it, made by [`topic_pattern`].
    pub include: Vec<Regex>,
    /// Patterns of the topics that do not; they win.
    pub exclude: Vec<Regex>,
    /// Partitions, if given.
    pub partitions: Option<i32>,
    /// Replicas, if given.
    pub replication_factor: Option<i32>,
    /// Topic configuration.
    pub configs: Vec<(String, String)>,
}

impl TopicGroup {
    fn takes(&self, topic: &str) -> bool {
        let any = |patterns: &[Regex]| patterns.iter().any(|pattern| pattern.is_match(topic));
        any(&self.include) && !any(&self.exclude)
    }
}

/// A pattern that a whole topic name has to match, as Java's `matches` does.
///
/// # Errors
/// It is not a legal regular expression.
pub fn topic_pattern(text: &str) -> Result<Regex, regex::Error> {
    // The text alone must be legal: an unbalanced bracket must not pair with ours.
    Regex::new(text)?;
    Regex::new(&format!("^(?:{text})$"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, include: &str, exclude: &str, partitions: Option<i32>) -> TopicGroup {
        let patterns =
            |text: &str| text.split_whitespace().map(|text| topic_pattern(text).unwrap()).collect();
        TopicGroup {
            name: name.into(),
            include: patterns(include),
            exclude: patterns(exclude),
            partitions,
            replication_factor: None,
            configs: vec![("group".into(), name.into())],
        }
    }

    #[track_caller]
    fn check(topic: &str, expect: (i32, i32, &str)) {
        let creation = TopicCreation {
            enabled: true,
            default: TopicTemplate {
                partitions: 3,
                replication_factor: 2,
                configs: vec![("group".into(), "default".into())],
            },
            groups: vec![
                group("large", r"srv\.public\.big.* srv\.x", r"srv\.public\.bigot", Some(12)),
                group("rest", r"srv\.public\..*", "", None),
            ],
        };
        let template = creation.template(topic);
        let name = template.configs.first().map_or("", |(_, value)| value.as_str());
        assert_eq!((template.partitions, template.replication_factor, name), expect, "{topic}");
    }

    #[test]
    fn the_first_group_that_fits_creates_the_topic() {
        check("srv.public.big1", (12, 2, "large"));
        check("srv.public.bigot", (3, 2, "rest"));
        check("srv.x", (12, 2, "large"));
        check("srv.xy", (3, 2, "default"));
        check("other.srv.x", (3, 2, "default"));
    }

    #[test]
    fn a_pattern_is_whole_and_must_be_legal_by_itself() {
        let pattern = topic_pattern("a|ab").unwrap();
        assert!(pattern.is_match("ab") && !pattern.is_match("xab"));
        topic_pattern("a)(?:b").unwrap_err();
    }
}

//! `topic.creation.*`, typed.
//!
//! **Invariant:** every key under the prefix ends up in a group or is a fault.

use regex::Regex;

use super::catalogue::nearest;
use super::fault::ConfigFault;
use super::key::KeyDef;
use super::keys::connect as keys;
use super::list::split_patterns;
use super::values::Values;
use crate::error::Code;
use crate::kafka::{TopicCreation, TopicGroup, TopicTemplate, topic_pattern};

/// The group that always exists.
const DEFAULT: &str = "default";

/// Kafka's own topic configurations, by its documentation for 4.x.
const TOPIC_CONFIGS: [&str; 34] = [
    "cleanup.policy",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.downconversion.enable",
    "message.format.version",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.ms",
    "unclean.leader.election.enable",
];

/// Reads the groups.
pub(super) fn parse(values: &mut Values<'_>, enabled: bool) -> TopicCreation {
    let names = values.list(&keys::TOPIC_CREATION_GROUPS);
    let mut creation = TopicCreation {
        enabled,
        default: TopicTemplate {
            partitions: values.number(&keys::TOPIC_CREATION_PARTITIONS),
            replication_factor: values.number(&keys::TOPIC_CREATION_REPLICATION),
            configs: Vec::new(),
        },
        groups: names
            .iter()
            .filter(|name| *name != DEFAULT)
            .map(|name| TopicGroup { name: name.clone(), ..TopicGroup::default() })
            .collect(),
    };
    let mut faults = Vec::new();
    for (name, value) in values.under(&keys::TOPIC_CREATION_GROUP) {
        let is_read = [
            &keys::TOPIC_CREATION_GROUPS,
            &keys::TOPIC_CREATION_PARTITIONS,
            &keys::TOPIC_CREATION_REPLICATION,
        ]
        .iter()
        .any(|def| def.name.strip_prefix("topic.creation.") == Some(name));
        if is_read {
            continue;
        }
        if let Err((code, message)) = place(&mut creation, name, value) {
            faults.push(ConfigFault::new(code, format!("topic.creation.{name}"), message));
        }
    }
    for group in creation.groups.iter().filter(|group| group.include.is_empty()) {
        let key = format!("topic.creation.{}.include", group.name);
        faults.push(ConfigFault::new(Code::ConfigInvalid, key, "must be given for a group"));
    }
    faults.into_iter().for_each(|fault| values.push_fault(fault));
    creation
}

type Refusal = (Code, String);

fn place(creation: &mut TopicCreation, name: &str, value: &str) -> Result<(), Refusal> {
    let invalid = |message: &str| (Code::ConfigInvalid, message.to_owned());
    let property_of = |group: &str| name.strip_prefix(group)?.strip_prefix('.');
    // The longest name, should one group's name begin with another's.
    let group = creation
        .groups
        .iter_mut()
        .filter(|group| property_of(&group.name).is_some())
        .max_by_key(|group| group.name.len());
    if let Some(group) = group {
        let property = property_of(&group.name).unwrap_or_default();
        return place_in_group(group, property, value);
    }
    match property_of(DEFAULT) {
        Some("include" | "exclude") => Err(invalid("the default group takes what no other does")),
        Some(property) => {
            creation.default.configs.push(topic_config(property, value)?);
            Ok(())
        }
        None => Err(invalid("belongs to no group in topic.creation.groups")),
    }
}

fn place_in_group(group: &mut TopicGroup, property: &str, value: &str) -> Result<(), Refusal> {
    match property {
        "include" => group.include = patterns(value)?,
        "exclude" => group.exclude = patterns(value)?,
        "partitions" => group.partitions = Some(count(&keys::TOPIC_CREATION_PARTITIONS, value)?),
        "replication.factor" => {
            group.replication_factor = Some(count(&keys::TOPIC_CREATION_REPLICATION, value)?);
        }
        _ => group.configs.push(topic_config(property, value)?),
    }
    Ok(())
}

fn patterns(text: &str) -> Result<Vec<Regex>, Refusal> {
    split_patterns(text).into_iter().map(topic_pattern).collect::<Result<_, _>>().map_err(
        |_picture| (Code::ConfigInvalid, "is not a list of regular expressions".to_owned()),
    )
}

fn count(def: &KeyDef, text: &str) -> Result<i32, Refusal> {
    def.check(text).map_err(|rejection| (rejection.code, rejection.message))?;
    text.trim().parse().map_err(|_checked: std::num::ParseIntError| {
        (Code::ConfigInvalid, "must be a 32-bit whole number".to_owned())
    })
}

fn topic_config(name: &str, value: &str) -> Result<(String, String), Refusal> {
    // Vendors have topic configurations of their own, under their names.
    let is_vendors = name.starts_with("confluent.") || name.starts_with("redpanda.");
    if is_vendors || TOPIC_CONFIGS.contains(&name) {
        return Ok((name.to_owned(), value.trim().to_owned()));
    }
    let hint = nearest(name, TOPIC_CONFIGS.into_iter())
        .map_or_else(String::new, |nearest| format!("; did you mean {nearest}?"));
    Err((Code::ConfigUnknownKey, format!("there is no topic configuration {name}{hint}")))
}

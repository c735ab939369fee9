//! The worker's properties file, typed.
//!
//! Knows no connector. **Invariant:** like a connector's configuration it is accepted whole or
//! answered with all its faults.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use regex::Regex;

use super::catalogue::Catalogue;
use super::converter::{self, ConverterChoice, HEADER, Side};
use super::fault::ConfigFault;
use super::keys::{converter as converter_keys, worker as keys};
use super::layer::Layer;
use super::listener::Listener;
use super::properties;
use super::providers::{Environment, ProviderKind, Providers};
use super::values::{ConfigNote, Values};
use crate::error::Code;
use crate::kafka::{ClientKind, ClientProperties, InternalTopic};
use crate::observe::Level;

/// Everything that the worker was told.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// `group.id`.
    pub group_id: String,
    /// `listeners`.
    pub listeners: Vec<Listener>,
    /// `rest.advertised.host.name`.
    pub advertised_host: Option<String>,
    /// `rest.advertised.port`.
    pub advertised_port: Option<u16>,
    /// `key.converter` and its options, for connectors that name none.
    pub key_converter: ConverterChoice,
    /// `value.converter` and its options, for connectors that name none.
    pub value_converter: ConverterChoice,
    /// `header.converter` and its options, for connectors that name none.
    pub header_converter: ConverterChoice,
    /// `config.storage.directory`.
    pub directory: PathBuf,
    /// `offset.storage.*`.
    pub offsets_topic: InternalTopic,
    /// `table.state.storage.*`.
    pub states_topic: InternalTopic,
    /// `offset.flush.interval.ms`.
    pub offset_flush_interval: Duration,
    /// `task.shutdown.graceful.timeout.ms`.
    pub shutdown_timeout: Duration,
    /// `topic.creation.enable`.
    pub topic_creation: bool,
    /// Properties of the Kafka clients.
    pub clients: ClientLayers,
    /// `request.timeout.ms`, or the Java client's default.
    pub request_timeout: Duration,
    /// `config.providers`.
    pub providers: Providers,
    /// `topic.tracking.*`.
    pub topic_tracking: TopicTracking,
    /// `log.level`.
    pub log_level: Level,
    /// `log.format` is `json`.
    pub log_json: bool,
    /// What was accepted and should be known.
    pub notes: Vec<ConfigNote>,
}

/// The Java client's default of `request.timeout.ms`.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// `topic.tracking.enable` and `topic.tracking.allow.reset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicTracking {
    /// Whether the topics of a connector are told.
    pub enabled: bool,
    /// Whether the list can be begun anew.
    pub allows_reset: bool,
}

/// Properties of the Kafka clients by the Java client's names, in layers.
#[derive(Clone, Debug, Default)]
pub struct ClientLayers {
    /// `bootstrap.servers` and what else holds for every client.
    pub common: Layer,
    /// `producer.*`.
    pub producer: Layer,
    /// `consumer.*`.
    pub consumer: Layer,
    /// `admin.*`.
    pub admin: Layer,
}

impl ClientLayers {
    /// All layers of one kind of client.
    pub fn of(&self, kind: ClientKind) -> Layer {
        self.common.under(self.own(kind))
    }

    const fn own(&self, kind: ClientKind) -> &Layer {
        match kind {
            ClientKind::Producer => &self.producer,
            ClientKind::Consumer => &self.consumer,
            ClientKind::Admin => &self.admin,
        }
    }
}

/// The kinds of clients, with the prefix of their keys in the worker's file.
const CLIENTS: [(ClientKind, &str); 3] = [
    (ClientKind::Producer, "producer."),
    (ClientKind::Consumer, "consumer."),
    (ClientKind::Admin, "admin."),
];

/// All keys of the worker's file.
pub fn catalogue() -> Catalogue {
    Catalogue::new(keys::TABLES.into_iter().chain(converter_keys::TABLES))
}

impl WorkerConfig {
    /// Reads a properties file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str, environment: &Environment) -> Result<Self, Vec<ConfigFault>> {
        let entries = properties::parse(text).map_err(|error| {
            vec![ConfigFault::new(Code::ConfigMalformed, "the worker's file", error.to_string())]
        })?;
        let (values, worker) = check(&entries, environment);
        let (worker, notes) = values.finish(worker)?;
        Ok(Self { notes, ..worker })
    }
}

fn check<'e>(
    entries: &'e [(String, String)],
    environment: &Environment,
) -> (Values<'e>, WorkerConfig) {
    let submitted: Vec<_> =
        entries.iter().map(|(key, value)| (key.as_str(), Some(value.as_str()))).collect();
    let providers = declared_providers(&submitted, environment);
    let mut values = Values::check(submitted.iter().copied(), &catalogue(), &providers);
    refuse_repetition(&mut values, &submitted);
    check_providers(&mut values);
    let worker = read(&mut values, providers);
    check_clients(&mut values, &worker.clients);
    (values, worker)
}

/// The names of the definitions that are read from a file.
#[cfg(test)]
pub(super) fn names_read(text: &str, environment: &Environment) -> BTreeSet<&'static str> {
    let entries = properties::parse(text).expect("well-formed");
    check(&entries, environment).0.names_read()
}

fn read(values: &mut Values<'_>, providers: Providers) -> WorkerConfig {
    let group_id = values.text(&keys::GROUP_ID);
    let named = |def, ending: &str| {
        values.optional(def).map_or_else(|| format!("{group_id}-{ending}"), str::to_owned)
    };
    let offsets_topic = InternalTopic {
        name: named(&keys::OFFSET_TOPIC, "offsets"),
        partitions: values.number(&keys::OFFSET_PARTITIONS),
        replication_factor: values.number(&keys::OFFSET_REPLICATION),
    };
    let states_topic = InternalTopic {
        name: named(&keys::STATE_TOPIC, "table-states"),
        partitions: values.number(&keys::STATE_PARTITIONS),
        replication_factor: values.number(&keys::STATE_REPLICATION),
    };
    let listeners = values.list(&keys::LISTENERS);
    WorkerConfig {
        offsets_topic,
        states_topic,
        listeners: listeners.iter().filter_map(|text| Listener::parse(text).ok()).collect(),
        advertised_host: values.optional(&keys::ADVERTISED_HOST).map(str::to_owned),
        advertised_port: values.optional(&keys::ADVERTISED_PORT).and_then(|text| text.parse().ok()),
        key_converter: worker_converter(values, Side::Key),
        value_converter: worker_converter(values, Side::Value),
        header_converter: ConverterChoice {
            class: values.text(&keys::HEADER_CONVERTER),
            options: converter::options(values, HEADER),
        },
        directory: PathBuf::from(values.text(&keys::CONFIG_DIRECTORY)),
        offset_flush_interval: values.millis(&keys::OFFSET_FLUSH_INTERVAL),
        shutdown_timeout: values.millis(&keys::SHUTDOWN_TIMEOUT),
        topic_creation: values.flag(&keys::TOPIC_CREATION_ENABLE),
        clients: client_layers(values),
        request_timeout: values
            .optional(&keys::REQUEST_TIMEOUT)
            .map_or(REQUEST_TIMEOUT, |_| values.millis(&keys::REQUEST_TIMEOUT)),
        providers,
        topic_tracking: TopicTracking {
            enabled: values.flag(&keys::TOPIC_TRACKING),
            allows_reset: values.flag(&keys::TOPIC_TRACKING_RESET),
        },
        log_level: values.text(&keys::LOG_LEVEL).parse().unwrap_or(Level::Info),
        log_json: values.text(&keys::LOG_FORMAT).eq_ignore_ascii_case("json"),
        group_id,
        notes: Vec::new(),
    }
}

fn worker_converter(values: &Values<'_>, side: Side) -> ConverterChoice {
    let class = match side {
        Side::Key => values.text(&keys::KEY_CONVERTER),
        Side::Value => values.text(&keys::VALUE_CONVERTER),
    };
    ConverterChoice { class, options: converter::options(values, side.as_str()) }
}

fn client_layers(values: &Values<'_>) -> ClientLayers {
    ClientLayers {
        common: values
            .covered_by(&[
                &keys::BOOTSTRAP_SERVERS,
                &keys::SECURITY_PROTOCOL,
                &keys::SASL,
                &keys::SSL,
                &keys::CLIENT_DNS_LOOKUP,
                &keys::REQUEST_TIMEOUT,
                &keys::RETRY_BACKOFF,
                &keys::RETRY_BACKOFF_MAX,
                &keys::RECONNECT_BACKOFF,
                &keys::RECONNECT_BACKOFF_MAX,
                &keys::METADATA_MAX_AGE,
                &keys::CONNECTIONS_MAX_IDLE,
                &keys::METADATA_RECOVERY,
                &keys::CONNECTION_SETUP,
                &keys::RECEIVE_BUFFER,
                &keys::SEND_BUFFER,
            ])
            .into_iter()
            .collect(),
        producer: values.under(&keys::PRODUCER).into_iter().collect(),
        consumer: values.under(&keys::CONSUMER).into_iter().collect(),
        admin: values.under(&keys::ADMIN).into_iter().collect(),
    }
}

/// Asks the Kafka side which properties it can carry out, and names the keys of those it cannot.
fn check_clients(values: &mut Values<'_>, clients: &ClientLayers) {
    let mut named = BTreeSet::new();
    for (kind, prefix) in CLIENTS {
        let Err(faults) = ClientProperties::translate(kind, clients.of(kind).iter()) else {
            continue;
        };
        for fault in faults {
            let is_own = clients.own(kind).has(&fault.name);
            let key = if is_own { format!("{prefix}{}", fault.name) } else { fault.name };
            if named.insert(key.clone()) {
                let (code, message) = (fault.fault.code(), fault.fault.message().to_owned());
                values.push_fault(ConfigFault::new(code, key, message));
            }
        }
    }
}

/// In Java the last of several values counts; a file that says two things is more likely wrong.
fn refuse_repetition(values: &mut Values<'_>, submitted: &[(&str, Option<&str>)]) {
    let mut seen = BTreeSet::new();
    for (key, _) in submitted {
        if !seen.insert(key) {
            values.fault_of_name(key, "is given twice");
        }
    }
}

const CLASSES: &str = "org.apache.kafka.common.config.provider.";

fn provider_kind(class: &str, setting: impl Fn(&str) -> Option<String>) -> Option<ProviderKind> {
    let paths = || {
        let text = setting("param.allowed.paths").unwrap_or_default();
        super::split_list(&text).map(PathBuf::from).collect()
    };
    Some(match class.trim().strip_prefix(CLASSES).unwrap_or(class.trim()) {
        "FileConfigProvider" => ProviderKind::File { allowed: paths() },
        "DirectoryConfigProvider" => ProviderKind::Directory { allowed: paths() },
        "EnvVarConfigProvider" => ProviderKind::Environment {
            allowed: match setting("param.allowlist.pattern") {
                Some(pattern) => Some(Regex::new(&format!("^(?:{pattern})$")).ok()?),
                None => None,
            },
        },
        _ => return None,
    })
}

/// The providers come from the file itself, so they are read before anything is resolved.
fn declared_providers(submitted: &[(&str, Option<&str>)], environment: &Environment) -> Providers {
    let raw = |key: &str| {
        let found = submitted.iter().rev().find(|(known, _)| *known == key);
        found.and_then(|(_, value)| value.map(str::to_owned))
    };
    let names = raw("config.providers").unwrap_or_default();
    let by_name = super::split_list(&names)
        .filter_map(|name| {
            let setting = |setting: &str| raw(&format!("config.providers.{name}.{setting}"));
            Some((name.to_owned(), provider_kind(&setting("class")?, setting)?))
        })
        .collect();
    Providers::new(by_name, Arc::clone(environment))
}

fn check_providers(values: &mut Values<'_>) {
    let names = values.list(&keys::CONFIG_PROVIDERS);
    let settings: Layer = values.under(&keys::CONFIG_PROVIDER_SETTING).into_iter().collect();
    for name in &names {
        let setting =
            |setting: &str| settings.value(&format!("{name}.{setting}")).map(str::to_owned);
        let message = match setting("class") {
            None => "must be given",
            Some(class) if provider_kind(&class, setting).is_none() => {
                "must be FileConfigProvider, DirectoryConfigProvider or EnvVarConfigProvider, and \
                 its param.allowlist.pattern a regular expression"
            }
            Some(_) => continue,
        };
        values.fault_of_name(&format!("config.providers.{name}.class"), message);
    }
    for (setting, _) in settings.iter() {
        let known = names.iter().any(|name| {
            setting.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix('.')).is_some_and(
                |rest| matches!(rest, "class" | "param.allowed.paths" | "param.allowlist.pattern"),
            )
        });
        if !known {
            let message = "belongs to no provider in config.providers, or is no setting of one";
            values.fault_of_name(&format!("config.providers.{setting}"), message);
        }
    }
}

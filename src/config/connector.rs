//! A connector's configuration, typed.
//!
//! The map is kept by others exactly as it was submitted; what is made of it here is used and
//! thrown away. Knows the settings of the layers, not what they do with them. **Invariant:** a
//! configuration is accepted whole or answered with all its faults.

use std::time::Duration;

use indexmap::IndexMap;

use super::catalogue::{Catalogue, nearest};
use super::columns;
use super::converter::{self, ConverterSettings, Side};
use super::fault::ConfigFault;
use super::keys::{
    connect, converter as converter_keys, delivery, envelope, snapshot,
    transforms as transform_keys,
};
use super::list::split_list;
use super::notices;
use super::topics;
use super::transforms::{self, Surroundings};
use super::values::{ConfigNote, Values};
use super::worker::WorkerConfig;
use crate::convert::{Converter, HeaderConverter};
use crate::error::Code;
use crate::kafka::{
    BoundarySettings, ClientKind, ClientProperties, KafkaSettings, transactional_id,
};
use crate::plan::{
    BeforeUnsent, BinaryMode, ChangeMode, ChangePolicy, ControlFormat, DecimalMode, Extensions,
    IntervalMode, KeyValueMode, NameAdjustment, Operation, Placeholder, PlanSettings, TimeMode,
    ValueModes,
};
use crate::sources::{self, Heartbeats, SourceClass, SourceSettings};

/// A configuration as submitted: order, keys and texts are kept; `None` was a JSON null.
pub type ConnectorConfig = IndexMap<String, Option<String>>;

/// Everything that a connector's task is told.
#[derive(Clone, Debug)]
pub struct TypedConnector {
    /// `name`.
    pub name: String,
    /// The source.
    pub source: SourceSettings,
    /// What records look like.
    pub plan: PlanSettings,
    /// How keys are written.
    pub key: ConverterSettings,
    /// How values are written.
    pub value: ConverterSettings,
    /// How headers are written.
    pub headers: HeaderConverter,
    /// How records get to Kafka.
    pub kafka: KafkaSettings,
    /// `transaction.stage.bytes`.
    pub stage_bytes: usize,
    /// `max.queue.size.in.bytes`.
    pub queue_bytes: usize,
    /// Signs of life in the stream.
    pub heartbeats: Option<Heartbeats>,
    /// What happens after an error that may heal.
    pub retry: RetrySettings,
    /// `schema.changes.topic`, or its default.
    pub schema_changes_topic: String,
    /// What was accepted and should be known.
    pub notes: Vec<ConfigNote>,
}

/// What happens after an error that may heal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetrySettings {
    /// `errors.max.retries`: restarts in a row before the task is FAILED; `None`: no limit.
    pub limit: Option<u32>,
    /// `retriable.restart.connector.wait.ms`: the pause before the first.
    pub first_wait: Duration,
    /// `errors.retry.delay.max.ms`: the longest pause; pauses double up to it.
    pub longest_wait: Duration,
}

impl TypedConnector {
    /// Reads a configuration.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(
        config: &ConnectorConfig,
        worker: &WorkerConfig,
    ) -> Result<Self, Vec<ConfigFault>> {
        let (values, connector) = check(config, worker);
        let (connector, notes) = values.finish(connector)?;
        Ok(Self { notes, ..connector })
    }
}

/// All keys of connectors of a class.
pub fn catalogue(class: &SourceClass) -> Catalogue {
    Catalogue::new(
        connect::TABLES
            .into_iter()
            .chain(class.tables.iter().copied())
            .chain(envelope::TABLES)
            .chain(snapshot::TABLES)
            .chain(delivery::TABLES)
            .chain(converter_keys::TABLES)
            .chain(transform_keys::TABLES),
    )
}

/// The class that a configuration names, by any of its names.
pub fn find_class(name: &str) -> Option<&'static SourceClass> {
    sources::CLASSES.iter().find(|class| class.names.contains(&name.trim()))
}

/// All keys of connectors of the class that a configuration names, or of the first one.
pub(super) fn catalogue_of(config: &ConnectorConfig) -> Catalogue {
    catalogue(named_class(config).unwrap_or(&FIRST_CLASS))
}

fn named_class(config: &ConnectorConfig) -> Option<&'static SourceClass> {
    config.get(connect::CONNECTOR_CLASS.name)?.as_deref().and_then(find_class)
}

/// Checks and reads everything; what was read counts only if the values have no fault.
pub(super) fn check<'c>(
    config: &'c ConnectorConfig,
    worker: &WorkerConfig,
) -> (Values<'c>, TypedConnector) {
    let named = config.get(connect::CONNECTOR_CLASS.name).and_then(Option::as_deref);
    let class = named_class(config);
    // Without a class its keys are unknown; the first one's spare the answer a false list.
    let assumed = class.unwrap_or(&FIRST_CLASS);
    let plug_ins = plug_ins(config);
    let submitted = config
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_deref()))
        .filter(|(key, _)| !plug_ins.iter().any(|prefix| key.starts_with(prefix)));
    let mut values = Values::check(submitted, &catalogue(assumed), &worker.providers);
    values.mark_read(&connect::CONNECTOR_CLASS);
    if let (Some(named), None) = (named, class) {
        values.push_fault(unknown_class(named));
    }
    let connector = read(&mut values, assumed, worker);
    if values.faults().is_empty()
        && let Err(fault) = crate::kafka::validate(&connector.kafka)
    {
        // The Kafka client knows the property by its own name only.
        values.push_fault(ConfigFault::new(fault.code(), "producer.override", fault.message()));
    }
    (values, connector)
}

/// The prefixes of keys that belong to Debezium's plug-ins. The lists that name them are refused;
/// that their keys are unknown besides would not help anybody.
fn plug_ins(config: &ConnectorConfig) -> Vec<String> {
    ["post.processors", "converters"]
        .into_iter()
        .filter_map(|list| config.get(list)?.as_deref())
        .flat_map(split_list)
        .map(|name| format!("{name}."))
        .collect()
}

const FIRST_CLASS: SourceClass = sources::CLASSES[0];

fn unknown_class(named: &str) -> ConfigFault {
    let names = sources::CLASSES.iter().flat_map(|class| class.names.iter().copied());
    let hint = match nearest(named, names.clone()) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
    };
    ConfigFault {
        value: Some(named.to_owned()),
        ..ConfigFault::new(
            Code::ConnectorUnknownClass,
            connect::CONNECTOR_CLASS.name,
            format!("there is no such class; {hint}"),
        )
    }
}

fn read(values: &mut Values<'_>, class: &SourceClass, worker: &WorkerConfig) -> TypedConnector {
    let name = values.text(&connect::NAME);
    if values.number::<i64>(&connect::TASKS_MAX) > 1 {
        values.note(connect::TASKS_MAX.name, "has no effect: a connector has exactly one task");
    }
    let key = converter::parse(values, Side::Key, &worker.key_converter);
    let value = converter::parse(values, Side::Value, &worker.value_converter);
    let headers = converter::parse_header(values, &worker.header_converter);
    let uses_avro = [&key, &value].iter().any(|side| side.converter == Converter::Avro);
    let mut plan = plan(values, uses_avro);
    let source = (class.parse)(values, &name);
    source.shape(&mut plan);
    plan.rows_move = source.rows_move();
    if let Err(fault) = plan.check() {
        values.fault(&envelope::ENVELOPE_EXTENSIONS, fault.message());
    }
    plan.transforms = transforms::parse(
        values,
        Surroundings {
            source: &source.block(&plan.topic_prefix),
            avro_keys: key.converter == Converter::Avro,
            avro_values: value.converter == Converter::Avro,
        },
    );
    let kafka = kafka(values, &name, &plan.topic_prefix, worker);
    let queue_bytes = values.number(&delivery::QUEUE_BYTES);
    let stage_bytes = stage_bytes(values, queue_bytes, kafka.boundaries.max_bytes);
    TypedConnector {
        schema_changes_topic: values.optional(&delivery::SCHEMA_CHANGES_TOPIC).map_or_else(
            || format!("{}{}schema-changes", plan.topic_prefix, plan.topic_delimiter),
            str::to_owned,
        ),
        name,
        source,
        plan,
        key,
        value,
        headers,
        kafka,
        stage_bytes,
        queue_bytes,
        heartbeats: notices::heartbeats(values),
        retry: RetrySettings {
            limit: u32::try_from(values.number::<i64>(&delivery::MAX_RETRIES)).ok(),
            first_wait: values.millis(&delivery::RESTART_WAIT),
            longest_wait: values.millis(&connect::ERRORS_RETRY_DELAY_MAX),
        },
        notes: Vec::new(),
    }
}

/// What is staged goes through the queue in one piece. A bound that was given must fit; the default
/// gives way.
fn stage_bytes(values: &mut Values<'_>, queue_bytes: usize, transaction_bytes: usize) -> usize {
    let stage_bytes = values.number::<usize>(&delivery::TRANSACTION_STAGE_BYTES);
    let limit = queue_bytes.min(transaction_bytes);
    if stage_bytes > limit && values.is_given(&delivery::TRANSACTION_STAGE_BYTES) {
        let message = "must not be above max.queue.size.in.bytes or transaction.max.bytes";
        values.fault(&delivery::TRANSACTION_STAGE_BYTES, message);
    }
    stage_bytes.min(limit)
}

fn plan(values: &mut Values<'_>, uses_avro: bool) -> PlanSettings {
    let names = |text: Option<&str>, otherwise| {
        text.and_then(|text| NameAdjustment::from_word(&text.to_ascii_lowercase()))
            .unwrap_or(otherwise)
    };
    // Debezium adjusts field names by itself where an Avro converter is used.
    let otherwise = if uses_avro { NameAdjustment::Avro } else { NameAdjustment::None };
    let skipped = values.list(&envelope::SKIPPED_OPERATIONS);
    if skipped.len() > 1 && skipped.iter().any(|word| word.eq_ignore_ascii_case("none")) {
        values.fault(&envelope::SKIPPED_OPERATIONS, "none stands alone");
    }
    let columns = columns::parse(values);
    let notices = notices::parse(values);
    let word = |def| values.text(def).to_ascii_lowercase();
    PlanSettings {
        columns,
        notices,
        skip_unchanged: values.flag(&envelope::SKIP_UNCHANGED),
        topic_delimiter: values.text(&envelope::TOPIC_DELIMITER),
        values: value_modes(values),
        schema_names: names(
            values.optional(&envelope::SCHEMA_NAME_ADJUSTMENT),
            NameAdjustment::None,
        ),
        field_names: names(values.optional(&envelope::FIELD_NAME_ADJUSTMENT), otherwise),
        tombstones_on_delete: values.flag(&envelope::TOMBSTONES),
        skipped: skipped
            .iter()
            .filter_map(|word| Operation::from_word(&word.to_ascii_lowercase()))
            .collect(),
        before_unsent: BeforeUnsent::from_word(&word(&envelope::BEFORE_UNSENT))
            .unwrap_or(BeforeUnsent::Null),
        extensions: Extensions::from_word(&word(&envelope::ENVELOPE_EXTENSIONS))
            .unwrap_or(Extensions::Headers),
        changes: change_policy(values),
        control_format: ControlFormat::from_word(&word(&delivery::SCHEMA_CHANGES_FORMAT))
            .unwrap_or(ControlFormat::Tidegate),
        ..PlanSettings::new(values.text(&envelope::TOPIC_PREFIX))
    }
}

fn change_policy(values: &Values<'_>) -> ChangePolicy {
    let mode = |word: &str| ChangeMode::from_word(&word.to_ascii_lowercase());
    ChangePolicy {
        default: mode(&values.text(&delivery::SCHEMA_CHANGES_MODE)).unwrap_or_default(),
        // a table's name has a point
        tables: values
            .under(&delivery::SCHEMA_CHANGES_OF)
            .into_iter()
            .filter(|(table, _)| table.contains('.'))
            .filter_map(|(table, word)| Some((table.to_owned(), mode(word)?)))
            .collect(),
        keys: mode(&values.text(&delivery::SCHEMA_KEY_ACTION)).unwrap_or(ChangeMode::Refuse),
        renames: mode(&values.text(&delivery::SCHEMA_RENAME_ACTION)).unwrap_or_default(),
        acknowledged: values.list(&delivery::SCHEMA_CHANGES_ACKNOWLEDGED),
    }
}

fn value_modes(values: &Values<'_>) -> ValueModes {
    let word = |def| values.text(def).to_ascii_lowercase();
    ValueModes {
        decimal: DecimalMode::from_word(&word(&envelope::DECIMAL_MODE))
            .unwrap_or(DecimalMode::Precise),
        time: TimeMode::from_word(&word(&envelope::TIME_MODE)).unwrap_or(TimeMode::Adaptive),
        interval: IntervalMode::from_word(&word(&envelope::INTERVAL_MODE))
            .unwrap_or(IntervalMode::Numeric),
        binary: BinaryMode::from_word(&word(&envelope::BINARY_MODE)).unwrap_or(BinaryMode::Bytes),
        money_fraction_digits: values.number(&envelope::MONEY_DIGITS),
        key_values: KeyValueMode::Json,
        comments: values.flag(&envelope::COMMENTS),
        placeholder: Placeholder::parse(&values.text(&envelope::UNAVAILABLE_PLACEHOLDER))
            .unwrap_or_default(),
    }
}

fn kafka(
    values: &mut Values<'_>,
    connector: &str,
    source_partition: &str,
    worker: &WorkerConfig,
) -> KafkaSettings {
    KafkaSettings {
        producer: client(values, ClientKind::Producer, worker),
        consumer: client(values, ClientKind::Consumer, worker),
        admin: client(values, ClientKind::Admin, worker),
        connector: connector.to_owned(),
        source_partition: source_partition.to_owned(),
        transactional_id: transactional_id(&worker.group_id, connector),
        offsets_topic: worker.offsets_topic.clone(),
        states_topic: worker.states_topic.clone(),
        boundaries: BoundarySettings {
            linger: values.millis(&delivery::TRANSACTION_LINGER),
            max_bytes: values.number(&delivery::TRANSACTION_MAX_BYTES),
            offset_flush_interval: values
                .optional(&delivery::OFFSET_FLUSH_INTERVAL)
                .map_or(worker.offset_flush_interval, |_| {
                    values.millis(&delivery::OFFSET_FLUSH_INTERVAL)
                }),
        },
        topic_creation: topics::parse(values, worker.topic_creation),
        request_timeout: worker.request_timeout,
    }
}

fn client(values: &mut Values<'_>, kind: ClientKind, worker: &WorkerConfig) -> ClientProperties {
    let def = match kind {
        ClientKind::Producer => &connect::PRODUCER_OVERRIDE,
        ClientKind::Consumer => &connect::CONSUMER_OVERRIDE,
        ClientKind::Admin => &connect::ADMIN_OVERRIDE,
    };
    let overrides = values.under(def).into_iter().collect();
    let layers = worker.clients.of(kind).under(&overrides);
    match ClientProperties::translate(kind, layers.iter()) {
        Ok(properties) => properties,
        Err(faults) => {
            for fault in faults {
                // What the worker's file says was checked when it was read.
                let key = def.name.replace("<property>", &fault.name);
                let (code, message) = (fault.fault.code(), fault.fault.message());
                values.push_fault(ConfigFault::new(code, key, message));
            }
            ClientProperties::default()
        }
    }
}

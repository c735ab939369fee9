//! Kafka Connect's own keys for source connectors.
//!
//! Names, types and defaults are those of Kafka Connect 4.3. Knows no source.

use super::keys;
use crate::config::{Choice, Rejection, Rule, Table};

/// Every table of this file, in the order of Kafka Connect's groups.
pub const TABLES: [&Table; 5] = [&COMMON, &ERRORS, &TOPIC_CREATION, &EXACTLY_ONCE, &OVERRIDES];

/// The converters for keys and values.
pub const CONVERTERS: &[Choice] = &[
    Choice::of("io.confluent.connect.avro.AvroConverter"),
    Choice::of("AvroConverter"),
    Choice::of("Avro"),
    Choice::of("org.apache.kafka.connect.json.JsonConverter"),
    Choice::of("JsonConverter"),
    Choice::of("Json"),
    Choice::of("org.apache.kafka.connect.storage.StringConverter"),
    Choice::of("StringConverter"),
    Choice::of("String"),
    Choice::of("org.apache.kafka.connect.converters.ByteArrayConverter"),
    Choice::of("ByteArrayConverter"),
    Choice::of("ByteArray"),
    Choice::refused("io.confluent.connect.protobuf.ProtobufConverter", "Protobuf is not built"),
    Choice::refused("io.confluent.connect.json.JsonSchemaConverter", "JSON Schema is not built"),
    Choice::refused(
        "io.apicurio.registry.utils.converter.AvroConverter",
        "use Confluent's class, with the address of Apicurio's compatible API",
    ),
    Choice::refused("io.debezium.converters.CloudEventsConverter", "CloudEvents are not built"),
];

/// The converters for headers.
pub const HEADER_CONVERTERS: &[Choice] = &[
    Choice::of("org.apache.kafka.connect.storage.SimpleHeaderConverter"),
    Choice::of("SimpleHeaderConverter"),
    Choice::of("Simple"),
    Choice::of("org.apache.kafka.connect.json.JsonConverter"),
    Choice::of("JsonConverter"),
    Choice::of("Json"),
    Choice::of("org.apache.kafka.connect.storage.StringConverter"),
    Choice::of("StringConverter"),
    Choice::of("String"),
    Choice::refused("org.apache.kafka.connect.converters.ByteArrayConverter", "headers are texts"),
    Choice::refused("io.confluent.connect.avro.AvroConverter", "it is no header converter"),
];

fn connector_name(text: &str) -> Result<(), Rejection> {
    if text.is_empty() {
        return Err(Rejection::invalid("must not be empty"));
    }
    // Kafka Connect creates a name with a slash, and can then neither show nor delete it.
    if text.chars().any(|c| c.is_control() || c == '/') {
        return Err(Rejection::invalid("must not hold control characters or a slash"));
    }
    Ok(())
}

fn count_or_minus_one(text: &str) -> Result<(), Rejection> {
    match text.parse::<i64>() {
        Ok(1.. | -1) => Ok(()),
        _ => Err(Rejection::invalid("must be -1, or 1 or more")),
    }
}

keys! {
    /// What every connector has.
    COMMON "Common"
    supported {
        NAME "name" String (required) High
            "The connector's name; its transactional id and the key of its stored offset come from it."
            Rule::Is(connector_name);
        CONNECTOR_CLASS "connector.class" Class (required) High
            "Which source the connector reads: Debezium's class name, its short form, or Tidegate's own name.";
        TASKS_MAX "tasks.max" Int ("1") Low
            "Any number is accepted; a connector has exactly one task, because a change log has one order."
            Rule::AtLeast(1);
        KEY_CONVERTER "key.converter" Class () High
            "How record keys are written. Without it the worker's key.converter holds."
            Rule::OneOf(CONVERTERS);
        VALUE_CONVERTER "value.converter" Class () High
            "How record values are written. Without it the worker's value.converter holds."
            Rule::OneOf(CONVERTERS);
        HEADER_CONVERTER "header.converter" Class () Low
            "How headers are written. Without it the worker's header.converter holds."
            Rule::OneOf(HEADER_CONVERTERS);
    }
    no effect {
        "tasks.max.enforce" Boolean ("true")
            "a connector never has more than one task";
        "config.action.reload" String ("restart")
            "references are resolved when a task starts, and no provider gives a lifetime"
            Rule::OneOf(&[Choice::of("restart"), Choice::of("none")]);
    }
    refused {
        "connector.plugin.version" String () "a worker has exactly one version of everything";
        "key.converter.plugin.version" String () "a worker has exactly one version of everything";
        "value.converter.plugin.version" String () "a worker has exactly one version of everything";
        "header.converter.plugin.version" String () "a worker has exactly one version of everything";
        "offsets.storage.topic" String ()
            "all connectors of a worker keep their offsets in the worker's offset.storage.topic";
    }
}

keys! {
    /// What happens after errors.
    ERRORS "Error Handling"
    supported {
        ERRORS_RETRY_TIMEOUT "errors.retry.timeout" Long ("300000") Medium
            "For how long (ms) a schema registry that does not answer is asked again before the task is restarted; -1 for ever. Kafka Connect's default is 0."
            Rule::AtLeast(-1);
        ERRORS_RETRY_DELAY_MAX "errors.retry.delay.max.ms" Long ("60000") Medium
            "The longest pause between two attempts after an error that may heal; the pauses double up to it."
            Rule::AtLeast(1);
    }
    no effect {
        "errors.tolerance" String ("none")
            "a change that cannot be published always stops the task with a code"
            Rule::OneOf(&[
                Choice::of("none"),
                Choice::refused("all", "leaving a change out would be a silent loss"),
            ]);
        "errors.log.enable" Boolean ("false") "every fault is logged with code and place";
    }
    refused {
        "errors.log.include.messages" Boolean ("false") "the content of rows is never logged";
        "errors.deadletterqueue.<property>" String ()
            "Kafka Connect has dead letter queues for sinks only, and nothing is skipped here";
    }
}

keys! {
    /// How topics come to be.
    TOPIC_CREATION "Topic Creation"
    supported {
        TOPIC_CREATION_GROUPS "topic.creation.groups" List () Low
            "Names of groups of topics with settings of their own; the first whose include list fits a topic counts.";
        TOPIC_CREATION_PARTITIONS "topic.creation.default.partitions" Int ("-1") Medium
            "Partitions of a topic that is created; -1 is the broker's default."
            Rule::Is(count_or_minus_one);
        TOPIC_CREATION_REPLICATION "topic.creation.default.replication.factor" Int ("-1") Medium
            "Replicas of a topic that is created; -1 is the broker's default."
            Rule::Is(count_or_minus_one);
        TOPIC_CREATION_GROUP "topic.creation.<group>.<property>" String () Low
            "For each group (`default` always exists): include, exclude, partitions, replication.factor, and any topic configuration.";
    }
    no effect {}
    refused {}
}

keys! {
    /// Exactly once: it always is.
    EXACTLY_ONCE "Exactly Once Support"
    supported {}
    no effect {
        "exactly.once.support" String ("requested")
            "records and their offset are always in one Kafka transaction"
            Rule::OneOf(&[Choice::of("requested"), Choice::of("required")]);
        "transaction.boundary" String ("poll")
            "Kafka transactions always end where transactions of the source end; see transaction.linger.ms and transaction.max.bytes"
            Rule::OneOf(&[Choice::of("poll"), Choice::of("interval"), Choice::of("connector")]);
        "transaction.boundary.interval.ms" Long () "see transaction.linger.ms"
            Rule::AtLeast(1);
    }
    refused {}
}

keys! {
    /// Settings of the Kafka clients of one connector.
    OVERRIDES "Client Overrides"
    supported {
        PRODUCER_OVERRIDE "producer.override.<property>" String () Medium
            "Settings of the connector's producer, by the Java client's names, over the worker's producer.*. What exactly-once delivery depends on (acks, enable.idempotence, transactional.id) is fixed.";
        CONSUMER_OVERRIDE "consumer.override.<property>" String () Low
            "Settings of the client that reads the stored offset, over the worker's consumer.*.";
        ADMIN_OVERRIDE "admin.override.<property>" String () Low
            "Settings of the client that creates topics, over the worker's admin.*.";
    }
    no effect {}
    refused {}
}

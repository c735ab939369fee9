//! Keys of the worker's properties file.
//!
//! Names are those of Kafka Connect's standalone and distributed workers. Options of the worker's
//! converters are those of [`super::converter`].

use super::keys;
use crate::config::{Choice, Rejection, Rule, Table};

/// Every table of this file.
pub const TABLES: [&Table; 6] = [&WORKER, &STORAGE, &REST, &PROVIDERS, &CLIENTS, &NOT_HERE];

fn listener(text: &str) -> Result<(), Rejection> {
    for address in crate::config::split_list(text) {
        crate::config::Listener::parse(address)?;
    }
    Ok(())
}

fn replicas(text: &str) -> Result<(), Rejection> {
    match text.parse::<i64>() {
        Ok(1..=32_767 | -1) => Ok(()),
        _ => Err(Rejection::invalid("must be -1, or 1 or more")),
    }
}

keys! {
    /// The worker itself.
    WORKER "Worker"
    supported {
        BOOTSTRAP_SERVERS "bootstrap.servers" List (required) High
            "Addresses of Kafka's brokers, as host:port."
            Rule::NotBlank;
        GROUP_ID "group.id" String ("tidegate") High
            "Names this worker's connectors in Kafka: the transactional ids begin with it. No two workers may have the same."
            Rule::Is(super::envelope::topic_text);
        KEY_CONVERTER "key.converter" Class ("io.confluent.connect.avro.AvroConverter") High
            "How record keys are written by connectors that do not say."
            Rule::OneOf(super::connect::CONVERTERS);
        VALUE_CONVERTER "value.converter" Class ("io.confluent.connect.avro.AvroConverter") High
            "How record values are written by connectors that do not say."
            Rule::OneOf(super::connect::CONVERTERS);
        HEADER_CONVERTER "header.converter" Class
            ("org.apache.kafka.connect.storage.SimpleHeaderConverter") Low
            "How headers are written by connectors that do not say."
            Rule::OneOf(super::connect::HEADER_CONVERTERS);
        OFFSET_FLUSH_INTERVAL "offset.flush.interval.ms" Long ("5000") Low
            "Least time between two commits that only move an offset, on traffic that is not captured. Kafka Connect's default is 60000."
            Rule::AtLeast(1);
        SHUTDOWN_TIMEOUT "task.shutdown.graceful.timeout.ms" Long ("5000") Low
            "How long a task may take to stop by itself."
            Rule::AtLeast(0);
        TOPIC_CREATION_ENABLE "topic.creation.enable" Boolean ("true") Low
            "Whether topics that do not exist are created.";
        TOPIC_TRACKING "topic.tracking.enable" Boolean ("true") Low
            "Whether GET /connectors/{name}/topics tells to which topics a connector has written since the worker began, or since the last reset.";
        TOPIC_TRACKING_RESET "topic.tracking.allow.reset" Boolean ("true") Low
            "Whether PUT /connectors/{name}/topics/reset begins that list anew.";
        LOG_LEVEL "log.level" String ("info") Low
            "What is logged; the REST endpoint changes it at run time."
            Rule::OneOf(&[
                Choice::of("error"),
                Choice::of("warn"),
                Choice::of("info"),
                Choice::of("debug"),
                Choice::of("trace"),
            ]);
        LOG_FORMAT "log.format" String ("text") Low
            "How a log line is written: for people, or as one JSON object."
            Rule::OneOf(&[Choice::of("text"), Choice::of("json")]);
    }
    no effect {
        "exactly.once.source.support" String ("disabled")
            "records and their offset are always in one Kafka transaction"
            Rule::OneOf(&[Choice::of("disabled"), Choice::of("preparing"), Choice::of("enabled")]);
        "offset.flush.timeout.ms" Long ("5000") "an offset is part of the transaction of its records";
        "plugin.path" List () "sources, converters and transforms are built in";
        "plugin.discovery" String ("hybrid_warn") "sources, converters and transforms are built in";
        "metric.reporters" List ("org.apache.kafka.common.metrics.JmxReporter") "they are Java classes";
        "metrics.num.samples" Int ("2") "metrics are counters, not samples";
        "metrics.recording.level" String ("INFO") "metrics are counters, not samples";
        "metrics.sample.window.ms" Long ("30000") "metrics are counters, not samples";
    }
    refused {
        "connector.client.config.override.policy" String ("All")
            "every connector may set producer.override.*, consumer.override.* and admin.override.*";
        "key.converter.plugin.version" String () "a worker has exactly one version of everything";
        "value.converter.plugin.version" String () "a worker has exactly one version of everything";
        "header.converter.plugin.version" String () "a worker has exactly one version of everything";
    }
}

keys! {
    /// Where the worker keeps what must survive it.
    STORAGE "Storage"
    supported {
        CONFIG_DIRECTORY "config.storage.directory" String ("tidegate-data") High
            "The directory in which connectors and their states are kept."
            Rule::NotBlank;
        OFFSET_TOPIC "offset.storage.topic" String () Medium
            "The compacted topic of the connectors' offsets; created if it does not exist. Without it: group.id and -offsets."
            Rule::Is(super::envelope::topic_text);
        OFFSET_PARTITIONS "offset.storage.partitions" Int ("25") Low
            "Its partitions, if it is created."
            Rule::Between(1, 10_000);
        OFFSET_REPLICATION "offset.storage.replication.factor" Int ("-1") Low
            "Its replicas, if it is created; -1 is the broker's default. Kafka Connect's default is 3."
            Rule::Is(replicas);
        STATE_TOPIC "table.state.storage.topic" String () Low
            "The compacted topic of table definitions; created if it does not exist. Without it: group.id and -table-states."
            Rule::Is(super::envelope::topic_text);
        STATE_PARTITIONS "table.state.storage.partitions" Int ("25") Low
            "Its partitions, if it is created."
            Rule::Between(1, 10_000);
        STATE_REPLICATION "table.state.storage.replication.factor" Int ("-1") Low
            "Its replicas, if it is created; -1 is the broker's default."
            Rule::Is(replicas);
    }
    no effect {
        "offset.storage.file.filename" String () "offsets are always in Kafka: see offset.storage.topic";
        "config.storage.topic" String () "there is one worker: see config.storage.directory";
        "config.storage.replication.factor" Int ("3") "there is one worker: see config.storage.directory";
        "status.storage.topic" String () "there is one worker: see config.storage.directory";
        "status.storage.partitions" Int ("5") "there is one worker: see config.storage.directory";
        "status.storage.replication.factor" Int ("3") "there is one worker: see config.storage.directory";
    }
    refused {}
}

keys! {
    /// The REST endpoint.
    REST "REST"
    supported {
        LISTENERS "listeners" List ("http://:8083") Medium
            "Addresses of the REST endpoint, as http://host:port; without a host all of the machine's."
            Rule::Is(listener);
        ADVERTISED_HOST "rest.advertised.host.name" String () Low
            "The host by which this worker is named in status answers; without it the listener's, or the machine's name.";
        ADVERTISED_PORT "rest.advertised.port" Int () Low
            "The port by which this worker is named in status answers; without it the listener's."
            Rule::Between(1, 65_535);
    }
    no effect {
        "rest.advertised.listener" String () "there is only http"
            Rule::OneOf(&[
                Choice::of("http"),
                Choice::refused("https", "encrypted listeners are not built; put a proxy in front"),
            ]);
        "access.control.allow.methods" String () "matters only with access.control.allow.origin, which is refused";
    }
    refused {
        "admin.listeners" List () "loggers are served beside the rest";
        "rest.extension.classes" List () "they are Java classes";
        "access.control.allow.origin" String () "answers to other origins are not built";
        "response.http.headers.config" String () "headers of one's choice are not built";
        "listeners.https.<property>" String () "encrypted listeners are not built; put a proxy in front";
        "rest.port" Int () "its name is listeners";
        "rest.host.name" String () "its name is listeners";
    }
}

keys! {
    /// References in configuration values.
    PROVIDERS "Config Providers"
    supported {
        CONFIG_PROVIDERS "config.providers" List () Medium
            "Names of the providers that references in values may use, as ${name:path:key}. Without it every reference is refused.";
        CONFIG_PROVIDER_SETTING "config.providers.<name>.<setting>" String () Medium
            "For each of them: class (FileConfigProvider, DirectoryConfigProvider or EnvVarConfigProvider of org.apache.kafka.common.config.provider), param.allowed.paths, param.allowlist.pattern.";
    }
    no effect {}
    refused {}
}

keys! {
    /// Settings of every Kafka client of the worker.
    CLIENTS "Kafka Clients"
    supported {
        SECURITY_PROTOCOL "security.protocol" String () Medium
            "How every Kafka client connects. Unlike in Kafka Connect the settings of this group hold for producers, too, where producer.* says nothing else.";
        SASL "sasl.<property>" String () Medium
            "How every Kafka client authenticates.";
        SSL "ssl.<property>" String () Medium
            "Certificates of every Kafka client.";
        CLIENT_DNS_LOOKUP "client.dns.lookup" String () Low
            "How every Kafka client uses names with several addresses.";
        REQUEST_TIMEOUT "request.timeout.ms" Int () Low
            "Limit on one request of every Kafka client."
            Rule::AtLeast(1);
        RETRY_BACKOFF "retry.backoff.ms" Int () Low
            "The first pause between two attempts of every Kafka client."
            Rule::AtLeast(0);
        RETRY_BACKOFF_MAX "retry.backoff.max.ms" Int () Low
            "The longest such pause."
            Rule::AtLeast(0);
        RECONNECT_BACKOFF "reconnect.backoff.ms" Int () Low
            "The first pause before every Kafka client connects again."
            Rule::AtLeast(0);
        RECONNECT_BACKOFF_MAX "reconnect.backoff.max.ms" Int () Low
            "The longest such pause."
            Rule::AtLeast(0);
        METADATA_MAX_AGE "metadata.max.age.ms" Int () Low
            "After what time every Kafka client asks for the cluster's metadata again."
            Rule::AtLeast(0);
        CONNECTIONS_MAX_IDLE "connections.max.idle.ms" Int () Low
            "After what time every Kafka client closes an idle connection."
            Rule::AtLeast(0);
        METADATA_RECOVERY "metadata.recovery.<property>" String () Low
            "What every Kafka client does when all brokers it knows are gone.";
        CONNECTION_SETUP "socket.connection.setup.<property>" String () Low
            "Limits on setting up a connection of every Kafka client.";
        RECEIVE_BUFFER "receive.buffer.bytes" Int () Low
            "The operating system's receive buffer of every Kafka client's connections."
            Rule::AtLeast(-1);
        SEND_BUFFER "send.buffer.bytes" Int () Low
            "The operating system's send buffer of every Kafka client's connections."
            Rule::AtLeast(-1);
        PRODUCER "producer.<property>" String () Medium
            "Settings of the connectors' producers, by the Java client's names.";
        CONSUMER "consumer.<property>" String () Low
            "Settings of the clients that read internal topics.";
        ADMIN "admin.<property>" String () Low
            "Settings of the clients that create topics.";
    }
    no effect {
        "client.id" String () "every client is named after its connector";
    }
    refused {}
}

keys! {
    /// Distributed workers.
    NOT_HERE "Distributed Workers"
    supported {}
    no effect {
        "session.timeout.ms" Int ("10000") "there is one worker";
        "heartbeat.interval.ms" Int ("3000") "there is one worker";
        "rebalance.timeout.ms" Int ("60000") "there is one worker";
        "scheduled.rebalance.max.delay.ms" Int ("300000") "there is one worker";
        "worker.sync.timeout.ms" Int ("3000") "there is one worker";
        "worker.unsync.backoff.ms" Int ("300000") "there is one worker";
        "connect.protocol" String ("sessioned") "there is one worker";
        "inter.worker.<property>" String () "there is one worker";
    }
    refused {}
}

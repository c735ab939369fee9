//! Keys of the way to Kafka: transactions, bounds, retries, schema changes, the pipeline.
//!
//! Names are Debezium's or Kafka Connect's where they have the thing. Knows no source.

use super::keys;
use crate::config::{Choice, Rule, Table};

/// Every table of this file.
pub const TABLES: [&Table; 6] =
    [&DELIVERY, &SCHEMA_CHANGES, &NOTICES, &PIPELINE, &SIGNALS, &OBSERVATION];

const NEVER_SKIPPED: &str = "a change is published exactly, or the task stops with a code";

const FAILURE_MODES: &[Choice] = &[
    Choice::of("fail"),
    Choice::refused("warn", NEVER_SKIPPED),
    Choice::refused("skip", NEVER_SKIPPED),
    Choice::refused("ignore", NEVER_SKIPPED),
];

keys! {
    /// Kafka transactions, their bounds, and retries.
    DELIVERY "Delivery"
    supported {
        TRANSACTION_LINGER "transaction.linger.ms" Long ("100") Medium
            "A Kafka transaction of whole source transactions is committed as soon as nothing waits, and at the latest after this time."
            Rule::Between(0, 60_000);
        TRANSACTION_MAX_BYTES "transaction.max.bytes" Long ("268435456") Low
            "Beyond this size a Kafka transaction is committed; only a source transaction that is larger is split over several."
            Rule::Between(1 << 20, 1 << 40);
        TRANSACTION_STAGE_BYTES "transaction.stage.bytes" Long ("4194304") Low
            "A source transaction up to this encoded size is encoded completely before its first record is produced. Not above the two bounds around it; the default gives way to them."
            Rule::Between(1 << 16, 1 << 30);
        QUEUE_BYTES "max.queue.size.in.bytes" Long ("16777216") Medium
            "Encoded records that wait for Kafka hold at most this much memory. Debezium's default is no limit."
            Rule::Between(1 << 20, 1 << 40);
        OFFSET_FLUSH_INTERVAL "offset.flush.interval.ms" Long () Low
            "Least time between two commits that only move the offset, on traffic that is not captured. Without it the worker's value holds."
            Rule::AtLeast(1);
        MAX_RETRIES "errors.max.retries" Int ("-1") Low
            "How often in a row a task is restarted after an error that may heal, before it is FAILED; -1 is no limit."
            Rule::AtLeast(-1);
        RESTART_WAIT "retriable.restart.connector.wait.ms" Long ("10000") Low
            "The pause before the first such restart; further pauses double up to errors.retry.delay.max.ms."
            Rule::AtLeast(1);
    }
    no effect {
        "event.processing.failure.handling.mode" String ("fail")
            "a change that cannot be read always stops the task with a code"
            Rule::OneOf(FAILURE_MODES);
        "event.converting.failure.handling.mode" String ("fail")
            "a column that cannot be converted always stops the task with a code"
            Rule::OneOf(FAILURE_MODES);
    }
    refused {}
}

keys! {
    /// What becomes of changed table definitions.
    SCHEMA_CHANGES "Schema Changes"
    supported {
        SCHEMA_CHANGES_TOPIC "schema.changes.topic" String () Medium
            "The topic of baselines and changes of table definitions. Without it: topic.prefix, topic.delimiter, schema-changes."
            Rule::Is(super::envelope::topic_text);
        SCHEMA_CHANGES_FORMAT "schema.changes.format" String ("tidegate") Low
            "The shape of these records. tidegate: the definition before and after, and all that is known of the change. debezium: Debezium's schema change events (tableChanges), with the rest in headers. With a topic of its own if it is changed later. See docs/schema-changes.md."
            Rule::OneOf(&[Choice::of("tidegate"), Choice::of("debezium")]);
        SCHEMA_CHANGES_MODE "schema.changes" String ("forward") Medium
            "What becomes of a changed definition. forward: it is announced before the first row of the new shape, the new schemas are registered, and rows go on; a change that no published schema shows (interval(3) to interval(0)), or by which values mean something else, stops all the same. refuse: every change stops the task before that row, until it is acknowledged. See docs/schema-changes.md."
            Rule::OneOf(&[Choice::of("forward"), Choice::of("refuse")]);
        SCHEMA_CHANGES_OF "schema.changes.<schema.table>" String () Low
            "The same for one table."
            Rule::OneOf(&[Choice::of("forward"), Choice::of("refuse")]);
        SCHEMA_KEY_ACTION "schema.key.action" String ("refuse") Low
            "What becomes of a change by which records are keyed by other columns. refuse: the task stops before the first row, for what was published under earlier keys stays, and one row's records are in two partitions. forward: it goes on like other changes."
            Rule::OneOf(&[Choice::of("refuse"), Choice::of("forward")]);
        SCHEMA_RENAME_ACTION "schema.rename.action" String ("forward") Low
            "What becomes of a table that is renamed or moved to another schema. forward: its rows go to the topic of its new name, as far as that is captured. refuse: the task stops before the first of them."
            Rule::OneOf(&[Choice::of("forward"), Choice::of("refuse")]);
        SCHEMA_CHANGES_ACKNOWLEDGED "schema.changes.acknowledged" List () Low
            "Ids of the changes that an operator lets pass; the message with which the task stopped has the id.";
    }
    no effect {
        "schema.refresh.mode" String ("columns_diff")
            "rows are decoded with the definition that the stream gives, never with the catalogue's present one"
            Rule::OneOf(&[
                Choice::of("columns_diff"),
                Choice::of("columns_diff_exclude_unchanged_toast"),
            ]);
        "include.schema.changes" Boolean ("true")
            "definitions are always published, to schema.changes.topic";
    }
    refused {}
}

keys! {
    /// What is told beside the changes.
    NOTICES "Transactions and Heartbeats"
    supported {
        TRANSACTION_METADATA "provide.transaction.metadata" Boolean ("false") Medium
            "Whether each transaction of which something is published has a record at its beginning and its end, in a topic of their own, and every change says its place in it.";
        TRANSACTION_TOPIC "topic.transaction" String ("transaction") Low
            "The last part of that topic's name, behind topic.prefix and topic.delimiter."
            Rule::Is(super::envelope::topic_text);
        HEARTBEAT_INTERVAL "heartbeat.interval.ms" Int ("0") Low
            "How often a heartbeat is published while the stream runs; 0 is never. Offset and source log move on without, with traffic that is not captured, too."
            Rule::AtLeast(0);
        HEARTBEAT_PREFIX "topic.heartbeat.prefix" String ("__debezium-heartbeat") Low
            "The first part of the name of the heartbeats' topic, before topic.delimiter and topic.prefix."
            Rule::Is(super::envelope::topic_text);
        HEARTBEAT_PREFIX_OLD "heartbeat.topics.prefix" String () Low
            "An older name of topic.heartbeat.prefix."
            Rule::Is(super::envelope::topic_text);
        HEARTBEAT_ACTION "heartbeat.action.query" String () Low
            "SQL that is run on the source at every heartbeat, on a connection of its own. If it fails that is logged, and it is tried again at the next.";
        CONTEXT_HEADERS "extended.headers.enabled" Boolean ("false") Low
            "Whether every record has Debezium's headers __debezium.context.*, which name connector, task and run. They cost more than 150 bytes a record; Debezium's default is true.";
    }
    no effect {}
    refused {}
}

keys! {
    /// Debezium's pipeline.
    PIPELINE "Pipeline"
    supported {}
    no effect {
        "max.batch.size" Int ("2048") "the bounds are max.queue.size.in.bytes and transaction.max.bytes"
            Rule::AtLeast(1);
        "max.queue.size" Int ("8192") "the bound is max.queue.size.in.bytes"
            Rule::AtLeast(1);
        "poll.interval.ms" Long ("500") "changes are handed on as they arrive; nothing polls"
            Rule::AtLeast(0);
        "poll.dispatch.interval.ms" Long ("0") "changes are handed on as they arrive; nothing polls"
            Rule::AtLeast(0);
        "executor.shutdown.timeout.ms" Long ("4000")
            "see the worker's task.shutdown.graceful.timeout.ms"
            Rule::AtLeast(0);
        "memory.management.schemas.class" Class ("io.debezium.relational.ConcurrentMapTableMappingStorage")
            "table definitions are compiled into plans";
        "memory.management.tables.class" Class ("io.debezium.relational.ConcurrentMapTableMappingStorage")
            "table definitions are compiled into plans";
        "internal.advanced.metrics.enable" Boolean ("false") "metrics are the worker's own";
        "internal.legacy.snapshot.max.threads" Boolean ("false") "tables are read one after another";
        "internal.snapshot.scan.all.columns.force" Boolean ("false")
            "only the columns of captured tables are looked up";
        "topic.cache.size" Int ("10000") "a topic's name is made once for each table version"
            Rule::AtLeast(1);
        "guardrail.collections.limit.action" String ("warn")
            "matters only with guardrail.collections.max, which is refused"
            Rule::OneOf(&[Choice::of("warn"), Choice::of("fail")]);
    }
    refused {
        "transaction.metadata.factory" Class
            ("io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory")
            "it names a Java class";
        "topic.heartbeat.name" String ()
            "heartbeats go to the topic of topic.heartbeat.prefix, topic.delimiter and topic.prefix";
        "topic.naming.strategy" Class ("io.debezium.schema.SchemaTopicNamingStrategy")
            "it names a Java class; topics are named after prefix, schema and table";
        "queue.provider.type" String ("memory") "the queue is in memory";
        "guardrail.collections.max" Int ("0") "the number of tables has no limit";
        "post.processors" List () "post-processors are not built";
        "converters" List () "custom converters are Java classes";
        "custom.sanitize.pattern" String () "secrets are hidden by the key's type, everywhere";
        "internal.log.position.check.enable" Boolean ("true") "the position is always checked";
        "internal.custom.retriable.exception" String ("false") "what may heal is decided by an error's code";
        "internal.<property>" String () "Debezium's internal switches have nothing to switch here";
    }
}

keys! {
    /// Signals, incremental snapshots, notifications.
    SIGNALS "Signals"
    supported {}
    no effect {
        "signal.enabled.channels" List ("source")
            "signals come by the table of signal.data.collection, if it is given; and the same by REST"
            Rule::EachOf(&[
                Choice::of("source"),
                Choice::refused("kafka", "signals come by the signal table, or by REST"),
                Choice::refused("file", "signals come by the signal table, or by REST"),
                Choice::refused("jmx", "there is no Java virtual machine"),
            ]);
        "signal.poll.interval.ms" Long ("5000") "the signal table is read with the changes" Rule::AtLeast(0);
        "signal.emit.failure.max.retries" Int ("0") "nothing is written to the signal table";
        "signal.emit.failure.backoff.ms" Long ("10000") "nothing is written to the signal table";
        "signal.file" String ("file-signals.txt") "matters only with the signal channel file";
        "signal.kafka.topic" String () "matters only with the signal channel kafka";
        "signal.kafka.groupId" String ("kafka-signal") "matters only with the signal channel kafka";
        "signal.kafka.bootstrap.servers" String () "matters only with the signal channel kafka";
        "signal.kafka.poll.timeout.ms" Int ("100") "matters only with the signal channel kafka";
        "signal.consumer.<property>" String () "matters only with the signal channel kafka";
        "read.only" Boolean ("false") "nothing is written to the source in any case";
        "notification.sink.topic.name" String ()
            "matters only with notification.enabled.channels, which is refused";
    }
    refused {
        "notification.enabled.channels" List () "notifications are not built yet";
    }
}

keys! {
    /// Metrics and lineage.
    OBSERVATION "Observation"
    supported {}
    no effect {
        "statistics.metrics.enabled" Boolean ("true") "metrics are the worker's, not the connector's";
        "openlineage.integration.<property>" String ()
            "matters only with openlineage.integration.enabled, which is refused";
    }
    refused {
        "custom.metric.tags" List () "metrics have no tags of one's own";
        "openlineage.integration.enabled" Boolean ("false") "lineage events are not built";
    }
}

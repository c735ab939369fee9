//! Every metric that has nothing to do with one particular database.
//!
//! Names of Kafka Connect's and Debezium's metrics are those under which the usual rules of the JMX
//! exporter show them (Strimzi's, and those of Debezium's monitoring example), so that existing
//! dashboards find them. What has no true meaning here is left out, not set to zero.

use super::metric::{Buckets, Group, Metric, MetricKind, metrics};
use MetricKind::{Counter, Gauge, Histogram};

/// A millisecond to five minutes, counted in microseconds.
pub(super) static LATENCY: Buckets = Buckets {
    bounds: &[
        1_000,
        2_500,
        5_000,
        10_000,
        25_000,
        50_000,
        100_000,
        250_000,
        500_000,
        1_000_000,
        2_500_000,
        5_000_000,
        10_000_000,
        30_000_000,
        60_000_000,
        300_000_000,
    ],
    per_unit: 1_000_000,
};

/// One to ten million.
pub(super) static CHANGES: Buckets =
    Buckets { bounds: &[1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000], per_unit: 1 };

/// 256 bytes to 4 GiB.
pub(super) static BYTES: Buckets = Buckets {
    bounds: &[
        1 << 8,
        1 << 10,
        1 << 12,
        1 << 14,
        1 << 16,
        1 << 18,
        1 << 20,
        1 << 22,
        1 << 24,
        1 << 28,
        1 << 32,
    ],
    per_unit: 1,
};

metrics! {
    /// Kafka Connect's.
    CONNECT "Kafka Connect's"
    CONNECTORS "kafka_connect_worker_connector_count" Gauge, "", [], "Connectors of this worker, stopped ones included.";
    TASKS "kafka_connect_worker_task_count" Gauge, "", [], "Tasks of this worker.";
    CONNECTOR_TASKS_TOTAL "kafka_connect_worker_connector_total_task_count" Gauge, "", ["connector"], "The connector's tasks.";
    CONNECTOR_TASKS_RUNNING "kafka_connect_worker_connector_running_task_count" Gauge, "", ["connector"], "The connector's tasks that are at work, or wait for a service to come back.";
    CONNECTOR_TASKS_PAUSED "kafka_connect_worker_connector_paused_task_count" Gauge, "", ["connector"], "The connector's tasks that are paused.";
    CONNECTOR_TASKS_FAILED "kafka_connect_worker_connector_failed_task_count" Gauge, "", ["connector"], "The connector's tasks that have failed.";
    CONNECTOR_TASKS_UNASSIGNED "kafka_connect_worker_connector_unassigned_task_count" Gauge, "", ["connector"], "The connector's tasks that have not begun.";
    CONNECTOR_TASKS_RESTARTING "kafka_connect_worker_connector_restarting_task_count" Gauge, "", ["connector"], "The connector's tasks that are being restarted.";
    CONNECTOR_STARTS "kafka_connect_worker_connector_startup_attempts_total" Counter, "", [], "Connectors that this worker was to start.";
    CONNECTOR_STARTS_GOOD "kafka_connect_worker_connector_startup_success_total" Counter, "", [], "Connectors of which the configuration was accepted at the start.";
    CONNECTOR_STARTS_BAD "kafka_connect_worker_connector_startup_failure_total" Counter, "", [], "Connectors of which the configuration was refused at the start.";
    TASK_STARTS "kafka_connect_worker_task_startup_attempts_total" Counter, "", [], "Attempts to start a task, those after a fault included.";
    TASK_STARTS_GOOD "kafka_connect_worker_task_startup_success_total" Counter, "", [], "Attempts that reached Kafka, with the producer and the stored offset at hand.";
    TASK_STARTS_BAD "kafka_connect_worker_task_startup_failure_total" Counter, "", [], "Attempts that did not.";
    CONNECTOR_STATUS "kafka_connect_connector_status" Gauge, "", ["connector", "status"], "1 for the connector's status, in small letters.";
    TASK_STATUS "kafka_connect_connector_task_status" Gauge, "", ["connector", "task", "status"], "1 for the task's status, in small letters.";
    POLLED "kafka_connect_source_task_source_record_poll_total" Counter, "", ["connector", "task"], "Records made from the source's changes, before they are sent.";
    WRITTEN "kafka_connect_source_task_source_record_write_total" Counter, "", ["connector", "task"], "Records in committed Kafka transactions.";
    ACTIVE "kafka_connect_source_task_source_record_active_count" Gauge, "", ["connector", "task"], "Records sent in the Kafka transaction that is open.";
    TRANSACTION_MIN "kafka_connect_source_task_transaction_size_min" Gauge, "records", ["connector", "task"], "The fewest records of a committed Kafka transaction that had any.";
    TRANSACTION_MAX "kafka_connect_source_task_transaction_size_max" Gauge, "records", ["connector", "task"], "The most records of a committed Kafka transaction.";
    TRANSACTION_AVG "kafka_connect_source_task_transaction_size_avg" Gauge, "records", ["connector", "task"], "The mean number of records of the committed Kafka transactions that had any.";
    LAST_ERROR "kafka_connect_task_error_last_error_timestamp" Gauge, "ms", ["connector", "task"], "When the task last met a fault, since 1970; 0: never.";
}

metrics! {
    /// Debezium's.
    DEBEZIUM "Debezium's"
    CONNECTED "debezium_metrics_Connected" Gauge, "", ["connector", "task", "plugin", "name", "context"], "Whether the stream of changes is being read.";
    BEHIND "debezium_metrics_MilliSecondsBehindSource" Gauge, "ms", ["connector", "task", "plugin", "name", "context"], "From the commit at the source to the visibility in Kafka: the age of the oldest transaction that is being published, or else what the last one took; 0 once the source has confirmed everything.";
    SINCE_LAST "debezium_metrics_MilliSecondsSinceLastEvent" Gauge, "ms", ["connector", "task", "plugin", "name", "context"], "Since the last change; -1: there was none.";
    SEEN "debezium_metrics_TotalNumberOfEventsSeen" Counter, "", ["connector", "task", "plugin", "name", "context"], "Changes (streaming) or rows (snapshot).";
    CREATES_SEEN "debezium_metrics_TotalNumberOfCreateEventsSeen" Counter, "", ["connector", "task", "plugin", "name", "context"], "Rows inserted.";
    UPDATES_SEEN "debezium_metrics_TotalNumberOfUpdateEventsSeen" Counter, "", ["connector", "task", "plugin", "name", "context"], "Rows updated, those with a new key included.";
    DELETES_SEEN "debezium_metrics_TotalNumberOfDeleteEventsSeen" Counter, "", ["connector", "task", "plugin", "name", "context"], "Rows deleted.";
    TRANSACTIONS_SEEN "debezium_metrics_NumberOfCommittedTransactions" Counter, "", ["connector", "task", "plugin", "name", "context"], "Source transactions with changes of captured tables.";
    QUEUE_LIMIT "debezium_metrics_MaxQueueSizeInBytes" Gauge, "bytes", ["connector", "task", "plugin", "name", "context"], "What the queue between reader and publisher may hold.";
    QUEUE_BYTES "debezium_metrics_CurrentQueueSizeInBytes" Gauge, "bytes", ["connector", "task", "plugin", "name", "context"], "What it holds, what is being published included.";
    SNAPSHOT_RUNNING "debezium_metrics_SnapshotRunning" Gauge, "", ["connector", "task", "plugin", "name", "context"], "Whether a snapshot is being taken.";
    SNAPSHOT_PAUSED "debezium_metrics_SnapshotPaused" Gauge, "", ["connector", "task", "plugin", "name", "context"], "Whether a snapshot beside the stream is held.";
    SNAPSHOT_COMPLETED "debezium_metrics_SnapshotCompleted" Gauge, "", ["connector", "task", "plugin", "name", "context"], "Whether this task has completed one.";
    SNAPSHOT_ABORTED "debezium_metrics_SnapshotAborted" Gauge, "", ["connector", "task", "plugin", "name", "context"], "Whether this task's last one was broken off.";
    SNAPSHOT_SECONDS "debezium_metrics_SnapshotDurationInSeconds" Gauge, "s", ["connector", "task", "plugin", "name", "context"], "How long the last one took, or has taken so far.";
    SNAPSHOT_TABLES "debezium_metrics_TotalTableCount" Gauge, "", ["connector", "task", "plugin", "name", "context"], "Tables that the last one reads.";
    SNAPSHOT_REMAINING "debezium_metrics_RemainingTableCount" Gauge, "", ["connector", "task", "plugin", "name", "context"], "Tables of them that are not read to the end.";
    SNAPSHOT_ROWS "debezium_metrics_RowsScanned" Gauge, "rows", ["connector", "task", "plugin", "name", "context", "table"], "Rows that the last one has read of each table.";
}

metrics! {
    /// The worker's own.
    OWN "Tidegate's own"
    BUILD "tidegate_build_info" Gauge, "", ["version", "commit"], "1, with the version in the labels.";
    CHANGES_TOTAL "tidegate_changes_total" Counter, "", ["connector", "task", "schema", "table", "kind"], "Changes that records were made from: read (by a snapshot), create, update, key_change, delete, truncate, moved_in and moved_out (over the border of a row filter), found_out (a row outside of it whose key is deleted, for nobody knows whether it was published), message (of applications).";
    UNAVAILABLE "tidegate_unavailable_values_total" Counter, "", ["connector", "task", "schema", "table"], "Values of new row images that the source did not send, so that a placeholder stands for them.";
    UNMERGEABLE "tidegate_unmergeable_records_total" Counter, "", ["connector", "task", "schema", "table"], "Records with placeholders that no earlier record of their key resolves (__tidegate.unmergeable): mostly rows whose key changed.";
    FILTERED "tidegate_row_filter_changes_total" Counter, "", ["connector", "task", "schema", "table", "verdict"], "Rows and changes of tables with a row filter, by what it said: in, out (nothing is published), moved_in, moved_out (also what tidegate_changes_total counts as found_out: a row that is out, of which nobody knows whether it was published), stopped (it could not be decided, and the task failed).";
    RECORDS "tidegate_records_total" Counter, "", ["connector", "task", "topic"], "Records in committed Kafka transactions, by topic.";
    RECORD_BYTES "tidegate_record_bytes_total" Counter, "bytes", ["connector", "task", "topic"], "Their keys, values and headers, before compression.";
    REFUSED_NOTES "tidegate_ddl_notes_refused_total" Counter, "", ["connector", "task"], "Messages of the prefix tidegate.ddl that are not believed and have no effect: they are forged or damaged, or the event triggers could not write what happened (TG-E-DDL-NOTE-REFUSED).";
    SIGNALS "tidegate_signals_total" Counter, "", ["connector", "task", "outcome"], "Rows of the signal table (signal.data.collection): done, or refused (the log says why).";
    STAGED "tidegate_staged_bytes" Gauge, "bytes", ["connector", "task"], "Encoded records that wait for their transaction's end.";
    SIZE_CHANGES "tidegate_source_transaction_changes" Histogram(&CHANGES), "changes", ["connector", "task"], "Changes of each source transaction that had any.";
    SIZE_BYTES "tidegate_source_transaction_bytes" Histogram(&BYTES), "bytes", ["connector", "task"], "Encoded records of each source transaction that had changes.";
    DELIVERY "tidegate_delivery_seconds" Histogram(&LATENCY), "s", ["connector", "task"], "From a transaction's commit at the source to its visibility in Kafka, by the clocks of both.";
    KAFKA_SECONDS "tidegate_kafka_transaction_seconds" Histogram(&LATENCY), "s", ["connector", "task"], "From the beginning of a Kafka transaction to the acknowledgement of its commit.";
    KAFKA_TRANSACTIONS "tidegate_kafka_transactions_total" Counter, "", ["connector", "task", "outcome"], "Kafka transactions: committed (those that hold nothing but the offset included) or aborted.";
    BUFFER_FULL "tidegate_producer_buffer_full_total" Counter, "", ["connector", "task"], "How often a record waited a millisecond because the producer's buffer was full.";
    REGISTRY_REQUESTS "tidegate_registry_requests_total" Counter, "", ["connector", "task", "outcome"], "Requests to schema registries: answered, refused, or failed (no answer that settles it).";
    REGISTRY_SECONDS "tidegate_registry_request_seconds" Histogram(&LATENCY), "s", ["connector", "task"], "How long they took.";
    REGISTRY_RETRIES "tidegate_registry_retries_total" Counter, "", ["connector", "task"], "How often a registry was asked again.";
    FAULTS "tidegate_task_faults_total" Counter, "", ["connector", "task", "code", "fate"], "Faults that ended an attempt of the task, by code; the task was restarted or failed.";
    WAITING "tidegate_task_waiting" Gauge, "", ["connector", "task"], "Whether the task is running, but waits for a service to come back.";
    PROBED "tidegate_source_probe_up" Gauge, "", ["connector", "task"], "Whether the last look at the source's health succeeded. The source's own metrics are there only then.";
}

metrics! {
    /// The process, under the names that Prometheus' client libraries use.
    PROCESS "The process (Linux)"
    CPU_SECONDS "process_cpu_seconds_total" Counter, "s", [], "Processor time, user and system.";
    RESIDENT "process_resident_memory_bytes" Gauge, "bytes", [], "Memory in use.";
    VIRTUAL "process_virtual_memory_bytes" Gauge, "bytes", [], "Address space in use.";
    OPEN_FDS "process_open_fds" Gauge, "", [], "Open files and connections.";
    MAX_FDS "process_max_fds" Gauge, "", [], "How many may be open.";
    START_TIME "process_start_time_seconds" Gauge, "s", [], "When the process began, since 1970.";
}

/// Counts of tasks by state, in Connect's words.
pub(crate) static CONNECTOR_TASKS: [(&str, &Metric); 5] = [
    ("RUNNING", &CONNECTOR_TASKS_RUNNING),
    ("PAUSED", &CONNECTOR_TASKS_PAUSED),
    ("FAILED", &CONNECTOR_TASKS_FAILED),
    ("UNASSIGNED", &CONNECTOR_TASKS_UNASSIGNED),
    ("RESTARTING", &CONNECTOR_TASKS_RESTARTING),
];

/// Every group, in the order of display.
pub static DEFINITIONS: [&Group; 4] = [&CONNECT, &DEBEZIUM, &OWN, &PROCESS];

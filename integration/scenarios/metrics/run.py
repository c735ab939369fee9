"""`GET /metrics`: legal text, all that the documentation lists, and true numbers, while running, paused, failed and gone."""

from harness.checks import check, equal, wait_for
from harness.metrics import Metrics, documented, scrape
from harness.trial import PASSWORD, Trial
from harness.worker import Worker

# The same on every version of the server.
SERVER_MATTERS = False

ODD = 'odd "name\\\nhere'


def no_connector(t: Trial) -> None:
    worker = t.worker()
    metrics = scrape(worker.rest.base)
    equal(metrics.value("kafka_connect_worker_connector_count"), 0, "connectors")
    equal(metrics.value("kafka_connect_worker_task_count"), 0, "tasks")
    check(metrics.value("process_resident_memory_bytes") > 1 << 20, "the process has memory")
    scrape(worker.rest.base, accept="*/*")
    equal(worker.rest("POST", "/metrics").status, 405, "status of POST /metrics")


def numbers(t: Trial) -> None:
    t.own_server(max_slot_wal_keep_size="1GB")
    worker = t.worker()
    connector = t.connect(worker, slot_health_interval_ms="200", slot_retained_warn_bytes="2000000",
                          schema_name_adjustment_mode="avro", row_filter_public_t="true")
    odd = '"' + ODD.replace('"', '""') + '"'
    t.sql("insert into t values (3, 3, 'c'); insert into t values (4, 4, 'd')",
          "update t set v = 10 where id = 1",  # the large value is not sent
          "update t set id = 20 where id = 2",
          "delete from t where id = 3",
          f"insert into {odd} values (1)")
    t.settle()

    table = {"connector": t.name, "task": "0", "schema": "public", "table": "t"}
    metrics = scrape(worker.rest.base)
    for kind, count in {"read": 2, "create": 2, "update": 1, "key_change": 1, "delete": 1, "truncate": 0}.items():
        equal(metrics.value("tidegate_changes_total", kind=kind, **table), count, f"changes of kind {kind}")
    equal(metrics.value("tidegate_changes_total", kind="create", schema="public", table=ODD), 1, "rows of the odd table")
    equal(metrics.value("tidegate_unavailable_values_total", **table), 1, "values that were not sent")
    for name in ("tidegate_source_transaction_changes", "tidegate_source_transaction_bytes", "tidegate_delivery_seconds"):
        equal(metrics.value(name + "_count"), 5, f"source transactions in {name}")
    equal(metrics.value("tidegate_source_transaction_changes_sum"), 6, "changes in transactions")
    check(metrics.quantile_is_below("tidegate_delivery_seconds", 30), "no transaction took half a minute")
    records = len(t.topic("t").read())
    equal(metrics.value("tidegate_records_total", topic=f"{t.name}.public.t"), records, "records of the topic")
    equal(metrics.value("kafka_connect_source_task_source_record_write_total"),
          sum(metrics.values("tidegate_records_total")), "records of all topics")
    equal(metrics.value("tidegate_kafka_transaction_seconds_count"),
          metrics.value("tidegate_kafka_transactions_total", outcome="committed"), "Kafka transactions")
    check(metrics.value("tidegate_registry_requests_total", outcome="answered") >= 4, "the registry was asked")
    debezium(t, metrics)
    wait_for(lambda: scrape(worker.rest.base).value("debezium_metrics_MilliSecondsBehindSource") == 0, 30,
             "nothing behind the source", worker.ended)

    # A fault that heals makes the last of the documented metrics appear.
    t.server.query("select pg_terminate_backend(%s)", t.slot()["active_pid"])
    wait_for(lambda: scrape(worker.rest.base).values("tidegate_task_faults_total", fate="retry"), 30, "a counted fault")
    connector.wait_running()
    t.wait_streaming()
    everything(t, worker)
    paused(t, worker)
    gone(t, worker)


def debezium(t: Trial, metrics: Metrics) -> None:
    labels = {"plugin": "postgres", "name": t.name}
    streaming, snapshot = ({**labels, "context": context} for context in ("streaming", "snapshot"))
    for name, count in {"Connected": 1, "TotalNumberOfEventsSeen": 6, "TotalNumberOfCreateEventsSeen": 3,
                        "TotalNumberOfUpdateEventsSeen": 2, "TotalNumberOfDeleteEventsSeen": 1,
                        "NumberOfCommittedTransactions": 5}.items():
        equal(metrics.value(f"debezium_metrics_{name}", **streaming), count, name)
    for name, count in {"SnapshotRunning": 0, "SnapshotCompleted": 1, "SnapshotAborted": 0, "TotalTableCount": 2,
                        "RemainingTableCount": 0, "TotalNumberOfEventsSeen": 2}.items():
        equal(metrics.value(f"debezium_metrics_{name}", **snapshot), count, name)
    equal(metrics.value("debezium_metrics_RowsScanned", table="public.t"), 2, "rows scanned")
    equal(metrics.value("kafka_connect_connector_task_status", status="running"), 1, "the task's status")


def everything(t: Trial, worker: Worker) -> None:
    """Whatever is documented is there, and nothing else; no secret is."""
    version = int(t.server.value("select current_setting('server_version_num')"))
    late = set() if version >= 170000 else {"tidegate_slot_inactive_seconds"}
    metrics = wait_for(lambda: found if (found := scrape(worker.rest.base)).values("tidegate_slot_lag_bytes") else None,
                       30, "the slot's health")
    equal(sorted(metrics.families), sorted(documented() - late), "metrics")
    check(PASSWORD not in metrics.text and "s3cret" not in metrics.text, "no password is shown")


def paused(t: Trial, worker: Worker) -> None:
    """The slot is watched while nobody reads it, and the log warns once."""
    connector = worker.connector(t.name)
    connector.put("pause")
    connector.wait_states("PAUSED", "PAUSED")
    check(scrape(worker.rest.base).value("debezium_metrics_Connected") == 0, "it is not connected")
    t.sql("insert into t select g, g, repeat(md5(g::text), 100) from generate_series(1000, 2000) g")
    metrics = wait_for(lambda: found if (found := scrape(worker.rest.base)).value("tidegate_slot_lag_bytes") > 3_000_000 else None,
                       30, "the slot's lag in the metrics")
    check(metrics.value("tidegate_slot_retained_bytes") >= metrics.value("tidegate_slot_lag_bytes"), "retained covers the lag")
    equal(metrics.value("tidegate_slot_wal_status", status="reserved"), 1, "the slot's wal_status")
    equal(metrics.value("tidegate_slot_active"), 0, "whether the slot is read")
    worker.wait_log("bytes of log for the replication slot")
    connector.put("resume")
    connector.wait_running()
    t.settle()
    equal(worker.log_text().count("bytes of log for the replication slot"), 1, "warnings of retained log")


def gone(t: Trial, worker: Worker) -> None:
    """What is deleted leaves no series."""
    worker.connector(t.name).delete()
    metrics = scrape(worker.rest.base)
    check(t.name not in metrics.text, "the connector's series are gone")
    equal(metrics.value("kafka_connect_worker_connector_count"), 0, "connectors")


CASES = {"no-connector": no_connector, "numbers": numbers}

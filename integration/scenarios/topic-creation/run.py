"""Topics are created as the configuration says, or the refusal names the topic, and nothing is lost by it."""

from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from harness.checks import check, equal
from harness.trial import Trial


def as_configured(t: Trial) -> None:
    t.connect(topic_creation_default_partitions="3", skipped_operations="t",
              **{"topic.creation.default.cleanup.policy": "compact"})
    t.sql("insert into t select generate_series(1, 30)")
    records = t.settled_records("t")
    equal(t.topic("t").partitions(), [0, 1, 2], "partitions")
    resource = ConfigResource(ResourceType.TOPIC, f"{t.name}.public.t")
    admin = AdminClient({"bootstrap.servers": t.kafka.address})
    settings = admin.describe_configs([resource])[resource].result()
    equal(settings["cleanup.policy"].value, "compact", "cleanup.policy")
    equal(sorted(r.after["id"] for r in records), list(range(1, 31)), "ids")


def keyless_and_compacted(t: Trial) -> None:
    """The broker would refuse a record without key there, at some later time; so the connector is not begun."""
    worker = t.worker()
    config = t.config() | {"topic.creation.default.cleanup.policy": "compact"}
    answer = worker.rest("POST", "/connectors", {"name": t.name, "config": config}, timeout=90)
    text = answer.message if answer.status == 400 else worker.connector(t.name).wait_failed()
    check("TG-E-TOPIC-COMPACTED" in text and "public.t" in text, f"truncates have no key: {text}")


def too_many_replicas(t: Trial) -> None:
    worker = t.worker()
    connector = worker.create(t.name, t.config(topic_creation_default_replication_factor="3"), running=False)
    t.sql("insert into t values (1)")
    trace = connector.wait_failed("TG-E-TOPIC-CREATION")
    check(t.name in trace, f"the trace names the topic: {trace}")
    answer = connector.request("PUT", "/config", t.config())
    equal(answer.status, 200, f"status of PUT config ({answer.message})")
    connector.wait_running()
    t.wait_streaming()
    t.sql("insert into t values (2)")
    equal([r.after["id"] for r in t.settled_records("t")], [1, 2], "ids")


def switched_off(t: Trial) -> None:
    t.sql("insert into t values (1)")
    worker = t.worker(topic_creation_enable="false")
    connector = worker.create(t.name, t.config(), running=False)
    trace = connector.wait_failed("TG-E-TOPIC-MISSING")
    check(f"{t.name}." in trace, f"the trace names the topic: {trace}")
    admin = AdminClient({"bootstrap.servers": t.kafka.address})
    names = [f"{t.name}.public.t", f"{t.name}.schema-changes"]
    for future in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        future.result()
    connector.restart()
    connector.wait_running()
    t.wait_streaming()
    equal([r.after["id"] for r in t.settled_records("t")], [1], "ids")


CASES = {"as-configured": as_configured, "compacted": keyless_and_compacted, "too-many-replicas": too_many_replicas,
         "switched-off": switched_off}

"""Topics are created as the configuration says, or the refusal names the topic, and nothing is lost by it."""

from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from harness.checks import check, equal
from harness.trial import Trial

# The same on every version of the server.
SERVER_MATTERS = False


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
    config = t.config() | {"topic.creation.default.cleanup.policy": "compact"}
    text = t.refused(t.worker(), config, "TG-E-TOPIC-COMPACTED")
    check("public.t" in text, f"the table is named: {text}")


def too_many_replicas(t: Trial) -> None:
    worker = t.worker()
    text = t.refused(worker, t.config(topic_creation_default_replication_factor="3"), "TG-E-TOPIC-CREATION")
    check(f"{t.name}." in text, f"the topic is named: {text}")
    t.connect(worker)
    t.sql("insert into t values (1)")
    equal([r.after["id"] for r in t.settled_records("t")], [1], "ids")


def switched_off(t: Trial) -> None:
    t.sql("insert into t values (1)")
    worker = t.worker(topic_creation_enable="false")
    text = t.refused(worker, t.config(), "TG-E-TOPIC-MISSING")
    check(f"{t.name}." in text, f"the topic is named: {text}")
    admin = AdminClient({"bootstrap.servers": t.kafka.address})
    names = [f"{t.name}.public.t", f"{t.name}.schema-changes"]
    for future in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        future.result()
    t.connect(worker)
    equal([r.after["id"] for r in t.settled_records("t")], [1], "ids")


CASES = {"as-configured": as_configured, "compacted": keyless_and_compacted, "too-many-replicas": too_many_replicas,
         "switched-off": switched_off}

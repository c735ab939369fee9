"""What a cluster refuses, forgets or loses: each ends as promised, and each row arrives once.

Every case has a cluster of its own, for most of them change what holds for all of it.
"""

import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import (NewPartitions, AclBinding, AclBindingFilter, AclOperation, AclPermissionType, AdminClient,
                                   ResourcePatternType, ResourceType)

from harness.checks import check, equal, wait_for
from harness.hanging import HangingTransaction
from harness.trial import Trial

# The same on every version of the server.
SERVER_MATTERS = False
LONG = True

# Whoever does not say who he is.
ANYBODY = "User:ANONYMOUS"
# Seconds.
OUTAGE = 600


def rights(t: Trial) -> None:
    """A right that is taken away fails the task by name; given back, nothing is lost and nothing comes twice."""
    t.own_kafka(authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                allow_everyone_if_no_acl_found="true", super_users="User:nobody")
    admin = AdminClient({"bootstrap.servers": t.kafka.address})
    connector = t.connect()
    ids = [1, 2]

    def without(kind: ResourceType, name: str, operation: AclOperation, says: str, *, table: str = "t") -> None:
        # a resource with any rule is closed to all whom none lets in
        allow, deny = (AclBinding(kind, name, ResourcePatternType.LITERAL, ANYBODY, "*", what, permission)
                       for what, permission in ((AclOperation.ALL, AclPermissionType.ALLOW),
                                                (operation, AclPermissionType.DENY)))
        for done in admin.create_acls([allow, deny]).values():
            done.result()
        wait_for(lambda: len(admin.describe_acls(everything(kind, name)).result()) == 2, 30, "the rules")
        stood = t.slot()["confirmed"]
        ids.append(len(ids) + 1)
        t.sql(f"insert into {table} values ({ids[-1]}, 'refused')")
        text = connector.wait_failed("TG-E-KAFKA-AUTHORIZATION")
        check(says in text, f"it says {says!r}: {text}")
        equal(connector.fail_again("TG-E-KAFKA-AUTHORIZATION") is not None, True, "the same after a restart")
        equal(t.slot()["confirmed"], stood, "where the slot stands")
        for done in admin.delete_acls([everything(kind, name)]).values():
            done.result()
        wait_for(lambda: not admin.describe_acls(everything(kind, name)).result(), 30, "no rules")
        connector.restart()
        connector.wait_running()

    without(ResourceType.TOPIC, f"{t.name}.public.t", AclOperation.WRITE, f"{t.name}.public.t")
    without(ResourceType.TOPIC, f"{t.name}-offsets", AclOperation.WRITE, f"{t.name}-offsets")
    without(ResourceType.TRANSACTIONAL_ID, f"{t.name}-{t.name}-0", AclOperation.WRITE, f"{t.name}-{t.name}-0")
    records = t.settled_records("t")
    equal([r.after["id"] for r in records], ids, "ids")
    t.exactly_once(records)


def everything(kind: ResourceType, name: str) -> AclBindingFilter:
    """All rules of one resource."""
    return AclBindingFilter(kind, name, ResourcePatternType.LITERAL, None, None, AclOperation.ANY, AclPermissionType.ANY)


def forgotten_id(t: Trial) -> None:
    """The cluster forgets a transactional id that was idle for long: the next row is published all the same."""
    t.own_kafka(transactional_id_expiration_ms="15000", producer_id_expiration_ms="15000",
                transaction_remove_expired_transaction_cleanup_interval_ms="1000",
                transaction_state_log_num_partitions="1")
    connector = t.connect()
    t.sql("insert into t values (3, 'known')")
    t.settle()
    forgetting = Forgetting(t, f"{t.name}-{t.name}-0")
    wait_for(forgetting.happened, 90, "the cluster to forget the id")
    t.sql("insert into t values (4, 'forgotten')", "update t set v = 'again' where id = 4")
    records = t.records("t", 5)
    equal([(r.op, r.after["id"]) for r in records], [("r", 1), ("r", 2), ("c", 3), ("c", 4), ("u", 4)], "records")
    equal(connector.states(), ["RUNNING", "RUNNING"], "states")
    t.settle()
    t.exactly_once(t.topic("t").read())


def long_outage(t: Trial) -> None:
    """The cluster is away for ten minutes, longer than any of its time limits."""
    t.own_kafka()
    worker = t.worker()
    connector = t.connect(worker)
    t.settle()
    t.kafka.kill()
    end = time.monotonic() + OUTAGE
    stood, last = t.slot()["confirmed"], 2
    while time.monotonic() < end:
        last += 1
        t.sql(f"insert into t values ({last}, 'meanwhile')")
        equal(t.slot()["confirmed"], stood, "where the slot stands")
        equal(connector.request("GET", "/status").status, 200, "REST meanwhile")
        check(connector.failed() is None, "nothing has to be restarted by hand")
        time.sleep(1)
    t.kafka.start()
    connector.wait_running(timeout=180)
    t.settle(timeout=180)
    records = t.topic("t").read()
    equal([r.after["id"] for r in records], list(range(1, last + 1)), "ids in order")
    t.exactly_once(records)


class Forgetting:
    """Reads the coordinator's own topic for the tombstone of a transactional id."""

    def __init__(self, t: Trial, transactional_id: str):
        self._id = transactional_id.encode()
        self._consumer = Consumer({"bootstrap.servers": t.kafka.address, "group.id": "forgetting",
                                   "enable.auto.commit": "false"})
        self._consumer.assign([TopicPartition("__transaction_state", 0, OFFSET_BEGINNING)])
        t.later(self._consumer.close)
        self._forgotten = False

    def happened(self) -> bool:
        """Whether the last that is known of it is that it is gone."""
        while (message := self._consumer.poll(0.2)) is not None:
            if message.error() is None and self._id in (message.key() or b""):
                self._forgotten = message.value() is None
        return self._forgotten


def small_buffer(t: Trial) -> None:
    """A client that may hold little only takes longer."""
    t.own_kafka()
    t.connect(**{"producer.override.buffer.memory": "65536", "producer.override.batch.size": "16384",
                 "producer.override.queue.buffering.max.messages": "10"})
    t.sql("insert into t select n, repeat('x', 500) from generate_series(3, 5000) n")
    records = t.settled_records("t")
    equal([r.after["id"] for r in records], list(range(1, 5001)), "ids")
    t.exactly_once(records)


def lost_brokers(t: Trial) -> None:
    """Of three brokers one may die at any time; with two gone it waits for one of them, and loses nothing."""
    cluster = t.own_kafka(3)
    connector = t.connect(topic_creation_default_replication_factor="3")
    last = 2

    def insert(count: int) -> None:
        nonlocal last
        t.sql(*(f"insert into t values ({last + n}, 'row')" for n in range(1, count + 1)))
        last += count

    for broker in cluster.brokers:
        insert(200)
        broker.process.kill()
        insert(200)
        t.settle(timeout=120)
        broker.start()
    stood = t.slot()["confirmed"]
    for broker in cluster.brokers[1:]:
        broker.process.kill()
    insert(200)
    wait_for(lambda: t.slot()["active_pid"] is None or connector.trace() or "lost" in t.workers[-1].log_text(), 120,
             "a sign that the cluster is gone")
    check(t.server.value("select confirmed_flush_lsn < pg_current_wal_lsn() from pg_replication_slots "
                         "where slot_name = %s", t.name), f"the slot waits, at {stood} before")
    cluster.start()
    connector.wait_running(timeout=120)
    t.settle(timeout=180)
    records = t.topic("t").read()
    equal([r.after["id"] for r in records], list(range(1, last + 1)), "ids in order")
    t.exactly_once(records)


def hanging(t: Trial) -> None:
    """A transaction that Kafka never ends is told as that, with the command that ends it; then all goes on by itself."""
    t.own_kafka(transaction_partition_verification_enable="false")
    worker = t.worker(request_timeout_ms="3000", offset_storage_partitions="1")
    connector = t.connect(worker)
    t.settle()
    worker.kill()
    t.sql("insert into t values (3, 'meanwhile')")

    def says(key: str, age: float, *expected: str) -> None:
        """What the task says of a transaction of that age, until it is ended."""
        known = len(worker.log_text())
        transaction = HangingTransaction(t.kafka.address, f"{t.name}-offsets", 0, key.encode(), age=age)
        worker.start()
        text = wait_for(lambda: next((line for line in worker.log_text()[known:].splitlines()
                                      if "TG-E-OFFSET-UNREADABLE" in line), None), 60, "what the task says")
        for part in (*expected, f"abort --topic {t.name}-offsets --partition 0 --start-offset {transaction.start}"):
            check((part in text) == (part in expected or age > 0), f"{part!r} is said of one that is old only: {text}")
        transaction.abort()
        connector.wait_running()
        t.settle()
        worker.kill()

    own, other = f'["{t.name}",{{"server":"x"}}]', '["other","x"]'
    says(other, 0, "another connector's transaction is open", "transaction.timeout.ms")
    says(own, 130, "an earlier task's transaction hangs")
    says(other, 1000, "another connector's transaction hangs")
    records = t.topic("t").read()
    equal([r.after["id"] for r in records], [1, 2, 3], "ids")
    t.exactly_once(records)


def more_partitions(t: Trial) -> None:
    """Partitions are added to the topic of offsets: the connector does not begin anew in silence."""
    t.own_kafka()
    worker = t.worker(**{"offset.storage.partitions": "1"})
    connector = t.connect(worker)
    t.settle()
    worker.stop()
    admin = AdminClient({"bootstrap.servers": t.kafka.address})
    for count in (2, 3, 5, 7, 11):
        # Until it is one in which the connector's partition is another.
        for done in admin.create_partitions([NewPartitions(f"{t.name}-offsets", count)]).values():
            done.result()
        worker.start()
        worker.connector(t.name)
        wait_for(lambda: connector.trace() or connector.states() == ["RUNNING", "RUNNING"] and t.slot()["active"], 60, "the connector's state")
        if connector.trace():
            break
        worker.stop()
    trace = connector.wait_failed("TG-E-OFFSET-MOVED")
    check(f"partition 0 of '{t.name}-offsets'" in trace and "offset.storage.topic" in trace, trace)
    equal([r.op for r in t.topic("t").read()].count("r"), 2, "rows that were read")


CASES = {"more-partitions": more_partitions, "rights": rights, "forgotten-id": forgotten_id, "small-buffer": small_buffer, "lost-brokers": lost_brokers,
         "hanging": hanging, "long-outage": long_outage}

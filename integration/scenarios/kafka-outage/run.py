"""Kafka hangs, then the worker dies: nothing was confirmed to the source that Kafka does not hold."""

import signal
import time

from harness.checks import check, equal
from harness.trial import Trial

# The same on every version of the server.
SERVER_MATTERS = False
# It stops the broker that all use.
ALONE = True


def run(t: Trial) -> None:
    worker = t.worker()
    connector = t.connect(worker)
    t.sql("insert into t values (0, 'before')")
    t.settle()
    broker = t.kafka.brokers[0].process
    position = t.server.value("select pg_current_wal_lsn()::text")
    broker.signal(signal.SIGSTOP)
    t.later(lambda: broker.pid() and broker.signal(signal.SIGCONT))
    t.sql(*(f"insert into t values ({number}, 'during')" for number in range(1, 1001)))
    session = t.server.value("select active_pid from pg_replication_slots where slot_name = %s", t.name)
    deadline = time.monotonic() + 12
    while time.monotonic() < deadline:
        check(t.server.value("select confirmed_flush_lsn <= %s::pg_lsn from pg_replication_slots where slot_name = %s",
                             position, t.name), "the slot does not pass what Kafka has not got")
        time.sleep(0.2)
    equal(t.server.value("select active_pid from pg_replication_slots where slot_name = %s", t.name), session,
          "the session that reads the slot: it is kept alive")
    equal(worker.rest("GET", "/connectors").body, [t.name], "REST meanwhile")
    worker.kill()
    broker.signal(signal.SIGCONT)
    worker.start()
    connector.wait_running(timeout=120)
    t.settle(timeout=120)
    records = t.topic("t").read()
    equal([r.after["id"] for r in records], list(range(1001)), "ids in order")
    t.exactly_once(records)

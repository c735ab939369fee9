"""Kafka hangs, or is not heard of any more: nothing is confirmed to the source that Kafka does not hold, and each row is there once."""

import signal
import time

from harness.checks import check, equal, wait_for
from harness.proxy import FaultProxy
from harness.trial import Trial

# The same on every version of the server.
SERVER_MATTERS = False
# It stops the broker that all use.
ALONE = True
LONG = {"unheard"}
AGAIN = "the task starts again"


def hangs(t: Trial) -> None:
    """Then the worker dies."""
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


def unheard(t: Trial) -> None:
    """The broker's connections are half open, then they stand still, for longer than every limit of the client: a coded retry."""
    proxy = FaultProxy()
    t.later(proxy.close)
    link = proxy.link(*t.kafka.behind_proxy()[0])
    worker = t.worker(bootstrap_servers=link.address, request_timeout_ms="4000")
    limits = {"producer.override.transaction.timeout.ms": "10000", "producer.override.delivery.timeout.ms": "8000"}
    connector = t.connect(worker, **limits)
    t.sql("insert into t values (1, 'before')")
    t.settle()
    known, last = len(worker.log_text()), 1

    def again() -> list[str]:
        return [line for line in worker.log_text()[known:].splitlines() if AGAIN in line]

    for fault in (lambda: link.half_open("server"), link.stall):
        check(link.count() > 0, "there are connections")
        fault()
        stood = t.slot()["confirmed"]
        for _ in range(3):
            last += 1
            t.sql(f"insert into t values ({last}, 'unheard')")
        if fault == link.stall:
            lines = wait_for(again, 120, "a retry", connector.failed)
            check(all("TG-E-KAFKA-" in line for line in lines), f"each retry is told with its code: {lines}")
            # What begins anew meets the same silence.
            count = len(lines)
            wait_for(lambda: len(again()) > count, 120, "another one", connector.failed)
            equal(t.slot()["confirmed"], stood, "where the slot stands meanwhile")
            equal(connector.request("GET", "/status").status, 200, "REST meanwhile")
            link.heal()
        t.settle(timeout=120)
    connector.wait_running(timeout=60)
    records = t.topic("t").read()
    equal([r.after["id"] for r in records], list(range(1, last + 1)), "ids in order")
    t.exactly_once(records)


CASES = {"hangs": hangs, "unheard": unheard}

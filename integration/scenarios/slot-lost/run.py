"""The server gave the slot up because the worker was away too long: said once, with the remedy, and not retried."""

from harness.checks import check, equal
from harness.trial import Trial


def run(t: Trial) -> None:
    t.own_server(max_slot_wal_keep_size="1MB", max_wal_size="32MB", min_wal_size="32MB")
    worker = t.worker()
    connector = t.connect(worker, table_include_list="public\\.t")
    t.sql("insert into t values (1)")
    t.settle()
    worker.stop()
    for _ in range(5):
        t.sql("insert into filler select repeat('x', 1000) from generate_series(1, 20000)")
        t.server.sql("select pg_switch_wal()", "checkpoint")
    equal(t.slot()["wal_status"], "lost", "wal_status")
    t.sql("insert into t values (2)")
    worker.start()
    trace = connector.wait_failed("TG-E-SLOT-LOST")
    check(t.name in trace, f"the trace names the slot: {trace}")
    equal([r.after["id"] for r in t.topic("t").read()], [1], "ids")

"""Two-phase commits on an ordinary slot: rows come with COMMIT PREPARED, whole, once and in its place; with ROLLBACK PREPARED never."""

import time

from harness.checks import check, equal, wait_for
from harness.metrics import scrape
from harness.trial import Trial, position


def prepare(t: Trial, name: str, *statements: str) -> None:
    t.sql(f"begin; {'; '.join(statements)}; prepare transaction '{name}'")


def run(t: Trial) -> None:
    # A prepared transaction of a shared server would keep others from making slots.
    t.own_server(max_prepared_transactions="10")
    worker = t.worker()
    connector = t.connect(worker, slot_health_interval_ms="200")
    t.sql("insert into b values (0, 'before')")
    prepare(t, "kept", "insert into a values (1, 'x')", "savepoint s", "insert into a values (80, 'y')", "rollback to s",
            "insert into a values (2, 'z')", "update a set v = 'w' where id = 1")
    since = time.monotonic()
    prepare(t, "dropped", "insert into a values (90, 'x')")
    t.sql("insert into b values (1, 'beside')")
    equal([r.key["id"] for r in t.settled_records("b")], [0, 1], "others pass the prepared ones")
    equal(t.topic("a").read(), [], "rows of what is only prepared")

    # It stays open while the worker crashes, and is told as what holds the slot.
    worker.kill()
    worker.start()
    connector.wait_running()
    t.wait_streaming()
    t.sql("insert into b values (2, 'behind')")
    equal([r.key["id"] for r in t.settled_records("b")], [0, 1, 2], "others, after a crash")
    equal(t.topic("a").read(), [], "rows of what is only prepared, after a crash")
    open_for = time.monotonic() - since

    def is_told() -> bool:
        values = scrape(worker.rest.base).values("tidegate_source_oldest_transaction_seconds")
        return bool(values) and values[0] >= open_for
    wait_for(is_told, 30, "the prepared transaction as the oldest one", connector.failed)
    check(scrape(worker.rest.base).value("tidegate_slot_retained_bytes") > 0, "the slot keeps its log")

    t.sql("commit prepared 'kept'", "rollback prepared 'dropped'", "insert into b values (3, 'last')")
    prepare(t, "late", "insert into a select g, 'late' from generate_series(100, 2099) g")
    t.settle()
    worker.kill()
    t.sql("commit prepared 'late'", "insert into b values (4, 'after')")
    worker.start()
    connector.wait_running()
    a, b = t.settled_records("a"), t.topic("b").read()
    equal([(r.op, r.key["id"]) for r in a], [("c", 1), ("c", 2), ("u", 1)] + [("c", number) for number in range(100, 2100)], "rows, each once")
    equal(len({position(r)[0] for r in a}), 2, "transactions")
    check(position(b[2]) < position(a[0]) < position(a[2]) < position(b[3]) < position(a[3]) < position(a[-1]) < position(b[4]),
          "each stands where it was committed")
    t.exactly_once(a)
    t.exactly_once(b)

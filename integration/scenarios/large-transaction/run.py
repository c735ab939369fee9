"""A transaction larger than the stage and than a Kafka transaction, with a worker killed inside it; and one undone."""

from harness.checks import check, equal, wait_for
from harness.trial import Trial, position

ROWS = 60_000


def run(t: Trial) -> None:
    worker = t.worker()
    settings = {"transaction.stage.bytes": str(1 << 16), "transaction.max.bytes": str(1 << 20),
                "max.queue.size.in.bytes": str(1 << 20)}
    connector = worker.create(t.name, t.config() | settings)
    t.wait_streaming()
    t.sql("insert into small values (1)",
          f"begin; insert into t select g, repeat('x', 100) from generate_series(1, {ROWS}) g; rollback",
          f"begin; insert into t select g, repeat('x', 100) from generate_series(1, {ROWS}) g; "
          "savepoint s; delete from t; rollback to s; insert into small values (2); commit",
          "insert into small values (3)")
    topic = t.topic("t")
    wait_for(lambda: len(topic.read()) > ROWS // 4, 90, "a part of the large transaction", connector.failed)
    worker.kill()
    seen = len(topic.read())
    worker.start()
    connector.wait_running()
    t.settle(timeout=180)
    records = topic.read()
    check(seen <= len(records), "what was visible stays")
    equal([r.after["id"] for r in records], list(range(1, ROWS + 1)), "ids in order")
    equal(len({position(r)[0] for r in records}), 1, "commit positions")
    equal([r.after["id"] for r in t.topic("small").read()], [1, 2, 3], "ids of the small table")
    for table in ("t", "small"):
        t.exactly_once(t.topic(table).read())

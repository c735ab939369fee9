"""The worker is killed in the middle of the first snapshot, and started again while rows change."""

from harness.checks import check, equal, wait_for
from harness.topics import replay
from harness.trial import Trial


def run(t: Trial) -> None:
    worker = t.worker()
    connector = worker.create(t.name, t.config(), running=False)
    wait_for(t.slot, 60, "the slot", connector.failed)
    with t.source.session() as session:
        # The snapshot gets as far as here, and a part of it is visible.
        session.execute("begin; lock table c in access exclusive mode")
        wait_for(lambda: len(t.topic("b").read()) >= 10000, 60, "rows of the second table", connector.failed)
        worker.kill()
    check(not t.topic("c").read(), "the snapshot is not through")
    t.sql("insert into b select g, 'new' from generate_series(40001, 40100) g",
          "update b set v = 'changed' where id % 200 = 0", "delete from b where id % 200 = 1",
          "update c set v = 'changed' where id % 200 = 0")
    worker.start()
    connector.wait_running()
    t.wait_streaming()
    t.sql("insert into a values (50000, 'streamed')")
    t.settle()
    for table in "abc":
        equal(replay(t.topic(table).read()), t.rows(table, "id"), f"table {table}")
    slots = t.server.query("select slot_name, active from pg_replication_slots where database = %s", t.name)
    equal(slots, [{"slot_name": t.name, "active": True}], "slots")
    check(t.topic("a").read()[-1].op == "c", "the stream follows the snapshot")

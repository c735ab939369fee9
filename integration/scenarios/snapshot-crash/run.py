"""The worker is killed in the middle of the first snapshot, and started again while rows change."""

from harness.checks import check, equal, wait_for
from harness.topics import replay
from harness.trial import Trial
from harness.worker import Connector, Worker

# The others are about what the worker holds against the slot.
SERVER_MATTERS = {"killed"}


def kill_in_snapshot(t: Trial, slots: int = 1) -> tuple[Worker, Connector]:
    """A part of the snapshot is visible when the worker is killed. So many slots are complete when it begins."""
    worker = t.worker()
    connector = worker.create(t.name, t.config(), running=False)
    complete = "select count(*) from pg_replication_slots where database = %s and confirmed_flush_lsn is not null"
    wait_for(lambda: t.server.value(complete, t.name) == slots, 60, "the slot", connector.failed)
    with t.source.session() as session:
        # The snapshot gets as far as here.
        session.execute("begin; lock table c in access exclusive mode")
        wait_for(lambda: len(t.topic("b").read()) >= 10000, 60, "rows of the second table", connector.failed)
        worker.kill()
    check(not t.topic("c").read(), "the snapshot is not through")
    t.sql("insert into b select g, 'new' from generate_series(40001, 40100) g",
          "update b set v = 'changed' where id % 200 = 0", "delete from b where id % 200 = 1",
          "update c set v = 'changed' where id % 200 = 0")
    return worker, connector


def goes_on(t: Trial, worker: Worker, connector: Connector) -> None:
    """Every key ends as it is in the tables, and no other slot is left."""
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


def killed(t: Trial) -> None:
    goes_on(t, *kill_in_snapshot(t))


def made_beforehand(t: Trial) -> None:
    """A slot that somebody else made has what was deleted since as well."""
    t.sql(f"create publication {t.name} for table a, b, c")
    t.admin.query("select pg_create_logical_replication_slot(%s, 'pgoutput')", t.name)
    goes_on(t, *kill_in_snapshot(t, slots=2))


def slot_lost(t: Trial) -> None:
    """Without the slot's changes the deletes of published rows are lost: that is never silent."""
    worker, connector = kill_in_snapshot(t)
    t.admin.query("select pg_replication_slot_advance(%s, pg_current_wal_lsn())", t.name)
    worker.start()
    connector.wait_failed("TG-E-SLOT-GAP")
    t.server.query("select pg_drop_replication_slot(%s)", t.name)
    connector.fail_again("TG-E-SLOT-MISSING")
    equal(t.slot(), None, "the slot, which is not created again in silence")
    check(not t.topic("c").read(), "nothing is published any more")


CASES = {"killed": killed, "made-beforehand": made_beforehand, "slot-lost": slot_lost}

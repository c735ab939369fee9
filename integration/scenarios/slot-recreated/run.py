"""Somebody drops, recreates, advances or occupies the slot: never a silent gap."""

from harness.checks import equal
from harness.trial import Trial
from harness.worker import Connector, Worker


def begin(t: Trial) -> tuple[Worker, Connector]:
    """Stream one row, then stop the worker."""
    worker = t.worker()
    connector = t.connect(worker)
    t.sql("insert into t values (1)")
    t.settle()
    worker.stop()
    t.sql("insert into t values (2)")
    return worker, connector


def end(t: Trial, worker: Worker, connector: Connector, code: str) -> None:
    """It must refuse to go on, and publish nothing."""
    t.sql("insert into t values (3)")
    worker.start()
    connector.wait_failed(code)
    equal([r.after["id"] for r in t.topic("t").read()], [1], "ids")
    connector.fail_again(code)
    equal([r.after["id"] for r in t.topic("t").read()], [1], "ids after a restart")


def dropped(t: Trial) -> None:
    worker, connector = begin(t)
    t.server.query("select pg_drop_replication_slot(%s)", t.name)
    end(t, worker, connector, "TG-E-SLOT-MISSING")
    equal(t.slot(), None, "the slot, which is not created again in silence")


def recreated(t: Trial) -> None:
    worker, connector = begin(t)
    t.server.query("select pg_drop_replication_slot(%s)", t.name)
    t.admin.query("select pg_create_logical_replication_slot(%s, 'pgoutput')", t.name)
    end(t, worker, connector, "TG-E-SLOT-GAP")


def advanced(t: Trial) -> None:
    worker, connector = begin(t)
    t.admin.query("select pg_replication_slot_advance(%s, pg_current_wal_lsn())", t.name)
    end(t, worker, connector, "TG-E-SLOT-GAP")


def other_plugin(t: Trial) -> None:
    worker, connector = begin(t)
    t.server.query("select pg_drop_replication_slot(%s)", t.name)
    t.admin.query("select pg_create_logical_replication_slot(%s, 'test_decoding')", t.name)
    end(t, worker, connector, "TG-E-SLOT-MISMATCH")


CASES = {"dropped": dropped, "recreated": recreated, "advanced": advanced, "other-plugin": other_plugin}

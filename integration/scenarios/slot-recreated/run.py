"""Somebody drops, recreates, advances or occupies the slot: never a silent gap."""

from typing import Callable

import psycopg

from harness.checks import check, equal, wait_for
from harness.metrics import scrape
from harness.proxy import FaultProxy
from harness.trial import Trial
from harness.worker import Connector, Worker, free_port


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


def drop_from_under(t: Trial) -> None:
    """End the process that reads the slot, and drop that before another one reads it."""
    t.server.query("select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = %s", t.name)

    def gone() -> bool:
        try:
            t.server.query("select pg_drop_replication_slot(%s)", t.name)
        except psycopg.errors.ObjectInUse:
            return False
        return True
    wait_for(gone, 30, "the slot to be free")


def lost_while_streaming(t: Trial, connector: Connector, drop: Callable[[], None]) -> None:
    """The task ends with the code and its remedy, the slot stays away, and the metrics say so."""
    t.sql("insert into t values (1)")
    t.settle()
    drop()
    t.sql("insert into t values (2)")
    trace = connector.wait_failed("TG-E-SLOT-MISSING")
    check(t.name in trace and "offset" in trace.split("remedy")[-1], f"which slot, and what to do: {trace}")
    equal(t.slot(), None, "the slot, which is not created again in silence")
    wait_for(lambda: scrape(t.workers[-1].rest.base).value("tidegate_slot_exists") == 0, 30, "the metrics to say that there is no slot")
    connector.fail_again("TG-E-SLOT-MISSING")
    equal([r.after["id"] for r in t.topic("t").read()], [1], "ids")


def while_streaming(t: Trial) -> None:
    """Somebody ends the reader and drops the slot while changes come."""
    lost_while_streaming(t, t.connect(retriable_restart_connector_wait_ms="1500", slot_health_interval_ms="200"), lambda: drop_from_under(t))


def while_cut_off(t: Trial) -> None:
    """The slot is dropped while the worker cannot reach the server."""
    proxy = FaultProxy()
    t.later(proxy.close)
    link = proxy.link(t.postgres.port, free_port())
    connector = t.connect(database_port=str(link.port), slot_health_interval_ms="200")

    def drop() -> None:
        link.refuse()
        drop_from_under(t)
        link.heal()
    lost_while_streaming(t, connector, drop)


def behind_debezium(t: Trial) -> None:
    """The offset that Debezium left lies before a slot that was made anew: what is between is lost, and is not taken over."""
    t.sql(f"create publication {t.name} for table t", "insert into t values (1)")
    row = t.server.query("select (pg_current_wal_lsn() - '0/0')::int8 as lsn, txid_current()::int8 as id")[0]
    t.sql("insert into t values (2)")
    t.admin.query("select pg_create_logical_replication_slot(%s, 'pgoutput')", t.name)
    worker = t.worker()
    config = t.config()
    answer = worker.rest("POST", "/connectors", {"name": t.name, "config": config, "initial_state": "STOPPED"})
    equal(answer.status, 201, f"status of POST /connectors ({answer.message})")
    connector = worker.connector(t.name)
    offsets = {"offsets": [{"partition": {"server": config["topic.prefix"]}, "offset": {"lsn_proc": row["lsn"], "lsn": row["lsn"], "txId": row["id"]}}]}
    answer = connector.request("PATCH", "/offsets", offsets)
    equal(answer.status, 400, f"status of PATCH offsets ({answer.message})")
    check("TG-E-SLOT-GAP" in answer.message and "trust_slot" in answer.message, f"the gap, and what to do: {answer.message}")
    equal(connector.request("GET", "/offsets").body, {"offsets": []}, "what is stored")
    equal(connector.request("PATCH", "/config", {"offset.mismatch.strategy": "trust_slot"}).status, 200, "status of PATCH config")
    equal(connector.request("PATCH", "/offsets", offsets).status, 200, "status of PATCH offsets, with what is lost given up")
    connector.put("resume")
    t.wait_streaming()
    t.sql("insert into t values (3)")
    equal([r.after["id"] for r in t.settled_records("t")], [3], "ids behind the slot's position")


CASES = {"behind-debezium": behind_debezium, "dropped": dropped, "recreated": recreated, "advanced": advanced, "other-plugin": other_plugin,
         "while-streaming": while_streaming, "while-cut-off": while_cut_off}

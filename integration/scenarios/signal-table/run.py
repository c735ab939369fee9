"""Snapshots beside the stream are ordered by rows of a table, as Debezium's signals: each once, whatever crashes."""

import json
import re
from collections import Counter
from typing import Any

from harness.checks import check, equal, wait_for
from harness.metrics import scrape
from harness.trial import Trial
from harness.worker import Connector

SERVER_MATTERS = False
LONG = {"crash"}


def connect(t: Trial, tables: str = "plain|other", **more: Any) -> Connector:
    return t.connect(snapshot_mode="no_data", table_include_list=f"public\\.({tables})", signal_data_collection="public.signal",
                     incremental_snapshot_chunk_size="5", **more)


def signal(number: int | str, kind: str, data: Any = None) -> str:
    text = "null" if data is None else "'" + (data if isinstance(data, str) else json.dumps(data)).replace("'", "''") + "'"
    return f"insert into signal values ('s{number}', '{kind}', {text})"


def read_table(number: int | str, *tables: str, **more: Any) -> str:
    return signal(number, "execute-snapshot", {"type": "incremental", "data-collections": [f"public.{one}" for one in tables], **more})


def progress(connector: Connector) -> dict[str, Any]:
    return connector.request("GET", "/snapshots").body["snapshot"] or {}


def wait_state(connector: Connector, state: str) -> dict[str, Any]:
    return wait_for(lambda: found if (found := progress(connector)).get("state") == state else None, 60, state, connector.failed)


def counted(t: Trial, outcome: str) -> float:
    return scrape(t.workers[-1].rest.base).value("tidegate_signals_total", outcome=outcome) or 0


def orders(t: Trial) -> None:
    """What signals do; what cannot be carried out is told, and the stream goes on; the table itself is not published."""
    connector = connect(t)
    with t.source.session() as session:
        session.execute("begin; update plain set v = 100 where id = 1")
        session.execute(read_table(1, "pla.*", **{"additional-conditions": [{"data-collection": "public.plain", "filter": "id <= 20"}]}))
        session.execute("update plain set v = 200 where id = 2; commit")
        session.execute("begin; " + read_table("x", "other") + "; rollback")
    wait_state(connector, "COMPLETED")
    records = t.settled_records("plain")
    equal([(r.op, r.key["id"]) for r in records[:2]], [("u", 1), ("u", 2)], "the signal's own transaction comes before its rows")
    equal([(r.op, r.key["id"]) for r in records[2:]], [("r", number) for number in range(1, 21)], "rows of the condition")

    wrong = [(2, "execute-snapshot", "{"), (3, "execute-snapshot", {"data-collections": ["public.none"]}), (4, "execute-snapshot", None),
             (5, "execute-snapshot", {"data-collections": ["public.plain"], "type": "blocking"}), (6, "schema-changes", "{}"),
             (7, "stop-snapshot", None), (8, "pause-snapshot", None), (9, "log", "{}"), (10, "drop table", "'; --")]
    for one in wrong:
        t.sql(signal(*one))
    t.sql(signal(11, "log", {"message": "seen at {}"}), "delete from signal where id = 's1'", "update signal set type = 'log' where id = 's2'",
          "truncate signal", "insert into plain values (50, 50)")
    equal(t.settled_records("plain")[-1].key["id"], 50, "the stream goes on")
    log = t.workers[-1].log_text()
    for number, *_ in wrong:
        check(f'id="s{number}"' in log, f"signal {number} is told")
    for text in ("TG-E-SIGNAL-REFUSED", "TG-E-TABLE-MISSING", "TG-E-SNAPSHOT-CONFLICT"):
        check(text in log, f"the log has {text}")
    check(re.search("signal: seen at [0-9A-F]+/", log) is not None, "the log has the position")
    equal((counted(t, "done"), counted(t, "refused")), (2, len(wrong)), "signals that are counted")

    t.sql("begin; " + read_table(20, "plain", "other") + "; " + signal(21, "pause-snapshot", "{}") + "; commit")
    wait_state(connector, "PAUSED")
    t.sql(signal(22, "stop-snapshot", {"type": "incremental", "data-collections": ["public.plain"]}), signal(23, "resume-snapshot", "{}"))
    wait_for(lambda: [one["state"] for one in progress(connector).get("tables", [])] == ["STOPPED", "COMPLETED"], 60, "the end", connector.failed)
    equal([r.key["id"] for r in t.settled_records("other")], list(range(1, 11)), "rows of the other table")
    equal(t.cluster.topics(f"{t.name}.public.signal"), [], "topics of the signal table")


def crash(t: Trial) -> None:
    """kill -9 around the signal: each is carried out once, those of the time without a worker too."""
    connector = connect(t)
    worker = t.workers[-1]
    for number in range(1, 5):
        if number == 4:
            worker.kill()
        t.sql("begin; update plain set v = v + 1 where id <= 5; " + read_table(number, "plain") + "; commit")
        if number == 2:
            t.settle()
        worker.kill()
        worker.start()
        connector.wait_running()
        t.wait_streaming()
        wait_for(lambda number=number: Counter(r.op for r in t.topic("plain").read())["r"] >= 40 * number, 90, "its rows", connector.failed)
    # The order's transaction is in Kafka and nothing of what it orders, for the table is locked: the order must be there, too.
    with t.source.session() as session:
        session.execute("begin; lock table plain in access exclusive mode")
        t.sql(read_table(5, "plain"))
        t.settle()
        equal(Counter(r.op for r in t.topic("plain").read())["r"], 160, "rows that were read, before the last order's")
        worker.kill()
        session.execute("rollback")
    worker.start()
    t.wait_streaming()
    wait_for(lambda: Counter(r.op for r in t.topic("plain").read())["r"] >= 200, 60, "the rows of an order that waited", connector.failed)
    t.sql("insert into plain values (99, 1)")
    records = t.settled_records("plain")
    equal(Counter(Counter(r.key["id"] for r in records if r.op == "r").values()), {5: 40}, "how often each row was read")
    t.exactly_once(records)


def checks(t: Trial) -> None:
    """What is wrong with the table is found before anything is made, with the SQL that mends it."""
    def found(**more: Any) -> str:
        file = t.connector_file(table_include_list="public\\.plain", **more)
        command = t.command("check", file, "-b", t.kafka.address, "-r", t.registry.address)
        equal(command.wait(), 1, "status")
        return command.out

    text = found(signal_data_collection="public.none")
    check("TG-E-TABLE-MISSING" in text and 'CREATE TABLE "public"."none" (id varchar(42) PRIMARY KEY' in text, text)
    text = found(signal_data_collection="public.other")
    check("TG-E-TABLE-UNSUPPORTED" in text and "three columns" in text, text)
    text = found(signal_data_collection="signal")
    check("TG-E-CONFIG-INVALID" in text, text)
    check("TG-E-CONFIG-UNSUPPORTED" in found(signal_data_collection="public.signal", signal_enabled_channels="source,kafka"), "other channels")
    t.sql("create publication made for table plain")
    text = found(signal_data_collection="public.signal", publication_name="made", publication_autocreate_mode="disabled")
    check("TG-E-PUBLICATION-CHANGED" in text and 'ALTER PUBLICATION "made" ADD TABLE' in text, text)


def captured(t: Trial) -> None:
    """In table.include.list, its rows are records as well."""
    connector = connect(t, "plain|signal")
    t.sql(read_table(1, "plain"))
    wait_state(connector, "COMPLETED")
    t.sql(signal(2, "log", {"message": "m"}))
    equal([(r.op, r.key["id"]) for r in t.settled_records("signal")], [("c", "s1"), ("c", "s2")], "records of the signal table")
    equal(len(t.topic("plain").read()), 40, "rows that were read")


CASES = {"orders": orders, "crash": crash, "checks": checks, "captured": captured}

"""A table that a command wrote anew is read again beside the stream: whatever happens meanwhile, a reader ends with its rows."""

import json
from typing import Any

from harness.checks import check, equal, wait_for
from harness.mirror import merged
from harness.trial import Trial
from harness.worker import Connector

# The others show the most of it in less time.
LONG = {"killed", "void", "orders", "upset"}
CODE = "TG-E-SCHEMA-REWRITE"


def install(t: Trial) -> None:
    admin = f"postgres://postgres@127.0.0.1:{t.postgres.port}/{t.name}"
    t.command("ddl-capture", "install", t.connector_file(), "--connection", admin).succeed()


def connect(t: Trial, **more: Any) -> Connector:
    install(t)
    return t.connect(**more)


def told(t: Trial, table: str, *kinds: str) -> list[dict[str, Any]]:
    """Control records of a table that are about its rows."""
    control = t.topic_named(f"{t.name}.schema-changes").read()
    return [r.value for r in control if r.key["table"] == table and r.value["kind"] in (kinds or ("ddl_captured", "reread"))]


def wait_reread(t: Trial, table: str, count: int = 1) -> list[dict[str, Any]]:
    connector = t.workers[-1].connector(t.name)
    return wait_for(lambda: found if len(found := told(t, table, "reread")) >= count else None, 60, f"{table} is read again",
                    connector.failed)


def same(t: Trial, table: str, *key: str) -> None:
    """A reader of the topic has what SELECT shows."""
    records = t.settled_records(table)
    rows = {json.dumps({name: row[name] for name in key}): row for row in t.query(f"select * from {table}")}
    equal(merged(records), rows, f"the rows of {table} that a reader has")


def converges(t: Trial) -> None:
    """A rewrite that no row shows: the reader has the new values, and is told of beginning and end; rows go on meanwhile."""
    connect(t)
    # Of another database nothing comes in the stream, so nobody waits for its transactions.
    elsewhere = t.server.connect()
    t.later(elsewhere.close)
    elsewhere.execute("begin; select txid_current()")
    t.sql("begin; insert into t values (100, 100, 'new'); alter table t alter v type int using v * 10; "
          "update t set v = v + 1 where id = 7; insert into t values (101, 5, 'newer'); commit",
          "update t set v = -1 where id = 55", "update t set id = 1055 where id = 54", "delete from t where id = 3")
    ended = wait_reread(t, "t")
    same(t, "t", "id")
    records = told(t, "t")
    equal([(r["kind"], r["action"], r["rewrites_existing_rows"], r["epoch"]) for r in records],
          [("ddl_captured", "resnapshot", "yes", 2), ("reread", "completed", "no", 2)], "what is told")
    equal((ended[0]["changes"][0]["from"], ended[0]["changes"][0]["to"]), (records[0]["id"], "61 rows"), "what the end is of")
    t.exactly_once(t.topic("t").read())
    # What moves files alone, and a default for each row.
    t.sql("vacuum full t", "alter table t add u uuid default gen_random_uuid()",
          "alter table t add c int default 5")
    wait_reread(t, "t", 2)
    t.settle()
    rows = {r["id"]: str(r["u"]) for r in t.query("select id, u from t")}
    equal({row["id"]: row["u"] for row in merged(t.topic("t").read()).values()}, rows, "values of the volatile default")
    t.sql("alter table parted alter v type int using v * 10")
    wait_reread(t, "parted")
    same(t, "parted", "id")


def killed(t: Trial) -> None:
    """kill -9 while it is read again, and another rewrite meanwhile: what was read before that is read once more, nothing twice."""
    connector = connect(t, incremental_snapshot_chunk_size="1")
    worker = t.workers[-1]
    t.sql("insert into t select g, g, 'short' from generate_series(61, 400) g")
    t.settle()
    rows = len(t.topic("t").read())
    t.sql("alter table t alter v type int using v * 10")
    for more in (30, 120):
        wait_for(lambda more=more: len(t.topic("t").read()) >= rows + more, 60, f"{more} rows", connector.failed)
        worker.kill()
        worker.start()
        connector.wait_running()
    wait_reread(t, "t")
    read = [r for r in t.settled_records("t")[rows:] if r.op == "r"]
    equal([r.key["id"] for r in read], list(range(1, 401)), "each row once, in order")
    same(t, "t", "id")
    t.sql("alter table t alter v type int using v + 1")
    wait_for(lambda: len(t.topic("t").read()) > rows + 400, 60, "rows", connector.failed)
    with t.source.session() as session:
        session.execute("begin; lock table t in access exclusive mode; update t set v = -7 where id = 2; "
                        "alter table t alter v type int using v + 3; commit")
    count = len(t.settled_records("t"))
    check(count < rows + 700, f"the second rewrite was not read to its end: {count - rows}")
    wait_for(lambda: len(t.topic("t").read()) > count + 20, 60, "more rows", connector.failed)
    worker.kill()
    worker.start()
    connector.wait_running()
    ended = wait_reread(t, "t", 2)
    same(t, "t", "id")
    begun = [r["id"] for r in told(t, "t", "ddl_captured")]
    equal([r["changes"][0]["from"] for r in ended], [begun[0], begun[2]], "what was read to its end")
    equal(len({r["id"] for r in ended}), 2, "ids")
    # What ended right before a kill is not told again.
    worker.kill()
    worker.start()
    connector.wait_running()
    t.sql("update t set v = 0 where id = 1")
    same(t, "t", "id")
    equal(len(told(t, "t", "reread")), 2, "ends")


def void(t: Trial) -> None:
    """Rows without keys, or with other ones, or that leave a filter: a truncate goes first, or the task stops if there is none."""
    connector = connect(t, skipped_operations="none", **{"row.filter.public.filtered": "v <= 20"})
    t.sql("alter table keyless alter v type int using v * 10", "update keyless set v = v + 1 where id in (1, 60)", "delete from keyless where id = 9",
          "alter table filtered alter v type int using 41 - v", "update filtered set v = v where id = 40",
          "alter table filtered alter note type text using note || '!'",
          "alter table t alter id type int using id + 5", "update t set v = 0 where id = 60")
    for table, count in (("keyless", 1), ("filtered", 1), ("t", 1)):
        wait_reread(t, table, count)
    t.settle()
    rows: dict[int, dict[str, Any]] = {}
    for record in t.topic("keyless").read():
        if record.op == "t":
            rows.clear()
        elif record.after is None:
            rows.pop(record.before["id"], None)
        else:
            rows[record.after["id"]] = record.after
    equal(rows, {row["id"]: row for row in t.query("select * from keyless")}, "rows without a key")
    wait_for(lambda: all("!" in row["note"] for row in merged(t.topic("filtered").read()).values()), 60, "the second rewrite", connector.failed)
    equal(merged(t.topic("filtered").read()), {json.dumps({"id": row["id"]}): row for row in t.query("select * from filtered where v <= 20")},
          "rows of the filter")
    same(t, "t", "id")
    ops = [r.op for r in t.topic("t").read()]
    equal(ops.count("t"), 1, "truncates")
    truncates = [r for r in t.topic("filtered").read() if r.op == "t"]
    check(1 <= len(truncates) <= 2, "the rewrite of a column that decides nothing does not need one")

    config = t.config(skipped_operations="t") | {"row.filter.public.filtered": "v <= 20"}
    worker = t.workers[-1]
    equal(worker.rest("PUT", f"/connectors/{t.name}/config", config, timeout=90).status, 200, "status of PUT config")
    t.wait_streaming()
    t.sql("alter table keyless alter v type int using v * 10", "insert into keyless values (500, 500)")
    trace = connector.wait_failed(CODE)
    check("no key" in trace and "skipped.operations=none" in trace, f"why, and what to do: {trace}")
    connector.fail_again(CODE)
    marker = trace.split('"schema.changes.acknowledged": "')[1].split('"')[0]
    answer = worker.rest("PATCH", f"/connectors/{t.name}/config", {"schema.changes.acknowledged": marker}, timeout=90)
    equal(answer.status, 200, f"status of PATCH config ({answer.message})")
    t.wait_streaming()
    equal(t.settled_records("keyless")[-1].after, {"id": 500, "v": 500}, "rows go on")
    equal(told(t, "keyless")[-1]["action"], "acknowledged", "what is told")


def orders(t: Trial) -> None:
    """A snapshot that somebody ordered of the same table, held or running, with a condition or without."""
    connector = connect(t)

    def order(**condition: str) -> None:
        body = {"data-collections": ["public.t"], "additional-conditions": [
            {"data-collection": "public.t", "filter": text} for text in condition.values()]}
        equal(connector.request("POST", "/snapshots", body).status, 202, "status of POST …/snapshots")

    order(filter="id <= 30")
    equal(connector.request("PUT", "/snapshots/pause").status, 202, "status of pause")
    t.sql("alter table t alter v type int using v * 10")
    t.settle()
    count = len(t.topic("t").read())
    t.workers[-1].kill()
    t.workers[-1].start()
    connector.wait_running()
    t.sql("update t set v = v + 1 where id = 40")
    t.settle()
    equal(len(t.topic("t").read()), count + 1, "what is held stays held")
    equal(connector.request("PUT", "/snapshots/stop").status, 409, "status of stop: topics would be wrong for good")
    wait_for(lambda: connector.request("PUT", "/snapshots/resume").status == 202, 30, "resume")
    wait_reread(t, "t")
    same(t, "t", "id")
    order()
    t.sql("alter table t alter v type int using v + 2")
    wait_reread(t, "t", 2)
    same(t, "t", "id")
    equal(connector.request("GET", "/snapshots").body["snapshot"]["state"], "COMPLETED", "the snapshot")


def upset(t: Trial) -> None:
    """The table gets another name or is dropped before the stream has come so far; another definition; the reader's connection is cut."""
    connector = connect(t, schema_changes="forward")
    t.sql("begin; alter table t alter v type int using v * 10; alter table t rename to u; commit",
          "alter table u add w int default 3", "insert into u values (200, 200, 'x', 1)")
    for _ in range(3):
        t.server.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = %s and "
                       "application_name like 'tidegate%%' and backend_type = 'client backend'", t.name)
        t.sql("update u set v = v + 1 where id % 20 = 0")
    wait_reread(t, "u")
    t.settle()
    rows = {json.dumps({"id": row["id"]}): row for row in t.query("select * from u")}
    equal(merged(t.topic("u").read()), rows, "rows under the new name")
    t.sql("alter table u alter v type int using v * 10", "drop table u", "alter table parted alter v type int using v * 10")
    wait_reread(t, "parted")
    same(t, "parted", "id")
    equal(len(told(t, "u", "reread")), 1, "a table that is gone is not read")


CASES = {"converges": converges, "killed": killed, "void": void, "orders": orders, "upset": upset}

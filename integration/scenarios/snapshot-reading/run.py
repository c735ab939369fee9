"""How the first snapshot reads tables: by several connections, in which order, by queries of one's own."""

import collections

from harness.checks import check, equal
from harness.topics import Record
from harness.trial import Trial

SERVER_MATTERS = False
OVERRIDES = "snapshot.select.statement.overrides"


def shown(t: Trial, *tables: str) -> dict[str, list[Record]]:
    return {table: t.topic(table).read() for table in tables}


def markers(records: list[Record]) -> collections.Counter[str]:
    return collections.Counter(record.value["source"]["snapshot"] for record in records)


def parallel(t: Trial) -> None:
    """Each row once, whoever read it; the first and the last rows are marked as that; the stream begins where it must."""
    tables = ("wide", "narrow", "one", "parted")
    connector = t.worker().create(t.name, t.config(table_include_list="public\\.(wide|narrow|nothing|one|parted.*)",
                                                   snapshot_max_threads="4", publish_via_partition_root="true"))
    with t.source.session() as session:
        for number in range(1, 40):
            session.execute(f"update narrow set v = 'changed' where id = {number}")
    connector.wait_running()
    t.wait_streaming()
    t.settle()
    topics = shown(t, *tables)
    for table in tables:
        read = [record for record in topics[table] if record.op == "r"]
        keys = collections.Counter(record.key["id"] for record in read)
        count = t.query(f"select count(*)::int as n from {table}")[0]["n"]
        equal((len(keys), set(keys.values())), (count, {1}), f"rows of {table}, and how often each was read")
        final = {record.key["id"]: record.after["v"] for record in topics[table]}
        equal(final, {row["id"]: row["v"] for row in t.query(f"select * from {table}")}, f"what a reader of {table} holds")
        counted = markers(read)
        check(counted["first"] + counted["first_in_data_collection"] <= 1, f"one row of {table} is its first: {counted}")
        check(counted["last"] + counted["last_in_data_collection"] <= 1, f"one row of {table} is its last: {counted}")
    whole = markers([record for records in topics.values() for record in records if record.op == "r"])
    equal((whole["first"], whole["last"]), (1, 1), "rows that are the first and the last of all")
    answer = connector.request("GET", "/snapshots").body["snapshot"]
    equal({one["data-collection"]: (one["state"], one["rows"]) for one in answer["tables"]},
          {"public.narrow": ("COMPLETED", 500), "public.nothing": ("COMPLETED", 0), "public.one": ("COMPLETED", 1),
           "public.parted": ("COMPLETED", 300), "public.wide": ("COMPLETED", 2100)}, "the progress at the end")


def overrides(t: Trial) -> None:
    """Rows of a query instead of all; a query that does not fit is refused before anything is made."""
    worker = t.worker()
    key = f"{OVERRIDES}.public.narrow"
    base = t.config(table_include_list="public\\.(narrow|one)") | {OVERRIDES: "public.narrow"}
    t.refused(worker, base, "TG-E-CONFIG-INVALID")
    t.refused(worker, base | {key: "select id from narrow"}, "TG-E-CONFIG-INVALID")
    t.refused(worker, base | {key: "delete from narrow"}, "TG-E-CONFIG-INVALID")
    t.refused(worker, base | {OVERRIDES: "public.wide", f"{OVERRIDES}.public.wide": "select * from wide"}, "TG-E-TABLE-MISSING")
    connector = worker.create(t.name, base | {key: "SELECT v, id FROM public.narrow WHERE id > 400 ORDER BY id DESC;"})
    connector.wait_running()
    t.wait_streaming()
    t.sql("update narrow set v = 'streamed' where id = 1")
    records = t.settled_records("narrow")
    equal([record.key["id"] for record in records], list(range(500, 400, -1)) + [1], "rows of the query, and the stream")
    equal(len(t.topic("one").read()), 1, "rows of the other table")


def order(t: Trial) -> None:
    """By the number of rows; behind a wait that can be broken off."""
    worker = t.worker()
    config = t.config(table_include_list="public\\.(narrow|one|parted_a)", publish_via_partition_root="true",
                      snapshot_tables_order_by_row_count="descending")
    waiting = worker.create(t.name, config | {"snapshot.delay.ms": "600000"})
    waiting.wait_running()
    worker.wait_log("snapshot.delay.ms")
    equal(t.slot(), None, "the slot while it waits")
    waiting.put("stop")
    answer = worker.rest("PUT", f"/connectors/{t.name}/config", config, timeout=90)
    equal(answer.status, 200, f"status of PUT config ({answer.message})")
    waiting.put("resume")
    t.wait_streaming()
    t.settle()
    topics = shown(t, "narrow", "one", "parted_a")
    marks = {table: {mark for mark in markers(records) if mark in ("first", "last")} for table, records in topics.items()}
    equal(marks, {"narrow": {"first"}, "one": {"last"}, "parted_a": set()}, "where the snapshot began and ended")


CASES = {"parallel": parallel, "overrides": overrides, "order": order}

"""Row filters in the publication: the server leaves rows out, the topics are the same, and what it lets through too much stops the task."""

from typing import Any

from harness.checks import check, equal, wait_for
from harness.rest import Answer
from harness.topics import Record
from harness.trial import Trial

PUBLIC = "public\\."
FILTERS = {"moves": "v < 10 AND note NOT LIKE 'no%'", "profiles": "bio LIKE 'vip%'", "regions": "region IN ('eu', 'ch')",
           "parted": "v BETWEEN 0 AND 99.5"}
STATEMENTS = (
    "update moves set v = 2 where id = 1",  # in, in
    "update moves set v = 30 where id = 2",  # out, out
    "update moves set note = 'x' where id = 3",  # unknown, unknown
    "update moves set v = 11, note = 'secret' where id = 1",  # in, out
    "update moves set v = null where id = 1",  # out, unknown
    "update moves set v = 3, note = 'back' where id = 1",  # unknown, in
    "update moves set id = 10 where id = 1",  # in, in, another key
    "update moves set id = 11, v = 12, note = 'secret' where id = 10",  # in, out, another key
    "update moves set id = 12, v = 4, note = 'seen' where id = 11",  # out, in, another key
    "update moves set id = 20 where id = 2",  # out, out, another key
    "insert into moves values (5, 5, 'new'), (6, 60, 'secret'), (7, null, 'secret'); delete from moves where id in (5, 6, 7)",
    "update profiles set last_login = now()",  # the large value is not in the new row
    "update profiles set id = id + 100",
    "update profiles set bio = 'vip too' where id = 143; update profiles set bio = 'was' where id = 142",
    "insert into profiles values (50, null, repeat('z', 9600)); update profiles set last_login = now() where id = 50",
    "update regions set v = 10", "update regions set region = 'us' where id = 1", "update regions set region = 'ch' where id = 2",
    "update regions set id = 20 where id = 2", "delete from regions where id = 20",
    "update parted set v = 99.50 where id = 1", "update parted set v = 'NaN' where id = 1", "update parted set v = 7, id = 102 where id = 1",
    "update parted set v = 3 where id = 101", "delete from parted where id = 101",
    "truncate moves",
)


def filters(*tables: str) -> dict[str, str]:
    return {f"row.filter.public.{table}": FILTERS[table] for table in tables}


def config(t: Trial, *tables: str, **more: Any) -> dict[str, Any]:
    included = ",".join(PUBLIC + table for table in tables)
    return t.config(table_include_list=included, row_filter_pushdown="publication", **more) | filters(*tables)


def server(t: Trial) -> int:
    return int(t.server.value("select current_setting('server_version_num')::int / 10000"))


def seen(records: list[Record]) -> list[tuple[Any, ...]]:
    return [(r.op, r.key and r.key["id"]) for r in records]


def comparable(record: Record, prefix: str) -> tuple[Any, ...]:
    """All of a record but when it was made, by whom, and what only one of both ways can know."""
    value = record.value
    if value is not None:
        # A snapshot is taken when it is, and a fully filtered transaction is not seen to be one.
        other = ("name", "sequence", *(("ts_ms", "ts_us", "ts_ns", "lsn", "txId") if value["op"] == "r" else ()))
        source = {name: text for name, text in value["source"].items() if name not in other}
        value = {name: part for name, part in value.items() if not name.startswith("ts_")} | {"source": source}
    only_here = ("__tidegate.scope", "__tidegate.tx_seq")
    if record.op == "r":
        only_here += ("__tidegate.commit_lsn",)
    headers = {name: text.replace(prefix, "") for name, text in record.headers.items() if name not in only_here}
    return record.topic.removeprefix(prefix), record.key, value, headers


def the_same_topics(t: Trial) -> None:
    """Two connectors, one each way, over every cell of the truth table: the same records in the same order."""
    if server(t) < 15:
        t.refused(t.worker(), config(t, "moves"), "TG-E-SERVER-VERSION")
        t.nothing_left()
        return
    tables = tuple(FILTERS)
    worker = t.worker()
    worker.create(t.name, config(t, *tables, publish_via_partition_root="true"))
    t.wait_streaming()
    other = f"{t.name}_here"
    worker.create(other, config(t, *tables, publish_via_partition_root="true") | {
        "row.filter.pushdown": "none", "slot.name": other, "publication.name": other, "topic.prefix": other})
    streaming = "select count(*) = 2 from pg_stat_replication where state = 'streaming' and application_name like %s"
    wait_for(lambda: t.server.value(streaming, f"%{t.name}%"), 60, "both streams")
    found = t.admin.query("select tablename, rowfilter is not null as is_filtered from pg_publication_tables where pubname = %s order by 1", t.name)
    equal([(row["tablename"], row["is_filtered"]) for row in found], [(table, True) for table in sorted(tables)], "the publication's filters")
    t.sql(*STATEMENTS)
    end = t.server.value("select pg_current_wal_lsn()::text")
    behind = "select count(*) from pg_replication_slots where database = %s and confirmed_flush_lsn < %s::pg_lsn"
    wait_for(lambda: t.server.value(behind, t.name, end) == 0, 60, "both slots")
    for table in tables:
        pushed, here = (t.topic_named(f"{prefix}.public.{table}").read() for prefix in (t.name, other))
        check(len(pushed) > 4, f"{table} has records")
        for one, two in zip(pushed, here):
            equal(comparable(one, t.name), comparable(two, other), f"record of {table}")
        equal(len(pushed), len(here), f"records of {table}")
        check(all(r.extension("scope") is None for r in pushed), "the server does not tell which rows moved")
    check(any(r.extension("scope") for r in here), "the worker does")


def refused_before_anything_is_made(t: Trial) -> None:
    if server(t) < 15:
        return
    worker = t.worker()

    def refused(table: str, text: str, code: str, *words: str, **more: Any) -> None:
        settings = {"table_include_list": PUBLIC + table} | more
        answer = t.refused(worker, t.config(row_filter_pushdown="publication", **settings) | {f"row.filter.public.{table}": text}, code)
        check(all(word in answer for word in words), f"{words} in {answer}")

    refused("moods", "mood = 'happy'", "TG-E-FILTER-UNSUPPORTED-PREDICATE", "ser-defined types", "pushdown=none")
    refused("moods", "n::text = '5'", "TG-E-FILTER-UNSUPPORTED-PREDICATE", "pushdown=none")
    refused("moods", "n = 1 OR now() > '2024-01-01'", "TG-E-FILTER-UNSUPPORTED-PREDICATE", "functions")
    refused("small", "region = 'eu'", "TG-E-FILTER-BEFORE-IMAGE", "bio", "REPLICA IDENTITY FULL")
    refused("small", "bio = 'eu'", "TG-E-FILTER-BEFORE-IMAGE")
    refused("moves", "v < 10", "TG-E-CONFIG-INVALID", "all_tables", publication_autocreate_mode="all_tables")
    refused("parted_1", "v < 10", "TG-E-CONFIG-INVALID", "publish.via.partition.root", table_include_list=PUBLIC + "parted.*")
    t.nothing_left()
    for made, words in (("for table moves", "has no row filter"), ("for table moves where (v < 11)", "(v < 11)"),
                        ("for table moves where (v < 10) with (publish = 'insert')", "leaves out update"),
                        ("for table moves (id, v)", "a column list")):
        t.sql(f"create publication {t.name} {made}")
        code = "TG-E-FILTER-PUSHDOWN-DRIFT" if "row filter" in words or "11" in words else "TG-E-PUBLICATION-CHANGED"
        refused("moves", "v < 10", code, words, publication_autocreate_mode="disabled" if "11" in words else "filtered")
        t.sql(f"drop publication {t.name}")
    for made, words in (("for all tables", "all tables"), ("for tables in schema public", "the whole schema")):
        t.admin.sql(f"create publication {t.name} {made}")
        refused("moves", "v < 10", "TG-E-FILTER-PUSHDOWN-DRIFT", words)
        t.admin.sql(f"drop publication {t.name}")
    t.sql(f"create publication {t.name} for table moves where (v < 10)")
    answer = t.refused(worker, t.config(table_include_list=PUBLIC + "moves"), "TG-E-PUBLICATION-CHANGED")
    check("row.filter.pushdown=publication" in answer, f"the other way is named: {answer}")
    # written otherwise, and the same to the server
    worker.create(t.name, config(t, "moves", publication_autocreate_mode="disabled") | {"row.filter.public.moves": '("v") < (10)'})
    t.wait_streaming()
    t.sql("update moves set v = 11 where id = 1")
    equal(seen(t.settled_records("moves")), [("r", 1), ("d", 1), (None, 1)], "records")


def drift(t: Trial) -> None:
    """The publication is altered behind our back: the task stops, and nothing is published or deleted."""
    if server(t) < 15:
        return
    worker = t.worker()
    connector = worker.create(t.name, config(t, "moves") | {"row.filter.public.moves": "v < 10"})
    t.wait_streaming()
    t.sql("update moves set v = 2 where id = 1")
    t.settle()
    listed = f"alter publication {t.name} set table moves"
    t.sql(listed, "update moves set v = 3 where id = 1; update moves set v = 11 where id = 1; update moves set v = 12 where id = 2")
    trace = connector.wait_failed("TG-E-FILTER-PUSHDOWN-DRIFT")
    check("public.moves" in trace and "moved out" in trace, f"table and reason are named: {trace}")
    check("ADD TABLE" not in trace and "pushdown=none, without changing the filters" in trace, f"the way that works is named: {trace}")
    equal(seen(t.topic("moves").read()), [("r", 1), ("u", 1)], "records: none of the open transaction")
    trace = connector.fail_again("TG-E-FILTER-PUSHDOWN-DRIFT")
    check("has no row filter" in trace, f"what is wrong with the publication is named: {trace}")
    t.sql(f"{listed} where (v < 5)")
    trace = connector.fail_again("TG-E-FILTER-PUSHDOWN-DRIFT")
    check("(v < 5)" in trace and "(v < 10)" in trace, f"both filters are named: {trace}")
    # Back as it was: what was let through meanwhile is still in the log.
    t.sql(f"{listed} where (v < 10)")
    trace = connector.fail_again("TG-E-FILTER-PUSHDOWN-DRIFT")
    check("anew" in trace, f"it is not taken for what it was before: {trace}")
    equal(seen(t.topic("moves").read()), [("r", 1), ("u", 1)], "records")
    # The remedy: the worker leaves rows out by itself, which it can whatever the server sends.
    t.sql(listed)
    here = t.config(table_include_list=PUBLIC + "moves") | {"row.filter.public.moves": "v < 10"}
    equal(worker.rest("PUT", f"/connectors/{t.name}/config", here, timeout=90).status, 200, "status of PUT config")
    t.wait_streaming()
    records = t.settled_records("moves")
    equal([(r.op, r.key["id"], r.extension("scope")) for r in records],
          [("r", 1, None), ("u", 1, None), ("u", 1, None), ("d", 1, "moved_out"), (None, 1, "moved_out")], "records")


def apply(t: Trial, mode: str = "from_now") -> Answer:
    return t.workers[-1].rest("PUT", f"/connectors/{t.name}/row-filters", {"mode": mode}, timeout=60)


def read_all(t: Trial) -> None:
    """Wait until everything is read that the server has written, committed or not."""
    end = t.server.value("select pg_current_wal_insert_lsn()::text")
    confirmed = "select confirmed_flush_lsn >= %s::pg_lsn from pg_replication_slots where slot_name = %s"
    wait_for(lambda: t.server.value(confirmed, end, t.name), 60, f"the slot at {end}")


def changed_filter(t: Trial) -> None:
    """What the publication left out is not known, so another filter does not simply hold from now on."""
    if server(t) < 15:
        return
    worker = t.worker()
    path = f"/connectors/{t.name}"
    base = config(t, "moves")
    worker.create(t.name, base | {"row.filter.public.moves": "v < 10"})
    t.wait_streaming()
    t.sql("update moves set v = 2 where id = 1")
    t.settle()

    def put(settings: dict[str, Any]) -> None:
        equal(worker.rest("PUT", path + "/config", settings, timeout=90).status, 200, "status of PUT config")

    changed = base | {"row.filter.public.moves": "v < 100"}
    answer = worker.rest("PUT", path + "/config", changed, timeout=90)
    check(answer.status == 400 and "TG-E-FILTER-PUSHDOWN-DRIFT" in answer.message, f"the publication has the other one: {answer}")
    t.sql(f"alter publication {t.name} set table moves where (v < 100)")
    put(changed)
    connector = worker.connector(t.name)
    trace = connector.wait_failed("TG-E-FILTER-CHANGED")
    words = ("Restore row.filter.public.moves", "/stop; take the row filters out", "row.filter.pushdown=none with the filter of before")
    check(all(word in trace for word in words), f"the way is told in its order: {trace}")
    equal(worker.rest("PUT", path + "/stop").status, 204, "status of stop")
    for mode in ("from_now", "resnapshot"):
        answer = apply(t, mode)
        check(answer.status == 400 and "TG-E-FILTER-CHANGED" in answer.message and words[1] in answer.message, f"it is refused: {answer}")
    # The way that the answer tells: without the publication's filter, behind what it left out.
    here = {"row.filter.pushdown": "none", "row.filter.public.moves": "v < 10"}
    t.sql(f"alter publication {t.name} set table moves", "update moves set v = 21 where id = 2")
    put(base | here)
    equal(worker.rest("PUT", path + "/resume").status, 202, "status of resume")
    t.wait_streaming()
    read_all(t)
    equal(worker.rest("PUT", path + "/stop").status, 204, "status of stop")
    equal(apply(t).body["tables"], 1, "nothing is other: what the columns mean is learnt anew")
    put(base | here | {"row.filter.public.moves": "v < 100"})
    answer = apply(t)
    equal((answer.status, answer.body and answer.body.get("tables")), (200, 1), f"the filter is applied: {answer.message}")
    equal(worker.rest("PUT", path + "/resume").status, 202, "status of resume")
    t.wait_streaming()
    t.sql("update moves set v = 22 where id = 2")
    equal([(r.op, r.key["id"], r.after["v"]) for r in t.settled_records("moves")],
          [("r", 1, 1), ("u", 1, 2), ("u", 2, 22)], "records")


def quiet_source(t: Trial) -> None:
    """From `publication` to `none` where nothing is written: another filter can be applied as soon as the worker has read on."""
    if server(t) < 15:
        return
    worker = t.worker()
    connector = worker.create(t.name, config(t, "moves") | {"row.filter.public.moves": "v < 10"})
    t.wait_streaming()
    connector.put("stop")
    t.sql(f"alter publication {t.name} set table moves")
    path = f"/connectors/{t.name}"

    def patch(settings: dict[str, Any]) -> None:
        equal(worker.rest("PATCH", path + "/config", settings, timeout=90).status, 200, "status of PATCH config")

    patch({"row.filter.pushdown": "none"})
    for _ in range(2):
        # Once more: what is noted of the publication is not begun anew.
        connector.put("resume")
        t.wait_streaming()
        read_all(t)
        connector.put("stop")
        wait_for(lambda: t.server.value("select not active from pg_replication_slots where slot_name = %s", t.name), 30, "the slot is free")
    answer = worker.rest("PATCH", path + "/config", {"row.filter.public.moves": "v < 100"}, timeout=90)
    equal(answer.status, 200, "status of PATCH config")
    notes = " ".join(answer.body.get("notes", []))
    check("TG-E-FILTER-CHANGED" in notes and "(v < 10) became (v < 100)" in notes and "/row-filters" in notes, f"what will be is told: {answer.body}")
    answer = worker.rest("PUT", "/connector-plugins/PostgresConnector/config/validate", worker.rest("GET", path + "/config").body, timeout=90)
    check("TG-E-FILTER-CHANGED" in " ".join(answer.body.get("notes", [])), f"also by validate: {answer}")
    answer = apply(t)
    equal((answer.status, answer.body and answer.body.get("tables")), (200, 1), f"the filter is applied: {answer.message}")
    connector.put("resume")
    t.wait_streaming()
    t.sql("update moves set v = 22 where id = 2")
    equal(seen(t.settled_records("moves")), [("r", 1), ("u", 2)], "records")


def column_list(t: Trial) -> None:
    """The publication is given a column list while it streams: no record lacks a column because of it."""
    if server(t) < 15:
        return
    connector = t.worker().create(t.name, config(t, "moves") | {"row.filter.public.moves": "v < 10"})
    t.wait_streaming()
    t.sql(f"alter publication {t.name} set table moves (id, v) where (v < 10)", "insert into moves values (4, 4, 'new')")
    trace = connector.wait_failed("TG-E-PUBLICATION-CHANGED")
    check("column list" in trace and "note" in trace, f"the column list is named: {trace}")
    equal(seen(t.topic("moves").read()), [("r", 1)], "records: none that lacks a column")


CASES = {"column-list": column_list, "quiet-source": quiet_source, "the-same-topics": the_same_topics, "refused": refused_before_anything_is_made, "drift": drift, "changed-filter": changed_filter}

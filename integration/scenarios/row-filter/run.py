"""Row filters: rows move into and out of what is published, and no row that the source still holds is ever deleted."""

from typing import Any

from harness.checks import check, equal, wait_for
from harness.metrics import scrape
from harness.topics import Record, replay
from harness.trial import Trial

VIP = "vip " + "x" * 9600
PUBLIC = "public\\."
# They wait for looks at the catalogue, or restart many times.
LONG = {"redefined-columns", "renamed-labels", "publication-altered"}


def seen(records: list[Record]) -> list[tuple[Any, ...]]:
    return [(r.op, r.key and r.key["id"], r.extension("scope")) for r in records]


def connect(t: Trial, tables: str, filters: dict[str, str], **more: Any) -> Any:
    config = t.config(table_include_list=tables, **more) | {f"row.filter.{table}": text for table, text in filters.items()}
    connector = t.worker().create(t.name, config)
    t.wait_streaming()
    return connector


def sibling_of_a_large_value(t: Trial) -> None:
    """The filtered column is large, did not change and is not in the new row: the row stays."""
    connect(t, PUBLIC + "profiles", {"public.profiles": "bio LIKE 'vip%'"})
    t.sql("update profiles set last_login = now()",
          "update profiles set last_login = null where id = 42; update profiles set id = 44 where id = 42")
    records = t.settled_records("profiles")
    equal(seen(records), [("r", 42, None), ("u", 42, None), ("u", 42, None),
                          ("d", 42, None), (None, 42, None), ("c", 44, None)], "records")
    for record in records:
        if record.after:
            equal((record.after["bio"], record.extension("unavailable")), (VIP, None), "the large value")
    t.sql("update profiles set last_login = now()")
    records = t.settled_records("profiles")
    equal([row["id"] for row in replay(records).values()], [44], "rows that a reader holds")
    t.exactly_once(records)


def truth_table(t: Trial) -> None:
    """Every cell, with and without another key; images out of the filter are in no record."""
    connect(t, PUBLIC + "moves", {"public.moves": "v < 10"})
    t.sql(
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
        "insert into moves values (5, 5, 'new'), (6, 60, 'secret'), (7, null, 'secret')",
        "delete from moves where id in (5, 6, 7)",
        "truncate moves",
    )
    records = t.settled_records("moves")
    equal(seen(records), [
        ("r", 1, None),
        ("u", 1, None),
        ("d", 1, "moved_out"), (None, 1, "moved_out"),
        ("c", 1, "moved_in"),
        ("d", 1, None), (None, 1, None), ("c", 10, None),
        ("d", 10, "moved_out"), (None, 10, "moved_out"),
        ("c", 12, "moved_in"),
        ("c", 5, None),
        ("d", 5, None), (None, 5, None),
        ("t", None, None),
    ], "records")
    for record in records:
        for image in (record.before, record.after):
            check(image is None or image["note"] != "secret" and image["v"] < 10, f"only rows in the filter are shown: {record}")
        if record.extension("scope") == "moved_in":
            check(record.before is None, "a row that moved in shows nothing of before")
        if record.extension("scope") == "moved_out":
            check(record.value is None or record.after is None, "a row that moved out shows nothing of after")
    t.exactly_once(records)
    metrics = scrape(t.workers[-1].rest.base)
    counts = {verdict: metrics.value("tidegate_row_filter_changes_total", table="moves", verdict=verdict)
              for verdict in ("in", "out", "moved_in", "moved_out", "stopped")}
    equal(counts, {"in": 5, "out": 8, "moved_in": 2, "moved_out": 2, "stopped": 0}, "what the filter said")
    equal(metrics.value("tidegate_changes_total", table="moves", kind="moved_out"), 2, "rows that moved out")


def within_the_identity(t: Trial) -> None:
    """A predicate over the key needs no whole old rows: without an old row the key has not changed."""
    connect(t, PUBLIC + "regions," + PUBLIC + "indexed",
            {"public.regions": "region IN ('eu', 'ch')", "public.indexed": "code LIKE 'a%'"})
    t.sql("update regions set v = 10", "update regions set region = 'us' where id = 1",
          "update regions set region = 'ch' where id = 2", "delete from regions",
          "update indexed set v = 10", "update indexed set code = 'b2' where id = 1",
          "update indexed set code = 'a2' where id = 2", "delete from indexed")
    equal(seen(t.settled_records("regions")), [
        ("r", 1, None), ("u", 1, None), ("d", 1, "moved_out"), (None, 1, "moved_out"),
        ("c", 2, "moved_in"), ("d", 2, None), (None, 2, None),
    ], "records keyed by the primary key")
    equal([(r.op, r.key["code"], r.extension("scope")) for r in t.topic("indexed").read()], [
        ("r", "a1", None), ("u", "a1", None), ("d", "a1", "moved_out"), (None, "a1", "moved_out"),
        ("c", "a2", "moved_in"), ("d", "a2", None), (None, "a2", None),
    ], "records keyed by an index")


def unpublished_column(t: Trial) -> None:
    """A filter over a column that is left out of the records."""
    connect(t, PUBLIC + "moves", {"public.moves": "v < 10"}, column_exclude_list="public\\.moves\\.v")
    t.sql("update moves set v = 11 where id = 1", "update moves set v = 1 where id = 2")
    records = t.settled_records("moves")
    equal(seen(records), [("r", 1, None), ("d", 1, "moved_out"), (None, 1, "moved_out"), ("c", 2, "moved_in")], "records")
    check(all("v" not in (r.after or r.before) for r in records if r.value), "the column is in no record")


def beside_other_rules(t: Trial) -> None:
    """What is masked, left out, or taken apart by a transform is judged as the source has it."""
    flat = {"transforms": "flat", "transforms.flat.type": "io.debezium.transforms.ExtractNewRecordState"}
    rules = {"column.mask.with.5.chars": "public.moves.note", "column.exclude.list": "public.moves.v"}
    filters = {"row.filter.public.moves": "v < 10 AND note LIKE 'i%'"}
    worker = t.worker()
    worker.create(t.name, t.config(table_include_list=PUBLIC + "moves") | rules | flat | filters)
    t.wait_streaming()
    t.sql("update moves set note = 'is' where id = 1", "update moves set note = 'out' where id = 1",
          "update moves set note = 'in again' where id = 1", "update moves set v = null where id = 1",
          "insert into moves values (4, 4, 'out'), (5, 5, 'in')")
    masked = lambda key: {"id": key, "note": "*****"}
    equal([(r.key["id"], r.value, r.extension("scope")) for r in t.settled_records("moves")], [
        (1, masked(1), None), (1, masked(1), None), (1, None, "moved_out"), (1, masked(1), "moved_in"),
        (1, None, "moved_out"), (5, masked(5), None),
    ], "records")


def large_values_by_mode(t: Trial) -> None:
    """Neither a marker nor a value of now makes a row that moves in complete."""
    filters = {"row.filter.public.small": "id < 100"}
    connector = connect(t, PUBLIC + "small", {"public.small": "id < 100"}, toast_mode="sentinel", key_change_toast="reselect")
    t.sql("update small set v = 2", "update small set id = 2", "insert into small values (200, 1, 'vip ' || repeat('z', 9600))",
          "update small set v = 3 where id = 200", "update small set id = 201 where id = 200")
    records = t.settled_records("small")
    equal([(r.op, r.key["id"], r.extension("unavailable"), r.extension("reselected")) for r in records], [
        ("r", 1, None, None), ("u", 1, "bio", None), ("d", 1, "v,bio", None), (None, 1, None, None),
        ("c", 2, None, "bio"),
    ], "records")
    equal(records[-1].after["bio"], VIP, "the value as it is now")
    t.sql("update small set id = 3 where id = 201")
    trace = connector.wait_failed("TG-E-TOAST-UNAVAILABLE")
    check("public.small" in trace and "bio" in trace, f"table and column are named: {trace}")
    equal(len(t.topic("small").read()), len(records), "records")
    # refused as soon as a value is missing, but for rows that are out
    other = f"{t.name}_refuse"
    t.workers[-1].create(other, t.config(table_include_list=PUBLIC + "small", toast_mode="refuse") | filters | {
        "slot.name": other, "publication.name": other, "topic.prefix": other})
    refusing = t.workers[-1].connector(other)
    wait_for(lambda: t.server.value("select count(*) from pg_stat_replication join pg_replication_slots on active_pid = pid "
                                    "where slot_name = %s and state = 'streaming'", other), 60, "the stream")
    t.sql("insert into small values (300, 1, 'vip ' || repeat('q', 9600))", "update small set v = 5 where id = 300",
          "update small set v = 6 where id = 2")
    refusing.wait_failed("TG-E-TOAST-UNAVAILABLE")
    equal(sorted((r.op, r.key["id"]) for r in t.topic_named(f"{other}.public.small").read()), [("r", 2), ("r", 3)], "records")


def refused_before_anything_is_made(t: Trial) -> None:
    worker = t.worker()
    for table, text, code in (
        ("public.small", "bio LIKE 'vip%'", "FILTER-BEFORE-IMAGE"),  # identity without the column
        ("public.small", "v = 1", "FILTER-BEFORE-IMAGE"),
        ("public.none", "v = 1", "FILTER-UNKNOWN-TABLE"),
        ("public.moves", "w = 1", "FILTER-UNSUPPORTED-PREDICATE"),
        ("public.moves", "v < now()", "FILTER-UNSUPPORTED-PREDICATE"),
        ("public.moves", "v <", "FILTER-UNSUPPORTED-PREDICATE"),
        ("public.parted", "bio LIKE 'vip%'", "FILTER-UNKNOWN-TABLE"),
    ):
        tables = PUBLIC + ("moves" if "none" in table else "parted.*" if "parted" in table else table.split(".")[1])
        t.refused(worker, t.config(table_include_list=tables) | {f"row.filter.{table}": text}, f"TG-E-{code}")
    # Everything at once: a text that is no SQL does not hide what is wrong with the others, nor with other parts.
    answer = t.refused(worker, t.config(table_include_list=PUBLIC + "(moves|small)") | {
        "row.filter.public.moves": "v < 10;", "row.filter.public.small": "w = 1 AND v = eu AND bio = 'x'", "row.filter.public.none": "v = 1"},
        "TG-E-FILTER-UNSUPPORTED-PREDICATE", "TG-E-FILTER-UNKNOWN-TABLE")
    check(all(word in answer for word in ("FILTER-UNKNOWN-TABLE", "without ';'", "no column w", "single quotes: 'eu'")), f"all of it is told: {answer}")
    # One partition sends old rows that the filter cannot judge.
    config = t.config(table_include_list=PUBLIC + "parted", publish_via_partition_root="true")
    t.refused(worker, config | {"row.filter.public.parted": "bio LIKE 'vip%'"}, "TG-E-FILTER-BEFORE-IMAGE",
              "TG-E-SOURCE-REPLICA-IDENTITY")
    config = t.config(table_include_list=PUBLIC + "moves", envelope_extensions="none", unavailable_value_handling_mode="refuse")
    t.refused(worker, config | {"row.filter.public.moves": "v = 1"}, "TG-E-CONFIG-INVALID")
    t.nothing_left()


def never_a_delete(t: Trial) -> None:
    """An identity that is taken away while it streams: the task stops, and nothing is deleted."""
    connector = connect(t, PUBLIC + "profiles", {"public.profiles": "bio LIKE 'vip%'"})
    t.sql("update profiles set last_login = now()")
    t.settle()
    t.sql("alter table profiles replica identity default", "update profiles set last_login = null")
    trace = connector.wait_failed("TG-E-FILTER-AFTER-IMAGE")
    check("profiles" in trace and "bio" in trace, f"table and column are named: {trace}")
    equal(seen(t.topic("profiles").read()), [("r", 42, None), ("u", 42, None)], "records: none of the open transaction")


def leaf_without_full(t: Trial) -> None:
    """A partition loses what its root announces: the task stops, and nothing is deleted."""
    t.sql("alter table parted_2 replica identity full")
    connector = connect(t, PUBLIC + "parted", {"public.parted": "bio LIKE 'vip%'"}, publish_via_partition_root="true")
    t.sql("update parted set v = 2")
    t.settle()
    t.sql("alter table parted_1 replica identity default", "update parted set v = 3", "delete from parted")
    connector.wait_failed("TG-E-IMAGE-INCONSISTENT")
    equal(seen(t.topic("parted").read()), [("r", 1, None), ("u", 1, None)], "records")


def changed_filter(t: Trial) -> None:
    """Another filter is refused until it is applied on purpose; a restart with the same one is none."""
    connect(t, PUBLIC + "moves", {"public.moves": "v < 10"})
    worker = t.workers[-1]
    path = f"/connectors/{t.name}"
    t.sql("update moves set v = 2 where id = 1")
    t.settle()
    equal(worker.stop(), 0, "exit status")
    worker.start()
    t.sql("update moves set v = 3 where id = 1")
    t.settle()
    changed = t.config(table_include_list=PUBLIC + "moves") | {"row.filter.public.moves": "v < 100"}
    equal(worker.rest("PUT", path + "/config", changed, timeout=90).status, 200, "status of PUT config")
    connector = worker.connector(t.name)
    trace = connector.wait_failed("TG-E-FILTER-CHANGED")
    check("v < 10)" in trace and "v < 100)" in trace, f"both filters are named: {trace}")
    t.sql("update moves set v = 21 where id = 2")
    equal(worker.rest("PUT", path + "/row-filters", {"mode": "from_now"}).status, 400, "status while it is not stopped")
    equal(worker.rest("PUT", path + "/stop").status, 204, "status of stop")
    answer = worker.rest("PUT", path + "/row-filters", {"mode": "from_now"}, timeout=60)
    equal((answer.status, answer.body and answer.body.get("tables")), (200, 1), "the filter is applied")
    equal(worker.rest("PUT", path + "/resume").status, 202, "status of resume")
    t.wait_streaming()
    records = t.settled_records("moves")
    equal([(r.op, r.key["id"], r.after and r.after["v"]) for r in records],
          [("r", 1, 1), ("u", 1, 2), ("u", 1, 3), ("u", 2, 21)], "records")
    equal(worker.stop(), 0, "exit status")
    worker.start()
    t.sql("update moves set v = 22 where id = 2")
    equal(len(t.settled_records("moves")), 5, "records after another restart")


def again(t: Trial, connector: Any, config: dict[str, Any], mode: str = "from_now") -> None:
    """The filters of a configuration are applied on purpose."""
    worker, path = t.workers[-1], f"/connectors/{t.name}"
    equal(worker.rest("PUT", path + "/stop").status, 204, "status of stop")
    equal(worker.rest("PUT", path + "/config", config, timeout=90).status, 200, "status of PUT config")
    equal(worker.rest("PUT", path + "/stop").status, 204, "status of stop")
    answer = worker.rest("PUT", path + "/row-filters", {"mode": mode}, timeout=60)
    equal(answer.status, 200, f"the filters are applied: {answer.message}")
    equal(worker.rest("PUT", path + "/resume").status, 202, "status of resume")
    connector.wait_running()
    t.wait_streaming()


def through(t: Trial, connector: Any) -> None:
    def ended() -> bool:
        found = connector.request("GET", "/snapshots").body["snapshot"]
        return found is not None and found["state"] == "COMPLETED"
    wait_for(ended, 60, "the snapshot's end", connector.failed)
    t.sql("create table if not exists nothing ()")  # its rows are in Kafka when a later position is


def redefined_columns(t: Trial) -> None:
    """A column of the filter becomes another one: rows are not judged by a filter that may mean something else."""
    tables = PUBLIC + "redefined"
    filters = {"public.redefined": "r IN (0.1, 0.2) AND s <> 9 AND w = 1 AND w2 <> 2 AND v = 'a'"}
    connector = connect(t, tables, filters)
    config = t.config(table_include_list=tables) | {f"row.filter.{table}": text for table, text in filters.items()}
    t.sql("alter table redefined alter v type varchar(9)", "alter table redefined alter v type text", "alter table redefined alter s type bigint",
          "update redefined set n = 1")
    equal(len(t.settled_records("redefined")), 2, "what holds more of the same goes on")
    expected = 2
    for change, what in [
        ("alter table redefined alter r type float8", ("r", "float4", "float8")),
        ("alter table redefined drop s; alter table redefined add s bigint default 1", ("s", "another column")),
        ("alter table redefined rename w to x; alter table redefined rename w2 to w; alter table redefined rename x to w2", ("w", "another column")),
    ]:
        t.sql(change, "update redefined set n = n + 1")
        trace = connector.wait_failed("TG-E-FILTER-CHANGED")
        check(all(part in trace for part in what) and "public.redefined" in trace, f"column, before and now are named: {trace}")
        trace = connector.fail_again("TG-E-FILTER-CHANGED")
        equal(len(t.topic("redefined").read()), expected, "records")
        again(t, connector, config)
        t.sql("update redefined set n = n + 1")
        t.settle()
        expected = len(t.topic("redefined").read())
    # What readers hold is compared with the table.
    t.sql("insert into redefined (id, r, s, w, w2, v, n) values (3, 0.1, 1, 2, 1, 'a', 0), (4, 0.3, 1, 2, 1, 'a', 0)")
    again(t, connector, config | {"row.filter.public.redefined": "r IN (0.1, 0.2) AND w = 2"}, "resnapshot")
    through(t, connector)
    again(t, connector, config | {"row.filter.public.redefined": "r IN (0.1, 0.2) AND w = 2"}, "resnapshot")
    through(t, connector)
    rows = {row["id"] for row in t.query("select id from redefined where r in (0.1, 0.2) and w = 2")}
    equal({row["id"] for row in replay(t.settled_records("redefined")).values()}, rows, "rows that a reader holds")


def renamed_labels(t: Trial) -> None:
    """Labels that change their names, while it runs and while it does not."""
    connector = connect(t, PUBLIC + "moods", {"public.moods": "e = 'b'"})
    worker = t.workers[-1]
    t.sql("alter type mood rename value 'd' to 'dd'", "insert into moods values (7, 'b')")
    t.settle()
    t.sql("alter type mood rename value 'b' to 'b2'", "alter type mood rename value 'c' to 'b'")
    trace = connector.wait_failed("TG-E-FILTER-CHANGED")
    check("'b' is called 'b2'" in trace and "column e" in trace, f"the label is named: {trace}")
    t.sql("delete from moods where id = 2")
    connector.fail_again("TG-E-FILTER-CHANGED")
    again(t, connector, t.config(table_include_list=PUBLIC + "moods") | {"row.filter.public.moods": "e = 'b2'"})
    t.settle()
    equal(worker.stop(), 0, "exit status")
    t.sql("alter type mood rename value 'b2' to 'z'", "alter type mood rename value 'a' to 'b2'")
    worker.start()
    trace = worker.connector(t.name).wait_failed("TG-E-FILTER-CHANGED")
    check("'b2' is called 'z'" in trace, f"the label is named: {trace}")
    t.sql("alter type mood rename value 'b2' to 'a'", "alter type mood rename value 'z' to 'b2'")
    connector = worker.connector(t.name)
    connector.restart()
    connector.wait_running()
    t.sql("delete from moods where id = 7")
    equal(seen(t.settled_records("moods"))[-2:], [("d", 7, None), (None, 7, None)], "the delete is published")


def renamed_table(t: Trial) -> None:
    """A filtered table comes under a name that no filter names."""
    connector = connect(t, "public\\.(moves|others|third)", {"public.moves": "v < 10"})
    worker, path = t.workers[-1], f"/connectors/{t.name}"
    t.sql("begin; update moves set v = 2; alter table moves rename to others; insert into others values (5, 50, 'secret'), (6, 6, 'in'); commit")
    trace = connector.wait_failed("TG-E-FILTER-CHANGED")
    check("public.moves" in trace and "public.others" in trace, f"both names are told: {trace}")
    config = t.config(table_include_list="public\\.(moves|others|third)")
    equal(worker.rest("PUT", path + "/config", config | {"row.filter.public.others": "v < 10"}, timeout=90).status, 200, "status of PUT config")
    connector.wait_running()
    t.wait_streaming()
    t.sql("update others set v = 60 where id = 6")
    equal(seen(t.settled_records("others")), [("c", 6, None), ("d", 6, "moved_out"), (None, 6, "moved_out")], "records under the new name")
    equal(seen(t.topic("moves").read()), [("r", 1, None), ("u", 1, None), ("c", 2, "moved_in"), ("c", 3, "moved_in")], "records under the old one")
    t.sql("alter table others rename to third", "insert into third values (8, 80, 'in by the other one')")
    connector.wait_failed("TG-E-FILTER-CHANGED")
    again(t, connector, config | {"row.filter.public.third": "v < 100"})
    t.sql("insert into third values (9, 900, 'out'), (10, 9, 'in')")
    equal(seen(t.settled_records("third")), [("c", 8, None), ("c", 10, None)], "records by another filter")


def row_that_cannot_be_judged(t: Trial) -> None:
    """The identity was lowered for a while: the way that the message names leads past it."""
    connector = connect(t, PUBLIC + "moves", {"public.moves": "v < 10"})
    t.sql("begin; alter table moves replica identity default; delete from moves where id = 1; "
          "insert into moves values (4, 40, 'out'), (5, 5, 'in'); alter table moves replica identity full; commit")
    trace = connector.wait_failed("TG-E-FILTER-BEFORE-IMAGE")
    check("row-filters" in trace and "resnapshot" in trace, f"the way on is named: {trace}")
    config = t.config(table_include_list=PUBLIC + "moves")
    again(t, connector, config, "resnapshot")
    through(t, connector)
    again(t, connector, config | {"row.filter.public.moves": "v < 10"}, "resnapshot")
    through(t, connector)
    t.sql("insert into moves values (6, 60, 'out')")
    equal({row["id"] for row in replay(t.settled_records("moves")).values()}, {5}, "rows that a reader holds")


def publication_altered(t: Trial) -> None:
    """A publication that left something out for a while, and says again what it said."""
    connector = connect(t, PUBLIC + "moves", {})
    worker = t.workers[-1]
    t.sql(f"alter publication {t.name} set (publish = 'insert, update')", "delete from moves where id = 1",
          f"alter publication {t.name} set (publish = 'insert, update, delete, truncate')")
    trace = connector.wait_failed("TG-E-PUBLICATION-CHANGED")
    check("altered" in trace, f"it is told: {trace}")
    connector.restart()
    connector.wait_running()
    t.wait_streaming()
    t.sql("update moves set v = 1 where id = 2")
    t.settle()
    equal(worker.stop(), 0, "exit status")
    t.sql(f"alter publication {t.name} drop table moves", "delete from moves where id = 2", f"alter publication {t.name} add table moves")
    worker.start()
    trace = worker.connector(t.name).wait_failed("TG-E-PUBLICATION-CHANGED")
    check("altered" in trace, f"it is told: {trace}")
    connector.restart()
    connector.wait_running()


CASES = {
    "redefined-columns": redefined_columns,
    "renamed-labels": renamed_labels,
    "renamed-table": renamed_table,
    "row-that-cannot-be-judged": row_that_cannot_be_judged,
    "publication-altered": publication_altered,
    "sibling-of-a-large-value": sibling_of_a_large_value,
    "truth-table": truth_table,
    "within-the-identity": within_the_identity,
    "unpublished-column": unpublished_column,
    "beside-other-rules": beside_other_rules,
    "large-values-by-mode": large_values_by_mode,
    "refused": refused_before_anything_is_made,
    "never-a-delete": never_a_delete,
    "leaf-without-full": leaf_without_full,
    "changed-filter": changed_filter,
}

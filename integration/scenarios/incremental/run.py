"""Tables are read beside the running stream, in chunks that are placed exactly: whatever happens meanwhile, a reader ends with
the table's rows."""

import json
import random
import threading
from typing import Any, Callable, Iterable

import psycopg

from harness.checks import check, equal, wait_for
from harness.mirror import merged
from harness.topics import Record
from harness.trial import Trial
from harness.worker import Connector

SERVER_MATTERS = False
# The others show the most of it in less time.
LONG = {"orders", "upset"}
PUBLIC = "public\\."


def connect(t: Trial, tables: Iterable[str], **more: Any) -> Connector:
    listed = ",".join(PUBLIC + table for table in tables)
    settings = {"snapshot_mode": "no_data", "incremental_snapshot_chunk_size": "7", **more}
    connector = t.worker().create(t.name, t.config(table_include_list=listed, **settings))
    t.wait_streaming()
    return connector


def start(connector: Connector, *tables: str, **filters: str) -> None:
    body = {"data-collections": [f"public.{table}" for table in tables], "additional-conditions": [
        {"data-collection": f"public.{table}", "filter": text} for table, text in filters.items()]}
    answer = connector.request("POST", "/snapshots", body)
    equal(answer.status, 202, f"status of POST …/snapshots ({answer.message})")


def progress(connector: Connector) -> dict[str, Any]:
    return connector.request("GET", "/snapshots").body["snapshot"] or {}


def wait_done(t: Trial, connector: Connector, *, timeout: float = 90) -> dict[str, Any]:
    """Ended as it should, as it is told."""
    def ended() -> dict[str, Any] | None:
        found = progress(connector)
        return found if found.get("state") in ("COMPLETED", "STOPPED") else None
    found = wait_for(ended, timeout, "the snapshot's end", connector.failed)
    equal([one for one in found["tables"] if one["state"] != "COMPLETED"], [], "tables that were not read")
    return found


# ------------------------------------------------------------ what a reader holds
def table(t: Trial, name: str, *key: str) -> dict[str, dict[str, Any]]:
    return {json.dumps({column: row[column] for column in key}): row for row in t.query(f"select * from {name}")}


def kept(records: list[Record]) -> set[str]:
    """Of a table without a key: the rows, each told by all that it holds."""
    rows: set[str] = set()
    for record in records:
        if record.before is not None:
            rows.discard(json.dumps(record.before))
        if record.after is not None:
            rows.add(json.dumps(record.after))
    return rows


# ------------------------------------------------------------ what happens meanwhile
class Writers:
    """Sessions that write at random until they are told to stop."""

    def __init__(self, t: Trial, *writes: Callable[[random.Random], str], seed: int = 7):
        self._stop = threading.Event()
        self._failed: list[BaseException] = []
        self._threads = [threading.Thread(target=self._write, args=(t, random.Random(seed + number), write))
                         for number, write in enumerate(writes)]

    def _write(self, t: Trial, choose: random.Random, write: Callable[[random.Random], str]) -> None:
        with t.source.session() as session:
            while not self._stop.wait(0.01):
                try:
                    session.execute(write(choose))
                except psycopg.errors.UniqueViolation:
                    pass
                except BaseException as error:  # shown by __exit__
                    self._failed.append(error)
                    return

    def __enter__(self) -> "Writers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        equal(self._failed, [], "faults of the writers")


def on_keyed(choose: random.Random) -> str:
    a = choose.randrange(1, 320)
    return choose.choice([
        f"update keyed set n = n + 1 where a = {a}",  # the large value is not sent
        f"update keyed set n = n + 1 where a between {a} and {a + 5}",
        f"update keyed set doc = 'new ' || n || repeat('y', 3000) where a = {a}",
        f"begin; update keyed set n = n + 1 where a = {a}; savepoint s; update keyed set note = 's' where a = {a + 1}; "
        f"release s; commit",
        f"delete from keyed where a = {a}",
        f"insert into keyed values ({a}, 'k{a % 3}', 0, 'inserted', repeat('z', 3000))",
        f"update keyed set a = {a + 1000}, doc = repeat('w', 3000) where a = {a}",
    ])


def on_keyless(choose: random.Random) -> str:
    number = choose.randrange(1, 420)
    return choose.choice([
        f"update keyless set n = n + 1 where id = {number}",
        f"update keyless set n = n + 1 where id between {number} and {number + 40}",  # to other blocks
        f"delete from keyless where id = {number}",
        f"insert into keyless select {choose.randrange(1000, 10 ** 6)}, 0, repeat('q', 500)",
    ])


def beside_writers(t: Trial) -> None:
    """Inserts, updates that leave large values alone, deletes, other keys, while chunks of a few rows are read; a transaction
    is open when it begins."""
    connector = connect(t, ["keyed", "keyless", "parted"], publish_via_partition_root="true")
    with t.source.session() as other, Writers(t, on_keyed, on_keyed, on_keyless):
        other.execute("begin; update keyed set n = 100 where a = 1; update parted set n = 5 where id = 7")
        start(connector, "keyed", "keyless", "parted")
        wait_for(lambda: any(one["chunks"] > 5 for one in progress(connector).get("tables", [])), 60, "chunks", connector.failed)
        other.execute("update parted set region = 'eu' where id = 7; commit")
        done = wait_done(t, connector)
    t.settle()
    records = t.topic("keyed").read()
    check({r.value["source"]["snapshot"] for r in records if r.op == "r"} == {"incremental"}, "rows of chunks say so")
    equal([r for r in records if r.op == "r" and (r.value["source"]["lsn"], r.value["source"]["txId"]) != (None, None)], [],
          "rows of chunks with a transaction")
    equal(merged(records), table(t, "keyed", "a", "b"), "keyed")
    t.exactly_once(records)
    equal(kept(t.topic("keyless").read()), {json.dumps(row) for row in t.query("select * from keyless")}, "keyless")
    equal(merged(t.topic("parted").read()), table(t, "parted", "id", "region"), "parted")
    by_name = {one["data-collection"]: one for one in done["tables"]}
    check(by_name["public.keyed"]["rows"] >= 250 and by_name["public.parted"]["rows"] == 100, f"progress: {done}")


def killed(t: Trial) -> None:
    """kill -9 in the middle: what follows is read, nothing is lost, and no chunk that is through is read again."""
    connector = connect(t, ["keyed", "plain"])
    worker = t.workers[-1]
    start(connector, "plain", "keyed")
    writers = Writers(t, on_keyed)
    with writers:
        for number in (60, 150, 330):
            wait_for(lambda number=number: len(t.topic("plain").read()) >= number, 60, f"{number} rows", connector.failed)
            worker.kill()
            worker.start()
            connector.wait_running()
        done = {one["data-collection"]: one["rows"] for one in wait_done(t, connector)["tables"]}
    t.settle()
    records = t.topic("plain").read()
    equal([r.key["id"] for r in records], list(range(1, 501)), "each row of the quiet table once, in order")
    places = [(r.extension("commit_lsn"), r.extension("tx_seq")) for r in records]
    equal(len(set(places)), 500, "places of rows")
    equal(merged(t.topic("keyed").read()), table(t, "keyed", "a", "b"), "keyed")
    worker.kill()
    worker.start()
    connector.wait_running()
    def ends() -> dict[str, Any] | None:
        found = progress(connector)
        return found and {one["data-collection"]: (found["state"], one["state"], one["rows"]) for one in found["tables"]}
    expected = {"public.plain": ("COMPLETED", "COMPLETED", 500), "public.keyed": ("COMPLETED", "COMPLETED", done["public.keyed"])}
    equal(wait_for(ends, 30, "what is stored"), expected, "how it ended is told after a crash, too")
    connector.put("stop")
    equal(ends(), expected, "and while it is stopped")
    connector.request("DELETE", "/offsets")
    equal(ends(), {}, "until it is forgotten with the offset")


def orders(t: Trial) -> None:
    """Paused, resumed, stopped; what cannot be carried out is refused and changes nothing."""
    connector = connect(t, ["plain", "filtered"], incremental_snapshot_chunk_size="2")

    def refused(method: str, path: str, body: Any, status: int, code: str) -> None:
        answer = connector.request(method, path, body)
        check(answer.status == status and code in answer.message, f"{method} {path} {body}: {answer}")

    def ask(tables: list[str], **more: Any) -> dict[str, Any]:
        return {"data-collections": [f"public.{one}" for one in tables], **more}

    for action in ("pause", "resume", "stop"):
        refused("PUT", f"/snapshots/{action}", None, 409, "TG-E-SNAPSHOT-CONFLICT")
    refused("POST", "/snapshots", ask(["none"]), 400, "TG-E-TABLE-MISSING")
    refused("POST", "/snapshots", ask(["plain", "secret"]), 400, "TG-E-TABLE-MISSING")
    refused("POST", "/snapshots", ask(["plain"], type="blocking"), 400, "TG-E-CONFIG-MALFORMED")
    condition = {"data-collection": "public.plain", "filter": "v < now()"}
    refused("POST", "/snapshots", ask(["plain"], **{"additional-conditions": [condition]}), 400, "TG-E-FILTER-UNSUPPORTED-PREDICATE")
    equal(progress(connector), {}, "nothing was begun")

    start(connector, "plain", "filtered", filtered="v <= 20")
    refused("POST", "/snapshots", ask(["filtered"]), 409, "TG-E-SNAPSHOT-CONFLICT")
    equal(connector.request("PUT", "/snapshots/pause").status, 202, "status of pause")
    paused = progress(connector)
    equal((paused["state"], [one["data-collection"] for one in paused["tables"]]), ("PAUSED", ["public.plain", "public.filtered"]),
          "what is paused")
    t.settle()
    count = len(t.topic("plain").read())
    check(count < 500, "it is not through")
    t.sql("update plain set v = -1 where id = 1")
    t.settle()
    t.workers[-1].kill()
    t.workers[-1].start()
    connector.wait_running()
    t.wait_streaming()
    t.sql("update plain set v = -2 where id = 1")
    t.settle()
    equal(len(t.topic("plain").read()), count + 2, "nothing is read while it is paused, after a crash too")
    wait_for(lambda: progress(connector).get("state") == "PAUSED", 30, "the pause is shown", connector.failed)
    equal(connector.request("PUT", "/snapshots/stop", ask(["plain"])).status, 202, "status of stop")
    equal(connector.request("PUT", "/snapshots/resume").status, 202, "status of resume")
    wait_for(lambda: [one["state"] for one in progress(connector)["tables"]] == ["STOPPED", "COMPLETED"], 60,
             "the second table", connector.failed)
    t.settle()
    equal([r.key["id"] for r in t.topic("filtered").read()], list(range(1, 21)), "rows of the condition")
    count = len(t.topic("plain").read())
    check(count < 502, "the first table was not read to its end")
    connector.put("pause")
    connector.wait_states("PAUSED", "PAUSED")
    refused("POST", "/snapshots", ask(["plain"]), 409, "TG-E-SNAPSHOT-CONFLICT")


def change_filter(t: Trial, name: str, first: str, second: str | None) -> Connector:
    """A stopped connector that published the table by the first row filter, and will read for the second."""
    tables = {"table_include_list": PUBLIC + name, "incremental_snapshot_chunk_size": "5"}
    connector = t.worker().create(t.name, t.config(**tables) | {f"row.filter.public.{name}": first})
    t.wait_streaming()
    t.settle()
    path = f"/connectors/{t.name}"
    worker = t.workers[-1]
    changed = t.config(**tables) | ({f"row.filter.public.{name}": second} if second else {})
    equal(worker.rest("PUT", path + "/config", changed, timeout=90).status, 200, "status of PUT config")
    connector.wait_failed("TG-E-FILTER-CHANGED")
    connector.put("stop")
    answer = worker.rest("PUT", path + "/row-filters", {"mode": "resnapshot"}, timeout=60)
    equal((answer.status, answer.body.get("tables")), (200, 1), f"the filter is applied ({answer.message})")
    return connector


def refilter(t: Trial) -> None:
    """A changed row filter: rows that left are deleted, rows that entered are created, whatever becomes of them meanwhile."""
    connector = change_filter(t, "filtered", "v <= 100", "v > 50 AND v <= 150")
    # Published by the former filter, out of both by now; touched before any chunk is read.
    t.sql("update filtered set v = 1000 where id = 10", "update filtered set v = 60 where id = 11",
          "delete from filtered where id = 12", "update filtered set v = 120 where id = 13",
          "update filtered set v = 20 where id = 120", "update filtered set note = 'x' where id in (30, 80, 130, 180)")

    def write(choose: random.Random) -> str:
        number = choose.randrange(1, 201)
        return choose.choice([f"update filtered set v = {choose.randrange(0, 200)} where id = {number}",
                              f"update filtered set note = note || '.' where id = {number}",
                              f"delete from filtered where id = {number}",
                              f"insert into filtered values ({number}, {choose.randrange(0, 200)}, 'new')"])

    with Writers(t, write):
        connector.put("resume")
        connector.wait_running()
        wait_done(t, connector)
    t.settle()
    records = t.topic("filtered").read()
    expected = {key: row for key, row in table(t, "filtered", "id").items() if row["v"] is not None and 50 < row["v"] <= 150}
    equal(merged(records), expected, "rows that a reader holds")
    for record in records:
        if record.after is not None and record.value["source"]["snapshot"] == "incremental":
            check(50 < record.after["v"] <= 150, f"only rows of the new filter come: {record}")
    t.exactly_once(records)
    t.sql("delete from filtered where id = 55", "insert into filtered values (555, 55, 'in'), (556, 5, 'out')")
    equal([r.key["id"] for r in t.settled_records("filtered")[len(records):] if r.op == "c"], [555], "the new filter holds")


def refilter_to_none(t: Trial) -> None:
    """The filter is taken away: the rows that it left out come, and what is told is what was published."""
    connector = change_filter(t, "filtered", "v > 195", None)
    equal([one["data-collection"] for one in progress(connector)["tables"]], ["public.filtered"], "what is stored is shown while it is stopped")
    connector.put("resume")
    connector.wait_running()
    done = wait_done(t, connector)
    t.sql("create table nothing ()")  # its rows are in Kafka when a later position is
    records = t.settled_records("filtered")
    equal(sorted(r.key["id"] for r in records), list(range(1, 201)), "every row once")
    equal(sum(one["rows"] for one in done["tables"]), 195, "rows that are said to be published")
    # The same with deletes left out of the topics: they are not told as published.
    worker, path = t.workers[-1], f"/connectors/{t.name}"
    settings = t.config(table_include_list=PUBLIC + "filtered", incremental_snapshot_chunk_size="5") | {
        "row.filter.public.filtered": "v <= 150", "skipped.operations": "d"}
    connector.put("stop")
    equal(worker.rest("PUT", path + "/config", settings, timeout=90).status, 200, "status of PUT config")
    connector.put("stop")
    equal(worker.rest("PUT", path + "/row-filters", {"mode": "resnapshot"}, timeout=60).status, 200, "status of PUT row-filters")
    connector.put("resume")
    connector.wait_running()
    done = wait_done(t, connector)
    equal(sum(one["rows"] for one in done["tables"]), 0, "rows that are said to be published")
    t.sql("drop table nothing")
    equal(len(t.settled_records("filtered")), len(records), "no row is deleted")


def refilter_behind_from_now(t: Trial) -> None:
    """`from_now` leaves rows of the filter before in the topic, and others out; the next `resnapshot` mends both."""
    settings = {"table_include_list": PUBLIC + "filtered"}
    connector = t.worker().create(t.name, t.config(**settings) | {"row.filter.public.filtered": "v <= 100"})
    t.wait_streaming()
    t.settle()
    for text, mode in (("v > 50", "from_now"), ("v > 40 AND v <= 150", "resnapshot")):
        change_text(t, connector, settings, text, mode)
        t.wait_streaming()
    wait_done(t, connector)
    t.sql("update filtered set note = 'later' where id = 60")
    records = t.settled_records("filtered")
    expected = {key: row for key, row in table(t, "filtered", "id").items() if 40 < row["v"] <= 150}
    equal(merged(records), expected, "rows that a reader holds")


def refilter_hides(t: Trial) -> None:
    """Rows that are out may have been published or not; told anew, they are deleted by their keys, and nothing else of them is
    shown: not by the look at the table, and not by what becomes of them meanwhile."""
    settings = {"table_include_list": PUBLIC + "filtered", "incremental_snapshot_chunk_size": "5"}
    connector = t.worker().create(t.name, t.config(**settings) | {"row.filter.public.filtered": "v <= 100"})
    t.wait_streaming()
    t.settle()
    change_text(t, connector, settings, "v > 50 AND v <= 150", "from_now")
    t.wait_streaming()
    is_out = "(v > 50 and v <= 150) is not true"
    t.sql(f"update filtered set note = 'secret' where {is_out}")
    t.settle()
    connector.put("stop")
    apply_filters(t, "resnapshot")
    # Before any chunk: rows that are gone, and rows that come in under another key.
    t.sql("delete from filtered where id = 12", "update filtered set id = 1020 where id = 20",
          "update filtered set id = 1021, v = 60, note = 'open' where id = 21", "update filtered set v = 60, note = 'open' where id = 22")

    hidden_beside_writers(t, connector, 50, 150)
    # By another text: rows that come to where only the filter before was true are not published, and stay hidden.
    t.sql("update filtered set note = 'open' where v > 30 and v <= 50")
    t.settle()
    changed = t.config(**settings) | {"row.filter.public.filtered": "v > 30 AND v <= 120"}
    equal(t.workers[-1].rest("PUT", f"/connectors/{t.name}/config", changed, timeout=90).status, 200, "status of PUT config")
    connector.wait_failed("TG-E-FILTER-CHANGED")
    connector.put("stop")
    apply_filters(t, "resnapshot")
    t.sql("insert into filtered select g, 1000, 'secret' from generate_series(301, 306) g",
          "update filtered set v = 130, note = note || '!' where id between 301 and 306",
          "delete from filtered where id = 301", "update filtered set note = note || '?' where id = 302",
          "update filtered set id = 3303 where id = 303", "update filtered set v = 40, note = 'open' where id = 304",
          "update filtered set id = 3305, v = 40, note = 'open' where id = 305")
    hidden_beside_writers(t, connector, 30, 120)
    # What has no key cannot be deleted by it, and would be there twice.
    settings["table_include_list"] += "," + PUBLIC + "keyless"
    answer = t.workers[-1].rest("PUT", f"/connectors/{t.name}/config", t.config(**settings) | {
        "row.filter.public.filtered": "v > 30 AND v <= 120", "row.filter.public.keyless": "id > 10"}, timeout=90)
    equal(answer.status, 200, f"status of PUT config ({answer.message})")
    t.wait_streaming()
    t.sql("update keyless set n = 1 where id in (5, 15)")
    t.settle()
    connector.put("stop")
    answer = t.workers[-1].rest("PUT", f"/connectors/{t.name}/row-filters", {"mode": "resnapshot"}, timeout=60)
    check(answer.status == 400 and "no key" in answer.message and "from_now" in answer.message, f"it is refused: {answer}")
    apply_filters(t, "from_now", 2)
    connector.put("resume")
    connector.wait_running()
    t.sql("update keyless set n = 2 where id in (5, 15)")
    equal([r.after["n"] for r in t.settled_records("keyless") if r.op == "u"], [1, 2], "it goes on")


def refilter_redefined(t: Trial) -> None:
    """The filter before cannot be asked any more, or its columns meant something else: all rows are told anew."""
    settings = {"table_include_list": PUBLIC + "filtered"}
    connector = t.worker().create(t.name, t.config(**settings) | {"row.filter.public.filtered": "v <= 100 AND note LIKE 'row%'"})
    t.wait_streaming()
    t.settle()
    t.sql("alter table filtered drop column note", "update filtered set v = v where id = 1")
    connector.wait_failed("TG-E-FILTER")
    changed = t.config(**settings) | {"row.filter.public.filtered": "v <= 50"}
    t.workers[-1].rest("PUT", f"/connectors/{t.name}/config", changed, timeout=90)
    connector.put("stop")
    apply_filters(t, "resnapshot")
    connector.put("resume")
    connector.wait_running()
    wait_done(t, connector)
    expected = {key: row for key, row in table(t, "filtered", "id").items() if row["v"] <= 50}
    equal(merged(t.settled_records("filtered")).keys(), expected.keys(), "rows that a reader holds")
    # Two columns of one type change names; the same text is applied from there on, then another one.
    t.sql("alter table filtered add column w int default 1000", "update filtered set w = 10 where id > 190")
    t.settle()
    t.sql("begin; alter table filtered rename v to x; alter table filtered rename w to v; alter table filtered rename x to w; commit",
          "update filtered set v = v where id = 1")
    connector.wait_failed("TG-E-FILTER-CHANGED")
    connector.put("stop")
    apply_filters(t, "from_now")
    connector.put("resume")
    connector.wait_running()
    t.wait_streaming()
    change_text(t, connector, settings, "v <= 50 AND id > 3", "resnapshot")
    wait_done(t, connector)
    expected = {key: row for key, row in table(t, "filtered", "id").items() if row["v"] <= 50 and row["id"] > 3}
    equal(merged(t.settled_records("filtered")).keys(), expected.keys(), "rows that a reader holds behind another meaning")


def hidden_beside_writers(t: Trial, connector: Connector, low: int, high: int) -> None:
    """The rows between are told anew, beside writers; those that are out are secret."""
    def write(choose: random.Random) -> str:
        number, value, other = choose.randrange(1, 201), choose.randrange(0, 200), choose.randrange(1, 10**6)
        shown = f"v = {value}, note = '{'open' if low < value <= high else 'secret'}'"
        return choose.choice([f"update filtered set {shown} where id = {number}", f"delete from filtered where id = {number}",
                              f"update filtered set id = {10**4 + other}, {shown} where id = {number}"])

    with Writers(t, write):
        connector.put("resume")
        connector.wait_running()
        wait_done(t, connector)
    records = t.settled_records("filtered")
    expected = {key: row for key, row in table(t, "filtered", "id").items() if low < row["v"] <= high}
    equal(merged(records), expected, "rows that a reader holds")
    check("secret" not in json.dumps([[r.before, r.after] for r in records]), "nothing is shown of rows that are out")
    t.exactly_once(records)


def change_text(t: Trial, connector: Connector, settings: dict[str, str], text: str, mode: str) -> None:
    """Another filter, applied on purpose."""
    changed = t.config(**settings) | {"row.filter.public.filtered": text}
    equal(t.workers[-1].rest("PUT", f"/connectors/{t.name}/config", changed, timeout=90).status, 200, "status of PUT config")
    connector.wait_failed("TG-E-FILTER-CHANGED")
    connector.put("stop")
    apply_filters(t, mode)
    connector.put("resume")
    connector.wait_running()


def apply_filters(t: Trial, mode: str, tables: int = 1) -> None:
    """The configured filters, while the connector is stopped."""
    answer = t.workers[-1].rest("PUT", f"/connectors/{t.name}/row-filters", {"mode": mode}, timeout=60)
    equal((answer.status, answer.body.get("tables")), (200, tables), f"the filter is applied ({answer.message})")


def refilter_by_key(t: Trial) -> None:
    """The same where old rows show their key alone (`REPLICA IDENTITY DEFAULT`): filters within the key, keys that change."""
    connector = change_filter(t, "by_key", "a <= 100", "a > 50 AND a <= 150 AND b <> 'k0'")
    t.sql("update by_key set a = 1000 where a = 10", "update by_key set a = 60, b = 'moved' where a = 11",
          "delete from by_key where a = 13", "update by_key set a = 20 where a = 121", "update by_key set b = 'k0' where a in (71, 73)",
          "update by_key set n = n + 1 where a in (30, 80, 130, 180)")

    def write(choose: random.Random) -> str:
        number = choose.randrange(1, 201)
        return choose.choice([f"update by_key set a = {choose.randrange(1, 201)} where a = {number}",
                              f"update by_key set b = 'k{choose.randrange(3)}' where a = {number}",
                              f"update by_key set n = n + 1 where a = {number}", f"delete from by_key where a = {number}",
                              f"insert into by_key values ({number}, 'k{choose.randrange(3)}')"])

    with Writers(t, write):
        connector.put("resume")
        connector.wait_running()
        wait_done(t, connector)
    records = t.settled_records("by_key")
    expected = {key: row for key, row in table(t, "by_key", "a", "b").items() if 50 < row["a"] <= 150 and row["b"] != "k0"}
    equal(merged(records), expected, "rows that a reader holds")
    told = {r.before["n"] for r in records if r.op == "d" and r.value["source"]["snapshot"] != "incremental"}
    check(told <= {0, None}, f"a row that leaves shows its key alone, not what it becomes: {told}")
    t.exactly_once(records)


def upset(t: Trial) -> None:
    """The reader's connections are cut, tables are altered, emptied, rewritten and dropped in the middle: the stream goes on,
    and what can be read is."""
    connector = connect(t, ["plain", "keyed", "keyless", "doomed"], incremental_snapshot_chunk_size="2")

    def chunks(name: str, count: int) -> None:
        def read() -> bool:
            tables = {one["data-collection"]: one for one in progress(connector).get("tables", [])}
            return tables.get(f"public.{name}", {}).get("chunks", 0) >= count
        wait_for(read, 60, f"{count} chunks of {name}", connector.failed)

    start(connector, "keyless", "plain", "keyed", "doomed")
    chunks("keyless", 3)
    t.sql("update keyless set n = n + 1 where id < 50", "vacuum full keyless")
    chunks("plain", 3)
    for _ in range(3):
        t.server.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = %s and "
                       "application_name like 'tidegate%%' and backend_type = 'client backend'", t.name)
        t.sql("update plain set v = v + 1 where id % 50 = 0")
    chunks("plain", 6)
    t.sql("alter table plain add w text default 'new'", "update plain set v = 7 where id = 3")
    chunks("plain", 10)
    with t.source.session() as session:
        # Somebody alters it for a while: the stream does not wait.
        session.execute("begin; lock table plain in access exclusive mode")
        t.sql("update keyed set n = 3 where a = 5")
        t.settle()
        session.execute("truncate plain; insert into plain select g, -g, 'w' from generate_series(100, 160) g; commit")
    chunks("keyed", 3)
    t.sql("alter table keyed add extra int", "alter table keyed drop column note", "update keyed set extra = 1 where a < 20",
          "drop table doomed")
    def ended() -> dict[str, str] | None:
        found = progress(connector)
        return {one["data-collection"]: one["state"] for one in found["tables"]} if found.get("state") == "STOPPED" else None
    states = wait_for(ended, 60, "the end", connector.failed)
    equal(states, {"public.keyless": "COMPLETED", "public.plain": "COMPLETED", "public.keyed": "COMPLETED",
                   "public.doomed": "FAILED"}, "states of the tables")
    t.settle()
    equal(merged(t.topic("plain").read()), table(t, "plain", "id"), "plain")
    equal(kept(t.topic("keyless").read()), {json.dumps(row) for row in t.query("select * from keyless")}, "keyless")
    rows, found = table(t, "keyed", "a", "b"), merged(t.topic("keyed").read())
    equal(found.keys(), rows.keys(), "keys of keyed")
    for key, row in found.items():
        equal({name: row[name] for name in ("n", "doc")}, {name: rows[key][name] for name in ("n", "doc")}, key)
        check(row.get("extra") == rows[key]["extra"], f"the new column of {key}: {row.get('extra')}")


def key_types(t: Trial) -> None:
    """Keys are read in the order of their index, also where its operators are not the server's own."""
    t.admin.sql("create extension citext", "create extension ltree")
    letter = "chr(65 + (g * 7) % 26 + g % 2 * 32)"
    keys = {"citext": f"{letter} || g", "ltree": "('a.b' || g)::ltree", "pair": "row(g % 3, 'x' || g)::pair",
            "domain": f"{letter} || g", "other": letter + " || g"}
    t.sql("create type pair as (a int, b text)", "create domain domain as citext")
    for name, key in keys.items():
        kind = "text" if name == "other" else name
        t.sql(f"create table k_{name} (j int, k {kind} not null, v int, primary key (j, k))",
              f"insert into k_{name} select g % 3, {key}, g from generate_series(1, 100) g")
    # an index that tells more rows apart than its column's own order does
    t.sql("create collation nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
          "alter table k_other drop constraint k_other_pkey, alter k type text collate nocase",
          "create unique index by_bytes on k_other (k collate \"C\")", "alter table k_other replica identity using index by_bytes",
          "insert into k_other select 0, upper(k), v + 100 from k_other where k <> upper(k collate \"C\") collate \"C\"")
    connector = connect(t, [f"k_{name}" for name in keys])
    start(connector, *(f"k_{name}" for name in keys))
    wait_done(t, connector)
    t.settle()
    for name in keys:
        rows = [row["v"] for row in t.query(f"select v from k_{name} order by v")]
        equal(sorted(record.after["v"] for record in t.topic(f"k_{name}").read()), rows, f"the rows of k_{name}")


def another_order(t: Trial) -> None:
    """The key comes to be ordered in another way while the table is read: what would be skipped is read."""
    t.own_registry()
    t.sql("create table counted (id int primary key, v int)", "insert into counted select g, g from generate_series(1, 400) g")
    connector = connect(t, ["counted"], incremental_snapshot_chunk_size="1")
    t.settle()
    start(connector, "counted")
    wait_for(lambda: len(t.topic("counted").read()) > 70, 60, "some rows", connector.failed)
    equal(connector.request("PUT", "/snapshots/pause").status, 202, "status of pause")
    t.settle()
    read = len(t.topic("counted").read())
    check(read < 390, f"it is not through: {read} rows")
    for side in ("key", "value"):
        t.set_level(f"{t.name}.public.counted-{side}", "NONE")
    # As text, keys that are read stand between those that are not.
    t.sql("alter table counted alter id type text")
    equal(connector.request("PUT", "/snapshots/resume").status, 202, "status of resume")
    wait_done(t, connector)
    t.settle()
    texts = {r.after["id"] for r in t.topic("counted").read() if isinstance(r.after["id"], str)}
    equal(len(texts), 400, "rows by their keys of now")


def joined_while_open(t: Trial) -> None:
    """A table is added while a transaction is open that wrote to it: that is not in the stream, so it is waited for."""
    t.sql("create table joined (id int primary key, v text)", "insert into joined select g, 'before' from generate_series(1, 20) g")
    names = f"{PUBLIC}(keyed|joined)"
    connector = connect(t, ["keyed"], snapshot_mode="initial")
    t.settle()
    with t.source.session() as session:
        session.execute("begin")
        session.execute("insert into joined values (1000, 'open all the while')")
        answer = connector.request("PUT", "/config", t.config(table_include_list=names))
        equal(answer.status, 200, f"status of PUT config ({answer.message})")
        told = "open when it came to be published"
        wait_for(lambda: told in json.dumps(progress(connector)), 60, "what it waits for", connector.failed)
        t.sql("insert into joined values (1001, 'beside it')")
        session.execute("commit")
    wait_done(t, connector)
    t.settle()
    equal({r.after["id"] for r in t.topic("joined").read()}, {row["id"] for row in t.query("select id from joined")}, "its rows")


CASES = {"joined-while-open": joined_while_open, "another-order": another_order, "key-types": key_types, "beside-writers": beside_writers, "killed": killed, "orders": orders, "refilter": refilter, "refilter-to-none": refilter_to_none, "refilter-by-key": refilter_by_key,
         "refilter-behind-from-now": refilter_behind_from_now, "refilter-hides": refilter_hides,
         "refilter-redefined": refilter_redefined,
         "upset": upset}

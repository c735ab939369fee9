"""key.change.toast: a value that did not change with the key is marked, refused, or read anew and named as such; never guessed."""

from harness.checks import check, equal
from harness.metrics import scrape
from harness.topics import Record
from harness.trial import Trial

PLACEHOLDER = "__debezium_unavailable_value"
TABLE = {"schema": "public", "table": "t"}


def shown(record: Record) -> tuple:
    """What a created row has, and what its headers say."""
    headers = [record.extension(name) for name in ("unavailable", "unmergeable", "reselected")]
    return (record.op, record.after["id"], record.after["doc"], *headers)


def created(t: Trial, table: str = "t") -> list[Record]:
    """Rows that the stream created."""
    return [record for record in t.settled_records(table) if record.op == "c"]


def sentinel(t: Trial) -> None:
    worker = t.worker()
    t.connect(worker)
    t.sql("update t set id = 11 where id = 1", "update t set id = 12 where id = 2")
    equal([shown(r) for r in created(t)], [("c", 11, PLACEHOLDER, "doc,pic", "true", None),
                                           ("c", 12, PLACEHOLDER, "doc,pic", "true", None)], "rows under new keys")
    metrics = scrape(worker.rest.base)
    equal(metrics.value("tidegate_unmergeable_records_total", **TABLE), 2, "the counter")
    equal(worker.log_text().count("a row under a new key was published with markers"), 1, "warnings")
    t.exactly_once(t.topic("t").read())


def refuse(t: Trial) -> None:
    connector = t.connect(key_change_toast="refuse")
    t.sql("update t set v = 5 where id = 1", "update t set id = 11 where id = 1")
    trace = connector.wait_failed("TG-E-TOAST-UNAVAILABLE")
    check("public.t" in trace and "doc" in trace and "key.change.toast=refuse" in trace, f"the refusal names the place: {trace}")
    records = t.topic("t").read()
    equal((len(records), records[-1].op, records[-1].after["doc"]), (4, "u", PLACEHOLDER), "what came before it is out")
    equal(connector.request("PUT", "/config", t.config(key_change_toast="reselect")).status, 200, "status of PUT config")
    connector.wait_running()
    equal([shown(r) for r in created(t)], [("c", 11, "d1" * 3000, None, None, "doc,pic")], "the row, read anew")


def reselect(t: Trial) -> None:
    worker = t.worker()
    connector = t.connect(worker, key_change_toast="reselect", table_include_list="public\\.t,public\\.p",
                          publish_via_partition_root="true")
    t.sql("update t set id = 11 where id = 1", "update p set id = 2 where id = 1")
    t.settle()
    equal([shown(r) for r in created(t)], [("c", 11, "d1" * 3000, None, None, "doc,pic")], "a row that is still there")
    equal([shown(r) for r in created(t, "p")], [("c", 2, "part" * 3000, None, None, "doc")], "a row of a partition")

    # What is read is the row of now, whatever happened since, and it is not kept for the exact values that follow.
    connector.put("stop")
    connector.wait_states("STOPPED")
    t.sql("update t set id = 12 where id = 2; update t set v = 9 where id = 12",
          "update t set doc = 'later', pic = null where id = 12",
          "update t set id = 13 where id = 3", "delete from t where id = 13",
          "insert into kin values (13, 0, repeat('kin', 3000))")
    connector.put("resume")
    connector.wait_running()
    t.wait_streaming()
    records = t.settled_records("t")
    by_key = {key: [r for r in records if r.key == {"id": key} and r.after] for key in (12, 13)}
    equal([shown(r) for r in by_key[12]], [
        ("c", 12, "later", None, None, "doc,pic"), ("u", 12, PLACEHOLDER, "doc,pic", None, None),
        ("u", 12, "later", None, None, None)], "a row that changed since")
    equal([shown(r) for r in by_key[13]], [("c", 13, PLACEHOLDER, "doc,pic", "true", None)],
          "a row that is gone: another table's row of that key is not taken for it")
    equal(scrape(worker.rest.base).value("tidegate_unmergeable_records_total", **TABLE), 1, "the counter")
    check("not there any more under the key" in worker.log_text(), "the log says that the row is gone")

    # A row that may not be read is marked.
    t.sql("insert into t values (4, 4, repeat('d4', 3000), null)")
    t.settle()
    t.sql("alter table t rename column doc to text_now; update t set v = 0 where id = 4")
    t.settle()
    connector.put("stop")
    connector.wait_states("STOPPED")
    t.sql("update t set id = 14 where id = 4", "alter table t rename column text_now to text_then")
    connector.put("resume")
    connector.wait_running()
    t.wait_streaming()
    record = created(t)[-1]
    equal((record.after["id"], record.after["text_now"], record.extension("unmergeable")), (14, PLACEHOLDER, "true"),
          "a column that has another name by now")
    t.exactly_once(t.topic("t").read())


CASES = {"sentinel": sentinel, "refuse": refuse, "reselect": reselect}

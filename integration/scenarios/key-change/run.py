"""A changed key is a delete, a tombstone and a create, linked by headers; only a true change of key is one."""

from harness.checks import check, equal
from harness.topics import replay
from harness.trial import Trial

PLACEHOLDER = "__debezium_unavailable_value"


def run(t: Trial) -> None:
    t.connect()
    t.sql("update t set a = 10, v = 20 where a = 2", "update t set b = b, a = a, v = 21 where a = 10",
          "update t set a = 11 where a = 1",
          # Two rows change their keys with each other.
          "begin; update t set a = 99 where a = 10; update t set a = 10 where a = 11; update t set a = 11 where a = 99; "
          "update t set b = 'x' where a = 11; commit",
          # In one statement, which only a deferrable key allows: told by such a key, a row would be lost.
          "update d set id = 3 - id")
    records = t.settled_records("t")
    equal([(r.op, r.key, r.before, r.after and r.after["v"]) for r in records[2:9]], [
        ("d", {"b": "y", "a": 2}, {"a": 2, "b": "y", "v": None, "doc": None}, None),
        (None, {"b": "y", "a": 2}, None, None),
        ("c", {"b": "y", "a": 10}, None, 20),
        ("u", {"b": "y", "a": 10}, None, 21),
        ("d", {"b": "x", "a": 1}, {"a": 1, "b": "x", "v": None, "doc": None}, None),
        (None, {"b": "x", "a": 1}, None, None),
        ("c", {"b": "x", "a": 11}, None, 1),
    ], "records")
    equal(list(records[2].key), ["b", "a"], "order of the key's fields")
    check("10" in records[2].headers["__debezium.newkey"], "the delete names the new key")
    check("2" in records[4].headers["__debezium.oldkey"], "the create names the old key")
    orphan = records[8]
    equal((orphan.after["doc"], orphan.extension("unmergeable")), (PLACEHOLDER, "true"),
          "a large value that is known under the old key only")
    # Keys are what the replay gives; a large value not sent again is the placeholder's.
    rows = {key: (row["a"], row["b"], row["v"]) for key, row in replay(records).items()}
    equal(sorted(rows.values()), sorted((r["a"], r["b"], r["v"]) for r in t.query("select * from t")), "the table")
    t.exactly_once(records)
    equal([(r.op, r.key, r.after["id"], r.after["v"]) for r in t.settled_records("d")],
          [("r", None, 1, "one"), ("r", None, 2, "two"), ("u", None, 2, "one"), ("u", None, 1, "two")],
          "rows whose key is deferrable have no record key")

"""TRUNCATE is a record of its own for each table, in its place among the rows."""

from harness.checks import equal
from harness.topics import replay
from harness.trial import Trial


def run(t: Trial) -> None:
    t.connect()
    t.sql("insert into t values (3, 'three')",
          "begin; insert into t values (4, 'four'); truncate t cascade; insert into t values (5, 'five'); commit",
          "insert into t values (6, 'six')",
          # Undone, so never published.
          "begin; truncate t cascade; rollback")
    records = t.settled_records("t")
    equal([(r.op, r.key, r.after and r.after["id"]) for r in records], [
        ("r", {"id": 1}, 1), ("r", {"id": 2}, 2), ("c", {"id": 3}, 3), ("c", {"id": 4}, 4), ("t", None, None),
        ("c", {"id": 5}, 5), ("c", {"id": 6}, 6),
    ], "records")
    equal([(r.op, r.raw_key) for r in t.topic("child").read()][1:], [("t", None)], "records of the table truncated along")
    equal(replay(records), t.rows("t", "id"), "the table")
    t.exactly_once(records)

"""REPLICA IDENTITY FULL: rows keep their key though the catalogue has no such table or column any more when they are read."""

from harness.checks import equal
from harness.trial import Trial


def run(t: Trial) -> None:
    worker = t.worker()
    connector = t.connect(worker)
    worker.kill()
    for table in ("gone", "wider"):
        t.sql(f"alter table {table} add column x int", f"insert into {table} values (2, 'b', 1)", f"delete from {table}")
    t.sql("drop table gone", "alter table wider alter id type bigint", "insert into wider values (3, 'c')")
    worker.start()
    connector.wait_running()
    # The snapshot's row, the inserted one, and each deleted with its tombstone.
    expected = [1, 2, 1, 1, 2, 2]
    equal(keys(t, "gone"), expected, "keys of the table that is gone")
    equal(keys(t, "wider"), [*expected, 3], "keys of the table whose key has another type")


def keys(t: Trial, table: str) -> list[object]:
    """The keys of all records."""
    records = t.settled_records(table)
    t.exactly_once(records)
    return [record.key and record.key["id"] for record in records]

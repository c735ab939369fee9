"""A large value that the same transaction has sent completes later images of its row exactly; one that it has not is marked."""

from harness.checks import equal
from harness.trial import Trial

PLACEHOLDER = "__debezium_unavailable_value"


def run(t: Trial) -> None:
    t.connect(publish_via_partition_root="true")
    t.sql(
        # inserted, then touched twice, its key changed, and touched again
        "begin; insert into t values (2, 1, repeat('new', 3000), '\\x0102'); update t set v = 2 where id = 2; "
        "update t set id = 3 where id = 2; update t set v = 3 where id = 3; commit",
        # nothing was sent for this row
        "update t set v = 1 where id = 1",
        # what a rolled-back savepoint wrote is not what the row holds
        "begin; update t set doc = repeat('two', 3000) where id = 1; savepoint s; "
        "update t set doc = repeat('bad', 3000) where id = 1; rollback to s; update t set v = 2 where id = 1; commit",
        # deleted and inserted anew, under the same key
        "begin; delete from t where id = 3; insert into t values (3, 9, repeat('again', 2000)); "
        "update t set v = 10 where id = 3; commit",
        # the next transaction knows nothing of the last one
        "update t set v = 11 where id = 3",
        # a change of the table in between: the description is another one
        "begin; insert into t values (4, 1, repeat('four', 2000)); alter table t add extra int; "
        "update t set v = 2 where id = 4; commit",
        "begin; insert into p values (1, 1, repeat('part', 3000)); update p set id = 2 where id = 1; "
        "update p set k = 2 where id = 2; commit",
        # rewritten in between, by a command that leaves the description as it was
        "begin; insert into t values (5, 1, repeat('five', 2000)); alter table t alter doc type text using 'new' || doc, "
        "alter doc set storage external; "
        "update t set v = 2 where id = 5; commit",
        # written while the partition was none
        "begin; insert into p values (7, 1, repeat('part', 3000)); alter table p detach partition p1; "
        "update p1 set doc = repeat('new', 3000); alter table p attach partition p1 for values in (1); "
        "update p set id = id where id = 7; commit",
        # read otherwise, and nothing is described
        "begin; insert into c values (1, 1, row(repeat('part', 3000))); alter type w add attribute b int; "
        "update c set v = 2 where id = 1; commit",
    )
    new, old, two, again = "new" * 3000, PLACEHOLDER, "two" * 3000, "again" * 2000
    records = t.settled_records("t")
    equal([(r.op, r.key["id"], r.after and (r.after["v"], r.after["doc"]), r.extension("unavailable"))
           for r in records[1:] if r.op in ("c", "u")], [
        ("c", 2, (1, new), None), ("u", 2, (2, new), None), ("c", 3, (2, new), None), ("u", 3, (3, new), None),
        ("u", 1, (1, old), "doc"),
        ("u", 1, (1, two), None), ("u", 1, (2, two), None),
        ("c", 3, (9, again), None), ("u", 3, (10, again), None),
        ("u", 3, (11, PLACEHOLDER), "doc"),
        ("c", 4, (1, "four" * 2000), None), ("u", 4, (2, PLACEHOLDER), "doc"),
        ("c", 5, (1, "five" * 2000), None), ("u", 5, (2, PLACEHOLDER), "doc"),
    ], "records")
    equal([r.extension("unmergeable") for r in records], [None] * len(records), "every created row is whole")
    parts = t.settled_records("p")
    equal([(r.op, r.after["doc"] == "part" * 3000) for r in parts if r.after and r.key["id"] < 7], [("c", True)] * 3,
          "rows of partitions")
    last = parts[-1]
    equal((last.op, last.key["id"], last.after["doc"], last.extension("unavailable")), ("u", 7, PLACEHOLDER, "doc"),
          "a row of a partition that was another table for a while")
    composite = t.settled_records("c")[-1]
    equal((composite.op, composite.after["w"], composite.extension("unavailable")), ("u", PLACEHOLDER, "w"), "a row type")
    t.exactly_once(records)
    t.exactly_once(parts)

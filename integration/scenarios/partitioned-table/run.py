"""A partitioned table published as one: one topic, partitions made later included; a row that moves is deleted and created."""

from harness.checks import check, equal
from harness.topics import replay
from harness.trial import Trial


def as_root(t: Trial) -> None:
    t.connect(publish_via_partition_root="true", table_include_list="public\\.t")
    t.sql("create table t_02 partition of t for values from ('2026-02-01') to ('2026-03-01')",
          "insert into t values (2, '2026-02-05', 'b')", "update t set d = '2026-02-06', v = 'moved' where id = 1",
          "update t set v = 'bb' where id = 2")
    records = t.settled_records("t")
    equal([(r.op, r.key["id"]) for r in records], [("r", 1), ("c", 2), ("d", 1), (None, 1), ("c", 1), ("u", 2)], "records")
    equal({r.value["source"]["table"] for r in records if r.value}, {"t"}, "source.table")
    equal(sorted((row["id"], row["v"]) for row in replay(records).values()), [(1, "moved"), (2, "bb")], "the table")
    equal(t.cluster.topics(f"{t.name}.public."), [f"{t.name}.public.t"], "topics")
    t.exactly_once(records)


def as_leaves(t: Trial) -> None:
    t.connect(publish_via_partition_root="false")
    t.sql("insert into t values (2, '2026-01-06', 'b')")
    records = t.settled_records("t_01")
    equal([(r.op, r.key["id"]) for r in records], [("r", 1), ("c", 2)], "records of the partition")
    equal({r.value["source"]["table"] for r in records}, {"t_01"}, "source.table")


def detached_leaf(t: Trial) -> None:
    """No statement names the publication, and still a captured partition is not in it any more."""
    connector = t.connect(publish_via_partition_root="false")
    t.sql("insert into t values (2, '2026-01-06', 'b')")
    t.settle()
    t.sql("create table plain_one (id int primary key)", "alter table t detach partition t_01",
          "insert into t_01 values (3, '2026-01-07', 'unseen')")
    trace = connector.wait_failed("TG-E-PUBLICATION-CHANGED")
    check("public.t_01" in trace, f"the table is named: {trace}")


CASES = {"as-root": as_root, "as-leaves": as_leaves, "detached-leaf": detached_leaf}

"""Somebody holds ACCESS EXCLUSIVE on captured tables for long: whoever starts, or looks after the publication, does not wait."""

from typing import Any

from harness.checks import check, equal, wait_for
from harness.trial import Trial

HOLD = "begin; lock table held, parted in access exclusive mode"


def settings(**more: Any) -> dict[str, Any]:
    return {"snapshot_mode": "no_data", "publication_name": "made", "publication_autocreate_mode": "disabled",
            "table_include_list": "public\\.(free|held|parted.*)", **more}


def waiting(t: Trial) -> list[dict[str, Any]]:
    """What the connector's sessions wait for."""
    return t.server.query("select left(query, 300) as query from pg_stat_activity where usename = %s and "
                          "application_name like 'tidegate%%' and wait_event_type = 'Lock'", t.name)


def goes_on(t: Trial, count: int, **more: Any) -> None:
    """Changes of another table come, and nothing of ours waits for the lock; the suspicion of rewrites is looked for meanwhile."""
    t.sql(f"insert into free values ({count}, 1)")
    records = t.records("free", count)
    equal([r.key["id"] for r in records], list(range(1, count + 1)), "rows of the free table")
    equal(waiting(t), [], "queries that wait for a lock")


def start(t: Trial) -> None:
    """The first start, with publication and slot made beforehand: making a slot waits for every transaction that writes."""
    t.source.query("select pg_create_logical_replication_slot(%s, 'pgoutput')", t.name)
    with t.source.session() as other:
        other.execute(HOLD)
        t.worker().create(t.name, t.config(**settings()))
        t.wait_streaming()
        goes_on(t, 1)
        other.execute("insert into held values (1); commit")
    equal([r.key["id"] for r in t.settled_records("held")], [1], "rows of the table that was locked")


def restart(t: Trial) -> None:
    """After a crash, with changes of the locked tables that are still to be read; after the connection was cut."""
    connector = t.connect(**settings(schema_probe_interval_ms="500") | {"row.filter.public.held": "v > 5"})
    goes_on(t, 1)
    t.workers[-1].kill()
    t.sql("insert into held values (1, 7, 'a')", "insert into parted values (1, 'eu')", "update held set note = 'b'",
          "insert into held values (2, 1, 'out')")
    with t.source.session() as other:
        other.execute(HOLD)
        t.workers[-1].start()
        connector.wait_running()
        t.wait_streaming()
        goes_on(t, 2)
        equal([r.op for r in t.records("held", 2)], ["c", "u"], "what was done before the lock")
        equal(len(t.records("parted_eu", 1)), 1, "records of the partition")
        t.server.query("select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = %s", t.name)
        goes_on(t, 3)
        wait_for(lambda: not waiting(t), 5, "no query that waits")
        other.execute("commit")
    t.sql("insert into held values (3, 8, 'c')")
    equal([r.key["id"] for r in t.settled_records("held")], [1, 1, 3], "rows of the table that was locked")
    check(connector.failed() is None, "the task runs")


CASES = {"start": start, "restart": restart}

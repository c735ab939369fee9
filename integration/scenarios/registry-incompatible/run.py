"""The registry refuses a new schema: the task stops with subject, status and reason before the row, and goes on once allowed."""

from harness.checks import check, equal, wait_for
from harness.trial import Trial

# The same on every version of the server.
SERVER_MATTERS = False


# The others show the most of it in less time.
LONG = {"invalid", "together"}


def incompatible(t: Trial) -> None:
    registry = t.own_registry()
    worker = t.worker()
    connector = t.connect(worker)
    subject = f"{t.name}.public.t-value"
    t.sql("insert into other values (1)", "alter table t alter v type text using v::text", "insert into t values (2, 'x')",
          "insert into other values (2)")
    registry.heal()
    trace = connector.wait_failed("TG-E-SCHEMA-INCOMPATIBLE")
    for part in (subject, "409", "public.t"):
        check(part in trace, f"the trace names {part}: {trace}")
    check(len(registry.requests("POST /subjects/.*versions")) <= 2, "a definite refusal is not repeated")
    equal([r.after["id"] for r in t.topic("other").read()], [1], "ids of the other table")
    t.set_level(subject, "NONE")
    connector.restart()
    connector.wait_running()
    equal([r.after for r in t.settled_records("t")], [{"id": 1, "v": 1}, {"id": 2, "v": "x"}], "rows")
    equal([r.after["id"] for r in t.topic("other").read()], [1, 2], "ids of the other table")
    for table in ("t", "other"):
        t.exactly_once(t.topic(table).read())


def invalid(t: Trial) -> None:
    """A schema that the registry calls invalid stops the task at once, with nothing lost."""
    registry = t.own_registry()
    connector = t.connect()
    registry.heal()
    registry.fault(422, "POST /subjects")
    t.sql("insert into other values (1)", "alter table t add w int", "insert into t values (2, 2, 2)")
    trace = connector.wait_failed("TG-E-SCHEMA-INVALID")
    for part in (f"{t.name}.public.t-value", "422", "public.t"):
        check(part in trace, f"the trace names {part}: {trace}")
    check(len(registry.requests("POST /subjects/.*versions")) <= 2, "a definite refusal is not repeated")
    equal([r.after["id"] for r in t.topic("other").read()], [1], "ids of the other table")
    registry.heal()
    connector.restart()
    connector.wait_running()
    equal([r.after for r in t.settled_records("t")], [{"id": 1, "v": 1}, {"id": 2, "v": 2, "w": 2}], "rows")
    t.exactly_once(t.topic("t").read())


def together(t: Trial) -> None:
    """Two connectors that write to the same topics register the same schemas at once: both get the same ids, and all rows arrive."""
    registry = t.own_registry()
    worker = t.worker()
    for name in (t.name, f"{t.name}_b"):
        worker.create(name, t.config(slot_name=name, publication_name=name))
    active = "select count(*) from pg_replication_slots where active and database = %s"
    for number in range(3):
        wait_for(lambda: t.server.value(active, t.name) == 2, 60, "two streams", worker.connector(t.name).failed)
        t.sql(f"alter table t add c{number} int", f"insert into t (id, v) values ({10 + number}, 0)")
        for name in (t.name, f"{t.name}_b"):
            position = t.server.value("select pg_current_wal_lsn()::text")
            wait_for(lambda name=name, position=position: t.server.value(
                "select confirmed_flush_lsn >= %s::pg_lsn from pg_replication_slots where slot_name = %s", position, name),
                60, f"the confirmation of {name}", worker.connector(name).failed)
    records = t.topic("t").read()
    equal(sorted(r.after["id"] for r in records), [1, 1, 10, 10, 11, 11, 12, 12], "rows of both")
    by_row = {number: {r.value_schema for r in records if r.after["id"] == number} for number in (1, 10, 11, 12)}
    check(all(len(ids) == 1 for ids in by_row.values()), f"one schema each: {by_row}")
    check(len(registry.requests("POST /subjects/.*public.t-value/versions")) >= 8, "both asked")


CASES = {"incompatible": incompatible, "invalid": invalid, "together": together}

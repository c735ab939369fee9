"""The registry refuses a new schema: the task stops with subject, status and reason before the row, and goes on once allowed."""

from harness.checks import check, equal
from harness.trial import Trial

# The same on every version of the server.
SERVER_MATTERS = False


def run(t: Trial) -> None:
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

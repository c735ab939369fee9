"""A table that gets a name under which it is not captured does not just stop coming: by the stream and by the catalogue it is told, or refused."""

from typing import Any

from harness.checks import check, equal, wait_for
from harness.trial import Trial

CODE = "TG-E-SCHEMA-RENAMED"


def told(t: Trial) -> list[tuple[str, str, str, list[tuple[str, str | None, str | None]]]]:
    control = t.topic_named(f"{t.name}.schema-changes").read()
    return [(r.value["kind"], r.value["provenance"], r.value["action"], [(c["kind"], c["from"], c["to"]) for c in r.value["changes"]])
            for r in control if r.value["kind"] != "baseline"]


def renamed(now: str) -> list[tuple[str, str | None, str | None]]:
    return [("renamed", "public.t", now)]


def looked(t: Trial) -> None:
    """Wait for two more looks at the catalogue, of which the second has seen all that was done before."""
    asked = ("select query_start::text from pg_stat_activity where datname = %s and query like '%%pg_current_wal_insert_lsn%%' "
             "and pid <> pg_backend_pid()")
    for _ in range(2):
        before = t.server.value(asked, t.name)
        wait_for(lambda: t.server.value(asked, t.name) not in (None, before), 60, "a look at the catalogue")


def wait_told(t: Trial, count: int) -> list[Any]:
    connector = t.workers[-1].connector(t.name)
    return wait_for(lambda: found if len(found := told(t)) >= count else None, 60, f"{count} records on the control topic", connector.failed)


def forward(t: Trial) -> None:
    """Both witnesses say it once; what comes back is taken up again."""
    t.connect()
    worker = t.workers[-1]
    looked(t)
    t.sql("alter table t rename to other")
    equal(wait_told(t, 1), [("suspected", "catalogue", "warned", renamed("public.other"))], "before any row")
    t.sql("insert into other values (2, 2)", "insert into t_quiet values (1, 1)")
    t.settle()
    equal(told(t)[1:], [("renamed", "stream", "forwarded", [])], "with its next row")
    equal([r.after["id"] for r in t.topic("t").read()], [1], "rows under the name that is captured")
    log = worker.log_text()
    check(log.count("captured no more") == 2 and CODE in log, "the log warns by its code")
    # Known when it starts anew, too.
    worker.kill()
    worker.start()
    worker.connector(t.name).wait_running()
    t.sql("insert into other values (3, 3)", "drop table t_gone")
    found = wait_told(t, 3)
    equal(found[2:], [("suspected", "catalogue", "warned", [("dropped", "public.t_gone", None)])], "what is dropped")
    t.sql("alter table other rename to t", "insert into t values (4, 4)")
    equal([r.after["id"] for r in t.settled_records("t")], [1, 4], "rows once it is called so again")
    equal(told(t)[3:], [("renamed", "stream", "forwarded", [])], "that it is back")
    check(worker.connector(t.name).failed() is None, "it runs")


def refuse(t: Trial) -> None:
    """With schema.rename.action=refuse the task stops before the first row that would be left out, until that is acknowledged."""
    connector = t.connect(schema_rename_action="refuse")
    worker = t.workers[-1]
    looked(t)
    t.sql("alter table t set schema elsewhere", "insert into t_quiet values (1, 1)", "insert into elsewhere.t values (2, 2)",
          "insert into t_quiet values (2, 2)")
    trace = connector.wait_failed(CODE)
    check("public.t → elsewhere.t" in trace and "schema.changes.acknowledged" in trace, f"what, and what to do: {trace}")
    equal([r.after["id"] for r in t.topic("t_quiet").read()], [1], "what is before it is out")
    connector.fail_again(CODE)
    marker = trace.split('"schema.changes.acknowledged": "')[1].split('"')[0]
    answer = worker.rest("PATCH", f"/connectors/{t.name}/config", {"schema.changes.acknowledged": marker}, timeout=90)
    equal(answer.status, 200, f"status of PATCH config ({answer.message})")
    connector.wait_running()
    equal([r.after["id"] for r in t.records("t_quiet", 2)], [1, 2], "the rows behind it")
    equal([one[:3] for one in told(t) if one[0] != "suspected"],
          [("refused", "stream", "stopped"), ("renamed", "stream", "acknowledged")], "what is told")


def unpublished(t: Trial) -> None:
    """Where the publication does not carry it under its new name, the stream never tells: the catalogue does, and stops the task if need be."""
    connector = t.connect(schema_rename_action="refuse")
    worker = t.workers[-1]
    looked(t)
    t.admin.sql(f"begin; alter table t rename to other; alter publication {t.name} drop table other; commit")
    trace = connector.wait_failed(CODE)
    check("public.t → public.other" in trace, f"what: {trace}")
    equal(connector.fail_again(CODE).split("between")[0], trace.split("between")[0], "it is refused for the same again")
    marker = trace.split('"schema.changes.acknowledged": "')[1].split('"')[0]
    worker.rest("PATCH", f"/connectors/{t.name}/config", {"schema.changes.acknowledged": marker}, timeout=90)
    t.wait_streaming()
    found = wait_told(t, 2)
    equal(found, [("refused", "catalogue", "stopped", renamed("public.other")), ("suspected", "catalogue", "acknowledged", renamed("public.other"))],
          "what is told")
    t.sql("insert into t_quiet values (1, 1)")
    equal([r.after["id"] for r in t.records("t_quiet", 1)], [1], "rows of others go on")


CASES = {"forward": forward, "refuse": refuse, "unpublished": unpublished}

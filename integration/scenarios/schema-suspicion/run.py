"""Without event triggers a rewrite that no row shows is suspected, with its column, also of a time when nobody looked; what moves files alone is not."""

from typing import Any

from harness.checks import check, equal, wait_for
from harness.trial import Trial

# The same on every version of the server.
SERVER_MATTERS = False


def suspicions(t: Trial) -> list[dict[str, Any]]:
    control = t.topic_named(f"{t.name}.schema-changes")
    return [r.value for r in control.read() if r.value["kind"] == "suspected"]


def short(value: dict[str, Any]) -> list[tuple[str, str]]:
    return [(change["kind"], change["column"]) for change in value["changes"]]


def looked(t: Trial) -> None:
    """Wait for two more looks at the catalogue, of which the second has seen all that was done before."""
    asked = ("select query_start::text from pg_stat_activity where datname = %s and query like '%%pg_current_wal_insert_lsn%%' "
             "and pid <> pg_backend_pid()")
    for _ in range(2):
        before = t.server.value(asked, t.name)
        wait_for(lambda: t.server.value(asked, t.name) not in (None, before), 30, "a look at the catalogue")


def run(t: Trial) -> None:
    t.connect()
    worker = t.workers[-1]
    looked(t)
    t.sql("alter table t alter v type int using v * 10")
    wait_for(lambda: len(suspicions(t)) == 1, 30, "the suspicion of a rewrite")
    looked(t)
    # Files move, and no value with them; or a column is touched, and no file.
    for statement in ("vacuum full t", "cluster t using t_pkey", "alter table t alter w set statistics 10", "grant select on t to public",
                      "reindex table t", "alter table t alter w set not null", "alter table t add d int default 7"):
        t.sql(statement)
        looked(t)
    t.sql("alter table t drop column w; alter table t add w text")
    wait_for(lambda: len(suspicions(t)) == 2, 30, "the alarm about a column that was made anew")
    looked(t)
    t.sql("alter table p alter v type int using v * 10")
    wait_for(lambda: len(suspicions(t)) == 3, 30, "the suspicion about a partitioned table")
    # While nobody looks, too.
    t.settle()
    worker.stop()
    t.sql("alter table t alter v type int using v * 10")
    worker.start()
    worker.connector(t.name).wait_running()
    wait_for(lambda: len(suspicions(t)) == 4, 60, "the suspicion about what happened meanwhile")
    looked(t)
    found = suspicions(t)
    equal([(c["relation"]["table"], short(c)) for c in found], [
        ("t", [("rewritten", "v")]), ("t", [("replaced", "w")]), ("p", [("rewritten", "v")]), ("t", [("rewritten", "v")]),
    ], "suspicions")
    equal([(c["provenance"], c["rewrites_existing_rows"], c["action"]) for c in found],
          [("catalogue", kind, "warned") for kind in ("unknown", "yes", "unknown", "unknown")], "what is said of them")
    check(all(c["position"]["after"] < c["position"]["commit"] for c in found), "between two positions")
    log = worker.log_text()
    check("probably rewritten" in log and 'columns="v"' in log, "the log names the column")
    t.sql("insert into t (id, v, w) values (2, 2, 'two')")
    equal([r.key["id"] for r in t.settled_records("t")], [1, 2], "rows go on")

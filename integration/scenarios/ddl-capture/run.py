"""Event triggers put DDL into the stream: changes without rows, renames, rewrites, each once and at its place; forged notes do nothing."""

import re
from typing import Any

from harness.checks import check, equal, wait_for
from harness.metrics import scrape
from harness.trial import Trial

# The others show the most of it in less time.
LONG = {"partitions", "application", "refuse"}
OLD = "TG-E-DDL-CAPTURE"


def admin(t: Trial) -> str:
    return f"postgres://postgres@127.0.0.1:{t.postgres.port}/{t.name}"


def install(t: Trial) -> None:
    t.command("ddl-capture", "install", t.connector_file(), "--connection", admin(t)).succeed()


def changes(t: Trial, table: str, *, since: int = 1) -> list[dict[str, Any]]:
    """Control records of a table, baselines and what they say aside."""
    t.settle()
    control = t.topic_named(f"{t.name}.schema-changes")
    return [r.value for r in control.read() if r.key["table"] == table and r.value["epoch"] > since]


def short(value: dict[str, Any]) -> str:
    what = ", ".join(f"{c['kind']} {c['column']}".strip() for c in value["changes"])
    return f"{value['kind']} [{value['class']}] {what}".strip()


def commands(t: Trial) -> None:
    """Installed by who may, as often as one likes; what differs is named; without triggers the connector is refused."""
    file = t.connector_file()

    def verify(*expect: str) -> str:
        done = t.command("ddl-capture", "verify", file)
        equal(done.wait(), 1 if expect else 0, f"status of verify: {done.out} {done.err}")
        for text in expect:
            check(text in done.out, f"verify says '{text}': {done.out}")
        return done.out

    verify("nothing is installed", "This role cannot install them")
    refused = t.command("ddl-capture", "install", file)
    equal(refused.wait(), 1, "status of an installation by an ordinary role")
    check("superuser" in refused.err, f"it says who may: {refused.err}")
    verify("nothing is installed")
    worker = t.worker()
    text = t.refused(worker, t.config(), OLD)
    check("tidegate ddl-capture install" in text, f"the command that mends it: {text}")

    done = t.command("ddl-capture", "install", file, "--connection", admin(t)).succeed()
    check("Installed the event triggers" in done.out and f'"{t.name}" may read' in done.out, f"it says what it did: {done.out}")
    verify()
    key = t.admin.value("select key from tidegate.ddl_capture")
    again = t.command("ddl-capture", "install", file, "--connection", admin(t)).succeed()
    check("were as they should be" in again.out, f"a second time: {again.out}")
    equal(t.admin.value("select key from tidegate.ddl_capture"), key, "the key stays")

    t.admin.sql("alter event trigger tidegate_sql_drop disable")
    verify("tidegate_sql_drop is disabled")
    t.admin.sql("alter event trigger tidegate_sql_drop enable", "drop event trigger tidegate_table_rewrite",
                "create or replace function tidegate.capture_ddl() returns event_trigger language plpgsql security definer as 'begin end'",
                "update tidegate.ddl_capture set version = 0", "create role someone", "alter function tidegate.capture_ddl() owner to someone")
    t.later(lambda: t.server.sql("drop role if exists someone"))
    verify("not ENABLE ALWAYS", "tidegate_table_rewrite is missing", "capture_ddl has another body", "no fixed search_path",
           "version 0 is installed", "wrong owner")
    t.admin.sql(f"alter function tidegate.capture_ddl() owner to postgres", f"revoke select on tidegate.ddl_capture from {t.name}")
    verify(f"'{t.name}' may not read tidegate.ddl_capture")
    t.refused(worker, t.config(), OLD)
    mended = t.command("ddl-capture", "install", file, "--connection", admin(t)).succeed()
    check("Mended" in mended.out and "has another body" in mended.out, f"it says what was wrong: {mended.out}")
    t.admin.sql("grant select on tidegate.ddl_capture to public")
    verify("everybody may read")
    t.admin.sql("revoke select on tidegate.ddl_capture from public")
    verify()

    # Whoever takes the triggers away while they are relied upon ends the task.
    connector = worker.create(t.name, t.config())
    t.wait_streaming()
    done = t.command("ddl-capture", "uninstall", file, "--connection", admin(t)).succeed()
    check("Removed" in done.out, done.out)
    connector.wait_failed(OLD, timeout=60)
    equal(t.admin.query("select 1 from pg_event_trigger union all select 1 from pg_namespace where nspname = 'tidegate'"), [], "what is left")
    check("Nothing was installed" in t.command("ddl-capture", "uninstall", file, "--connection", admin(t)).succeed().out, "a second time")


def definitions(t: Trial) -> None:
    """Each change of a definition is one record at its place, rows or no rows; what is no change is none."""
    install(t)
    t.connect()
    worker = t.workers[-1]
    t.sql("alter table quiet alter n set not null, alter n set default 7", "alter table quiet add z int not null default 5",
          "alter table quiet rename n to nn", "alter table quiet drop column s; alter table quiet add s text",
          # nothing of it changes what is published
          "create index on quiet (z)", "grant select on quiet to public", "comment on table quiet is 'x'",
          "alter table quiet alter z set statistics 10", "reindex table quiet", "vacuum full quiet", "cluster quiet using quiet_pkey",
          "begin; alter table quiet add gone int; rollback",
          "begin; savepoint a; alter table quiet add gone int; rollback to a; insert into quiet values (1); commit")
    equal([short(c) for c in changes(t, "quiet")], [
        "ddl_captured [compatible] nullability n, default n", "ddl_captured [additive] added z", "ddl_captured [renamed] renamed n",
        "ddl_captured [destructive] dropped s", "ddl_captured [additive] added s",
    ], "what was captured")
    found = changes(t, "quiet")
    equal({(c["provenance"], c["command"]) for c in found}, {("event_trigger", "ALTER TABLE")}, "who says so")
    equal([c["epoch"] for c in found], [2, 3, 4, 5, 6], "epochs")
    renamed = next(c for c in found if "renamed" in short(c))["changes"][0]
    equal((renamed["from"], renamed["to"]), ("n", "nn"), "a rename is not a column that went and one that came")
    row = t.records("quiet", 1)[0]
    equal((row.after, int(row.extension("epoch"))), ({"id": 1, "nn": 7, "z": 5, "s": None}, 6), "the row after all that")

    # Between rows of one transaction, and where a savepoint that holds the change ends right before a row.
    with t.source.session() as session:
        with session.transaction():
            session.execute("insert into t values (2, 2, 'two')")
            session.execute("alter table t alter v set default 9")
            session.execute("insert into t (id) values (3)")
            session.execute("savepoint a; alter table t add c int; release a")
            session.execute("insert into t values (4, 4, 'four', 4)")
            session.execute("alter table t drop column c")
            session.execute("insert into t values (5, 5, 'five')")
    rows = t.settled_records("t")
    equal([(r.key["id"], int(r.extension("epoch"))) for r in rows], [(1, 1), (2, 1), (3, 2), (4, 3), (5, 4)], "epochs of rows")
    equal([set(r.after) for r in rows][3:], [{"id", "v", "s", "c"}, {"id", "v", "s"}], "shapes of rows")
    captured = changes(t, "t")
    equal([short(c) for c in captured], ["ddl_captured [compatible] default v", "ddl_captured [additive] added c",
                                         "ddl_captured [destructive] dropped c"], "changes between rows")
    equal(len({c["position"]["commit"] for c in captured}), 1, "transactions")
    sequences = [int(r.extension("tx_seq")) for r in rows[1:]]
    places = [c["position"]["sequence"] for c in captured]
    check(all(a < p < b for a, p, b in zip(sequences, places, sequences[1:])), f"places {places} between the rows' {sequences}")

    t.sql("create table t_late (id int primary key)")
    t.sql("alter table t rename to renamed", "insert into renamed values (6, 6, 'six')",
          "drop table m")
    equal([short(c) for c in changes(t, "renamed")], ["renamed [relation]"], "the renamed table")
    equal([short(c) for c in changes(t, "m")], ["dropped [relation]"], "the dropped table")
    equal([r.key["id"] for r in t.settled_records("renamed")], [6], "rows under the new name")

    # A kill in between: what was told is not told again.
    worker.kill()
    t.sql("alter table quiet add late int")
    worker.start()
    worker.connector(t.name).wait_running()
    wait_for(lambda: len(changes(t, "quiet")) == 6, 30, "the change that was made meanwhile")
    worker.kill()
    worker.start()
    worker.connector(t.name).wait_running()
    t.sql("insert into quiet values (2, 2, 2, 'x')")
    t.records("quiet", 2)
    ids = [c["id"] for c in changes(t, "quiet")]
    equal(len(ids), len(set(ids)), "records with the same id")
    t.exactly_once(t.settled_records("quiet"))


def partitions(t: Trial) -> None:
    """Partitions that come and go are told of at their root; types that change at the tables that use them."""
    install(t)
    t.connect()
    t.sql("create table p_2 partition of p for values in (2)", "create table other (k int primary key, v int)",
          "alter table p attach partition other for values in (3)", "alter table p detach partition other",
          "drop table p_1", "alter table p add w int", "alter table p alter v type int using v * 10")
    found = changes(t, "p")
    equal([(short(c), c["changes"][0]["from"], c["changes"][0]["to"]) for c in found], [
        ("topology [topology] partition added", None, "public.p_2"), ("topology [topology] partition added", None, "public.other"),
        ("topology [topology] partition removed", "public.other", None), ("topology [topology] partition removed", "public.p_1", None),
        ("ddl_captured [additive] added w", None, "integer"), ("ddl_captured [rewriting] rewritten v", None, None),
    ], "what became of the partitioned table")
    t.sql("alter type mood add value 'happy' before 'ok'", "insert into m values (1, 'happy')", "alter type mood rename value 'ok' to 'fine'")
    equal([short(c) for c in changes(t, "m")], ["ddl_captured [compatible] type altered m"] * 2, "the table with the type")
    equal([r.after for r in t.settled_records("m")], [{"id": 1, "m": "happy"}], "its row")


def rewrites(t: Trial) -> None:
    """A rewrite that no row shows is told of exactly, with its column; the same in every way but none of it: nothing."""
    install(t)
    t.own_registry()
    t.connect()
    t.set_level(f"{t.name}.public.t-value", "NONE")
    t.sql("alter table t alter v type int using v * 10", "vacuum full t", "cluster t using t_pkey", "truncate quiet",
          "alter table t alter s set not null, alter v type int using v + 1",
          "alter table t alter v type numeric(10,4)", "alter table t alter v type numeric(10,1)",
          "alter table t add u uuid default gen_random_uuid()", "alter table t add c int default 5",
          "alter table t alter s type varchar(100)", "alter table t alter s type varchar(200)",
          "begin; alter table t alter c type int using c * 2; rollback",
          "begin; alter table t alter v set statistics 5; alter table t alter c type int using c * 3; insert into t values (9, 9, 'n', default, 9); commit")
    found = changes(t, "t")
    equal([(short(c), c["rewrite_reason"], c["existing_rows"], c["action"]) for c in found], [
        ("ddl_captured [rewriting] rewritten v", "type", "values_unknown", "warned"),
        ("ddl_captured [rewriting] nullability s, rewritten v", "type", "values_unknown", "warned"),
        ("ddl_captured [rewriting] retyped v, rewritten v", "type", "values_unknown", "warned"),
        ("ddl_captured [rewriting] retyped v, rewritten v", "type", "values_unknown", "warned"),
        ("ddl_captured [rewriting] added u, rewritten u", "default", "default_not_replayed", "warned"),
        ("ddl_captured [additive] added c", None, "default_not_replayed", "forwarded"),
        ("ddl_captured [rewriting] retyped s, rewritten s", "type", "values_unknown", "warned"),
        ("ddl_captured [compatible] retyped s", None, "unaffected", "forwarded"),
        ("ddl_captured [rewriting] rewritten c", "type", "values_unknown", "warned"),
    ], "what was captured")
    shrunk = found[3]
    modifiers = [next(c for c in shrunk[side]["columns"] if c["name"] == "v")["type_modifier"] for side in ("before", "after")]
    equal(modifiers, [655368, 655365], "modifiers of numeric(10,4) and numeric(10,1)")
    rows = t.settled_records("t")
    equal([int(r.extension("epoch")) for r in rows], [1, 10], "the row after the last rewrite has its epoch")
    check("values of rows that were published may be others" in t.workers[-1].log_text(), "the log warns")


def refuse(t: Trial) -> None:
    """The task stops exactly there, again and again, until that one rewrite is acknowledged."""
    install(t)
    config = t.config(schema_rewrite_action="refuse")
    worker = t.worker()
    connector = worker.create(t.name, config)
    t.wait_streaming()
    t.sql("begin; insert into t values (2, 2, 'two'); commit",
          "begin; insert into t values (3, 3, 'three'); alter table t alter v type int using v * 10; insert into t values (4, 4, 'four'); commit",
          "insert into t values (5, 5, 'five')")
    trace = connector.wait_failed("TG-E-SCHEMA-REWRITE")
    check("column v" in trace and "public.t" in trace and "schema.changes.acknowledged" in trace, f"what, where, what to do: {trace}")
    equal([r.key["id"] for r in t.topic("t").read()], [1, 2], "rows before the transaction, and none of it")
    connector.fail_again("TG-E-SCHEMA-REWRITE")
    marker = trace.split('"schema.changes.acknowledged": "')[1].split('"')[0]
    worker.rest("PATCH", f"/connectors/{t.name}/config", {"schema.changes.acknowledged": marker})
    connector.wait_running()
    equal([r.key["id"] for r in t.records("t", 5)], [1, 2, 3, 4, 5], "all rows")
    equal([(c["id"], c["action"], c["code"]) for c in changes(t, "t")],
          [(f"{marker}:refused", "stopped", "TG-E-SCHEMA-REWRITE"), (marker, "acknowledged", None)], "its records")
    t.sql("alter table t alter v type int using v * 10")
    connector.wait_failed("TG-E-SCHEMA-REWRITE")


def forged(t: Trial) -> None:
    """Notes that nobody signed, or of another transaction, have no effect, and no message of that prefix is ever published."""
    install(t)
    t.connect(schema_rewrite_action="refuse", message_prefix_include_list="tidegate.*")
    with t.source.session() as session:
        emit = "select pg_logical_emit_message(%s, 'tidegate.ddl', %s::bytea)"
        oid = t.admin.value("select 't'::regclass::oid::int8")
        body = f'{{"event":"rewrite","command":"X","reason":4,"oid":{oid},"schema":"public","table":"t","kind":"r","persistence":"p","identity":"d"}}'
        for content in ("", "x", body, f"1 {'0' * 64} {body}", "error 42P01", "1 ", "1  ", "2 a b", "\\xff00", "1" * 1_200_000):
            for transactional in (True, False):
                session.execute(emit, (transactional, content))
        # A true note, written again in another transaction.
        t.sql("alter table quiet add x int")
        signed = t.admin.value("select tidegate.sign_note(%s)", body)
        session.execute(emit, (True, signed))
        session.execute("insert into t values (2, 2, 'two')")
    equal([r.key["id"] for r in t.records("t", 2)], [1, 2], "rows go on")
    equal(changes(t, "t"), [], "what the forger got told")
    equal([short(c) for c in changes(t, "quiet")], ["ddl_captured [additive] added x"], "a real change")
    equal(t.cluster.topics(f"{t.name}.message"), [], "topics of messages")
    check("is not believed" in t.workers[-1].log_text(), "the log says it")
    counted = scrape(t.workers[-1].rest.base).value("tidegate_ddl_notes_refused_total")
    check(counted >= 9, f"messages that were not believed are counted: {counted}")


def application(t: Trial) -> None:
    """The application's DDL never fails by the triggers, not even when they are broken; a table of 1,600 columns fits."""
    install(t)
    t.connect()
    t.admin.sql("alter table tidegate.ddl_capture rename to elsewhere")
    t.sql("alter table quiet add a int")
    with t.source.session() as other:
        t.admin.sql("alter table tidegate.elsewhere rename to ddl_capture")
        holder = t.admin.connect()
        holder.autocommit = False
        holder.execute("lock table tidegate.ddl_capture in access exclusive mode")
        other.execute("alter table quiet add b int")
        other.execute("alter table quiet alter b set default 5")
        holder.rollback()
        holder.close()
    t.sql("set role none; set default_transaction_read_only = off; set statement_timeout = '30s'; alter table quiet add c int; reset all")
    equal([short(c) for c in changes(t, "quiet")], ["ddl_captured [additive] added a, added b, added c"], "what the next note makes up for")
    check("SQLSTATE 42P01" in t.workers[-1].log_text() and "SQLSTATE 55P03" in t.workers[-1].log_text(), "the log says that notes are missing")
    columns = ", ".join(f"column_with_a_long_name_{n:04} int default {n}" for n in range(1599))
    t.admin.sql("create publication another for table t", "drop publication another")
    t.sql(f"create table t_wide (id int primary key, {columns})", f"insert into t values (7, 7, 'seven')",
          "alter table t_wide drop column column_with_a_long_name_0000")
    equal([r.key["id"] for r in t.records("t", 2)], [1, 7], "rows go on")


def another_under_the_name(t: Trial) -> None:
    """A table is renamed, and another one made under its name: that is told as one, and stops where changes are refused."""
    install(t)
    connector = t.connect(table_include_list="public\\.(quiet|t)", schema_changes="refuse")
    t.settle()

    def acknowledge(code: str) -> None:
        trace = connector.wait_failed(code)
        known = re.search(r'"schema.changes.acknowledged": "([^"]+)"', trace)
        check(known is not None, f"the id of the change: {trace}")
        answer = t.workers[-1].rest("PATCH", f"/connectors/{t.name}/config", {"schema.changes.acknowledged": known.group(1) if known else ""})
        equal(answer.status, 200, f"status of PATCH ({answer.message})")

    t.sql("alter table quiet rename to kept_quiet")
    acknowledge("TG-E-SCHEMA-")
    connector.wait_running()
    t.settle()
    t.sql(f"begin; create table quiet (id int primary key, v text); alter publication {t.name} add table quiet; commit",
          "insert into quiet values (2, 'other')")
    trace = connector.wait_failed("TG-E-SCHEMA-")
    check('the definition of "public.quiet" changed' in trace, f"what it is: {trace}")
    acknowledge("TG-E-SCHEMA-")
    connector.wait_running()
    t.settle()
    control = [r.value for r in t.topic_named(f"{t.name}.schema-changes").read() if r.key["table"] == "quiet" and r.value["kind"] != "refused"]
    equal([(one["kind"], one["recommended"]) for one in control], [("baseline", None), ("recreated", "resnapshot")], "what is told of the name")
    check(control[1]["epoch"] > control[0]["epoch"], f"epochs: {control}")
    equal([r.after for r in t.topic("quiet").read()][-1], {"id": 2, "v": "other"}, "its rows")


CASES = {"another-under-the-name": another_under_the_name, "commands": commands, "definitions": definitions, "partitions": partitions, "rewrites": rewrites, "refuse": refuse,
         "forged": forged, "application": application}

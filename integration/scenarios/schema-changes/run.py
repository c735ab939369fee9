"""Definitions that change while nobody reads, between rows of one transaction, in what is rolled back: each row has the shape of its moment."""

import json
import time
from typing import Any

from harness.checks import check, equal, wait_for
from harness.trial import Trial

# The same on every version of the server.
SERVER_MATTERS = False
# The others show the most of it in less time.
LONG = {"names"}


def changes(t: Trial, table: str = "t") -> list[dict[str, Any]]:
    control = t.topic_named(f"{t.name}.schema-changes")
    return [r.value for r in control.read() if r.key["table"] == table and r.value["kind"] != "baseline"]


def short(value: dict[str, Any]) -> str:
    return f"{value['kind']}: " + ", ".join(f"{c['kind']} {c['column']}" for c in value["changes"])


def offline(t: Trial, *statements: str) -> None:
    """Run SQL while no worker reads."""
    worker = t.workers[-1]
    t.settle()
    worker.stop()
    t.sql(*statements)
    worker.start()
    worker.connector(t.name).wait_running()


def replaced_column(t: Trial) -> None:
    """A column goes and comes with another type; what the server decodes later has the shape of then."""
    t.own_registry()
    t.connect()
    t.set_level(f"{t.name}.public.t-value", "NONE")
    offline(t, "insert into t values (1, 10, 'x')", "alter table t drop column a; alter table t add column a text default 'zz'",
            "insert into t (id, b, a) values (2, 'y', 'ten')", "update t set b = 'q' where id = 1",
            "alter table t rename column b to c", "insert into t (id, c, a) values (3, 'r', 's')")
    rest = {"n": None, "i": None}
    rows = t.records("t", 5)
    equal([{key: value for key, value in r.after.items() if key not in rest} for r in rows[1:]], [
        {"id": 1, "a": 10, "b": "x"}, {"id": 2, "b": "y", "a": "ten"}, {"id": 1, "b": "q", "a": "zz"}, {"id": 3, "c": "r", "a": "s"},
    ], "rows in the shapes of their moments")
    # by its number, which is another one
    equal([short(c) for c in changes(t) if c["kind"] != "suspected"],
          ["observed: replaced a", "observed: dropped b, added c"], "what was announced")


def nullability(t: Trial) -> None:
    """What the catalogue promises by now is not held against rows of then."""
    t.own_registry()
    t.connect()
    # A column that becomes NOT NULL becomes a required field, as in Debezium; BACKWARD does not allow that.
    t.set_level(f"{t.name}.public.other-value", "NONE")
    offline(t, "insert into other values (1, null)", "update other set v = 0; alter table other alter v set not null, alter v set default 7",
            "insert into other (id) values (2)", "alter table other add column z int not null default 5", "insert into other (id) values (3)")
    rows = t.records("other", 4)
    equal([r.after for r in rows], [{"id": 1, "v": None}, {"id": 1, "v": 0}, {"id": 2, "v": 7}, {"id": 3, "v": 7, "z": 5}], "rows")


def modifiers(t: Trial) -> None:
    """A modifier alone is a change, also of a column behind one that goes at the same time; nothing is none."""
    t.own_registry()
    t.connect()
    t.set_level(f"{t.name}.public.t-value", "NONE")
    t.sql("alter table t alter n type numeric(10,1)", "insert into t (id, n) values (1, 1.5)",
          "alter table t drop column a; alter table t alter n type numeric(12,1)", "insert into t (id, i) values (2, '3 s')",
          "vacuum full t", "cluster t using t_pkey", "reindex table t", "grant select on t to public", "create index on t (b)",
          "insert into t (id) values (3)")
    rows = t.settled_records("t")
    equal([int(r.extension("epoch")) for r in rows], [1, 2, 3, 3], "epochs of rows")
    found = changes(t)
    equal([short(c) for c in found], ["observed: retyped n", "observed: dropped a, retyped n"], "what was announced")
    equal([(c["rewrites_existing_rows"], c["existing_rows"], c["recommended"]) for c in found],
          [("yes", "recast_deterministic", "recast"), ("no", "unaffected", "none")], "what it means for rows that are there")
    n = [next(c for c in found[0][side]["columns"] if c["name"] == "n")["type_modifier"] for side in ("before", "after")]
    equal(n, [655368, 655365], "modifiers")


def inside(t: Trial) -> None:
    """Definitions that change between rows of one transaction, and in a savepoint that is rolled back."""
    t.own_registry()
    t.connect()
    t.set_level(f"{t.name}.public.other-value", "NONE")
    with t.source.session() as session:
        with session.transaction():
            session.execute("insert into other values (1, 1)")
            session.execute("savepoint a; alter table other add gone int; insert into other values (2, 2, 2); rollback to a")
            session.execute("insert into other values (3, 3)")
            session.execute("alter table other add y int")
            session.execute("insert into other values (4, 4, 4)")
            session.execute("alter table other alter y type bigint")
            session.execute("insert into other values (5, 5, 5000000000)")
            session.execute("alter table other drop column v")
            session.execute("insert into other values (6, 6)")
    rows = t.settled_records("other")
    equal([r.after for r in rows], [{"id": 1, "v": 1}, {"id": 3, "v": 3}, {"id": 4, "v": 4, "y": 4}, {"id": 5, "v": 5, "y": 5000000000},
                                    {"id": 6, "y": 6}], "rows in the shapes of their moments")
    equal([int(r.extension("epoch")) for r in rows], [1, 1, 2, 3, 4], "epochs")
    equal([short(c) for c in changes(t, "other")], ["observed: added y", "observed: retyped y", "observed: dropped v"], "changes")
    equal(len({c["id"] for c in changes(t, "other")}), 3, "ids")
    t.exactly_once(rows)


def relations(t: Trial) -> None:
    """A table that is renamed, moved, or made anew under its name is never taken for columns that changed."""
    t.connect(table_include_list="(public|moved)\\.(other|renamed|t)")
    t.sql("alter table other rename to renamed", "insert into renamed values (1, 1)", "create schema moved",
          "alter table renamed set schema moved", "insert into moved.renamed values (2, 2)")
    equal([r.key["id"] for r in t.settled_records("renamed")], [1], "rows under the new name")
    equal([r.key["id"] for r in t.settled_records("moved.renamed")], [2], "rows in the new schema")
    control = t.topic_named(f"{t.name}.schema-changes")
    kinds = [(r.key["namespace"], r.key["table"], r.value["kind"]) for r in control.read() if r.key["table"] == "renamed"]
    equal(kinds, [("public", "renamed", "renamed"), ("moved", "renamed", "renamed")], "what was announced")
    t.admin.sql(f"begin; drop table t; create table t (id int primary key, other text); alter table t owner to {t.name}; "
                f"alter publication {t.name} add table t; commit")
    t.sql("insert into t values (5, 'new')")
    equal([(r.key["id"], r.after) for r in t.settled_records("t")][1:], [(5, {"id": 5, "other": "new"})], "rows of the new table")
    found = [c for c in changes(t)]
    equal([(c["kind"], c["class"], c["recommended"]) for c in found], [("recreated", "relation", "resnapshot")],
          "a new table, not new columns")


def gone_types(t: Trial) -> None:
    """Rows of types that are gone by the time they are decoded, and of a table of 1,600 columns, arrive."""
    t.sql("create domain few as int check (value < 10)", "create type pair as (a int, b text)",
          "create table typed (id int primary key, m mood, f few, p pair, ms mood[])")
    columns = ", ".join(f"c{n} int default {n}" for n in range(1, 1600))
    t.sql(f"create table wide (id int primary key, {columns})")
    t.connect()
    offline(t, "insert into typed values (1, 'ok', 3, row(1, 'x'), '{sad,ok}')", "drop type mood cascade; drop domain few cascade; drop type pair cascade",
            "insert into typed values (2)", "insert into wide (id) values (1)", "alter table wide alter c1599 set default 0")
    rows = t.records("typed", 2)
    first = rows[0].after
    equal((first["id"], first["m"], first["ms"]), (1, "ok", ["sad", "ok"]), "a row of types that are gone")
    equal((rows[1].key["id"], rows[1].after), (2, {"id": 2}), "a row after them")
    wide = t.records("wide", 1)[0].after
    equal((len(wide), wide["c1"], wide["c1598"]), (1600, 1, 1598), "a row of 1,600 columns")


def unpublishable(t: Trial) -> None:
    """A table that loses its identity stops the task until that is let pass, then goes on with inserts; the application's own
    updates are what the server refuses."""
    worker = t.worker()
    connector = worker.create(t.name, t.config())
    t.wait_streaming()
    t.sql("insert into t (id) values (8)", "alter table other drop constraint other_pkey", "insert into other values (1, 1)")
    trace = connector.wait_failed("TG-E-SCHEMA-KEY-CHANGED")
    check("key: (id) → ()" in trace and "schema.changes.acknowledged" in trace, f"what, and what to do: {trace}")
    equal([r.after["id"] for r in t.topic("t").read()], [0, 8], "what is before it is out")
    try:
        t.sql("update other set v = 2")
    except Exception as refusal:  # the server's own
        check("replica identity" in str(refusal), str(refusal))
    else:
        check(False, "the server refuses an update of a published table without identity")
    # Without it no connector starts on such a table.
    t.sql("alter table other replica identity full")
    connector.fail_again("TG-E-SCHEMA-KEY-CHANGED")
    told = changes(t, "other")
    equal([(c["kind"], c["action"], c["code"]) for c in told], [("refused", "stopped", "TG-E-SCHEMA-KEY-CHANGED")],
          "what is told, once")
    marker = told[0]["id"].removesuffix(":refused")
    check(marker in trace, f"the id of the call: {trace}")
    answer = worker.rest("PATCH", f"/connectors/{t.name}/config", {"schema.changes.acknowledged": marker}, timeout=90)
    equal(answer.status, 200, f"status of PATCH config ({answer.message})")
    t.wait_streaming()
    t.settle()
    found = changes(t, "other")
    equal([(c["kind"], c["class"], c["action"]) for c in found[1:]], [("identity", "identity", "acknowledged")], "what is announced")
    equal([(r.key, r.after) for r in t.topic("other").read()], [(None, {"id": 1, "v": 1})], "the row, without a key")
    t.sql("alter table t replica identity nothing", "insert into t (id) values (9)")
    equal([r.after["id"] for r in t.settled_records("t")], [0, 8, 9], "rows of a table that gave up its identity")
    equal(connector.failed(), None, "the connector runs")


def generated_key(t: Trial) -> None:
    """A key that the server computes is not in the stream: the task stops before the first row that would have none."""
    connector = t.connect()
    t.sql("insert into t (id) values (1)", "alter table t drop constraint t_pkey, add g int generated always as (id) stored, add primary key (g)",
          "insert into t (id) values (2)")
    trace = connector.wait_failed("TG-E-SCHEMA-KEY-CHANGED")
    check("public.t" in trace and "key: (id) → ()" in trace, f"table and key are named: {trace}")
    equal([r.after["id"] for r in t.topic("t").read()], [0, 1], "what is before it is out, and no row without its key")


def names(t: Trial) -> None:
    """A table with another name or schema stops the task where that is wanted, at the same place each time, and the refusal is told once."""
    t.own_registry()
    connector = t.connect(schema_rename_action="refuse", table_include_list="(public|moved)\\.(other|renamed|t)")
    worker = t.workers[-1]
    passed: list[str] = []
    for statement, row in (("alter table other rename to renamed", "insert into renamed values (1, 1)"),
                           ("create schema moved; alter table renamed set schema moved", "insert into moved.renamed values (2, 2)"),
                           ("alter table moved.renamed drop constraint other_pkey; alter table moved.renamed add primary key (v)",
                            "insert into moved.renamed values (3, 3)")):
        if "add primary key" in statement:
            for side in ("key", "value"):
                t.set_level(f"{t.name}.moved.renamed-{side}", "NONE")
        t.sql(statement, row)
        code = "TG-E-SCHEMA-KEY-CHANGED" if "add primary key" in statement else "TG-E-SCHEMA-RENAMED"
        trace = connector.wait_failed(code)
        connector.fail_again(code)
        passed = [trace.split('"schema.changes.acknowledged": "')[1].split('"')[0]]
        answer = worker.rest("PATCH", f"/connectors/{t.name}/config", {"schema.changes.acknowledged": passed[-1]}, timeout=90)
        equal(answer.status, 200, f"status of PATCH config ({answer.message})")
        t.wait_streaming()
        t.settle()
    equal(len(passed[0].split(",")), 3, f"what was let pass before stays so: {passed}")
    control = t.topic_named(f"{t.name}.schema-changes").read()
    told = [(r.key["table"], r.value["kind"], r.value["action"]) for r in control if r.key["table"] == "renamed"]
    equal(told, [("renamed", "refused", "stopped"), ("renamed", "renamed", "acknowledged")] * 2
          + [("renamed", "refused", "stopped"), ("renamed", "identity", "acknowledged")], "what is told")
    ids = [r.value["id"] for r in control]
    equal(len(ids), len(set(ids)), "ids")
    equal([r.key for r in t.topic("renamed").read()], [{"id": 1}], "rows under the first name")
    equal([r.key for r in t.topic("moved.renamed").read()], [{"id": 2}, {"v": 3}], "rows in the other schema")


def swapped_names(t: Trial) -> None:
    """Tables take each other's names: under a name epochs only grow, and each names one shape."""
    t.own_registry()
    t.connect(table_include_list="public\\.(t|other|third)")
    for name in ("t", "other"):
        t.set_level(f"{t.name}.public.{name}-value", "NONE")
        t.set_level(f"{t.name}.public.{name}-key", "NONE")
    t.sql("alter table t add x1 int", "insert into t (id) values (1)", "alter table t add x2 int", "insert into t (id) values (2)",
          "insert into other (id) values (1)", "alter table other add y int", "insert into other (id) values (2)")
    t.sql("begin; alter table t rename to third; alter table other rename to t; alter table third rename to other; commit",
          "insert into t (id) values (3)", "insert into other (id) values (3)")
    t.settle()
    for name, last in (("t", {"id": 3, "v": None, "y": None}), ("other", None)):
        records = t.topic(name).read()
        epochs = [int(r.extension("epoch")) for r in records]
        check(epochs == sorted(epochs) and epochs[-1] > epochs[-2], f"epochs of {name}: {epochs}")
        shapes: dict[int, set[str]] = {}
        for record, epoch in zip(records, epochs):
            equal(set(record.after), shapes.setdefault(epoch, set(record.after)), f"columns of {name} at epoch {epoch}")
        check(last is None or records[-1].after == last, f"the last row of {name}: {records[-1].after}")
    control = t.topic_named(f"{t.name}.schema-changes").read()
    told = [(r.key["table"], r.value["epoch"]) for r in control]
    equal(len(told), len(set(told)), f"one definition for each name and epoch: {told}")
    # Back, after a restart: names of before are remembered.
    t.workers[-1].kill()
    t.workers[-1].start()
    t.sql("begin; alter table t rename to third; alter table other rename to t; alter table third rename to other; commit",
          "insert into t (id) values (4)", "insert into other (id) values (4)")
    t.settle()
    for name in ("t", "other"):
        epochs = [int(r.extension("epoch")) for r in t.topic(name).read()]
        check(epochs == sorted(epochs) and epochs[-1] > epochs[-2], f"epochs of {name}: {epochs}")


def in_debeziums_shape(t: Trial) -> None:
    """`schema.changes.format=debezium`: Debezium's schema changes in Avro and in JSON, the rest in headers; what is no change lists no table."""
    t.own_registry()
    worker = t.worker()

    def tail(topic: str, form: str) -> str:
        return t.command("tail", topic, "-b", t.kafka.address, "-r", t.registry.address, "--no-follow", "--from-beginning",
                         "--format", form).succeed().out

    json_converter = {"converter": "org.apache.kafka.connect.json.JsonConverter", "converter_schemas_enable": "false"}
    for form, converter in (("avro", {}), ("json", json_converter)):
        topic = f"{t.name}.ddl-{form}"
        more = {f"{side}_{key}": value for side in ("key", "value") for key, value in converter.items()}
        connector = t.connect(worker, schema_changes_format="debezium", schema_changes_topic=topic, schema_changes_public_other="refuse",
                              table_include_list="public\\.(t|other)", **more)
        t.settle()
        one_more = "insert into t (id) select count(*) from t"
        t.sql(one_more, f"alter table t add column label_{form} mood default 'ok'", one_more)
        t.settle()
        t.sql(f"alter table other add column z_{form} int", "insert into other (id) select count(*) from other")
        connector.wait_failed("TG-E-SCHEMA-CHANGED")
        records = [json.loads(line) for line in tail(topic, "json").splitlines()]
        told = [(r["headers"]["__tidegate.kind"], r["value"]["source"]["table"],
                 [(change["type"], change["id"]) for change in r["value"]["tableChanges"]]) for r in records]
        equal(sorted(told[:2]), [("baseline", name, [("CREATE", f'"public"."{name}"')]) for name in ("other", "t")], "baselines")
        equal(told[2:], [("observed", "t", [("ALTER", '"public"."t"')]), ("refused", "other", [])], "a change, and one that did not pass")
        change, refused = records[2:]
        value = change["value"]
        equal((change["key"], value["databaseName"], value["schemaName"], value["ddl"]), ({"databaseName": t.name}, t.name, "public", None),
              "whose it is")
        check(abs(value["ts_ms"] / 1000 - time.time()) < 600 and value["source"]["lsn"] > 0, f"when and where: {value}")
        table = value["tableChanges"][0]["table"]
        equal(table["primaryKeyColumnNames"], ["id"], "its key")
        columns = {column["name"]: column for column in table["columns"]}
        equal([columns["n"][name] for name in ("jdbcType", "typeName", "typeExpression", "length", "scale", "position", "optional")],
              [2, "NUMERIC", "numeric(10,4)", 10, 4, 4, True], "a column")
        label = columns[f"label_{form}"]
        equal((label["enumValues"], label["defaultValueExpression"]), (["sad", "ok"], "ok"), "labels and default")
        equal([one["kind"] for one in json.loads(change["headers"]["__tidegate.changes"])], ["added"], "what differs")
        equal(refused["headers"]["__tidegate.code"], "TG-E-SCHEMA-CHANGED", "why it stopped")
        shown = tail(topic, "readable")
        for words in (f"column label_{form} was added", "the connector stopped at a change of public.other (TG-E-SCHEMA-CHANGED)"):
            check(words in shown, f"tail: {shown}")
        # One shape a topic; another topic begins with what the tables are.
        connector.put("stop")
        settings = {"schema.changes.format": "tidegate", "schema.changes.public.other": "forward"}
        equal(worker.rest("PATCH", f"/connectors/{t.name}/config", settings).status, 200, "status of PATCH")
        connector.put("resume")
        trace = connector.wait_failed("TG-E-CONFIG-INVALID")
        check("schema.changes.topic" in trace, f"the way out: {trace}")
        equal(worker.rest("PATCH", f"/connectors/{t.name}/config", {"schema.changes.topic": f"{topic}-own"}).status, 200, "status of PATCH")
        connector.wait_running()
        t.settle()
        own = [json.loads(line)["value"] for line in tail(f"{topic}-own", "json").splitlines()]
        equal(sorted((one["kind"], one["relation"]["table"], one["epoch"]) for one in own),
              [("baseline", "other", 1), ("baseline", "t", 2), ("observed", "other", 2)], "the other topic")
        equal(worker.rest("DELETE", f"/connectors/{t.name}?drop=source,offsets", timeout=60).status, 204, "status of DELETE")
    text = t.refused(worker, t.config(schema_changes_format="debezium", envelope_extensions="none", toast_mode="refuse",
                                      key_change_toast="refuse"), "TG-E-CONFIG-INVALID")
    check("schema.changes.format=tidegate" in text, text)


CASES = {"generated-key": generated_key, "names": names, "replaced-column": replaced_column, "nullability": nullability, "modifiers": modifiers, "inside": inside,
         "relations": relations, "gone-types": gone_types, "unpublishable": unpublishable, "swapped-names": swapped_names, "debezium": in_debeziums_shape}

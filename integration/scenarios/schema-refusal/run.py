"""Changed definitions that stop the task before the first row of the new shape, until that very change is acknowledged."""

import re
from typing import Any, Callable

from harness.checks import check, equal
from harness.trial import Trial

# What the stream says of definitions is the same on every version of the server.
SERVER_MATTERS = False
# The others show the most of it in less time.
LONG = {"classes", "begun", "split"}


def announced(t: Trial, table: str = "t") -> list[tuple[Any, ...]]:
    control = t.topic_named(f"{t.name}.schema-changes").read()
    return [(r.value["epoch"], r.value["class"], r.value["mode"], r.value["action"]) for r in control if r.key["table"] == table]


def patch(t: Trial, settings: dict[str, Any]) -> None:
    answer = t.workers[-1].rest("PATCH", f"/connectors/{t.name}/config", settings, timeout=90)
    equal(answer.status, 200, f"status of PATCH config ({answer.message})")


def acknowledgement(trace: str) -> dict[str, str]:
    """What the message tells an operator to send."""
    found = re.search(r'PATCH /connectors/\{name\}/config \{"(schema\.changes\.acknowledged)": "([^"]+)"\}', trace)
    check(found is not None, f"the call is in the message: {trace}")
    return {found[1]: found[2]}


def refuse(t: Trial) -> None:
    """Every change of one table stops; another table's go on."""
    t.worker().create(t.name, t.config() | {"schema.changes.public.t": "refuse"})
    connector = t.workers[-1].connector(t.name)
    t.wait_streaming()
    t.sql("alter table other add w int", "insert into other values (2, 2, '2 s', 2)", "update t set v = 2")
    t.settle()
    t.sql("alter table t add extra text; insert into t (id, extra) values (2, 'x')", "insert into t (id, extra) values (3, 'y')")
    trace = connector.wait_failed("TG-E-SCHEMA-CHANGED")
    check("public.t" in trace and "extra added: text" in trace, f"table and change are named: {trace}")
    equal([r.after["id"] for r in t.topic("t").read()], [1, 1], "rows: none of the new shape")
    equal(connector.fail_again("TG-E-SCHEMA-CHANGED"), trace, "it is refused at the same place")
    call = acknowledgement(trace)
    patch(t, {"schema.changes.acknowledged": call["schema.changes.acknowledged"] + "1"})
    connector.wait_failed("TG-E-SCHEMA-CHANGED")
    patch(t, call)
    t.wait_streaming()
    equal([r.after["id"] for r in t.settled_records("t")], [1, 1, 2, 3], "rows")
    equal(announced(t), [(1, "baseline", "refuse", "forwarded"), (2, "additive", "refuse", "stopped"),
                         (2, "additive", "refuse", "acknowledged")], "what is announced: the refusal once, too")
    equal(announced(t, "other"), [(1, "baseline", "forward", "forwarded"), (2, "additive", "forward", "forwarded")], "of the other table")
    worker = t.workers[-1]
    equal(worker.stop(), 0, "exit status")
    worker.start()
    t.sql("insert into t (id) values (4)", "alter table t alter v type bigint; insert into t (id) values (5)")
    trace = connector.wait_failed("TG-E-SCHEMA-CHANGED")
    check("v retyped: integer → bigint" in trace, f"the next change is named: {trace}")
    equal(acknowledgement(trace)["schema.changes.acknowledged"].split(",")[0], call["schema.changes.acknowledged"],
          "what was acknowledged stays so")
    equal([r.after["id"] for r in t.topic("t").read()], [1, 1, 2, 3, 4], "rows: up to the change")


def classes(t: Trial) -> None:
    """What no schema shows, or what means something else, stops in the mode forward too; the rest is graded and goes on."""
    connector = t.connect()
    t.set_level(f"{t.name}.public.t-value", "NONE")
    t.sql("alter table t alter name type varchar(30)", "update t set v = 2",
          "alter table t alter name type text", "update t set v = 3",
          "alter table t alter n type numeric(12, 4)", "update t set v = 4",
          "alter table t alter n type numeric(12, 1), add w int", "update t set v = 5",
          "alter table t alter v type bigint, drop w", "update t set v = 6",
          "vacuum full t", "update t set v = 7")
    t.settle()
    forwarded = ["baseline", "compatible", "compatible", "compatible", "rewriting", "destructive"]
    equal(announced(t), [(epoch, word, "forward", "forwarded") for epoch, word in enumerate(forwarded, 1)], "what is announced")
    t.sql("alter table t alter span type interval(0)", "update t set v = 8")
    trace = connector.wait_failed("TG-E-SCHEMA-PROJECTION-INVISIBLE")
    check("span retyped: interval → interval(0)" in trace, f"the change is named: {trace}")
    patch(t, acknowledgement(trace))
    t.wait_streaming()
    t.sql("alter table t alter at type timestamptz", "update t set v = 9")
    trace = connector.wait_failed("TG-E-SCHEMA-REINTERPRETED")
    check("at retyped" in trace, f"the change is named: {trace}")
    equal([r.after["v"] for r in t.topic("t").read()], list(range(1, 9)), "rows")
    equal(announced(t)[6:], [(7, "projection_invisible", "forward", "stopped"), (7, "projection_invisible", "forward", "acknowledged"),
                             (8, "reinterpretation", "forward", "stopped")], "what was let pass, and what was not")


def begun(t: Trial) -> None:
    """Inside a part that is not whole: what Kafka has of it is withdrawn, and the refusal is told all the same."""
    inside(t, 20_000, lambda there: there < 20_000)


def split(t: Trial) -> None:
    """Inside a transaction that Kafka gets in parts: what is before the change stays there, once; the message names the place, and it is the same again."""
    inside(t, 60_000, lambda there: 54_000 < there <= 60_000)


def inside(t: Trial, rows: int, is_right: Callable[[int], bool]) -> None:
    """A change is refused behind that many rows of a transaction, as many more follow. `is_right`: how many rows of the table, one
    among them that was there before, are published by then."""
    parts = {"transaction.stage.bytes": str(1 << 16), "transaction.max.bytes": str(1 << 20), "max.queue.size.in.bytes": str(1 << 20)}
    connector = t.worker().create(t.name, t.config() | {"schema.changes.public.t": "refuse"} | parts)
    t.wait_streaming()
    fill = "insert into t (id, name) select g, repeat('x', 20) from generate_series({}, {}) g"
    t.sql(f"begin; {fill.format(2, rows)}; alter table t add extra text; {fill.format(rows + 1, 2 * rows)}; commit",
          "insert into other values (9, 9)")
    trace = connector.wait_failed("TG-E-SCHEMA-CHANGED")
    check("extra added: text" in trace and f"message {rows}" in trace, f"change and place are named: {trace}")
    # the parts that were full before the change came
    expected = list(range(1, len(t.topic("t").read()) + 1))
    check(is_right(len(expected)), f"{len(expected)} of {rows} rows before the change are there")
    check("cannot be told" not in t.workers[-1].log_text(), "the refusal is told")
    equal([r.after["id"] for r in t.topic("t").read()], expected, "rows: from the first on")
    equal(len(t.topic("other").read()), 1, "rows of what is behind it")
    equal(connector.fail_again("TG-E-SCHEMA-CHANGED"), trace, "it is refused at the same place")
    t.workers[-1].kill()
    t.workers[-1].start()
    equal(connector.wait_failed("TG-E-SCHEMA-CHANGED"), trace, "and by another process")
    there = [r.after["id"] for r in t.topic("t").read()]
    check(len(expected) <= len(there) <= rows, f"{len(there)} rows after restarts: where a part ends is time's matter, too")
    equal(there, list(range(1, len(there) + 1)), "rows after restarts: none twice")
    patch(t, acknowledgement(trace))
    t.wait_streaming()
    equal([r.after["id"] for r in t.settled_records("t")], list(range(1, 2 * rows + 1)), "rows")
    equal(announced(t), [(1, "baseline", "refuse", "forwarded"), (2, "additive", "refuse", "stopped"),
                         (2, "additive", "refuse", "acknowledged")], "what is announced")
    t.exactly_once(t.topic("t").read())


CASES = {"refuse": refuse, "classes": classes, "begun": begun, "split": split}

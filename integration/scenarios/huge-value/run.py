"""A byte string that the server cannot write as text stops the task with a code and its place; made smaller, all goes on."""

import re

from harness.checks import check, equal
from harness.trial import Trial

LONG = True
MAJORS = range(14, 99)

MEGABYTE = "decode(repeat('00ff10a7', 262144), 'hex')"
CODE = "TG-E-VALUE-TOO-LARGE"


def run(t: Trial) -> None:
    connector = t.connect(table_include_list="public\\.t")
    t.sql("insert into t values (1, '\\x01')")
    t.settle()
    # 560 MiB: twice that, as hexadecimal digits, is more than the server allocates at once.
    t.sql(f"insert into t select 2, string_agg(piece, '') from (select {MEGABYTE} as piece from generate_series(1, 560)) as p",
          "insert into t values (3, '\\x03')")
    trace = connector.wait_failed(CODE, timeout=300)
    check("public.t.b" in trace, f"the refusal names what it may be: {trace}")
    # On a new connection the table is described directly before the change.
    trace = connector.fail_again(CODE)
    check("table public.t" in trace and "column b" in trace, f"the refusal names table and column: {trace}")
    place = re.search(r"position ([0-9A-F]+/[0-9A-F]+)", trace)
    check(place is not None and t.admin.value("select %s::pg_lsn < %s", t.slot()["confirmed"], place[1]),
          f"the slot does not move beyond the place: {t.slot()['confirmed']}, {trace}")
    equal([r.after["id"] for r in t.topic("t").read()], [1], "ids before the cure")
    # As the refusal says: smaller, and begun anew.
    t.sql("update t set b = '\\x02' where id = 2")
    connector.put("stop")
    connector.wait_states("STOPPED")
    t.server.query("select pg_drop_replication_slot(%s)", t.name)
    equal(connector.request("DELETE", "/offsets").status, 200, "status of DELETE offsets")
    connector.put("resume")
    connector.wait_running()
    t.wait_streaming()
    t.sql("insert into t values (4, '\\x04')")
    records = [(r.op, r.after["id"]) for r in t.settled_records("t")]
    equal([records[0], *sorted(records[1:4]), *records[4:]], [("c", 1), ("r", 1), ("r", 2), ("r", 3), ("c", 4)], "ids after the cure")

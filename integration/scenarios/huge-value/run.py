"""A byte string that the server cannot write as text stops the task with a code, and what came before it is out."""

from harness.checks import check, equal
from harness.trial import Trial

LONG = True
MAJORS = range(15, 99)

MEGABYTE = "decode(repeat('00ff10a7', 262144), 'hex')"


def run(t: Trial) -> None:
    connector = t.connect(table_include_list="public\\.t")
    t.sql("insert into t values (1, '\\x01')")
    t.settle()
    before = t.slot()["confirmed"]
    # 560 MiB: twice that, as hexadecimal digits, is more than the server allocates at once.
    t.sql(f"insert into t select 2, string_agg(piece, '') from (select {MEGABYTE} as piece from generate_series(1, 560)) as p")
    trace = connector.wait_failed("TG-E-VALUE-TOO-LARGE", timeout=300)
    check("position" in trace or "invalid memory alloc request size" in trace, f"the refusal says what happened: {trace}")
    equal([r.after["id"] for r in t.topic("t").read()], [1], "ids")
    check(t.server.value("select confirmed_flush_lsn >= %s::pg_lsn from pg_replication_slots where slot_name = %s",
                         before, t.name), "the slot does not go back")

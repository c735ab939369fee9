"""A change that cannot be published stops the task at its exact place; what was committed before it is out, once."""

from harness.checks import check, equal
from harness.trial import Trial


def run(t: Trial) -> None:
    worker = t.worker()
    connector = t.connect(worker, transaction_linger_ms="2000")
    before = t.slot()["confirmed"]
    t.sql(*(f"insert into t values ({number}, {number}.5)" for number in range(1, 6)),
          "begin; insert into other values (1); insert into t values (6, 6.5), (7, 'NaN'); insert into other values (2); commit",
          "insert into t values (8, 8.5)")
    code = "TG-E-VALUE-UNREPRESENTABLE"
    for attempt in range(4):
        trace = connector.fail_again(code) if attempt else connector.wait_failed(code)
        check("public.t" in trace and "column n" in trace and "position" in trace, f"the trace names the place: {trace}")
        equal([r.after["id"] for r in t.topic("t").read()], [1, 2, 3, 4, 5], f"ids after attempt {attempt}")
        equal(t.topic("other").read(), [], "records of the poisoned transaction")
    t.exactly_once(t.topic("t").read())
    check(t.server.value("select confirmed_flush_lsn >= %s::pg_lsn from pg_replication_slots where slot_name = %s",
                         before, t.name), "the slot does not go back")
    # With a mode that can say it, which is another schema, everything follows.
    t.set_level(f"{t.name}.public.t-value", "NONE")
    answer = connector.request("PUT", "/config", t.config(decimal_handling_mode="string"))
    equal(answer.status, 200, f"status of PUT config ({answer.message})")
    connector.wait_running()
    records = t.settled_records("t")
    equal([r.after["id"] for r in records], [1, 2, 3, 4, 5, 6, 7, 8], "ids after the cure")
    equal([r.after["id"] for r in t.topic("other").read()], [1, 2], "ids of the other table")
    t.exactly_once(records)

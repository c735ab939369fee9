"""The server cannot decode a transaction, with an error of its own and at each try: that is tried a few times, then told with a way out."""

from harness.checks import check, equal
from harness.trial import Trial


def run(t: Trial) -> None:
    worker = t.worker()
    connector = t.connect(worker, table_include_list="public\\.filed", retriable_restart_connector_wait_ms="20")
    t.sql("insert into filed (id) values (1), (2)")
    t.settle()
    # Decoded is with the catalogue of then, in which the column's type is gone for a moment.
    t.sql("insert into filed (id) values (3)")
    t.admin.sql("begin; set local allow_system_table_mods = on; create temp table kept as select * from pg_type where typname = 'lost'; "
          "delete from pg_type where typname = 'lost'; alter table filed alter id set statistics 5; delete from filed where id = 1; insert into pg_type select * from kept; commit")
    t.sql("insert into filed (id) values (4)")
    trace = connector.wait_failed("TG-E-STREAM-BROKEN")
    check("SQLSTATE XX000" in trace and "cache lookup failed" in trace, f"the server's words: {trace}")
    check("pg_drop_replication_slot" in trace, f"a way out: {trace}")
    equal([(r.op, r.key["id"]) for r in t.topic("filed").read()], [("c", 1), ("c", 2), ("c", 3)], "everything before it")
    # The first try got on, up to there.
    check(worker.log_text().count("the task starts again") in (4, 5), "it was tried again")
    # Asked to, it tries anew, as often.
    connector.fail_again("TG-E-STREAM-BROKEN")
    # The way out.
    connector.put("stop")
    equal(connector.request("DELETE", "/offsets").status, 200, "status of DELETE offsets")
    t.sql(f"select pg_drop_replication_slot('{t.slot()['slot_name']}')")
    connector.put("resume")
    connector.wait_running()
    t.wait_streaming()
    t.sql("insert into filed (id) values (5)")
    records = t.settled_records("filed")
    equal([(r.op, r.key["id"]) for r in records][3:], [("r", 2), ("r", 3), ("r", 4), ("c", 5)], "read anew, and on")

"""Pause, stop and resume by REST, and a new configuration: what was committed meanwhile follows, once."""

from harness.checks import check, equal, wait_for
from harness.trial import Trial

# The same on every version of the server.
SERVER_MATTERS = False


def run(t: Trial) -> None:
    worker = t.worker()
    connector = t.connect(worker)
    t.sql("insert into t values (1)")
    t.settle()

    connector.put("pause")
    connector.wait_states("PAUSED", "PAUSED")
    t.sql("insert into t values (2)")
    equal([r.after["id"] for r in t.topic("t").read()], [1], "ids while paused")
    worker.stop()
    worker.start()
    connector.wait_states("PAUSED", "PAUSED")
    connector.put("resume")
    connector.wait_running()
    t.settle()

    connector.put("stop")
    connector.wait_states("STOPPED")
    wait_for(lambda: not t.slot()["active"], 20, "the slot free")
    t.sql("insert into t values (3)")
    connector.put("resume")
    connector.wait_running()
    t.settle()

    connector.restart()
    connector.wait_running()
    t.sql("insert into t values (4)")
    t.settle()

    answer = connector.request("PUT", "/config", t.config(tombstones_on_delete="false"))
    equal(answer.status, 200, f"status of PUT config ({answer.message})")
    connector.wait_running()
    t.sql("delete from t where id = 1", "insert into t values (5)")
    records = t.settled_records("t")
    equal([(r.op, r.key["id"]) for r in records],
          [("c", 1), ("c", 2), ("c", 3), ("c", 4), ("d", 1), ("c", 5)], "records")
    t.exactly_once(records)
    check(connector.request("GET", "/config").body["tombstones.on.delete"] == "false", "the configuration is as submitted")

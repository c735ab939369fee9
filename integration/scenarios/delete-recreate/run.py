"""A deleted connector created again resumes where it was, or says why it cannot; without offsets it begins anew."""

from harness.checks import equal, wait_for
from harness.trial import Trial


def run(t: Trial) -> None:
    worker = t.worker()
    connector = t.connect(worker)
    t.sql("insert into t values (2)")
    t.settle()
    connector.delete()
    t.sql("insert into t values (3)")
    connector = t.connect(worker)
    equal([(r.op, r.after["id"]) for r in t.settled_records("t")], [("r", 1), ("c", 2), ("c", 3)],
          "records: it resumes, nothing is missing")

    connector.delete()
    wait_for(lambda: not t.slot()["active"], 20, "the slot free")
    t.server.query("select pg_drop_replication_slot(%s)", t.name)
    connector = worker.create(t.name, t.config(), running=False)
    connector.wait_failed("TG-E-SLOT-MISSING")

    equal(connector.request("DELETE", "/offsets").status, 400, "status of DELETE offsets while it is not stopped")
    connector.put("stop")
    connector.wait_states("STOPPED")
    equal(connector.request("DELETE", "/offsets").status, 200, "status of DELETE offsets")
    equal(connector.request("GET", "/offsets").body, {"offsets": []}, "offsets")
    connector.put("resume")
    connector.wait_running()
    t.wait_streaming()
    equal([(r.op, r.after["id"]) for r in t.settled_records("t")][3:], [("r", 1), ("r", 2), ("r", 3)],
          "records: a new snapshot")

    equal(connector.request("DELETE", "?drop=slot").status, 400, "status of a drop of something unknown")
    equal(connector.request("DELETE", "?drop=source,offsets").status, 204, "status of DELETE with all that the connector made")
    equal((t.slot(), t.admin.query("select from pg_publication where pubname = %s", t.name)), (None, []), "what is left at the source")
    t.connect(worker)
    equal([r.op for r in t.settled_records("t")][6:], ["r", "r", "r"], "records: it begins anew")

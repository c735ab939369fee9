"""A deleted connector created again resumes where it was, or says why it cannot; without offsets it begins anew."""

from harness.checks import check, equal, wait_for
from harness.trial import Trial

# The others are about what the worker knows of its connectors, or asks before it drops anything.
SERVER_MATTERS = {"recreated"}


def recreated(t: Trial) -> None:
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


def shared(t: Trial) -> None:
    """What another connector uses, or another role owns, is not dropped: then nothing is."""
    worker = t.worker()
    connector = t.connect(worker)
    other = worker.create(f"{t.name}_2", t.config(slot_name=f"{t.name}_2", topic_prefix=f"{t.name}_2"))
    active = lambda: t.server.value("select active from pg_replication_slots where slot_name = %s", f"{t.name}_2")
    wait_for(active, 60, "the other connector to stream", other.failed)
    for running in (other, connector):
        answer = running.request("DELETE", "?drop=source,offsets")
        equal(answer.status, 409, f"status of DELETE with a drop of what is shared ({answer.message})")
        check("TG-E-SOURCE-SHARED" in answer.message and f'"{t.name}' in answer.message, f"who uses it: {answer.message}")
    equal(connector.states(), ["RUNNING", "RUNNING"], "states: nothing was stopped")
    other.delete()
    wait_for(lambda: not active(), 30, "the slot free")
    t.server.query("select pg_drop_replication_slot(%s)", f"{t.name}_2")
    t.admin.sql(f"alter publication {t.name} owner to postgres")
    answer = connector.request("DELETE", "?drop=source")
    equal(answer.status, 400, f"status of DELETE by who does not own the publication ({answer.message})")
    check("TG-E-REPLICATION-PERMISSION" in answer.message, f"whose it is: {answer.message}")
    check(t.slot() is not None and t.slot()["active"], "the slot, which is read as before")
    t.admin.sql(f"alter publication {t.name} owner to {t.name}")
    equal(connector.request("DELETE", "?drop=source,offsets").status, 204, "status of DELETE when nobody else is there")
    equal((t.slot(), t.admin.query("select from pg_publication where pubname = %s", t.name)), (None, []), "what is left at the source")


def foreign(t: Trial) -> None:
    """A slot of the name that no stream could begin with is somebody else's, and stays; so does the publication."""
    connector = t.connect()
    connector.put("stop")
    t.server.query("select pg_drop_replication_slot(%s)", t.name)
    t.server.query("select pg_create_physical_replication_slot(%s)", t.name)
    try:
        answer = connector.request("DELETE", "?drop=source,offsets")
        equal(answer.status, 409, f"status of DELETE with a drop of another's slot ({answer.message})")
        check("TG-E-SLOT-MISMATCH" in answer.message and "without ?drop=source" in answer.message, f"what to do: {answer.message}")
        check(t.slot() is not None, "the slot is there")
        equal(len(t.admin.query("select from pg_publication where pubname = %s", t.name)), 1, "the publication")
        equal(connector.request("DELETE").status, 204, "status of DELETE without a drop")
    finally:
        t.server.query("select pg_drop_replication_slot(%s)", t.name)


def while_creating(t: Trial) -> None:
    """A stop while the server waits for an open transaction ends the creation of the slot there too."""
    worker = t.worker()
    with t.source.session() as session:
        session.execute("begin; insert into t values (2)")
        connector = worker.create(t.name, t.config(), running=False)
        wait_for(t.slot, 60, "the slot that is being made", connector.failed)
        connector.put("stop")
        wait_for(lambda: t.slot() is None, 10, "no slot")
        equal(connector.request("DELETE", "?drop=source,offsets").status, 204, "status of DELETE")
        session.execute("rollback")


CASES = {"recreated": recreated, "shared": shared, "foreign": foreign, "while-creating": while_creating}

"""A standby is promoted: the slot is there too (`slot.failover`), and the stream goes on, nothing lost and nothing twice."""

import json
import subprocess

from harness.checks import check, equal, wait_for
from harness.database import Database
from harness.trial import Trial
from harness.worker import free_port
from stack.postgres import Postgres
from stack.settings import HOST

LONG = True


def run(t: Trial) -> None:
    if t.server.value("select current_setting('server_version_num')::int") < 170000:
        t.refused(t.worker(), t.config(slot_failover="true"), "TG-E-SERVER-VERSION")
        return
    t.own_server(synchronized_standby_slots="standby")
    standby = with_standby(t)
    worker = t.worker()
    connector = t.connect(worker)
    t.sql("insert into t values (1)")
    t.settle()
    equal(t.slot()["failover"], False, "whether the slot fails over")
    check("is not marked yet" in readiness(t), "the note of a slot that does not")
    equal(worker.rest("PUT", f"/connectors/{t.name}/config", t.config(slot_failover="true"), timeout=90).status, 200, "status")
    t.sql("insert into t values (2)")
    t.settle()
    equal(t.slot()["failover"], True, "whether the slot that was there fails over")
    there = Database(standby.address)
    wait_for(lambda: there.query("select from pg_replication_slots where slot_name = %s and synced and not temporary", t.name),
             60, "the slot at the standby")
    wait_for(lambda: "ready as far as the primary can tell" in readiness(t), 30, "the note to say that it is ready")
    standby.stop()
    note = readiness(t)
    check("no standby is known to be ready" in note and '"standby" of synchronized_standby_slots is not read' in note, f"without it: {note}")
    standby.start()
    there = Database(standby.address)
    t.sql("insert into t values (3)")
    t.settle()
    primary = t.postgres
    primary.kill()
    t.later(primary.start)
    there.query("select pg_promote()")
    t.use(standby)
    t.sql("insert into t values (4)")
    moved = t.config(slot_failover="true")
    equal(worker.rest("PUT", f"/connectors/{t.name}/config", moved, timeout=90).status, 200, "status of PUT config")
    connector.wait_running()
    t.wait_streaming()
    t.sql("insert into t values (5)")
    equal([record.key["id"] for record in t.settled_records("t")], [1, 2, 3, 4, 5], "records, over the promotion")


def readiness(t: Trial) -> str:
    """What `tidegate check` says of it."""
    command = t.command("check", t.connector_file(slot_failover="true"), "-b", t.kafka.address, "-r", t.registry.address, "--json")
    command.succeed()
    return next(note for note in json.loads(command.out)["notes"] if note.startswith("slot.failover"))


def with_standby(t: Trial) -> Postgres:
    """A copy of the trial's server that follows it."""
    primary = t.postgres
    t.server.query("select pg_create_physical_replication_slot('standby', true)")
    primary.stop()
    access = primary.data / "pg_hba.conf"
    access.write_text(f"host replication postgres {HOST}/32 trust\n" + access.read_text())
    standby = Postgres(primary.major, name="postgres-standby", at_port=free_port())
    standby.remove()
    t.later(standby.remove)
    standby.data.parent.mkdir(parents=True)
    subprocess.run(["cp", "-a", primary.data, standby.data], check=True)
    (standby.data / "standby.signal").touch()
    with (standby.data / "postgresql.conf").open("a") as conf:
        conf.write(f"primary_conninfo = 'host={HOST} port={primary.port} user=postgres dbname=postgres'\n"
                   "primary_slot_name = 'standby'\nhot_standby_feedback = on\nsync_replication_slots = on\n"
                   "synchronized_standby_slots = ''\n")
    primary.start()
    standby.start()
    return standby

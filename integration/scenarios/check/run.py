"""`tidegate check` says what is wrong and what mends it, needs no worker, and leaves nothing behind, however it ends."""

import json
import signal
import time

from harness.checks import check, equal, wait_for
from harness.rest import Rest
from harness.trial import Trial
from harness.worker import free_port

# The same on every version of the server.
SERVER_MATTERS = False


def traces(t: Trial) -> dict[str, object]:
    """All that a look could leave anywhere."""
    subjects = Rest(t.registry.address)("GET", "/subjects").body
    return {
        "slots": t.server.query("select slot_name from pg_replication_slots where database = %s", t.name),
        "publications": t.admin.query("select pubname from pg_publication"),
        "topics": t.cluster.topics(t.name),
        "subjects": [subject for subject in subjects if subject.startswith(t.name)],
    }


def services(t: Trial) -> list[str]:
    return ["-b", t.kafka.address, "-r", t.registry.address]


def faults(t: Trial) -> None:
    before = traces(t)
    file = t.connector_file()
    done = t.command("check", file, *services(t)).succeed()
    check("in order" in done.out, f"it says so: {done.out}")
    body = json.loads(t.command("check", file, *services(t), "--json").succeed().out)
    notes = body.pop("notes")
    equal(body, {"name": t.name, "ok": True, "faults": []}, "the answer for machines")
    check(len(notes) == 1 and "takes a superuser" in notes[0], f"whether event triggers could be installed: {notes}")

    # A column that is misspelled would be published in the clear.
    masked = t.connector_file(**{"column.mask.with.3.chars": "public.t.v, public.t.nothing"})
    notes = json.loads(t.command("check", masked, *services(t), "--json").succeed().out)["notes"]
    idle = [note for note in notes if note.startswith("column.")]
    equal(idle, ["column.mask.with.3.chars: 'public.t.nothing' names no column of a captured table, so it does nothing; the "
                 "whole of schema.table.column has to match"], "the rule that does nothing")

    # What the configuration alone tells is told without asking anybody.
    wrong = t.connector_file(**{"snapshot.mode": "intial", "topic.prefx": "x"})
    found = t.command("check", wrong, "-b", f"127.0.0.1:{free_port()}", "--json")
    equal(found.wait(), 1, "status")
    equal({fault["key"] for fault in json.loads(found.out)["faults"]}, {"snapshot.mode", "topic.prefx"}, "keys")

    # What only the services tell, all at once: each with code, table and the statement that mends it.
    t.admin.sql("create table foreign_to_it (id int primary key)", "create schema mine",
                f"grant usage on schema mine to {t.name}")
    t.sql("create table no_key (a int)")
    file = t.connector_file()
    found = t.command("check", file, "-b", t.kafka.address, "-r", f"http://127.0.0.1:{free_port()}", "--json")
    equal(found.wait(), 1, "status")
    remedies = {}
    for fault in json.loads(found.out)["faults"]:
        remedies.setdefault(fault["code"], []).append(fault["remedy"])
    equal(set(remedies), {"TG-E-REPLICATION-PERMISSION", "TG-E-SOURCE-REPLICA-IDENTITY", "TG-E-REGISTRY-UNREACHABLE"},
          "codes")
    check(any("GRANT SELECT ON public.foreign_to_it" in text for text in remedies["TG-E-REPLICATION-PERMISSION"]),
          f"the statement: {remedies}")
    readable = t.command("check", file, *services(t))
    equal(readable.wait(), 1, "status")
    check("to mend it: " in readable.out and "\x1b" not in readable.out, f"plain text without a terminal: {readable.out}")

    # The worker's own file, and a password that is only in the environment.
    t.admin.sql("drop table foreign_to_it")
    t.sql("drop table no_key")
    worker = t.directory / "w.properties"
    worker.write_text("".join(f"{key}={value}\n" for key, value in t.properties().items()))
    t.command("check", file, "--worker", worker).succeed()
    secret = t.config()["database.password"]
    file = t.connector_file(database_password="${env:CDC_PASSWORD}")
    t.command("check", file, *services(t), CDC_PASSWORD=secret).succeed()
    equal(traces(t), before, "what is there afterwards")


def interrupted(t: Trial) -> None:
    before = traces(t)
    file = t.connector_file()
    # Whoever asks for the tables waits here.
    holder = t.admin.connect()
    holder.autocommit = False
    holder.execute("lock table pg_publication in access exclusive mode")
    waiting = "select count(*) from pg_stat_activity where datname = %s and wait_event_type = 'Lock'"
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        command = t.command("check", file, *services(t))
        wait_for(lambda: t.server.value(waiting, t.name), 30, "a question that waits for the lock")
        command.signal(number)
        check(command.wait(5) != 0, "an interrupted check is no success")
    holder.rollback()
    holder.close()
    for delay in range(6):
        command = t.command("check", file, *services(t))
        time.sleep(0.05 * delay)
        command.signal(signal.SIGINT)
        command.wait(5)
    equal(traces(t), before, "what is there afterwards")


CASES = {"faults": faults, "interrupted": interrupted}

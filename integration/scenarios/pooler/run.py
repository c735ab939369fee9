"""A pooler between worker and server: refused before anything is made, however it pools and whatever it lets pass."""

from harness.checks import ScenarioSkipped, check
from harness.trial import PASSWORD, Trial
from harness.worker import Worker, free_port
from stack import pgbouncer

LONG = True
# The session's settings that pgbouncer has to be told to pass over, else it refuses the first of them.
SETTINGS = ("extra_float_digits,bytea_output,lc_monetary,search_path,quote_all_identifiers,row_security,"
            "idle_in_transaction_session_timeout,client_min_messages,statement_timeout,lock_timeout,IntervalStyle")


def run(t: Trial) -> None:
    if (reason := pgbouncer.install()) is not None:
        raise ScenarioSkipped(reason)
    worker = t.worker()
    for mode in ("transaction", "session"):
        refused(t, worker, mode, "unsupported startup parameter")
        # Connections of both kinds get through; it is seen that another process answers than the one that was named.
        refused(t, worker, mode, "serves the connection", ignore_startup_parameters=f"{SETTINGS},replication")
    t.nothing_left()
    t.connect(worker).wait_running()


def refused(t: Trial, worker: Worker, mode: str, says: str, **settings: str) -> None:
    """A pooler in this mode, with these settings."""
    pooler = pgbouncer.PgBouncer(t.directory / f"pgbouncer-{mode}-{len(settings)}", free_port(), t.postgres.port, pool_mode=mode, **settings)
    t.later(pooler.kill)
    pooler.start(t.name, PASSWORD)
    text = t.refused(worker, t.config(database_port=str(pooler.port)), "TG-E-POOLER-DETECTED")
    check(says in text and "database.port" in text, f"what was seen, and what to do: {text}")
    file = t.connector_file(database_port=str(pooler.port))
    command = t.command("check", file, "-b", t.kafka.address, "-r", t.registry.address)
    check(command.wait() == 1 and "TG-E-POOLER-DETECTED" in command.out, f"tidegate check says it, too: {command.out}")

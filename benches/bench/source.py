"""The source: a server of the benchmark's own, what is written to it, and slots that all see the same log."""

import contextlib
import time
from dataclasses import dataclass, field
from typing import Any

from harness.database import Database
from stack.postgres import Postgres
from stack.settings import DIR, port

NAME = "bench"

# Only reading is measured: writing the load should not take longer than that.
SETTINGS = {
    "shared_buffers": "512MB",
    "max_wal_size": "20GB",
    "checkpoint_timeout": "1h",
    "autovacuum": "off",
    "full_page_writes": "off",
    "max_replication_slots": "40",
}


@dataclass(frozen=True)
class Load:
    """What is written for a workload, once, behind a slot that every run gets a copy of."""

    name: str
    tables: list[str]
    # Statements before the slot is made: tables, and rows that are not part of the load.
    setup: list[str]
    # Statements of the load itself.
    body: list[str]
    rows: int
    # The number of the first row.
    first: int = 1
    # Each row has a tombstone behind it.
    tombstones: bool = False
    unordered: bool = False
    # Rows of which the values are compared with what was read: (column, …) of `tables[0]`.
    compare: list[str] = field(default_factory=list)

    @property
    def topics(self) -> list[str]:
        """Topics below the run's prefix."""
        return [f"public.{table}" for table in self.tables]


def batches(rows: int, per_transaction: int, statement: str, first: int = 1) -> str:
    """A loop that runs the statement for rows `lo` to `hi`, each time in a transaction of its own."""
    return (f"do $load$ declare lo bigint := {first}; hi bigint; begin while lo < {first + rows} loop "
            f"hi := least(lo + {per_transaction} - 1, {first + rows - 1}); {statement}; lo := hi + 1; commit; "
            "end loop; end $load$")


class Source:
    """The server, its database, and the slots in it."""

    def __init__(self) -> None:
        self.server = Postgres(name="postgres-bench", settings=SETTINGS, at_port=port("STACK_PG_PORT", 15432) + 50)
        self.admin = Database(self.server.address)
        self.database = Database(self.server.address, dbname=NAME)

    def start(self) -> None:
        """Start it with an empty database."""
        self.server.install()
        self.server.start()
        for slot in self.admin.query("select slot_name, active_pid from pg_replication_slots"):
            self.drop_slot(slot["slot_name"])
        self.admin.sql(f"drop database if exists {NAME} with (force)", f"create database {NAME}")

    def stop(self) -> None:
        """Stop it and forget what was written: the log of a load is large."""
        self.admin.close()
        self.database.close()
        self.server.remove()

    def version(self) -> str:
        """The server's."""
        return self.admin.value("show server_version")

    def write(self, load: Load) -> dict[str, Any]:
        """Make the tables and the base slot, then write the load."""
        self.forget()
        self.database.sql(*load.setup)
        tables = ", ".join(f"public.{table}" for table in load.tables)
        self.database.sql(f"create publication {NAME} for table {tables}")
        self.database.query("select pg_create_logical_replication_slot(%s, 'pgoutput')", f"{NAME}_base")
        begin = self.database.value("select pg_current_wal_insert_lsn()::text")
        started = time.monotonic()
        for statement in load.body:
            self.database.sql(statement)
        seconds = time.monotonic() - started
        end = self.database.value("select pg_current_wal_insert_lsn()::text")
        size = int(self.database.value("select pg_wal_lsn_diff(%s, %s)", end, begin))
        # Something behind the end, so that a reader learns that it is past it.
        self.database.query("select pg_logical_emit_message(true, 'bench', 'end')")
        self.database.query("select pg_switch_wal()")
        return {"rows": load.rows, "wal_bytes": size, "end": end, "load_s": round(seconds, 1)}

    def copy_slot(self, name: str) -> None:
        """A slot that stands where the load begins."""
        self.database.query("select pg_copy_logical_replication_slot(%s, %s)", f"{NAME}_base", name)

    def drop_slot(self, name: str) -> None:
        """Drop it, whoever reads it."""
        deadline = time.monotonic() + 30
        while found := self.admin.query("select active_pid from pg_replication_slots where slot_name = %s", name):
            with contextlib.suppress(Exception):
                if found[0]["active_pid"]:
                    self.admin.query("select pg_terminate_backend(%s)", found[0]["active_pid"])
                else:
                    self.admin.query("select pg_drop_replication_slot(%s)", name)
            if time.monotonic() > deadline:
                raise RuntimeError(f"slot {name} cannot be dropped")

    def sender(self, slot: str) -> int | None:
        """The server process that reads a slot."""
        return self.admin.value("select active_pid from pg_replication_slots where slot_name = %s and active", slot)

    def forget(self) -> None:
        """Remove what the last load left: slots, publication, tables; and let the server drop its log."""
        for row in self.admin.query("select slot_name from pg_replication_slots"):
            self.drop_slot(row["slot_name"])
        self.database.sql(f"drop publication if exists {NAME}", "drop schema public cascade", "create schema public",
                          "checkpoint")

    @property
    def connection(self) -> dict[str, str]:
        """How a connector reaches it."""
        return {"database.hostname": "127.0.0.1", "database.port": str(self.server.port), "database.user": "postgres",
                "database.password": "none", "database.dbname": NAME}


def scratch(name: str) -> Any:
    """A directory for the files of a run."""
    path = DIR / "bench" / name
    path.mkdir(parents=True, exist_ok=True)
    return path

"""A server, a broker and a registry for one comparison alone: nothing else is in them, and nothing of them stays."""

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any, Callable, Mapping

from harness.connect import Connect
from harness.database import Database
from harness.own_registry import OwnRegistry
from harness.rest import Rest
from harness.topics import Schemas
from harness.worker import Worker, free_port
from stack import connect
from stack.kafka import Kafka
from stack.postgres import Postgres
from stack.settings import DIR, HOST, PG_MAJOR, StackError

from .cases import DATABASE

NAME = "parity"
# The superuser that the cases were recorded with.
USER, PASSWORD = DATABASE, "golden"
# A machine that stands still for a while is no difference.
SETTINGS = {"autovacuum": "off", "wal_sender_timeout": "0", "max_wal_senders": "60", "max_replication_slots": "60", "max_connections": "200"}
JSON = "org.apache.kafka.connect.json.JsonConverter"
AVRO = "io.confluent.connect.avro.AvroConverter"


def services() -> tuple[Postgres, Kafka]:
    """What a comparison starts; one that was killed leaves them running."""
    return Postgres(PG_MAJOR, name=f"postgres-{NAME}", settings=SETTINGS, at_port=free_port()), \
        Kafka(1, name=f"kafka-{NAME}", at_port=_free_pair(),
              settings={"broker.session.timeout.ms": "600000", "transaction.max.timeout.ms": "900000"})


def _free_pair() -> int:
    while True:
        first = free_port()
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, first + 1))
            return first


class Ground:
    """The services and the workers on them."""

    def __init__(self, *, debezium: bool):
        self.directory = DIR / NAME
        self._debezium = debezium
        self._undo: list[Callable[[], Any]] = []

    def __enter__(self) -> "Ground":
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        while self._undo:
            # What fails does not keep the rest from being removed.
            with contextlib.suppress(StackError, OSError):
                self._undo.pop()()

    def _start(self) -> None:
        # One run at a time has these directories.
        lock = (DIR / f"{NAME}.lock").open("w")
        self._undo.append(lock.close)
        fcntl.flock(lock, fcntl.LOCK_EX)
        jars = connect.jars() if self._debezium else None
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        self.postgres, self.kafka = services()
        for part in (self.postgres, self.kafka):
            part.install()
            part.remove()
        # The ports that one which was killed had are no longer of interest.
        self.postgres, self.kafka = services()
        for part in (self.postgres, self.kafka):
            self._undo.append(part.remove)
            part.launch()
        registry = OwnRegistry(self.directory, free_port(), "--any-namespace")
        self._undo.append(registry.kill)
        registry.start()
        self.registry = registry.address
        # What Debezium changes in a schema is compared, not judged.
        Rest(self.registry)("PUT", "/config", {"compatibility": "NONE"})
        self.schemas = Schemas(self.registry)
        self.postgres.wait()
        self.kafka.wait()
        self.server = Database(self.postgres.address, connect_timeout=300)
        self._undo.append(self.server.close)
        self.server.sql(f"create role {USER} superuser login password '{PASSWORD}'")
        self.version = self.server.value("show server_version")
        self.major = int(self.version.split(".")[0])
        self.workers: dict[str, Worker | Connect] = {"tidegate": self._tidegate()}
        if jars is not None:
            self.workers["debezium"] = self._connect(jars)
        for worker in self.workers.values():
            self._undo.append(worker.kill)
            worker.start()

    def _tidegate(self) -> Worker:
        return Worker(self.directory / "tidegate", {
            "bootstrap.servers": self.kafka.address, "group.id": "tidegate", "log.level": "info",
            "config.storage.directory": str(self.directory / "tidegate" / "state"), "offset.flush.interval.ms": "300",
            "key.converter": JSON, "value.converter": JSON,
        })

    def _connect(self, jars: Path) -> Connect:
        return Connect(self.directory / "debezium", "debezium", jars, self.kafka.address, self.registry,
                       offset_flush_interval_ms="1000", scheduled_rebalance_max_delay_ms="500")

    def log_end(self) -> str:
        """The source's position now."""
        return self.server.value("select pg_current_wal_lsn()::text")

    def psql(self, database: str, script: str) -> None:
        """Run a script statement by statement; what fails in it fails for all readers alike."""
        done = subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=0", "-f", "-", "-h", HOST, "-p", str(self.postgres.port),
                               "-U", USER, "-d", database], input=script, capture_output=True, text=True,
                              env={**os.environ, "PGCLIENTENCODING": "UTF8", "PGPASSWORD": PASSWORD})
        if done.returncode != 0:
            raise StackError(f"psql in {database}: {done.stderr}")


def connection(ground: Ground, database: str) -> Mapping[str, str]:
    """How connectors reach the source."""
    return {"database.hostname": HOST, "database.port": str(ground.postgres.port), "database.user": USER,
            "database.password": PASSWORD, "database.dbname": database}


def converters(ground: Ground, mode: str) -> Mapping[str, str]:
    """Keys and values with all of their schema, headers as JSON."""
    headers = {"header.converter": JSON, "header.converter.schemas.enable": "true"}
    if mode == "avro":
        return headers | {f"{side}.converter{key}": value for side in ("key", "value")
                          for key, value in (("", AVRO), (".schema.registry.url", ground.registry))}
    return headers | {f"{side}.converter{key}": value for side in ("key", "value")
                      for key, value in (("", JSON), (".schemas.enable", "true"))}

"""Who is measured: the worker, PostgreSQL's own reader, Debezium on Kafka Connect. Each is started anew for each run."""

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Mapping

from harness.connect import AVRO, Connect
from harness.worker import Worker
from stack import connect
from stack.settings import HOST, StackError

from .source import NAME, Source, scratch


def reader_options(label: str, source: Source, tables: list[str], **more: str) -> dict[str, str]:
    """What the worker and Debezium are both told."""
    which = {"table.include.list": ",".join(f"public.{table}" for table in tables)} if len(tables) < 50 else \
        {"schema.include.list": "public"}
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "tasks.max": "1",
        **source.connection,
        "topic.prefix": label,
        "slot.name": label,
        "publication.name": NAME,
        "publication.autocreate.mode": "disabled",
        "snapshot.mode": "no_data",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
        **which, **more,
    }


class Tidegate:
    """The worker of this checkout, built for release, with its defaults and the compression that all get."""

    name = "tidegate"
    # What it is told for a backlog only: nothing.
    backlog: Mapping[str, str] = {}

    def __init__(self, source: Source, bootstrap: str, registry: str, **options: str):
        self._source, self._bootstrap, self._registry = source, bootstrap, registry
        self.options = {"producer.override.compression.type": "lz4", **options}
        self._worker: Worker | None = None

    def start(self, label: str, tables: list[str], **more: str) -> int:
        """Start a worker with one connector; returns its PID."""
        directory = scratch(label)
        self._worker = Worker(directory, {
            "bootstrap.servers": self._bootstrap, "group.id": f"{label}-group", "log.level": "info",
            "config.storage.directory": str(directory / "state"), "offset.storage.topic": f"{label}-offsets",
            "key.converter": AVRO, "key.converter.schema.registry.url": self._registry,
            "value.converter": AVRO, "value.converter.schema.registry.url": self._registry,
        })
        self._worker.start()
        self._label, self._config = label, reader_options(label, self._source, tables, **{**self.options, **more})
        return self._worker.pid

    def submit(self) -> None:
        """Hand the connector to it."""
        assert self._worker is not None
        self._worker.create(self._label, self._config, running=False)

    def failed(self) -> str | None:
        """Why nothing more will come."""
        assert self._worker is not None
        return self._worker.connector(self._label).failed()

    def kill_and_start(self) -> None:
        """kill -9, and the same worker again at once, as a service manager would."""
        assert self._worker is not None
        self._worker.kill()
        self._worker.launch()

    def stop(self) -> None:
        """End it; what it did is in Kafka."""
        if self._worker is not None:
            self._worker.kill()


class Debezium:
    """Debezium on Kafka Connect in distributed mode, which alone has exactly once for sources; one worker, one task."""

    TUNED = {
        "poll.interval.ms": "5", "max.batch.size": "16384", "max.queue.size": "65536",
        "producer.override.compression.type": "lz4", "producer.override.linger.ms": "5",
        "producer.override.batch.size": "1000000", "producer.override.buffer.memory": "67108864",
    }
    # Kafka transactions: for a backlog as long as the worker's, for a short latency one for each poll.
    TUNED_BACKLOG = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "100"}

    def __init__(self, source: Source, bootstrap: str, registry: str, *, tuned: bool, heap: str = "1g"):
        self.name = "debezium" if tuned else "debezium-default"
        self._source, self._bootstrap, self._registry = source, bootstrap, registry
        self.options = self.TUNED if tuned else {}
        self.backlog = self.TUNED_BACKLOG if tuned else {}
        self._heap = heap
        self._connect: Connect | None = None

    @staticmethod
    def install() -> None:
        """Fetch what is not there. Nothing of it is part of this repository."""
        connect.jars()

    def start(self, label: str, tables: list[str], **more: str) -> int:
        """Start Connect; returns its PID."""
        self._connect = Connect(scratch(label), label, connect.jars(), self._bootstrap, self._registry, heap=self._heap,
                                exactly_once_source_support="enabled").start()
        self._label = label
        self._config = {**reader_options(label, self._source, tables, **{**self.options, **more}),
                        "exactly.once.support": "required"}
        return self._connect.pid

    def submit(self) -> None:
        """Hand the connector to it."""
        assert self._connect is not None
        answer = self._connect.submit(self._label, self._config)
        if answer.status != 201:
            raise StackError(f"Kafka Connect refuses the connector: {answer.message}")

    def failed(self) -> str | None:
        """Why nothing more will come."""
        assert self._connect is not None
        return self._connect.connector(self._label).failed()

    def stop(self) -> None:
        """End it."""
        if self._connect is not None:
            self._connect.kill()


class Recvlogical:
    """PostgreSQL's own reader, which writes what it gets to /dev/null: the speed at which the server can send."""

    name = "recvlogical"

    def __init__(self, source: Source):
        self._source = source

    def run(self, slot: str, end: str, seen: Callable[[int, int], Any]) -> float:
        """Read a slot up to a position. `seen` is told the PIDs of reader and sender; returns the seconds of reading."""
        server = self._source.server
        command = [client_program("pg_recvlogical"), "-h", HOST, "-p", str(server.port), "-U", "postgres", "-d", NAME, "--slot", slot,
                   "--start", "-f", "/dev/null", "--no-loop", "-E", end, "-s", "10", "-o", "proto_version=1",
                   "-o", f"publication_names={NAME}", "-o", "messages=true"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        sender = None
        while sender is None and process.poll() is None:
            sender = self._source.sender(slot)
        began = time.monotonic()
        seen(process.pid, sender or 0)
        # Not reaped yet, a dead process still has its times in /proc.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        seconds = time.monotonic() - began
        if process.wait() != 0:
            raise RuntimeError(f"pg_recvlogical ended with {process.returncode}")
        return seconds


def client_program(name: str) -> str:
    """A client program of PostgreSQL; any version will do."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    program = str(found[-1]) if found else shutil.which(name)
    if program is None:
        raise StackError(f"{name} is missing; install it with: apt-get install postgresql postgresql-client")
    return program


def known(source: Source, bootstrap: str, registry: str) -> Mapping[str, Any]:
    """All opponents by name."""
    return {
        "recvlogical": Recvlogical(source),
        "debezium": Debezium(source, bootstrap, registry, tuned=True),
        "debezium-default": Debezium(source, bootstrap, registry, tuned=False),
    }

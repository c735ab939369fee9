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
# A broker that was killed is let in again when its old session is over.
SESSION = {"broker.session.timeout.ms": 2000, "broker.heartbeat.interval.ms": 500}


class Kafka:
    """A cluster; `brokers[0]` is all of it by default."""

    name = "kafka"

    def __init__(self, count: int = KAFKA_BROKERS, *, name: str = "", at_port: int | None = None,
                 settings: Mapping[str, str] | None = None, proxied: bool | None = None, apart: bool = False):
        """`name` is for a cluster beside the stack's own; its brokers take two ports each from `at_port` on. `proxied`: they
        can be reached through a proxy, too; the stack's own always can. `apart`: the controller of the one broker is a process
        of its own, which lives on as the broker is killed."""
        if count not in (1, 3) or apart and count > 1:
            raise StackError(f"KAFKA_BROKERS={count}: 1 or 3")
        self.directory = DIR / (name or ("kafka" if count == 1 else f"kafka-{count}"))
        self.settings = settings or {}
        self.proxied = (not name and at_port is None) if proxied is None else proxied
        self.first_port = at_port or port("STACK_KAFKA_PORT", 19092)
        self.brokers = [Broker(self, node) for node in range(1, count + 1)]
        self.controller = Controller(self) if apart else None

    @property
    def address(self) -> str:
        """bootstrap.servers."""
        return ",".join(f"{HOST}:{broker.port}" for broker in self.brokers)

    def install(self) -> None:
        """Fetch the jars."""
        fetch.java()
        _jars()

    def launch(self) -> None:
        """Start what does not run; does not wait, but for a controller apart to be through with a broker that was killed."""
        if self.controller is not None:
            self.controller.launch()
            self.controller.wait_fenced()
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
        if self.controller is not None:
            self.controller.process.stop(20)

    def kill(self) -> None:
        """kill -9 of all brokers; a controller apart lives on."""
        if self.controller is not None:
            self.controller.expect_fencing()
        for broker in self.brokers:
            broker.kill()

    def remove(self) -> None:
        """Kill it and delete its data."""
        self.kill()
        if self.controller is not None:
            self.controller.process.kill()
            self.controller = Controller(self)
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

    def configure(self, node: int, settings: Mapping[str, object]) -> Path:
        """Write a node's properties and format its data directory once."""
        data = self.directory / f"data-{node}"
        properties = self.directory / f"server-{node}.properties"
        self.directory.mkdir(parents=True, exist_ok=True)
        everything = {"node.id": node, "log.dirs": data, **settings}
        properties.write_text("".join(f"{key}={value}\n" for key, value in everything.items()))
        if not (data / "meta.properties").exists():
            shutil.rmtree(data, ignore_errors=True)
            command = _java("kafka.tools.StorageTool", "format", "-t", self.cluster_id(), "-c", str(properties))
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise StackError(f"formatting Kafka's data directory failed:\n{done.stdout}{done.stderr}")
        return properties


class Controller:
    """The one controller of a broker, as a process of its own.

    A broker that is killed and back before its session is over still is, by the metadata, the coordinator of transactions that
    it was. It goes on with those, while being registered anew takes their partitions' leaders away; those without a leader it
    takes for deleted, and can note a transaction as complete that lacks end markers: that hangs for ever (docs/kafka.md). The
    controller in the same process is no help, since it begins a session for everybody. So a killed broker comes back here only
    once the controller has fenced it.
    """

    NODE = 100
    FENCES = "Fencing broker"

    def __init__(self, cluster: Kafka):
        self.cluster = cluster
        self.process = Process("controller", cluster.directory)
        # The second of the broker's two, which it does not need then.
        self.port = cluster.first_port + 1
        # How long its log was as the broker was killed.
        self._killed_at: int | None = None

    def launch(self) -> None:
        """Start it unless it runs; does not wait."""
        if self.process.pid() is not None:
            return
        require_free_port(self.port, "Kafka's controller", "STACK_KAFKA_PORT")
        properties = self.cluster.configure(self.NODE, {
            "process.roles": "controller",
            "controller.quorum.voters": f"{self.NODE}@{HOST}:{self.port}",
            "listeners": f"CONTROLLER://{HOST}:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
            **SESSION,
        })
        self.process.launch(_java("kafka.Kafka", str(properties), log="org.apache.kafka.controller"), self.port)

    def expect_fencing(self) -> None:
        """The broker is about to be killed."""
        if self.process.pid() is not None and self.cluster.brokers[0].process.pid() is not None:
            self._killed_at = self.process.log.stat().st_size

    def wait_fenced(self) -> None:
        """Wait until a broker that was killed is no leader of anything any more."""
        if self._killed_at is not None:
            self.process.wait_until(self._has_fenced, 60, "fencing the killed broker")
            self._killed_at = None

    def _has_fenced(self) -> bool:
        with self.process.log.open("rb") as log:
            log.seek(self._killed_at or 0)
            return self.FENCES.encode() in log.read()


class Broker:
    """One broker; it is its own controller too, unless that is apart."""

    def __init__(self, cluster: Kafka, node: int):
        self.cluster = cluster
        self.node = node
        self.process = Process(f"kafka-{node}", cluster.directory)
        self.port = self.process.port() or cluster.first_port + 2 * (node - 1)

    def launch(self) -> None:
        """Start it unless it runs; does not wait."""
        if self.process.pid() is not None:
            return
        ports = [self.port]
        if self.cluster.controller is None:
            ports.append(self.port + 1)
        if self.cluster.proxied:
            ports.append(self.port + BEHIND_PROXY)
        for number in ports:
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
        """Its properties, and its data directory formatted."""
        copies = len(self.cluster.brokers)
        behind = [f",PROXIED://{HOST}:{self.port + offset}" if self.cluster.proxied else ""
                  for offset in (BEHIND_PROXY, PROXY)]
        controller = self.cluster.controller
        voters = [(broker.node, broker.port + 1) for broker in self.cluster.brokers]
        if controller is not None:
            voters = [(controller.NODE, controller.port)]
        listens = "" if controller is not None else f",CONTROLLER://{HOST}:{self.port + 1}"
        return self.cluster.configure(self.node, {
            "process.roles": "broker" if controller is not None else "broker,controller",
            "controller.quorum.voters": ",".join(f"{node}@{HOST}:{port}" for node, port in voters),
            "listeners": f"PLAINTEXT://{HOST}:{self.port}{listens}{behind[0]}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port}{behind[1]}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT",
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
            **SESSION,
            # Smaller than the default, which alone would take half of the heap.
            "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
            **self.cluster.settings,
        })


def _java(main: str, *arguments: str, log: str = "") -> list[str]:
    """`log` names what tells more than warnings."""
    logging = {"defaultLogLevel": "warn", "showDateTime": "true", "dateTimeFormat": "HH:mm:ss.SSS"}
    if log:
        logging[f"log.{log}"] = "info"
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

"""One run of one scenario: names of its own for everything, and all of it removed afterwards."""

import json
import secrets
import shutil
import time
from pathlib import Path
from typing import Any, Callable, Iterable

import psycopg

from stack import extensions
from stack.kafka import Kafka
from stack.postgres import Postgres
from stack.registry import Registry
from stack.settings import HOST

from .checks import ScenarioFailed, ScenarioSkipped, check, equal, wait_for
from .command import Command
from .database import Database
from .own_registry import OwnRegistry
from .proxy import FaultProxy, Link
from .rest import Rest, quoted
from .topics import Cluster, Record, Schemas, Topic
from .worker import Connector, Worker, free_port, free_ports

# Everything on the shared services that a run makes begins so.
MARK = "tgtest"
# It has what needs quoting somewhere.
PASSWORD = "it's a \\ s3cret"


class Trial:
    """What a scenario's `run(t)` gets."""

    def __init__(self, name: str, folder: Path, directory: Path, postgres: Postgres, kafka: Kafka, registry: Registry):
        self.folder = folder
        self.directory = directory
        self.kafka = kafka
        self.registry: Registry | OwnRegistry = registry
        self._shared = (postgres, kafka, registry)
        plain = "".join(letter if letter.isalnum() else "_" for letter in name)[:30]
        # Database, role, slot, publication, prefix and group: one name for all is easy to find.
        self.name = f"{MARK}_{plain}_{secrets.token_hex(2)}"
        self.use(postgres)
        self.cluster = Cluster(kafka.address)
        self.schemas = Schemas(registry.address)
        self.workers: list[Worker] = []
        self._topics: dict[tuple[str, str], Topic] = {}
        self._undo: list[Callable[[], Any]] = []
        self._commands = 0

    # ------------------------------------------------------------ life
    def prepare(self) -> None:
        """Make the role, its database and what `setup.sql` says."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        self._create_source()

    def use(self, postgres: Postgres) -> None:
        """Talk to this server: as superuser to it and to the trial's database, and as the role that owns that."""
        self.postgres = postgres
        self.server = Database(postgres.address)
        self.admin = Database(postgres.address, dbname=self.name)
        self.source = Database(postgres.address, dbname=self.name, user=self.name, password=PASSWORD)

    def _create_source(self) -> None:
        server, databases = self.server, (self.source, self.admin, self.server)
        self.later(lambda: remove_source(server, self.name, databases))
        server.sql(f"create role {self.name} login replication password {_literal(PASSWORD)}",
                   f"create database {self.name} owner {self.name}")
        setup = self.folder / "setup.sql"
        if setup.exists():
            self.source.sql(setup.read_text())

    def later(self, undo: Callable[[], Any]) -> None:
        """Do something after the scenario, whatever becomes of it; last come, first done."""
        self._undo.append(undo)

    def own_server(self, **settings: str) -> None:
        """Use a server of this trial's own from here on, with these settings."""
        server = Postgres(self.postgres.major, name="postgres-own", at_port=free_port(), settings=settings)
        server.remove()
        self.later(server.remove)
        server.start()
        self.use(server)
        self._create_source()

    def own_kafka(self, brokers: int = 1, *, at_port: int | None = None, apart: bool = False, **settings: str) -> Kafka:
        """Use a cluster of this trial's own from here on, with these settings; underscores stand for dots. `apart`: its one
        broker can be killed without harm to transactions."""
        cluster = Kafka(brokers, name="kafka-own", at_port=at_port or free_ports(2 * brokers), settings=_dotted(settings),
                        apart=apart)
        shared = self.cluster

        def back() -> None:
            cluster.remove()
            self.cluster = shared

        cluster.remove()
        self.later(back)
        cluster.start()
        self.kafka, self.cluster = cluster, Cluster(cluster.address)
        return cluster

    def own_kafka_by_link(self) -> Link:
        """Use a broker of this trial's own that reaches itself through a link: so what it tells its partitions of ended transactions
        (the markers) can come late, while clients go past it."""
        proxy = FaultProxy()
        self.later(proxy.close)
        at_port, inner, outer = free_ports(2), free_port(), free_port()
        link = proxy.link(inner, outer)
        self.own_kafka(at_port=at_port, inter_broker_listener_name="PROXIED",
                       listeners=f"PLAINTEXT://{HOST}:{at_port},CONTROLLER://{HOST}:{at_port + 1},PROXIED://{HOST}:{inner}",
                       advertised_listeners=f"PLAINTEXT://{HOST}:{at_port},PROXIED://{HOST}:{outer}")
        return link

    def own_registry(self) -> OwnRegistry:
        """Use a registry of this trial's own from here on, one that faults can be ordered from."""
        registry = OwnRegistry(self.directory, free_port())
        registry.start()
        self.later(registry.kill)
        self.registry, self.schemas = registry, Schemas(registry.address)
        return registry

    def finish(self) -> None:
        """Remove everything. What fails does not keep the rest from being removed."""
        problems = []
        for worker in self.workers:
            worker.kill()
        for topic in self._topics.values():
            topic.close()
        starts = [part.start for part in self._shared]
        for action in [*starts, *reversed(self._undo), lambda: self.cluster.delete(self.cluster.topics(self.name))]:
            try:
                action()
            except Exception as error:  # the report names it
                problems.append(f"{type(error).__name__}: {error}")
        if problems:
            raise ScenarioFailed("cleaning up: " + "; ".join(problems))

    # ------------------------------------------------------------ the source
    def extension(self, name: str) -> None:
        """Create an extension that the server does not come with; where it cannot be had, the scenario is skipped."""
        if (reason := extensions.install(self.postgres, name)) is not None:
            raise ScenarioSkipped(reason)
        self.admin.sql(f"create extension {name}")

    def sql(self, *statements: str) -> None:
        """Run SQL as the role that owns the database; each text is one transaction."""
        self.source.sql(*statements)

    def query(self, statement: str, *parameters: Any) -> list[dict[str, Any]]:
        """Rows of a query as dictionaries."""
        return self.source.query(statement, *parameters)

    def rows(self, table: str, key: str) -> dict[str, dict[str, Any]]:
        """A table as `replay` would have it."""
        return {json.dumps({key: row[key]}): row for row in self.query(f"select * from {table}")}

    def slot(self) -> dict[str, Any] | None:
        """The connector's slot, if it exists."""
        found = self.server.query("select *, confirmed_flush_lsn::text as confirmed from pg_replication_slots "
                                  "where slot_name = %s", self.name)
        return found[0] if found else None

    def wait_streaming(self, timeout: float = 60) -> None:
        """Wait until the slot is being read: the snapshot is through. One that is just being made is in use, too."""
        reading = ("select state in ('catchup', 'streaming') from pg_stat_replication "
                   "join pg_replication_slots on active_pid = pid where slot_name = %s")
        wait_for(lambda: self.server.value(reading, self.name), timeout, "the stream of changes", self._aborted)

    def settle(self, timeout: float = 60) -> None:
        """Wait until all that is committed in the source now has been acknowledged to it, so is in Kafka."""
        position = self.server.value("select pg_current_wal_lsn()::text")
        wait_for(lambda: self.server.value("select confirmed_flush_lsn >= %s::pg_lsn from pg_replication_slots "
                                           "where slot_name = %s", position, self.name),
                 timeout, f"the slot's confirmation of {position}", self._aborted)

    # ------------------------------------------------------------ the worker
    def properties(self, **more: Any) -> dict[str, str]:
        """The worker's properties; underscores in `more` stand for dots."""
        registry = self.registry.address
        return {
            "bootstrap.servers": self.kafka.address,
            "group.id": self.name,
            "config.storage.directory": str(self.directory / "state"),
            "offset.storage.topic": f"{self.name}-offsets",
            "table.state.storage.topic": f"{self.name}-table-states",
            "offset.flush.interval.ms": "500",
            "key.converter": "io.confluent.connect.avro.AvroConverter",
            "key.converter.schema.registry.url": registry,
            "value.converter": "io.confluent.connect.avro.AvroConverter",
            "value.converter.schema.registry.url": registry,
        } | _dotted(more)

    def worker(self, *, start: bool = True, connectors: dict[str, str] | None = None, **more: Any) -> Worker:
        """A worker of this trial, started. Its state stays when another takes its place."""
        worker = Worker(self.directory, self.properties(**more), connectors)
        self.workers.append(worker)
        return worker.start() if start else worker

    def config(self, **more: Any) -> dict[str, Any]:
        """The connector's configuration: the base, `connector.json` over it, `more` over both (None removes)."""
        base = {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "database.hostname": HOST,
            "database.port": str(self.postgres.port),
            "database.user": self.name,
            "database.password": PASSWORD,
            "database.dbname": self.name,
            "topic.prefix": self.name,
            "slot.name": self.name,
            "publication.name": self.name,
            "publication.autocreate.mode": "filtered",
            "topic.creation.default.partitions": "1",
            "topic.creation.default.replication.factor": "1",
            # Scenarios that break something do not want to wait as long as an operator would.
            "retriable.restart.connector.wait.ms": "200",
            "errors.retry.delay.max.ms": "1000",
        }
        file = self.folder / "connector.json"
        merged = base | (json.loads(file.read_text()) if file.exists() else {}) | _dotted(more)
        return {key: value for key, value in merged.items() if value is not None}

    def connector_file(self, **more: Any) -> Path:
        """The connector as a file for the command line."""
        path = self.directory / "connector.json"
        path.write_text(json.dumps({"name": self.name, "config": self.config(**more)}))
        return path

    def command(self, *arguments: object, **environment: str) -> Command:
        """A command of the program, started. It is killed at the end if it runs then."""
        self._commands += 1
        command = Command(self.directory, f"command-{self._commands}", *arguments, environment=environment)
        self.later(command.kill)
        return command

    def connect(self, worker: Worker | None = None, **more: Any) -> Connector:
        """Create the connector on the worker (a new one by default) and wait until it streams."""
        connector = (worker or self.worker()).create(self.name, self.config(**more))
        self.wait_streaming()
        return connector

    def refused(self, worker: Worker, config: dict[str, Any], *codes: str) -> str:
        """It is not taken (400), or FAILED and then deleted, with one of the codes in the text that this returns."""
        answer = worker.rest("POST", "/connectors", {"name": self.name, "config": config}, timeout=90)
        if answer.status == 201:
            text = worker.connector(self.name).wait_failed()
            worker.connector(self.name).delete()
        else:
            equal(answer.status, 400, f"status of POST /connectors ({answer.message})")
            text = answer.message
            equal(worker.rest("GET", "/connectors").body, [], "connectors")
        check(any(code in text for code in codes), f"it is refused with {' or '.join(codes)}: {text}")
        check(PASSWORD not in text and PASSWORD not in worker.log_text(), "the password is not shown")
        return text

    def _aborted(self) -> str | None:
        if not self.workers:
            return None
        return self.workers[-1].connector(self.name).failed()

    # ------------------------------------------------------------ Kafka
    def topic(self, table: str, isolation: str = "read_committed") -> Topic:
        """The topic of a table, `public.` understood if there is no schema."""
        return self.topic_named(f"{self.name}.{table if '.' in table else f'public.{table}'}", isolation)

    def topic_named(self, name: str, isolation: str = "read_committed") -> Topic:
        """Any topic."""
        key = (name, isolation)
        if key not in self._topics:
            self._topics[key] = Topic(self.kafka.address, name, self.schemas, isolation)
        return self._topics[key]

    def records(self, table: str, count: int, timeout: float = 60) -> list[Record]:
        """Wait until a table's topic has at least so many records; returns all."""
        topic = self.topic(table)
        return wait_for(lambda: found if len(found := topic.read()) >= count else None, timeout,
                        f"{count} records in {topic.name}", self._aborted)

    def settled_records(self, table: str) -> list[Record]:
        """All records of a table's topic once everything committed so far is in."""
        self.settle()
        return self.topic(table).read()

    def set_level(self, subject: str, level: str) -> None:
        """A subject's compatibility level in the registry."""
        answer = Rest(self.registry.address)("PUT", f"/config/{quoted(subject)}", {"compatibility": level})
        equal(answer.status, 200, f"status of the registry's PUT config ({answer.message})")

    # ------------------------------------------------------------ expectations that many share
    def nothing_left(self) -> None:
        """No slot, no publication and no data topic exists."""
        check(self.slot() is None, f"no slot is left; there is {self.slot()}")
        equal(self.admin.query("select pubname from pg_publication"), [], "publications left")
        equal(self.cluster.topics(f"{self.name}."), [], "topics left")

    def exactly_once(self, records: list[Record]) -> None:
        """Every change occurs once, and in the source's order within each partition."""
        seen: dict[tuple[int, ...], Record] = {}
        last: dict[int, tuple[int, ...]] = {}
        for record in records:
            if record.value is not None and record.op == "r":
                continue
            place = position(record)
            if place in seen:
                raise ScenarioFailed(f"position {place} twice: {seen[place]} and {record}")
            seen[place] = record
            if place <= last.get(record.partition, ()):
                raise ScenarioFailed(f"position {place} after {last[record.partition]} in partition {record.partition}")
            last[record.partition] = place


def position(record: Record) -> tuple[int, int, int]:
    """(commit LSN, sequence in the transaction, part) from the record's headers."""
    texts = [record.extension(name) for name in ("commit_lsn", "tx_seq", "part")]
    check(None not in texts, f"the record has the headers of its position; it is {record}")
    return tuple(_number(text) for text in texts)  # type: ignore[return-value]


def remove_source(server: Database, name: str, databases: Iterable[Database] = ()) -> None:
    """Drop a trial's slots, database and role, and close what is connected to them."""
    remove_slots(server, name)
    for database in databases:
        if database is not server:
            database.close()
    server.sql(f"drop database if exists {name} with (force)", f"drop role if exists {name}")
    server.close()


def remove_slots(server: Database, name: str) -> None:
    """Drop the slots of a database or of that name; their readers are ended first."""
    deadline = time.monotonic() + 20
    where = "where database = %s or slot_name = %s"
    while found := server.query(f"select slot_name, active_pid from pg_replication_slots {where}", name, name):
        for slot in found:
            try:
                if slot["active_pid"]:
                    server.query("select pg_terminate_backend(%s)", slot["active_pid"])
                server.query("select pg_drop_replication_slot(%s)", slot["slot_name"])
            except psycopg.Error:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)


def _number(text: str) -> int:
    """A position: plain, or in the server's notation X/Y."""
    high, slash, low = text.strip('"').partition("/")
    return (int(high, 16) << 32 | int(low, 16)) if slash else int(high)


def _literal(text: str) -> str:
    return "E'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _dotted(more: dict[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "."): value for key, value in more.items()}

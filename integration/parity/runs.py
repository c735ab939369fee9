"""One case on its way through the workers: the same statements at the same time, and all that comes out."""

import itertools
import time
from dataclasses import dataclass, field
from typing import Any, Callable

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from harness.checks import ScenarioFailed
from harness.connect import Connect
from harness.topics import Cluster
from harness.worker import Connector
from stack.settings import StackError

from .cases import DATABASE, PREFIX, Case
from .ground import Ground, connection, converters
from .images import Raw

# Debezium says nothing of what it has passed over: silence of so many seconds is taken for the end.
QUIET, PATIENCE = 0.7, 6.0
TIMEOUT = 120.0
# What Tidegate is told besides: where its defaults are others on purpose, and comparing has no use for that.
AS_DEBEZIUM = {"before.unsent": "fill", "skipped.operations": "t"}
# What passes on a loaded machine is tried again, for ever: only what is definite is an outcome.
PATIENT = {"producer.override.transaction.timeout.ms": "600000", "errors.max.retries": "-1"}
PASSING = ("TG-E-KAFKA-UNREACHABLE", "TG-E-KAFKA-CLIENT", "TG-E-SOURCE-UNREACHABLE", "TG-E-REGISTRY-UNREACHABLE")

_numbers = itertools.count()


def token(first: str, length: int) -> str:
    """A name of so many letters that no text of a case holds, another each time."""
    # Without letters that begin a name, so that none is part of another.
    number, digits = next(_numbers), "0123456789abcdefghijklmnop"
    text = ""
    while len(text) < length - 1:
        number, digit = divmod(number, len(digits))
        text = digits[digit] + text
    return first + text


@dataclass
class Clock:
    """Time in which something could have happened: a machine that stood still has not kept anybody waiting."""

    seconds: float = 0.0
    _last: float = field(default_factory=time.monotonic)

    def tick(self) -> float:
        """Seconds so far."""
        now = time.monotonic()
        self.seconds += min(now - self._last, 0.3)
        self._last = now
        return self.seconds


@dataclass
class Side:
    """One connector for the case, and what has come of it."""

    worker: str
    mode: str
    token: str
    connector: Connector | None = None
    topics: "Topics | None" = None
    # Records before the workload.
    border: int = 0
    refused: str | None = None
    failed: str | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.connector is None or self.failed is not None


class Topics:
    """All topics of one connector, read as they come."""

    def __init__(self, bootstrap: str, own: Callable[[str], bool], heartbeat: str):
        self._own, self._heartbeat = own, heartbeat
        self._next: dict[tuple[str, int], int] = {}
        self._ends: dict[tuple[str, int], int] = {}
        self.records: list[Raw] = []
        common = {"bootstrap.servers": bootstrap, "group.id": "parity", "log_level": 0, "enable.auto.commit": False}
        self._consumer = Consumer({**common, "isolation.level": "read_committed", "enable.partition.eof": True,
                                   "fetch.wait.max.ms": 20, "receive.message.max.bytes": 2_000_000_000})
        self._uncommitted = Consumer({**common, "isolation.level": "read_uncommitted"})

    def read_all(self) -> int:
        """Read until nothing is left that is not committed: a transaction is over before its marks are in every topic."""
        clock = Clock()
        while True:
            count = self.read()
            ends = {place: self._uncommitted.get_watermark_offsets(TopicPartition(*place), timeout=20)[1] for place in self._ends}
            if all(self._ends[place] >= end for place, end in ends.items()):
                return count
            if clock.tick() > TIMEOUT:
                raise ScenarioFailed(f"transactions stay open: {ends}, read up to {self._ends}")
            time.sleep(0.05)

    def read(self) -> int:
        """Read to where they end now; returns the number of records so far, without heartbeats: these never end."""
        found = self._consumer.list_topics(timeout=20).topics
        waiting = {(name, number) for name, topic in found.items() if self._own(name) for number in topic.partitions}
        self._consumer.assign([TopicPartition(*place, self._next.get(place, OFFSET_BEGINNING)) for place in waiting])
        clock = Clock()
        while waiting:
            for message in self._consumer.consume(1000, 0.1):
                error = message.error()
                place = (message.topic(), message.partition())
                if error is None:
                    self._next[place] = message.offset() + 1
                    kind, stamp = message.timestamp()
                    self.records.append(Raw(*place, message.offset(), stamp if kind else None, message.key(), message.value(),
                                            message.headers() or []))
                elif error.code() == KafkaError._PARTITION_EOF:
                    waiting.discard(place)
                    self._ends[place] = message.offset()
            if clock.tick() > TIMEOUT:
                raise ScenarioFailed(f"the end of {sorted(waiting)} was not reached")
        self._consumer.unassign()
        return sum(record.topic != self._heartbeat for record in self.records)

    def close(self) -> None:
        """Let go of the consumers."""
        self._consumer.close()
        self._uncommitted.close()


class Run:
    """One case with its own database; the sides share it."""

    def __init__(self, ground: Ground, case: Case, sides: list[Side]):
        self.ground, self.case, self.sides = ground, case, sides
        self.database = token("z", len(DATABASE))
        self._before = frozenset(Cluster(ground.kafka.address).topics(""))

    def run(self, foreign: frozenset[str] = frozenset()) -> None:
        """Everything; what came is in the sides afterwards. `foreign` are topics without the prefix."""
        try:
            self.ground.server.connect().close()
            with self.ground.server.session() as session:
                session.execute(f"create database {self.database} template template0")
            self.ground.psql(self.database, self._sql(self.case.setup))
            refused = set()
            for side in sorted(self.sides, key=lambda side: side.worker, reverse=True):
                # What the worker refuses there is no need to have from the other.
                if side.mode not in refused:
                    self._create(side, foreign)
                if side.refused is not None:
                    refused.add(side.mode)
            for side in self.sides:
                self._wait_streaming(side)
            self._settle()
            for side in self.sides:
                side.border = len(side.topics.records) if side.topics else 0
            self._workload()
        finally:
            self._remove()

    # ------------------------------------------------------------ connectors
    def config(self, side: Side) -> dict[str, str]:
        """The case's configuration with addresses, formats and names of this run."""
        case, mode = self.case, side.mode
        config = {key: value.replace(PREFIX, side.token) for key, value in case.config.items()
                  if not key.startswith(("key.converter", "value.converter"))}
        # With an Avro converter Debezium adjusts names by itself.
        if case.adjusts_for_avro and mode != "avro":
            config.setdefault("field.name.adjustment.mode", "avro")
        elif not case.adjusts_for_avro and mode == "avro":
            config.setdefault("field.name.adjustment.mode", "none")
        config |= connection(self.ground, self.database) | converters(self.ground, mode) | {"slot.name": self._slot(side)}
        if config.get("publication.autocreate.mode") != "disabled":
            config["publication.name"] = f"{side.token}_pub"
        defaults = {"tasks.max": "1", "errors.max.retries": "0", "poll.interval.ms": "40",
                    "topic.creation.default.replication.factor": "1", "topic.creation.default.retention.ms": "-1",
                    "topic.creation.default.partitions": str(case.partitions)}
        if side.worker == "tidegate":
            defaults |= AS_DEBEZIUM | PATIENT | {"schema.changes.topic": f"{side.token}-schema-changes"}
        return {**defaults, **config, **(case.worker if side.worker == "tidegate" else {})}

    def _slot(self, side: Side) -> str:
        return f"{side.token}_slot"

    def _create(self, side: Side, foreign: frozenset[str]) -> None:
        prefix = self.case.config["topic.prefix"].replace(PREFIX, side.token)
        delimiter = self.case.config.get("topic.delimiter", ".")
        heartbeat = self.case.heartbeats + prefix
        routed = frozenset(name.replace(PREFIX, side.token) for name in foreign)

        changes = f"{side.token}-schema-changes"

        def own(topic: str) -> bool:
            return topic != changes and (topic.startswith(prefix + delimiter) or topic == heartbeat or topic in routed - self._before)
        side.topics = Topics(self.ground.kafka.address, own, heartbeat)
        for _ in range(10):
            answer = self._call(side, "POST", "/connectors", {"name": side.token, "config": self.config(side)})
            if answer.status == 201 or not any(code in answer.message for code in PASSING):
                break
        if answer.status == 201:
            side.connector = self.ground.workers[side.worker].connector(side.token)
        else:
            side.refused = answer.message

    def _call(self, side: Side, method: str, path: str, body: Any = None) -> Any:
        worker = self.ground.workers[side.worker]
        if isinstance(worker, Connect):
            return worker.persist(method, path, body)
        return worker.rest(method, path, body, timeout=300)

    def _put(self, side: Side, action: str) -> None:
        answer = self._call(side, "PUT", f"/connectors/{side.token}/{action}")
        if answer.status not in (202, 204):
            raise ScenarioFailed(f"{side.worker} answers {action} with {answer.status} {answer.message}")

    def _wait(self, side: Side, what: str, condition: Callable[[], Any]) -> None:
        """Until the condition holds, or the side is over."""
        clock, asked = Clock(), 0.0
        while not side.over and not condition():
            if clock.tick() > TIMEOUT:
                raise ScenarioFailed(f"{side.worker} ({side.mode}): waited {TIMEOUT:g} s for {what}")
            if clock.seconds - asked > 0.5 and side.connector is not None:
                asked = clock.seconds
                side.failed = side.connector.trace()
                if reason := self.ground.workers[side.worker].ended():
                    raise StackError(reason)
            time.sleep(0.05)

    def _wait_streaming(self, side: Side) -> None:
        if self.case.streams:
            reading = ("select 1 from pg_stat_replication join pg_replication_slots on active_pid = pid "
                       "where slot_name = %s and state = 'streaming'")
            self._wait(side, "the stream of changes", lambda: self._ask(reading, self._slot(side)))
        else:
            self._wait(side, "its task", lambda: len(side.connector.states()) > 1)  # type: ignore[union-attr]

    def _ask(self, statement: str, *parameters: Any) -> Any:
        """One value, by a connection of its own: runs are at work side by side."""
        with self.ground.server.session() as session:
            row = session.execute(statement, parameters).fetchone()
            return None if row is None else next(iter(row.values()))

    # ------------------------------------------------------------ the workload
    def _workload(self) -> None:
        steps = self.case.steps
        stopped = False
        for word, argument in steps:
            if word == "sql":
                self.ground.psql(self.database, self._sql(argument))
            elif word == "sleep":
                time.sleep(int(argument) / 1000)
            elif word in ("wait", "stop"):
                self._settle()
                if word == "stop":
                    self._each("stop", ["STOPPED"])
                    stopped = True
            else:
                self._each("resume", ["RUNNING", "RUNNING"])
                stopped = False
                for side in self.sides:
                    self._wait_streaming(side)
        if steps and not stopped:
            self._settle()

    def _each(self, action: str, states: list[str]) -> None:
        for side in self.sides:
            if not side.over:
                self._put(side, action)
        for side in self.sides:
            self._wait(side, f"{action}", lambda side=side: side.connector.states() == states)

    def _sql(self, text: str) -> str:
        return text.replace(f"database {DATABASE} ", f"database {self.database} ")

    def _settle(self) -> None:
        """Wait until all that is committed in the source is in Kafka, and read it."""
        # The log's end may be in the middle of a record that is being written beside.
        goal = self.ground.log_end() if self.case.streams else None
        counts: dict[str, int] = {}
        for side in sorted(self.sides, key=lambda side: side.worker, reverse=True):
            if side.topics is None or side.connector is None:
                continue
            if side.worker == "tidegate" and goal is not None:
                confirmed = "select confirmed_flush_lsn >= %s::pg_lsn from pg_replication_slots where slot_name = %s"
                self._wait(side, f"its confirmation of {goal}", lambda: self._ask(confirmed, goal, self._slot(side)))
                counts[side.mode] = side.topics.read_all()
            else:
                self._settle_quiet(side, goal, counts.get(side.mode, 0))

    def _settle_quiet(self, side: Side, goal: str | None, wanted: int) -> None:
        assert side.topics is not None
        if goal is not None:
            sent = ("select sent_lsn >= %s::pg_lsn from pg_stat_replication join pg_replication_slots on active_pid = pid "
                    "where slot_name = %s")
            self._wait(side, f"{goal} sent", lambda: self._ask(sent, goal, self._slot(side)))
        clock, since, count = Clock(), 0.0, side.topics.read()
        while clock.tick() - since < (QUIET if count >= wanted and goal is not None else PATIENCE):
            time.sleep(0.1)
            if (now := side.topics.read()) > count:
                since, count = clock.tick(), now

    # ------------------------------------------------------------ the end
    def _remove(self) -> None:
        for side in self.sides:
            if side.connector is not None and side.failed is None:
                side.failed = side.connector.trace()
            if side.connector is not None:
                self._call(side, "DELETE", f"/connectors/{side.token}")
        names = [self._slot(side) for side in self.sides]
        clock = Clock()
        while found := self._rows("select slot_name, active_pid from pg_replication_slots where slot_name = any(%s)", names):
            for row in found:
                if row["active_pid"]:
                    self._ask("select pg_terminate_backend(%s)", row["active_pid"])
                else:
                    self._ask("select pg_drop_replication_slot(%s)", row["slot_name"])
            if clock.tick() > 20:
                raise ScenarioFailed(f"slots {names} cannot be dropped")
            time.sleep(0.1)
        with self.ground.server.session() as session:
            session.execute(f"drop database if exists {self.database} with (force)")
        written = {record.topic for side in self.sides if side.topics for record in side.topics.records}
        for side in self.sides:
            if side.topics is not None:
                side.topics.close()
        cluster = Cluster(self.ground.kafka.address)
        cluster.delete([topic for topic in cluster.topics("")
                        if topic in written or any(topic.startswith(side.token) for side in self.sides)])

    def _rows(self, statement: str, *parameters: Any) -> list[dict[str, Any]]:
        with self.ground.server.session() as session:
            return session.execute(statement, parameters).fetchall()  # type: ignore[return-value]

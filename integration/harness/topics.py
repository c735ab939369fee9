"""What a reader of the topics sees: records decoded from Confluent-framed Avro, and the table they add up to."""

import io
import json
import struct
import time
import urllib.request
from dataclasses import dataclass, field
from typing import Any, Iterable

import fastavro
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from .checks import ScenarioFailed

EXTENSION = "__tidegate."


@dataclass(frozen=True)
class Record:
    """One record. `raw_value` None is a tombstone."""

    topic: str
    partition: int
    offset: int
    key: Any
    value: Any
    headers: dict[str, str]
    raw_key: bytes | None = field(repr=False)
    raw_value: bytes | None = field(repr=False)
    key_schema: int | None = field(repr=False)
    value_schema: int | None = field(repr=False)

    @property
    def tombstone(self) -> bool:
        """No value at all."""
        return self.raw_value is None

    @property
    def op(self) -> str | None:
        """c, u, d, r or t of an envelope; None for a tombstone."""
        return None if self.value is None else self.value["op"]

    @property
    def before(self) -> Any:
        """The envelope's old image."""
        return None if self.value is None else self.value["before"]

    @property
    def after(self) -> Any:
        """The envelope's new image."""
        return None if self.value is None else self.value["after"]

    def extension(self, name: str) -> str | None:
        """A header of ours, without its prefix."""
        return self.headers.get(EXTENSION + name)


class Schemas:
    """Schemas of one registry by id, each fetched once."""

    def __init__(self, url: str):
        self.url = url
        self._parsed: dict[int, Any] = {}

    def text(self, number: int) -> str:
        """The schema as registered."""
        with urllib.request.urlopen(f"{self.url}/schemas/ids/{number}", timeout=10) as answer:
            return json.load(answer)["schema"]

    def decode(self, raw: bytes | None) -> tuple[int | None, Any]:
        """(id, value) of one framed datum; every byte must be used."""
        if raw is None:
            return None, None
        if len(raw) < 5 or raw[0] != 0:
            raise ScenarioFailed(f"not framed for a registry: {raw[:16]!r}")
        number = struct.unpack(">I", raw[1:5])[0]
        if number not in self._parsed:
            self._parsed[number] = fastavro.parse_schema(json.loads(self.text(number)))
        body = io.BytesIO(raw[5:])
        value = fastavro.schemaless_reader(body, self._parsed[number])
        if body.read(1):
            raise ScenarioFailed(f"bytes are left over after the datum of schema {number}: {raw!r}")
        return number, value


class Topic:
    """One topic, read from its beginning and remembered."""

    def __init__(self, bootstrap: str, name: str, schemas: Schemas, isolation: str = "read_committed"):
        self.bootstrap = bootstrap
        self.name = name
        self.schemas = schemas
        self._next: dict[int, int] = {}
        self._records: list[Record] = []
        self._consumer = Consumer({
            "bootstrap.servers": bootstrap, "group.id": "harness", "isolation.level": isolation,
            "enable.auto.commit": False, "enable.partition.eof": True, "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 20, "receive.message.max.bytes": 2_000_000_000, "topic.metadata.refresh.interval.ms": 500,
            "reconnect.backoff.max.ms": 500, "log_level": 0,
        })

    def partitions(self) -> list[int]:
        """Its partitions; none while it does not exist."""
        while True:
            found = self._consumer.list_topics(self.name, timeout=20).topics[self.name]
            if found.error is None:
                return sorted(found.partitions)
            if found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return []
            # A leader is being elected.
            time.sleep(0.1)

    def read(self, timeout: float = 60) -> list[Record]:
        """Everything up to where it ends now, in order of partition and offset."""
        waiting = set(self.partitions())
        if not waiting:
            return []
        self._consumer.assign([TopicPartition(self.name, number, self._next.get(number, OFFSET_BEGINNING))
                               for number in waiting])
        deadline = time.monotonic() + timeout
        while waiting:
            for message in self._consumer.consume(1000, 0.1):
                error = message.error()
                if error is None:
                    self._take(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    waiting.discard(message.partition())
                elif error.fatal():
                    raise ScenarioFailed(f"reading {self.name}: {error}")
            if time.monotonic() > deadline:
                raise ScenarioFailed(f"the end of {self.name}, partitions {sorted(waiting)}, was not reached in {timeout:g} s")
        self._consumer.unassign()
        self._records.sort(key=lambda record: (record.partition, record.offset))
        return list(self._records)

    def close(self) -> None:
        """Let go of the consumer."""
        self._consumer.close()

    def _take(self, message: Any) -> None:
        key_schema, key = self.schemas.decode(message.key())
        value_schema, value = self.schemas.decode(message.value())
        headers = {name: (raw or b"").decode("utf-8", "replace") for name, raw in message.headers() or []}
        self._next[message.partition()] = message.offset() + 1
        self._records.append(Record(self.name, message.partition(), message.offset(), key, value, headers,
                                    message.key(), message.value(), key_schema, value_schema))


class Cluster:
    """Topics as an administrator sees them."""

    def __init__(self, bootstrap: str):
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def topics(self, beginning: str) -> list[str]:
        """Names that begin so."""
        return sorted(name for name in self._admin.list_topics(timeout=20).topics if name.startswith(beginning))

    def in_sync(self) -> bool:
        """Whether each partition has a leader and all its replicas are in sync."""
        found = self._admin.list_topics(timeout=20)
        return all(partition.leader >= 0 and set(partition.isrs) == set(partition.replicas)
                   for topic in found.topics.values() for partition in topic.partitions.values())

    def delete(self, names: Iterable[str]) -> None:
        """Delete topics; those that are gone already are no error."""
        for future in self._admin.delete_topics(list(names), operation_timeout=20).values() if names else []:
            try:
                future.result()
            except Exception as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise


def key_text(key: Any) -> str:
    """A key as text, equal for equal keys."""
    return json.dumps(key, sort_keys=True, ensure_ascii=False, default=str)


def replay(records: Iterable[Record]) -> dict[str, Any]:
    """The table that a reader who keeps the newest row of each key ends up with."""
    rows: dict[str, Any] = {}
    for record in records:
        if record.op == "t":
            rows.clear()
        elif record.after is None:
            rows.pop(key_text(record.key), None)
        else:
            rows[key_text(record.key)] = record.after
    return rows

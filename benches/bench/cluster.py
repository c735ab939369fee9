"""The broker and the registry: topics for a run, how far they are, and the records in them."""

import contextlib
import json
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any, Iterable

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from stack.settings import ROOT

TOPIC = {"message.timestamp.type": "LogAppendTime", "retention.ms": "-1", "segment.bytes": str(1 << 30)}


class Topics:
    """Topics of one benchmark, all below one prefix."""

    def __init__(self, bootstrap: str):
        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "tidegate-bench", "log_level": 0,
                                 "isolation.level": "read_committed", "enable.auto.commit": False,
                                 "enable.partition.eof": True, "fetch.wait.max.ms": 5,
                                 "receive.message.max.bytes": 200_000_000})

    def create(self, names: list[str]) -> None:
        """Fresh topics of one partition, with the broker's time on each batch."""
        for at in range(0, len(names), 500):
            new = [NewTopic(name, num_partitions=1, replication_factor=1, config=TOPIC) for name in names[at:at + 500]]
            for future in self._admin.create_topics(new, operation_timeout=120).values():
                future.result()

    def forget(self, beginnings: Iterable[str]) -> None:
        """Delete what begins so."""
        found = [name for name in self._admin.list_topics(timeout=20).topics if name.startswith(tuple(beginnings))]
        for future in self._admin.delete_topics(found, operation_timeout=60).values() if found else []:
            with contextlib.suppress(KafkaException):
                future.result()

    def committed(self, topic: str) -> int:
        """The last stable offset: what a `read_committed` reader may read up to. Commit markers count, too."""
        try:
            return self._reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=10, cached=False)[1]
        except KafkaException:
            return 0

    def committed_sum(self, topics: list[str]) -> int:
        """The last stable offsets of all topics together."""
        if len(topics) == 1:
            return self.committed(topics[0])
        wanted = {TopicPartition(topic, 0): OffsetSpec.latest() for topic in topics}
        futures = self._admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=30)
        return sum(future.result().offset for future in futures.values())

    def last_number(self, topic: str, end: int) -> int | None:
        """The number in the key of the last record before the offset `end`."""
        for back in (3, 50):
            self._reader.assign([TopicPartition(topic, 0, max(0, end - back))])
            last, deadline = None, time.monotonic() + 5
            while time.monotonic() < deadline:
                message = self._reader.poll(0.5)
                if message is None:
                    continue
                if message.error():
                    if message.error().code() == KafkaError._PARTITION_EOF:
                        break
                    raise KafkaException(message.error())
                last = number_in_key(message.key())
            if last is not None:
                return last
        return None

    def some(self, topic: str, start: int, count: int) -> list[Any]:
        """A few records from an offset on."""
        self._reader.assign([TopicPartition(topic, 0, start)])
        found: list[Any] = []
        while len(found) < count:
            message = self._reader.poll(2)
            if message is None or message.error():
                break
            found.append(message)
        return found


def number_in_key(key: bytes | None) -> int | None:
    """The first field of a framed Avro key."""
    if not key or key[0] != 0:
        return None
    value, shift = 0, 0
    for byte in key[5:]:
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)
        shift += 7
    return None


class Tools:
    """The compiled helper; see benches/tools."""

    def __init__(self, bootstrap: str):
        self._bootstrap = bootstrap
        self._program = self._find()

    @staticmethod
    def _find() -> Path:
        done = subprocess.run(["cargo", "build", "--release", "--bench", "bench_tools", "--message-format=json"], cwd=ROOT,
                              stdout=subprocess.PIPE, text=True, check=True)
        for line in done.stdout.splitlines():
            message = json.loads(line)
            if message.get("reason") == "compiler-artifact" and message["target"]["name"] == "bench_tools":
                return Path(message["executable"])
        raise RuntimeError("cargo did not say where bench_tools is")

    def command(self, name: str, *arguments: str) -> list[str]:
        """The command line."""
        return [str(self._program), name, "--bootstrap", self._bootstrap, *arguments]

    def run(self, name: str, *arguments: str) -> dict[str, Any]:
        """Run it to its end."""
        done = subprocess.run(self.command(name, *arguments), capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"bench_tools {name}: {done.stderr.strip()}")
        return json.loads(done.stdout)


def delete_subjects(registry: str, beginning: str) -> None:
    """Remove a run's schemas, so that a registry's size does not grow with the runs."""
    with urllib.request.urlopen(f"{registry}/subjects", timeout=20) as answer:
        subjects = [subject for subject in json.load(answer) if subject.startswith(beginning)]
    for subject in subjects:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(urllib.request.Request(f"{registry}/subjects/{subject}", method="DELETE"), timeout=20)

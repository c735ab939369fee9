#!/usr/bin/env python3
"""Keeps a copy of one captured table in SQLite, from a topic in Avro. docs/consumers.md explains each rule.

    pip install confluent-kafka fastavro
    docs/examples/consumer.py --bootstrap localhost:9092 --registry http://localhost:8081 --topic shop.public.orders copy.db

The copy is exact: a row and the place in the topic up to which it is known are in one SQLite transaction. Ended at any
moment and started again, it goes on where it was.
"""

import argparse
import base64
import io
import json
import sqlite3
import struct
import urllib.request

import fastavro
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

TABLES = """
create table if not exists rows (key text primary key, row text not null, unknown text not null, at text not null);
create table if not exists offsets (partition integer primary key, next integer not null);
create table if not exists truncated (at text not null);
create table if not exists gone (row text not null, unknown text not null, at text not null);
"""


class Schemas:
    """Decodes Confluent's framing: a zero byte, the schema's id in four bytes, the Avro datum."""

    def __init__(self, registry: str):
        self._registry, self._known = registry.rstrip("/"), {}

    def decode(self, raw: bytes | None):
        if raw is None:
            return None
        number = struct.unpack(">xI", raw[:5])[0]
        if number not in self._known:
            with urllib.request.urlopen(f"{self._registry}/schemas/ids/{number}") as answer:
                self._known[number] = fastavro.parse_schema(json.loads(json.load(answer)["schema"]))
        return fastavro.schemaless_reader(io.BytesIO(raw[5:]), self._known[number])


def text(value) -> str:
    """JSON, the same for the same value; bytes in Base64, exact decimals and times as text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False,
                      default=lambda one: base64.b64encode(one).decode() if isinstance(one, bytes) else str(one))


def position(headers: dict[str, str]) -> str:
    """Where in the source's log the change is, as a text that sorts: its commit, and its number in the transaction."""
    high, _, low = headers.get("__tidegate.commit_lsn", "0/0").rpartition("/")
    commit = int(high or "0", 16) << 32 | int(low, 16)
    return f"{commit:020d}.{int(headers.get('__tidegate.tx_seq', '0')):010d}"


class Copy:
    """The table as the records add up to it."""

    def __init__(self, path: str):
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.executescript(TABLES)

    def offset(self, partition: int) -> int:
        """Where to go on."""
        found = self.db.execute("select next from offsets where partition = ?", [partition]).fetchone()
        return found[0] if found else OFFSET_BEGINNING

    def apply(self, key, value, headers: dict[str, str]) -> None:
        """One record."""
        at, key = position(headers), text(key)
        # A truncate is in one partition only. What the others still bring from before it is gone, too.
        truncated = self.db.execute("select coalesce(max(at), '') from truncated").fetchone()[0]
        if value is None:
            # A tombstone follows its delete. In a compacted topic it may be all that is left of it.
            self.db.execute("delete from rows where key = ?", [key])
        elif "op" not in value:
            raise SystemExit("the records are no envelopes (ExtractNewRecordState?); what they leave out is needed here")
        elif value["op"] == "t":
            self.db.execute("delete from rows where at < ?", [at])
            self.db.execute("delete from truncated")
            self.db.execute("insert into truncated values (?)", [max(at, truncated)])
        elif value["op"] == "d":
            # With __tidegate.scope=moved_out the row exists in the source, but the connector's filter no longer takes it.
            # What goes is kept for a moment: of a change of the key it is the first half.
            self.db.execute("delete from gone")
            self.db.execute("insert into gone select row, unknown, ? from rows where key = ?", [at, key])
            self.db.execute("delete from rows where key = ?", [key])
        elif value["op"] in ("c", "u", "r") and at >= truncated:
            # With __tidegate.scope=moved_in it is a create here and was an update there.
            self._put(key, value["after"], headers, at)

    def _before(self, key: str, at: str) -> tuple[dict, list[str]] | None:
        """The row that a change found; if its key was another, the row that the same change has deleted."""
        found = self.db.execute("select row, unknown from rows where key = ? union all select row, unknown from gone where at = ?",
                                [key, at]).fetchone()
        return found and (json.loads(found[0]), found[1].split(","))

    def _put(self, key: str, after: dict, headers: dict[str, str], at: str) -> None:
        """The merge rule: what the source did not send is what was known of the row before."""
        missing = [name for name in headers.get("__tidegate.unavailable", "").split(",") if name]
        row, unknown = json.loads(text(after)), []
        if missing:
            before = self._before(key, at)
            for name in missing:
                if before is None or name in before[1]:
                    unknown.append(name)  # as __tidegate.unmergeable says: the marker stays, and is known to be one
                else:
                    row[name] = before[0][name]
        self.db.execute("insert or replace into rows values (?, ?, ?, ?)", [key, text(row), ",".join(unknown), at])


def follow(arguments: argparse.Namespace) -> int:
    """Read the topic; returns the number of records once its end is reached, if that was asked for."""
    copy, schemas = Copy(arguments.copy), Schemas(arguments.registry)
    consumer = Consumer({
        "bootstrap.servers": arguments.bootstrap, "group.id": "copy", "enable.auto.commit": False,
        # Without this, records of transactions that were given up would be read, and read again.
        "isolation.level": "read_committed", "enable.partition.eof": True, "receive.message.max.bytes": 2_000_000_000})
    topic = consumer.list_topics(arguments.topic, timeout=30).topics[arguments.topic]
    if topic.error is not None:
        raise SystemExit(f"{arguments.topic}: {topic.error.str()}")
    waiting, count = set(topic.partitions), 0
    consumer.assign([TopicPartition(arguments.topic, number, copy.offset(number)) for number in waiting])
    while waiting or not arguments.until_end:
        messages = consumer.consume(500, 1.0)
        copy.db.execute("begin")
        for message in messages:
            if message.error() is None:
                headers = {name: (raw or b"").decode() for name, raw in message.headers() or []}
                copy.apply(schemas.decode(message.key()), schemas.decode(message.value()), headers)
                copy.db.execute("insert or replace into offsets values (?, ?)", [message.partition(), message.offset() + 1])
                count += 1
            elif message.error().code() == KafkaError._PARTITION_EOF:
                waiting.discard(message.partition())
            else:
                raise KafkaException(message.error())
        copy.db.execute("commit")
    consumer.close()
    return count


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("bootstrap", "registry", "topic"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--until-end", action="store_true", help="end where the topic ends now")
    parser.add_argument("copy", help="the SQLite file")
    print(f"{follow(parser.parse_args())} records")

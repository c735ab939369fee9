"""The demonstration: changes of a real PostgreSQL arrive on a real Kafka as Avro, and are checked.

Starts a worker, submits connector-config/demo.json to its REST endpoint, runs a small workload, shows what
`tidegate tail` sees of it, and ends by itself: with success only if every record was the right one.
"""


import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from stack import settings
from stack.kafka import Kafka
from stack.postgres import Postgres
from stack.registry import Registry

from .checks import ScenarioFailed, check, equal, wait_for
from .database import Database
from .topics import Cluster, Record, Schemas, Topic
from .worker import Worker, binary

FILE = settings.ROOT / "connector-config" / "demo.json"
NAME = "tidegate_demo"
PREFIX = "demo"
# So many refusals of one statement are no moment any more.
PATIENCE = 100
PASSWORD = "demo"

SETUP = [
    "create table customers (id int primary key, name text not null, notes text)",
    "alter table customers alter notes set storage external",
    "create table orders (id int primary key, customer int not null, total numeric(10,2), placed timestamptz)",
    "insert into customers values (1, 'Ada', repeat('long note ', 300)), (2, 'Linus', null)",
    "insert into orders values (10, 1, 99.90, '2026-01-31 12:00+00')",
]

# What is done, and what must come of it: (table, op, key, what the after-image must hold; of a delete None).
Expected = tuple[str, str | None, int | None, dict[str, Any] | None]
STEPS: list[tuple[str, str, list[Expected]]] = [
    ("the snapshot: rows that were there before", "", [
        ("customers", "r", 1, {"name": "Ada"}), ("customers", "r", 2, {"name": "Linus", "notes": None}),
        ("orders", "r", 10, {"customer": 1}),
    ]),
    ("an insert", "insert into orders values (11, 2, 12.50, now())", [("orders", "c", 11, {"customer": 2})]),
    ("an update that leaves a large value alone: it is marked as not sent, never null",
     "update customers set name = 'Ada Lovelace' where id = 1",
     [("customers", "u", 1, {"name": "Ada Lovelace", "notes": "__debezium_unavailable_value"})]),
    ("two tables in one transaction: both or none",
     "begin; update orders set total = 10.00 where id = 11; insert into customers values (3, 'Grace', 'new'); commit",
     [("orders", "u", 11, {"customer": 2}), ("customers", "c", 3, {"name": "Grace", "notes": "new"})]),
    ("a rollback: nothing", "begin; delete from customers; rollback", []),
    ("a changed key: the old one is deleted, the new one created",
     "update customers set id = 30 where id = 3",
     [("customers", "d", 3, None), ("customers", None, 3, None), ("customers", "c", 30, {"name": "Grace"})]),
    ("a delete, and the tombstone for compacted topics", "delete from customers where id = 2",
     [("customers", "d", 2, None), ("customers", None, 2, None)]),
    ("a changed table: announced on the control topic before its first row",
     "alter table orders add column note text; update orders set note = 'gift' where id = 10",
     [("orders", "u", 10, {"note": "gift"})]),
    ("a truncate is an event too", "truncate orders", [("orders", "t", None, None)]),
]


class Demo:
    """Everything that the demonstration makes, and takes away again."""

    def __init__(self) -> None:
        self.postgres, self.kafka, self.registry = Postgres(), Kafka(), Registry()
        self.directory = settings.DIR / "demo"
        self.cluster = Cluster(self.kafka.address)
        self.topics: dict[str, Topic] = {}
        self.worker: Worker | None = None
        self.tail: subprocess.Popen | None = None
        self.counts: dict[str, int] = {}

    def prepare(self) -> None:
        """An own database and role, and no topics from an earlier run."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.remove()
        self.cluster.delete(self.cluster.topics(f"{PREFIX}."))
        self.cluster.delete(self.cluster.topics(f"{NAME}-"))
        server = Database(self.postgres.address)
        server.sql(f"create role {NAME} login replication password '{PASSWORD}'",
                   f"create database {NAME} owner {NAME}")
        self.source = Database(self.postgres.address, dbname=NAME, user=NAME, password=PASSWORD)

    def remove(self) -> None:
        """Slot, database and role; the topics stay to be looked at."""
        server = Database(self.postgres.address)
        for statement in (
            f"select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = '{NAME}' and active",
            f"select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = '{NAME}'",
            f"drop database if exists {NAME} with (force)", f"drop role if exists {NAME}",
        ):
            problems: list[Exception] = []
            wait_for(lambda text=statement: succeeds(server, text, problems), 20, "the clean-up of the demonstration",
                     lambda: str(problems[-1]) if len(problems) > PATIENCE else None)

    def start(self) -> None:
        """The worker, with what demo.json refers to in its environment."""
        os.environ.update(CDC_HOST=settings.HOST, CDC_PORT=str(self.postgres.port), CDC_PASSWORD=PASSWORD)
        converter = "io.confluent.connect.avro.AvroConverter"
        self.worker = Worker(self.directory, {
            "bootstrap.servers": self.kafka.address,
            "group.id": NAME,
            "config.storage.directory": str(self.directory / "state"),
            **{f"{side}.converter": converter for side in ("key", "value")},
            **{f"{side}.converter.schema.registry.url": self.registry.address for side in ("key", "value")},
            "config.providers": "env",
            "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
            "config.providers.env.param.allowlist.pattern": "CDC_.*",
        }).start()
        say(f"worker          {self.worker.rest.base}")
        say(f"submitting      POST {self.worker.rest.base}/connectors  < connector-config/demo.json")
        answer = self.worker.rest("POST", "/connectors", FILE.read_text(), timeout=90)
        equal(answer.status, 201, f"status of POST /connectors ({answer.message})")
        self.show()

    def show(self) -> None:
        """`tidegate tail`, on the same terminal."""
        say(f"reading         tidegate tail '{PREFIX}.*' -b {self.kafka.address} -r {self.registry.address} --from-beginning")
        sys.stdout.flush()
        self.tail = subprocess.Popen([str(binary()), "tail", f"{PREFIX}.*", "-b", self.kafka.address, "-r",
                                      self.registry.address, "--from-beginning"])

    def step(self, title: str, sql: str, expected: list[Expected]) -> None:
        """Do one thing, wait for what must come of it, and compare."""
        heading(title)
        if sql:
            say(f"{bold('sql>')} {sql};")
            # psql's way: a list of statements is as many transactions, unless it says otherwise
            for statement in [sql] if sql.startswith("begin") else sql.split("; "):
                self.source.sql(statement)
        for table in sorted({table for table, *_ in expected}):
            wanted = [one for one in expected if one[0] == table]
            self.compare(table, wanted)
        time.sleep(0.4)  # lets the reader's lines come before the next heading

    def compare(self, table: str, wanted: list[Expected]) -> None:
        """The next records of a table's topic."""
        begin = self.counts.get(table, 0)
        self.counts[table] = end = begin + len(wanted)
        topic = self.topic(table)
        records = wait_for(lambda: found if len(found := topic.read()) >= end else None, 60,
                           f"{end} records in {topic.name}", self.failed)
        for record, (_, op, key, after) in zip(records[begin:end], wanted):
            equal((record.op, None if record.key is None else record.key["id"]), (op, key), f"a record of {topic.name}")
            if after is None:
                check(record.after is None, f"{op} of {key} has no after-image")
            else:
                equal({name: record.after[name] for name in after}, after, f"the after-image of {key} in {topic.name}")

    def topic(self, table: str) -> Topic:
        """A table's topic, read as a read_committed consumer."""
        name = f"{PREFIX}.{table}" if table == "schema-changes" else f"{PREFIX}.public.{table}"
        if name not in self.topics:
            self.topics[name] = Topic(self.kafka.address, name, Schemas(self.registry.address))
        return self.topics[name]

    def check_control_topic(self) -> None:
        """A baseline for each table, and the change of one; nothing more came of the data than was compared."""
        kinds = [(record.value["kind"], record.value["relation"]["table"]) for record in self.topic("schema-changes").read()]
        equal(kinds, [("baseline", "customers"), ("baseline", "orders"), ("observed", "orders")], "the control topic")
        for table, count in self.counts.items():
            records: list[Record] = self.topic(table).read()
            equal(len(records), count, f"records in {self.topic(table).name}")
            places = [tuple(record.extension(name) for name in ("commit_lsn", "tx_seq", "part")) for record in records]
            check(len(set(places)) == len(places), "every record has an identity of its own")

    def failed(self) -> str | None:
        """Why nothing can be expected any more."""
        return self.worker.ended() or self.worker.connector(PREFIX).failed() if self.worker else None

    def finish(self) -> None:
        """Stop what was started; the services stay up."""
        if self.tail is not None:
            self.tail.terminate()
            self.tail.wait()
        for topic in self.topics.values():
            topic.close()
        if self.worker is not None:
            self.worker.stop()
        self.remove()


def succeeds(server: Database, statement: str, problems: list[Exception]) -> bool:
    """Whether a statement goes through, and why not; a slot may still be in use for a moment."""
    try:
        server.sql(statement)
    except Exception as problem:  # the one who waits tells it
        problems.append(problem)
        return False
    return True


def bold(text: str) -> str:
    """Bold on a terminal."""
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() else text


def say(text: str) -> None:
    """A line of the demonstration itself."""
    print(text, flush=True)


def heading(text: str) -> None:
    """What comes next."""
    say(f"\n{bold('── ' + text)}")


def main() -> int:
    """Run it once."""
    demo = Demo()
    try:
        demo.prepare()
        heading("a database with two tables and some rows")
        for statement in SETUP:
            say(f"{bold('sql>')} {statement};")
            demo.source.sql(statement)
        heading("the connector")
        demo.start()
        for title, sql, expected in STEPS:
            demo.step(title, sql, expected)
        demo.check_control_topic()
    except ScenarioFailed as failure:
        say(f"\nFAILED: {failure}\nthe worker's log: {demo.directory / 'worker.log'}")
        return 1
    finally:
        demo.finish()
    count = sum(demo.counts.values())
    say(f"""
{bold('All as it should be:')} {count} records and 3 control records, each once, in order, with the right content.

What to look at next
  the topics again      {relative(binary())} tail '{PREFIX}.*' -b {demo.kafka.address} -r {demo.registry.address} --from-beginning --idle-exit 3
  as JSON lines         the same with `| cat`, or --format json
  the connector         connector-config/demo.json, explained by docs/compatibility.md
  a worker of your own  {relative(binary())} worker connector-config/worker.properties
  PostgreSQL            psql {demo.postgres.address}
How to stop the services  make down""")
    return 0


def relative(path: Path) -> Path:
    """As it is typed in the checkout."""
    return path.relative_to(settings.ROOT) if path.is_relative_to(settings.ROOT) else path


if __name__ == "__main__":
    sys.exit(main())

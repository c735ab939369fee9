"""The example consumer of docs/ keeps an exact copy: merged values, keys that change, truncates, restarts, transactions given up."""

import base64
import datetime
import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from harness.checks import check, equal
from harness.trial import Trial
from stack.settings import ROOT

SERVER_MATTERS = False
PROGRAM = ROOT / "docs" / "examples" / "consumer.py"


def consume(t: Trial, copy: Path) -> int:
    """Run the program to the topic's end; the number of records it has read."""
    done = subprocess.run([sys.executable, str(PROGRAM), "--bootstrap", t.kafka.address, "--registry", t.registry.address,
                           "--topic", f"{t.name}.public.orders", "--until-end", str(copy)],
                          capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, f"the consumer succeeds: {done.stderr}")
    return int(done.stdout.split()[0])


def expected(value: Any) -> Any:
    """A column's value as the copy has it."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value if value is None or isinstance(value, int) else str(value)


def same(t: Trial, copy: Path, what: str) -> None:
    """The copy holds what the table holds."""
    with sqlite3.connect(copy) as db:
        rows = {json.loads(key)["id"]: (json.loads(row), unknown) for key, row, unknown in
                db.execute("select key, row, unknown from rows")}
    real = {row["id"]: {name: expected(value) for name, value in row.items()} for row in t.query("select * from orders")}
    for row, unknown in rows.values():
        equal(unknown, "", f"values that the copy does not know of {row['id']}")
        row["at"] = None if row["at"] is None else datetime.datetime.fromisoformat(row["at"]).isoformat().replace("+00:00", "Z")
    equal({key: row for key, (row, _) in rows.items()}, real, what)


def given_up(t: Trial) -> None:
    """A delete of a row in a transaction that is aborted."""
    topic = t.topic("orders")
    delete = next(record for record in reversed(topic.read()) if record.value is not None and record.op == "u")
    producer = Producer({"bootstrap.servers": t.kafka.address, "transactional.id": f"{t.name}-given-up", "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic.name, key=delete.raw_key, value=None)
    producer.flush(30)
    producer.abort_transaction(30)


def run(t: Trial) -> None:
    copy = t.directory / "copy.db"
    worker = t.worker()
    t.connect(worker)
    t.settle()
    equal(consume(t, copy), 9, "records of the snapshot")
    same(t, copy, "the snapshot")
    # Large values that are not sent; one that is; a NULL in their place; twice, with a restart of the reader between.
    t.sql("update orders set total = total + 1", "update orders set notes = repeat('new', 3000) where id = 2",
          "update orders set scan = null where id = 3", "update orders set customer = null where id = 4")
    t.settle()
    consume(t, copy)
    same(t, copy, "the updates")
    t.sql("update orders set total = 0 where id in (2, 3)", "delete from orders where id = 9")
    # The new key's record has no row of that key before it, and large values that were not sent.
    t.sql("update orders set id = 50, total = 5 where id = 5", "update orders set id = id + 100 where id in (6, 7)",
          "update orders set customer = 'back', id = 6 where id = 106")
    given_up(t)
    t.settle()
    consume(t, copy)
    same(t, copy, "changed keys")
    equal(consume(t, copy), 0, "records read again")
    t.sql("begin; truncate orders; insert into orders values (1, 'first', 1, repeat('x', 9000), null, now()); "
          "update orders set total = 2; commit", "insert into orders values (2, 'second', 2.5, null, null, null)")
    t.settle()
    consume(t, copy)
    same(t, copy, "the table after the truncate")
    t.sql("truncate orders")
    t.settle()
    consume(t, copy)
    same(t, copy, "an empty table")

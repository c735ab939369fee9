"""Transactions tell their beginning, their end and the place of each change, under kills: each once, and all in agreement."""

import random
import threading
import time
from collections import Counter, defaultdict
from typing import Any

import psycopg

from harness.checks import check, equal, wait_for
from harness.trial import Trial

CLIENTS = 3
KILLS = 5
ROWS = 20_000


def run(t: Trial) -> None:
    t.sql("insert into a (v) values ('read by the snapshot')")
    worker = t.worker()
    small = {"transaction.stage.bytes": str(1 << 16), "transaction.max.bytes": str(1 << 20),
             "max.queue.size.in.bytes": str(1 << 20), "provide.transaction.metadata": "true",
             "extended.headers.enabled": "true", "table.exclude.list": "public.hidden",
             # Places are taken before any transform: rows of b go elsewhere and are counted all the same.
             "transforms": "route", "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
             "transforms.route.regex": "(.*)\\.public\\.b", "transforms.route.replacement": "$1.elsewhere"}
    connector = worker.create(t.name, t.config() | small)
    t.wait_streaming()
    boundaries = t.topic_named(f"{t.name}.transaction")

    clients = [Client(t, number) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    chance = random.Random(5)
    try:
        for number in range(KILLS):
            if number % 2 == 0:
                known = len(boundaries.read())
                wait_for(lambda: len(boundaries.read()) > known + 20, 120, "new transactions", worker.ended)
            time.sleep(chance.uniform(0, 0.7))
            worker.kill()
            worker.launch()
    finally:
        for client in clients:
            client.finish()
    connector.wait_running(timeout=120)
    t.settle(timeout=120)

    # One of many parts, and a worker killed inside it.
    t.sql(f"do $$ begin for n in 1..{ROWS} loop insert into a (v) values (repeat('x', 100)); "
          "if n % 1000 = 0 then insert into b (v) values (n); perform pg_logical_emit_message(true, 'p', 'big'); "
          "update b set id = -id where v = n::text; end if; end loop; end $$")
    rows = t.topic("a")
    known = len(rows.read())
    wait_for(lambda: len(rows.read()) > known + ROWS // 4, 90, "a part of the large transaction", connector.failed)
    worker.kill()
    worker.start()
    connector.wait_running(timeout=120)
    t.settle(timeout=120)

    begins: dict[str, Any] = {}
    ends: dict[str, Any] = {}
    for record in boundaries.read():
        ours = {"BEGIN": begins, "END": ends}[record.value["status"]]
        check(record.key["id"] not in ours, f"{record.value['status']} of {record.key['id']} comes once")
        equal(record.key["id"], record.value["id"], "id in key and value")
        ours[record.key["id"]] = record.value
        check("__debezium.context.runId" in record.headers, "it has the context headers")
    equal(set(begins), set(ends), "transactions that begin and end")

    places: dict[str, list[tuple[int, str, int]]] = defaultdict(list)
    for topic, name in ((rows, "public.a"), (t.topic_named(f"{t.name}.elsewhere"), "public.b"),
                        (t.topic_named(f"{t.name}.message"), "message")):
        for record in topic.read():
            if record.tombstone:
                continue
            block = record.value["transaction"]
            equal(block is None, record.op == "r", "whether a record has no place in a transaction")
            if block is not None:
                places[block["id"]].append((block["total_order"], name, block["data_collection_order"]))
                number = record.value["source"]["txId"]
                equal(block["id"].split(":")[0], str(number), "the transaction's number")
    equal(set(places), set(ends), "transactions that have changes, and that have an end")
    for number, found in places.items():
        found.sort()
        equal([total for total, _, _ in found], list(range(1, len(found) + 1)), f"numbers of the events of {number}")
        count: Counter[str] = Counter()
        for _, name, order in found:
            count[name] += 1
            equal(order, count[name], f"number among those of {name} in {number}")
        equal(ends[number]["event_count"], len(found), f"events of {number}")
        equal([(one["data_collection"], one["event_count"]) for one in ends[number]["data_collections"]],
              sorted(count.items()), f"tables of {number}")
    committed = sum(client.commits for client in clients) + 1
    equal(len(ends), committed, "transactions")
    equal(max(end["event_count"] for end in ends.values()), ROWS + 4 * ROWS // 1000, "events of the large one")


class Client(threading.Thread):
    """One client: transactions of several tables, of a hidden one too, and some that nobody sees."""

    def __init__(self, t: Trial, number: int):
        super().__init__(daemon=True)
        self._t = t
        self._chance = random.Random(number)
        self._over = threading.Event()
        self.commits = 0

    def run(self) -> None:
        with self._t.source.session() as session:
            while not self._over.is_set():
                self._transaction(session)
                time.sleep(0.01)

    def finish(self) -> None:
        """Stop after the transaction under way."""
        self._over.set()
        self.join(60)

    def _transaction(self, session: psycopg.Connection) -> None:
        session.execute("insert into hidden values (1)")
        undone = self._chance.random() < 0.2
        with session.transaction(force_rollback=undone):
            session.execute("insert into a (v) values ('x'), ('y')")
            session.execute("insert into hidden values (2)")
            if self._chance.random() < 0.5:
                session.execute("insert into b (v) values ('z')")
                session.execute("select pg_logical_emit_message(true, 'p', 'c')")
        self.commits += not undone

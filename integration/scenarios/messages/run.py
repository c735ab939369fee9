"""Messages that applications write into the log, of transactions and of none, under kills: each arrives once, in its place."""

import random
import threading
import time

import psycopg

from harness.checks import check, equal, wait_for
from harness.trial import Trial, position

CLIENTS = 3
KILLS = 6
ROWS = 20_000


def run(t: Trial) -> None:
    worker = t.worker()
    small = {"transaction.stage.bytes": str(1 << 16), "transaction.max.bytes": str(1 << 20),
             "max.queue.size.in.bytes": str(1 << 20), "message.prefix.exclude.list": "hidden.*"}
    connector = worker.create(t.name, t.config() | small)
    t.wait_streaming()
    messages = t.topic_named(f"{t.name}.message")
    equal(t.cluster.topics(f"{t.name}.message"), [], "topics of messages before there are any")

    clients = [Client(t, number) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    chance = random.Random(3)
    try:
        for number in range(KILLS):
            if number % 2 == 0:
                known = len(messages.read())
                wait_for(lambda: len(messages.read()) > known + 20, 120, "new messages", worker.ended)
            time.sleep(chance.uniform(0, 0.7))
            worker.kill()
            worker.launch()
        known = len(messages.read())
        wait_for(lambda: len(messages.read()) > known, 120, "new messages", connector.failed)
    finally:
        for client in clients:
            client.finish()
    connector.wait_running(timeout=120)
    t.settle(timeout=120)

    # One of many parts, with a message behind every thousand rows, and a worker killed inside it.
    t.sql(f"do $$ begin for n in 1..{ROWS} loop insert into t values (-n, repeat('x', 100)); "
          f"if n % 1000 = 0 then perform pg_logical_emit_message(true, 'big', n::text); end if; end loop; end $$")
    wait_for(lambda: len([r for r in messages.read() if r.key["prefix"] == "big"]) > ROWS // 4000, 90,
             "a part of the large transaction", connector.failed)
    worker.kill()
    worker.start()
    connector.wait_running(timeout=120)
    t.settle(timeout=120)

    records = messages.read()
    t.exactly_once(records)
    rows = t.topic("t").read()
    t.exactly_once(rows)
    equal(len({position(r) for r in records + rows}), len(records) + len(rows), "positions over both topics")
    check(all(r.value["op"] == "m" and r.value["source"]["table"] == "" for r in records), "they are messages")
    check(not any(r.key["prefix"].startswith("hidden") for r in records), "what is excluded does not come")

    def arrived(prefix: str) -> list[str]:
        return [r.value["message"]["content"].decode() for r in records if r.key["prefix"] == prefix]

    for client in clients:
        name = client.name_in_log
        equal(arrived(f"in {name}"), client.inside, f"messages of the transactions of {name}")
        equal(arrived(f"lone {name}"), client.lone, f"messages of no transaction of {name}")
        check(len(client.inside) > 50 and len(client.lone) > 50, f"{name} got something done")
    equal(arrived("big"), [str(n) for n in range(1000, ROWS + 1, 1000)], "messages of the large transaction")
    big = {r.value["message"]["content"]: position(r) for r in records if r.key["prefix"] == "big"}
    places = {r.after["id"]: position(r) for r in rows}
    for n in range(1000, ROWS, 1000):
        check(places[-n] < big[str(n).encode()] < places[-n - 1], f"message {n} stands between its rows")
    equal({r.value["source"]["txId"] is None for r in records if r.key["prefix"].startswith("lone")}, {True},
          "whether messages of no transaction have none")


class Client(threading.Thread):
    """Writes numbered messages, in transactions that commit or not, and beside them."""

    def __init__(self, t: Trial, number: int):
        super().__init__(daemon=True)
        self._t = t
        self._number = number
        self._chance = random.Random(number)
        self._over = threading.Event()
        self.name_in_log = f"client {number}"
        self.inside: list[str] = []
        self.lone: list[str] = []

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
        emit = "select pg_logical_emit_message(%s, %s, %s)"
        undone = self._chance.random() < 0.3
        number = len(self.inside) + len(self.lone)
        with session.transaction(force_rollback=undone):
            if self._chance.random() < 0.5:
                session.execute("insert into t values (%s, 'x') on conflict do nothing",
                                (self._number * 1_000_000 + number,))
            session.execute(emit, (True, f"in {self.name_in_log}", f"first {number}"))
            session.execute(emit, (False, f"lone {self.name_in_log}", f"lone {number}"))
            self.lone.append(f"lone {number}")
            session.execute(emit, (True, "hidden", "x"))
            session.execute(emit, (True, f"in {self.name_in_log}", f"second {number}"))
        if not undone:
            self.inside += [f"first {number}", f"second {number}"]
        if self._chance.random() < 0.3:
            session.execute(emit, (False, f"lone {self.name_in_log}", f"outside {number}"))
            self.lone.append(f"outside {number}")

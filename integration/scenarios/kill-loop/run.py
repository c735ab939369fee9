"""Clients write while worker, Kafka and PostgreSQL are killed again and again: each change arrives once and in order."""

import random
import threading
import time

import psycopg

from harness.checks import check, equal, wait_for
from harness.topics import replay
from harness.trial import Trial, position

# It kills what all use.
ALONE = True

CLIENTS = 4
KILLS = 12


def run(t: Trial) -> None:
    t.own_kafka(apart=True)
    worker = t.worker()
    connector = t.connect(worker, topic_creation_default_partitions="3")
    clients = [Client(t, number) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    chance = random.Random(7)
    topic = t.topic("history")
    try:
        for number in range(KILLS):
            # Two of three die at work, the others wherever the start has got to.
            if number % 3:
                known = len(topic.read())
                wait_for(lambda: len(topic.read()) > known, 120, "new records", worker.ended)
            time.sleep(chance.uniform(0, 1))
            if number == 4:
                t.kafka.kill()
            if number == 8:
                t.postgres.kill()
            worker.kill()
            worker.launch()
            if number == 4:
                # Now and then the worker is there first.
                time.sleep(0.5)
                t.kafka.start()
            if number == 8:
                t.postgres.start()
        # And once each under a worker that lives.
        for part in (t.kafka, t.postgres):
            known = len(topic.read())
            wait_for(lambda: len(topic.read()) > known, 120, "new records", connector.failed)
            part.kill()
            time.sleep(0.5)
            part.start()
        known = len(topic.read())
        wait_for(lambda: len(topic.read()) > known, 120, "new records", connector.failed)
    finally:
        for client in clients:
            client.finish()
    connector.wait_running(timeout=120)
    t.settle(timeout=180)
    commits = sum(client.commits for client in clients)
    check(commits > 200, f"the clients got something done: {commits} commits")

    everything = []
    for table in ("account", "branch", "history"):
        records = t.topic(table).read()
        t.exactly_once(records)
        everything += [position(r) for r in records if r.op != "r"]
        check(len(records) > 100, f"{table} was written to")
    equal(len(set(everything)), len(everything), "positions over all topics")
    equal(replay(t.topic("account").read()), t.rows("account", "id"), "table account")
    branches = {(row["region"], row["number"]): row for row in t.query("select * from branch")}
    equal({(row["region"], row["number"]): row for row in replay(t.topic("branch").read()).values()}, branches,
          "table branch")
    written = t.query("select account, delta, note from history")
    read = [r.after for r in t.topic("history").read()]
    equal(sorted(map(repr, read)), sorted(map(repr, written)), "table history, in which nothing may be twice")
    # What nobody may see is there neither for those who look at everything.
    held = len(t.topic("history").read())
    equal(held, len(written), "records of history")


class Client(threading.Thread):
    """One client: short transactions of inserts, updates, deletes and changed keys, some rolled back."""

    def __init__(self, t: Trial, number: int):
        super().__init__(daemon=True)
        self._t = t
        self._number = number
        self._chance = random.Random(number)
        self._over = threading.Event()
        self.commits = 0

    def run(self) -> None:
        while not self._over.is_set():
            try:
                with self._t.source.session() as session:
                    while not self._over.is_set():
                        self._transaction(session)
                        time.sleep(0.01)
            except psycopg.Error:
                # The server was killed, or a key was taken.
                time.sleep(0.05)

    def finish(self) -> None:
        """Stop after the transaction under way."""
        self._over.set()
        self.join(60)

    def _transaction(self, session: psycopg.Connection) -> None:
        chance = self._chance
        account, delta = chance.randint(1, 500), chance.randint(-100, 100)
        with session.transaction(force_rollback=chance.random() < 0.1):
            session.execute("update account set balance = balance + %s where id = %s", (delta, account))
            session.execute("insert into history values (%s, %s, %s)", (account, delta, f"client {self._number}"))
            match chance.randint(0, 5):
                case 0:
                    session.execute("delete from account where id = %s", (account,))
                case 1:
                    session.execute("insert into account values (%s, 0, 'again') on conflict (id) do update "
                                    "set note = 'again'", (account,))
                case 2:
                    session.execute("update branch set number = number + 50 where number %% 50 = %s",
                                    (chance.randint(0, 49),))
                case 3:
                    session.execute("update branch set region = region || 'x', total = total + %s where number %% 50 = %s "
                                    "and length(region) < 9", (delta, chance.randint(0, 49)))
                case 4:
                    session.execute("savepoint s")
                    session.execute("update account set note = 'undone' where id = %s", (account,))
                    session.execute("rollback to s")
        self.commits += 1

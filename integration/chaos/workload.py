"""What clients do to the tables: everything that the stream can show, at random, and some of it taken back."""

import random
import threading
from typing import Callable

import psycopg

from harness.trial import Trial

# Tables with a key and the columns id, n, note, doc.
KEYED = ("by_key", "by_index", "by_row", "spread")
# Their chunks may be read beside the stream.
READABLE = ("by_key", "by_index", "by_row", "parted")
IDS = 400


class Counts:
    """What all clients did so far."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.commits = self.rows = 0
        # Closed while too much is on its way: a slow machine then takes longer between two faults, not for ever at the end.
        self.gate = threading.Event()
        self.gate.set()

    def add(self, rows: int) -> None:
        """A transaction was committed."""
        with self._lock:
            self.commits += 1
            self.rows += rows


class Client(threading.Thread):
    """One session that works until it is told to stop, and comes back whenever the server was killed."""

    def __init__(self, t: Trial, seed: str, counts: Counts, work: Callable[["Client", psycopg.Connection], None], pause: float):
        super().__init__(daemon=True)
        self.chance = random.Random(seed)
        self.fault: BaseException | None = None
        self._t, self._counts, self._work, self._pause = t, counts, work, pause
        self._over = threading.Event()
        self.rows = 0

    def run(self) -> None:
        """Transaction after transaction."""
        while not self._over.is_set():
            try:
                with self._t.source.session() as session:
                    session.execute("set lock_timeout = '3s'")
                    while not self._over.wait(self.chance.uniform(0, 2 * self._pause)):
                        if not self._counts.gate.wait(0.2):
                            continue
                        self.rows = 0
                        self._work(self, session)
                        self._counts.add(self.rows)
            except (psycopg.OperationalError, psycopg.errors.UniqueViolation, psycopg.errors.UndefinedColumn,
                    psycopg.errors.DuplicateColumn, psycopg.errors.FeatureNotSupported):
                # The server was killed, a key was taken, a column went meanwhile, a plan was of the table before.
                self._over.wait(0.05)
            except BaseException as error:  # reported by `finish`
                self.fault = error
                return

    def rest(self, seconds: float) -> None:
        """Wait with a transaction open, but not beyond the end."""
        self._over.wait(seconds)

    def finish(self) -> None:
        """Stop after the transaction under way."""
        self._over.set()
        self.join(90)
        if self.fault is not None:
            raise self.fault

    def do(self, session: psycopg.Connection, statement: str) -> None:
        """One statement; its rows are counted."""
        self.rows += max(0, session.execute(statement).rowcount)


def _statement(chance: random.Random) -> str:
    table = chance.choice((*KEYED, *KEYED, "only_new", "keyless", "parted"))
    a, letter = chance.randint(1, IDS), chance.choice("fghijk")
    if table == "only_new":
        table = chance.choice(("only_new", "only_new", "unseen"))
        return f"insert into {table} values ({chance.randrange(1 << 30)}, {a}, 'new', repeat('{letter}', {a * 10}))"
    doc = f"repeat('{letter}', {chance.choice((5, 2500, 6000))})"
    span = chance.choice((0, 0, 0, 4))
    choices = [
        f"update {table} set n = n + 1 where id between {a} and {a + span}",  # the large value is not sent
        f"update {table} set n = n + 1 where id between {a} and {a + span}",
        f"update {table} set n = {a}, doc = {doc} where id = {a}",
        f"delete from {table} where id between {a} and {a + span}",
    ]
    if table == "parted":
        region = chance.choice(("eu", "us"))
        return chance.choice([*choices, f"insert into parted values ({a}, '{region}', 0, {doc})",
                              f"update parted set region = '{region}' where id = {a}",
                              f"update parted set id = {chance.randint(1, IDS)} where id = {a} and region = '{region}'"])
    if table == "keyless":
        return chance.choice([*choices, f"insert into keyless values ({a}, 0, 'again', {doc})",
                              f"insert into keyless select {a}, n, note, doc from keyless where id = {chance.randint(1, IDS)} limit 1"])
    conflict = f"insert into {table} (id, n, note, doc) values ({a}, 0, 'again', {doc}) on conflict (id) do update set note = 'again'"
    return chance.choice([*choices, conflict, conflict,
                          f"update {table} set note = null where id = {a}",
                          f"update {table} set id = {chance.randint(1, IDS)} where id = {a}",
                          f"update {table} set id = {chance.randint(1, IDS)}, n = -1, doc = {doc} where id = {a}"])


def short(client: Client, session: psycopg.Connection) -> None:
    """A few statements; with savepoints of which some are undone, at times all of it."""
    chance = client.chance
    with session.transaction(force_rollback=chance.random() < 0.1):
        for _ in range(chance.randint(1, 6)):
            if chance.random() < 0.2:
                with session.transaction(force_rollback=chance.random() < 0.5):
                    client.do(session, _statement(chance))
            else:
                client.do(session, _statement(chance))


def long(client: Client, session: psycopg.Connection) -> None:
    """Open while many others begin and end."""
    chance = client.chance
    with session.transaction(force_rollback=chance.random() < 0.2):
        for _ in range(chance.randint(2, 6)):
            client.do(session, _statement(chance))
            # No rows that others want are held for longer than they wait.
            client.rest(chance.uniform(0, 0.5))


def large(client: Client, session: psycopg.Connection) -> None:
    """More than is held back, so it is published in parts; savepoints in its middle."""
    chance = client.chance
    rows, first = chance.randint(200, 1000), chance.randrange(10_000, 1 << 30)
    with session.transaction(force_rollback=chance.random() < 0.1):
        client.do(session, f"insert into spread select g, 0, 'large', null from generate_series({first}, {first + rows}) g")
        with session.transaction(force_rollback=chance.random() < 0.5):
            client.do(session, f"update spread set n = 1, note = repeat('l', 1000) where id between {first} and {first + rows}")
        client.do(session, "update by_key set n = n + 1 where id % 7 = 0")
        client.do(session, f"delete from spread where id between {first} and {first + rows}")


class Shapes:
    """Columns that come, widen and go; and tables that are emptied. A name is used once, so that no old value can be mistaken."""

    def __init__(self) -> None:
        self._number = 0
        self._columns: list[tuple[str, str, str]] = []

    def __call__(self, client: Client, session: psycopg.Connection) -> None:
        """One change, with rows before and behind it in the same transaction."""
        chance = client.chance
        with session.transaction(force_rollback=chance.random() < 0.1):
            client.do(session, _statement(chance))
            after = self._change(client, session)
            client.do(session, _statement(chance))
        self._columns = after

    def _change(self, client: Client, session: psycopg.Connection) -> list[tuple[str, str, str]]:
        chance, columns = client.chance, self._columns
        what = chance.random()
        if what < 0.15:
            client.do(session, f"truncate {chance.choice((*KEYED, 'keyless', 'parted'))}")
            return columns
        if what < 0.5 or not columns:
            table = chance.choice((*KEYED, "keyless"))
            self._number += 1
            name, kind = f"x{self._number}", chance.choice(("smallint", "int", "text"))
            client.do(session, f"alter table {table} add column {name} {kind}")
            client.do(session, f"update {table} set {name} = '7' where id % 40 = {chance.randrange(40)}")
            # What a table without a key has is told by its rows' contents: they keep all columns.
            return columns if table == "keyless" else [*columns, (table, name, kind)]
        table, name, kind = chance.choice(columns)
        rest = [one for one in columns if one[1] != name]
        wider = {"smallint": "int", "int": "bigint"}.get(kind)
        if wider is None or what > 0.8:
            client.do(session, f"alter table {table} drop column {name}")
            return rest
        client.do(session, f"alter table {table} alter column {name} type {wider}")
        client.do(session, f"update {table} set {name} = 9 where id % 40 = {chance.randrange(40)}")
        return [*rest, (table, name, wider)]


def clients(t: Trial, seed: int, counts: Counts) -> list[Client]:
    """All of them, not yet started."""
    kinds: list[tuple[Callable[[Client, psycopg.Connection], None], float]] = [
        (short, 0.1), (short, 0.1), (short, 0.15), (long, 0.3), (large, 12.0), (Shapes(), 2.5)]
    return [Client(t, f"{seed}-{number}", counts, work, pause) for number, (work, pause) in enumerate(kinds)]

"""Random DDL and DML with kills of the worker, for SOAK_SECONDS (600): a reader who applies control and data records alone ends with
each table's columns and rows. SOAK_SEED repeats a run's statements."""

import os
import random
import time
from typing import Any

import psycopg

from harness.checks import ScenarioFailed, check, equal, wait_for
from harness.mirror import Mirror
from harness.rest import Rest
from harness.trial import Trial

LONG = True
# Event triggers' notes need messages in the stream.
MAJORS = range(14, 99)
TABLES = ("one", "two", "three", "bare")
TYPES = ("integer", "bigint", "text", "character varying(40)")


class Chaos:
    """Statements at random, and what is known of the tables to make them."""

    def __init__(self, t: Trial, seed: int):
        self.t = t
        self.choose = random.Random(seed)
        self.names = {table: table for table in TABLES}
        self.columns = {table: {"a": "integer", "doc": "text"} for table in TABLES}
        self.counter = 0
        self.done: list[str] = []

    # ------------------------------------------------------------ rows
    def value(self, kind: str) -> str:
        number = self.choose.randrange(1000)
        if kind in ("integer", "bigint"):
            return str(number)
        return self.choose.choice([f"'text {number}'", "null", f"repeat('y{number % 10}', {1500 if kind == 'text' else 15})"])

    def row(self, table: str) -> str:
        name, columns = self.names[table], self.columns[table]
        number = self.choose.randrange(1, 120)
        column = self.choose.choice(list(columns) or ["id"])
        some = {one: self.value(kind) for one, kind in columns.items() if self.choose.random() < 0.7}
        given = "".join(f", {one}" for one in some), "".join(f", {one}" for one in some.values())
        insert = (f"insert into {name} (id{given[0]}) select {number}{given[1]} "
                  f"where not exists (select from {name} where id = {number})")
        what = self.choose.random()
        if what < 0.3 or column == "id":
            return insert
        if what < 0.75:
            return f"update {name} set {column} = {self.value(columns[column])} where id between {number} and {number + self.choose.choice([0, 0, 9])}"
        if what < 0.85:
            return f"delete from {name} where id = {number}"
        if what < 0.9:
            return f"update {name} set id = {number + 1000} where id = {number} and not exists (select from {name} where id = {number + 1000})"
        if what < 0.91:
            return f"truncate {name}"
        return "; ".join((insert, f"update {name} set {column} = {self.value(columns[column])} where id = {number}"))

    # ------------------------------------------------------------ definitions
    def definition(self, table: str) -> str:
        name, columns = self.names[table], self.columns[table]
        self.counter += 1
        fresh, alter = f"c{self.counter}", f"alter table {name}"
        kind = self.choose.choice(TYPES)
        column = self.choose.choice(list(columns)) if columns else None
        what = self.choose.randrange(14)
        if what <= 2 and len(columns) < 12 or column is None:
            columns[fresh] = kind
            constant = "5" if kind in ("integer", "bigint") else "'five'"
            volatile = "(random() * 1000)::int" if kind in ("integer", "bigint") else "(random() * 1000)::int::text"
            return f"{alter} add {fresh} {kind}" + self.choose.choice(["", f" default {constant}", f" not null default {constant}",
                                                                       f" default {volatile}"])
        if what <= 4:
            del columns[column]
            return f"{alter} drop {column}"
        if what == 5:
            columns[fresh] = columns.pop(column)
            return f"{alter} rename {column} to {fresh}"
        if what == 6:
            columns[column] = kind
            return f"{alter} drop {column}, add {column} {kind}"
        if what <= 9:
            return self.retype(alter, column, columns)
        if what == 10:
            return self.choose.choice([f"{alter} alter {column} drop not null", f"{alter} alter {column} set default null",
                                       f"{alter} alter {column} set default {self.value('text') if columns[column] not in ('integer', 'bigint') else 7}"])
        if what == 11:
            self.names[table] = table if name != table else f"{table}_renamed"
            return f"{alter} rename to {self.names[table]}"
        if what == 12 and table != "bare":
            return f"{alter} replica identity {self.choose.choice(['full', 'default'])}"
        if what == 13 and table != "bare":
            return f"{alter} alter id type int using id"
        return self.choose.choice([f"vacuum full {name}", f"grant select on {name} to public", f"create index on {name} ({column})",
                                   f"comment on table {name} is 'x'", f"{alter} alter {column} set statistics 10"])

    def retype(self, alter: str, column: str, columns: dict[str, str]) -> str:
        """Type or values of a column; a default that would not fit goes first."""
        old = columns[column]
        reset = f"{alter} alter {column} drop default"
        if old in ("integer", "bigint"):
            new = self.choose.choice(["integer", "bigint", "text"])
            using = f"{column}::text || '!'" if new == "text" else f"({column} * 3 + 1) % 1000"
        else:
            new = self.choose.choice(["text", "character varying(40)", "integer"])
            using = f"length({column})" if new == "integer" else f"left({column}, 39) || '?'"
            if new == "text" and self.choose.random() < 0.5:
                using = column
        columns[column] = new
        return f"{reset}; {alter} alter {column} type {new} using {using}"

    # ------------------------------------------------------------ steps
    def step(self, session: psycopg.Connection) -> None:
        """One transaction."""
        table = self.choose.choice(TABLES)
        before = dict(self.names), {one: dict(columns) for one, columns in self.columns.items()}
        what = self.choose.random()
        if what < 0.8:
            text, keeps = self.row(table), True
        elif what < 0.92:
            text, keeps = self.definition(table), True
        else:
            parts, keeps = [self.row(table)], self.choose.random() < 0.8
            for _ in range(self.choose.randrange(1, 4)):
                one = self.definition(table)
                parts += [one if not one.startswith("vacuum") else "select 1", self.row(table)]
            # A table that is altered in a savepoint that is rolled back, and written anew in the same transaction: the server (18.6)
            # once could not decode such a transaction, however often it was asked ("unexpected duplicate for tablespace").
            rewrites = any(" type " in part or "random()" in part for part in parts)
            if self.choose.random() < 0.3 and not rewrites:
                parts.insert(1, f"savepoint s; alter table {before[0][table]} add gone int; rollback to s")
            text = f"begin; {'; '.join(parts)}; {'commit' if keeps else 'rollback'}"
        self.done.append(text)
        try:
            session.execute(text)
        except psycopg.Error as error:
            # Whatever the server does not take is rolled back, and undone here.
            self.done.append(f"-- {error}")
            session.execute("rollback")
            keeps = False
        if not keeps:
            self.names, self.columns = before


def catalogue(t: Trial, name: str) -> dict[str, str]:
    """Columns and their types, in order."""
    found = t.query("select attname, format_type(atttypid, null) as type from pg_attribute "
                    "where attrelid = %s::regclass and attnum > 0 and not attisdropped order by attnum", name)
    return {row["attname"]: row["type"] for row in found}


def told(rows: list[dict[str, Any]]) -> list[str]:
    """Rows in an order that depends on nothing else."""
    return sorted(str(sorted(row.items())) for row in rows)


def compare(t: Trial, chaos: Chaos) -> None:
    """What a reader has is what the source has."""
    connector = t.workers[-1].connector(t.name)
    t.settle(180)

    def nothing_is_read() -> bool:
        snapshot = connector.request("GET", "/snapshots").body["snapshot"]
        return snapshot is None or snapshot["state"] in ("COMPLETED", "STOPPED", "FAILED")
    wait_for(nothing_is_read, 180, "the end of what is read again", connector.failed)
    t.settle(180)
    data = [record for table in TABLES for name in (table, f"{table}_renamed") for record in t.topic(name).read()]
    mirror = Mirror(t.topic_named(f"{t.name}.schema-changes").read(), data)
    equal(sorted(mirror.tables), sorted(chaos.names.values()), "tables")
    for name in chaos.names.values():
        table = mirror.tables[name]
        plain = {one: kind.partition("(")[0] for one, kind in table.columns.items()}
        equal(list(plain.items()), list(catalogue(t, name).items()), f"columns of {name}")
        equal(told(list(table.rows.values())), told(t.query(f"select * from {name}")), f"rows of {name}")
        t.exactly_once(t.topic(name).read())


def run(t: Trial) -> None:
    seconds, seed = float(os.environ.get("SOAK_SECONDS", "600")), int(os.environ.get("SOAK_SEED", str(random.randrange(10 ** 6))))
    print(f"soak: SOAK_SECONDS={seconds:g} SOAK_SEED={seed}", flush=True)
    registry = t.own_registry()
    equal(Rest(registry.address)("PUT", "/config", {"compatibility": "NONE"}).status, 200, "status of the registry's PUT config")
    admin = f"postgres://postgres@127.0.0.1:{t.postgres.port}/{t.name}"
    t.command("ddl-capture", "install", t.connector_file(), "--connection", admin).succeed()
    connector = t.connect()
    worker, chaos = t.workers[-1], Chaos(t, seed)
    end, kill_at, look_at, kills = time.monotonic() + seconds, time.monotonic() + 5, time.monotonic() + 60, 0
    try:
        with t.source.session() as session:
            while time.monotonic() < end:
                chaos.step(session)
                time.sleep(0.02)
                now = time.monotonic()
                if now > kill_at:
                    kills += 1
                    worker.kill()
                    worker.start()
                    kill_at = now + random.uniform(2, 15)
                elif now > look_at:
                    compare(t, chaos)
                    look_at = time.monotonic() + 60
                if len(chaos.done) % 200 == 0:
                    check(connector.trace() is None, f"the connector runs: {connector.trace()}")
        connector.wait_running()
        compare(t, chaos)
    except ScenarioFailed as error:
        (t.directory / "statements.sql").write_text(";\n".join(chaos.done))
        raise ScenarioFailed(f"SOAK_SEED={seed}: {error}") from error
    refused = sum(text.startswith("--") for text in chaos.done)
    print(f"soak: {len(chaos.done)} transactions, {refused} of them refused by the server, {kills} kills", flush=True)

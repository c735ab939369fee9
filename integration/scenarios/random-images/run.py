"""Random combinations of identity, toast.mode, type modes, converters and ExtractNewRecordState: every value is what RETURNING showed, or named as not sent.

Each combination has a table and a connector of its own, and random transactions. A value that is named as not sent must be a large
one that did not change, of a table whose identity is not FULL, and not one that the same transaction wrote.
TIDEGATE_SEED repeats a run, TIDEGATE_COMBINATIONS says how many there are.
"""

import base64
import datetime
import json
import os
import random
import secrets
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Callable, Sequence

from harness.checks import ScenarioFailed, check, equal, wait_for
from harness.topics import Record, Topic
from harness.trial import Trial
from harness.worker import Worker

LONG = True
MAJORS = range(14, 99)
COMBINATIONS, TRANSACTIONS = 14, 25
EPOCH = datetime.datetime(1970, 1, 1)
JSON = "org.apache.kafka.connect.json.JsonConverter"
Row = dict[str, "str | None"]


class JsonTexts:
    """Reads what the JSON converter writes, in place of a registry's schemas."""

    @staticmethod
    def decode(raw: bytes | None) -> tuple[int | None, Any]:
        """The payload, with or without its schema."""
        value = None if raw is None else json.loads(raw, parse_float=Decimal)
        return None, value["payload"] if isinstance(value, dict) and value.keys() == {"schema", "payload"} else value


# ------------------------------------------------------------ columns: type, what is written, what is read, and what RETURNING shows
def words(r: random.Random) -> str:
    """Now and then too large to stay in the row."""
    count = r.randrange(1, 12) if r.random() < 0.5 else r.randrange(3000, 7000)
    return "".join(r.choice("abcdefghijklmnopqrstuvwxyzäß語 '\"\\{},") for _ in range(count))


def document(r: random.Random) -> str:
    return json.dumps({"k": words(r), "n": r.randrange(10 ** 18)})


def octets(r: random.Random) -> str:
    return "\\x" + r.randbytes(r.choice([0, 3, 3000, 5000])).hex()


def texts(r: random.Random) -> str:
    return "{" + ",".join("NULL" if r.random() < 0.1 else json.dumps(words(r), ensure_ascii=False) for _ in range(r.randrange(3))) + "}"


def numbers(r: random.Random) -> str:
    return "{" + ",".join(str(r.randrange(-10 ** 18, 10 ** 18)) for _ in range(r.choice([0, 2, 900]))) + "}"


def moment(r: random.Random) -> str:
    return str(datetime.datetime(1900, 1, 1) + datetime.timedelta(milliseconds=r.randrange(9_000_000_000_000)))


def of_bytes(value: Any, mode: str, is_json: bool) -> bytes:
    """A byte string, as the modes write it."""
    if mode == "hex":
        return bytes.fromhex(value)
    if mode == "base64-url-safe":
        return base64.urlsafe_b64decode(value)
    return base64.b64decode(value) if mode == "base64" or is_json else value


def of_decimal(value: Any, scale: int | None, modes: dict[str, str], is_json: bool) -> Any:
    """A decimal as a number; in the mode `double` a float."""
    mode = modes["decimal.handling.mode"]
    if mode == "double":
        return float(value)
    if mode == "string" or isinstance(value, Decimal) and not is_json:
        return Decimal(value)
    if scale is None:
        value, scale = value["value"], value["scale"]
    raw = base64.b64decode(value) if is_json else value
    return Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-scale, context=EXACT)


EXACT = __import__("decimal").Context(prec=2000)


def of_moment(value: Any, mode: str) -> datetime.datetime:
    """A `timestamp(3)`."""
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    if mode == "isostring":
        return datetime.datetime.fromisoformat(value.removesuffix("Z"))
    return EPOCH + datetime.timedelta(microseconds=value * 1000 if mode in ("adaptive", "adaptive_time_microseconds", "connect")
                                      else value // {"microseconds": 1, "nanoseconds": 1000}[mode])


def of_day(value: Any) -> datetime.date:
    if isinstance(value, datetime.date):
        return value
    return datetime.date.fromisoformat(value.removesuffix("Z")) if isinstance(value, str) else (EPOCH + datetime.timedelta(value)).date()


@dataclass(frozen=True)
class Column:
    """A column beside the key."""

    name: str
    type: str
    make: Callable[[random.Random], str]
    # From what is published, with the combination's modes and whether it is JSON.
    read: Callable[[Any, dict[str, str], bool], Any]
    # From the server's text.
    real: Callable[[str, dict[str, str]], Any]


def _double_or(text: str, modes: dict[str, str]) -> Any:
    return float(text) if modes["decimal.handling.mode"] == "double" else Decimal(text)


def _text_list(text: str, _: dict[str, str]) -> Any:
    return text


COLUMNS = [
    Column("n", "int", lambda r: str(r.randrange(-2 ** 31, 2 ** 31)), lambda v, m, j: v, lambda s, m: int(s)),
    Column("doc", "text", words, lambda v, m, j: v, lambda s, m: s),
    Column("js", "json", document, lambda v, m, j: v, lambda s, m: s),
    Column("jb", "jsonb", document, lambda v, m, j: v, lambda s, m: s),
    Column("pic", "bytea", octets, lambda v, m, j: of_bytes(v, m["binary.handling.mode"], j), lambda s, m: bytes.fromhex(s[2:])),
    Column("ta", "text[]", texts, lambda v, m, j: v, lambda s, m: json.loads(s)),
    Column("la", "bigint[]", numbers, lambda v, m, j: v, lambda s, m: json.loads(s)),
    Column("d", "numeric(30,10)", lambda r: f"{r.randrange(-10 ** 20, 10 ** 20)}.{r.randrange(10 ** 10):010}",
           lambda v, m, j: of_decimal(v, 10, m, j), _double_or),
    Column("dd", "numeric", lambda r: f"{r.randrange(10 ** r.choice([3, 200]))}.{r.randrange(1000)}",
           lambda v, m, j: of_decimal(v, None, m, j), _double_or),
    Column("ts", "timestamp(3)", moment, lambda v, m, j: of_moment(v, m["time.precision.mode"]),
           lambda s, m: datetime.datetime.fromisoformat(s)),
    Column("day", "date", lambda r: moment(r)[:10], lambda v, m, j: of_day(v), lambda s, m: datetime.date.fromisoformat(s)),
    Column("hs", "hstore", lambda r: f"{json.dumps('k' + str(r.randrange(9)))}=>{json.dumps(words(r), ensure_ascii=False)}, x=>NULL",
           lambda v, m, j: v if m["hstore.handling.mode"] == "map" else json.loads(v), lambda s, m: json.loads(s)),
    Column("iv", "interval", lambda r: f"{r.randrange(-500, 500)} days {r.randrange(10 ** 9)} microseconds",
           lambda v, m, j: _span(v), lambda s, m: int(s)),
]
# What RETURNING shows of them: the text, except where another form is easier to compare with.
SHOWN = {"ta": "to_json(ta)::text", "la": "to_json(la)::text", "hs": "hstore_to_json(hs)::text",
         "iv": "((extract(day from iv) * 86400000000 + extract(hour from iv) * 3600000000 + extract(minute from iv) * 60000000)::numeric"
               " + extract(microseconds from iv)::numeric)::bigint::text"}
EXTERNAL = ("doc", "js", "jb", "pic", "ta", "la", "dd", "hs")


def _span(value: Any) -> int:
    """Microseconds of a span without months."""
    if not isinstance(value, str):
        return value
    date, _, clock = value.removeprefix("P").partition("T")
    days = int(date.split("M")[1].removesuffix("D"))
    hours, rest = clock.split("H")
    minutes, seconds = rest.split("M")
    return (days * 86400 + int(hours) * 3600 + int(minutes) * 60) * 1_000_000 + int(Decimal(seconds.removesuffix("S")) * 1_000_000)


# ------------------------------------------------------------ combinations
IDENTITIES = {
    "default": (["id"], ""), "composite": (["id", "grp"], ""), "index": (["code"], "replica identity using index {0}_code"),
    "full": (["id"], "replica identity full"), "no-key": ([], "replica identity full"), "partitioned": (["id", "grp"], ""),
}
MODES = {
    "decimal.handling.mode": ["precise", "string", "double"],
    "time.precision.mode": ["adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"],
    "interval.handling.mode": ["numeric", "string"], "hstore.handling.mode": ["json", "map"],
    "binary.handling.mode": ["bytes", "base64", "base64-url-safe", "hex"],
}
UNWRAPS = [None, None, "drop", "tombstone", "rewrite", "rewrite-with-tombstone"]


@dataclass
class Combination:
    """What one connector is told, and what its table is like."""

    number: int
    identity: str
    modes: dict[str, str]
    toast: str
    key_change: str
    converter: str
    unwrap: str | None
    tombstones: bool
    before: str
    name: str = ""
    key: list[str] = field(default_factory=list)

    @classmethod
    def random(cls, number: int, r: random.Random) -> "Combination":
        """Any. What would be refused where the server leaves something out needs FULL."""
        identity = r.choice(list(IDENTITIES))
        full = identity in ("full", "no-key")
        toast = r.choice(["backfill", "sentinel"] + ["refuse"] * full)
        return cls(number, identity, {key: r.choice(values) for key, values in MODES.items()}, toast,
                   "refuse" if toast == "refuse" else r.choice(["sentinel", "reselect"] + ["refuse"] * full),
                   r.choice(["avro", "json", "json-bare"]), r.choice(UNWRAPS), r.random() < 0.7, r.choice(["null", "fill"]),
                   key=IDENTITIES[identity][0])

    @property
    def full(self) -> bool:
        """Whether the server sends whole old rows."""
        return self.identity in ("full", "no-key")

    def config(self) -> dict[str, str]:
        """Keys beside the base."""
        more = dict(self.modes) | {
            "topic.prefix": self.name, "slot.name": self.name, "publication.name": self.name, "table.include.list": f"public\\.{self.table}",
            "toast.mode": self.toast, "key.change.toast": self.key_change, "tombstones.on.delete": str(self.tombstones).lower(),
            "before.unsent": self.before, "publish.via.partition.root": "true"}
        if self.converter != "avro":
            more |= {f"{side}.converter{end}": value for side in ("key", "value")
                     for end, value in (("", JSON), (".schemas.enable", str(self.converter == "json").lower()))}
        if self.unwrap is not None:
            more |= {"transforms": "u", "transforms.u.type": "io.debezium.transforms.ExtractNewRecordState",
                     "transforms.u.delete.tombstone.handling.mode": self.unwrap, "transforms.u.add.fields": "op"}
        return more

    @property
    def table(self) -> str:
        """The table's name."""
        return f"t{self.number}"

    def create(self, t: Trial) -> None:
        """Make the table."""
        columns = ", ".join(f"{column.name} {column.type}" for column in COLUMNS)
        key = {"no-key": "", "index": ", primary key (id)"}.get(self.identity, f", primary key ({', '.join(self.key)})")
        by = " partition by list (grp)" if self.identity == "partitioned" else ""
        leaves = [f"{self.table}_{grp}" for grp in range(3)] if by else [self.table]
        t.sql(f"create table {self.table} (id int not null, grp int not null, code text not null, {columns}{key}){by}",
              *(f"create table {leaf} partition of {self.table} for values in ({leaf[-1]})" for leaf in leaves if by),
              *(f"alter table {leaf} " + ", ".join(f"alter {column} set storage external" for column in EXTERNAL) for leaf in leaves))
        if self.identity == "index":
            t.sql(f"create unique index {self.table}_code on {self.table} (code)")
        if IDENTITIES[self.identity][1]:
            t.sql(f"alter table {self.table} {IDENTITIES[self.identity][1].format(self.table)}")


# ------------------------------------------------------------ what happens to the table
@dataclass
class Expected:
    """A record that has to come."""

    op: str  # c, u, d, or a tombstone: -
    key: dict[str, Any] | None
    before: Row | None = None
    after: Row | None = None
    # The create of a changed key.
    is_moved: bool = False
    # The row was written in the same transaction, as a whole.
    is_known: bool = False


class Changes:
    """Random transactions; what they did, change by change."""

    def __init__(self, t: Trial, r: random.Random, combination: Combination):
        self.t, self.r, self.c = t, r, combination
        self.rows: dict[int, Row] = {}
        self.expected: list[Expected] = []
        self.last = 0
        self.returning = "returning id::text, grp::text, code, " + ", ".join(
            f"{SHOWN.get(column.name, column.name + '::text')} as {column.name}" for column in COLUMNS)

    def transaction(self, connection: Any) -> None:
        """One to four changes."""
        written: set[int] = set()
        with connection.transaction():
            for _ in range(self.r.randrange(1, 5)):
                what = self.r.random()
                if not self.rows or what < 0.3:
                    self.insert(connection, written)
                elif what > 0.93:
                    self.delete(connection)
                else:
                    self.update(connection, written)

    def key(self, row: Row) -> dict[str, Any] | None:
        """The record key of a row."""
        return {name: row[name] if name == "code" else int(row[name]) for name in self.c.key} or None  # type: ignore[arg-type]

    def values(self, columns: list[Column]) -> list[str | None]:
        return [None if self.r.random() < 0.08 else column.make(self.r) for column in columns]

    def insert(self, connection: Any, written: set[int]) -> None:
        self.last += 1
        marks = ", ".join(["%s"] * len(COLUMNS))
        row = connection.execute(f"insert into {self.c.table} values ({self.last}, {self.r.randrange(3)}, 'c{self.last}', {marks}) "
                                 f"{self.returning}", self.values(COLUMNS)).fetchone()
        self.rows[self.last] = row
        written.add(self.last)
        self.expected.append(Expected("c", self.key(row), after=row, is_known=True))

    def delete(self, connection: Any) -> None:
        number = self.r.choice(list(self.rows))
        row = self.rows.pop(number)
        connection.execute(f"delete from {self.c.table} where id = %s", [int(row["id"])])
        self.gone(row)

    def gone(self, row: Row) -> None:
        self.expected.append(Expected("d", self.key(row), before=row))
        if self.c.key:
            self.expected.append(Expected("-", self.key(row)))

    def update(self, connection: Any, written: set[int]) -> None:
        number = self.r.choice(list(self.rows))
        old = self.rows[number]
        columns = self.r.sample(COLUMNS, self.r.randrange(0, 4))
        sets, values = [f"{column.name} = %s" for column in columns], self.values(columns)
        if self.r.random() < 0.25:
            self.last += 1
            sets.append(self.r.choice([f"id = {self.last}", f"grp = {self.r.randrange(3)}", f"code = 'c{self.last}'"]))
        if self.r.random() < 0.2:
            sets.append(self.r.choice([f"{name} = {name}" for name in EXTERNAL if not any(one.startswith(name + " ") for one in sets)]))
        row = connection.execute(f"update {self.c.table} set {', '.join(sets) or 'n = n'} where id = %s {self.returning}",
                                 [*values, int(old["id"])]).fetchone()
        self.rows[number] = row
        if self.key(row) == self.key(old):
            self.expected.append(Expected("u", self.key(row), old, row, is_known=number in written))
        else:
            self.gone(old)
            # A row that moves to another partition is deleted and inserted, as a whole.
            whole = self.c.identity == "partitioned" and row["grp"] != old["grp"]
            self.expected.append(Expected("c", self.key(row), old, row, is_moved=not whole, is_known=whole or number in written))
            if whole:
                written.add(number)


# ------------------------------------------------------------ the judge
class Judge:
    """Compares what came with what had to come."""

    def __init__(self, combination: Combination):
        self.c = combination

    def wanted(self, expected: list[Expected]) -> list[Expected]:
        """The records, after tombstones.on.delete and the transform."""
        how, found = self.c.unwrap, []
        for one in expected:
            if how is not None and one.op == "d":
                if how == "tombstone" and one.key is not None:
                    found.append(Expected("-", one.key))
                elif how in ("rewrite", "rewrite-with-tombstone"):
                    found.append(one)
                    if how == "rewrite-with-tombstone" and one.key is not None and self.c.tombstones:
                        found.append(Expected("-", one.key))
            elif one.op != "-" or how is None and self.c.tombstones:
                found.append(one)
        return found

    def value(self, name: str, published: Any) -> Any:
        column = next((one for one in COLUMNS if one.name == name), None)
        if column is None or published is None:
            return published
        return column.read(published, self.c.modes, self.c.converter != "avro")

    def real(self, name: str, text: str | None) -> Any:
        column = next((one for one in COLUMNS if one.name == name), None)
        if text is None or name == "code":
            return text
        return int(text) if column is None else column.real(text, self.c.modes)

    def image(self, what: str, record: Record, published: dict[str, Any], row: Row, later: Sequence[Row] = ()) -> None:
        """Every column that is not named as unknown is the row's, or, if it was read anew, that of a later row of the key."""
        unknown = (record.extension("unavailable") or "").split(",")
        anew = (record.extension("reselected") or "").split(",")
        for name, text in row.items():
            if name not in unknown:
                value, real = self.value(name, published[name]), self.real(name, text)
                if name not in anew or value not in [self.real(name, one[name]) for one in later]:
                    equal(value, real, f"{what}.{name} of {record.key}{' read anew' if name in anew else ''}")

    def judge(self, one: Expected, record: Record, following: list[Expected]) -> None:
        """One record, and what comes after it."""
        if one.op == "-":
            return check(record.tombstone and record.key == one.key, f"a tombstone of {one.key}; it is {record!r:.400}")
        check(not record.tombstone, f"a record of {one.key}, not a tombstone")
        equal(record.key, one.key, f"key of {one.op}")
        value = record.value
        if self.c.unwrap is None:
            op, before, after = value["op"], value["before"], value["after"]
        else:
            op, before = value["__op"], value if value["__op"] == "d" else None
            after = None if op == "d" else value
        equal(op, one.op, f"operation of {one.key}")
        if after is not None:
            self.image("after", record, after, one.after,
                       [other.after for other in following if other.after is not None and other.key == one.key])
            self.unknown(one, record)
        if before is not None and one.before is not None and (op == "d" or self.c.full):
            self.image("before", record, before, one.before)
            named = set((record.extension("unavailable") or "").split(",")) if op == "d" else set()
            check(not named & set(self.c.key), f"the key is known: {named}")
        if op == "u" and self.c.unwrap is None:
            check((before is not None) == self.c.full or self.c.identity in ("default", "composite", "index", "partitioned"),
                  "a row before under FULL")
        return None

    def unknown(self, one: Expected, record: Record) -> None:
        """What is named as not sent, or as read anew, may be that."""
        names = [name for name in (record.extension("unavailable") or "").split(",") if name]
        anew = [name for name in (record.extension("reselected") or "").split(",") if name]
        for name in names + anew:
            check(not self.c.full, f"nothing is missing under FULL: {name}")
            check(one.before is not None and one.before[name] == one.after[name], f"{name} did not change")
            check(name in EXTERNAL and len(one.after[name] or "") > 1000, f"{name} is large: {one.after[name]!r:.100}")
        # The first row of a partition describes the whole table anew: what was sent before it is not used any more.
        check(not (names and one.is_known and self.c.toast == "backfill" and self.c.identity != "partitioned"),
              f"the transaction sent {names} before")
        equal(record.extension("unmergeable"), "true" if one.is_moved and names else None, "whether it can be merged")
        check(not anew or one.is_moved and self.c.key_change == "reselect", f"{anew} were read anew")


def topic(t: Trial, c: Combination) -> Topic:
    """The table's topic, in the combination's format."""
    found = Topic(t.kafka.address, f"{c.name}.public.{c.table}", t.schemas if c.converter == "avro" else JsonTexts())  # type: ignore[arg-type]
    t.later(found.close)
    return found


def settled(t: Trial, worker: Worker, c: Combination) -> None:
    """Everything committed is in Kafka."""
    end = t.server.value("select pg_current_wal_lsn()::text")
    wait_for(lambda: t.server.value("select confirmed_flush_lsn >= %s::pg_lsn from pg_replication_slots where slot_name = %s", end, c.name),
             120, f"the confirmation of {end}", worker.connector(c.name).failed)


def try_one(t: Trial, worker: Worker, r: random.Random, c: Combination) -> int:
    """One combination; the number of records."""
    c.name = f"{t.name}_{c.number}"
    c.create(t)
    config = t.config() | c.config()
    connector = worker.create(c.name, config)
    wait_for(lambda: t.server.value("select state = 'streaming' from pg_stat_replication join pg_replication_slots on active_pid = pid "
                                    "where slot_name = %s", c.name), 90, "the stream", connector.failed)
    changes, judge = Changes(t, r, c), Judge(c)
    with t.source.session() as connection:
        for _ in range(TRANSACTIONS):
            changes.transaction(connection)
    settled(t, worker, c)
    records, wanted = topic(t, c).read(), judge.wanted(changes.expected)
    equal([(record.tombstone, record.key) for record in records], [(one.op == "-", one.key) for one in wanted], "tombstones and keys")
    for place, (one, record) in enumerate(zip(wanted, records)):
        judge.judge(one, record, wanted[place + 1:])
    connector.delete()
    return len(records)


def run(t: Trial) -> None:
    seed = int(os.environ.get("TIDEGATE_SEED", secrets.randbits(32)))
    count = int(os.environ.get("TIDEGATE_COMBINATIONS", COMBINATIONS))
    print(f"random-images: TIDEGATE_SEED={seed} TIDEGATE_COMBINATIONS={count}", flush=True)
    worker = t.worker()
    faults = []
    for number in range(count):
        r = random.Random(seed * 1000 + number)
        combination = Combination.random(number, r)
        try:
            try_one(t, worker, r, combination)
        except ScenarioFailed as failure:
            faults.append(f"{combination}: {failure}")
            if worker.rest("GET", f"/connectors/{combination.name}").status == 200:
                worker.connector(combination.name).delete()
    if faults:
        raise ScenarioFailed(f"{len(faults)} of {count} combinations (seed {seed}):\n" + "\n".join(f"{one:.1500}" for one in faults))

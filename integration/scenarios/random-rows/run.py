"""Random rows and updates under REPLICA IDENTITY FULL: what is published is what SELECT showed at that commit, for every type.

Types of variable length have values that do not stay in the row now and then, so that updates leave them out of the new image.
TIDEGATE_SEED repeats a run, TIDEGATE_STEPS says how many changes it makes. pgvector's types are among them where the server can
have them (PostgreSQL 16 and 18), infinite spans from 17 on, and numbers that are none where decimals are published as text.
"""

import math
import os
import random
import re
import secrets
import string
import struct
import sys
from datetime import datetime, timedelta
from typing import Any, Callable, Sequence

from harness.checks import ScenarioFailed, check, equal
from harness.trial import Trial
from stack import extensions

MAJORS = range(14, 99)
LONG = {"many"}
EPOCH = datetime(1970, 1, 1)
INFINITIES = {9223372036825200000: "infinity", -9223372036832400000: "-infinity", 2147483647: "infinity", -2147483648: "-infinity"}

LETTERS = string.ascii_letters + string.digits
# Parts of large values: random, so that they do not become small by compression.
OCTETS = [format(number, "08b") for number in range(256)]
NUMBERS = [str(random.Random(number).randrange(10 ** 8, 10 ** 9)) for number in range(999)]
POINTS = [f"({number},-{number})" for number in NUMBERS]
RANGES = [f"[{number},{number}.5)" for number in NUMBERS]

Make = Callable[[random.Random], str]
Tell = Callable[[Any], str]


# ------------------------------------------------------------ what is written: texts that the server reads
def text(r: random.Random, limit: int = 40) -> str:
    letters = string.ascii_letters + string.digits + " '\"\\,{}()[]:;=>\n\t" + "äß語😀\u200b"
    return "".join(r.choice(letters) for _ in range(r.randrange(limit)))


def or_large(make: Make, form: str = "{}", parts: Sequence[str] = LETTERS, separator: str = "") -> Make:
    """Now and then a value too large to stay in the row, and incompressible."""
    def made(r: random.Random) -> str:
        if r.random() < 0.75:
            return make(r)
        return form.format(separator.join(r.choices(parts, k=r.randrange(3000, 9000) // len(parts[0]))))
    return made


def integer(bits: int) -> Make:
    limit = 1 << (bits - 1)
    return lambda r: str(r.choice([0, -1, limit - 1, -limit, r.randrange(-limit, limit), r.randrange(-100, 100)]))


def decimal(digits: int, scale: int) -> Make:
    return lambda r: f"{r.randrange(-10 ** digits + 1, 10 ** digits)}e-{scale}"


def sometimes(make: Make, *others: str) -> Make:
    return lambda r: r.choice(others) if r.random() < 0.1 else make(r)


def variable(r: random.Random) -> str:
    return f"{r.randrange(-10 ** 30, 10 ** 30)}e-{r.randrange(40)}"


def money(r: random.Random) -> str:
    return f"{r.choice(['-', ''])}{r.randrange(10 ** 14)}.{r.randrange(100):02}"


def floating(single: bool) -> Make:
    def make(r: random.Random) -> str:
        if r.random() < 0.2:
            return r.choice(["NaN", "Infinity", "-Infinity", "0", "-0", "1e-40" if single else "5e-324"])
        if single:
            value = struct.unpack("<f", struct.pack("<I", r.getrandbits(32)))[0]
        else:
            value = struct.unpack("<d", struct.pack("<Q", r.getrandbits(64)))[0]
        return repr(value) if math.isfinite(value) else "1"
    return make


def moment(r: random.Random) -> datetime:
    return datetime(1, 1, 1) + timedelta(microseconds=r.randrange(0, 315_537_897_599_999_999))


def stamp(digits: int, zone: str = "") -> Make:
    def make(r: random.Random) -> str:
        if r.random() < 0.05:
            return r.choice(["infinity", "-infinity"])
        at = moment(r).replace(microsecond=0)
        return f"{at:%H:%M:%S}".join([f"{at.year:04}-{at:%m-%d} ", fraction(r, digits)]) + zone
    return make


def fraction(r: random.Random, digits: int) -> str:
    return f".{r.randrange(10 ** digits):0{digits}}" if digits else ""


def day(r: random.Random) -> str:
    at = moment(r)
    return r.choice(["infinity", "-infinity"]) if r.random() < 0.05 else f"{at.year:04}-{at:%m-%d}"


def clock(digits: int) -> Make:
    def make(r: random.Random) -> str:
        return "24:00:00" if r.random() < 0.05 else f"{moment(r):%H:%M:%S}{fraction(r, digits)}"
    return make


def far(r: random.Random) -> str:
    """A moment before the common era or far away, as close to the ends as microseconds in 64 bits."""
    year = r.choice([r.randrange(1, 4713), -r.randrange(10000, 294246)])
    return f"{abs(year):04}-{r.randrange(1, 13):02}-{r.randrange(1, 29):02} {moment(r):%H:%M:%S}{fraction(r, 6)}{' BC' if year > 0 else ''}"


def far_day(r: random.Random) -> str:
    return r.choice(["5874897-12-31", "4713-01-01 BC", "0001-12-31 BC", "1582-10-04", f"{r.randrange(10000, 5874897)}-02-28",
                     f"{r.randrange(1, 4713):04}-02-28 BC", "infinity", "-infinity"])


def zoned_clock(r: random.Random) -> str:
    return f"{moment(r):%H:%M:%S}{fraction(r, 6)}{r.choice('+-')}{r.randrange(0, 15):02}:{r.choice(['00', '30'])}"


def span(r: random.Random) -> str:
    return f"{r.randrange(-900, 900)} months {r.randrange(-900, 900)} days {r.randrange(-10 ** 4, 10 ** 4)} hours {r.randrange(-10 ** 9, 10 ** 9)} microseconds"


def bits_up_to(length: int) -> Make:
    return lambda r: bits(r.randrange(1, length + 1))(r)


def bits(length: int) -> Make:
    return lambda r: format(r.getrandbits(length), f"0{length}b")


def document(r: random.Random, depth: int = 0) -> str:
    kind = r.randrange(6 if depth < 2 else 4)
    if kind == 4:
        return "[" + ", ".join(document(r, depth + 1) for _ in range(r.randrange(3))) + "]"
    if kind == 5:
        return "{ " + ", ".join(f'"{n}" :  {document(r, depth + 1)}' for n in "bac"[: r.randrange(4)]) + " }"
    return r.choice(["null", "true", str(r.randrange(10 ** 20)), "1.10", '"a\\u00e9 \\"q\\""', '"語"'])


def hexadecimal(r: random.Random) -> str:
    return "\\x" + r.randbytes(r.randrange(40) if r.random() < 0.7 else r.randrange(3000, 6000)).hex()


def uuid(r: random.Random) -> str:
    digits = f"{r.getrandbits(128):032x}"
    return "-".join([digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]])


def array(element: Make) -> Make:
    def make(r: random.Random) -> str:
        count = r.randrange(5) if r.random() < 0.95 else r.randrange(60, 100)
        bounds = f"[{r.randrange(-3, 3)}:{{}}]=" if count and r.random() < 0.1 else ""
        if bounds:
            first = int(bounds[1:bounds.index(":")])
            bounds = bounds.format(first + count - 1)
        return bounds + "{" + ",".join("NULL" if r.random() < 0.1 else quoted(element(r)) for _ in range(count)) + "}"
    return make


def quoted(element: str) -> str:
    return '"' + element.replace("\\", "\\\\").replace('"', '\\"') + '"'


def pairs(r: random.Random) -> str:
    return ", ".join(f"{quoted(text(r, 8))}=>{'NULL' if r.random() < 0.2 else quoted(text(r))}" for _ in range(r.randrange(4)))


def one_of(*texts: str) -> Make:
    return lambda r: r.choice(texts)


def numbers_between(low: int, high: int) -> Make:
    return lambda r: "[{},{})".format(*sorted([r.randrange(low, high), r.randrange(low, high)]))


# ------------------------------------------------------------ what is read: published values as texts of the type
def plain(value: Any) -> str:
    return str(value)


def number(value: float) -> str:
    return repr(value)


def scaled(value: dict | str) -> str:
    return value if isinstance(value, str) else f"{int.from_bytes(value['value'], 'big', signed=True)}e{-value['scale']}"


def octets(value: bytes) -> str:
    return "\\x" + value.hex()


def days(value: int) -> str:
    at = EPOCH + timedelta(days=value) if value not in INFINITIES else None
    return f"{at.year:04}-{at:%m-%d}" if at else INFINITIES[value]


def of_day(per_second: int) -> Tell:
    def tell(value: int) -> str:
        seconds, rest = divmod(value, per_second)
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest * 1_000_000 // per_second:06}"
    return tell


def instant(per_second: int) -> Tell:
    def tell(value: int) -> str:
        special = INFINITIES.get(value) or {9223372036825200: "infinity", -9223372036832400: "-infinity"}.get(value)
        at = EPOCH + timedelta(microseconds=value * 1_000_000 // per_second) if not special else None
        return f"{at.year:04}-{at:%m-%d %H:%M:%S.%f}" if at else special
    return tell


def bit_text(length: int) -> Tell:
    return lambda value: format(int.from_bytes(value, "little"), f"0{length}b")


def digits(value: bytes) -> str:
    return format(int.from_bytes(value, "little"), "b")


def of_era(value: str) -> str:
    """ISO's years, 0 and less before the common era, as the server writes them."""
    if (parts := re.fullmatch(r"([+-]?\d+)(-.*)Z", value)) is None:
        return value
    year = int(parts[1])
    return f"{year if year > 0 else 1 - year:04}{parts[2].replace('T', ' ')}+00{'' if year > 0 else ' BC'}"


def vector(values: list[float]) -> str:
    return "[" + ",".join(map(repr, values)) + "]"


def truth(value: bool) -> str:
    return "1" if value else "0"


def point(value: dict) -> str:
    check(value["wkb"] == struct.pack("<BIdd", 1, 1, value["x"], value["y"]), "a point's binary form is the same point")
    return f"({value['x']!r},{value['y']!r})"


def elements(tell: Tell) -> Tell:
    return lambda values: "{" + ",".join("NULL" if value is None else quoted(tell(value)) for value in values) + "}"


# type, what is written, how the published value is told; how both are compared, if not as the server's texts
SAME = "({0})::{1}::text = ({2})::text"
EQUAL = "({0})::{1} = {2}"
DAYS = ("(select case when isfinite(real) then told::int8 = real - date '1970-01-01' else told = case when real > '2000-01-01' "
        "then '2147483647' else '-2147483648' end end from (select {0} as told, {2} as real) as x)")
MICROS = "({0})::numeric = extract(epoch from {2}) * 1000000"
# Zeros at the beginning are not told.
BITS = "ltrim({0}, '0') = ltrim(({2})::text, '0')"
UNBOUND = "array(select unnest(({0})::{1}))::text = array(select unnest({2}))::text"
Kind = tuple[str, Make, Tell] | tuple[str, Make, Tell, str]
TYPES: list[Kind] = [
    ("boolean", one_of("t", "f"), plain),
    ("smallint", integer(16), plain), ("integer", integer(32), plain), ("bigint", integer(64), plain),
    ("oid", one_of("0", "4294967295", "7"), plain),
    ("real", floating(True), number), ("double precision", floating(False), number),
    ("numeric(10,2)", decimal(10, 2), plain), ("numeric(40,0)", decimal(40, 0), plain), ("numeric(60,30)", decimal(60, 30), plain),
    ("numeric", or_large(variable, "1{}", string.digits), scaled, EQUAL), ("net_price", decimal(8, 3), plain), ("money", money, plain),
    ("text", or_large(text), plain), ("varchar", or_large(text), plain), ("varchar(50)", text, plain), ("char(40)", text, plain), ("name", text, plain), ("citext", or_large(text), plain),
    ('"char"', one_of("a", "Z"), plain), ("bytea", hexadecimal, octets),
    ("bit(1)", bits(1), truth), ("bit(9)", bits(9), bit_text(9)), ("bit(64)", bits(64), bit_text(64)),
    ("varbit(12)", bits_up_to(12), digits, BITS), ("varbit", or_large(bits_up_to(90), "1{}", OCTETS * 9), digits, BITS),
    ("date", far_day, plain, DAYS), ("timestamp", far, plain, MICROS), ("timestamptz", lambda r: far(r).replace(" BC", "+00 BC"), of_era),
    ("date", day, days), ("time", clock(6), of_day(1_000_000)), ("time(3)", clock(3), of_day(1_000)),
    ("timetz", zoned_clock, plain, "({0})::{1} at time zone 'UTC' = {2} at time zone 'UTC'"),
    ("timestamp", stamp(6), instant(1_000_000)), ("timestamp(3)", stamp(3), instant(1_000)), ("timestamp(0)", stamp(0), instant(1_000)),
    ("timestamptz", stamp(6, "+00"), plain), ("timestamptz(3)", stamp(3, "-07:30"), plain), ("interval", span, plain),
    ("uuid", uuid, plain), ("json", or_large(document, '{{ "k" :  "{}"}}'), plain),
    ("jsonb", or_large(document, '{{"k" : "{}"}}'), plain), ("xml", or_large(one_of("<a b=\"c\">d &amp; é</a>", "<e/>"), "<a>{}</a>"), plain),
    ("inet", one_of("10.1.2.3/8", "::1", "192.168.0.1"), plain), ("cidr", one_of("10.0.0.0/8", "2001:db8::/32"), plain),
    ("macaddr", one_of("08:00:2b:01:02:03"), plain), ("macaddr8", one_of("08:00:2b:01:02:03:04:05"), plain),
    ("int4range", numbers_between(-9, 9), plain), ("int8range", numbers_between(-9, 9), plain), ("numrange", numbers_between(-9, 9), plain),
    ("tsrange", one_of("[2024-01-01 00:00,infinity)", "empty", "(,)"), plain), ("tstzrange", one_of("[2024-01-01 00:00+00,)"), plain),
    ("daterange", one_of("[2024-01-01,2024-02-01)", "[,2024-02-01)"), plain), ("int4multirange", one_of("{[1,3),[5,8)}", "{}"), plain),
    ("nummultirange", or_large(one_of("{[1.5,2.5),(3,)}"), "{{{}}}", RANGES, ","), plain), ("tstzmultirange", one_of("{[2024-01-01 00:00+00,)}", "{}"), plain),
    ("datemultirange", one_of("{[2024-01-01,2024-02-01),[2025-01-01,)}"), plain),
    ("tsvector", or_large(one_of("'a':1 'fat':2A 'it''s'", ""), "w{}", NUMBERS, " w"), plain),
    ("tsquery", one_of("'fat' & ( 'rat' | !'cat' )"), plain),
    ("pg_lsn", one_of("16/B374D848", "0/0"), plain), ("jsonpath", or_large(one_of('$."a"[*]?(@ > 2)'), '$."{}"'), plain),
    ("point", one_of("(1,2)", "(-1e300,0.1)", "(Infinity,3)"), point), ("box", one_of("(1,1),(0,0)"), plain),
    ("lseg", one_of("[(0,0),(1,1)]"), plain), ("path", or_large(one_of("((0,0),(1,1))", "[(0,0),(1.5,1)]"), "[{}]", POINTS, ","), plain),
    ("polygon", or_large(one_of("((0,0),(1,1),(2,0))"), "({})", POINTS, ","), plain), ("circle", one_of("<(1,2),3>"), plain), ("line", one_of("{1,2,3}"), plain),
    ("mood", one_of("sad", "ok", 'very "happy"'), plain), ("shorter", one_of("", "12345678", "語語"), plain), ("note", or_large(text), plain),
    ("nest", or_large(one_of('("(1,a)","{1,NULL}")', '(,{})'), '("(1,{})",)'), plain),
    ("ints", or_large(array(integer(32)), "{{{}}}", NUMBERS, ","), elements(plain), UNBOUND),
    ("xid", one_of("4294967295"), plain), ("pg_snapshot", one_of("10:20:10,14,15"), plain), ("regtype", one_of("integer", "-"), plain),
    ("pair", or_large(one_of('(5,"a, b")', "(,)", '(1,"""")'), "(1,{})"), plain), ("ltree", or_large(one_of("Top.Science", ""), "a{}", NUMBERS, "."), plain),
    ("hstore", or_large(pairs, "k=>{}"), plain, "(select coalesce(hstore(array_agg(key), array_agg(value)), '') from json_each_text({0})) = {2}"),
    ("boolean[]", array(one_of("t", "f")), elements(plain), UNBOUND), ("smallint[]", array(integer(16)), elements(plain), UNBOUND),
    ("integer[]", array(integer(32)), elements(plain), UNBOUND), ("bigint[]", or_large(array(integer(64)), "{{{}}}", NUMBERS, ","), elements(plain), UNBOUND),
    ("real[]", array(floating(True)), elements(number), UNBOUND), ("float8[]", array(floating(False)), elements(number), UNBOUND),
    ("numeric(10,2)[]", array(decimal(10, 2)), elements(plain), UNBOUND), ("money[]", array(money), elements(plain), UNBOUND),
    ("text[]", or_large(array(text), '{{"{}"}}'), elements(plain), UNBOUND), ("char(40)[]", array(text), elements(plain), UNBOUND),
    ("bytea[]", array(hexadecimal), elements(octets), UNBOUND), ("bit(1)[]", array(bits(1)), elements(truth), UNBOUND),
    ("date[]", array(day), elements(days), UNBOUND), ("time[]", array(clock(6)), elements(of_day(1_000_000)), UNBOUND),
    ("timestamp(3)[]", array(stamp(3)), elements(instant(1_000)), UNBOUND), ("timestamptz[]", array(stamp(6, "+00")), elements(plain), UNBOUND),
    ("interval[]", array(span), elements(plain), UNBOUND), ("uuid[]", array(uuid), elements(plain), UNBOUND),
    ("jsonb[]", or_large(array(document), '{{"[\\"{}\\"]"}}'), elements(plain), UNBOUND), ("xml[]", array(one_of("<e/>")), elements(plain), UNBOUND),
    ("mood[]", array(one_of("sad", 'very "happy"')), elements(plain), UNBOUND), ("shorter[]", array(one_of("12345678")), elements(plain), UNBOUND),
    ("pair[]", array(one_of('(5,"a, b")', "(,)")), elements(plain), UNBOUND), ("point[]", array(one_of("(1,2)")), elements(point), UNBOUND),
    ("int4range[]", array(numbers_between(-9, 9)), elements(plain), UNBOUND), ("inet[]", array(one_of("::1")), elements(plain), UNBOUND),
    ("box[]", lambda r: "{(1,1),(0,0);(3,3),(2,2)}", lambda values: "{" + ";".join(values) + "}", UNBOUND),
    ("integer[][]", one_of("{{1,2},{3,NULL}}", "{}", "[0:0][2:3]={{1,2}}"), plain),
]
VECTORS: list[tuple[str, Make, Tell]] = [
    ("vector(3)", one_of("[1,-2.5,3e-20]", "[3.4028235e+38,0.1,0]"), vector), ("vector(900)", lambda r: "[" + ",".join(r.choices(NUMBERS, k=900)) + "]", vector),
    ("halfvec(2)", one_of("[65504,-0.1]", "[0,1]"), vector),
    ("sparsevec(70000)", one_of("{1:1.5,70000:-2}/70000", "{}/70000"), plain),
]


def choose_types(t: Trial, r: random.Random) -> tuple[dict[str, str], list[Kind]]:
    """The connector's modes; and what this server has, with what decimals may be under the mode that is chosen."""
    types = list(TYPES)
    if (reason := extensions.install(t.postgres, "vector")) is None:
        t.admin.sql("create extension vector")
        types.extend(VECTORS)
    else:
        print(f"random-rows: without pgvector: {reason}", flush=True)
    modes = {"decimal.handling.mode": r.choice(["precise", "string"]), "interval.handling.mode": "string"}
    for place, (name, make, *rest) in enumerate(types):
        if modes["decimal.handling.mode"] == "string" and name in ("numeric", "numeric(10,2)"):
            make = sometimes(make, "NaN", *(["Infinity", "-Infinity"] if name == "numeric" else []))
        if name == "interval" and t.postgres.major in ("17", "18"):
            make = sometimes(make, "infinity", "-infinity")
        types[place] = (name, make, *rest)  # type: ignore[assignment]
    return modes, types


class Rows:
    """The table, changed at random; what each change made of its row."""

    def __init__(self, t: Trial, r: random.Random, types: list[Kind]):
        self.t, self.r = t, r
        self.kinds = {f"c{number}": kind for number, kind in enumerate(types)}
        self.names = list(self.kinds)
        self.rows: dict[int, dict[str, str | None]] = {}
        self.changes: list[tuple[str, int, dict[str, str | None] | None, dict[str, str | None] | None]] = []
        self.last = 0
        # Large values that an update left as they were, so that the new image came without them.
        self.left = 0
        columns = ", ".join(f"{name} {kind[0]}" for name, kind in self.kinds.items())
        t.sql(f"create table t (id int primary key, {columns})", "alter table t replica identity full")
        self.returning = "returning id, " + ", ".join(f"{name}::text as {name}" for name in self.names)

    def values(self, names: list[str]) -> list[str | None]:
        return [None if self.r.random() < 0.1 else self.kinds[name][1](self.r).replace("\0", "") for name in names]

    def step(self) -> None:
        what = self.r.random()
        if not self.rows or what < 0.3:
            return self.insert()
        key = self.r.choice(list(self.rows))
        if what > 0.95:
            self.t.query(f"delete from t where id = {key} {self.returning}")
            self.changes.append(("d", key, self.rows.pop(key), None))
            return None
        names = self.r.sample(self.names, self.r.randrange(1, 8))
        new = key if what < 0.85 else self.next()
        self.run(f"update t set id = {new}, {', '.join(f'{name} = %s' for name in names)} where id = {key}", self.values(names), key)

    def insert(self) -> None:
        marks = ", ".join(["%s"] * len(self.names))
        self.run(f"insert into t (id, {', '.join(self.names)}) values ({self.next()}, {marks})", self.values(self.names), None)

    def next(self) -> int:
        self.last += 1
        return self.last

    def run(self, statement: str, values: list[str | None], key: int | None) -> None:
        """One change, with the row as the same transaction shows it."""
        row = self.t.query(f"{statement} {self.returning}", *values)[0]
        new = row.pop("id")
        before = None if key is None else self.rows.pop(key)
        self.left += sum(len(row[name] or "") > 2500 and row[name] == before[name] for name in self.names) if before else 0
        if key is not None and new != key:
            self.changes += [("d", key, before, None), ("c", new, None, row)]
        else:
            self.changes.append(("c" if key is None else "u", new, before, row))
        self.rows[new] = row


def differences(t: Trial, kinds: dict[str, Kind], published: dict[str, Any], row: dict[str, str | None]) -> list[str]:
    """Columns whose published value is not the row's."""
    tests, parameters, found, names = [], [], [], list(kinds)
    for name, kind in kinds.items():
        if published[name] is None or row[name] is None:
            if published[name] is not row[name]:
                found.append(f"{kind[0]}: {published[name]!r}, not {row[name]!r}")
            continue
        how = kind[3] if len(kind) > 3 else SAME
        cast = "%s::json" if kind[0] == "hstore" else "%s::text"
        tests.append(f"select {names.index(name)} as place where not coalesce({how.format(cast, kind[0], f'%s::text::{kind[0]}')}, false)")
        parameters += [kind[2](published[name]), row[name]]
    for wrong in t.query(" union all ".join(tests), *parameters) if tests else []:
        name = names[wrong["place"]]
        kind = kinds[name]
        found.append(f"{kind[0]}: {published[name]!r:.300}, not {row[name]!r:.300}")
    return found


def changes(t: Trial, count: int) -> None:
    sys.set_int_max_str_digits(0)
    seed = int(os.environ.get("TIDEGATE_SEED", secrets.randbits(32)))
    steps = int(os.environ.get("TIDEGATE_STEPS", count))
    print(f"random-rows: TIDEGATE_SEED={seed} TIDEGATE_STEPS={steps}", flush=True)
    r = random.Random(seed)
    modes, types = choose_types(t, r)
    rows = Rows(t, r, types)
    rows.insert()
    t.connect(**modes)
    for _ in range(steps):
        rows.step()
    check(rows.left, "some updates leave large values as they were")
    check(t.admin.value("select pg_relation_size(reltoastrelid) > 0 from pg_class where oid = 't'::regclass"), "they are not in the row")
    records = [record for record in t.settled_records("t") if not record.tombstone]
    equal([(r.op, r.key["id"]) for r in records], [("r" if place == 0 else op, key) for place, (op, key, _, _) in enumerate(rows.changes)],
          f"operations and keys (seed {seed})")
    for record, (_, key, before, after) in zip(records, rows.changes):
        for image, row in ((record.before, before), (record.after, after)):
            if row is not None and not (row is before and record.op in "cr"):
                found = differences(t, rows.kinds, image, row)
                if found:
                    raise ScenarioFailed(f"row {key} of {record.op} (seed {seed}): " + "; ".join(found))
        equal(record.extension("unavailable"), None, f"columns of row {key} that are not known (seed {seed})")


CASES = {"some": lambda t: changes(t, 40), "many": lambda t: changes(t, 300)}

"""Columns left out, masked, cut and hashed never go out; records keyed by other columns follow the key's changes."""

import hashlib

from harness.checks import check, equal
from harness.topics import replay
from harness.trial import Trial

# The same on every version of the server.
SERVER_MATTERS = False


def run(t: Trial) -> None:
    worker = t.worker()
    rules = {
        "column.exclude.list": "public.person.(secret|born)",
        "column.mask.with.5.chars": "public.person.email",
        "column.mask.hash.v2.SHA-256.with.salt.pepper": "public.person.pin,public.person.notes",
        "column.truncate.to.3.chars": "public.person.name,public.person.tags",
        "skip.messages.without.change": "true",
        "message.key.columns": "public.visit:person,place",
    }
    for key, columns, code in [
        ("column.mask.with.5.chars", "public.person.born", "TG-E-COLUMN-RULE-UNFIT"),
        ("column.mask.with.5.chars", "public.visit.place", "TG-E-COLUMN-RULE-UNFIT"),
        ("message.key.columns", "public.visit:nobody", "TG-E-COLUMN-RULE-UNFIT"),
        ("column.mask.hash.CRC-32.with.salt.x", "public.person.pin", "TG-E-CONFIG-INVALID"),
    ]:
        t.refused(worker, t.config() | rules | {key: columns}, code)
    worker.create(t.name, t.config() | rules)
    t.wait_streaming()
    t.sql("update person set secret = 's2', born = '1991-01-01' where id = 1",  # nothing that is published
          "update person set notes = 'other' where id = 1",
          "insert into person values (3, 'Cy 😀 Ünger', 'c@x', '9', '', null, '{}', 's3')",
          "delete from person where id = 2")
    digest = lambda text: hashlib.sha256(b"pepper" + text.encode()).hexdigest()
    ann = {"id": 1, "name": "Ann", "email": "*****", "pin": digest("1234")[:4], "notes": digest("a long note"),
           "tags": ["abc", "g"]}
    bo = {"id": 2, "name": "Bo", "email": None, "pin": None, "notes": None, "tags": None}
    records = t.settled_records("person")
    equal([(r.op, r.before, r.after) for r in records], [
        ("r", None, ann), ("r", None, bo),
        ("u", ann, ann | {"notes": digest("other")}),
        ("c", None, {"id": 3, "name": "Cy ", "email": "*****", "pin": digest("9   ")[:4], "notes": digest(""), "tags": []}),
        ("d", bo, None), (None, None, None),
    ], "people")
    raw = b"".join(r.raw_value or b"" for r in records)
    for hidden in (b"ann@example.org", b"1234", b"a long note", b"Archer", b"s1", b"s2"):
        check(hidden not in raw, f"{hidden} is hidden")

    t.sql("insert into visit values (2, 10, 'y', null)",
          "update visit set at = '2024-02-02' where id = 1",
          "update visit set id = 5 where id = 1",   # not the records' key
          "update visit set place = 'z' where id = 5",
          "delete from visit where id = 2")
    visits = t.settled_records("visit")
    equal([(r.op, r.key) for r in visits], [
        ("r", {"person": 10, "place": "x"}), ("c", {"person": 10, "place": "y"}),
        ("u", {"person": 10, "place": "x"}), ("u", {"person": 10, "place": "x"}),
        ("d", {"person": 10, "place": "x"}), (None, {"person": 10, "place": "x"}), ("c", {"person": 10, "place": "z"}),
        ("d", {"person": 10, "place": "y"}), (None, {"person": 10, "place": "y"}),
    ], "visits")
    equal([row["id"] for row in replay(visits).values()], [r["id"] for r in t.query("select id from visit")], "the table")
    t.exactly_once(records)
    t.exactly_once(visits)

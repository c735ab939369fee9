"""Types of PostGIS and pgvector on a server that has them: snapshot and stream carry the value that SELECT shows, and mark what was not sent.

PostGIS is there for Debian's server only; pgvector for PostgreSQL 16 and 18. Elsewhere these are skipped, aloud.
"""

import struct

from harness.checks import check, equal
from harness.trial import Trial

LONG = True
MAJORS = range(14, 99)
PLACEHOLDER = b"__debezium_unavailable_value"

SHAPES = ["POINT(1.5 -2)", "LINESTRING(0 0,1 1,2 1)", "POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,2 1,2 2,1 1))", "MULTIPOINT((0 0),(1 1))",
          "GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(0 0,1 1))", "POINT Z (1 2 3)", "POINT ZM (1 2 3 4)", "POINT EMPTY",
          "CIRCULARSTRING(0 0,1 1,2 0)", "SRID=4326;POINT(13.4 52.5)", "SRID=3857;POLYGON((0 0,1 0,1 1,0 0))"]


def postgis(t: Trial) -> None:
    t.extension("postgis")
    t.sql("create table geo (id int primary key, g geometry, p geometry(Point, 4326), gg geography, many geometry[], v int)",
          "alter table geo alter g set storage external",
          "create table whole (id int primary key, g geometry, v int)",
          "alter table whole alter g set storage external, replica identity full")
    for number, shape in enumerate(SHAPES):
        t.source.query(f"insert into geo values ({number}, %s, 'SRID=4326;POINT({number} 1)', 'POINT({number} 2)', "
                       "array[%s::geometry, null], 1) returning id", shape, shape)
    large = "st_makeline(array(select st_makepoint(n, random() * n) from generate_series(1, 700) n))"
    t.sql(f"insert into geo values (100, {large})", "insert into geo values (101)", f"insert into whole values (1, {large}, 1)")
    # The extension has a table of its own.
    t.connect(table_include_list="public\\.(geo|whole)")
    t.sql("insert into geo select id + 1000, g, p, gg, many, v from geo", "update whole set v = 2", "update geo set v = 3 where id = 100")
    records = t.settled_records("geo")
    rows = {row["id"]: row for row in t.query(
        "select id, st_asewkb(g) as g, st_srid(g) as gs, st_asewkb(p) as p, st_asewkb(gg::geometry) as gg, "
        "array(select st_asewkb(one) from unnest(many) as one) as many from geo")}
    equal(len(records), 2 * (len(SHAPES) + 2) + 1, "records")
    for record in records[:-1]:
        row, after = rows[record.after["id"]], record.after
        for column in ("g", "p", "gg"):
            equal(after[column] and after[column]["wkb"], row[column], f"{column} of row {row['id']} by {record.op}")
        equal(after["g"] and after["g"]["srid"], row["gs"] or None, f"the system of row {row['id']} by {record.op}")
        equal([one and one["wkb"] for one in after["many"] or []], row["many"], f"list of row {row['id']} by {record.op}")
    marked = records[-1]
    equal((marked.op, marked.after["g"], marked.extension("unavailable")), ("u", {"wkb": PLACEHOLDER, "srid": None}, "g"),
          "a large shape that was not sent")
    read, updated = t.settled_records("whole")
    equal((updated.after["g"], updated.before["g"], updated.extension("unavailable")), (read.after["g"], read.after["g"], None),
          "a large shape under FULL")


VECTORS = ["[1,2,3]", "[-1.5,0,3.0000001e-20]", "[3.4028235e38,-0,1e-38]"]


def pgvector(t: Trial) -> None:
    t.extension("vector")
    t.sql("create table v (id int primary key, a vector(3), h halfvec(3), s sparsevec(70000), list vector(3)[], large vector(3000), n int)",
          "create table whole (id int primary key, large vector(3000), n int)", "alter table whole replica identity full")
    for number, text in enumerate(VECTORS):
        t.source.query(f"insert into v values ({number}, %s, '[1.5,-65504,0.00006103516]', '{{1:1.5,70000:-2}}/70000', array[%s::vector], null, 1) "
                       "returning id", text, text)
    large = "array(select random() from generate_series(1, 3000))::vector"
    t.sql(f"insert into v (id, large, n) values (100, {large}, 1)", "insert into v (id) values (101)",
          f"insert into whole values (1, {large}, 1)")
    t.connect()
    t.sql("insert into v select id + 1000, a, h, s, list, large, n from v", "update v set n = 3 where id = 100", "update whole set n = 2")
    records = t.settled_records("v")
    equal(len(records), 2 * (len(VECTORS) + 2) + 1, "records")
    for record in records[:-1]:
        found = t.query("select %s::float8[] is not distinct from a::real[]::float8[] "
                        "and %s::real[] is not distinct from h::vector::real[] and %s::text is not distinct from s::text "
                        "and %s::float8[] is not distinct from large::real[]::float8[] as same, list::text as list, a::text as a "
                        "from v where id = %s", _near(record.after["a"]), record.after["h"], record.after["s"],
                        _near(record.after["large"]), record.after["id"])[0]
        check(found["same"], f"row {record.after['id']} by {record.op} is what SELECT shows: {record.after!r:.400}, not {found}")
        equal(record.after["list"], found["list"], f"a list of vectors is text, {record.op}")
    marked = records[-1]
    equal((marked.op, marked.after["large"], marked.extension("unavailable")), ("u", [float(byte) for byte in PLACEHOLDER], "large"),
          "a large vector that was not sent")
    read, updated = t.settled_records("whole")
    equal((updated.after["large"], updated.before["large"]), (read.after["large"],) * 2, "a large vector under FULL")


def _near(numbers: list[float] | None) -> list[float] | None:
    """The single-precision number that each text stands for: the extension has no more."""
    return numbers and [struct.unpack("<f", struct.pack("<f", number))[0] for number in numbers]


CASES = {"postgis": postgis, "pgvector": pgvector}

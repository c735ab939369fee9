"""Every type with ordinary and extreme values: the snapshot and the stream publish the same, and the right thing."""

import json
import math
from decimal import Decimal

from harness.checks import equal
from harness.trial import Trial

# What the first row is published as, where a reader could get it wrong.
EXPECTED = {
    "v_bool": True, "v_int2": 7, "v_int4": 70000, "v_int8": 7000000000, "v_float4": 1.5, "v_float8": 2.25,
    "v_numeric_10_2": Decimal("1234.56"), "v_numeric_38_0": Decimal("12345678901234567890123456789012345678"),
    "v_numeric_60_20": Decimal("0.1"), "v_oid": 4000000000, "v_char5": "ab   ", "v_text": "text", "v_citext": "CiText",
    "v_bytea": b"\x00\xff\x10", "v_bit1": True,
    "v_date": 19782, "v_time": 45296789012, "v_time3": 45296789, "v_timetz": "10:34:56.789Z",
    "v_timestamp": 1709210096789012, "v_timestamp3": 1709210096789, "v_timestamp0": 1709210096000,
    "v_timestamptz": "2024-02-29T10:34:56.789012Z", "v_timestamptz3": "2024-02-29T10:34:56.789Z",
    "v_uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "v_json": '{ "b" : 1.0, "a": [1, 2] }', "v_jsonb": '{"a": [1, 2], "b": 1.0}', "v_xml": '<a b="c">d</a>',
    "v_inet": "192.168.0.1/24", "v_cidr": "10.0.0.0/8", "v_macaddr": "08:00:2b:01:02:03",
    "v_hstore": {"a": "1", "b": None},
    "v_int4range": "[1,10)", "v_enum": 'very "happy"', "v_domain": "domain", "v_ltree": "Top.Science",
    "v_bools": [True, False, None], "v_ints": [1, None, 3], "v_bigints": [9000000000],
    "v_texts": ["a", None, "NULL", 'with "quotes", comma and \\ slash', ""],
    "v_numerics": [Decimal("1.50"), None, Decimal("-2.25")], "v_dates": [19782, None],
    "v_byteas": [b"\x00\xff", None], "v_enums": ["sad", 'very "happy"'],
}
EXTREMES = {
    2: {"v_int2": 32767, "v_int4": 2147483647, "v_int8": 9223372036854775807, "v_float8": 1.7976931348623157e308,
        "v_numeric_38_0": Decimal("9" * 38), "v_numeric_60_20": Decimal("9" * 40 + "." + "9" * 20),
        "v_text": "long " * 10000, "v_bytea": b"\xff" * 50000, "v_timestamp": 253402300799999999,
        "v_timestamptz": "9999-12-31T23:59:59.999999Z"},
    3: {"v_int2": -32768, "v_int4": -2147483648, "v_int8": -9223372036854775808, "v_float8": 5e-324,
        "v_numeric_60_20": Decimal("-0.00000000000000000001"), "v_text": "", "v_bytea": b"", "v_ints": [], "v_texts": [],
        "v_date": -719162, "v_json": "null", "v_int4range": "empty"},
    4: {"v_float8": -math.inf, "v_time": 86400000000, "v_date": -735160},
}


def documented(envelope: dict) -> None:
    """Comments of the table and of columns are documentation: the record's, and that of the columns' types."""
    row = next(one for field in envelope["fields"] if field["name"] == "before" for one in field["type"] if one != "null")
    fields = {field["name"]: field["type"] for field in row["fields"]}
    docs = {name: next((one["connect.doc"] for one in (kind if isinstance(kind, list) else [kind]) if "connect.doc" in one), None)
            for name, kind in fields.items()}
    equal((row["connect.doc"], docs["v_text"], docs["v_ints"], docs["v_bool"]),
          ("every type, in \"one\" table", "words, 語", "numbers", None), "comments as documentation")


def run(t: Trial) -> None:
    if t.server.value("select current_setting('server_version_num')::int >= 140000"):
        t.sql("alter table types add v_int4multirange int4multirange", "update types set v_int4multirange = '{[1,3),[5,8)}' where id = 1")
    columns = ", ".join(row["column_name"] for row in t.query(
        "select column_name from information_schema.columns where table_name = 'types' and column_name <> 'id' "
        "order by ordinal_position"))
    t.connect(hstore_handling_mode="map", include_schema_comments="true")
    t.sql(f"insert into types select id + 100, {columns} from types")
    t.sql("update types set id = id where id > 100")
    records = t.settled_records("types")
    rows = [t.query("select count(*) as n from types")[0]["n"] // 2] * 3
    snapshot, inserted, updated = ([r for r in records if r.op == op] for op in "rcu")
    equal([len(snapshot), len(inserted), len(updated)], rows, "numbers of r, c and u")
    for read, made, changed in zip(snapshot, inserted, updated):
        # The repr of a NaN is equal to that of another, the values are not.
        row = {column: repr(value) for column, value in read.after.items()}
        for record, name in ((made, "insert"), (changed, "update")):
            copy = {column: repr(value) for column, value in record.after.items()} | {"id": row["id"]}
            equal(copy, row, f"row {read.after['id']} by {name}, against the snapshot")
    published = {record.after["id"]: record.after for record in snapshot}
    for number, expected in ({1: EXPECTED} | EXTREMES).items():
        equal({column: published[number][column] for column in expected}, expected, f"row {number}")
    equal([math.isnan(published[4]["v_float4"]), published[1]["v_floats"][0], math.isnan(published[1]["v_floats"][1])],
          [True, 1.5, True], "floats that are no numbers")
    documented(json.loads(t.schemas.text(snapshot[0].value_schema)))
    nothing = {column: value for column, value in published[5].items() if value is not None}
    equal(nothing, {"id": 5}, "the row of nulls")

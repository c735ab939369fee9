"""Small cases that readers of the log were reported to get wrong: the same from snapshot and stream, in a zone that is not UTC."""

from decimal import Decimal
from typing import Any

from harness.checks import check, equal
from harness.trial import Trial
from harness.worker import Worker

LONG = True
MAJORS = range(14, 99)

ROWS = {
    "arrays": [r"""(1, '{1,NULL,3}', '{"NULL",NULL,"a\"b\\c","",","}', '[0:2]={7,8,9}', '{}', null)"""],
    "documents": [r"""(1, '{"a":1,  "a":2, "n":12345678901234567890.123, "z":"\u0000"}', '{"n":1234567890123456789, "big":1e400, "t":1.10}')""",
                  """(2, '["+10000000001", "+10000000002"]', '"just text"')""", "(3, 'null', null)"],
    "kinds": ["""(1, 5, row('Main, "st" 1', null), array[row('a','b')::addr], '"a b"=>"1, 2", c=>NULL', 'MiXed')"""],
    "amounts": ["(1, 20), (2, 17.685), (3, 1e-20), (4, 1e10), (5, 20.00), (6, -0.5), (7, 0), (8, 1234567890123456789012345678901234567890.1234)"],
    "ends": ["(1, 'infinity', 'infinity', '-infinity'), (2, '-infinity', '-infinity', 'infinity')",
             "(3, '5874897-12-31', '294247-01-10 04:00:54.775807', '294276-12-31 23:59:59.999999+00')"],
    "eras": ["(1, '1991-02-10 BC', '0001-01-01 00:00:00', '0001-12-31 23:40:28+00 BC'), (2, '4713-01-01 BC', '4713-01-01 00:00:00 BC', null)",
             "(3, '1582-10-04', '1582-10-04 00:00:00', '1900-01-01 00:00:00+00'), (4, '1991-02-10', null, null)"],
    "clocks": ["(1, '24:00:00', '24:00:00', '24:00:00'), (2, '00:00:00', '23:59:59.9996', '00:00:00')"],
}
# What the columns after the number are published as.
EXPECTED: dict[str, dict[int, list[Any]]] = {
    "arrays": {1: [[1, None, 3], ["NULL", None, 'a"b\\c', "", ","], [7, 8, 9], [], None, None]},
    "documents": {1: ['{"a":1,  "a":2, "n":12345678901234567890.123, "z":"\\u0000"}',
                      '{"n": 1234567890123456789, "t": 1.10, "big": 1' + "0" * 400 + "}"],
                  2: ['["+10000000001", "+10000000002"]', '"just text"'], 3: ["null", None]},
    "kinds": {1: [5, '("Main, ""st"" 1",)', ["(a,b)"], '{"c":null,"a b":"1, 2"}', "MiXed"]},
    "amounts": {number: [Decimal(text)] for number, text in enumerate(
        ("20", "17.685", "1e-20", "1e10", "20.00", "-0.5", "0", "1234567890123456789012345678901234567890.1234"), 1)},
    "ends": {1: [2147483647, 9223372036825200000, "-infinity"], 2: [-2147483648, -9223372036832400000, "infinity"],
             3: [2145042905, 9223372036854775807, "+294276-12-31T23:59:59.999999Z"]},
    "eras": {1: [-1446320, -62135596800000000, "0000-12-31T23:40:28.000000Z"], 2: [-2440550, -210863520000000000, None],
             3: [-141438, -12220243200000000, "1900-01-01T00:00:00.000000Z"], 4: [7710, None, None]},
    "clocks": {1: [86400000000, 86400000, 86400000000], 2: [0, 86400000, 0]},
}


def plain(value: Any) -> Any:
    """A value as it is compared: a number of any scale as the number that it is."""
    if isinstance(value, dict):
        return Decimal(f"{int.from_bytes(value['value'], 'big', signed=True)}e{-value['scale']}")
    return value


def no_identity(t: Trial, worker: Worker) -> None:
    """No publication makes the application's updates fail: all that is wrong is told, with the ways out."""
    t.sql("create table bare (a int, b text)", "insert into bare values (1, 'x')", "create table nothing (id int primary key, b text)",
          "alter table nothing replica identity nothing", "insert into nothing values (1, 'x')",
          "create table only_unique (a int not null unique, b text)", "insert into only_unique values (1, 'x')")
    text = t.refused(worker, t.config(), "TG-E-SOURCE-REPLICA-IDENTITY")
    for table in ("bare", "nothing", "only_unique"):
        check(f"public.{table}" in text, f"the refusal names {table}: {text}")
        t.sql(f"update {table} set b = 'y'", f"drop table {table}")
    check("primary key" in text.lower() and "REPLICA IDENTITY FULL" in text and "exclude" in text, f"the ways out are named: {text}")


def values(t: Trial) -> None:
    """Each row as the snapshot read it, and as it was written again."""
    for table, rows in EXPECTED.items():
        records = t.settled_records(table)
        wanted = [(op, number + more, row) for op, more in (("r", 0), ("c", 100)) for number, row in rows.items()]
        equal([(r.op, r.key["id"], [plain(value) for name, value in r.after.items() if name != "id"]) for r in records], wanted, table)


def recreated_type(t: Trial) -> None:
    """The type of a column is another one of the same name, with a number that nobody has seen, and no row between shows that the
    old column is gone: the columns' numbers do."""
    t.sql("alter table kinds drop column a, drop column aa", "drop type addr", "create type addr as (street text, zip text)",
          "alter table kinds add column a addr, add column aa addr[]",
          "insert into kinds values (3, 7, 'k=>v', 'Three', row('s', 'z'), array[row('a', null)::addr])")
    equal(t.settled_records("kinds")[-1].after, {"id": 3, "d": 7, "h": '{"k":"v"}', "ci": "Three", "a": "(s,z)", "aa": ["(a,)"]}, "the new type")


def other_keys(t: Trial) -> None:
    """The record's key is the identity, which is not the primary key; and what a deleted row did not tell is not made up."""
    t.sql("update codes set code = 'B' where id = 1", "update codes set id = 7 where id = 1", "delete from codes where id = 7")
    equal([(r.key, None if r.tombstone else r.op) for r in t.settled_records("codes")],
          [({"code": "A"}, "r"), ({"code": "A"}, "d"), ({"code": "A"}, None), ({"code": "B"}, "c"), ({"code": "B"}, "u"),
           ({"code": "B"}, "d"), ({"code": "B"}, None)], "keys")
    t.sql("insert into strict values (1, 50, 'n')", "delete from strict", "alter table strict replica identity full",
          "insert into strict values (2, 60, 'm', '2024-02-29 12:00+00')", "delete from strict")
    deleted = [(r.key, r.before) for r in t.settled_records("strict") if r.op == "d"]
    equal(deleted, [({"id": 1}, {"id": 1, "amount": None, "name": None, "at": None}),
                    ({"id": 2}, {"id": 2, "amount": 60, "name": "m", "at": "2024-02-29T12:00:00.000000Z"})], "rows before")


def run(t: Trial) -> None:
    # Apicurio takes a subject without a level of its own for one with the level of all.
    t.own_registry()
    worker = t.worker(start=False).start(TZ="Asia/Shanghai")
    no_identity(t, worker)
    writes = [f"insert into {table} values {row}" for table, rows in ROWS.items() for row in rows]
    t.sql(*writes, "insert into codes values (1, 'A', 'd')")
    connector = t.connect(worker)
    for table in ROWS:
        columns = ", ".join(row["name"] for row in t.query(
            "select attname::text as name from pg_attribute where attrelid = %s::regclass and attnum > 1 order by attnum", table))
        t.sql(f"insert into {table} select id + 100, {columns} from {table} order by id")
    values(t)
    recreated_type(t)
    other_keys(t)
    # What was nullable when it was written stays so, whatever the catalogue says by the time that it is read. The first column
    # that is NOT NULL makes the row before another record than the row after, of the same name in another namespace: readers
    # compare names without it.
    connector.put("stop")
    connector.wait_states("STOPPED")
    t.sql("insert into nulls values (1, null)", "update nulls set n = 0", "alter table nulls alter n set not null, alter n set default 7",
          "insert into nulls (id) values (2)", "alter table nulls add column z int not null default 5", "insert into nulls (id) values (3)")
    connector.put("resume")
    connector.wait_running()
    t.wait_streaming()
    equal([r.after for r in t.settled_records("nulls")],
          [{"id": 1, "n": None}, {"id": 1, "n": 0}, {"id": 2, "n": 7}, {"id": 3, "n": 7, "z": 5}], "rows as they were")
    for table, row, column in (("arrays", "(5, null, null, null, null, null, '{{1,2},{3,4}}')", "m"), ("ends", "(4, null, '294276-12-31', null)", "ts")):
        t.sql(f"insert into {table} values {row}")
        trace = connector.wait_failed("TG-E-VALUE-UNREPRESENTABLE")
        check(f"table public.{table}" in trace and f"column {column}" in trace and '"id":' in trace and "position" in trace, f"the place: {trace}")
        if table == "arrays":
            config = t.config(column_exclude_list="public\\.arrays\\.m")
            answer = worker.rest("PUT", f"/connectors/{t.name}/config", config, timeout=90)
            equal(answer.status, 200, f"status of PUT config ({answer.message})")
            connector.wait_running()
            equal(t.settled_records("arrays")[-1].after["id"], 5, "the row without the column")

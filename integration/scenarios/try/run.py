"""`tidegate try` shows the records without Kafka or registry, and leaves nothing behind, however it ends."""

import signal
import time

from harness.checks import check, equal, wait_for
from harness.trial import Trial

# The same on every version of the server.
SERVER_MATTERS = False

WAITING = "waiting for changes"


def nowhere(t: Trial, **more: object) -> list[object]:
    """A connector whose Kafka and registry nobody can reach."""
    return ["try", t.connector_file(**{"producer.override.bootstrap.servers": "127.0.0.1:1",
                                       "value.converter": "io.confluent.connect.avro.AvroConverter",
                                       "value.converter.schema.registry.url": "http://127.0.0.1:1", **more})]


def left(t: Trial) -> tuple[list, list]:
    slots = t.server.query("select slot_name from pg_replication_slots where database = %s", t.name)
    return slots, [row["pubname"] for row in t.admin.query("select pubname from pg_publication")]


def wait_nothing(t: Trial, publications: list[str] | None = None) -> None:
    wait_for(lambda: left(t) == ([], publications or []), 30, f"nothing to be left; there is {left(t)}")


def changes(t: Trial) -> None:
    command = t.command(*nowhere(t))
    command.wait_err(WAITING)
    equal(len(left(t)[0]), 1, "slots while it runs")
    with t.source.session() as session:
        session.execute("insert into t values (100, 'new', repeat('x', 10000))")
        session.execute("update t set v = 'newer' where id = 100")
        session.execute("delete from t where id = 100")
    records = command.wait_records(4)
    equal([r["topic"] for r in records], [f"{t.name}.public.t"] * 4, "topics")
    equal([r["key"] for r in records], [{"id": 100}] * 4, "keys")
    equal([r["value"] and r["value"]["op"] for r in records], ["c", "u", "d", None], "operations")
    equal(records[1]["headers"].get("__tidegate.unavailable"), "doc", "the column that was not sent")
    equal(records[0]["value"]["source"]["table"], "t", "the whole envelope")
    t.sql("insert into u values (2, 0.10, '2024-02-02T00:00:00Z')")
    equal(command.wait_records(5)[4]["value"]["after"]["price"], 0.10, "a decimal as people write it")
    command.signal(signal.SIGINT)
    equal(command.wait(10), 0, "status after Ctrl-C")
    wait_nothing(t)


def rows_and_limit(t: Trial) -> None:
    command = t.command(*nowhere(t), "--snapshot", "3", "--schema-changes")
    command.wait_err(WAITING)
    records = command.records()
    rows = [r for r in records if r["topic"] != f"{t.name}.schema-changes"]
    equal([(r["topic"].rsplit(".", 1)[1], r["value"]["op"]) for r in rows],
          [("t", "r")] * 3 + [("u", "r")], "the first rows of each table")
    equal(len(records) - len(rows), 2, "definitions")
    command.signal(signal.SIGTERM)
    equal(command.wait(10), 0, "status after SIGTERM")
    pretty = t.command(*nowhere(t), "--pretty", "--snapshot", "1", "-n", "2").succeed()
    check('"op": "r"' in pretty.out and f"{t.name}.public.t" in pretty.out, f"several lines: {pretty.out}")
    wait_nothing(t)


def transforms(t: Trial) -> None:
    flat = {"transforms": "flat,route", "transforms.flat.type": "io.debezium.transforms.ExtractNewRecordState",
            "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
            "transforms.route.regex": ".*\\.(\\w+)", "transforms.route.replacement": "to-$1"}
    command = t.command(*nowhere(t, **flat), "--snapshot", "1", "-n", "1").succeed()
    record = command.records()[0]
    equal((record["topic"], record["value"]), ("to-t", {"id": record["key"]["id"], "v": record["value"]["v"],
                                                        "doc": None}), "what the transforms make of a row")
    wait_nothing(t)


def publications(t: Trial) -> None:
    # One that serves is used as it is, and stays.
    t.sql(f"create publication {t.name} for table t, u")
    command = t.command(*nowhere(t, publication_autocreate_mode="disabled"))
    command.wait_err(WAITING)
    equal(left(t)[1], [t.name], "publications while it runs")
    command.signal(signal.SIGINT)
    equal(command.wait(10), 0, "status")
    wait_nothing(t, [t.name])
    # One that lacks a table is not altered: a temporary one takes its place.
    t.sql(f"alter publication {t.name} drop table u")
    command = t.command(*nowhere(t))
    command.wait_err(WAITING)
    t.sql("insert into u values (3, 1, null)")
    equal(command.wait_records(1)[0]["key"], {"id": 3}, "a row of the table that it lacks")
    command.signal(signal.SIGINT)
    equal(command.wait(10), 0, "status")
    wait_nothing(t, [t.name])
    equal(t.admin.query("select tablename from pg_publication_tables order by 1"), [{"tablename": "t"}], "its tables")
    # What may not be made is refused with the statement that makes it.
    t.sql(f"drop publication {t.name}")
    command = t.command(*nowhere(t, publication_autocreate_mode="disabled"))
    equal(command.wait(), 1, "status")
    check("TG-E-PUBLICATION-MISSING" in command.err and f'CREATE PUBLICATION "{t.name}" FOR TABLE' in command.err,
          f"the statement: {command.err}")
    t.server.sql(f"alter database {t.name} owner to current_user")
    command = t.command(*nowhere(t))
    equal(command.wait(), 1, "status")
    check("TG-E-REPLICATION-PERMISSION" in command.err and "CREATE PUBLICATION" in command.err,
          f"the privilege: {command.err}")
    wait_nothing(t)


def killed(t: Trial) -> None:
    """The slot goes with the session; a publication stays until the next look, which drops it."""
    command = t.command(*nowhere(t))
    command.wait_err(WAITING)
    command.signal(signal.SIGKILL)
    command.wait(5)
    wait_for(lambda: not left(t)[0], 30, "the temporary slot to go")
    equal(len(left(t)[1]), 1, "publications left behind")
    # One that is in use is left alone.
    first = t.command(*nowhere(t))
    first.wait_err(WAITING)
    check("left behind" in first.err, f"it says that it drops it: {first.err}")
    second = t.command(*nowhere(t))
    second.wait_err(WAITING)
    equal(len(left(t)[1]), 2, "publications of two looks")
    for command in (first, second):
        command.signal(signal.SIGTERM)
        equal(command.wait(10), 0, "status")
    wait_nothing(t)
    # Interrupted at any moment.
    for delay in range(8):
        command = t.command(*nowhere(t), "--snapshot")
        time.sleep(0.06 * delay)
        command.signal(signal.SIGINT)
        command.wait(15)
    wait_nothing(t)


CASES = {"changes": changes, "rows-and-limit": rows_and_limit, "transforms": transforms,
         "publications": publications, "killed": killed}

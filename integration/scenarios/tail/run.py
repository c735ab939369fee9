"""`tidegate tail` on real topics: Avro, JSON with and without schemas, bytes; where it begins, whom it shows, where it ends."""

import signal

from harness.checks import check, equal
from harness.command import Command
from harness.trial import Trial

# The same on every version of the server.
SERVER_MATTERS = False

JSON = "org.apache.kafka.connect.json.JsonConverter"


def changes(t: Trial, **more: object) -> None:
    """Six records: two of the snapshot, an update, and a delete with its tombstone; then a new shape."""
    t.connect(**more)
    with t.source.session() as session:
        session.execute("update t set v = 'neu' where id = 1")
        session.execute("delete from t where id = 2")
    t.sql("alter table t add column w int", "insert into t (id, w) values (3, 33)")
    t.settle()


def tail(t: Trial, *more: object) -> Command:
    return t.command("tail", f"{t.name}.*", "-b", t.kafka.address, "--no-follow", *more).succeed()


def avro(t: Trial) -> None:
    changes(t)
    registry = ["-r", t.registry.address]
    records = tail(t, *registry, "--from", "beginning").records()
    equal(len(records), 8, "records, those of the control topic included")
    rows = tail(t, *registry, "--from-beginning", "--table", "public.t").records()
    equal([r["value"] and r["value"]["op"] for r in rows], ["r", "r", "u", "d", None, "c"], "operations of the table")
    equal(rows[0]["value"]["after"]["d"], "2024-01-01", "a date as people write it")

    equal(tail(t, *registry).records(), [], "records from the end on")
    offsets = [r["offset"] for r in rows]
    table = t.command("tail", f"{t.name}.public.t", "-b", t.kafka.address, *registry, "--no-follow",
                      "--from", offsets[2]).succeed().records()
    equal([r["offset"] for r in table], offsets[2:], "offsets from one on")
    check(0 < len(tail(t, *registry, "--table", "public.t", "--from", "-3").records()) <= 3, "the last three or fewer")

    for key in ("2", '{"id":2}'):
        found = tail(t, *registry, "--from", "beginning", "--key", key).records()
        equal([(r["key"]["id"], r["value"] and r["value"]["op"]) for r in found], [(2, "r"), (2, "d"), (2, None)], key)

    text = tail(t, *registry, "--from", "beginning", "--format", "readable").out
    for part in ("doc=(not sent)", "public.t is captured; its rows have this shape:", "id integer (key)",
                 "the columns of public.t changed", "column w was added, of type integer", "tombstone"):
        check(part in text, f"{part!r} is shown: {text}")
    check("\x1b" not in text, "no colours without a terminal")

    raw = tail(t, "--raw", "--from", "beginning", "--table", "public.t").records()
    equal([(r["key"][:2], r["value"] is None) for r in raw], [("00", r["value"] is None) for r in rows], "framed bytes")
    equal(bytes.fromhex(raw[2]["headers"]["__tidegate.unavailable"]), b"doc", "headers as bytes")
    check("key (" in tail(t, "--raw", "--from", "beginning", "--format", "readable").out, "hex for people")


def follow(t: Trial) -> None:
    """A topic that does not exist yet is picked up; what is not committed is not shown."""
    command = t.command("tail", "--table", "public.t", f"{t.name}.*", "-b", t.kafka.address, "-r", t.registry.address)
    command.wait_err("there is no topic")
    t.connect()
    equal(len(command.wait_records(2)), 2, "rows of the snapshot")
    t.sql("update t set v = 'x' where id = 2")
    equal(command.wait_records(3)[2]["value"]["after"]["v"], "x", "the change that follows")
    command.signal(signal.SIGINT)
    equal(command.wait(10), 0, "status after Ctrl-C")
    absent = t.command("tail", "--no-follow", f"{t.name}.absent", "-b", t.kafka.address, "-r", t.registry.address)
    absent.wait_err(f"there is no topic {t.name}.absent")
    equal(absent.wait(10), 1, "status where nothing can come")
    without = t.command("tail", "--from", "beginning", "--no-follow", f"{t.name}.public.t", "-b", t.kafka.address)
    without.wait_err("--registry-url")
    equal(without.wait(10), 0, "status without a registry")
    limited = t.command("tail", f"{t.name}.public.t", "-b", t.kafka.address, "-r", t.registry.address,
                        "--from-beginning", "-n", "2").succeed()
    equal(len(limited.records()), 2, "not more than asked for")


def as_json(schemas: str) -> object:
    def run(t: Trial) -> None:
        changes(t, **{"key.converter": JSON, "value.converter": JSON, "key.converter.schemas.enable": schemas,
                      "value.converter.schemas.enable": schemas})
        rows = tail(t, "--from", "beginning", "--table", "public.t", "--key", "1").records()
        equal(len(rows), 2, "records of the key")
        check(("payload" in rows[0]["value"]) == (schemas == "true"), "the JSON is as it was written")
        text = tail(t, "--from", "beginning", "--format", "readable").out
        for part in ("read     {\"id\":1}", "update   {\"id\":1}", "doc=(not sent)", "column w was added, of type integer"):
            check(part in text, f"{part!r} is shown: {text}")
        if schemas == "true":
            check('d="2024-01-01"' in text, f"a date by its schema: {text}")
    return run


def differences(t: Trial) -> None:
    t.sql("alter table t replica identity full")
    t.connect()
    t.sql("update t set v = 'neu' where id = 1")
    t.settle()
    text = tail(t, "-r", t.registry.address, "--from", "beginning", "--table", "public.t", "--format", "readable").out
    update = text[text.index("update "):].splitlines()
    equal(update[1:], ['    v: "one" → "neu"'], "only what changed")


CASES = {"avro": avro, "follow": follow, "json": as_json("false"), "json-with-schemas": as_json("true"),
         "differences": differences}

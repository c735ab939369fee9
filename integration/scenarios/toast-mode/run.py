"""toast.mode, case by case: what the server leaves out is completed exactly wherever somebody holds it, else marked or refused."""

from harness.checks import check, equal
from harness.topics import Record
from harness.trial import Trial

PLACEHOLDER = "__debezium_unavailable_value"
MISSING = "TG-E-TOAST-UNAVAILABLE"


def shown(record: Record, column: str = "doc") -> tuple:
    """Operation, value, and what the headers say of it."""
    return (record.op, record.after and record.after[column], record.extension("unavailable"), record.extension("unmergeable"))


def held_by_the_message(t: Trial) -> None:
    """What every mode does the same: the old row of the message is as good as the new one."""
    t.sql("update whole set v = 2", "update whole set id = 2", "delete from whole")
    update, deleted, tombstone, created, gone, _ = t.settled_records("whole")[1:]
    whole = "w" * 9000
    equal(shown(update), ("u", whole, None, None), "an update under FULL")
    equal((update.before["doc"], deleted.before["doc"], gone.before["doc"]), (whole,) * 3, "old rows under FULL")
    equal(shown(created), ("c", whole, None, None), "a changed key under FULL")
    check(tombstone.tombstone, "a tombstone between them")
    t.sql("update long_key set v = 2")
    _, update = t.settled_records("long_key")
    equal((update.op, update.key, update.extension("unavailable")), ("u", {"k": "k" * 2300}, None),
          "a key that is stored out of line: completed by the old key, and no change of it")


def from_the_transaction(t: Trial, expected: tuple) -> None:
    """An update of a row that the same transaction wrote."""
    t.sql("begin; insert into plain values (2, 1, repeat('n', 9000)); update plain set v = 2 where id = 2; commit")
    equal(shown(t.settled_records("plain")[-1]), expected, "an update after the insert in one transaction")


def delete(t: Trial) -> None:
    """The old row of a delete has its key."""
    t.sql("delete from plain where id = 2")
    record = t.settled_records("plain")[-2]
    equal((record.op, record.before, record.extension("unavailable")), ("d", {"id": 2, "v": None, "doc": None}, "v,doc"), "a delete")


def backfill(t: Trial) -> None:
    t.connect()
    held_by_the_message(t)
    t.sql("update plain set v = 2 where id = 1")
    equal(shown(t.settled_records("plain")[-1]), ("u", PLACEHOLDER, "doc", None), "an update of which nobody holds the value")
    from_the_transaction(t, ("u", "n" * 9000, None, None))
    delete(t)


def sentinel(t: Trial) -> None:
    t.connect(toast_mode="sentinel")
    held_by_the_message(t)
    t.sql("update plain set v = 2 where id = 1")
    equal(shown(t.settled_records("plain")[-1]), ("u", PLACEHOLDER, "doc", None), "an update of which nobody holds the value")
    from_the_transaction(t, ("u", PLACEHOLDER, "doc", None))
    delete(t)


def refuse(t: Trial) -> None:
    connector = t.connect(toast_mode="refuse", envelope_extensions="none")
    t.sql("update whole set v = 2")
    equal(t.settled_records("whole")[-1].after["doc"], "w" * 9000, "an update under FULL")
    t.sql("begin; insert into plain values (2, 1, repeat('n', 9000)); update plain set v = 2 where id = 2; commit")
    records = t.settled_records("plain")
    equal(records[-1].after["doc"], "n" * 9000, "an update after the insert in one transaction")
    before = t.slot()["confirmed"]
    t.sql("begin; update plain set v = 3 where id = 2; update whole set v = 3; commit")
    trace = connector.wait_failed(MISSING)
    check("public.plain" in trace and "doc" in trace and "position" in trace, f"the refusal names the place: {trace}")
    connector.fail_again(MISSING)
    equal((len(t.topic("plain").read()), len(t.topic("whole").read())), (len(records), 2), "nothing of the transaction is out")
    check(t.server.value("select confirmed_flush_lsn >= %s::pg_lsn from pg_replication_slots where slot_name = %s",
                         before, t.name), "the slot does not go back")
    equal(connector.request("PUT", "/config", t.config()).status, 200, "status of PUT config")
    connector.wait_running()
    equal(shown(t.settled_records("plain")[-1]), ("u", PLACEHOLDER, "doc", None), "the row once markers are allowed")
    equal(t.settled_records("whole")[-1].after["v"], 3, "what came behind it")


CASES = {"backfill": backfill, "sentinel": sentinel, "refuse": refuse}

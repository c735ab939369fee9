"""Large values that an update leaves alone are marked, by placeholder and by header: never null, never lost."""

import re

from harness.checks import check, equal
from harness.topics import Record
from harness.trial import Trial

PLACEHOLDER = "__debezium_unavailable_value"
MARKED = {"doc": PLACEHOLDER, "j": PLACEHOLDER, "b": PLACEHOLDER.encode(), "ta": [PLACEHOLDER]}
LARGE = [*MARKED, "ia"]


def unavailable(record: Record) -> set[str]:
    """The columns that the record says it does not know."""
    return set(re.findall(r"\w+", record.extension("unavailable") or ""))


def run(t: Trial) -> None:
    worker = t.worker()
    t.connect(worker)
    t.sql("update t set v = 2", "update t set doc = doc, v = 3", "update t set j = jsonb_set(j, '{m}', '1')",
          "update t set doc = null")
    t.settle()
    # What the worker remembers must not matter.
    equal(worker.stop(), 0, "exit status")
    worker.start()
    t.sql("update t set v = 4", "update t set doc = repeat('n', 9000), v = 5",
          "begin; insert into t values (2, 1, repeat('m', 9000)); update t set v = 2 where id = 2; commit")
    snapshot, first, second, third, fourth, after_restart, new, insert, sibling = t.settled_records("t")

    check(len(snapshot.after["doc"]) == 9000 and not unavailable(snapshot), "the snapshot has everything")
    for record, v in ((first, 2), (second, 3)):
        equal((record.after["v"], {name: record.after[name] for name in MARKED}), (v, MARKED), f"update to {v}")
        check(record.after["ia"], "an array of numbers is marked, not null and not empty")
        equal(unavailable(record), set(LARGE), "columns named as unavailable")
    check('"m": 1' in third.after["j"] and len(third.after["j"]) > 9000, "a large value that was sent is real")
    equal(unavailable(third), set(LARGE) - {"j"}, "columns named as unavailable")
    equal((fourth.after["doc"], fourth.after["j"]), (None, PLACEHOLDER), "a real null")
    equal(unavailable(fourth), set(LARGE) - {"doc"}, "columns named as unavailable")
    equal((after_restart.after["v"], after_restart.after["doc"], after_restart.after["j"]), (4, None, PLACEHOLDER),
          "the update after the restart")
    equal((new.after["v"], new.after["doc"]), (5, "n" * 9000), "a new large value")
    equal((insert.op, insert.after["doc"]), ("c", "m" * 9000), "the insert")
    check(sibling.after["doc"] in (PLACEHOLDER, "m" * 9000), "an update in the same transaction is marked or completed")
    equal(unavailable(sibling), {"doc"} if sibling.after["doc"] == PLACEHOLDER else set(), "and says which")

"""A changed definition is announced before the first row of the new shape can be seen, and the rows have that shape."""

import json
import threading
import time

from harness.checks import check, equal
from harness.topics import Topic
from harness.trial import Trial


def run(t: Trial) -> None:
    control = t.topic_named(f"{t.name}.schema-changes")
    t.connect()
    baseline = control.read()
    check(any(mentions(record, "quiet") for record in baseline), "every captured table has a baseline, an empty one too")
    rows, announced = t.topic("t"), t.topic_named(f"{t.name}.schema-changes", "read_uncommitted")

    watcher = Watcher(rows, control)
    watcher.start()
    t.sql("insert into t values (2, 2)", "alter table t add column extra text default 'd'",
          "insert into t values (3, 3, 'three')",
          "alter table t alter v type bigint", "insert into t values (4, 5000000000, 'four')",
          "alter table t drop column v",
          "begin; alter table t add column v text; insert into t values (5, 'five', 'v5'); commit",
          "alter table t rename column extra to more", "update t set more = 'deux' where id = 2")
    t.settle()
    watcher.finish()
    equal([r.after for r in rows.read()], [
        {"id": 1, "v": 1}, {"id": 2, "v": 2}, {"id": 3, "v": 3, "extra": "three"},
        {"id": 4, "v": 5000000000, "extra": "four"}, {"id": 5, "extra": "five", "v": "v5"},
        {"id": 2, "more": "deux", "v": None},
    ], "rows")
    epochs = [int(r.extension("epoch")) for r in rows.read()]
    check(epochs == sorted(epochs) and len(set(epochs)) == 5, f"each shape has a table version of its own: {epochs}")
    changes = [record for record in control.read() if record not in baseline]
    check(all(mentions(record, name) for record, name in zip(changes, ("extra", "bigint|int8", "v", "more"))) and changes,
          "the changes are announced in order")
    equal(len(announced.read()), len(control.read()), "control records, none of them withdrawn")
    equal(watcher.early, [], "rows that were seen before their announcement")


def mentions(record: object, words: str) -> bool:
    """Whether a control record speaks of something."""
    text = json.dumps([record.key, record.value], default=str)
    return any(word in text for word in words.split("|"))


class Watcher(threading.Thread):
    """Looks at both topics again and again: whoever sees a row must be able to see what announces its shape."""

    def __init__(self, rows: Topic, control: Topic):
        super().__init__(daemon=True)
        self._rows, self._control = (Topic(topic.bootstrap, topic.name, topic.schemas) for topic in (rows, control))
        self._over = threading.Event()
        self.early: list[object] = []

    def run(self) -> None:
        checked = 0
        while not self._over.is_set():
            rows = self._rows.read()
            # In this order: what announces a row that is there must be there too.
            announced = json.dumps([record.value for record in self._control.read()], default=str)
            for row in rows[checked:]:
                if not all(f'"{column}"' in announced for column in row.after):
                    self.early.append(row)
            checked = len(rows)
            time.sleep(0.005)

    def finish(self) -> None:
        """Stop looking."""
        self._over.set()
        self.join(20)
        self._rows.close()
        self._control.close()

"""A changed definition is announced before the first row of the new shape can be seen, and the rows have that shape."""

import threading
import time

from harness.checks import check, equal, wait_for
from harness.topics import Topic
from harness.trial import Trial


# The others show the most of it in less time.
LONG = {"late-markers"}


def late_markers(t: Trial) -> None:
    """The broker tells each partition later that a transaction has ended: whoever reads the one topic may not be ahead of the other's."""
    link = t.own_kafka_by_link()
    link.delay(0.15)
    plain(t)
    check(link.count() > 0, "the broker's own connection goes through the proxy")


def plain(t: Trial) -> None:
    control = t.topic_named(f"{t.name}.schema-changes")
    t.connect()
    baseline = control.read()
    equal(sorted((r.key["table"], r.value["kind"], r.value["epoch"]) for r in baseline),
          [("quiet", "baseline", 1), ("t", "baseline", 1)], "baselines: of empty tables too")
    rows = t.topic("t")
    watcher = Watcher(rows, control)
    watcher.start()
    for statement in (
        "insert into t values (2, 2)", "alter table t add column extra text default 'd'",
        "insert into t values (3, 3, 'three')",
        "alter table t alter v type bigint", "insert into t values (4, 5000000000, 'four')",
        "alter table t drop column v", "insert into t values (5, 'five')",
        "begin; alter table t add column v text; insert into t values (6, 'six', 'v6'); commit",
        "alter table t rename column extra to more", "update t set more = 'deux' where id = 2",
        # Nothing that a row could show.
        "alter table t alter more set statistics 10; create index on t (more)", "insert into t values (7, 'sept', null)",
    ):
        t.sql(statement)
        looked = watcher.looked
        wait_for(lambda: watcher.looked > looked, 30, "a look at the topics while they grow")
    t.settle()
    # What is committed may be visible later.
    records = t.records("t", 8)
    watcher.finish()
    equal([r.after for r in records], [
        {"id": 1, "v": 1}, {"id": 2, "v": 2}, {"id": 3, "v": 3, "extra": "three"},
        {"id": 4, "v": 5000000000, "extra": "four"}, {"id": 5, "extra": "five"},
        {"id": 6, "extra": "six", "v": "v6"},
        {"id": 2, "more": "deux", "v": None}, {"id": 7, "more": "sept", "v": None},
    ], "rows")
    equal([int(r.extension("epoch")) for r in records], [1, 1, 2, 3, 4, 5, 6, 6], "table versions of the rows")
    changes = [r for r in control.read() if r.key["table"] == "t"]
    equal([(r.value["epoch"], r.value["kind"]) for r in changes],
          [(1, "baseline"), *((number, "observed") for number in range(2, 7))], "what is announced")
    announced = {r.value["epoch"]: r.value for r in changes}
    for record in records:
        version = announced[int(record.extension("epoch"))]
        equal({column["name"] for column in version["after"]["columns"]}, set(record.after), f"columns of {record.after}")
    first = {int(r.extension("epoch")): r.extension("commit_lsn") for r in reversed(records)}
    equal({number: announced[number]["position"]["commit"] for number in range(2, 7)},
          {number: first[number] for number in range(2, 7)}, "positions: that of the first row of the shape")
    everything = t.topic_named(control.name, "read_uncommitted").read()
    equal(len(everything), len(control.read()), "control records, none of them withdrawn")
    check(watcher.looked > 3, "somebody watched")
    equal(watcher.early, [], "rows that were seen before their announcement")
    t.exactly_once(records)


class Watcher(threading.Thread):
    """Looks at both topics again and again: whoever sees a row must be able to see what announces its shape."""

    def __init__(self, rows: Topic, control: Topic):
        super().__init__(daemon=True)
        self._rows, self._control = (Topic(topic.bootstrap, topic.name, topic.schemas) for topic in (rows, control))
        self._over = threading.Event()
        self.early: list[object] = []
        self.looked = 0

    def run(self) -> None:
        while not self._over.is_set():
            rows = self._rows.read()
            # In this order: what announces a row that is there must be there too.
            announced = {r.value["epoch"] for r in self._control.read() if r.key["table"] == "t"}
            self.early += [row for row in rows if int(row.extension("epoch")) not in announced]
            self.looked += 1
            time.sleep(0.005)

    def finish(self) -> None:
        """Stop looking."""
        self._over.set()
        self.join(20)
        self._rows.close()
        self._control.close()


CASES = {"plain": plain, "late-markers": late_markers}

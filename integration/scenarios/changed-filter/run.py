"""Row filters that change at a bad moment: together with what their columns, labels and tables are called, before the first snapshot
is through, while rows of an earlier change are still looked for. What readers hold is right in the end, or the task stops and says
what to do, and that works."""

import json
import os
import random
import secrets
from typing import Any

from harness.checks import check, equal, wait_for
from harness.mirror import merged
from harness.rest import Answer
from harness.trial import Trial
from harness.worker import Connector

SERVER_MATTERS = False
LONG = {"random"}

PUBLIC = "public\\."
SWAP = ("begin; alter table swapped rename w to x; alter table swapped rename w2 to w; "
        "alter table swapped rename x to w2; commit")


def table(t: Trial, name: str, where: str) -> dict[str, dict[str, Any]]:
    """The rows that are in, by their keys."""
    return {json.dumps({"id": row["id"]}): row for row in t.query(f"select * from {name} where {where}")}


def config(t: Trial, tables: str, text: str | None, **more: str) -> dict[str, str]:
    """A configuration with a row filter for the first of the tables."""
    first = tables.split("|", maxsplit=1)[0]
    settings = t.config(**{"table_include_list": f"{PUBLIC}({tables})", "incremental_snapshot_chunk_size": "5"} | more)
    return settings | ({f"row.filter.public.{first}": text} if text else {})


def begin(t: Trial, settings: dict[str, str]) -> Connector:
    """A connector whose first snapshot is through."""
    connector = t.worker().create(t.name, settings)
    t.wait_streaming()
    t.settle()
    return connector


def configure(t: Trial, settings: dict[str, str]) -> Answer:
    """Another configuration."""
    answer = t.workers[-1].rest("PUT", f"/connectors/{t.name}/config", settings, timeout=90)
    equal(answer.status, 200, f"status of PUT config ({answer.message})")
    return answer


def apply(t: Trial, mode: str) -> None:
    """The configured filters, applied to a connector that is stopped."""
    t.workers[-1].rest("PUT", f"/connectors/{t.name}/stop")
    answer = t.workers[-1].rest("PUT", f"/connectors/{t.name}/row-filters", {"mode": mode}, timeout=60)
    equal(answer.status, 200, f"status of PUT row-filters ({answer.message})")


def change(t: Trial, connector: Connector, settings: dict[str, str], mode: str = "resnapshot") -> None:
    """Another filter, applied and not begun with."""
    connector.put("stop")
    configure(t, settings)
    apply(t, mode)


def resume(connector: Connector) -> None:
    connector.put("resume")
    connector.wait_running()


def progress(connector: Connector) -> dict[str, Any]:
    return connector.request("GET", "/snapshots").body["snapshot"] or {}


def wait_done(connector: Connector) -> dict[str, Any]:
    """The end of what is read beside the stream."""
    def done() -> dict[str, Any] | None:
        found = progress(connector)
        return found if found.get("state") == "COMPLETED" else None
    return wait_for(done, 60, "the snapshot's end", connector.failed)


def judge(t: Trial, connector: Connector, name: str, where: str) -> None:
    """The look is through, and readers hold what is in: all of it is visible by then."""
    wait_done(connector)
    equal(merged(t.topic(name).read()), table(t, name, where), "rows that a reader holds")


def swap_other(t: Trial) -> None:
    """Two columns change names, and another text is applied at once: the former one is not asked of the columns of now."""
    connector = begin(t, config(t, "swapped", "w = 1"))
    t.sql(SWAP, "update swapped set z = z where id = 1")
    connector.wait_failed("TG-E-FILTER-CHANGED")
    change(t, connector, config(t, "swapped", "z <= 10 AND w <> 77"))
    resume(connector)
    judge(t, connector, "swapped", "z <= 10")


def swap_pending(t: Trial) -> None:
    """The former filter's columns change names while rows are looked for."""
    connector = begin(t, config(t, "swapped", "w = 1"))
    change(t, connector, config(t, "swapped", "z <= 10"))
    t.sql(SWAP, "update swapped set z = 50 where id in (3, 4)", "delete from swapped where id = 5")
    resume(connector)
    judge(t, connector, "swapped", "z <= 10")


def label_other(t: Trial) -> None:
    """A label gets another name and another one takes its own, and another text is applied at once."""
    connector = begin(t, config(t, "moods", "e = 'b'"))
    connector.put("stop")
    t.sql("alter type mood rename value 'b' to 'x'", "alter type mood rename value 'd' to 'b'")
    change(t, connector, config(t, "moods", "z > 8"))
    resume(connector)
    judge(t, connector, "moods", "z > 8")


def label_pending(t: Trial) -> None:
    """The same while rows are looked for."""
    connector = begin(t, config(t, "moods", "e = 'b'"))
    change(t, connector, config(t, "moods", "z > 8"))
    t.sql("alter type mood rename value 'b' to 'x'", "alter type mood rename value 'd' to 'b'", "delete from moods where id = 5")
    resume(connector)
    judge(t, connector, "moods", "z > 8")


def swap_back(t: Trial) -> None:
    """Two columns change names and change them back before anybody looks: that is told, and the look mends it."""
    settings = config(t, "swapped", "w = 1")
    connector = begin(t, settings)
    back = SWAP.replace("begin; ", "").replace("; commit", "")
    t.sql(f"begin; {back}; update swapped set z = 99 where id = 1; update swapped set w2 = 2 where id = 2; {back}; commit")
    trace = connector.wait_failed("TG-E-FILTER-CHANGED")
    check("column w," in trace and "changed them back" in trace, trace)
    apply(t, "resnapshot")
    t.sql("update swapped set z = 7 where id = 9")
    resume(connector)
    judge(t, connector, "swapped", "w = 1")
    # What follows is judged as ever; another column behind, and one less in front of it, are nothing.
    t.sql("alter table swapped add column later int", "update swapped set w = 9 where id = 3",
          "alter table swapped drop column z", "update swapped set later = 1 where id = 4")
    expected = table(t, "swapped", "w = 1")
    found = merged(t.settled_records("swapped"))
    equal(found.keys(), expected.keys(), "rows that a reader holds")
    equal(found['{"id": 4}'], expected['{"id": 4}'], "a row behind all that")


def first_snapshot(t: Trial) -> None:
    """Only the configuration changes while the first snapshot is half published."""
    worker = t.worker()
    small = {"transaction.stage.bytes": str(1 << 16), "transaction.max.bytes": str(1 << 20), "incremental.snapshot.chunk.size": "2000"}
    # The rows of the second table take some seconds; of those of the first one some are visible.
    slowly = {"snapshot.select.statement.overrides": "public.swapped",
              "snapshot.select.statement.overrides.public.swapped": "select s.* from public.swapped s where pg_sleep(0.5) is not null"}
    connector = worker.create(t.name, config(t, "big|swapped", "v <= 150") | small | slowly, running=False)
    wait_for(lambda: t.cluster.topics(f"{t.name}.public.big") and len(t.topic("big").read()) > 5000, 30, "half a snapshot", connector.failed)
    worker.kill()
    check(not t.topic("swapped").read(), "the snapshot is not through")
    t.sql("delete from big where id = 100", "update big set v = 1000 where id = 10")
    worker.start()
    notes = configure(t, config(t, "big|swapped", "v <= 20") | small).body.get("notes")
    trace = connector.wait_failed("TG-E-FILTER-CHANGED")
    check("resnapshot" in trace and (notes is None or "FILTER-CHANGED" in json.dumps(notes)), f"{trace} {notes}")
    apply(t, "resnapshot")
    resume(connector)
    judge(t, connector, "big", "v <= 20")


def renamed(t: Trial) -> None:
    """The table gets another name while rows are looked for: its topic may hold rows that are out, and that is told."""
    names = "filtered|others|swapped"
    connector = begin(t, config(t, names, "v <= 100"))
    change(t, connector, config(t, names, "v > 50 AND v <= 150"))
    t.sql("alter table filtered rename to others", "update others set note = 'z' where id in (20, 80, 120)")
    resume(connector)
    trace = connector.wait_failed("TG-E-FILTER-CHANGED")
    check("is called \"public.others\" now" in trace and "Rename the key" in trace, trace)
    connector.put("stop")
    after = config(t, "others|filtered|swapped", "v > 50 AND v <= 150")
    configure(t, after)
    connector.put("resume")
    trace = connector.wait_failed("TG-E-FILTER-CHANGED")
    check("may hold rows that are out" in trace and "from_now" in trace, trace)
    apply(t, "from_now")
    resume(connector)
    t.wait_streaming()
    t.sql("update others set note = 'y' where id in (20, 80)")
    records = t.settled_records("others")
    equal([(r.key["id"], r.op) for r in records if not r.tombstone], [(80, "u"), (120, "u"), (80, "u")], "it goes on under the new name")
    # Out of what is captured: only the catalogue tells.
    apply(t, "resnapshot")
    t.sql("alter table others rename to elsewhere")
    connector.put("resume")
    connector.wait_failed("TG-E-FILTER-UNKNOWN-TABLE")
    connector.put("stop")
    configure(t, config(t, "others|filtered|swapped", None))
    connector.put("resume")
    trace = connector.wait_failed("TG-E-FILTER-CHANGED")
    check("is called \"public.elsewhere\" now" in trace, trace)
    apply(t, "from_now")
    resume(connector)
    t.wait_streaming()


def excluded(t: Trial) -> None:
    """The table is excluded while rows are looked for: that does not hold up others, and goes on when it is back."""
    both = config(t, "filtered|swapped", "v <= 50")
    connector = begin(t, both | {"row.filter.public.filtered": "v <= 100"})
    change(t, connector, both)
    configure(t, t.config(table_include_list=PUBLIC + "swapped"))
    resume(connector)
    t.wait_streaming()
    t.sql("update filtered set v = 1000 where id in (20, 60)", "update filtered set v = 7 where id = 180", "update swapped set z = 1")
    t.settle()
    equal(connector.request("POST", "/snapshots", {"data-collections": ["public.swapped"]}).status, 202, "status of POST snapshots")
    wait_for(lambda: any(one["state"] == "COMPLETED" for one in progress(connector).get("tables", [])), 60, "another table", connector.failed)
    configure(t, both)
    judge(t, connector, "filtered", "v <= 50")


def identity_lowered(t: Trial) -> None:
    """Old rows do not show what the former filter reads: the way that is told works while rows are looked for."""
    connector = begin(t, config(t, "filtered", "v <= 100"))
    settings = config(t, "filtered", "id <= 50")
    change(t, connector, settings)
    t.sql("alter table filtered replica identity default", "update filtered set v = 500 where id in (60, 20)", "delete from filtered where id = 70")
    resume(connector)
    connector.wait_failed("TG-E-FILTER-BEFORE-IMAGE")
    t.sql("alter table filtered replica identity full")
    change(t, connector, config(t, "filtered", None))
    resume(connector)
    wait_done(connector)
    change(t, connector, settings)
    resume(connector)
    judge(t, connector, "filtered", "id <= 50")


def read_pending(t: Trial) -> None:
    """A snapshot that somebody asked for is not through when the filter changes."""
    settings = config(t, "filtered", "v <= 100", snapshot_mode="no_data", incremental_snapshot_chunk_size="1")
    connector = t.worker().create(t.name, settings)
    t.wait_streaming()
    t.sql("update filtered set note = 'q' where id in (60, 90)")
    t.settle()
    equal(connector.request("POST", "/snapshots", {"data-collections": ["public.filtered"]}).status, 202, "status of POST snapshots")
    equal(connector.request("PUT", "/snapshots/pause").status, 202, "status of pause")
    t.settle()
    change(t, connector, settings | {"row.filter.public.filtered": "v <= 50"})
    # And another one before that is begun.
    change(t, connector, settings | {"row.filter.public.filtered": "v <= 60"})
    change(t, connector, settings | {"row.filter.public.filtered": "v <= 70", "incremental.snapshot.chunk.size": "50"})
    resume(connector)
    equal(connector.request("PUT", "/snapshots/resume").status, 202, "status of resume")
    judge(t, connector, "filtered", "v <= 70")


def routed_pending(t: Trial) -> None:
    """A transform that needs more than the key comes while rows are looked for: `from_now` gives the look up."""
    connector = begin(t, config(t, "filtered", "v <= 100"))
    settings = config(t, "filtered", "v <= 50")
    change(t, connector, settings)
    routed = settings | {"transforms": "u", "transforms.u.type": "io.debezium.transforms.ExtractNewRecordState",
                         "transforms.u.route.by.field": "note"}
    configure(t, routed)
    resume(connector)
    trace = connector.wait_failed("TG-E-FILTER-CHANGED")
    check("from_now" in trace, trace)
    apply(t, "from_now")
    resume(connector)
    t.wait_streaming()
    wait_for(lambda: progress(connector).get("state") == "STOPPED", 30, "it is given up", connector.failed)
    # Without the transform the next look tells all rows.
    change(t, connector, settings)
    resume(connector)
    judge(t, connector, "filtered", "v <= 50")


class Shuffle:
    """Filters, names of columns and of labels that change at random, between and beside writes, stops and kills. After each filter that
    is applied with `resnapshot` a reader holds what is in, or it is told that it means something else, and can be applied again."""

    def __init__(self, t: Trial) -> None:
        self.t = t
        seed = int(os.environ.get("TIDEGATE_SEED") or secrets.randbelow(1 << 31))
        print(f"seed {seed} (TIDEGATE_SEED={seed} repeats it)", flush=True)
        self.r = random.Random(seed)
        self.where = self.predicate()
        self.connector = begin(t, self.config())

    def config(self) -> dict[str, str]:
        return config(self.t, "shuffled", self.where)

    def predicate(self) -> str:
        r = self.r
        simple = [f"{r.choice(['w', 'w2', 'z'])} {r.choice(['=', '<>', '<=', '>'])} {r.randrange(8)}", f"e = '{r.choice('abcd')}'",
                  f"e <> '{r.choice('abcd')}'", f"{r.choice(['w', 'w2', 'z'])} IN (1, 2, {r.randrange(20)})", f"id <= {r.randrange(40)}"]
        one, other = r.sample(simple, 2)
        return r.choice([one, f"{one} AND {other}", f"{one} OR {other}"])

    def write(self) -> None:
        r = self.r
        for _ in range(r.randrange(1, 6)):
            key = r.randrange(1, 45)
            column = r.choice(["w", "w2", "z"])
            self.t.sql(r.choice([
                f"update shuffled set {column} = {r.randrange(8)} where id = {key}",
                f"update shuffled set e = '{r.choice('abcd')}' where id = {key}",
                f"update shuffled set note = '{r.randrange(99)}' where id between {key} and {key + 3}",
                f"delete from shuffled where id = {key}",
                f"insert into shuffled values ({key}, {r.randrange(4)}, {r.randrange(6)}, {r.randrange(40)}, '{r.choice('abcd')}', 'i') "
                f"on conflict (id) do update set {column} = {r.randrange(8)}"]))

    def rename(self) -> None:
        r = self.r
        if r.random() < 0.6:
            one, other = r.sample(["w", "w2", "z"], 2)
            self.t.sql(f"begin; alter table shuffled rename {one} to x; alter table shuffled rename {other} to {one}; "
                       f"alter table shuffled rename x to {other}; commit")
        else:
            one, other = r.sample("abcd", 2)
            self.t.sql(f"alter type letter rename value '{one}' to 'x'", f"alter type letter rename value '{other}' to '{one}'",
                       f"alter type letter rename value 'x' to '{other}'")

    def disturb(self) -> None:
        """What may happen at any time."""
        for _ in range(self.r.randrange(3)):
            self.r.choice([self.write, self.write, self.rename])()

    def refilter(self) -> None:
        self.connector.put("stop")
        self.disturb()
        self.where = self.predicate() if self.r.random() < 0.8 else self.where
        configure(self.t, self.config())
        self.disturb()
        apply(self.t, "resnapshot")
        self.disturb()
        self.connector.put("resume")
        if self.r.random() < 0.3:
            self.disturb()
            self.t.workers[-1].kill()
            self.disturb()
            self.t.workers[-1].start()

    def is_through(self) -> bool:
        """The look is through; or the filter means something else, and is to be applied anew."""
        def end() -> dict[str, str] | None:
            if trace := self.connector.trace():
                return {"trace": trace}
            return {"trace": ""} if progress(self.connector).get("state") == "COMPLETED" else None
        trace = wait_for(end, 60, "the look's end")["trace"]
        check(not trace or trace.startswith("TG-E-FILTER-CHANGED"), trace)
        return not trace

    def step(self) -> None:
        self.refilter()
        for _ in range(6):
            if self.is_through():
                break
            apply(self.t, "resnapshot")
            resume(self.connector)
        else:
            check(False, "applying it again does not work")
        expected, found = table(self.t, "shuffled", self.where), merged(self.t.topic("shuffled").read())
        # Columns are called what they were when a row was told.
        equal(sorted(found), sorted(expected), f"keys that a reader holds by {self.where}")


def shuffled(t: Trial) -> None:
    """See above."""
    shuffle = Shuffle(t)
    for _ in range(int(os.environ.get("TIDEGATE_STEPS") or 8)):
        shuffle.step()
        shuffle.disturb()


CASES = {"swap-other": swap_other, "swap-pending": swap_pending, "label-other": label_other, "label-pending": label_pending,
         "swap-back": swap_back, "first-snapshot": first_snapshot, "renamed": renamed, "excluded": excluded,
         "identity-lowered": identity_lowered, "read-pending": read_pending, "routed-pending": routed_pending, "random": shuffled}

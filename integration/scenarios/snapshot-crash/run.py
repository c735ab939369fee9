"""The worker is killed in the middle of the first snapshot, and started again while rows change. Tables that were read are left
alone, the others are read beside the stream, and every key ends as it is in the tables."""

import collections
import itertools
import json
import os
import random
import secrets
import threading
from typing import Any, Callable

import psycopg

from harness.checks import check, equal, wait_for
from harness.mirror import merged
from harness.topics import Record, key_text, replay
from harness.trial import Trial
from harness.worker import Connector, Worker

# The others are about what is decided before anything is read.
LONG = {"at-random"}
SERVER_MATTERS = {"killed", "again-and-again", "of-all-kinds", "queried"}
OVERRIDES = "snapshot.select.statement.overrides"
ALL_KINDS = "public\\.(a|b|c|keyless|parted.*|void)"


def interrupt(t: Trial, how: Callable[[Worker, Connector], None], slots: int = 1, **more: Any) -> tuple[Worker, Connector]:
    """Of the tables in the order of their names, the first is read, a part of the second is visible, and nothing of the third
    when the snapshot is interrupted. So many slots are complete when it begins."""
    worker = t.worker()
    connector = worker.create(t.name, t.config(incremental_snapshot_chunk_size="2000", **more), running=False)
    complete = "select count(*) from pg_replication_slots where database = %s and confirmed_flush_lsn is not null"
    wait_for(lambda: t.server.value(complete, t.name) == slots, 60, "the slot", connector.failed)
    with t.source.session() as session:
        # The snapshot gets as far as here.
        session.execute("begin; lock table c in access exclusive mode")
        wait_for(lambda: len(t.topic("b").read()) >= 10000, 60, "rows of the second table", connector.failed)
        how(worker, connector)
    check(not t.topic("c").read(), "the snapshot is not through")
    t.sql("insert into b select g, 'new' from generate_series(40001, 40100) g",
          "update b set v = 'changed' where id % 200 = 0", "delete from b where id % 200 = 1",
          "update c set v = 'changed' where id % 200 = 0", "delete from a where id % 200 = 1")
    return worker, connector


def kill_in_snapshot(t: Trial, slots: int = 1, **more: Any) -> tuple[Worker, Connector]:
    return interrupt(t, lambda worker, _: worker.kill(), slots, **more)


def stop_in_snapshot(t: Trial) -> Connector:
    """In good order; a connector that does not run tells how far it came."""
    def stop(_: Worker, connector: Connector) -> None:
        connector.put("stop")
        connector.wait_states("STOPPED")
    connector = interrupt(t, stop)[1]
    equal(states(connector), {"a": "COMPLETED", "b": "WAITING", "c": "WAITING"}, "what is told of it")
    return connector


def shown(connector: Connector) -> dict[str, Any]:
    return connector.request("GET", "/snapshots").body["snapshot"] or {}


def states(connector: Connector) -> dict[str, str]:
    return {one["data-collection"].removeprefix("public."): one["state"] for one in shown(connector).get("tables", [])}


def written_until_read(t: Trial, connector: Connector) -> None:
    """Rows of the tables that are left change until they are read."""
    numbers = itertools.count()
    def step() -> bool:
        number = next(numbers) % 97
        t.sql(f"update b set v = 'while it is read' where id % 97 = {number}", f"delete from c where id % 970 = {number}",
              f"update c set id = id + 100000 where id % 1940 = {number + 97}", f"insert into b values ({200000 + next(numbers)}, 'x')")
        return shown(connector).get("state") == "COMPLETED"
    wait_for(step, 120, "the end of the snapshot", connector.failed)


def goes_on(t: Trial, worker: Worker, connector: Connector, tables: str = "abc") -> None:
    """Every key ends as it is in the tables, and no other slot is left."""
    worker.start()
    connector.wait_running()
    t.wait_streaming()
    written_until_read(t, connector)
    ends(t, tables)


def ends(t: Trial, tables: str = "abc") -> None:
    t.sql("insert into a values (50000, 'streamed')")
    t.settle()
    for table in tables:
        equal(replay(t.topic(table).read()), t.rows(table, "id"), f"table {table}")
    slots = t.server.query("select slot_name, active from pg_replication_slots where database = %s", t.name)
    equal(slots, [{"slot_name": t.name, "active": True}], "slots")
    check(t.topic("a").read()[-1].op == "c", "the stream follows the snapshot")


def has_chunks(t: Trial) -> bool:
    """Tables can be read beside the stream of this server."""
    return bool(t.server.value("select current_setting('server_version_num')::int >= 140000"))


def read(t: Trial, table: str) -> list[Record]:
    return [record for record in t.topic(table).read() if record.op == "r"]


def markers(t: Trial, table: str) -> set[str]:
    """What rows of a snapshot are marked as, first and last ones left out."""
    return {record.value["source"]["snapshot"] for record in read(t, table)} & {"true", "incremental"}


def is_read_once(t: Trial, table: str, count: int = 30000) -> None:
    """What was read is not read again."""
    often = collections.Counter(record.key["id"] for record in read(t, table))
    equal((len(often), set(often.values())), (count, {1}), f"keys of {table} that were read, and how often each was")
    equal(markers(t, table), {"true"}, f"how rows of {table} are marked")


def kept(t: Trial, table: str) -> set[str]:
    """Rows of a table without a key, each told by all that it holds."""
    rows: set[str] = set()
    for record in t.topic(table).read():
        if record.before is not None:
            rows.discard(json.dumps(record.before))
        if record.after is not None:
            rows.add(json.dumps(record.after))
    return rows


def killed(t: Trial) -> None:
    worker, connector = kill_in_snapshot(t)
    goes_on(t, worker, connector)
    is_read_once(t, "a")
    equal(states(connector), {"a": "COMPLETED", "b": "COMPLETED", "c": "COMPLETED"}, "the progress at the end")
    equal(shown(connector)["id"], "initial", "its name")
    if has_chunks(t):
        equal((markers(t, "b"), markers(t, "c")), ({"true", "incremental"}, {"incremental"}), "how the others are marked")
    worker.kill()
    worker.start()
    t.wait_streaming()
    equal(set(states(connector).values()), {"COMPLETED"}, "the progress after a restart")
    ends_again = len(read(t, "b")) + len(read(t, "c"))
    t.sql("insert into a values (50001, 'streamed')")
    t.settle()
    equal(len(read(t, "b")) + len(read(t, "c")), ends_again, "rows that are read, after a restart")


def stopped(t: Trial) -> None:
    connector = stop_in_snapshot(t)
    connector.put("resume")
    t.wait_streaming()
    written_until_read(t, connector)
    ends(t)
    is_read_once(t, "a")


def made_beforehand(t: Trial) -> None:
    """A slot that somebody else made has what was deleted since as well."""
    t.sql(f"create publication {t.name} for table a, b, c")
    t.admin.query("select pg_create_logical_replication_slot(%s, 'pgoutput')", t.name)
    goes_on(t, *kill_in_snapshot(t, slots=2))
    is_read_once(t, "a")


def again_and_again(t: Trial) -> None:
    """Killed while the rest is read, and in between: each time it goes on behind what is visible."""
    worker, connector = kill_in_snapshot(t)
    for number in range(4):
        with t.source.session() as session:
            # Chunks of the second table get through, and those of the third do not.
            session.execute("begin; lock table c in access exclusive mode")
            before = len(t.topic("b").read())
            worker.start()
            if number < 3:
                wait_for(lambda: len(t.topic("b").read()) > before, 60, "rows of the second table", connector.failed)
            worker.kill()
        t.sql(f"update b set v = 'round {number}' where id % 50 = {number}", f"delete from c where id % 500 = {number}")
    goes_on(t, worker, connector)
    is_read_once(t, "a")
    often = collections.Counter(record.key["id"] for record in read(t, "b") if record.value["source"]["snapshot"] == "incremental")
    if has_chunks(t):
        equal(set(often.values()), {1}, "how often a key of the second table is in a chunk")


def of_all_kinds(t: Trial) -> None:
    """A table without a key, a partitioned one, one without rows."""
    worker, connector = kill_in_snapshot(t, table_include_list=ALL_KINDS, publish_via_partition_root="true")
    t.sql("delete from parted where id % 200 = 1", "update parted set id = id + 50000 where id = 800", "delete from keyless where id <= 10",
          "update keyless set v = 'changed' where id % 200 = 0")
    goes_on(t, worker, connector)
    is_read_once(t, "a")
    equal(replay(t.topic("parted").read()), t.rows("parted", "id"), "the partitioned table")
    equal(kept(t, "keyless"), {json.dumps(row) for row in t.query("select * from keyless")}, "rows of the table without a key")
    equal(sorted(states(connector)), ["a", "b", "c", "keyless", "parted", "void"], "tables that are told of")
    named = {record.value["relation"]["table"] for record in t.topic_named(f"{t.name}.schema-changes").read()}
    equal(named, {"a", "b", "c", "keyless", "parted", "void"}, "tables whose definition is announced")


def queried(t: Trial) -> None:
    """Of tables with a query of their own no rows are read beside the stream: those that are left are read again, by it."""
    worker, connector = kill_in_snapshot(t, **{
        OVERRIDES: "public.a,public.c", f"{OVERRIDES}.public.a": "select * from public.a where id > 100",
        f"{OVERRIDES}.public.c": "select * from public.c where id > 100"})
    worker.start()
    connector.wait_running()
    t.wait_streaming()
    wait_for(lambda: shown(connector).get("state") == "COMPLETED", 120, "the end of the snapshot", connector.failed)
    t.settle()
    is_read_once(t, "a", 29900)
    equal(replay(t.topic("b").read()), t.rows("b", "id"), "the table without a query")
    equal(markers(t, "c"), {"true"}, "how rows of the query are marked")
    check(all(record.key["id"] > 100 for record in read(t, "c")), "only rows of the query are read")
    found = replay(t.topic("c").read())
    rows = t.rows("c", "id")
    equal({key: row for key, row in found.items() if json.loads(key)["id"] > 100},
          {key: row for key, row in rows.items() if json.loads(key)["id"] > 100}, "rows of the query")


def edited(t: Trial) -> None:
    """Tables that come into the list, and leave it, before it goes on."""
    connector = stop_in_snapshot(t)
    answer = connector.request("PUT", "/config", t.config(table_include_list="public\\.[abd]"))
    check(answer.status in (200, 201), f"the changed list is taken: {answer.message}")
    with t.source.session() as session:
        # What it writes to the table that comes is not in the stream.
        session.execute("begin; insert into d values (100000, 'open all the while')")
        connector.put("resume")
        making = "select count(*) from pg_replication_slots where database = %s and slot_name <> %s"
        wait_for(lambda: t.server.value(making, t.name, t.name), 60, "a slot in the making", connector.failed)
        session.execute("commit")
    t.wait_streaming()
    wait_for(lambda: "d" in states(connector) and shown(connector)["state"] != "RUNNING", 120, "the end of the snapshot",
             connector.failed)
    ends(t, "abd")
    is_read_once(t, "a")
    check(states(connector)["d"] == "COMPLETED" and len(read(t, "d")) == 3001, "the table that came is read")


def left(t: Trial) -> None:
    """A table leaves the list while it is still to be read: the others do not wait for it, and when it is back it is read."""
    worker, connector = kill_in_snapshot(t)
    def with_tables(letters: str) -> None:
        answer = connector.request("PUT", "/config", t.config(table_include_list=f"public\\.[{letters}]"))
        check(answer.status in (200, 201), f"the changed list is taken: {answer.message}")
        connector.put("resume")
        connector.wait_running()
    with t.source.session() as session:
        session.execute("begin; lock table c in access exclusive mode")
        worker.start()
        wait_for(lambda: states(connector).get("b") == "COMPLETED", 120, "the other table", connector.failed)
        connector.put("stop")
        connector.wait_states("STOPPED")
    with_tables("ab")
    wait_for(lambda: states(connector).get("c") == "FAILED", 60, "the table that is not captured", connector.failed)
    t.sql("update c set v = 'while nobody looked' where id % 3 = 0")
    connector.put("stop")
    connector.wait_states("STOPPED")
    with_tables("abc")
    wait_for(lambda: states(connector).get("c") == "COMPLETED", 60, "the table that is back", connector.failed)
    ends(t)


def altered(t: Trial) -> None:
    """What a publication left out while nobody looked is not in the slot: all tables are read again, and that is told."""
    worker, connector = kill_in_snapshot(t)
    t.sql(f"alter publication {t.name} drop table a", "insert into a values (60000, 'left out')",
          f"alter publication {t.name} add table a")
    goes_on(t, worker, connector)
    check("the publication was altered meanwhile" in worker.log_text(), "it is told why")
    equal({count for count in collections.Counter(record.key["id"] for record in read(t, "a")).values()} - {1}, {2},
          "how often rows are read")


def always(t: Trial) -> None:
    """A start of the task reads all tables by this mode, also those that were read."""
    worker, connector = kill_in_snapshot(t, snapshot_mode="always")
    goes_on(t, worker, connector)
    equal(markers(t, "a"), {"true", "incremental"}, "how the rows of the first table are marked")


def denied(t: Trial) -> None:
    """A table that may not be read any more is waited for, and cannot be left out by an order."""
    worker, connector = kill_in_snapshot(t)
    t.admin.sql("alter table c owner to postgres", f"grant select on c to {t.name}")
    with t.admin.session() as session:
        session.execute("begin; lock table c in access exclusive mode")
        worker.start()
        connector.wait_running()
        t.wait_streaming()
        session.execute(f"revoke all on c from {t.name}; commit")
    wait_for(lambda: states(connector).get("b") == "COMPLETED", 120, "the other table", connector.failed)
    equal(states(connector)["c"] in ("WAITING", "RUNNING"), True, "it is still to be read")
    equal(connector.request("PUT", "/snapshots/stop").status, 409, "status of an order to stop")
    t.admin.sql(f"grant select on c to {t.name}")
    wait_for(lambda: shown(connector).get("state") == "COMPLETED", 120, "the end of the snapshot", connector.failed)
    ends(t)


def on_any(choose: random.Random) -> str:
    number = choose.randrange(1, 3200)
    return choose.choice([
        f"update keyed set n = n + 1 where a between {number} and {number + 3}",  # the large value is not sent
        f"update keyed set doc = 'new ' || n || repeat('y', 3000) where a = {number}",
        f"delete from keyed where a = {number}",
        f"insert into keyed values ({number}, 'k{number % 3}', 0, repeat('z', 3000)) on conflict do nothing",
        f"update keyed set a = a + 10000, doc = repeat('w', 3000) where a = {number}",
        f"update heap set n = n + 1 where id between {number} and {number + 20}",  # to other blocks
        f"delete from heap where id = {number}",
        f"insert into heap select {number + 100000}, {choose.randrange(10 ** 6)}, repeat('q', 500)",
        f"update spread set region = case region when 'eu' then 'us' else 'eu' end where id = {number}",
        f"update spread set n = n + 1 where id between {number} and {number + 5}",
        f"delete from spread where id = {number}",
    ])


def at_random(t: Trial) -> None:
    """Killed at any time, in the snapshot and behind it, while rows of all kinds of tables change. SEED repeats the choices."""
    seed = os.environ.get("SEED") or secrets.token_hex(4)
    choose = random.Random(seed)
    threads = choose.choice(("1", "3"))
    worker = t.worker()
    connector = worker.create(t.name, t.config(
        table_include_list="public\\.(keyed|heap|spread|spread_..|.*gate)", publish_via_partition_root="true",
        transaction_stage_bytes="65536", transaction_max_bytes="1048576", incremental_snapshot_chunk_size="40",
        snapshot_max_threads=threads), running=False)
    complete = "select count(*) from pg_replication_slots where database = %s and confirmed_flush_lsn is not null"
    wait_for(lambda: t.server.value(complete, t.name), 60, "the slot", connector.failed)
    # No snapshot gets behind this table as long as it is locked.
    gate = t.source.connect()
    t.later(gate.close)
    gate.execute(f"begin; lock table {choose.choice(('heap', 'keyed', 'spread'))}gate in access exclusive mode")
    over = threading.Event()
    failed: list[BaseException] = []
    def write(chance: random.Random) -> None:
        with t.source.session() as session:
            while not over.wait(0.01):
                try:
                    session.execute(on_any(chance))
                except psycopg.errors.UniqueViolation:
                    pass
                except BaseException as error:  # shown below
                    failed.append(error)
                    return
    writers = [threading.Thread(target=write, args=(random.Random(f"{seed} {number}"),)) for number in range(3)]
    for writer in writers:
        writer.start()
    try:
        # several connections begin when the sizes of all tables are known, so not before the lock is gone
        least = choose.choice((0, 1, 500, 2500)) if threads == "1" else 0
        wait_for(lambda: not least or t.cluster.topics(f"{t.name}.public.heap") and len(t.topic("heap").read()) >= least, 60,
                 f"rows of the first table (SEED={seed})", connector.failed)
        for number in range(choose.randrange(3, 8)):
            over.wait(choose.uniform(0, 1.5))
            worker.kill()
            if number == 1:
                gate.close()
            worker.start()
        wait_for(lambda: shown(connector).get("state") == "COMPLETED", 180, f"the end of the snapshot (SEED={seed})", connector.failed)
    finally:
        over.set()
        for writer in writers:
            writer.join()
    equal(failed, [], "faults of the writers")
    t.settle()
    for table, keys in (("keyed", ("a", "b")), ("spread", ("id", "region"))):
        records = t.topic(table).read()
        rows = {key_text({key: row[key] for key in keys}): row for row in t.query(f"select * from {table}")}
        equal(merged(records), rows, f"{table} (SEED={seed})")
        t.exactly_once([record for record in records if record.op != "r"])
    equal(kept(t, "heap"), {json.dumps(row) for row in t.query("select * from heap")}, f"heap (SEED={seed})")


def slot_lost(t: Trial) -> None:
    """Without the slot's changes the deletes of published rows are lost: that is never silent."""
    worker, connector = kill_in_snapshot(t)
    t.admin.query("select pg_replication_slot_advance(%s, pg_current_wal_lsn())", t.name)
    worker.start()
    connector.wait_failed("TG-E-SLOT-GAP")
    t.server.query("select pg_drop_replication_slot(%s)", t.name)
    connector.fail_again("TG-E-SLOT-MISSING")
    equal(t.slot(), None, "the slot, which is not created again in silence")
    check(not t.topic("c").read(), "nothing is published any more")


CASES = {"killed": killed, "stopped": stopped, "made-beforehand": made_beforehand, "again-and-again": again_and_again,
         "of-all-kinds": of_all_kinds, "queried": queried, "edited": edited, "left": left, "altered": altered, "always": always,
         "denied": denied, "at-random": at_random, "slot-lost": slot_lost}

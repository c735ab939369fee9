"""What a start reads of the tables, by `snapshot.mode`, when there is an offset already: all of them, those that the slot has
lost, those that were added; and what becomes of a slot that is ahead of the offset."""

from harness.checks import check, equal, wait_for
from harness.topics import Record
from harness.trial import Trial
from harness.worker import Connector

SERVER_MATTERS = False
LONG = {"lost-while-away", "drop-on-stop", "by-configuration", "initial-only"}
T = "public\\.t"


def held(records: list[Record]) -> dict[int, str]:
    """What a reader holds."""
    rows: dict[int, str] = {}
    for record in records:
        if record.after is None:
            rows.pop(record.key["id"], None)
        else:
            rows[record.after["id"]] = record.after["v"]
    return rows


def in_table(t: Trial, name: str) -> dict[int, str]:
    return {row["id"]: row["v"] for row in t.query(f"select id, v from {name}")}


def wait_read(t: Trial, connector: Connector, name: str) -> None:
    wait_for(lambda: held(t.topic(name).read()) == in_table(t, name), 60, f"the rows of {name}", connector.failed)


def reads(records: list[Record]) -> list[int]:
    return [record.after["id"] for record in records if record.op == "r"]


def always(t: Trial) -> None:
    """Each start reads all tables beside the stream, and loses no delete; a pause is a stop and a start."""
    worker = t.worker()
    connector = t.connect(worker, table_include_list=T, snapshot_mode="always")
    t.settle()
    equal(reads(t.topic("t").read()), [1, 2], "rows of the first start")
    worker.stop()
    t.sql("delete from t where id = 1", "insert into t values (3, 'three')")
    worker.start()
    wait_for(lambda: len(reads(t.topic("t").read())) == 4, 60, "the rows are read again", connector.failed)
    t.sql("update t set v = 'new' where id = 2")
    records = t.settled_records("t")
    equal((reads(records), held(records)), ([1, 2, 2, 3], in_table(t, "t")), "rows of the second start, and what a reader holds")
    equal([record.op for record in records if record.key["id"] == 1 and record.value], ["r", "d"], "the delete is there")


def when_needed(t: Trial) -> None:
    """A slot that is gone makes the tables be read anew, once; a slot that is there does not."""
    worker = t.worker()
    connector = t.connect(worker, table_include_list=T, snapshot_mode="when_needed")
    t.settle()
    worker.stop()
    worker.start()
    t.wait_streaming()
    equal(reads(t.settled_records("t")), [1, 2], "nothing is read again while the slot has everything")
    worker.stop()
    t.server.query("select pg_drop_replication_slot(%s)", t.name)
    t.sql("insert into t values (3, 'three')", "update t set v = 'changed' where id = 1")
    worker.start()
    t.wait_streaming()
    t.sql("insert into t values (4, 'four')")
    records = t.settled_records("t")
    equal((sorted(reads(records)[2:]), held(records)), ([1, 2, 3], in_table(t, "t")), "rows that were read, and what a reader holds")
    check("when_needed" in worker.log_text(), "the log says why")
    worker.stop()
    # Ahead of the offset: it is kept, and read from where the new snapshot was.
    t.sql("insert into t values (5, 'five')")
    t.admin.query("select pg_replication_slot_advance(%s, pg_current_wal_lsn())", t.name)
    worker.start()
    t.wait_streaming()
    t.sql("insert into t values (6, 'six')")
    records = t.settled_records("t")
    equal((sorted(reads(records)[5:]), held(records)), ([1, 2, 3, 4, 5], in_table(t, "t")), "the same for a slot that is ahead")


def lost_while_away(t: Trial) -> None:
    """The server gave the slot up: it is dropped, made anew, and the tables are read."""
    t.own_server(max_slot_wal_keep_size="1MB", max_wal_size="32MB", min_wal_size="32MB")
    worker = t.worker()
    t.connect(worker, table_include_list=T, snapshot_mode="when_needed")
    t.settle()
    worker.stop()
    for _ in range(5):
        t.sql("insert into filler select repeat('x', 1000) from generate_series(1, 20000)")
        t.server.sql("select pg_switch_wal()", "checkpoint")
    equal(t.slot()["wal_status"], "lost", "wal_status")
    t.sql("insert into t values (3, 'three')")
    worker.start()
    t.wait_streaming()
    records = t.settled_records("t")
    equal((reads(records), t.slot()["wal_status"]), ([1, 2, 1, 2, 3], "reserved"), "rows that were read, and the new slot")


def trust_slot(t: Trial) -> None:
    """A slot that is ahead of the offset: its strategy decides whether what lies between is given up."""
    worker = t.worker()
    connector = t.connect(worker, table_include_list=T, offset_mismatch_strategy="trust_offset")
    t.settle()
    worker.stop()
    t.sql("insert into t values (3, 'lost')")
    t.admin.query("select pg_replication_slot_advance(%s, pg_current_wal_lsn())", t.name)
    worker.start()
    connector.wait_failed("TG-E-SLOT-GAP")
    config = t.config(table_include_list=T, offset_mismatch_strategy="trust_slot")
    equal(worker.rest("PUT", f"/connectors/{t.name}/config", config, timeout=90).status, 200, "status of PUT config")
    connector.wait_running()
    t.wait_streaming()
    t.sql("insert into t values (4, 'kept')")
    equal([record.key["id"] for record in t.settled_records("t")], [1, 2, 4], "what was published")
    check("given up" in worker.log_text(), "the log says what is given up")
    # A slot that is behind loses nothing, and nothing comes twice.
    worker.kill()
    worker.start()
    t.wait_streaming()
    t.sql("insert into t values (5, 'five')")
    equal([record.key["id"] for record in t.settled_records("t")], [1, 2, 4, 5], "what was published after a crash")


def drop_on_stop(t: Trial) -> None:
    """`slot.drop.on.stop`: the slot goes with the task, and the next start reads anew; a crash keeps it."""
    worker = t.worker()
    t.refused(worker, t.config(table_include_list=T, slot_drop_on_stop="true"), "TG-E-CONFIG-INVALID")
    connector = t.connect(worker, table_include_list=T, slot_drop_on_stop="true", snapshot_mode="when_needed")
    t.sql("insert into t values (3, 'three')")
    t.settle()
    worker.kill()
    check(t.slot() is not None, "a crash leaves the slot")
    worker.start()
    t.wait_streaming()
    equal(reads(t.settled_records("t")), [1, 2], "nothing is read again after a crash")
    connector.put("stop")
    wait_for(lambda: t.slot() is None, 30, "the slot is dropped")
    t.sql("insert into t values (4, 'four')")
    connector.put("resume")
    t.wait_streaming()
    records = t.settled_records("t")
    equal((reads(records), held(records)), ([1, 2, 1, 2, 3, 4], in_table(t, "t")), "rows that were read, and what a reader holds")
    worker.stop()
    equal(t.slot(), None, "the slot after the worker's end")


def added(t: Trial) -> None:
    """A table that joins the stream is read beside it, whole, though the worker dies; the others are left alone."""
    worker = t.worker()
    connector = t.connect(worker, table_include_list=T)
    t.settle()
    config = t.config(table_include_list="public\\.(t|added)", incremental_snapshot_chunk_size="3")
    equal(worker.rest("PUT", f"/connectors/{t.name}/config", config, timeout=90).status, 200, "status of PUT config")
    connector.wait_running()
    # At whatever place this is: the publication has the table then, or it is added by the next start.
    worker.kill()
    t.sql("delete from added where id = 7", "update added set v = 'changed' where id = 8", "insert into added values (41, 'new')")
    worker.start()
    wait_read(t, connector, "added")
    t.sql("insert into added values (42, 'later')", "update t set v = 'changed' where id = 1")
    records = t.settled_records("t")
    equal((reads(records), held(records)), ([1, 2], in_table(t, "t")), "the table that was there is not read again")
    equal(held(t.topic("added").read()), in_table(t, "added"), "what a reader of the added table holds")


def denied(t: Trial) -> None:
    """A table that joins and may not be read is waited for, visibly, and read as soon as it may be."""
    connector = t.connect(table_include_list="public\\.(t|late)")
    t.sql("create table late (id int primary key, v text)", "insert into late values (1), (2)", f"revoke select on late from {t.name}")
    connector.restart()
    waiting = lambda: connector.status()["tasks"][0].get("waiting", "")
    wait_for(lambda: "TG-E-REPLICATION-PERMISSION" in waiting(), 60, "the status to say what is waited for", connector.failed)
    t.sql("insert into late values (3)", f"grant select on late to {t.name}")
    wait_read(t, connector, "late")
    equal(held(t.topic("late").read()), in_table(t, "late"), "what a reader of the table holds")
    wait_for(lambda: not waiting(), 10, "nothing to be waited for", connector.failed)


def removed(t: Trial) -> None:
    """A table that leaves the list, then the publication too, and one that is dropped: the others' rows go on, each once."""
    t.sql("create table gone (id int primary key)")
    worker = t.worker()
    connector = t.connect(worker, table_include_list="public\\.(t|added|gone)", snapshot_mode="no_data")
    t.sql("insert into added values (41, 'in')", "insert into t values (3, 'three')", "insert into gone values (1)")
    t.settle()
    # Across the change there is a row of each, behind what was read and before what comes.
    with t.source.session() as session:
        session.execute("begin; insert into t values (4, 'across'); insert into added values (42, 'across')")
        config = t.config(table_include_list="public\\.(t|gone)", snapshot_mode="no_data")
        equal(worker.rest("PUT", f"/connectors/{t.name}/config", config, timeout=90).status, 200, "status of PUT config")
        connector.wait_running()
        session.execute("commit")
    t.wait_streaming()
    told = f'ALTER PUBLICATION "{t.name}" DROP TABLE "public"."added"'
    check(told in worker.log_text(), "the log says how the publication is relieved of it")
    t.sql("insert into added values (43, 'out')", "insert into t values (50, 'before')", told, "insert into added values (44, 'out')", "insert into t values (5, 'five')", "insert into gone values (2)")
    equal([r.key["id"] for r in t.settled_records("t")], [3, 4, 50, 5], "rows of the table that stays")
    check([r.key["id"] for r in t.topic("added").read()] in ([41], [41, 42]), "of the removed one nothing that came after it")
    # Dropped without a word to the connector.
    t.sql("begin; insert into gone values (3); insert into t values (6, 'six'); commit", "drop table gone", "insert into t values (7, 'seven')")
    records = t.settled_records("t")
    equal([r.key["id"] for r in records], [3, 4, 50, 5, 6, 7], "rows of the table that stays, over the drop")
    equal(len(t.topic("gone").read()), 3, "rows of the dropped one, up to its end")
    t.exactly_once(records)
    equal((connector.failed(), connector.states()), (None, ["RUNNING", "RUNNING"]), "it runs")
    worker.kill()
    worker.start()
    t.wait_streaming()
    t.sql("insert into t values (8, 'eight')")
    equal([r.key["id"] for r in t.settled_records("t")], [3, 4, 50, 5, 6, 7, 8], "rows after a restart, which does not find the table")
    # What was written to it while nobody read it is not hidden by publishing it again.
    worker.rest("PUT", f"/connectors/{t.name}/config", t.config(table_include_list="public\\.(t|added)", snapshot_mode="no_data"), timeout=90)
    check("added" in connector.wait_failed("TG-E-PUBLICATION-CHANGED"), "the table that comes back is named")


def came_back(t: Trial) -> None:
    """A table that leaves the list and comes back, in the publication all the time: what was written meanwhile is read beside the
    stream, or, where nothing is to be read, told to be missing."""
    worker = t.worker()
    both, one = "public\\.(t|added)", "public\\.t"
    connector = t.connect(worker, table_include_list=both)
    t.sql("insert into added values (51, 'in')")
    t.settle()

    def only(tables: str, mode: str = "initial") -> None:
        config = t.config(table_include_list=tables, snapshot_mode=mode)
        equal(worker.rest("PUT", f"/connectors/{t.name}/config", config, timeout=90).status, 200, "status of PUT config")
        connector.wait_running()
        t.wait_streaming()

    only(one)
    t.sql("insert into added values (52, 'out')", "insert into t values (60, 'x')")
    t.settle()
    only(both)
    t.sql("insert into added values (53, 'in')")
    wait_for(lambda: {51, 52, 53} <= {r.key["id"] for r in t.topic("added").read()}, 60, "rows that were written meanwhile", connector.failed)
    check("was not captured for a while" in worker.log_text(), "it is told")
    only(one, "no_data")
    t.sql("insert into added values (54, 'out')", "insert into t values (61, 'x')")
    t.settle()
    told = len(worker.log_text())
    only(both, "no_data")
    check("what was written to it meanwhile is not in the stream" in worker.log_text()[told:], "what is missing is told")
    answer = connector.request("POST", "/snapshots", {"data-collections": ["public.added"]})
    equal(answer.status, 202, "its rows are ordered")
    wait_for(lambda: 54 in {r.key["id"] for r in t.topic("added").read()}, 60, "the row that was missed", connector.failed)


def by_configuration(t: Trial) -> None:
    """`configuration_based`: the parts are chosen one by one."""
    based = "snapshot.mode.configuration.based."
    worker = t.worker()
    nothing = t.config(table_include_list=T, snapshot_mode="configuration_based")
    t.refused(worker, nothing, "TG-E-CONFIG-INVALID")
    connector = worker.create(t.name, nothing | {based + "start.stream": "true"})
    connector.wait_running()
    t.wait_streaming()
    t.sql("insert into t values (3, 'three')")
    equal([(record.op, record.key["id"]) for record in t.settled_records("t")], [("c", 3)], "the stream alone")


def initial_only(t: Trial) -> None:
    """Rows and nothing more; no slot stays, and another start reads nothing again."""
    worker = t.worker()
    connector = worker.create(t.name, t.config(table_include_list=T, snapshot_mode="initial_only"))
    equal([record.key["id"] for record in t.records("t", 2)], [1, 2], "the rows")
    wait_for(lambda: t.slot() is None, 30, "no slot stays")
    connector.restart()
    worker.stop()
    worker.start()
    connector.wait_running()
    equal(connector.failed(), None, "what is wrong after a restart")
    equal([record.key["id"] for record in t.topic("t").read()], [1, 2], "the rows, once")


CASES = {"always": always, "when-needed": when_needed, "lost-while-away": lost_while_away, "trust-slot": trust_slot,
         "drop-on-stop": drop_on_stop, "added": added, "denied": denied, "removed": removed, "came-back": came_back, "by-configuration": by_configuration, "initial-only": initial_only}

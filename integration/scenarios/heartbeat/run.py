"""Heartbeats come while nothing happens and while much does, with a query that fails for a while."""

from harness.checks import check, equal, wait_for
from harness.trial import Trial

# The same on every version of the server.
SERVER_MATTERS = False


def run(t: Trial) -> None:
    worker = t.worker()
    connector = worker.create(t.name, t.config(**{"table_include_list": "public\\.t"}) | {
        "heartbeat.interval.ms": "200", "topic.heartbeat.prefix": f"{t.name}-pulse",
        "heartbeat.action.query": "update beat set n = n + 1"})
    t.wait_streaming()
    beats = t.topic_named(f"{t.name}-pulse.{t.name}")
    wait_for(lambda: len(beats.read()) >= 5, 30, "heartbeats of an idle stream", connector.failed)
    wait_for(lambda: t.query("select n from beat")[0]["n"] >= 3, 30, "the query of the heartbeats", connector.failed)

    # The query fails; stream and heartbeats go on, and so does the query when it can.
    t.sql("alter table beat rename to gone")
    wait_for(lambda: "heartbeat.action.query failed" in worker.log_text(), 30, "a warning", connector.failed)
    check("TG-E-" in next(line for line in worker.log_text().splitlines() if "heartbeat.action.query failed" in line),
          "the warning has a code")
    known = len(beats.read())
    t.sql("insert into t values (1)")
    wait_for(lambda: len(beats.read()) > known + 3, 30, "heartbeats beside a failing query", connector.failed)
    t.sql("alter table gone rename to beat")
    before = t.query("select n from beat")[0]["n"]
    wait_for(lambda: t.query("select n from beat")[0]["n"] > before, 30, "the query again", connector.failed)

    # In the middle of a large transaction, and of a kill.
    t.sql("insert into t select g from generate_series(2, 30000) g")
    worker.kill()
    worker.start()
    connector.wait_running()
    known = len(beats.read())
    wait_for(lambda: len(beats.read()) > known + 3, 30, "heartbeats after a kill", connector.failed)
    t.settle()
    equal([r.after["id"] for r in t.topic("t").read()], list(range(1, 30001)), "ids")
    records = beats.read()
    equal({(r.key["serverName"], r.partition) for r in records}, {(t.name, 0)}, "keys and partitions")
    times = [r.value["ts_ms"] for r in records]
    equal(times, sorted(times), "times")
    reached = [_number(r.extension("commit_lsn")) for r in records]
    equal(reached, sorted(reached), "positions")
    check(reached[-1] > reached[0], "the position moves on")


def _number(position: str) -> int:
    high, _, low = position.strip('"').partition("/")
    return int(high, 16) << 32 | int(low, 16)

"""Stopped and started cleanly, many times: nothing twice, nothing missing, connectors remembered."""

import json

from harness.checks import check, equal
from harness.trial import Trial


def run(t: Trial) -> None:
    worker = t.worker()
    connector = t.connect(worker)
    for round_number in range(1, 6):
        first = 10 * round_number
        # The end of one transaction is the beginning of the next: none may be taken for done with its neighbour.
        t.sql(*(f"insert into t values ({first + n}, 'running')" for n in range(3)))
        if round_number % 2:
            t.settle()
        equal(worker.stop(), 0, "exit status")
        slot = t.slot()
        check(slot is not None and not slot["active"], "the slot is kept and free")
        t.sql(*(f"insert into t values ({first + n}, 'stopped')" for n in range(3, 6)))
        worker.start()
        connector.wait_running()
    records = t.settled_records("t")
    expected = [1] + [10 * number + n for number in range(1, 6) for n in range(6)]
    equal([r.after["id"] for r in records], expected, "ids in order")
    equal([r.op for r in records[:2]], ["r", "c"], "operations: no second snapshot")
    t.exactly_once(records)
    # Behind the snapshot nothing was committed yet; a restart does not forget what was.
    commits = [json.loads(r.value["source"]["sequence"])[0] for r in records[1:]]
    equal(commits[0], None, "the last commit before the first change")
    check(None not in commits[1:] and commits[1:] == sorted(commits[1:], key=int), f"last commits in order: {commits}")
    equal(worker.rest("GET", "/connectors").body, [t.name], "connectors after the restart")
    connector.delete()
    equal(worker.stop(), 0, "exit status")
    worker.start()
    equal(worker.rest("GET", "/connectors").body, [], "connectors after delete and restart")

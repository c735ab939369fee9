"""A registry that is away or talks nonsense is waited for; nothing is lost, nothing asked twice, no error remembered."""

import time

from harness.checks import check, equal, wait_for
from harness.trial import Trial

# The same on every version of the server.
SERVER_MATTERS = False


def run(t: Trial) -> None:
    registry = t.own_registry()
    worker = t.worker()
    connector = worker.create(t.name, t.config())
    worker.kill()
    registry.kill()
    worker.start()
    time.sleep(1.5)
    check("FAILED" not in connector.states(), f"the connector waits for the registry; it is {connector.states()}")
    registry.start()
    connector.wait_running()
    t.wait_streaming()
    t.settle()
    registrations = registry.requests("^POST /subjects/.*versions")
    equal(len(registrations), len(set(registrations)), f"registrations, each once: {registrations}")

    # So that this reader, too, knows the schemas.
    equal(len(t.topic("t").read()), 1, "records of the snapshot")
    registry.kill()
    t.sql("insert into t select generate_series(2, 1000)")
    equal([r.after["id"] for r in t.settled_records("t")], list(range(1, 1001)), "rows of a known schema need no registry")

    # The first row of a table may need one, and all behind it wait.
    t.sql("alter table late add column v text", "insert into late values (1, 'x')", "insert into t values (1001)")
    time.sleep(2)
    check("FAILED" not in connector.states(), f"the connector waits for the registry; it is {connector.states()}")
    equal(t.topic("t").read()[-1].after["id"], 1000, "the last id: order is kept")
    registry.start()
    for answer in (500, 429, "broken", "close"):
        registry.fault(answer, "POST /subjects", times=1)
    wait_for(lambda: len(t.topic("late").read()) == 1, 60, "the late row", connector.failed)
    equal([r.after["id"] for r in t.settled_records("t")], list(range(1, 1002)), "ids")
    t.exactly_once(t.topic("t").read())


def hanging(t: Trial) -> None:
    registry = t.own_registry()
    worker = t.worker()
    connector = t.connect(worker)
    registry.fault("hang", "POST /subjects")
    t.sql("alter table t add column v text", "insert into t values (2, 'x')")
    wait_for(lambda: registry.requests("POST /subjects"), 30, "the registration", connector.failed)
    equal(worker.rest("GET", "/connectors", timeout=5).body, [t.name], "REST meanwhile")
    registry.heal()
    equal([r.after["id"] for r in t.settled_records("t")], [1, 2], "ids")


def read_only(t: Trial) -> None:
    registry = t.own_registry()
    registry.set_mode("READONLY")
    worker = t.worker()
    connector = worker.create(t.name, t.config(), running=False)
    connector.wait_failed("TG-E-REGISTRY-REFUSED")
    registry.set_mode("READWRITE")
    connector.restart()
    connector.wait_running()
    t.wait_streaming()
    equal([r.after["id"] for r in t.settled_records("t")], [1], "ids")


CASES = {"away": run, "hanging": hanging, "read-only": read_only}
del run

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
    # What the interrupted snapshot left is read beside the stream.
    equal([r.after["id"] for r in t.records("t", 1)], [1], "ids")


def credentials(t: Trial) -> None:
    """Who is not let in is told so at once; with the right ones it goes on."""
    registry = t.own_registry()
    connector = t.connect()
    registry.fault(401, "POST /subjects")
    t.sql("alter table t add column v text", "insert into t values (2, 'x')")
    trace = connector.wait_failed("TG-E-REGISTRY-REFUSED")
    check("401" in trace, f"the status: {trace}")
    registry.heal()
    connector.restart()
    connector.wait_running()
    equal([r.after["id"] for r in t.settled_records("t")], [1, 2], "ids")


def elsewhere(t: Trial) -> None:
    """An address at which no registry answers is named when the connector is made; while it runs that is waited for."""
    registry = t.own_registry()
    url = f"{registry.address}/no/such/path"
    wrong = {f"{side}.converter.schema.registry.url": url for side in ("key", "value")}
    worker = t.worker()
    text = t.refused(worker, t.config() | wrong | {f"{side}.converter": "io.confluent.connect.avro.AvroConverter" for side in ("key", "value")},
                     "TG-E-REGISTRY-UNREACHABLE")
    check(url in text and "schema.registry.url" in text, f"the address is named: {text}")
    t.nothing_left()
    connector = t.connect(worker)
    registry.fault(404, "POST /subjects")
    t.sql("alter table t add column v text", "insert into t values (2, 'x')")
    wait_for(lambda: len(registry.requests("POST /subjects.*versions")) > 6, 30, "more attempts", connector.failed)
    registry.heal()
    equal([r.after["id"] for r in t.settled_records("t")], [1, 2], "ids")


CASES = {"away": run, "hanging": hanging, "read-only": read_only, "credentials": credentials, "elsewhere": elsewhere}
LONG = {"credentials"}
del run

"""A connector of real Debezium is stopped, and its offset, slot and publication are gone on with: each row once, in order."""

from typing import Any

from harness.checks import check, equal, wait_for
from harness.connect import Connect
from harness.trial import Trial
from harness.worker import Connector
from stack import connect

# Kafka Connect takes its time to start.
LONG = True


def run(t: Trial) -> None:
    debezium = Connect(t.directory / "connect", t.name, connect.jars(connect.SOURCE), t.kafka.address, t.registry.address,
                       offset_flush_interval_ms="1000", scheduled_rebalance_max_delay_ms="500",
                       exactly_once_source_support="enabled")
    t.later(debezium.kill)
    config = {key: value for key, value in t.config().items() if not key.startswith(("retriable", "errors.retry"))}
    old = debezium.start().create(t.name, config)
    t.wait_streaming()
    t.sql("insert into t values (3, 'Debezium')")
    stop(t, debezium, old, 3)
    worker = t.worker()
    answer = worker.rest("POST", "/connectors", {"name": t.name, "config": config, "initial_state": "STOPPED"})
    equal(answer.status, 201, f"status of POST /connectors ({answer.message})")
    new = worker.connector(t.name)
    debezium.persist("PUT", f"/connectors/{t.name}/resume")
    t.wait_streaming()
    refused(t, new, offsets(debezium, old), "is in use by process")

    # rows of one COPY share their position
    with t.source.session() as session, session.cursor() as cursor:
        with cursor.copy("copy t from stdin") as copy:
            copy.write("".join(f"{number}\tcopied\n" for number in range(10, 60)))
        session.commit()
    stop(t, debezium, old, 53)
    refused(t, new, offsets(debezium, old), "several rows")

    # and after one row in a transaction of its own nothing is open
    debezium.persist("PUT", f"/connectors/{t.name}/resume")
    t.wait_streaming()
    t.sql("insert into t select n, 'together' from generate_series(60, 79) n",
          "update t set v = 'last' where id = 79")
    stop(t, debezium, old, 74)
    t.sql("insert into t values (80, 'between')", "create table aside (x int primary key)", "insert into aside values (1)")
    taken = offsets(debezium, old)
    refused(t, new, taken | {"partition": {"server": "another"}}, "the topic prefix must be the same")
    refused(t, new, taken | {"offset": {"file": "binlog.000001", "pos": 4}}, "TG-E-OFFSET-IMPORT")
    refused(t, new, taken | {"offset": taken["offset"] | {"txId": 3}}, "has no transaction 3")
    equal(altered(new, taken), (200, "The offsets for this connector have been altered successfully"), "the takeover")
    refused(t, new, taken, "an offset of its own")
    new.put("resume")
    t.wait_streaming()
    t.sql("insert into t values (81, 'Tidegate')")
    records = t.settled_records("t")
    equal([(r.op, r.after["id"]) for r in records],
          [("r", 1), ("r", 2), ("c", 3)] + [("c", n) for n in range(10, 80)] + [("u", 79), ("c", 80), ("c", 81)],
          "records of both")
    equal([r.after["id"] for r in records if r.extension("tx_seq") is not None], [80, 81], "ids of ours")
    equal(len({r.value_schema for r in records}), 1, "schemas in the registry")


def offsets(debezium: Connect, connector: Connector) -> dict[str, Any]:
    """What Kafka Connect says that Debezium has stored."""
    return debezium.rest("GET", f"/connectors/{connector.name}/offsets").body["offsets"][0]


def stop(t: Trial, debezium: Connect, connector: Connector, count: int) -> None:
    """Wait for so many records, then stop Debezium and wait until it has let the slot go."""
    wait_for(lambda: len(t.topic("t").read()) >= count, 60, f"{count} records of Debezium")
    debezium.persist("PUT", f"/connectors/{connector.name}/stop")
    wait_for(lambda: t.slot()["active_pid"] is None, 60, "Debezium to let the slot go")


def altered(connector: Connector, offset: dict[str, Any]) -> tuple[int, str]:
    """PATCH with what Kafka Connect's GET has answered."""
    answer = connector.request("PATCH", "/offsets", {"offsets": [offset]})
    return answer.status, answer.message


def refused(t: Trial, connector: Connector, offset: dict[str, Any], says: str) -> None:
    """It is not taken, and the slot stays as it is."""
    stood = t.slot()["confirmed"]
    status, message = altered(connector, offset)
    equal(status, 400, f"status of PATCH offsets ({message})")
    check(says in message, f"it says {says!r}: {message}")
    if t.slot()["active_pid"] is None:
        equal(t.slot()["confirmed"], stood, "where the slot stands")

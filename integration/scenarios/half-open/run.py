"""A connection of which one side is gone and the other hears nothing, for longer than the worker waits: a coded retry, and each row once."""

import time

from harness.checks import check, equal, wait_for
from harness.proxy import FaultProxy
from harness.trial import Trial
from harness.worker import Connector, free_port

SERVER_MATTERS = False
LONG = True
AGAIN = "the task starts again"


def told(t: Trial, code: str, timeout: float, connector: Connector) -> str:
    """Wait until the log says that the task starts again for this; returns the line."""
    before = t.workers[-1].log_text().count(AGAIN)

    def line() -> str | None:
        later = [one for one in t.workers[-1].log_text().splitlines() if AGAIN in one][before:]
        return next((one for one in later if code in one), None)
    return wait_for(line, timeout, f"{code}, and the next attempt", connector.failed)


def all_once(t: Trial, count: int) -> None:
    records = t.settled_records("t")
    equal([r.key["id"] for r in records], list(range(1, count + 1)), "rows, each once and in order")
    t.exactly_once(records)


def source(t: Trial) -> None:
    """The server's side is gone: after five minutes without an answer. Then the worker's side: the server's process is ended."""
    proxy = FaultProxy()
    t.later(proxy.close)
    link = proxy.link(t.postgres.port, free_port())
    connector = t.connect(database_port=str(link.port))
    t.sql("insert into t values (1, 'before')")
    t.settle()
    began = time.monotonic()
    check(link.half_open("server") > 0, "there are connections")
    t.sql("insert into t values (2, 'unheard')")
    line = told(t, "TG-E-SOURCE-UNREACHABLE", 400, connector)
    check("has said nothing for 300 s" in line, line)
    check(time.monotonic() - began > 250, "it was patient")
    all_once(t, 2)
    link.half_open("client")
    t.sql("insert into t values (3, 'behind')")
    t.records("t", 3, timeout=150)
    t.settle(150)
    all_once(t, 3)


CASES = {"source": source}

"""What REST tells of a worker at work: topics that have records, levels of the log; and answers in time without Kafka."""

import time

from harness.checks import check, equal, wait_for
from harness.trial import Trial
from harness.worker import free_port

# The same on every version of the server.
SERVER_MATTERS = False


def topics(t: Trial) -> None:
    worker = t.worker()
    connector = t.connect(worker)
    t.settle()

    def told() -> list[str]:
        return connector.request("GET", "/topics").body[t.name]["topics"]

    # One that has no rows is there, and was not written to.
    equal(told(), sorted([f"{t.name}.public.t", f"{t.name}.schema-changes"]), "topics with records")
    connector.put("pause")
    connector.put("resume")
    connector.wait_running()
    check(f"{t.name}.public.t" in told(), "they outlive a restart")
    equal(connector.request("PUT", "/topics/reset").status, 202, "status of the reset")
    equal(told(), [], "topics after the reset")
    t.sql("insert into t values (2)", "insert into u values (1)")
    t.settle()
    equal(told(), [f"{t.name}.public.t", f"{t.name}.public.u"], "topics written to since")
    connector.delete()
    equal(worker.rest("GET", f"/connectors/{t.name}/topics").body, {t.name: {"topics": []}}, "topics once it is deleted")


def loggers(t: Trial) -> None:
    worker = t.worker()
    equal(worker.rest("GET", "/admin/loggers").body, {"root": {"level": "INFO", "last_modified": None}}, "loggers")
    t.connect(worker)
    check("DEBUG" not in worker.log_text(), "the log says nothing of details")
    equal(worker.rest("PUT", "/admin/loggers/root", {"level": "DEBUG"}).body, ["root"], "what was changed")
    t.sql("insert into t values (7)")
    worker.connector(t.name).restart()
    worker.wait_log("DEBUG")
    worker.rest("PUT", "/admin/loggers/root", {"level": "OFF"})
    before = wait_for(worker.log_text, 5, "the log")
    worker.connector(t.name).restart()
    t.wait_streaming()
    equal(worker.log_text(), before, "the log when it is off")


def without_kafka(t: Trial) -> None:
    worker = t.worker(bootstrap_servers=f"127.0.0.1:{free_port()}")
    began = time.monotonic()
    answer = worker.rest("POST", "/connectors", {"name": t.name, "config": t.config()}, timeout=60)
    equal(answer.status, 400, "status")
    check("TG-E-KAFKA-UNREACHABLE" in answer.message, f"it says why: {answer.message}")
    check(time.monotonic() - began < 20, "nobody waits for half a minute")
    check(worker.rest("GET", "/connectors", timeout=2).body == [], "the rest answers meanwhile")
    t.nothing_left()


def another_prefix(t: Trial) -> None:
    """Changed on a running connector it would begin anew beside what is published; restored, all goes on."""
    connector = t.connect()
    t.settle()
    before = len(t.topic("t").read())
    answer = connector.request("PATCH", "/config", {"topic.prefix": f"{t.name}_other"})
    equal(answer.status, 200, f"status of PATCH ({answer.message})")
    text = connector.wait_failed("TG-E-OFFSET-ELSEWHERE")
    check(f"topic.prefix={t.name}," in text, f"it names the prefix that it had: {text}")
    equal(t.cluster.topics(f"{t.name}_other"), [], "topics with the other prefix")
    equal(connector.request("PATCH", "/config", {"topic.prefix": t.name}).status, 200, "status of PATCH")
    connector.wait_running()
    t.sql("insert into t values (77)")
    equal([r.after["id"] for r in t.settled_records("t")][before:], [77], "what follows")


CASES = {"another-prefix": another_prefix, "topics": topics, "loggers": loggers, "without-kafka": without_kafka}

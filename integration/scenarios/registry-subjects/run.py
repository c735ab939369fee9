"""Subjects by Confluent's three strategies on every kind of topic; schemas that others register: waited for with a code, found, nothing lost."""

import json

from harness.checks import check, equal, wait_for
from harness.rest import Rest, quoted
from harness.topics import Topic
from harness.trial import Trial

# The same on every version of the server.
SERVER_MATTERS = False

STRATEGY = "io.confluent.kafka.serializers.subject."


def _strategy(key: str, value: str) -> dict[str, str]:
    return {"key.converter.key.subject.name.strategy": key, "value.converter.value.subject.name.strategy": value}


def _own_converters(t: Trial, **more: str) -> dict[str, str]:
    """Both converters in the connector's own configuration, with these options."""
    options = {"": "io.confluent.connect.avro.AvroConverter", ".schema.registry.url": t.registry.address} | more
    return {f"{side}.converter{name}": value for side in ("key", "value") for name, value in options.items()}


def _subjects(t: Trial) -> set[str]:
    return set(Rest(t.registry.address)("GET", "/subjects").body)


def _every_kind(t: Trial) -> list[Topic]:
    """A row, a transaction's end, a definition and a sign of life, each with its schema."""
    t.sql("insert into t values (2, 2)")
    equal([r.after["id"] for r in t.settled_records("t")], [1, 2], "rows")
    names = [f"{t.name}.public.t", f"{t.name}.transaction", f"{t.name}.schema-changes", f"__debezium-heartbeat.{t.name}"]
    for name in names:
        wait_for(lambda name=name: t.topic_named(name).read(), 30, f"records in {name}", t.workers[-1].connector(t.name).failed)
    return [t.topic_named(name) for name in names]


def _names(topic: Topic) -> tuple[set[str], set[str]]:
    """The full names of its keys' and values' schemas."""
    def full(number: int) -> str:
        schema = json.loads(topic.schemas.text(number))
        return f"{schema['namespace']}.{schema['name']}" if "namespace" in schema else schema["name"]

    records = topic.read()
    return ({full(r.key_schema) for r in records}, {full(r.value_schema) for r in records if r.value is not None})


def strategies(t: Trial) -> None:
    """Keys by record, values by topic and record: every kind of topic; readers find all of it by its id."""
    t.own_registry()
    t.connect(**{"provide.transaction.metadata": "true", "heartbeat.interval.ms": "500"} | _own_converters(t)
              | _strategy("RecordNameStrategy", STRATEGY + "TopicRecordNameStrategy"))
    topics = _every_kind(t)
    expected = set()
    for topic in topics:
        keys, values = _names(topic)
        expected |= keys | {f"{topic.name}-{name}" for name in values}
    others = {name for name in _subjects(t) - expected if ".other." not in name}
    equal(expected - _subjects(t), set(), "subjects that are missing")
    equal(others, set(), "subjects beside them")
    check(f"{t.name}.public.t.Key" in expected and f"{t.name}.public.t-{t.name}.public.t.Envelope" in expected, f"names: {expected}")
    shown = t.command("tail", "--bootstrap-servers", t.kafka.address, "--registry-url", t.registry.address, "--no-follow", "--from-beginning",
                      f"{t.name}.public.t", f"{t.name}.transaction", f"{t.name}.schema-changes")
    shown.succeed()
    check("<TG-E" not in shown.out and shown.out.count("\n") > 3, f"tail decodes all of it: {shown.out}")


def no_record(t: Trial) -> None:
    """A key that is no record has no name to be known by: said when the connector is made."""
    t.own_registry()
    flat = {"transforms": "k", "transforms.k.type": "org.apache.kafka.connect.transforms.ExtractField$Key", "transforms.k.field": "id"}
    text = t.refused(t.worker(), t.config() | _own_converters(t) | flat | _strategy("RecordNameStrategy", "TopicNameStrategy"),
                     "TG-E-CONFIG-INVALID", "TG-E-TRANSFORM-UNFIT", "TG-E-CONFIG-UNSUPPORTED")
    check(bool(text), "it is refused")
    t.nothing_left()


def _registered(t: Trial, trace: str) -> str:
    """Registers what a fault asks for, as an operator would: subject and schema are in it. Returns the subject."""
    subject = trace.split("for subject '", 1)[1].split("'", 1)[0]
    schema, _ = json.JSONDecoder().raw_decode(trace.split("The schema: ", 1)[1])
    answer = Rest(t.registry.address)("POST", f"/subjects/{quoted(subject)}/versions", {"schema": json.dumps(schema)})
    equal(answer.status, 200, f"status of the registration ({answer.message})")
    return subject


def start(t: Trial) -> None:
    """auto.register.schemas=false: the task stops at each schema that is missing, and goes on at the same place once it is there."""
    registry = t.own_registry()
    worker = t.worker()
    manual = t.config() | _own_converters(t, **{".auto.register.schemas": "false"})
    connector = worker.create(t.name, manual, running=False)
    subjects: list[str] = []
    streams = lambda: (slot := t.slot()) is not None and slot["active"] and len(t.topic("t").read()) == 1  # noqa: E731
    refusals = lambda: worker.log_text().count("error=TG-E-SCHEMA-NOT-REGISTERED")  # noqa: E731
    while not wait_for(lambda: "streams" if streams() else refusals() > len(subjects) and "failed", 60, "a refusal or the stream",
                       worker.ended) == "streams":
        subjects.append(_registered(t, connector.wait_failed("TG-E-SCHEMA-NOT-REGISTERED")))
        check(len(subjects) < 12, f"subjects asked for: {subjects}")
        connector.restart()
    equal(len(subjects), len(set(subjects)), f"each is asked for once: {subjects}")
    check({f"{t.name}.public.t-key", f"{t.name}.public.t-value"} <= set(subjects), f"subjects asked for: {subjects}")
    t.wait_streaming()
    equal([r.after["id"] for r in t.settled_records("t")], [1], "rows of the snapshot")
    equal(len(registry.requests("^POST /subjects/.*versions")), len(subjects), "only the operator registers")


def by_hand(t: Trial) -> None:
    """The same in the stream: what is before a missing schema is delivered, nothing behind it, and none of it twice."""
    t.own_registry()
    worker = t.worker()
    connector = t.connect(worker)
    t.settle()
    answer = worker.rest("PUT", f"/connectors/{t.name}/config", t.config() | _own_converters(t, **{".auto.register.schemas": "false"}))
    equal(answer.status, 200, f"status of PUT config ({answer.message})")
    t.sql("insert into t values (2, 2)", "alter table t add w int", "insert into t values (3, 3, 3)", "insert into t values (4, 4, 4)")
    trace = connector.wait_failed("TG-E-SCHEMA-NOT-REGISTERED")
    check(f"subject '{t.name}.public.t-value'" in trace and "public.t" in trace and "404" in trace, f"the trace names it: {trace}")
    equal([r.after["id"] for r in t.topic("t").read()], [1, 2], "rows before it")
    connector.fail_again("TG-E-SCHEMA-NOT-REGISTERED")
    equal([r.after["id"] for r in t.topic("t").read()], [1, 2], "rows after a restart that nothing was done for")
    _registered(t, trace)
    connector.restart()
    connector.wait_running()
    equal([r.after for r in t.settled_records("t")], [{"id": 1, "v": 1}, {"id": 2, "v": 2}, {"id": 3, "v": 3, "w": 3}, {"id": 4, "v": 4, "w": 4}], "rows")
    t.exactly_once(t.topic("t").read())


def latest(t: Trial) -> None:
    """use.latest.version=true: a documented version stands for the table's own; one of another meaning is refused with the place."""
    t.own_registry()
    worker = t.worker()
    connector = t.connect(worker)
    t.settle()
    subject = f"{t.name}.public.t-value"
    rest = Rest(t.registry.address)
    schema = json.loads(rest("GET", f"/subjects/{quoted(subject)}/versions/latest").body["schema"])
    documented = schema | {"doc": "rows of t, by hand"}
    t.set_level(subject, "NONE")
    known = rest("POST", f"/subjects/{quoted(subject)}/versions", {"schema": json.dumps(documented)}).body["id"]
    worker.rest("PUT", f"/connectors/{t.name}/config", t.config() | _own_converters(t, **{".auto.register.schemas": "false", ".use.latest.version": "true"}))
    connector.wait_running()
    t.sql("insert into t values (2, 2)")
    equal([(r.after["id"], r.value_schema == known) for r in t.settled_records("t")], [(1, False), (2, True)], "rows, and by which schema")
    t.sql("alter table t add w int", "insert into t values (3, 3, 3)")
    trace = connector.wait_failed("TG-E-SCHEMA-NOT-REGISTERED")
    check("fields" in trace and '"w" here, nothing there' in trace, f"the place is named: {trace}")
    schema, _ = json.JSONDecoder().raw_decode(trace.split("The schema: ", 1)[1])
    rest("POST", f"/subjects/{quoted(subject)}/versions", {"schema": json.dumps(schema)})
    connector.restart()
    connector.wait_running()
    equal([r.after["id"] for r in t.settled_records("t")], [1, 2, 3], "rows")
    t.exactly_once(t.topic("t").read())


CASES = {"strategies": strategies, "no-record": no_record, "start": start, "by-hand": by_hand, "latest": latest}
# A start that is refused for each of its schemas takes as many starts.
LONG = {"start"}

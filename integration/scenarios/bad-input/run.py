"""Whatever is wrong with a connector is refused with a code, leaves nothing behind, and troubles nobody else."""

import json
import subprocess
from typing import Any, Callable

from harness.checks import check, equal
from harness.trial import Trial
from harness.worker import Worker, binary, free_port

# The same on every version of the server.
SERVER_MATTERS = False

# A fault that may heal is not waited for here.
AT_ONCE = {"errors.max.retries": "0", "errors.retry.timeout": "500"}


def refused(t: Trial, worker: Worker, config: dict[str, Any], *codes: str) -> str:
    """It is refused, and nothing of it is left."""
    text = t.refused(worker, config, *codes)
    t.nothing_left()
    return text


def case(*codes: str, setup: Callable[[Trial], Any] | None = None, says: str = "", **more: Any) -> Callable[[Trial], None]:
    """A connector with `more` in its configuration is refused, and one without is not."""
    def run(t: Trial) -> None:
        if setup is not None:
            setup(t)
        worker = t.worker()
        text = refused(t, worker, t.config(**more) | AT_ONCE, *codes)
        check(says in text, f"the refusal says {says!r}: {text}")
        if setup is None:
            t.connect(worker)
            equal([r.after["id"] for r in t.settled_records("t")], [1], "ids once it is right")
    return run


def transform_option(t: Trial) -> None:
    """A fault that only the table's columns show is told at the option that it is about."""
    worker = t.worker()
    config = t.config(transforms="flat,names", transforms_flat_type="io.debezium.transforms.ExtractNewRecordState",
                      transforms_names_type="org.apache.kafka.connect.transforms.ReplaceField$Value",
                      transforms_names_renames="v:id")
    answer = worker.rest("PUT", "/connector-plugins/PostgresConnector/config/validate", config | AT_ONCE | {"name": t.name})
    told = [info["value"]["name"] for info in answer.body["configs"] if info["value"]["errors"]]
    equal(told, ["transforms.names.renames"], "keys with errors")
    t.nothing_left()


def no_such_port(t: Trial) -> None:
    refused(t, t.worker(), t.config(database_port=str(free_port())) | AT_ONCE, "TG-E-SOURCE-UNREACHABLE")


def kafka_unreachable(t: Trial) -> None:
    worker = t.worker(bootstrap_servers=f"127.0.0.1:{free_port()}")
    refused(t, worker, t.config() | AT_ONCE, "TG-E-KAFKA-UNREACHABLE")


def registry_unreachable(t: Trial) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    worker = t.worker(**{"key.converter.schema.registry.url": url, "value.converter.schema.registry.url": url})
    refused(t, worker, t.config() | AT_ONCE, "TG-E-REGISTRY-UNREACHABLE")


def wal_level(t: Trial) -> None:
    t.own_server(wal_level="replica")
    refused(t, t.worker(), t.config(), "TG-E-WAL-LEVEL")


def no_free_slot(t: Trial) -> None:
    t.own_server(max_replication_slots="1")
    t.server.query("select pg_create_physical_replication_slot('taken')")
    refused(t, t.worker(), t.config(), "TG-E-SLOT-HEADROOM")
    t.server.query("select pg_drop_replication_slot('taken')")


def illegal_names(t: Trial) -> None:
    t.sql('create table "t-n" (id int primary key, "1st" text, "a b" text, "a-b" text, a_b text)',
          "insert into \"t-n\" values (1, '1', '2', '3', '4')")
    worker = t.worker()
    text = refused(t, worker, t.config(field_name_adjustment_mode="none"), "TG-E-SCHEMA-ILLEGAL-NAME")
    check("1st" in text or "t-n" in text, f"the name is given: {text}")
    text = refused(t, worker, t.config(field_name_adjustment_mode="avro", schema_name_adjustment_mode="avro"),
                   "TG-E-SCHEMA-ILLEGAL-NAME")
    check("a b" in text and "a-b" in text, f"the names that collapse are given: {text}")
    t.connect(worker, field_name_adjustment_mode="avro_unicode", schema_name_adjustment_mode="avro_unicode")
    t.settle()
    row = t.topic_named(f"{t.name}.public.t-n").read()[0].after
    equal(sorted(value for value in row.values() if value != 1), ["1", "2", "3", "4"], "values under distinct names")


def bodies(t: Trial) -> None:
    worker = t.worker()
    good = json.dumps({"name": t.name, "config": t.config()})
    for name, body in {
        "not JSON": good[:-5], "empty": "", "a list": "[]", "no configuration": json.dumps({"name": t.name}),
        "a nested value": json.dumps({"name": t.name, "config": t.config() | {"slot.name": {"a": 1}}}),
        "a list as value": json.dumps({"name": t.name, "config": t.config() | {"slot.name": ["a"]}}),
        "another name inside": json.dumps({"name": t.name, "config": t.config() | {"name": "other"}}),
        "an unknown member": json.dumps({"name": t.name, "config": t.config(), "initial-state": "PAUSED"}),
        "a slash in the name": json.dumps({"name": "a/b", "config": t.config()}),
    }.items():
        answer = worker.rest("POST", "/connectors", body)
        equal(answer.status, 400, f"status for {name} ({answer.message})")
        equal(answer.body["error_code"], 400, f"error_code for {name}")
        check(answer.message and "\n" not in answer.message.strip(), f"a plain sentence for {name}: {answer.message}")
    equal(worker.rest("POST", "/connectors", good, content_type="text/plain").status, 415, "status for a text body")
    equal(worker.rest("GET", "/connectors").body, [], "connectors")
    t.nothing_left()


def all_at_once(t: Trial) -> None:
    worker = t.worker()
    wrong = {"slot.name": "Bad Name", "snapshot.mode": "intial", "tasks.max": "two", "topic.prefx": "x"}
    answer = worker.rest("POST", "/connectors", {"name": t.name, "config": t.config() | wrong})
    equal(answer.status, 400, "status")
    for key in wrong:
        check(key in answer.message, f"the answer speaks of {key}: {answer.message}")
    plugin = "/connector-plugins/PostgresConnector/config/validate"
    validation = worker.rest("PUT", plugin, t.config() | wrong | {"name": t.name})
    equal(validation.status, 200, "status of validate")
    check(validation.body["error_count"] >= 3, f"validate counts the errors; it says {validation.body['error_count']}")
    t.nothing_left()


def worker_files(t: Trial) -> None:
    """A worker that cannot start says why, and exits with a status that says so too."""
    for text, code in (("bootstrap.servers=\n", "TG-E-CONFIG-INVALID"), ("no.such.key=1\n", "TG-E-CONFIG"), (None, "TG-E-")):
        file = t.directory / "wrong.properties"
        file.unlink(missing_ok=True)
        if text is not None:
            file.write_text(text)
        done = subprocess.run([str(binary()), "worker", str(file)], capture_output=True, text=True, timeout=20)
        check(done.returncode not in (0, 101), f"a worker with {text!r} ends with an error; status {done.returncode}")
        check(code in done.stderr + done.stdout, f"it says {code}: {done.stderr}{done.stdout}")
    worker = t.worker(start=False, connectors={"wrong": "{"})
    worker.launch()
    worker.wait_exit()
    check("wrong.json" in worker.log_text(), f"it names the file: {worker.log_text()}")
    t.nothing_left()


def no_privilege(t: Trial) -> None:
    t.server.sql(f"alter role {t.name} noreplication")


def no_select(t: Trial) -> None:
    t.admin.sql("create table foreign_to_it (id int primary key)")


CASES = {
    "host": case("TG-E-SOURCE-UNREACHABLE", database_hostname="no-such-host.invalid"),
    "port": no_such_port,
    "password": case("TG-E-SOURCE-AUTHENTICATION", database_password="wrong"),
    "user": case("TG-E-SOURCE-AUTHENTICATION", database_user="no_such_role"),
    "database": case("TG-E-SOURCE-DATABASE-MISSING", database_dbname="no_such_database"),
    "sslmode": case("TG-E-SOURCE-TLS", database_sslmode="require"),
    "wal-level": wal_level,
    "replication-privilege": case("TG-E-REPLICATION-PERMISSION", setup=no_privilege),
    "select-privilege": case("TG-E-REPLICATION-PERMISSION", setup=no_select, says="foreign_to_it"),
    "absent-table": case("TG-E-TABLE-MISSING", table_include_list="public\\.nosuch"),
    "no-identity": case("TG-E-SOURCE-REPLICA-IDENTITY", says="public.no_key",
                        setup=lambda t: t.sql("create table no_key (a int, b text)")),
    "unlogged-table": case("TG-E-TABLE-UNSUPPORTED", says="fleeting", table_include_list="public\\..*",
                           setup=lambda t: t.sql("create unlogged table fleeting (id int primary key)")),
    "no-free-slot": no_free_slot,
    "publication-missing": case("TG-E-PUBLICATION-MISSING", publication_autocreate_mode="disabled"),
    "kafka": kafka_unreachable,
    "registry": registry_unreachable,
    "class": case("TG-E-CONNECTOR-UNKNOWN-CLASS", **{"connector.class": "com.example.NoSuchConnector"}),
    "no-class": case("TG-E-C", **{"connector.class": None}),
    "key": case("TG-E-CONFIG-UNKNOWN-KEY", says="topic.prefix", **{"topic.prefx": "x"}),
    "unsupported-key": case("TG-E-CONFIG-UNSUPPORTED", **{
        "transforms": "cast", "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value"}),
    "value": case("TG-E-CONFIG-INVALID", says="snapshot.mode", snapshot_mode="intial"),
    "missing-prefix": case("TG-E-CONFIG-INVALID", says="topic.prefix", topic_prefix=None),
    "pattern": case("TG-E-CONFIG-INVALID", says="table.include.list", table_include_list="public.(t"),
    "slot-name": case("TG-E-SLOT-NAME-INVALID", slot_name="Bad-Name"),
    "publication-name": case("TG-E-PUBLICATION-NAME-INVALID", publication_name='a"b'),
    "plugin": case("TG-E-CONFIG", plugin_name="decoderbufs"),
    "avro-names": illegal_names,
    "transform-option": transform_option,
    "bodies": bodies,
    "all-at-once": all_at_once,
    "worker-files": worker_files,
}

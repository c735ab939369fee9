"""A row larger than Kafka takes stops the task before anything behind it; raised limits let it through."""

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from harness.checks import check, equal
from harness.trial import Trial

# The same on every version of the server.
SERVER_MATTERS = False

SIZE = 4_000_000


def run(t: Trial) -> None:
    worker = t.worker()
    connector = t.connect(worker)
    t.sql("insert into t values (0, 'first')")
    t.settle()
    t.sql(f"insert into t select 1, string_agg(md5(g::text), '') from generate_series(1, {SIZE // 32}) g",
          "insert into t values (2, 'small')")
    for attempt in range(2):
        code = "TG-E-RECORD-TOO-LARGE"
        trace = connector.fail_again(code) if attempt else connector.wait_failed(code)
        check(f"{t.name}.public.t" in trace or "public.t" in trace, f"the trace names the topic or table: {trace}")
        check("1" in trace and "id" in trace, f"the trace names the key: {trace}")
        equal([r.after["id"] for r in t.topic("t").read()], [0], f"ids after attempt {attempt}")
    admin = AdminClient({"bootstrap.servers": t.kafka.address})
    resource = ConfigResource(ResourceType.TOPIC, f"{t.name}.public.t", incremental_configs=[
        ConfigEntry("max.message.bytes", str(8_000_000), incremental_operation=AlterConfigOpType.SET)])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()
    answer = connector.request("PUT", "/config", t.config(producer_override_max_request_size="8000000"))
    equal(answer.status, 200, f"status of PUT config ({answer.message})")
    connector.wait_running()
    records = t.settled_records("t")
    equal([(r.after["id"], len(r.after["v"])) for r in records], [(0, 5), (1, SIZE), (2, 5)], "ids and sizes")
    t.exactly_once(records)

"""A type whose output function refuses: neither a snapshot nor the stream can have it, and both say so, with the place."""

from harness.checks import check, equal
from harness.trial import Trial

LONG = True


def run(t: Trial) -> None:
    t.admin.sql(
        "create type mute", "create function mute_in(cstring) returns mute language internal immutable strict as 'textin'",
        "create function mute_out(mute) returns cstring language internal immutable strict as 'trigger_out'",
        "create type mute (input = mute_in, output = mute_out)", "create table silent (id int primary key, v mute)",
        f"alter table silent owner to {t.name}")
    worker = t.worker()
    connector = t.connect(worker)
    t.sql("begin; insert into other values (1); insert into silent values (1, 'x'); commit")
    trace = connector.wait_failed("TG-E-VALUE-UNREPRESENTABLE")
    check("cannot display a value" in trace and "position" in trace, f"the refusal says what and where: {trace}")
    connector.fail_again("TG-E-VALUE-UNREPRESENTABLE")
    equal(t.topic("other").read(), [], "records of the transaction")
    connector.delete()
    text = t.refused(worker, t.config(slot_name=f"{t.name}_2", publication_name=f"{t.name}_2", topic_prefix=f"{t.name}_2"),
                     "TG-E-VALUE-UNREPRESENTABLE")
    check("public.silent" in text, f"the snapshot's refusal names the table: {text}")

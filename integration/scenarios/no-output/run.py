"""A type whose output function refuses: neither a snapshot nor the stream can have it, and both say so, with the place."""

from harness.checks import check, equal
from harness.trial import Trial
from harness.worker import Connector

LONG = True


def begin_anew(t: Trial, connector: Connector) -> None:
    """As the refusal says: with a new slot and snapshot."""
    connector.put("stop")
    connector.wait_states("STOPPED")
    if t.slot() is not None:
        t.server.query("select pg_drop_replication_slot(%s)", t.name)
    equal(connector.request("DELETE", "/offsets").status, 200, "status of DELETE offsets")
    connector.put("resume")


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
    for word in ("cannot display a value", "table public.silent", "column v", "position"):
        check(word in trace, f"the refusal says {word!r}: {trace}")
    connector.fail_again("TG-E-VALUE-UNREPRESENTABLE")
    equal(t.topic("other").read(), [], "records of the transaction")
    # Begun anew, it reads the table.
    begin_anew(t, connector)
    trace = connector.wait_failed("TG-E-VALUE-UNREPRESENTABLE")
    check("table public.silent" in trace and "column v" in trace, f"the snapshot's refusal names the place: {trace}")
    # The cause gone, it goes on.
    t.sql("alter table silent drop column v")
    begin_anew(t, connector)
    connector.wait_running()
    t.wait_streaming()
    equal([r.after for r in t.settled_records("silent")], [{"id": 1}], "the row without the column")

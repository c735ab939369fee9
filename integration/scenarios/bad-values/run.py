"""What cannot be published as it is stops the stream before its transaction, with the place; the cause gone, all of it follows."""

import re

from harness.checks import check, equal
from harness.trial import Trial
from harness.worker import Connector


def stops(t: Trial, connector: Connector, code: str, *says: str) -> None:
    """It stops there, and again, and nothing moves."""
    trace = connector.wait_failed(code)
    for word in (*says, "position"):
        check(word in trace, f"the refusal says {word!r}: {trace}")
    connector.fail_again(code)
    place = re.search(r"position ([0-9A-F]+/[0-9A-F]+)", trace)
    check(place is not None and t.admin.value("select %s::pg_lsn < %s", t.slot()["confirmed"], place[1]),
          f"the slot does not move beyond the place: {t.slot()['confirmed']}, {trace}")
    equal(t.topic("other").read(), [], "records of the transaction")


def goes_on(t: Trial, connector: Connector, table: str, **config: str) -> None:
    """With this configuration, which is another schema, it runs, and everything follows, once."""
    t.set_level(f"{t.name}.public.{table}-value", "NONE")
    answer = connector.request("PUT", "/config", t.config(**config))
    equal(answer.status, 200, f"status of PUT config ({answer.message})")
    connector.wait_running()
    equal([r.after["id"] for r in t.settled_records("other")], [1], "what was in the transaction besides")


def colliding_names(t: Trial) -> None:
    """A column is added whose name becomes another's."""
    t.own_registry()
    connector = t.connect(t.worker())
    t.sql("insert into t values (1, 'a', 'b')")
    t.settle()
    t.sql('alter table t add column "a-b" text',
          "begin; insert into other values (1); insert into t values (2, 'a', 'b', 'c'); commit", "insert into t values (3)")
    stops(t, connector, "TG-E-SCHEMA-ILLEGAL-NAME", "public.t", "a-b", "a_b")
    goes_on(t, connector, "t", column_exclude_list="public\\.t\\.a-b")
    equal([(r.after["id"], r.after["a_b"]) for r in t.settled_records("t")], [(1, "b"), (2, "b"), (3, None)], "rows")


def beyond_the_unit(t: Trial) -> None:
    """A timestamp that 64 bits of nanoseconds do not hold."""
    # Apicurio takes a subject without a level of its own for one with the level of all.
    t.own_registry()
    connector = t.connect(t.worker(), time_precision_mode="nanoseconds")
    t.sql("begin; insert into other values (1); insert into stamps values (1, '9999-12-31'); commit")
    stops(t, connector, "TG-E-VALUE-UNREPRESENTABLE", "public.stamps", "column at", '"id":1')
    goes_on(t, connector, "stamps", time_precision_mode="isostring")
    equal([r.after["at"] for r in t.settled_records("stamps")], ["9999-12-31T00:00:00Z"], "the value as text")


def no_number(t: Trial) -> None:
    """NaN in an exact decimal."""
    t.own_registry()
    connector = t.connect(t.worker())
    t.sql("begin; insert into other values (1); insert into stamps values (2, null, 'NaN'); commit")
    stops(t, connector, "TG-E-VALUE-UNREPRESENTABLE", "public.stamps", "column n", '"id":2')
    goes_on(t, connector, "stamps", decimal_handling_mode="string")
    equal([r.after["n"] for r in t.settled_records("stamps")], ["NaN"], "the value as text")


CASES = {"colliding-names": colliding_names, "beyond-the-unit": beyond_the_unit, "no-number": no_number}

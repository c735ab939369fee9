"""REPLICA IDENTITY FULL: both images are whole, and large values that were not sent come from the old one."""

from harness.checks import equal
from harness.trial import Trial


def run(t: Trial) -> None:
    t.connect()
    t.sql("update t set v = 2", "update t set id = 2", "delete from t")
    t.sql("update no_key set b = 'y'", "delete from no_key", "insert into no_key values (null, null)")
    large = {"doc": "x" * 9000, "ia": list(range(1, 3001))}
    one, changed, moved = ({"id": number, "v": v, **large} for number, v in ((1, 1), (1, 2), (2, 2)))
    records = t.settled_records("t")
    equal([(r.op, r.key, r.before, r.after) for r in records], [
        ("r", {"id": 1}, None, one),
        ("u", {"id": 1}, one, changed),
        ("d", {"id": 1}, changed, None),
        (None, {"id": 1}, None, None),
        ("c", {"id": 2}, None, moved),
        ("d", {"id": 2}, moved, None),
        (None, {"id": 2}, None, None),
    ], "records")
    equal({r.extension("unavailable") for r in records}, {None}, "columns named as unavailable")
    t.exactly_once(records)
    equal([(r.op, r.raw_key, r.before, r.after) for r in t.topic("no_key").read()], [
        ("r", None, None, {"a": 1, "b": "x"}),
        ("u", None, {"a": 1, "b": "x"}, {"a": 1, "b": "y"}),
        ("d", None, {"a": 1, "b": "y"}, None),
        ("c", None, None, {"a": None, "b": None}),
    ], "records of the table without key: no key, and no tombstone, which a topic could not place")

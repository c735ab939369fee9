"""One table of int and text: the snapshot's rows, then insert, update and delete as they happen."""

from harness.checks import check, equal
from harness.trial import Trial


def run(t: Trial) -> None:
    t.connect()
    t.sql("insert into t values (3, 'three')", "update t set v = 'deux' where id = 2", "delete from t where id = 1")
    records = t.settled_records("t")
    equal([(r.op, r.key, r.before, r.after) for r in records], [
        ("r", {"id": 1}, None, {"id": 1, "v": "one"}),
        ("r", {"id": 2}, None, {"id": 2, "v": "two"}),
        ("c", {"id": 3}, None, {"id": 3, "v": "three"}),
        ("u", {"id": 2}, None, {"id": 2, "v": "deux"}),
        ("d", {"id": 1}, {"id": 1, "v": None}, None),
        (None, {"id": 1}, None, None),
    ], "records")
    snapshot, stream = records[:2], records[2:5]
    equal([r.value["source"]["snapshot"] for r in records[:5]], ["first", "last", "false", "false", "false"],
          "source.snapshot")
    for record in snapshot + stream:
        source = record.value["source"]
        equal((source["db"], source["schema"], source["table"], source["name"]), (t.name, "public", "t", t.name),
              "what the source block says")
    check(stream[0].value["source"]["txId"] < stream[1].value["source"]["txId"], "txId grows")
    t.exactly_once(records)

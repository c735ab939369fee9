"""Rows are inserted, updated, deleted and get other keys while the first snapshot runs: every key ends as in the table."""

import random
import threading

from harness.checks import check, equal
from harness.topics import key_text, replay
from harness.trial import Trial


def run(t: Trial) -> None:
    over = threading.Event()
    writers = [threading.Thread(target=write, args=(t, number, over), daemon=True) for number in range(3)]
    for writer in writers:
        writer.start()
    worker = t.worker()
    try:
        t.connect(worker)
        t.settle()
    finally:
        over.set()
        for writer in writers:
            writer.join(30)
    records = t.settled_records("t")
    equal({row["id"]: row for row in replay(records).values()},
          {str(row["id"]): row | {"id": str(row["id"])} for row in t.query("select * from t")}, "table t")
    amounts = t.topic("amounts").read()
    equal(sorted(row["v"] for row in replay(amounts).values()),
          sorted(row["v"] for row in t.query("select v from amounts")), "table amounts")
    for topic in (records, amounts):
        streamed: set[str] = set()
        for record in topic:
            if record.op == "r":
                check(key_text(record.key) not in streamed, f"no snapshot row follows a streamed change of it: {record}")
            else:
                streamed.add(key_text(record.key))
        check(streamed, "something was written meanwhile")
        t.exactly_once(topic)


def write(t: Trial, seed: int, over: threading.Event) -> None:
    """One client, until it is told to stop."""
    chance = random.Random(seed)
    with t.source.session() as session:
        while not over.wait(0.002):
            number = chance.randint(1, 40000)
            statement = chance.choice([
                "update t set n = n + 1 where id = md5(%s::text)::uuid",
                "delete from t where id = md5(%s::text)::uuid",
                "update t set id = gen_random_uuid() where id = md5(%s::text)::uuid",
                "insert into t select gen_random_uuid(), %s, 'new'",
                "update amounts set v = v + 1 where id = %s %% 10000 / 100.0",
                "update amounts set id = id + 1000 where id = %s %% 10000 / 100.0",
            ])
            session.execute(statement, (number,))

"""A transaction that began long before others and a restart: it arrives whole, in its place, nothing else twice."""

from harness.checks import equal
from harness.trial import Trial, position


def run(t: Trial) -> None:
    worker = t.worker()
    t.connect(worker)
    with t.source.session() as session:
        session.execute("begin")
        session.execute("insert into long select generate_series(1, 5)")
        t.sql("insert into short values (90)")
        t.settle()
        session.execute("savepoint s")
        session.execute("insert into long select generate_series(100, 105)")
        session.execute("rollback to s")
        session.execute("insert into long select generate_series(6, 10)")
        worker.stop()
        session.execute("commit")
    t.sql("insert into short values (91)")
    worker.start()
    long, short = t.settled_records("long"), t.topic("short").read()
    equal([r.after["id"] for r in long], list(range(1, 11)), "ids of the long transaction")
    equal([r.after["id"] for r in short], [90, 91], "ids of the short ones")
    equal(len({position(r)[0] for r in long}), 1, "commit positions of the long transaction")
    assert position(short[0]) < position(long[0]) < position(long[-1]) < position(short[1]), "positions are in commit order"
    t.exactly_once(long)
    t.exactly_once(short)

"""Rows of one COPY share a log position; killed anywhere inside, each arrives once."""

from harness.checks import equal, wait_for
from harness.trial import Trial

ROUNDS = 6
ROWS = 2000


def run(t: Trial) -> None:
    worker = t.worker()
    connector = t.connect(worker)
    topic = t.topic("t")
    for number in range(ROUNDS):
        with t.source.session() as session, session.cursor() as cursor:
            with cursor.copy("copy t (id, v) from stdin") as copy:
                for row in range(ROWS):
                    copy.write_row((number * ROWS + row, "x" * 50))
        # Each round is cut off a little later.
        wait_for(lambda: len(topic.read()) >= number * ROWS or number == 0, 30, "the round before", connector.failed)
        worker.kill()
        worker.start()
    records = t.settled_records("t")
    equal([r.after["id"] for r in records], list(range(ROUNDS * ROWS)), "ids in order")
    t.exactly_once(records)

"""The demonstration: SQL on one side, what a reader of the topic gets on the other."""

import sys
import time
from pathlib import Path

from stack import settings
from stack.kafka import Kafka
from stack.postgres import Postgres
from stack.registry import Registry

from .topics import Record
from .trial import Trial

SETUP = "create table orders (id int primary key, customer text, total numeric(10, 2), placed timestamptz default now())"
STEPS = [
    "insert into orders values (3, 'Grace', 12.50)",
    "update orders set total = 99.90 where id = 1",
    "begin; update orders set customer = 'Ada L.' where id = 1; delete from orders where id = 2; commit",
    "begin; insert into orders values (4, 'nobody', 0); rollback",
    "alter table orders add column note text",
    "update orders set note = 'gift', id = 30 where id = 3",
]


def main() -> None:
    """Run it; stays there until Ctrl-C on a terminal."""
    trial = Trial("demo", Path("/nonexistent"), settings.DIR / "demo", Postgres(), Kafka(), Registry())
    try:
        trial.prepare()
        show_sql(SETUP)
        trial.sql(SETUP)
        show_sql("insert into orders values (1, 'Ada', 10), (2, 'Linus', 20)")
        trial.sql("insert into orders values (1, 'Ada', 10), (2, 'Linus', 20)")
        worker = trial.worker()
        trial.connect(worker)
        shown = show_new(trial, 0)
        for step in STEPS:
            show_sql(step)
            trial.sql(step)
            trial.settle()
            shown = show_new(trial, shown)
        if sys.stdin.isatty():
            print(f"\nREST endpoint   {worker.rest.base}/connectors/{trial.name}/status\n"
                  f"topic           {trial.name}.public.orders on {trial.kafka.address}\n"
                  f"database        psql '{trial.postgres.address.rpartition('/')[0]}/{trial.name}'\n"
                  "Change something and see it here; Ctrl-C ends and cleans up.")
            while True:
                shown = show_new(trial, shown)
                time.sleep(0.3)
    except KeyboardInterrupt:
        print()
    finally:
        trial.finish()


def show_sql(statement: str) -> None:
    """What is done to the source."""
    print(f"\n\033[1msql>\033[0m {statement};")


def show_new(trial: Trial, shown: int) -> int:
    """Print the records that came, and return how many there are now."""
    records = trial.topic("orders").read()
    for record in records[shown:]:
        print(f"  {describe(record)}")
    return len(records)


def describe(record: Record) -> str:
    """One line per record."""
    if record.tombstone:
        return f"tombstone  key {plain(record.key)}"
    kind = {"r": "snapshot", "c": "create", "u": "update", "d": "delete", "t": "truncate"}[record.op]
    images = " → ".join(plain(image) for image in (record.before, record.after) if image is not None)
    return f"{kind:10} key {plain(record.key)}  {images}"


def plain(row: dict | None) -> str:
    """A row without the quotes of Python."""
    return "none" if row is None else "{" + ", ".join(f"{name}: {value}" for name, value in row.items()) + "}"


if __name__ == "__main__":
    main()

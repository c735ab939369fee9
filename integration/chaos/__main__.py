"""`make chaos`: random faults until it is enough, and whether each change arrived once, in order, and all of them."""

import argparse
import fcntl
import logging
import os
import secrets
import sys
import time
import traceback
from pathlib import Path

from stack import settings
from stack.kafka import Kafka
from stack.postgres import Postgres
from stack.process import tail
from stack.registry import Registry
from stack.settings import StackError

from harness.__main__ import sweep
from harness.checks import ScenarioFailed
from harness.database import Database
from harness.trial import Trial
from harness.worker import binary

from .course import Course, Plan, to_terminal

# What each deliberate fault is found with, and what the finding says.
SABOTAGES = {
    "acknowledge-first": ({"directed": "stall-and-kill", "faults": 20}, "TG-E-SLOT-GAP"),
    # The same, and nobody notices: changes are missing from the topics.
    "acknowledge-first,no-gap-check": ({"directed": "stall-and-kill", "faults": 10}, "changes were lost"),
    "offset-outside": ({"directed": "kill", "faults": 20}, "twice"),
    "no-gap-check": ({"directed": "kill", "faults": 3}, "a change was lost and nobody was told"),
}


def run(plan: Plan, parts: tuple[Postgres, Kafka, Registry], name: str = "chaos") -> str | None:
    """One run; what was found, None if nothing."""
    directory = settings.DIR / "scenarios" / parts[0].name / name
    trial = Trial(name, Path(__file__).parent, directory, *parts)
    found = None
    try:
        trial.prepare()
        Course(trial, plan, to_terminal).run()
    except ScenarioFailed as fault:
        found = str(fault)
    except Exception:  # whatever it is, what was made must be removed
        found = traceback.format_exc()
    if found is not None:
        log = directory / f"worker-seed-{plan.seed}.log"
        for worker in trial.workers[-1:]:
            log.write_text(worker.log_text())
        found += f"\n-- the end of {log}\n{tail(log, 12)}"
    try:
        trial.finish()
    except ScenarioFailed as fault:
        found = found or str(fault)
    return found


def self_test(parts: tuple[Postgres, Kafka, Registry], seed: int) -> bool:
    """Each deliberate fault must be found; that nothing is found without any is what `make chaos` shows."""
    good = True
    for sabotage, (more, expected) in SABOTAGES.items():
        os.environ["TIDEGATE_SABOTAGE"] = sabotage
        began = time.monotonic()
        found = run(Plan(seed=seed, kills=False, in_snapshot=0, **more), parts, "chaos-self-test")
        is_found = found is not None and expected in found
        good &= is_found
        print(f"{'found' if is_found else 'NOT FOUND':10} {sabotage:32} {time.monotonic() - began:6.1f} s  "
              f"{(found or 'everything seemed right').splitlines()[0][:300]}", flush=True)
        if not is_found and found is not None:
            print(found)
    del os.environ["TIDEGATE_SABOTAGE"]
    return good


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--seed", type=int, help="for the same faults again; random by default")
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="so long at most, then it is judged")
    parser.add_argument("--self-test", action="store_true", help="see that it finds three deliberate faults; the worker has "
                        "to be built with the feature `sabotage`")
    arguments = parser.parse_args()
    # A client whose server is killed has a lot to say.
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)
    try:
        binary()
        settings.prepare()
        parts = Postgres(), Kafka(), Registry()
        for step in ("install", "launch", "wait"):
            for part in parts:
                getattr(part, step)()
    except (StackError, ScenarioFailed) as error:
        print(f"chaos: {error}", file=sys.stderr)
        return 1
    with (settings.DIR / "run.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sweep(parts[0], parts[1])
        version = Database(parts[0].address).value("show server_version")
        seed = secrets.randbelow(10**6) if arguments.seed is None else arguments.seed
        if arguments.self_test:
            return 0 if self_test(parts, seed) else 1
        again = f"make chaos SEED={seed} FAULTS={arguments.faults} PG={parts[0].major}".removesuffix(" PG=")
        print(f"PostgreSQL {version}, {binary()}\nagain with: {again}", flush=True)
        plan = Plan(seed=seed, faults=arguments.faults, in_snapshot=max(2, arguments.faults // 30),
                    minutes=arguments.minutes)
        found = run(plan, parts)
        print("passed" if found is None else f"FAILED, {again}\n{found}")
        return 0 if found is None else 1


if __name__ == "__main__":
    sys.exit(main())

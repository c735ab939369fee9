"""`make chaos`: random faults until it is enough, and whether each change arrived once, in order, and all of them."""

import argparse
import contextlib
import fcntl
import logging
import os
import secrets
import shutil
import sys
import time
import traceback
from pathlib import Path

from stack import settings
from stack.kafka import Kafka
from stack.postgres import Postgres
from stack.process import tail
from stack.registry import Registry
from stack.settings import StackError, port

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


# Beside the ports of the stack's own brokers, of which there may be three.
FIRST_PORT = port("STACK_KAFKA_PORT", 19092) + 6


def run(plan: Plan, parts: tuple[Postgres, Kafka, Registry], name: str = "chaos") -> str | None:
    """One run; what was found, None if nothing."""
    directory = settings.DIR / "scenarios" / parts[0].name / name
    trial = Trial(name, Path(__file__).parent, directory, *parts)
    found = None
    course = Course(trial, plan, to_terminal)
    try:
        trial.prepare()
        course.run()
    except ScenarioFailed as fault:
        found = str(fault)
    except Exception:  # whatever it is, what was made must be removed
        found = traceback.format_exc()
    if found is not None:
        log = directory / f"worker-seed-{plan.seed}.log"
        for worker in trial.workers[-1:]:
            log.write_text(worker.log_text())
        # What Kafka has is often what explains it.
        kept = directory / f"kafka-seed-{plan.seed}"
        shutil.rmtree(kept, ignore_errors=True)
        with contextlib.suppress(shutil.Error):  # files come and go there
            shutil.copytree(parts[1].directory, kept)
        found += f"\n-- the end of {log}\n{tail(log, 12)}"
    if not plan.directed:
        to_terminal(course.summary())
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
        with (settings.DIR / "run.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # It is killed broker by broker, which only replicas survive whole, and nobody else wants to see that.
            kafka = Kafka(3, name="kafka-chaos", at_port=FIRST_PORT, proxied=True)
            kafka.remove()
            try:
                return 0 if _judged(arguments, (Postgres(), kafka, Registry())) else 1
            finally:
                kafka.remove()
    except (StackError, ScenarioFailed) as error:
        print(f"chaos: {error}", file=sys.stderr)
        return 1


def _judged(arguments: argparse.Namespace, parts: tuple[Postgres, Kafka, Registry]) -> bool:
    for step in ("install", "launch", "wait"):
        for part in parts:
            getattr(part, step)()
    sweep(parts[0], parts[1])
    version = Database(parts[0].address).value("show server_version")
    seed = secrets.randbelow(10**6) if arguments.seed is None else arguments.seed
    if arguments.self_test:
        return self_test(parts, seed)
    again = f"make chaos SEED={seed} FAULTS={arguments.faults} PG={parts[0].major}".removesuffix(" PG=")
    print(f"PostgreSQL {version}, {binary()}\nagain with: {again}", flush=True)
    plan = Plan(seed=seed, faults=arguments.faults, in_snapshot=max(2, arguments.faults // 30),
                minutes=arguments.minutes)
    found = run(plan, parts)
    print("passed" if found is None else f"FAILED, {again}\n{found}")
    return found is None


if __name__ == "__main__":
    sys.exit(main())

"""The scenario runner: one line per scenario, a report on each that fails, and a closing line."""

import argparse
import fcntl
import fnmatch
import importlib.util
import signal
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

from stack import settings
from stack.kafka import Kafka
from stack.postgres import Postgres
from stack.process import tail
from stack.registry import Registry
from stack.settings import StackError

from .checks import ScenarioFailed, ScenarioSkipped
from .database import Database
from .topics import Cluster
from .trial import MARK, Trial, remove_source
from .worker import binary

SCENARIOS = Path(__file__).parents[1] / "scenarios"


@dataclass(frozen=True)
class Scenario:
    """One thing to run: a folder's `run`, or one of its `CASES` as folder/case."""

    name: str
    folder: Path
    run: Callable[[Trial], None]
    long: bool
    majors: range
    server_matters: bool
    alone: bool


def scenarios() -> list[Scenario]:
    """All of them, in order of name."""
    found = []
    for file in sorted(SCENARIOS.glob("*/run.py")):
        folder = file.parent
        spec = importlib.util.spec_from_file_location(f"scenario_{folder.name}", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        cases = {f"{folder.name}/{name}": run for name, run in getattr(module, "CASES", {}).items()}
        if hasattr(module, "run"):
            cases[folder.name] = module.run
        long, matters = getattr(module, "LONG", False), getattr(module, "SERVER_MATTERS", True)
        found += [Scenario(name, folder, run, name.partition("/")[2] in long if isinstance(long, set) else long,
                           getattr(module, "MAJORS", range(13, 99)),
                           name.partition("/")[2] in matters if isinstance(matters, set) else matters,
                           getattr(module, "ALONE", False)) for name, run in cases.items()]
    return found


def chosen(arguments: argparse.Namespace) -> list[Scenario]:
    """Those that the command line asks for. A name without wildcards takes a folder's cases too."""
    everything = scenarios()
    if not arguments.names:
        return [one for one in everything if (arguments.long or not one.long)
                and (one.server_matters or not arguments.where_the_server_matters)]
    found = []
    for pattern in arguments.names:
        matching = [one for one in everything
                    if fnmatch.fnmatchcase(one.name, pattern) or one.folder.name == pattern.rstrip("/")]
        if not matching:
            raise StackError(f"no scenario is called {pattern}; `integration/run --list` shows them")
        found += [one for one in matching if one not in found]
    return found


def sweep(postgres: Postgres, kafka: Kafka) -> None:
    """Remove what a run that was killed left behind."""
    server = Database(postgres.address)
    for row in server.query("select datname from pg_database where datname like %s", f"{MARK}\\_%"):
        remove_source(server, row["datname"])
    for row in server.query("select rolname from pg_roles where rolname like %s", f"{MARK}\\_%"):
        server.sql(f"drop role {row['rolname']}")
    server.close()
    cluster = Cluster(kafka.address)
    cluster.delete(cluster.topics(f"{MARK}_"))


def run_one(scenario: Scenario, postgres: Postgres, kafka: Kafka, registry: Registry) -> bool | None:
    """Run it and print its line; on failure what was wrong, and the end of the worker's log. None if it was skipped."""
    directory = settings.DIR / "scenarios" / postgres.name / scenario.name
    trial = Trial(scenario.name, scenario.folder, directory, postgres, kafka, registry)
    began = time.monotonic()
    problems, skipped = [], ""
    for step in (lambda: (trial.prepare(), scenario.run(trial)), trial.finish):
        try:
            step()
        except ScenarioSkipped as reason:
            skipped = str(reason)
        except ScenarioFailed as error:
            problems.append(f"{_line(error, scenario)}{error}")
        except Exception:  # a scenario must not end the run
            problems.append(traceback.format_exc())
    word = "FAIL" if problems else "SKIP" if skipped else "PASS"
    report = [f"{word}  {scenario.name:36} {time.monotonic() - began:6.1f} s  {skipped}".rstrip()]
    report += ["      " + problem.strip().replace("\n", "\n      ") for problem in problems]
    if problems:
        report += [f"      -- {worker.log}\n      " + tail(worker.log, 25).replace("\n", "\n      ")
                   for worker in trial.workers[-1:]]
    # one write: others may report at the same time
    print("\n".join(report), flush=True)
    return None if skipped and not problems else not problems


def run_all(wanted: list[Scenario], jobs: int, *parts: Any) -> list[bool | None]:
    """Run them, some at a time; then those that stop what the others use."""
    with ThreadPoolExecutor(jobs) as pool:
        together = list(pool.map(lambda one: run_one(one, *parts), (one for one in wanted if not one.alone)))
    return together + [run_one(one, *parts) for one in wanted if one.alone]


def _line(error: BaseException, scenario: Scenario) -> str:
    """Where in the scenario it happened."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if frame.filename.startswith(str(scenario.folder))]
    return f"run.py line {frames[-1].lineno}: " if frames else ""


def main() -> int:
    """Run what was asked for."""
    # A shell that runs this in the background has it ignore interrupts, and so would all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(prog="integration/run", description="Runs scenarios on the local stack, which is "
                                     "started if need be. PG=14 integration/run takes another server than Debian's.")
    parser.add_argument("names", nargs="*", help="folders, folder/case, or patterns; all that are not long by default")
    parser.add_argument("--long", action="store_true", help="also those that take minutes")
    parser.add_argument("--where-the-server-matters", action="store_true",
                        help="without those that show the same on every version of PostgreSQL (SERVER_MATTERS = False)")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    parser.add_argument("--list", action="store_true", help="only show the names")
    arguments = parser.parse_args()
    try:
        wanted = chosen(arguments)
        if arguments.list:
            print("\n".join(one.name + (" (long)" if one.long else "") for one in wanted))
            return 0
        binary()
        settings.prepare()
        parts = Postgres(), Kafka(), Registry()
        for step in ("install", "launch", "wait"):
            for part in parts:
                getattr(part, step)()
    except (StackError, ScenarioFailed) as error:
        print(f"integration/run: {error}", file=sys.stderr)
        return 1
    # Two runs at once would stop and sweep away each other's services.
    with (settings.DIR / "run.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sweep(parts[0], parts[1])
        version = Database(parts[0].address).value("show server_version")
        print(f"PostgreSQL {version}, {binary()}")
        wanted = [one for one in wanted if int(version.split(".")[0]) in one.majors]
        results = run_all(wanted, arguments.jobs, *parts)
    skipped = results.count(None)
    print(f"{results.count(True)} passed, {results.count(False)} failed" + (f", {skipped} SKIPPED" if skipped else ""))
    return 0 if results and False not in results else 1


if __name__ == "__main__":
    sys.exit(main())

"""The benchmark: starts what it needs, runs the workloads, writes a JSON file and prints the tables."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

# The stack's Java programs are set for a quick start; a broker that is measured needs its best compiler.
JAVA = "-XX:TieredStopAtLevel=4 -XX:-UseSerialGC -XX:+UseG1GC -Xmx1g"
os.environ.setdefault("STACK_JAVA_OPTS", JAVA)

from stack import settings  # noqa: E402
from stack.kafka import Kafka  # noqa: E402
from stack.registry import Registry  # noqa: E402
from stack.settings import StackError  # noqa: E402

from . import probes, report  # noqa: E402
from .contestants import Debezium, known  # noqa: E402
from .runs import Bench, Result  # noqa: E402
from .source import Source  # noqa: E402
from .workloads import QUICK, WORKLOADS, Plan, Session  # noqa: E402

RESULTS = Path(__file__).resolve().parents[1] / "results"
OPPONENTS = ["recvlogical", "producer", "debezium", "debezium-default"]


class Progress:
    """One line that says what happens; on a terminal it is written over."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._stage = ""
        self._terminal = sys.stdout.isatty()

    def stage(self, text: str) -> None:
        """What is done now."""
        self._stage = text
        self._show(text)

    def say(self, text: str) -> None:
        """How far it is."""
        self._show(f"{self._stage}: {text}")

    def line(self, text: str) -> None:
        """A line that stays."""
        start = "\r\033[K" if self._terminal else ""
        print(f"{start}{time.monotonic() - self._began:6.0f} s  {text}", flush=True)

    def _show(self, text: str) -> None:
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\033[K{time.monotonic() - self._began:6.0f} s  {text}"[:width + 8], end="", flush=True)


def told(found: Result) -> str:
    """One run in one line."""
    head = f"{found['variant']:22} {found['contestant']:17}"
    if not found["right"]:
        return f"{head} FAILED: {found.get('error') or found.get('check')}"
    if "latency_ms" in found:
        figures = found["latency_ms"]
        body = "  ".join(f"{name} {figures[name]:.1f} ms" for name in ("p50", "p99", "max")) + f"  {found['cpu_us']:.1f} µs/row"
    elif "restart_s" in found:
        body = f"{found['restart_s']:.2f} s from kill -9 to the first new row"
    elif "core_percent" in found:
        body = f"{found['rss_steady_mb']:.0f} MB  {found['core_percent']:.2f} % of a core"
    else:
        body = f"{found['rate']:>9,.0f} rows/s  {found['cpu_us']:6.2f} µs/row"
        if found.get("sender_us") is not None:
            body += f"  server {found['sender_us']:.2f}  broker {found['broker_us']:.2f}  {found['rss_steady_mb']:.0f} MB"
    foreign = found.get("foreign", 0)
    return f"{head} {body}" + (f"  ({foreign:.0%} of the machine was busy with other things)" if foreign > report.FOREIGN else "")


def services() -> tuple[Source, Kafka, Registry]:
    """Broker and registry of the stack, the broker with the best compiler, and a server of the benchmark's own."""
    settings.prepare()
    source, kafka, registry = Source(), Kafka(1), Registry()
    pid = kafka.brokers[0].process.pid()
    if pid and "TieredStopAtLevel=4" not in Path(f"/proc/{pid}/cmdline").read_text():
        kafka.stop()
    for part in (kafka, registry):
        part.install()
        part.launch()
    for part in (kafka, registry):
        part.wait()
    source.start()
    return source, kafka, registry


def build() -> None:
    """The worker, for release; TIDEGATE_BIN takes another build."""
    if "TIDEGATE_BIN" in os.environ:
        return
    subprocess.run(["cargo", "build", "--release", "--quiet", "--bin", "tidegate"], cwd=settings.ROOT, check=True)
    os.environ["TIDEGATE_BIN"] = str(Path(os.environ.get("CARGO_TARGET_DIR") or settings.ROOT / "target") / "release" / "tidegate")


def opponents(names: list[str], progress: Progress) -> list[str]:
    """Those that can take part."""
    if any(name.startswith("debezium") for name in names):
        try:
            Debezium.install()
        except StackError as error:
            progress.line(f"without Debezium: {error}")
            return [name for name in names if not name.startswith("debezium")]
    return names


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benches/run", description="Measures the worker on real services; see docs/performance.md.")
    parser.add_argument("--quick", action="store_true", help=f"{', '.join(QUICK)} with a quarter of the rows and few pairs")
    parser.add_argument("--workloads", "-w", help=f"some of {','.join(WORKLOADS)}")
    parser.add_argument("--opponents", "-o", help=f"some of {','.join(OPPONENTS)}, or none")
    parser.add_argument("--pairs", "-p", type=int, help="runs against each opponent")
    parser.add_argument("--scale", "-s", type=float, default=1.0, help="factor for the numbers of rows")
    parser.add_argument("--tables", type=int, default=1000, help="the most tables in W10 and W12")
    parser.add_argument("--keep", action="store_true", help="leave the services running")
    parser.add_argument("--report", nargs="+", type=Path, help="only print the tables of these results, taken together")
    return parser.parse_args()


def choice(given: str | None, usual: list[str], allowed: Any) -> list[str]:
    """A list from the command line."""
    found = usual if given is None else [word for word in given.split(",") if word and word != "none"]
    for word in found:
        if word not in allowed:
            raise StackError(f"there is no {word}; there is {', '.join(allowed)}")
    return found


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """Run what was asked for; what was measured before an interruption is kept."""
    progress = Progress()
    # Asked to end, it still stops what it started and keeps what it has.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    plan = Plan(choice(asked.workloads, QUICK if asked.quick else list(WORKLOADS), WORKLOADS),
                choice(asked.opponents, ["recvlogical", "debezium"] if asked.quick else OPPONENTS, OPPONENTS),
                asked.scale, asked.pairs, asked.quick, asked.tables)
    progress.line("building")
    build()
    plan.opponents = opponents(plan.opponents, progress)
    source, kafka, registry = services()
    document: dict[str, Any] = {"machine": probes.facts() | {"postgres": source.version(), "broker_java": os.environ["STACK_JAVA_OPTS"],
                                                           "worker": Path(os.environ["TIDEGATE_BIN"]).name},
                                "asked": vars(asked), "runs": plan.runs}
    try:
        bench = Bench(source, kafka, registry, progress.say)
        session = Session(bench, plan, known(source, kafka.address, registry.address), lambda run: progress.line(told(run)),
                          progress.stage)
        session.warm_up()
        for name in plan.workloads:
            WORKLOADS[name](session)
    except KeyboardInterrupt:
        progress.line("interrupted")
    finally:
        source.stop()
        if not asked.keep:
            kafka.stop()
            registry.stop()
    return document


def main() -> int:
    """Measure, or only report."""
    asked = arguments()
    try:
        if asked.report:
            read = [json.loads(path.read_text()) for path in asked.report]
            # Pairs are of one invocation; those of another one get numbers of their own.
            runs = [run | {"pair": run["pair"] + 1000 * at} for at, one in enumerate(read) for run in one["runs"]]
            document = read[0] | {"runs": runs}
        else:
            document = measure(asked)
    except (StackError, subprocess.CalledProcessError) as error:
        print(f"benches/run: {error}", file=sys.stderr)
        return 1
    document["summary"] = report.summary(document["runs"])
    document["goals"] = report.goals(document["summary"])
    print("\n" + report.text(document))
    if not asked.report:
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{time.strftime('%Y%m%d-%H%M%S')}.json"
        path.write_text(json.dumps(document, indent=1, default=str))
        print(f"\n{path.relative_to(settings.ROOT)}")
    return 0 if document["runs"] and all(run["right"] for run in document["runs"]) else 1


if __name__ == "__main__":
    sys.exit(main())

"""`recorded`: the worker against what Debezium was recorded to do. `live`: both side by side."""

import argparse
import concurrent.futures
import json
import re
import sys
import threading
import time
import traceback
from dataclasses import asdict
from typing import Iterator

from confluent_kafka import KafkaException

from harness.checks import ScenarioFailed
from harness.worker import binary
from stack import extensions, settings
from stack.settings import StackError

from . import allow, images
from .allow import Allowed, Difference
from .cases import PREFIX, Case, cases
from .compare import Comparison
from .ground import Ground
from .images import Image, Reader
from .runs import Run, Side, token

MODES = ("json", "avro")
CODE = re.compile(r"TG-E-[A-Z0-9-]+")


class Checker:
    """Runs cases and says what differs."""

    def __init__(self, ground: Ground, allowed: list[Allowed], *, live: bool, show: int):
        self._ground, self._allowed, self._live, self._show = ground, allowed, live, show
        self._lock = threading.Lock()
        self._routed = threading.Lock()
        self.report: list[dict[str, object]] = []

    def run(self, case: Case) -> bool:
        """One case in all formats; prints its line. True unless something differs that is not wanted."""
        began = time.monotonic()
        try:
            differences, records = self._differences(case)
        except (ScenarioFailed, StackError, KafkaException, OSError) as error:
            return self._say("ERROR", case, began, [str(error)])
        except Exception:  # one case must not end the run
            return self._say("ERROR", case, began, [traceback.format_exc()])
        with self._lock:
            unwanted = allow.apply(case.name, differences, self._allowed)
            self.report += [{"case": case.name, **asdict(difference)} for difference in differences]
        if not unwanted:
            wanted = f", {len(differences)} wanted differences" if differences else ""
            return self._say("PASS", case, began, [], f"{records} records{wanted}")
        lines = [f"{one.topic} {one.record} {one.path}\n    Debezium  {one.expected}\n    here      {one.got}"
                 for one in unwanted[:self._show]]
        if len(unwanted) > self._show:
            lines.append(f"… and {len(unwanted) - self._show} more (--show N, --report FILE)")
        return self._say("FAIL", case, began, lines, f"{len(unwanted)} differences")

    def _say(self, word: str, case: Case, began: float, lines: list[str], note: str = "") -> bool:
        text = "".join("      " + line.strip().replace("\n", "\n      ") + "\n" for line in lines)
        with self._lock:
            print(f"{word:5} {case.name:40} {time.monotonic() - began:6.1f} s  {note}\n{text}", end="", flush=True)
        return word == "PASS"

    def _differences(self, case: Case) -> tuple[list[Difference], int]:
        foreign = frozenset(image.topic for phase in ("snapshot", "stream") for image in images.recorded(case, phase, "json")
                            if PREFIX not in image.topic)
        modes = [mode for mode in MODES if mode != "avro" or not case.refused_by_avro]
        found: list[Difference] = []
        records = 0
        # Formats at once, unless their records would be in the same topics.
        for together in ([[mode] for mode in modes] if foreign else [modes]):
            workers = ("debezium", "tidegate") if self._live else ("tidegate",)
            sides = [Side(worker, mode, token("q", len(PREFIX))) for mode in together for worker in workers]
            run = Run(self._ground, case, sides)
            if foreign:
                with self._routed:
                    run.run(foreign)
            else:
                run.run()
            for mode in together:
                by_worker = {side.worker: side for side in sides if side.mode == mode}
                found += self._compare(case, run, by_worker["tidegate"], by_worker.get("debezium"))
                records += len(by_worker["tidegate"].topics.records)  # type: ignore[union-attr]
        return found, records

    def _compare(self, case: Case, run: Run, tidegate: Side, debezium: Side | None) -> list[Difference]:
        comparison = Comparison(tidegate.mode)
        asked = debezium is not None and debezium.topics is not None
        should_fail = debezium.over if asked else "outcome.json" in case.recorded  # type: ignore[union-attr]
        if tidegate.over != should_fail:
            reason = tidegate.refused or tidegate.failed or (debezium and (debezium.refused or debezium.failed)) or ""
            code = CODE.search(reason)
            path = "$.task" if not tidegate.over else f"$.{'refused' if tidegate.refused else 'failed'}.{code[0] if code else '?'}"
            told = [f"(runs; {reason[:600]})" if not over else f"({reason[:600]})" for over in (should_fail, tidegate.over)]
            comparison.add("@outcome", "", path, *(("(runs)", told[1]) if tidegate.over else (told[0], "(runs)")))
        if tidegate.refused or (tidegate.failed and not should_fail):
            return comparison.differences
        got = list(self._images(case, run, tidegate))
        expected: list[Image] = [image for phase in ("snapshot", "stream", "heartbeat") for image in images.recorded(case, phase, tidegate.mode)] \
            if debezium is None else [images.masked(image) for image in self._images(case, run, debezium)]
        if self._ground.major < 15:
            expected, got = images.without_empty_transactions(expected), images.without_empty_transactions(got)
        for phase in ("snapshot", "stream", "heartbeat"):
            one, other = ([image for image in side if image.phase == phase] for side in (expected, got))
            # Heartbeats come as time goes by.
            comparison.phase(phase, *((one[:1], other[:1]) if phase == "heartbeat" and one else (one, [] if phase == "heartbeat" else other)))
        return comparison.differences

    def _images(self, case: Case, run: Run, side: Side) -> Iterator[Image]:
        reader = Reader(case, side.mode, side.token, run.database, self._ground.schemas.text)
        assert side.topics is not None
        for number, raw in enumerate(side.topics.records):
            phase = "snapshot" if number < side.border else "stream"
            yield reader.image(raw, "heartbeat" if raw.topic.startswith(case.heartbeats) else phase)


def has_what_it_needs(case: Case, ground: Ground) -> bool:
    """Whether the server has what the case is about, an extension installed now if need be; says so if not."""
    since, what = case.since
    reason = f"{what}: PostgreSQL {since} or later" if ground.major < since else case.needs and extensions.install(ground.postgres, case.needs)
    if reason:
        print(f"SKIP  {case.name:40} {reason}")
    return not reason


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="parity", description=__doc__)
    parser.add_argument("what", choices=("recorded", "live"))
    parser.add_argument("names", nargs="*", help="cases or patterns; all by default")
    parser.add_argument("--jobs", type=int, default=4, help="cases at once (%(default)s)")
    parser.add_argument("--show", type=int, default=5, help="differences shown for each case (%(default)s)")
    parser.add_argument("--report", metavar="FILE", help="all differences as JSON")
    arguments = parser.parse_args()
    live = arguments.what == "live"
    try:
        wanted = [case for case in cases() if (case.live if live else case.recorded)
                  and (not arguments.names or any(allow.matches(case.name, pattern) for pattern in arguments.names))]
        for case in cases() if live and not arguments.names else []:
            if not case.live:
                print(f"SKIP  {case.name:40} {case.recorded_only}")
        if not wanted:
            raise StackError(f"no case is called {' '.join(arguments.names)}")
        allowed = allow.load()
        settings.prepare()
        began = time.monotonic()
        with Ground(debezium=live) as ground:
            wanted = [case for case in wanted if has_what_it_needs(case, ground)]
            print(f"PostgreSQL {ground.version}, {binary()}, {len(wanted)} cases", flush=True)
            checker = Checker(ground, allowed, live=live, show=arguments.show)
            pool = concurrent.futures.ThreadPoolExecutor(arguments.jobs)
            try:
                results = list(pool.map(checker.run, wanted))
            finally:
                # Interrupted, it does not begin what is left.
                pool.shutdown(cancel_futures=True)
    except (StackError, ScenarioFailed) as error:
        print(f"parity: {error}", file=sys.stderr)
        return 1
    if arguments.report:
        with open(arguments.report, "w", encoding="utf-8") as file:
            json.dump(checker.report, file, indent=1, ensure_ascii=False)
    if not arguments.names:
        for entry in (entry for entry in allowed if not entry.used):
            print(f"wanted.allow:{entry.line} matched nothing: {entry.case} | {entry.topic} | {entry.path}")
    print(f"{results.count(True)} passed, {results.count(False)} failed; {time.monotonic() - began:.0f} s")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())

"""What the kernel says of processes: CPU, memory, and how busy the machine was with other things."""

import os
import platform
import statistics
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Mapping

TICK = os.sysconf("SC_CLK_TCK")


def cpu_of(pid: int | None) -> float | None:
    """User and system seconds of a process and all its threads, ended or not; None when it is gone altogether."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return (int(fields[11]) + int(fields[12])) / TICK


def thread_cpu_of(pid: int | None) -> float | None:
    """CPU seconds of a process with one thread, exact to the nanosecond."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return None


def memory_of(pid: int | None) -> tuple[float, float]:
    """(resident now, highest ever) in MB; zeros when it is gone."""
    found = {"VmRSS": 0.0, "VmHWM": 0.0}
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in found:
                found[name] = int(rest.split()[0]) / 1024
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found["VmRSS"], found["VmHWM"]


def machine_cpu() -> dict[str, float]:
    """Seconds that all processors together were busy, and that the host took away."""
    numbers = [int(text) / TICK for text in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    user, nice, system, _idle, _wait, irq, softirq, steal = numbers[:8]
    return {"busy": user + nice + system + irq + softirq, "steal": steal}


def facts() -> dict[str, Any]:
    """The machine and the build, as a reader needs them to judge the figures."""
    model = next((line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    memory = Path("/proc/meminfo").read_text().splitlines()[0].split()[1]
    root = Path(__file__).resolve().parents[2]
    commit = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return {"cpu": model, "processors": os.cpu_count(), "memory_gb": round(int(memory) / 1024 / 1024, 1),
            "kernel": platform.release(), "commit": commit.stdout.strip(), "time": time.strftime("%Y-%m-%dT%H:%M:%S%z")}


@dataclass
class Sample:
    """One look at the processes."""

    at: float
    cpu: dict[str, float]
    rss: float
    rows: int


@dataclass
class Usage:
    """What a run took."""

    wall: float
    cpu: dict[str, float]
    warm_cpu: float | None
    warm_rows: int
    warm_wall: float | None
    rss_steady: float
    rss_peak: float
    foreign: float
    steal: float
    load: float
    samples: list[Sample] = field(repr=False)


class Meter:
    """Follows the processes of a run, from `begin` to `end`.

    `tool` is the process under test, `sender` gives the server process that sends to it, once it is known. Both count
    from their start, as they are new for each run; the broker and others from `begin`.
    """

    def __init__(self, tool: int, sender: Callable[[], int | None], others: Mapping[str, int],
                 progress: Callable[[], int] = lambda: 0, interval: float = 0.05):
        self.tool = tool
        self._sender = sender
        self._others = dict(others)
        self._progress = progress
        self._interval = interval
        self._stop = threading.Event()
        self._samples: list[Sample] = []
        self._latest: dict[str, float] = {}
        self._base: dict[str, float] = {}
        self._peak = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self, *, tool_from_now: bool = False) -> None:
        """The clock starts here."""
        self._look()
        self._base = {name: self._latest.get(name, 0.0) for name in self._others}
        if tool_from_now:
            self._base |= {name: self._latest.get(name, 0.0) for name in ("tool", "sender")}
        self._machine = machine_cpu()
        self._harness = time.process_time()
        self.began = time.monotonic()
        self._thread.start()

    def end(self, at: float | None = None) -> Usage:
        """The clock stops here, or has stopped at the time `at`."""
        self._look()
        ended = at or time.monotonic()
        machine = machine_cpu()
        self._stop.set()
        self._thread.join()
        cpu = {name: value - self._base.get(name, 0.0) for name, value in self._latest.items()}
        wall = time.monotonic() - self.began
        measured = sum(self._latest[name] - self._first.get(name, 0.0) for name in self._latest)
        own = time.process_time() - self._harness
        busy = machine["busy"] - self._machine["busy"]
        processors = os.cpu_count() or 1
        half = self._half()
        second = [sample.rss for sample in self._samples[len(self._samples) // 2:] if sample.rss] or [0.0]
        return Usage(
            wall=ended - self.began, cpu=cpu,
            warm_cpu=self._latest["tool"] - half.cpu.get("tool", 0.0) if half else None,
            warm_rows=half.rows if half else 0, warm_wall=ended - half.at if half else None,
            rss_steady=statistics.median(second), rss_peak=self._peak,
            foreign=max(0.0, busy - measured - own) / (wall * processors),
            steal=(machine["steal"] - self._machine["steal"]) / (wall * processors),
            load=os.getloadavg()[0], samples=self._samples)

    def _half(self) -> Sample | None:
        rows = self._samples[-1].rows if self._samples else 0
        return next((sample for sample in self._samples if rows and sample.rows >= rows / 2), None)

    def _run(self) -> None:
        self._first = dict(self._latest)
        while not self._stop.wait(self._interval):
            self._look()

    def _look(self) -> None:
        readings = {"tool": cpu_of(self.tool), "sender": thread_cpu_of(self._sender()),
                    **{name: cpu_of(pid) for name, pid in self._others.items()}}
        self._latest |= {name: value for name, value in readings.items() if value is not None}
        now, peak = memory_of(self.tool)
        self._peak = max(self._peak, peak)
        self._samples.append(Sample(time.monotonic(), dict(self._latest), now, self._progress()))

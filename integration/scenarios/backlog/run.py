"""A backlog far larger than any queue: no failure, nothing dropped, flat memory, order kept."""

from pathlib import Path

from harness.checks import check, equal, wait_for
from harness.trial import Trial

ROWS = 50_000


def run(t: Trial) -> None:
    worker = t.worker()
    connector = t.connect(worker, max_queue_size_in_bytes=str(1 << 20), transaction_stage_bytes=str(1 << 18))
    t.settle()
    connector.put("stop")
    wait_for(lambda: not t.slot()["active"], 20, "the slot free")
    for first in range(0, ROWS, 1000):
        t.sql(f"insert into t select g, repeat('x', 100) from generate_series({first}, {first + 999}) g")
    base = resident(worker.pid)
    connector.put("resume")
    connector.wait_running()
    t.settle(timeout=180)
    peak = resident(worker.pid, "VmHWM")
    ids = [r.after["id"] for r in t.topic("t").read(timeout=120)]
    equal(ids, list(range(ROWS)), "ids in order")
    check(peak - base < 100 << 20, f"memory stays flat; it went from {base >> 20} to {peak >> 20} MiB")


def resident(pid: int, field: str = "VmRSS") -> int:
    """Bytes of memory."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024

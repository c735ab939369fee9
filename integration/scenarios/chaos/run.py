"""A small part of `make chaos`: a few faults by a fixed seed, the first of them in the first snapshot. Connections are cut, stalled,
delayed and left half open, worker and registry are killed; what all use is left alone."""

from pathlib import Path

import chaos
from chaos.course import Course, Plan

from harness.trial import Trial

SERVER_MATTERS = False


def run(t: Trial) -> None:
    t.folder = Path(chaos.__file__).parent
    t.sql((t.folder / "setup.sql").read_text())
    Course(t, Plan(seed=5, faults=6, kills=False, in_snapshot=1), lambda line: None).run()

"""The list of wanted differences: which places may differ, and why. docs/compatibility.md shows it."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from stack.settings import ROOT, StackError

FILE = ROOT / "integration" / "golden" / "wanted.allow"


@dataclass
class Difference:
    """One place where the worker said something else."""

    phase: str
    topic: str
    record: str
    path: str
    expected: str
    got: str
    reason: str | None = None


@dataclass
class Allowed:
    """One line of the list."""

    case: str
    topic: str
    path: str
    reason: str
    line: int
    used: int = 0

    def covers(self, case: str, difference: Difference) -> bool:
        """Whether the difference is one of those meant. `case:snapshot` is the snapshot's part of a case."""
        return (any(matches(name, self.case) for name in (case, f"{case}:{difference.phase}"))
                and matches(difference.topic, self.topic) and matches(difference.path, self.path))


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    forms = {"*": ".*", "?": ".", "{": "(?:", "}": ")", ",": "|"}
    return re.compile("".join(forms.get(letter) or re.escape(letter) for letter in pattern) + r"(?:[.\[~].*)?", re.DOTALL)


def matches(text: str, pattern: str) -> bool:
    """`*`, `?`, and `{one,other}`; everything else stands for itself. A place stands for all that is in it, too."""
    return _compiled(pattern).fullmatch(text) is not None


def load(path: Path = FILE) -> list[Allowed]:
    """Lines `case | topic | JSON path | reason`; `#` begins a heading."""
    found = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            parts = [part.strip() for part in line.split("|", 3)]
            if len(parts) != 4 or not all(parts):
                raise StackError(f"{path}:{number}: wanted is `case | topic | JSON path | reason`")
            found.append(Allowed(*parts, number))
    return found


def apply(case: str, differences: list[Difference], allowed: list[Allowed]) -> list[Difference]:
    """Those that no line covers."""
    for difference in differences:
        entry = next((entry for entry in allowed if entry.covers(case, difference)), None)
        if entry is not None:
            entry.used += 1
            difference.reason = entry.reason
    return [difference for difference in differences if difference.reason is None]

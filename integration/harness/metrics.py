"""A strict reader of Prometheus' text format 0.0.4: what it does not accept, no scraper should have to."""

import math
import re
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from .checks import check, equal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|\Z)')
SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)\Z')
ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
SUFFIXES = ("_bucket", "_sum", "_count")
# The documentation page that is generated from the worker's own table.
PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


@dataclass(frozen=True)
class Sample:
    """One line."""

    name: str
    labels: dict[str, str]
    value: float


@dataclass
class Family:
    """A metric with its samples."""

    kind: str
    samples: list[Sample] = field(default_factory=list)


class Metrics:
    """One scrape."""

    def __init__(self, text: str):
        self.text = text
        self.families = parse(text)

    def values(self, name: str, /, **labels: str) -> list[float]:
        """The values of all samples of that name with these labels."""
        found = [sample for family in self.families.values() for sample in family.samples if sample.name == name]
        return [sample.value for sample in found if labels.items() <= sample.labels.items()]

    def value(self, name: str, /, **labels: str) -> float:
        """The value of the only sample of that name with these labels."""
        values = self.values(name, **labels)
        equal(len(values), 1, f"samples of {name} with {labels}")
        return values[0]

    def quantile_is_below(self, name: str, bound: float, /, **labels: str) -> bool:
        """Whether every observation of a histogram is within the bucket that ends at `bound`."""
        return self.value(name + "_bucket", le=f"{bound:g}", **labels) == self.value(name + "_count", **labels)


def scrape(base: str, accept: str = "text/plain;version=0.0.4;q=0.9") -> Metrics:
    """GET /metrics, as a scraper does that takes nothing but this format."""
    request = urllib.request.Request(base + "/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=30) as response:
        equal(response.headers["content-type"], CONTENT_TYPE, "content type of /metrics")
        return Metrics(response.read().decode("utf-8"))


def documented() -> set[str]:
    """The names of all metrics on the documentation page."""
    names = re.findall(r"^\| `([^`]+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    check(names, f"{PAGE.name} has a table of metrics")
    return set(names)


def parse(text: str) -> dict[str, Family]:
    """All metrics of a text, by name. Anything out of order is a failure."""
    families: dict[str, Family] = {}
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    helped, current = None, None
    check(text.endswith("\n"), "the last line ends")
    for number, line in enumerate(text[:-1].split("\n"), 1):
        where = f"line {number}: {line!r}"
        if line.startswith("# HELP "):
            helped = line.split(" ", 3)[2]
            check(NAME.match(helped) and helped not in families, f"one HELP of a legal name, {where}")
            check(not re.search(r"\\[^\\n]", line.replace("\\\\", "")), f"legal escapes, {where}")
        elif line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            check(current == helped and current not in families, f"TYPE follows its HELP, {where}")
            check(kind in ("counter", "gauge", "histogram"), f"a known type, {where}")
            families[current] = Family(kind)
        else:
            check(current is not None, f"a sample follows its TYPE, {where}")
            sample = parse_sample(line, where)
            base = sample.name
            if families[current].kind == "histogram":
                base = next((base.removesuffix(end) for end in SUFFIXES if base.endswith(end)), "")
            equal(base, current, f"metric of the sample, {where}")
            identity = (sample.name, tuple(sorted(sample.labels.items())))
            check(identity not in seen, f"every series is there once, {where}")
            seen.add(identity)
            families[current].samples.append(sample)
    for name, family in families.items():
        check(family.samples, f"{name} has samples")
        if family.kind == "counter":
            check(all(sample.value >= 0 for sample in family.samples), f"{name} does not count below zero")
        if family.kind == "histogram":
            check_histogram(name, family)
    return families


def parse_sample(line: str, where: str) -> Sample:
    """One line with a value."""
    match = SAMPLE.match(line)
    check(match, f"a sample, {where}")
    name, body, value = match.groups()  # type: ignore[union-attr]
    labels: dict[str, str] = {}
    place = 0
    while body and place < len(body):
        label = LABEL.match(body, place)
        check(label, f"legal labels, {where}")
        key, raw, _ = label.groups()  # type: ignore[union-attr]
        check(key not in labels, f"a label is there once, {where}")
        labels[key] = re.sub(r'\\["\\n]', lambda found: ESCAPES[found[0]], raw)
        place = label.end()  # type: ignore[union-attr]
    try:
        return Sample(name, labels, float(value))
    except ValueError:
        check(False, f"a number, {where}")
        raise


def check_histogram(name: str, family: Family) -> None:
    """Buckets ascend, the last is infinite and holds the count, and there is a sum."""
    groups: dict[tuple[tuple[str, str], ...], dict[str, list[tuple[float, float]]]] = {}
    for sample in family.samples:
        labels = tuple(sorted(pair for pair in sample.labels.items() if pair[0] != "le"))
        part = sample.name.removeprefix(name)
        bound = float(sample.labels.get("le", "nan"))
        groups.setdefault(labels, {}).setdefault(part, []).append((bound, sample.value))
    for labels, parts in groups.items():
        equal(sorted(parts), sorted(SUFFIXES), f"parts of {name} {labels}")
        buckets = parts["_bucket"]
        check(buckets == sorted(buckets) and [count for _, count in buckets] == sorted(count for _, count in buckets),
              f"buckets of {name} ascend: {buckets}")
        check(math.isinf(buckets[-1][0]), f"{name} has a bucket without bound")
        equal(parts["_count"][0][1], buckets[-1][1], f"count of {name}")

"""Two lists of records, place by place."""

import difflib
from typing import Any, Iterator

from . import avro
from .allow import Difference
from .images import Image, Part
from .values import Matcher, Num, show


class Comparison:
    """Holds the differences of one case in one format."""

    def __init__(self, mode: str):
        self._avro = mode == "avro"
        self._matcher = Matcher()
        self._schemas_seen: set[tuple[str, str, str, str]] = set()
        self._phase = ""
        self.differences: list[Difference] = []

    def add(self, topic: str, record: str, path: str, expected: Any, got: Any) -> None:
        """Note a difference."""
        def text(value: Any) -> str:
            said = isinstance(value, str) and not isinstance(value, Num) and value.startswith("(")
            return value if said else show(value)
        self.differences.append(Difference(self._phase, topic, record, path, text(expected), text(got)))

    def phase(self, phase: str, expected: list[Image], got: list[Image]) -> None:
        """Compare topic by topic; between topics there is no order."""
        if phase != self._phase:
            # Where a snapshot stands and where the first change does may be one position or two.
            self._phase, self._matcher = phase, Matcher()
        for topic in dict.fromkeys(image.topic for image in [*expected, *got]):
            wanted = [image for image in expected if image.topic == topic]
            have = [image for image in got if image.topic == topic]
            if len({image.partition for image in have}) > 1:
                have = _weave(wanted, have)
            for number, (one, other) in enumerate(_pairs(wanted, have), 1):
                label = f"{phase}#{number}"
                if one is None:
                    assert other is not None
                    self.add(topic, label, "$(extra)", "(no record)", {"key": other.key.payload, "value": other.value.payload})
                elif other is None:
                    self.add(topic, label, "$(missing)", {"key": one.key.payload, "value": one.value.payload}, "(no record)")
                else:
                    self._record(one, other, label)

    def _record(self, expected: Image, got: Image, label: str) -> None:
        for side, one, other in (("key", expected.key, got.key), ("value", expected.value, got.value)):
            self._part(expected.topic, label, side, one, other)
        if expected.partition is not None and expected.partition != got.partition:
            self.add(expected.topic, label, "$.partition", Num(expected.partition), Num(got.partition))
        if expected.timestamp is not None:
            self._values(expected.topic, label, expected.timestamp, got.timestamp, "$.timestamp")
        names = [[header["name"] for header in image.headers] for image in (expected, got)]
        if names[0] != names[1]:
            self.add(expected.topic, label, "$.headers", *names)
            return
        for one, other in zip(expected.headers, got.headers):
            self._values(expected.topic, label, one, other, f"$.headers.{one['name']}")

    def _part(self, topic: str, label: str, side: str, expected: Part, got: Part) -> None:
        if expected.any_null and (got.none or got.payload is None):
            return
        if expected.none or got.none:
            if expected.none != got.none:
                self.add(topic, label, f"$.{side}~null", *("(no bytes)" if part.none else part.payload for part in (expected, got)))
            return
        self._schema(topic, label, side, expected, got)
        if not self._avro:
            self._values(topic, label, expected.payload, got.payload, f"$.{side}")
        elif expected.recorded is not None:
            for name, want in expected.recorded.items():
                have = got.whole if name in ("key", "value") else (got.fields or {}).get(name)
                if want not in ("<varies>", have):
                    self._encoding(topic, label, name, (expected.schema, want), (got.schema, have))
        elif expected.whole != got.whole:
            self._bytes(topic, label, side, expected, got)

    def _bytes(self, topic: str, label: str, side: str, expected: Part, got: Part) -> None:
        """Avro of two live records that differ: a row's image byte by byte, what may vary by its value."""
        one, other = expected.fields or {}, got.fields or {}
        if side == "key":
            self._encoding(topic, label, side, (expected.schema, expected.whole), (got.schema, got.whole))
        elif "before" in one and "after" in one:
            for name in ("before", "after"):
                if one[name] != other.get(name):
                    self._encoding(topic, label, name, (expected.schema, one[name]), (got.schema, other.get(name)))
            rest = [{key: value for key, value in part.payload.items() if key not in ("before", "after")}
                    for part in (expected, got)]
            self._values(topic, label, *rest, "$.value")
        else:
            self._values(topic, label, expected.payload, got.payload, "$.value")

    def _encoding(self, topic: str, label: str, name: str, expected: tuple[Any, str | None], got: tuple[Any, str | None]) -> None:
        """Two encodings that differ, column by column."""
        if expected[1] is None or got[1] is None or expected[0] is None:
            self.add(topic, label, f"$avro.{name}", expected[1], got[1])
            return
        cut = avro.row_fields if name in ("before", "after") else lambda schema, _, data: avro.fields(schema, data)
        columns = [cut(schema, name, bytes.fromhex(text)) for schema, text in (expected, got)]  # type: ignore[arg-type]
        for column in dict.fromkeys([*columns[0], *columns[1]]):
            one, other = (side.get(column, "(absent)") for side in columns)
            if one != other:
                self.add(topic, label, f"$avro.{name}{'.' if column else ''}{column}", one, other)

    def _values(self, topic: str, label: str, expected: Any, got: Any, path: str) -> None:
        for place, one, other in self._matcher.compare(expected, got, path):
            self.add(topic, label, place, one, other)

    def _schema(self, topic: str, label: str, side: str, expected: Part, got: Part) -> None:
        """Each pair of schemas once."""
        path = f"${side}.{'avsc' if self._avro else 'schema.json'}"
        pair = (topic, side, show(expected.schema, 1 << 30), show(got.schema, 1 << 30))
        if pair in self._schemas_seen or pair[2] == pair[3]:
            return
        self._schemas_seen.add(pair)
        if expected.schema is None or got.schema is None:
            self.add(topic, label, path, *("(none)" if schema is None else schema for schema in (expected.schema, got.schema)))
            return
        self._values(topic, label, expected.schema, got.schema, path)


def _pairs(wanted: list[Image], have: list[Image]) -> Iterator[tuple[Image | None, Image | None]]:
    """Side by side; where the numbers differ, by key and kind, so that one lost record does not spoil the rest."""
    if len(wanted) == len(have):
        yield from zip(wanted, have)
        return
    kinds = [[image.kind for image in images] for images in (wanted, have)]
    for word, a1, a2, b1, b2 in difflib.SequenceMatcher(None, *kinds, autojunk=False).get_opcodes():
        both = a2 - a1 if word == "equal" else min(a2 - a1, b2 - b1)
        yield from zip(wanted[a1:a1 + both], have[b1:b1 + both])
        yield from ((image, None) for image in wanted[a1 + both:a2])
        yield from ((None, image) for image in have[b1 + both:b2])


def _weave(wanted: list[Image], have: list[Image]) -> list[Image]:
    """Records of several partitions in the order of those wanted; within a partition their own order stays."""
    queues = {number: [image for image in have if image.partition == number]
              for number in sorted({image.partition or 0 for image in have})}
    woven = []
    for image in wanted:
        heads = [queue[0] for queue in queues.values() if queue]
        if image.partition is not None:
            heads = [head for head in heads if head.partition == image.partition]
        heads.sort(key=lambda head: (head.kind != image.kind, head.partition))
        if heads:
            woven.append(queues[heads[0].partition or 0].pop(0))
    return woven + [image for queue in queues.values() for image in queue]

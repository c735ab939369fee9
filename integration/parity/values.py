"""JSON without loss, and its comparison under the rules of placeholders."""

import json
import re
import struct
from decimal import Decimal
from typing import Any, Iterator


class Num(str):
    """A JSON number, kept as its text."""


class Absent:
    """Stands for a member that is not there."""


ABSENT = Absent()
Place = tuple[str, Any, Any]


def parse(text: str | bytes) -> Any:
    """Parse JSON; numbers stay text, members stay in order."""
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    return json.loads(text, parse_int=Num, parse_float=Num)


def show(value: Any, limit: int = 200) -> str:
    """JSON text of a parsed value, shortened."""
    whole = _text(value)
    return whole if len(whole) <= limit else f"{whole[:limit]}… ({len(whole)} characters)"


def _text(value: Any) -> str:
    if isinstance(value, Num):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{_text(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_text(one) for one in value) + "]"
    return "(absent)" if isinstance(value, Absent) else json.dumps(value, ensure_ascii=False, default=str)


PLACEHOLDER = re.compile(r"<(ts_ms|ts_us|ts_ns|xmin|version|run_id|uuid|instant|java-object|lsn|(?:lsn|commit_lsn|txId)#\d+)>")
TEXT_FORMS = {
    "version": r".+", "run_id": r".+", "java-object": r"(?:\[+L[A-Za-z.]+;|[a-z]+\.[A-Za-z.$]+)@[0-9a-f]+",
    "uuid": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "instant": r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z",
}
STAMP_DIGITS = {"ts_ms": 13, "ts_us": 16, "ts_ns": 19}


class Matcher:
    """Compares values; remembers numbered placeholders for one whole case."""

    def __init__(self) -> None:
        self._number: dict[str, str] = {}
        self._name: dict[tuple[str, str], str] = {}
        self._stamp_of_tx: dict[str, str] = {}

    def compare(self, expected: Any, got: Any, path: str) -> Iterator[Place]:
        """Every difference as (path, expected, got)."""
        if isinstance(expected, str) and not isinstance(expected, Num) and PLACEHOLDER.search(expected):
            if path.endswith("transaction_id") and isinstance(got, str) and got.isdigit():
                got = Num(got)  # offsets keep a transaction's number as text
            problem = self._placeholder(expected, got)
            if problem:
                yield path, expected, problem if isinstance(problem, str) else got
        elif isinstance(expected, Num):
            if not isinstance(got, Num) or not _same_number(expected, got):
                yield path, expected, got
        elif isinstance(expected, dict) and isinstance(got, dict):
            yield from self._objects(expected, got, path)
        elif isinstance(expected, list) and isinstance(got, list):
            yield from self._lists(expected, got, path)
        elif type(expected) is not type(got) or expected != got:
            yield path, expected, got

    def _lists(self, expected: list[Any], got: list[Any], path: str) -> Iterator[Place]:
        if path.endswith(".data_collections"):
            expected, got = sorted(expected, key=_collection), sorted(got, key=_collection)
        if path.endswith(".fields") and (names := [_field_names(fields) for fields in (expected, got)]) and all(names):
            # The fields of a schema: by name, so that one too many does not move all others.
            yield from self._objects(*(dict(zip(own, fields)) for own, fields in zip(names, (expected, got))), path)  # type: ignore[arg-type]
            return
        for i in range(max(len(expected), len(got))):
            if i >= len(expected) or i >= len(got):
                yield f"{path}[{i}]", expected[i] if i < len(expected) else ABSENT, got[i] if i < len(got) else ABSENT
            else:
                yield from self.compare(expected[i], got[i], f"{path}[{i}]")

    def _objects(self, expected: dict[str, Any], got: dict[str, Any], path: str) -> Iterator[Place]:
        for name in [*expected, *(name for name in got if name not in expected)]:
            if name not in got or name not in expected:
                yield f"{path}.{name}", expected.get(name, ABSENT), got.get(name, ABSENT)
        for name, value in expected.items():
            if name in got:
                yield from self.compare(value, got[name], f"{path}.{name}")
        both = [[name for name in one if name in other] for one, other in ((expected, got), (got, expected))]
        if both[0] != both[1] and not path.endswith("additional_data"):
            yield f"{path}~order", *both
        if all(expected.get(f"ts_{unit}") == f"<ts_{unit}>" and _is_integer(got.get(f"ts_{unit}")) for unit in ("ms", "us", "ns")):
            ms, us, ns = (int(got[f"ts_{unit}"]) for unit in ("ms", "us", "ns"))
            if us // 1000 != ms or ns // 1000 != us:
                yield f"{path}.ts_ms", "(ts_ms, ts_us and ts_ns of one moment)", [got["ts_ms"], got["ts_us"], got["ts_ns"]]
        if expected.get("snapshot") == "false" and _is_integer(got.get("txId")) and _is_integer(got.get("ts_us")):
            first = self._stamp_of_tx.setdefault(got["txId"], got["ts_us"])
            if first != got["ts_us"]:
                yield f"{path}.ts_us", f"({first}, as for the other rows of the transaction)", got["ts_us"]

    def _placeholder(self, expected: str, got: Any) -> str | bool:
        """False when it matches, else True or a text in parentheses that says what is wrong."""
        whole = PLACEHOLDER.fullmatch(expected)
        if whole and whole[1] not in TEXT_FORMS:
            return self._bind(whole[1], str(got)) if _is_integer(got) else True
        if not isinstance(got, str) or isinstance(got, Num):
            return True
        form, kinds, at = "", [], 0
        for match in PLACEHOLDER.finditer(expected):
            form += re.escape(expected[at:match.start()]) + "(" + TEXT_FORMS.get(match[1], r"\d+") + ")"
            kinds.append(match[1])
            at = match.end()
        found = re.fullmatch(form + re.escape(expected[at:]), got)
        if not found:
            return True
        return next((problem for kind, text in zip(kinds, found.groups()) if (problem := self._bind(kind, text))), False)

    def _bind(self, kind: str, text: str) -> str | bool:
        if kind in STAMP_DIGITS:
            return False if len(text) == STAMP_DIGITS[kind] else f"(not a moment in {kind[3:]}: {text})"
        if "#" not in kind:
            return False
        if not text.isdigit() or int(text) <= 0:
            return True
        family = kind.split("#")[0]
        number, name = self._number.get(kind, text), self._name.get((family, text), kind)
        if number != text:
            return f"({text}; the same placeholder was {number} before)"
        if name != kind:
            return f"({text}; that number was <{name}> before)"
        self._number[kind], self._name[(family, text)] = text, kind
        return False


def _same_number(one: str, other: str) -> bool:
    """Equal by value: programs spell the same number differently."""
    if one == other:
        return True
    try:
        if Decimal(one) == Decimal(other):
            return True
    except ArithmeticError:
        return False
    if not re.search(r"[.eE]", one):
        return False
    x, y = float(one), float(other)
    # Subnormal as a 32-bit float: few digits, printed differently.
    return x == y or max(abs(x), abs(y)) < 2e-38 and struct.pack("f", x) == struct.pack("f", y)


def _is_integer(value: Any) -> bool:
    return isinstance(value, Num) and re.fullmatch(r"-?\d+", value) is not None


def _field_names(fields: list[Any]) -> list[str]:
    """The names of a schema's fields, Avro's or Connect's; none if it is another list."""
    names = [field.get("field", field.get("name")) if isinstance(field, dict) else None for field in fields]
    return names if all(isinstance(name, str) for name in names) and len(set(names)) == len(names) else []  # type: ignore[return-value]


def _collection(entry: Any) -> str:
    name = str(entry.get("data_collection", "")) if isinstance(entry, dict) else show(entry)
    return "\uffff" if "@" in name or "<" in name else name

"""Records in the form in which they are compared: as they were read, or as they were recorded."""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Callable

from . import avro
from .cases import DATABASE, PREFIX, Case
from .values import Num, parse

CONTEXT, EXTENSION = "__debezium.context.", "__tidegate."


@dataclass(frozen=True)
class Raw:
    """A record as a consumer gets it."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


@dataclass
class Part:
    """Key or value."""

    payload: Any = None
    schema: Any = None
    # No bytes at all: Kafka's null.
    none: bool = False
    # What the recording does not tell.
    any_null: bool = False
    # Avro: the whole, and the fields of a record, as hex; of a recording the parts that it has.
    whole: str | None = None
    fields: dict[str, str | None] | None = None
    recorded: dict[str, Any] | None = None


@dataclass
class Image:
    """One record."""

    phase: str
    topic: str
    key: Part
    value: Part
    headers: list[dict[str, Any]] = field(default_factory=list)
    partition: int | None = None
    timestamp: Any = None

    @property
    def kind(self) -> str:
        """Key and operation without what varies, to pair records by."""
        value = self.value.payload
        kind = value.get("op") if isinstance(value, dict) else self.value.none
        key = json.dumps(self.key.payload, default=str)
        return re.sub(r"\d{5,}|<[\w#]+>|\d+:\d+", "#", key) + f" {kind}"


def recorded(case: Case, phase: str, mode: str) -> list[Image]:
    """The records that Debezium was recorded to make."""
    kind = "avsc" if mode == "avro" else "schema.json"
    images = []
    for data in case.lines(phase):
        parts = {}
        for side in ("key", "value"):
            null, told = data[side] is None, f"{side}_schema" in data
            if null and (not told or mode == "avro"):
                parts[side] = Part(none=True, any_null=side == "key")
                continue
            schema = case.schema(data["topic"], side, int(data.get(f"{side}_schema", 1)), kind)
            names = ("key",) if side == "key" else ("before", "after", "value")
            hexes = {name: data["avro"][name] for name in names if name in data["avro"]}
            parts[side] = Part(data[side], schema, recorded=hexes if mode == "avro" else None)
        images.append(Image(phase, data["topic"], parts["key"], parts["value"], data.get("headers", []),
                            None if "partition" not in data else int(data["partition"]), data.get("timestamp")))
    return images


class Reader:
    """Makes images of records that a run with other names of the same length made."""

    def __init__(self, case: Case, mode: str, token: str, database: str, schema_text: Callable[[int], str]):
        self._case, self._mode, self._schema_text = case, mode, schema_text
        self._names = [(token, PREFIX), (database, DATABASE)]
        self._schemas: dict[int, tuple[Any, avro.Decoder]] = {}

    def plain(self, text: str) -> str:
        """A text with the names of the recordings."""
        for own, plain in self._names:
            text = text.replace(own, plain)
        return text

    def image(self, raw: Raw, phase: str) -> Image:
        """One record."""
        where = f"{raw.topic}[{raw.partition}]@{raw.offset}"
        part = self._avro if self._mode == "avro" else self._json
        return Image(phase, self.plain(raw.topic), part(raw.key, f"{where} key"), part(raw.value, f"{where} value"),
                     self._headers(raw), raw.partition, None if raw.timestamp is None else Num(raw.timestamp))

    def _bytes(self, raw: bytes) -> bytes:
        for own, plain in self._names:
            raw = raw.replace(own.encode(), plain.encode())
        return raw

    def _json(self, raw: bytes | None, _where: str) -> Part:
        if raw is None:
            return Part(none=True)
        try:
            value = parse(self._bytes(raw))
        except ValueError:
            return Part(f"(not JSON: {raw[:80]!r})")
        if isinstance(value, dict) and list(value) == ["schema", "payload"]:
            return Part(value["payload"], value["schema"])
        return Part(value)

    def _avro(self, raw: bytes | None, where: str) -> Part:
        if raw is None:
            return Part(none=True)
        number, body = avro.split(raw, where)
        if number not in self._schemas:
            text = self.plain(self._schema_text(number))
            self._schemas[number] = parse(text), avro.Decoder(text)
        (schema, decoder), body = self._schemas[number], self._bytes(body)
        return Part(decoder.decode(body), schema, whole=body.hex(), fields=avro.fields(schema, body))

    def _headers(self, raw: Raw) -> list[dict[str, Any]]:
        found = []
        for name, content in raw.headers:
            if name.startswith(EXTENSION) or name.startswith(CONTEXT) and not self._case.context_headers:
                continue
            try:
                value = None if content is None else parse(self._bytes(content))
            except ValueError:
                value = f"(not JSON: {content[:80]!r})" if content else ""
            if isinstance(value, dict) and list(value) == ["schema", "payload"]:
                found.append({"name": name, "schema": value["schema"], "value": value["payload"]})
            else:
                found.append({"name": name, "value": value})
        return found


STAMP = re.compile(r"(.*[_.])?(ts_(ms|us|ns))$")


def masked(image: Image) -> Image:
    """A record that was read as one to compare with: what varies from one reader to another is a placeholder."""
    snapshot = image.phase == "snapshot"
    for part in (image.key, image.value):
        part.payload = _masked(part.payload, "", snapshot)
    for header in image.headers:
        if (found := STAMP.fullmatch(header["name"])) and isinstance(header["value"], Num):
            header["value"] = f"<{found[2]}>"
    image.timestamp = None
    return image


def without_empty_transactions(images: list[Image]) -> list[Image]:
    """Servers before 15 send transactions without changes, and which ones a reader sees depends on when its slot began.

    Debezium writes their BEGIN and END, and their positions are told in the next change.
    """
    def transaction(image: Image) -> tuple[str, Any]:
        """Its number, which Debezium's BEGIN and END have in common, and how many events it had."""
        value = image.value.payload
        is_one = isinstance(value, dict) and value.get("status") in ("BEGIN", "END")
        return (value["id"].partition(":")[0], value["event_count"]) if is_one else ("", None)

    empty = {number for number, count in map(transaction, images) if str(count) == "0"}
    kept = [image for image in images if transaction(image)[0] not in empty]
    for image in kept:
        value = image.value.payload
        source = value.get("source") if isinstance(value, dict) else None
        if isinstance(source, dict) and isinstance(source.get("sequence"), str):
            source["sequence"] = re.sub(r'^\[[^,]*', "[<before>", source["sequence"])
    return kept


def _masked(value: Any, member: str, snapshot: bool) -> Any:
    if isinstance(value, dict):
        source = "connector" in value and "version" in value
        if source:
            value = value | {"version": "<version>"}
            # Of a message that belongs to no transaction the source does not say when it was written.
            snapshot = snapshot or value.get("snapshot") not in (None, "false") or value.get("txId") is None
        # A source block's times are the same for all readers, those of a snapshot excepted.
        prefix = "source." if source and not snapshot else ""
        return {key: one if key in ("before", "after") else _masked(one, prefix + key, snapshot) for key, one in value.items()}
    if isinstance(value, list):
        return [_masked(one, member, snapshot) for one in value]
    found = STAMP.fullmatch(member)
    if found and isinstance(value, Num) and (snapshot or not re.search(r"source[._]", member)):
        return f"<{found[2]}>"
    return value

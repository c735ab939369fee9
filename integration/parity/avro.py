"""Avro bytes cut at the borders of a record's fields: what is compared is the encoding itself."""

import io
import json
import struct
from typing import Any

from harness.checks import ScenarioFailed

from .values import parse


def split(raw: bytes, where: str) -> tuple[int, bytes]:
    """(schema id, body) of a record in the registry's framing."""
    if len(raw) < 5 or raw[0] != 0:
        raise ScenarioFailed(f"{where} is not framed for a registry: {raw[:16]!r}")
    return struct.unpack(">I", raw[1:5])[0], raw[5:]


def fields(schema: Any, data: bytes) -> dict[str, str | None]:
    """The bytes of each field as hex, those of a union without its index, null as None; of what is no record the whole."""
    if not (isinstance(schema, dict) and schema.get("type") == "record"):
        return {"": data.hex()}
    named: dict[str, Any] = {}
    _collect(schema, named)
    return _fields(schema, named, data)


def _fields(schema: Any, named: dict[str, Any], data: bytes) -> dict[str, str | None]:
    at, found = 0, {}
    for field in schema["fields"]:
        end = _end(field["type"], named, data, at)
        start = at
        kind = field["type"]
        if isinstance(kind, list):
            index, start = _long(data, at)
            kind = kind[index]
        found[field["name"]] = None if kind == "null" else data[start:end].hex()
        at = end
    return found


def row_fields(envelope: Any, name: str, data: bytes) -> dict[str, str | None]:
    """The same for the row in the envelope's field `name`, of which this is the encoding."""
    named: dict[str, Any] = {}
    _collect(envelope, named)
    field = next((field for field in envelope["fields"] if field["name"] == name), None)
    kind = next((one for one in field["type"] if one != "null"), None) if field and isinstance(field["type"], list) else None
    row = named.get(kind) if isinstance(kind, str) else kind
    return {"": data.hex()} if row is None else _fields(row, named, data)


class Decoder:
    """Values of one schema, as parsed JSON; what JSON has no form for is text."""

    def __init__(self, text: str):
        # Cutting and comparing have to work without it: their tests run before there is an environment.
        import fastavro
        self._read = fastavro.schemaless_reader
        self._schema = fastavro.parse_schema(_bare(json.loads(text)))

    def decode(self, data: bytes) -> Any:
        """One value."""
        return parse(json.dumps(self._read(io.BytesIO(data), self._schema), default=str))


def _bare(schema: Any) -> Any:
    """A schema without what does not change the encoding, and which the library is stricter about than Java's."""
    if isinstance(schema, dict):
        return {key: _bare(value) for key, value in schema.items() if key not in ("logicalType", "default", "doc")}
    return [_bare(one) for one in schema] if isinstance(schema, list) else schema


def _end(schema: Any, named: dict[str, Any], data: bytes, at: int) -> int:
    """Position after one value of this schema."""
    if isinstance(schema, list):
        index, at = _long(data, at)
        return _end(schema[index], named, data, at)
    kind = schema if isinstance(schema, str) else schema["type"]
    if isinstance(kind, (dict, list)):
        return _end(kind, named, data, at)
    if kind in ("bytes", "string"):
        length, at = _long(data, at)
        return at + length
    if kind in ("int", "long", "enum"):
        return _long(data, at)[1]
    sizes = {"null": 0, "boolean": 1, "float": 4, "double": 8}
    if kind in sizes:
        return at + sizes[kind]
    if isinstance(schema, str) or kind not in ("record", "fixed", "array", "map"):
        return _end(named[kind], named, data, at)
    if kind == "fixed":
        return at + schema["size"]
    if kind == "record":
        for field in schema["fields"]:
            at = _end(field["type"], named, data, at)
        return at
    return _end_of_blocks(schema, named, data, at)


def _end_of_blocks(schema: Any, named: dict[str, Any], data: bytes, at: int) -> int:
    while True:
        count, at = _long(data, at)
        if count == 0:
            return at
        if count < 0:
            count, at = -count, _long(data, at)[1]
        for _ in range(count):
            if schema["type"] == "map":
                at = _end("string", named, data, at)
            at = _end(schema["items" if schema["type"] == "array" else "values"], named, data, at)


def _long(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7


def _collect(schema: Any, named: dict[str, Any], space: str = "") -> None:
    """The named types of a schema by full and short name."""
    if isinstance(schema, list):
        for part in schema:
            _collect(part, named, space)
    elif isinstance(schema, dict):
        if "name" in schema and schema.get("type") in ("record", "enum", "fixed"):
            space = schema.get("namespace", space)
            named[schema["name"]] = named[f"{space}.{schema['name']}"] = schema
        for part in ("type", "items", "values"):
            if isinstance(schema.get(part), (dict, list)):
                _collect(schema[part], named, space)
        for field in schema.get("fields", []):
            _collect(field["type"], named, space)

"""Avro schemas: parsing by the specification's rules, and whether one can read what another wrote."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# Reader type → writer types that it can promote (specification, "Schema Resolution").
PROMOTIONS = {"long": {"int"}, "float": {"int", "long"}, "double": {"int", "long", "float"},
              "string": {"bytes"}, "bytes": {"string"}}
ABSENT = object()
# Java's library checks the names of types and fields, and takes a namespace as it comes. So does a registry that is told to.
checks_namespaces = True


class Invalid(Exception):
    """Not an Avro schema."""


@dataclass(eq=False)
class Schema:
    """A schema with its references resolved. `kind` is a primitive, record, enum, fixed, array, map or union."""

    kind: str
    name: str = ""
    aliases: set[str] = field(default_factory=set)
    fields: list["Field"] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    default: Any = ABSENT
    size: int = 0
    items: "Schema | None" = None
    branches: list["Schema"] = field(default_factory=list)


@dataclass
class Field:
    """A record's field."""

    name: str
    schema: Schema
    aliases: set[str]
    default: Any


def parse(text: str) -> Schema:
    """Parse a schema's JSON text; raises `Invalid`."""
    try:
        tree = json.loads(text)
    except ValueError as error:
        raise Invalid(f"not JSON: {error}") from error
    return _Parser().schema(tree, "")


def identity(text: str) -> str:
    """Equal for schemas that differ in white space or in the order of attributes only."""
    return json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False)


class _Parser:
    def __init__(self) -> None:
        self.named: dict[str, Schema] = {}

    def schema(self, tree: Any, space: str) -> Schema:
        match tree:
            case str():
                return self._reference(tree, space)
            case list():
                return self._union(tree, space)
            case {"type": str(kind)} if kind in ("record", "error", "enum", "fixed"):
                return self._named(tree, "record" if kind == "error" else kind, space)
            case {"type": "array", "items": items}:
                return Schema("array", items=self.schema(items, space))
            case {"type": "map", "values": values}:
                return Schema("map", items=self.schema(values, space))
            case {"type": inner}:
                return self.schema(inner, space)
        raise Invalid(f"no type: {json.dumps(tree)[:200]}")

    def _reference(self, name: str, space: str) -> Schema:
        if name in PRIMITIVES:
            return Schema(name)
        for full in ([name] if "." in name else [f"{space}.{name}".lstrip("."), name]):
            if full in self.named:
                return self.named[full]
        raise Invalid(f"undefined name: {name}")

    def _union(self, trees: list, space: str) -> Schema:
        branches = [self.schema(tree, space) for tree in trees]
        labels = [branch.name or branch.kind for branch in branches]
        if "union" in labels or len(set(labels)) != len(labels):
            raise Invalid(f"a union holds a union, or a type twice: {labels}")
        return Schema("union", branches=branches)

    def _named(self, tree: dict, kind: str, space: str) -> Schema:
        name, space = _full_name(tree.get("name"), tree.get("namespace"), space)
        if name in self.named:
            raise Invalid(f"can't redefine: {name}")
        aliases = {_full_name(alias, None, space)[0] for alias in tree.get("aliases", [])}
        schema = self.named[name] = Schema(kind, name, aliases)
        match kind:
            case "fixed":
                schema.size = tree.get("size")
                if type(schema.size) is not int or schema.size < 0:
                    raise Invalid(f"fixed {name} has no size")
            case "enum":
                schema.symbols = tree.get("symbols") or []
                schema.default = tree.get("default", ABSENT)
                if len(set(schema.symbols)) != len(schema.symbols) or not all(map(_is_name, schema.symbols)):
                    raise Invalid(f"illegal symbols in enum {name}")
                if schema.default is not ABSENT and schema.default not in schema.symbols:
                    raise Invalid(f"the default of enum {name} is none of its symbols")
            case "record":
                if not isinstance(tree.get("fields"), list):
                    raise Invalid(f"record {name} has no fields")
                for member in tree["fields"]:
                    schema.fields.append(self._field(member, name, space))
                names = [member.name for member in schema.fields]
                if len(set(names)) != len(names):
                    raise Invalid(f"duplicate field in record {name}: {names}")
        return schema

    def _field(self, tree: Any, record: str, space: str) -> Field:
        if not isinstance(tree, dict) or not _is_name(tree.get("name")) or "type" not in tree:
            raise Invalid(f"illegal field in record {record}: {json.dumps(tree)[:200]}")
        schema = self.schema(tree["type"], space)
        default = tree.get("default", ABSENT)
        if default is not ABSENT and not _fits(default, schema):
            raise Invalid(f"invalid default for field {tree['name']}: {json.dumps(default)}")
        return Field(tree["name"], schema, set(tree.get("aliases", [])), default)


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and NAME.match(name) is not None


def _full_name(name: Any, namespace: str | None, enclosing: str) -> tuple[str, str]:
    """(full name, namespace), where a dotted name brings its own."""
    if not isinstance(name, str):
        raise Invalid("a named type has no name")
    space, dot, short = name.rpartition(".")
    if not dot:
        space = enclosing if namespace is None else namespace
    parts = filter(None, space.split(".")) if checks_namespaces else ()
    if not all(map(_is_name, [short, *parts])):
        raise Invalid(f"illegal character in: {space}.{short}".replace(": .", ": "))
    return f"{space}.{short}".lstrip("."), space


def _fits(value: Any, schema: Schema) -> bool:
    """Whether a JSON value may be a default. A union's default may belong to any branch, as newer Avro has it."""
    match schema.kind:
        case "union":
            return any(_fits(value, branch) for branch in schema.branches)
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            bits = 31 if schema.kind == "int" else 63
            return type(value) is int and -(1 << bits) <= value < 1 << bits
        case "float" | "double":
            return type(value) in (int, float)
        case "enum":
            return value in schema.symbols
        case "array":
            return isinstance(value, list) and all(_fits(item, schema.items) for item in value)
        case "map":
            return isinstance(value, dict) and all(_fits(item, schema.items) for item in value.values())
        case "record":
            return isinstance(value, dict) and all(
                member.default is not ABSENT if member.name not in value else _fits(value[member.name], member.schema)
                for member in schema.fields)
    return isinstance(value, str)


def differences(reader: Schema, writer: Schema) -> list[str]:
    """Why `reader` cannot read what `writer` wrote; empty if it can."""
    return _differences(reader, writer, "", set())


def _differences(reader: Schema, writer: Schema, path: str, open_pairs: set[tuple[int, int]]) -> list[str]:
    pair = (id(reader), id(writer))
    if pair in open_pairs:
        return []
    open_pairs = open_pairs | {pair}
    here = path or "/"
    if writer.kind == "union":
        return [text for branch in writer.branches for text in _differences(reader, branch, path, open_pairs)]
    if reader.kind == "union":
        if any(not _differences(branch, writer, path, open_pairs) for branch in reader.branches):
            return []
        return [f"MISSING_UNION_BRANCH at {here}: reader union lacks the writer type {writer.name or writer.kind}"]
    if reader.kind != writer.kind:
        if writer.kind in PROMOTIONS.get(reader.kind, ()):
            return []
        return [f"TYPE_MISMATCH at {here}: reader type {reader.kind} not compatible with writer type {writer.kind}"]
    if reader.name and not _is_named(reader, writer):
        return [f"NAME_MISMATCH at {here}: expected {writer.name}, found {reader.name}"]
    match reader.kind:
        case "array" | "map":
            return _differences(reader.items, writer.items, f"{path}/{reader.kind}", open_pairs)
        case "fixed" if reader.size != writer.size:
            return [f"FIXED_SIZE_MISMATCH at {here}: expected {writer.size}, found {reader.size}"]
        case "enum" if reader.default is ABSENT and (gone := set(writer.symbols) - set(reader.symbols)):
            return [f"MISSING_ENUM_SYMBOLS at {here}: {sorted(gone)}"]
        case "record":
            return _field_differences(reader, writer, path, open_pairs)
    return []


def _is_named(reader: Schema, writer: Schema) -> bool:
    """By the specification ("Schema Resolution") and Java's library, without the namespace."""
    return writer.name.rpartition(".")[2] in {name.rpartition(".")[2] for name in (reader.name, *reader.aliases)}


def _field_differences(reader: Schema, writer: Schema, path: str, open_pairs: set[tuple[int, int]]) -> list[str]:
    written = {member.name: member for member in writer.fields}
    found = []
    for member in reader.fields:
        names = [name for name in (member.name, *member.aliases) if name in written]
        if names:
            found += _differences(member.schema, written[names[0]].schema, f"{path}/{member.name}", open_pairs)
        elif member.default is ABSENT:
            found.append(f"READER_FIELD_MISSING_DEFAULT_VALUE at {path}/{member.name}: {member.name}")
    return found


def incompatibilities(level: str, new: Schema, earlier: list[Schema]) -> list[str]:
    """What compatibility level `level` objects to. `earlier` are the subject's versions, oldest first."""
    against = earlier if level.endswith("_TRANSITIVE") else earlier[-1:]
    kind = level.removesuffix("_TRANSITIVE")
    found = []
    for old in reversed(against):
        if kind in ("BACKWARD", "FULL"):
            found += differences(new, old)
        if kind in ("FORWARD", "FULL"):
            found += differences(old, new)
    return found

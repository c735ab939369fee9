"""Tests of the parts with rules of their own: `PYTHONPATH=integration python3 -m unittest registry.tests`."""

import json
import unittest

from . import avro
from .store import Refused, Store


def record(*fields: object, name: str = "V") -> dict:
    """A record of fields given as (name, type) or (name, type, default)."""
    return {"type": "record", "name": name, "namespace": "n", "fields": [
        {"name": field[0], "type": field[1]} | ({"default": field[2]} if len(field) > 2 else {}) for field in fields]}


class Resolution(unittest.TestCase):
    """Which reader can read which writer."""

    def check(self, reader: object, writer: object, complaint: str | None) -> None:
        """`complaint` None: readable."""
        found = avro.differences(avro.parse(json.dumps(reader)), avro.parse(json.dumps(writer)))
        if complaint is None:
            self.assertEqual(found, [])
        else:
            self.assertTrue(any(text.startswith(complaint) for text in found), found)

    def test_rules(self) -> None:
        self.check("int", "int", None)
        self.check("double", "int", None)
        self.check("int", "long", "TYPE_MISMATCH")
        self.check("string", "bytes", None)
        self.check(["null", "long"], "int", None)
        self.check("int", ["null", "int"], "TYPE_MISMATCH")
        self.check(["null", "string"], ["null", "int"], "MISSING_UNION_BRANCH")
        self.check({"type": "array", "items": "string"}, {"type": "array", "items": "int"}, "TYPE_MISMATCH at /array")
        self.check({"type": "map", "values": "long"}, {"type": "map", "values": "int"}, None)
        enum = {"type": "enum", "name": "E", "symbols": ["a"]}
        self.check(enum, enum | {"symbols": ["a", "b"]}, "MISSING_ENUM_SYMBOLS")
        self.check(enum | {"default": "a"}, enum | {"symbols": ["a", "b"]}, None)
        fixed = {"type": "fixed", "name": "F", "size": 3}
        self.check(fixed, fixed | {"size": 4}, "FIXED_SIZE_MISMATCH")
        self.check(record(), record(name="W"), "NAME_MISMATCH")
        self.check(record() | {"namespace": "elsewhere"}, record(), None)
        self.check(record() | {"aliases": ["W"]}, record(name="W"), None)

    def test_fields(self) -> None:
        self.check(record(("a", "int")), record(("a", "int"), ("b", "int")), None)
        self.check(record(("a", "int"), ("b", "int")), record(("a", "int")), "READER_FIELD_MISSING_DEFAULT_VALUE at /b")
        self.check(record(("a", "int"), ("b", ["null", "int"], None)), record(("a", "int")), None)
        self.check(record(("a", record(("x", "int"), name="I"))), record(("a", record(("x", "string"), name="I"))),
                   "TYPE_MISMATCH at /a/x")
        tree = record(("next", ["null", "n.V"], None))
        self.check(tree, tree, None)


class Parsing(unittest.TestCase):
    """What is an Avro schema."""

    def check(self, tree: object, complaint: str) -> None:
        """Refused with this text."""
        with self.assertRaisesRegex(avro.Invalid, complaint):
            avro.parse(json.dumps(tree))

    def test_refusals(self) -> None:
        self.check({"type": "recrd"}, "undefined name: recrd")
        self.check(record(("a-b", "int")), "illegal field")
        self.check(record(("a", "int"), ("a", "int")), "duplicate field")
        self.check(record(name="1st"), "illegal character")
        self.check(record(("a", "int", "x")), "invalid default")
        self.check(["int", ["string"]], "a union holds a union")
        self.check(record(("a", record()),), "can't redefine")

    def test_references(self) -> None:
        avro.parse(json.dumps(record(("before", ["null", record(name="I")], None), ("after", ["null", "I"], None))))
        avro.parse(json.dumps({"type": "bytes", "logicalType": "decimal", "scale": 2, "precision": 64}))


class Levels(unittest.TestCase):
    """What each compatibility level lets through."""

    def check(self, level: str, before: list[dict], new: dict, taken: bool) -> None:
        """Register `before` unchecked, then `new` at the level."""
        store = Store()
        store.set_level("s", {"compatibility": "NONE"})
        for tree in before:
            store.register("s", {"schema": json.dumps(tree)})
        store.set_level("s", {"compatibility": level})
        try:
            store.register("s", {"schema": json.dumps(new)})
            self.assertTrue(taken)
        except Refused as error:
            self.assertEqual((error.status, error.code, taken), (409, 409, False))

    def test_levels(self) -> None:
        one, two = record(("a", "int")), record(("a", "int"), ("b", "int"))
        self.check("NONE", [one], two, True)
        self.check("BACKWARD", [one], two, False)
        self.check("BACKWARD", [two], one, True)
        self.check("FORWARD", [one], two, True)
        self.check("FORWARD", [two], one, False)
        self.check("FULL", [one], two, False)
        self.check("FULL", [one], record(("a", "int"), ("b", "int", 7)), True)
        three = record(("b", "int"))
        self.check("BACKWARD", [one, three], three | {"doc": "x"}, True)
        self.check("BACKWARD_TRANSITIVE", [one, three], three | {"doc": "x"}, False)


if __name__ == "__main__":
    unittest.main()

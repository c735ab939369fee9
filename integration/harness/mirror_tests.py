"""Tests of the reader by which scenarios judge."""

import unittest
from typing import Any

from .mirror import Table
from .topics import Record


def record(key: Any, before: Any, after: Any) -> Record:
    op = "d" if after is None else "c" if before is None else "u"
    value = {"op": op, "before": before, "after": after}
    return Record("t", 0, 0, key, value, {}, None, b"", None, None)


def version(changes: list[dict[str, Any]], *columns: str) -> dict[str, Any]:
    described = [{"name": name, "type": "integer", "default_kind": "none", "default_literal": None} for name in columns]
    return {"kind": "altered", "changes": changes, "after": {"table": "t", "columns": described}}


class TableTests(unittest.TestCase):
    """Rows stay themselves under changes of their table."""

    def test_a_row_with_nothing_but_its_key_keeps_it(self) -> None:
        table = Table()
        table.take(record({"id": 1}, None, {"id": 1}))
        table.change(version([{"kind": "added", "column": "n"}], "id", "n"))
        table.take(record({"id": 1}, {"id": 1, "n": None}, {"id": 1, "n": 5}))
        self.assertEqual(list(table.rows.values()), [{"id": 1, "n": 5}])

    def test_a_row_without_a_key_is_told_by_all_that_it_holds(self) -> None:
        table = Table()
        table.take(record(None, None, {"id": 1}))
        table.change(version([{"kind": "added", "column": "n"}], "id", "n"))
        table.take(record(None, {"id": 1, "n": None}, {"id": 1, "n": 5}))
        self.assertEqual(list(table.rows.values()), [{"id": 1, "n": 5}])
        table.take(record(None, {"id": 1, "n": 5}, None))
        self.assertEqual(table.rows, {})

"""What a reader holds who takes in a topic's records, one after the other."""

from typing import Any, Iterable

from .topics import Record, key_text


def merged(records: Iterable[Record]) -> dict[str, dict[str, Any]]:
    """Rows by key; a value that was not sent is the one that the reader has."""
    rows: dict[str, dict[str, Any]] = {}
    for record in records:
        take(rows, record)
    return rows


def take(rows: dict[str, dict[str, Any]], record: Record) -> None:
    """Take one more record in."""
    if record.op == "t":
        rows.clear()
        return
    key = key_text(record.key)
    if record.tombstone or record.op == "d":
        rows.pop(key, None)
        return
    row = dict(record.after)
    for column in (record.extension("unavailable") or "").split(","):
        name = column.removeprefix("after.")
        # Before its chunk a reader may not have the row; then the marker stays until the chunk comes.
        if name in row and key in rows:
            row[name] = rows[key][name]
    rows[key] = row

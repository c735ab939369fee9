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


class Mirror:
    """Tables as a reader has them who applies control records and data records, and asks nobody.

    A table is told by the source's number of it; its records are in order of its epochs, and within one in that of their topic.
    Before the first record of an epoch the control records up to that epoch are applied.
    """

    def __init__(self, control: Iterable[Record], data: Iterable[Record]):
        self.tables: dict[str, Table] = {}
        announced: dict[str, list[dict[str, Any]]] = {}
        numbers: dict[tuple[str, str, int], str] = {}
        for record in control:
            value = record.value
            if value["kind"] in ("suspected", "refused", "reread"):
                continue
            number = value["relation"]["native_id"]
            announced.setdefault(number, []).append(value)
            numbers[value["relation"]["namespace"], value["relation"]["table"], value["epoch"]] = number
        changes: dict[str, list[Record]] = {}
        for record in data:
            if not record.tombstone:
                source = record.value["source"]
                number = numbers[source["schema"], source["table"], int(record.extension("epoch"))]
                changes.setdefault(number, []).append(record)
        for number, versions in announced.items():
            table = Table()
            # One topic after the other where a table was renamed: its epochs only grow.
            for record in sorted(changes.get(number, []), key=lambda record: int(record.extension("epoch"))):
                epoch = int(record.extension("epoch"))
                while versions and versions[0]["epoch"] <= epoch:
                    table.change(versions.pop(0))
                table.take(record)
            for version in versions:
                table.change(version)
            if not table.dropped:
                self.tables[f"{table.name}"] = table


class Table:
    """One of them."""

    def __init__(self) -> None:
        self.name = ""
        self.columns: dict[str, str] = {}
        self.rows: dict[str, dict[str, Any]] = {}
        # Rows without a key, which are told by all that they hold. A row with nothing but its key looks like one.
        self.keyless: set[str] = set()
        self.dropped = False

    def change(self, version: dict[str, Any]) -> None:
        """Apply a control record."""
        columns = {column["name"]: column for column in version["after"]["columns"]}
        self.name = version["after"]["table"]
        self.dropped = version["kind"] == "dropped"
        changed = version["changes"]
        renamed = {one["from"]: one["to"] for one in changed if one["kind"] == "renamed"}
        for key, row in list(self.rows.items()):
            row = {renamed.get(name, name): value for name, value in row.items()}
            for one in changed:
                if one["kind"] == "dropped":
                    row.pop(one["column"], None)
                elif one["kind"] in ("added", "replaced"):
                    row[one["column"]] = default(columns[one["column"]])
            self._replace(key, row)
        self.columns = {name: column["type"] for name, column in columns.items()}

    def take(self, record: Record) -> None:
        """Apply a data record."""
        if record.key is not None or record.op == "t":
            take(self.rows, record)
            self.keyless &= self.rows.keys()
            return
        if record.before is not None:
            self.rows.pop(key_text(record.before), None)
        if record.after is not None:
            key = key_text(record.after)
            self.rows[key] = dict(record.after)
            self.keyless.add(key)

    def _replace(self, key: str, row: dict[str, Any]) -> None:
        del self.rows[key]
        if key in self.keyless:
            self.keyless.remove(key)
            key = key_text(row)
            self.keyless.add(key)
        self.rows[key] = row


def default(column: dict[str, Any]) -> Any:
    """What rows that were there have in a new column."""
    text = column["default_literal"]
    if column["default_kind"] != "literal" or text is None:
        return None
    return int(text) if column["type"] in ("integer", "bigint") else text

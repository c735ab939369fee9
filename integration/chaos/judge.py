"""The judgement: what the server's log says, beside what a `read_committed` reader of the topics got.

The log is read a second time, from a slot of its own through another plug-in (`test_decoding`), so nothing of the worker's
is needed to know what should be there.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any, Iterable

from harness.checks import ScenarioFailed, check, equal
from harness.topics import Record, key_text
from harness.trial import Trial, position

TABLES = ("by_key", "by_index", "by_row", "only_new", "keyless", "spread", "parted")
SEVERAL_PARTITIONS = "spread"
# (number of the transaction, table, op, id of the row)
Event = tuple[int, str, str, int | None]
CHANGE = re.compile(r"table (.+?): (INSERT|UPDATE|DELETE|TRUNCATE): (old-key: )?(?:id\[integer\]:(-?\d+))?")


@dataclass(frozen=True)
class Log:
    """All changes behind a position, in the order of their commits."""

    events: list[Event]
    transactions: set[int]


class Witness:
    """A second slot, made before anything happens."""

    def __init__(self, t: Trial):
        self._t = t
        self.name = f"{t.name}_witness"
        t.admin.query("select pg_create_logical_replication_slot(%s, 'test_decoding')", self.name)

    def read(self, since: int) -> Log:
        """What was committed behind a position; the slot is gone afterwards."""
        rows = self._t.admin.query(
            "select lsn - '0/0' as lsn, xid::text::bigint as xid, left(data, 400) as data, "
            "substring(data from 'new-tuple: id\\[integer\\]:(-?[0-9]+)') as new_id "
            "from pg_logical_slot_get_changes(%s, null, null, 'skip-empty-xacts', '1')", self.name)
        self._t.admin.query("select pg_drop_replication_slot(%s)", self.name)
        log, open_ = Log([], set()), []
        for row in rows:
            if row["data"].startswith("BEGIN"):
                open_ = []
            elif row["data"].startswith("COMMIT"):
                if row["lsn"] > since and open_:
                    log.events.extend(open_)
                    log.transactions.add(row["xid"])
            else:
                open_.extend(_events(row))
        return log


def _events(row: dict[str, Any]) -> Iterable[Event]:
    found = CHANGE.match(row["data"])
    check(found is not None, f"the witness can be read: {row['data']}")
    names, operation, has_old, number = found.groups()  # type: ignore[union-attr]
    roots = dict.fromkeys(re.sub(r"^public\.|_(eu|us)$", "", name) for name in names.split(", "))
    first = None if number is None else int(number)
    for table in roots:
        if table not in TABLES:
            continue
        new = int(row["new_id"]) if has_old else first
        match operation:
            case "INSERT":
                yield row["xid"], table, "c", first
            case "DELETE":
                yield row["xid"], table, "d", first
            case "TRUNCATE":
                yield row["xid"], table, "t", None
            case "UPDATE" if has_old and new != first and table != "keyless":
                yield row["xid"], table, "d", first
                yield row["xid"], table, "c", new
            case "UPDATE":
                yield row["xid"], table, "u", new


def judge(t: Trial, witness: Witness, since: int, *, metadata: bool) -> int:
    """Fail with the first thing that is wrong. Everything must be through (`t.settle`). Answers how many records there are."""
    topics = {table: t.topic(table).read(timeout=300) for table in TABLES}
    log = witness.read(since)
    for table, records in topics.items():
        try:
            t.exactly_once(records)
        except ScenarioFailed as fault:
            raise ScenarioFailed(f"table {table}: {fault}") from None
    _same_events(topics, log)
    for table, records in topics.items():
        if table == "keyless":
            _same_contents(t, records)
        else:
            _same_rows(t, table, records)
    if metadata:
        _metadata(t, topics, log)
    return sum(map(len, topics.values()))


# ------------------------------------------------------------ none lost, none twice, in order
def _same_events(topics: dict[str, list[Record]], log: Log) -> None:
    found = []
    for table, records in topics.items():
        for record in records:
            if record.op not in (None, "r"):
                row = record.key or record.after or record.before or {}
                event = record.value["source"]["txId"], table, record.op, None if record.op == "t" else row["id"]
                found.append((position(record), event))
    # By position over all topics: the order of the commits, and inside each that of the statements.
    found.sort(key=lambda one: one[0])
    places = [place for place, _ in found]
    for one, other in zip(places, places[1:]):
        check(one != other, f"no position comes twice; {one} does")
    events = [event for _, event in found]
    if events == log.events:
        return
    lost, more = Counter(log.events) - Counter(events), Counter(events) - Counter(log.events)
    where = next(i for i, (a, b) in enumerate(zip([*events, None], [*log.events, None])) if a != b)
    raise ScenarioFailed(
        f"{sum(lost.values())} changes were lost and {sum(more.values())} are too many, of {len(log.events)}; "
        f"lost: {list(lost)[:5]}, too many: {list(more)[:5]}; the first difference is at change {where}: "
        f"{events[where:where + 3]} instead of {log.events[where:where + 3]}")


# ------------------------------------------------------------ the table
def _same_rows(t: Trial, table: str, records: list[Record]) -> None:
    """The newest row of each key; a value that was not sent is the one that the reader has."""
    if table == SEVERAL_PARTITIONS:
        records = sorted(records, key=lambda r: (0,) if r.op == "r" else (1, *position(r)))
    rows: dict[str, dict[str, Any]] = {}
    moved: dict[tuple[int, ...], dict[str, Any]] = {}
    for record in records:
        if record.op == "t":
            rows.clear()
            continue
        key = key_text(record.key)
        if record.after is None:
            if key in rows and record.op == "d":
                moved[position(record)[:2]] = rows[key]
            rows.pop(key, None)
            continue
        row = dict(record.after)
        for column in (record.extension("unavailable") or "").split(","):
            name = column.removeprefix("after.")
            if name in row:
                # A row with a new key is the one that the same change deleted under the old one. If that was not there,
                # a snapshot that was repeated has shown the row under its new key already.
                had = (moved.get(position(record)[:2]) if record.op == "c" else None) or rows.get(key) or row
                row[name] = had[name]
        rows[key] = row
    real = t.query(f"select * from {table}")
    names = list(real[0]) if real else []
    key_names = ("id", "region") if table == "parted" else ("id",)
    expected = {key_text({name: row[name] for name in key_names}): row for row in real}
    # A column is in a reader's row from the next time on that the row is written.
    equal({key: {name: row.get(name) for name in names} for key, row in rows.items()}, expected, f"table {table}")


def _same_contents(t: Trial, records: list[Record]) -> None:
    """Without a key a row is told by what it holds. Read backwards from the table as it is, each change must be there to be
    taken back; so a snapshot that was repeated does not matter."""
    table = Counter(_contents(row) for row in t.query("select * from keyless"))
    streamed = [record for record in records if record.op != "r"]
    for record in reversed(streamed):
        if record.op == "t":
            check(not table, f"keyless is empty when it was emptied at {position(record)}; {sum(table.values())} rows are left")
            return
        if record.after is not None:
            row = _contents(record.after)
            check(table[row] > 0, f"keyless has the row that {record.op} at {position(record)} wrote: {record.after}")
            table[row] -= 1
            table += Counter()
        if record.before is not None:
            table[_contents(record.before)] += 1


def _contents(row: dict[str, Any]) -> str:
    # A column that came later is null in older rows.
    return key_text({name: value for name, value in row.items() if value is not None})


# ------------------------------------------------------------ what is told of transactions
def _metadata(t: Trial, topics: dict[str, list[Record]], log: Log) -> None:
    begins: Counter[str] = Counter()
    ends: dict[str, Any] = {}
    for record in t.topic_named(f"{t.name}.transaction").read():
        if record.value["status"] == "BEGIN":
            begins[record.value["id"]] += 1
        else:
            check(record.value["id"] not in ends, f"END of {record.value['id']} comes once")
            ends[record.value["id"]] = record.value
    equal([name for name, count in begins.items() if count > 1], [], "transactions that begin twice")
    equal(set(begins), set(ends), "transactions that begin and end")
    equal({int(name.split(":")[0]) for name in ends}, log.transactions, "transactions of the metadata")
    places: dict[str, list[int]] = defaultdict(list)
    for records in topics.values():
        for record in records:
            if record.op not in (None, "r"):
                places[record.value["transaction"]["id"]].append(record.value["transaction"]["total_order"])
    for name, end in ends.items():
        equal(sorted(places[name]), list(range(1, end["event_count"] + 1)), f"numbers of the events of transaction {name}")

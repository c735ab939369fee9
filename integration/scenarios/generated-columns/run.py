"""Generated columns: in snapshot and stream alike, or in neither; and nothing is captured whose updates the server would then refuse."""

from harness.checks import check, equal
from harness.trial import Trial

MAJORS = range(14, 99)
IDENTITY = "TG-E-SOURCE-REPLICA-IDENTITY"


def major(t: Trial) -> int:
    return int(t.server.value("show server_version_num")) // 10000


def fields(t: Trial, table: str) -> list[tuple[str, dict | None, dict | None]]:
    """Operation, and the rows before and after."""
    return [(r.op, r.before, r.after) for r in t.settled_records(table) if not r.tombstone]


def left_out(t: Trial) -> None:
    """A publication of the worker's own has none of them."""
    if major(t) >= 18:
        t.sql("alter table plain add column v int generated always as (a + 1) virtual")
    t.sql("insert into plain values (1, 10, default, 'x')")
    t.connect(table_include_list="public\\.plain")
    t.sql("insert into plain values (2, 20, default, 'y')", "update plain set a = 30 where id = 2", "delete from plain where id = 1")
    two = {"id": 2, "a": 30, "c": "y"}
    equal(fields(t, "plain"),
          [("r", None, {"id": 1, "a": 10, "c": "x"}), ("c", None, two | {"a": 20}), ("u", None, two), ("d", {"id": 1, "a": None, "c": None}, None)],
          "rows without generated columns")


def published(t: Trial) -> None:
    """From 18 on a publication can have the stored ones: under FULL they are in every image."""
    if major(t) < 18:
        return
    t.sql("alter table plain replica identity full", "insert into plain values (1, 10, default, 'x')",
          f"create publication {t.name} for table plain with (publish_generated_columns = stored)")
    t.connect(publication_autocreate_mode="disabled", table_include_list="public\\.plain")
    t.sql("insert into plain values (2, 20, default, 'y')", "update plain set a = 30 where id = 2",
          "alter table plain add column u text generated always as (upper(c)) stored",
          "update plain set c = 'z' where id = 1", "delete from plain where id = 1")
    one, two = {"id": 1, "a": 10, "s": 20, "c": "x"}, {"id": 2, "a": 20, "s": 40, "c": "y"}
    later = one | {"c": "z", "u": "Z"}
    equal(fields(t, "plain"),
          [("r", None, one), ("c", None, two), ("u", two, two | {"a": 30, "s": 60}), ("u", one | {"u": "X"}, later), ("d", later, None)],
          "rows with the stored columns")


def refused(t: Trial) -> None:
    """What the server would refuse to update, or could not tell, is refused before it is published, and updates go on."""
    t.sql("create table keyed (g int generated always as (a * 2) stored primary key, a int)", "insert into keyed values (default, 1)")
    worker = t.worker()
    text = t.refused(worker, t.config(table_include_list="public\\.keyed"), IDENTITY)
    check("public.keyed" in text and '"g"' in text, f"the table and the column are named: {text}")
    t.sql("update keyed set a = 2")
    t.sql("alter table plain replica identity full", "insert into plain values (1, 10, default, 'x')")
    plain = t.config(table_include_list="public\\.plain")
    if major(t) >= 18:
        text = t.refused(worker, plain, IDENTITY)
        check("public.plain" in text and "publish_generated_columns" in text, f"the way out is named: {text}")
        t.sql("update plain set a = 11", "create table ghost (id int primary key, a int, v int generated always as (a + 1) virtual)",
              "alter table ghost replica identity full", "insert into ghost values (1, 1)",
              f"create publication {t.name} for table ghost with (publish_generated_columns = stored)")
        ghost = t.config(table_include_list="public\\.ghost", publication_autocreate_mode="disabled")
        text = t.refused(worker, ghost, IDENTITY)
        check("public.ghost" in text and '"v"' in text, f"the virtual column is named: {text}")
        return
    # Older servers leave it out of whole rows, and update them.
    t.connect(worker, table_include_list="public\\.plain")
    t.sql("update plain set a = 11")
    equal(fields(t, "plain")[-1], ("u", {"id": 1, "a": 10, "c": "x"}, {"id": 1, "a": 11, "c": "x"}), "the whole row without the column")


CASES = {"left-out": left_out, "published": published, "refused": refused}

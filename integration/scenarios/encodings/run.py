"""Databases that are not UTF-8: converted exactly where the server can, refused by name where it cannot."""

from harness.checks import check, equal
from harness.trial import Trial


def recreate(t: Trial, encoding: str) -> None:
    """The trial's database again, in another encoding."""
    t.admin.close()
    t.source.close()
    t.server.sql(f"drop database {t.name} with (force)",
                 f"create database {t.name} owner {t.name} encoding '{encoding}' template template0 lc_collate 'C' lc_ctype 'C'")


def latin1(t: Trial) -> None:
    recreate(t, "LATIN1")
    t.sql("create table t (id int primary key, v text)", "insert into t values (1, E'caf\\351')")
    t.connect()
    t.sql("insert into t values (2, E'caf\\351')")
    equal([r.after["v"] for r in t.settled_records("t")], ["café", "café"], "texts")


def sql_ascii(t: Trial) -> None:
    recreate(t, "SQL_ASCII")
    t.sql("create table t (id int primary key, v text)",
          "insert into t values (1, 'ok'), (2, E'caf\\351'), (3, E'\\303\\251'), (4, 'after')")
    text = t.refused(t.worker(), t.config(), "TG-E-SERVER-ENCODING")
    check("SQL_ASCII" in text, f"the encoding is named: {text}")


CASES = {"latin1": latin1, "sql-ascii": sql_ascii}

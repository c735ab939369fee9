"""The captured table is idle while others write: the slot moves on, without any write to the source."""

from harness.checks import equal, wait_for
from harness.database import Database
from harness.trial import Trial

LAG = "select pg_current_wal_lsn() - confirmed_flush_lsn < 1000000 from pg_replication_slots where slot_name = %s"


def run(t: Trial) -> None:
    worker = t.worker()
    connector = t.connect(worker, table_include_list="public\\.t")
    t.sql("insert into t values (1)")
    t.sql("insert into busy select g, repeat('x', 1000) from generate_series(1, 30000) g")
    wait_for(lambda: t.server.value(LAG, t.name), 60, "a small lag after writes to other tables", connector.failed)
    other = Database(t.postgres.address, dbname="postgres")
    t.later(other.close)
    t.later(lambda: other.sql(f"drop table if exists {t.name}"))
    other.sql(f"create table {t.name} (id int, v text)",
              f"insert into {t.name} select g, repeat('x', 1000) from generate_series(1, 30000) g")
    wait_for(lambda: t.server.value(LAG, t.name), 60, "a small lag after writes to another database", connector.failed)
    worker.stop()
    worker.start()
    t.sql("insert into t values (2)")
    equal([r.after["id"] for r in t.settled_records("t")], [1, 2], "ids")
    equal(t.cluster.topics(f"{t.name}.public."), [f"{t.name}.public.t"], "topics")
    equal(t.admin.query("select schemaname, tablename from pg_publication_tables where pubname = %s", t.name),
          [{"schemaname": "public", "tablename": "t"}], "tables of the publication")

"""Debezium's JDBC sink on a real Kafka Connect writes the worker's topics into a second database: the tables are equal."""

from harness.checks import ScenarioFailed, wait_for
from harness.connect import Connect
from harness.database import Database
from harness.trial import PASSWORD, Trial
from stack import connect
from stack.settings import HOST

LONG = True
MAJORS = range(14, 99)
TABLES = {"everything": "id", "large": "id", "pair": "a, b", "short": "id"}

FULL = """insert into everything values (1, -32768, 9223372036854775807, 1.5, -2.25e100, true, 123456789.125, 98765432109876543210.0123456789, 1234.56,
  'text "x" é 漢字', 'varying', 'ab', 'a name', 'MiXed', '\\x00ff10', '2024-02-29', '23:59:59.999999', '12:34:56.789', '12:34:56+02',
  '2024-02-29 12:34:56.789012', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56.789012+02', '3 days 04:05:06.7', '{"a": [1, 2.50]}',
  '{"b": null, "a": {"c": "ü"}}', '<a b="c">d</a>', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'high', '192.168.1.5/24', '10.0.0.0/8',
  '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05', B'1', 'a=>1, "b c"=>NULL', 'top.mid.leaf', '[1,5)',
  '[1,10)', '[1.5,2.5)', '[2024-01-01,2024-01-05)', '[2024-01-01 00:00:00,2024-01-02 12:30:00)', '["2024-01-01 00:00:00+00",)', 4711,
  'a:1 fat:2A', '{1,2,3}', '{9223372036854775807,0}', '{a,"b c",ü}', '{1.5,-2}', '{t,f}', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}')"""

STEPS = [
    ("inserts", [FULL, "insert into everything (id) values (2)",
                 "insert into large values (1, 1, repeat('d', 9000), decode(repeat('0a', 9000), 'hex'), jsonb_build_object('k', repeat('j', 9000)), "
                 "array(select 'm' || g from generate_series(1, 3000) g)), (2, 1, repeat('e', 9000), null, '{}', '{}')",
                 "insert into pair values (1, 'x', 1, null), (2, 'x', 2, default), (1, 'y', 3, 'n')",
                 "insert into short select n, 'v' || n from generate_series(1, 200) n"]),
    ("updates", ["update everything set tx = 'other', n = -0.001, by = '\\x', m = 'low', tz = null, ai = '{}', d = '1969-12-31' where id = 1",
                 "update everything set tx = '', iv = '-1 day', yes = false, ts = '1900-01-01 00:00:00.000001' where id = 2",
                 "update pair set note = null, v = 4 where a = 2", "update short set v = v || '!' where id % 3 = 0"]),
    ("large values that were not sent", ["update large set v = 2", "update large set doc = 'short now' where id = 2",
                                         "begin; update large set v = 3; update large set js = null where id = 1; commit"]),
    ("changed keys", ["update pair set a = 10 where b = 'y'", "update pair set b = 'z', v = 9 where a = 2",
                      "update large set id = 3 where id = 1", "update short set id = id + 1000 where id <= 5"]),
    ("deletes", ["delete from short where id > 100", "delete from everything where id = 2", "delete from large where id = 2",
                 "delete from pair where a = 1"]),
    ("a key that comes again", ["begin; delete from short where id = 50; insert into short values (50, 'again'); commit",
                                "insert into everything (id, tx) values (2, 'again')"]),
    ("a truncate", ["begin; truncate short; insert into short values (1, 'after'); commit", "truncate large, pair",
                    "insert into pair values (7, 'x', 7, 'after')"]),
]


def rows(database: Database, table: str) -> list[str]:
    """A table as text, column by column."""
    found = database.query(f"select t::text as row from {table} t order by {TABLES[table]}")
    return [row["row"] for row in found]


def run(t: Trial) -> None:
    target_name = f"{t.name}_sink"
    target = Database(t.postgres.address, dbname=target_name)
    t.later(lambda: t.server.sql(f"drop database if exists {target_name} with (force)"))
    t.later(target.close)
    t.server.sql(f"create database {target_name} owner {t.name}")
    target.sql((t.folder / "setup.sql").read_text())
    target.sql(*(f"alter table {table} owner to {t.name}" for table in TABLES))
    t.admin.sql("create extension if not exists hstore")
    t.connect()
    worker = Connect(t.directory, t.name, connect.jars(connect.SINK), t.kafka.address, t.registry.address,
                     offset_flush_interval_ms="1000", scheduled_rebalance_max_delay_ms="500")
    t.later(worker.kill)
    worker.start()
    sink = worker.create(f"{t.name}-sink", {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector", "tasks.max": "1",
        "topics": ",".join(f"{t.name}.public.{table}" for table in TABLES),
        "connection.url": f"jdbc:postgresql://{HOST}:{t.postgres.port}/{target_name}?stringtype=unspecified",
        "connection.username": t.name, "connection.password": PASSWORD,
        "insert.mode": "upsert", "primary.key.mode": "record_key", "delete.enabled": "true", "truncate.enabled": "true",
        "schema.evolution": "none", "collection.name.format": "${source.table}",
        "consumer.override.isolation.level": "read_committed", "consumer.override.metadata.max.age.ms": "1000",
        # A key of an integer and a text is more than Connect's simple converter can read of what it has written.
        "header.converter": "org.apache.kafka.connect.storage.StringConverter",
    })
    for what, statements in STEPS:
        t.sql(*statements)
        t.settle()
        for table in TABLES:
            real = rows(t.source, table)
            try:
                wait_for(lambda: rows(target, table) == real, 60, f"{table} to be equal after {what}", sink.failed)
            except ScenarioFailed as failure:
                have = rows(target, table)
                other = next(((one, two) for one, two in zip(real, have) if one != two), (f"{len(real)} rows", f"{len(have)} rows"))
                raise ScenarioFailed(f"{failure}\n  source {other[0][:3000]}\n  target {other[1][:3000]}") from failure

"""A role whose settings would change the text of values, or cut its sessions off: nothing of it shows."""

import time

from harness.checks import equal
from harness.trial import Trial


def run(t: Trial) -> None:
    for setting, value in {
        "datestyle": "German", "timezone": "Asia/Kolkata", "intervalstyle": "sql_standard", "bytea_output": "escape",
        "extra_float_digits": "0", "search_path": "pg_temp", "idle_in_transaction_session_timeout": "1s",
        "statement_timeout": "1s", "lock_timeout": "1s", "default_transaction_isolation": "serializable",
        "default_transaction_read_only": "on",
    }.items():
        t.server.sql(f"alter role {t.name} set {setting} = '{value}'")
    # The publication is made all the same.
    t.connect()
    t.admin.sql("set datestyle = 'ISO'; insert into public.t select 2, ts, tz, b, iv, f, r, d, m from public.t where id = 1")
    # Longer than any of the timers.
    time.sleep(2)
    t.admin.sql("update public.t set id = 3 where id = 2")
    records = [r for r in t.settled_records("t") if r.after]
    equal([r.op for r in records], ["r", "c", "c"], "operations")
    for record in records:
        row = record.after
        equal((row["ts"], row["tz"], row["b"], row["iv"], row["f"], row["d"]),
              (1706781600000000, "2024-02-01T10:00:00.000000Z", b"\x00\xff", 93600000000, 5e-324, 19754),
              f"row {row['id']}")
        equal(row["r"], records[0].after["r"], "float4")
        equal(row["m"], records[0].after["m"], "money")

"""Mixed case, dots, quotes and other alphabets in the names of schema, table and columns."""

from harness.checks import equal
from harness.trial import Trial


def run(t: Trial) -> None:
    t.connect(field_name_adjustment_mode="avro_unicode", schema_name_adjustment_mode="avro_unicode",
              table_include_list='Sales\\.EU\\.Order "2024"')
    table = '"Sales.EU"."Order ""2024"""'
    t.sql(f"""insert into {table} values (10, 20, 30, 'тт', '語語', 'ss')""", f"""update {table} set "Id" = 11 where "Id" = 10""",
          f"delete from {table}")
    records = t.settled_records("Sales.EU.Order__2024_")
    equal([(r.op, list(r.key.values())) for r in records],
          [("r", [1]), ("c", [10]), ("d", [10]), (None, [10]), ("c", [11]), ("d", [1]), (None, [1]), ("d", [11]), (None, [11])],
          "records")
    equal(list(records[0].after.values()), [1, 2, 3, "т", "語", "s"], "values of the snapshot's row")
    equal(list(records[1].after.values()), [10, 20, 30, "тт", "語語", "ss"], "values of the streamed row")
    source = records[1].value["source"]
    equal((source["schema"], source["table"]), ("Sales.EU", 'Order "2024"'), "names in source")
    t.exactly_once(records)

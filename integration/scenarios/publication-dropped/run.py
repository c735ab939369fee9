"""The publication goes away, or does not cover what is captured: told, not passed over."""

from harness.checks import check, equal
from harness.trial import Trial


def dropped(t: Trial) -> None:
    worker = t.worker()
    connector = t.connect(worker)
    t.sql("insert into t values (1)")
    t.settle()
    t.sql(f"drop publication {t.name}", "insert into t values (2)", f"create publication {t.name} for table t",
          "insert into t values (3)")
    trace = connector.wait_failed("TG-E-PUBLICATION")
    check(t.name in trace, f"the trace names the publication: {trace}")
    equal([r.after["id"] for r in t.topic("t").read()], [1], "ids: nothing after the gap")
    connector.fail_again("TG-E-PUBLICATION")
    equal([r.after["id"] for r in t.topic("t").read()], [1], "ids after a restart")


def uncovered(t: Trial) -> None:
    t.sql(f"create publication {t.name} for table t")
    worker = t.worker()
    config = t.config(publication_autocreate_mode="disabled", table_include_list="public\\.t,public\\.uncovered")
    text = t.refused(worker, config, "TG-E-PUBLICATION-CHANGED")
    check("uncovered" in text, f"the table that is not published is named: {text}")


CASES = {"dropped": dropped, "uncovered": uncovered}

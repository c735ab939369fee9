"""The cases: folders of SQL and a connector's configuration, and what Debezium was recorded to make of them."""

import json
import re
import tarfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from stack.settings import ROOT, StackError

from .values import parse

FOLDER = ROOT / "integration" / "golden" / "cases"
RECORDED = ROOT / "integration" / "golden" / "recorded.tar.xz"
DIRECTIVES = ("wait", "stop", "start", "sleep")
# Values that stand in the recordings. Runs have others of the same length, which are turned back.
PREFIX, DATABASE = "shop", "golden"


@dataclass
class Case:
    """One folder."""

    folder: Path
    # What was recorded, by file name; empty if nothing was.
    recorded: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The folder's."""
        return self.folder.name

    @cached_property
    def config(self) -> dict[str, str]:
        """The connector's configuration, without addresses."""
        return json.loads((self.folder / "connector.json").read_text("utf-8"))

    @cached_property
    def worker(self) -> dict[str, str]:
        """What only the worker is told: what it refuses is left out, so that the rest can be compared."""
        path = self.folder / "worker.json"
        return json.loads(path.read_text("utf-8")) if path.exists() else {}

    @property
    def recorded_only(self) -> str:
        """Why it cannot be run with several connectors on one database; empty if it can."""
        path = self.folder / "recorded-only"
        return path.read_text("utf-8").strip() if path.exists() else ""

    @property
    def needs(self) -> str:
        """The extension that a server does not come with and the case needs; empty if none."""
        path = self.folder / "needs"
        return path.read_text("utf-8").strip() if path.exists() else ""

    @property
    def since(self) -> tuple[int, str]:
        """The first version of the server that has what the case is about, and what that is."""
        path = self.folder / "since"
        major, _, what = path.read_text("utf-8").strip().partition(" ") if path.exists() else ("0", "", "")
        return int(major), what

    @property
    def live(self) -> bool:
        """Whether Debezium and the worker can be compared side by side."""
        return not self.recorded_only

    @property
    def setup(self) -> str:
        """SQL before the connectors begin."""
        return (self.folder / "setup.sql").read_text("utf-8")

    @cached_property
    def steps(self) -> list[tuple[str, str]]:
        """The workload cut at its directives: ("sql", text), ("wait", ""), ("sleep", "900"), …"""
        path = self.folder / "workload.sql"
        steps: list[tuple[str, str]] = []
        for line in path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []:
            if line.startswith("-- @"):
                word, _, argument = line[4:].strip().partition(" ")
                if word not in DIRECTIVES:
                    raise StackError(f"{path}: unknown directive {line.strip()}")
                steps.append((word, argument.strip()))
            elif steps and steps[-1][0] == "sql":
                steps[-1] = ("sql", steps[-1][1] + line)
            else:
                steps.append(("sql", line))
        return [step for step in steps if step[0] != "sql" or step[1].strip()]

    @property
    def streams(self) -> bool:
        """Whether anything comes after the snapshot."""
        return self.config.get("snapshot.mode") != "initial_only"

    @property
    def heartbeats(self) -> str:
        """How topics of heartbeats begin."""
        return self.config.get("topic.heartbeat.prefix", "__debezium-heartbeat") + "."

    @property
    def context_headers(self) -> bool:
        """Whether the case is about the headers that every record has."""
        return self.name.startswith("headers-context")

    @property
    def adjusts_for_avro(self) -> bool:
        """Whether the case names a converter for which Debezium adjusts names by itself."""
        return any(self.config.get(f"{side}.converter", "").endswith("AvroConverter") for side in ("key", "value"))

    @property
    def partitions(self) -> int:
        """Partitions of its topics."""
        return max([int(value) for key, value in self.config.items() if key.endswith("partition.topic.num")], default=1)

    def lines(self, phase: str) -> list[dict[str, Any]]:
        """Recorded records of `snapshot`, `stream` or `heartbeat`; the member `avro` has what belongs to Avro."""
        found = [parse(line) for line in self.recorded.get(f"{phase}.jsonl", "").split("\n") if line]
        avro = [json.loads(line) for line in self.recorded.get(f"{phase}.avro.jsonl", "").split("\n") if line]
        return [record | {"avro": avro[at] if at < len(avro) else {}} for at, record in enumerate(found)]

    def schema(self, topic: str, side: str, version: int, kind: str) -> Any:
        """A recorded schema, parsed; None if there is none."""
        name = topic.removeprefix(self.config["topic.prefix"] + ".").removeprefix("public.")
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
        text = self.recorded.get(f"{name}.{side}{'' if version == 1 else f'.{version}'}.{kind}")
        return None if text is None else parse(text)

    @property
    def refused_by_avro(self) -> bool:
        """Whether Confluent's converter could not write it."""
        lines = self.recorded.get("snapshot.avro.jsonl", "") + self.recorded.get("stream.avro.jsonl", "")
        return any(name.endswith(".avsc.error") for name in self.recorded) or "_error\"" in lines


def cases() -> list[Case]:
    """All, in order of name."""
    recorded: dict[str, dict[str, str]] = {}
    with tarfile.open(RECORDED) as files:
        for member in files:
            if member.isfile() and (content := files.extractfile(member)) is not None:
                *_, case, name = Path(member.name).parts
                recorded.setdefault(case, {})[name] = content.read().decode("utf-8")
    return [Case(path.parent, recorded.get(path.parent.name, {})) for path in sorted(FOLDER.glob("*/connector.json"))]

"""Downloads from Maven Central by Maven itself, kept in the stack's downloads."""

import os
import shutil
import subprocess
from pathlib import Path

from .settings import DOWNLOADS, StackError


def java(*options: str) -> list[str]:
    """The Java program, 17 or later, set for a quick start; STACK_JAVA_OPTS may say otherwise, for measurements."""
    program = shutil.which("java")
    if program is None:
        raise StackError("java is missing; install it with: apt-get install openjdk-17-jre-headless")
    chosen = os.environ.get("STACK_JAVA_OPTS", "").split()
    return [program, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *options, *chosen]


def maven(goal: str, *arguments: str) -> None:
    """Run one Maven goal; its output is shown only when it fails."""
    program = shutil.which("mvn")
    if program is None:
        raise StackError("mvn is missing; install it with: apt-get install maven")
    done = subprocess.run([program, "-B", "-q", goal, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        output = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise StackError(f"mvn {goal} {' '.join(arguments)} failed; is Maven Central reachable?\n{output}")


def artifact(coordinates: str, file_name: str) -> Path:
    """One file `group:artifact:version[:type[:classifier]]`; downloaded once."""
    target = DOWNLOADS / "maven" / file_name
    if not target.exists():
        print(f"fetching {coordinates}")
        maven("dependency:copy", f"-Dartifact={coordinates}", f"-DoutputDirectory={target.parent}")
        if not target.exists():
            raise StackError(f"Maven copied {coordinates} under another name than {file_name}")
    return target

"""The program as a person runs it from a shell: one command, its output, its end."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

from .checks import ScenarioFailed, check, wait_for
from .worker import binary

# Long enough for a machine that builds beside.
TIMEOUT = 60


class Command:
    """One run of `tidegate …`. It dies with the harness."""

    def __init__(self, directory: Path, name: str, *arguments: object, environment: dict[str, str] | None = None):
        self._out = directory / f"{name}.out"
        self._err = directory / f"{name}.err"
        command = [str(binary()), *map(str, arguments)]
        if setpriv := shutil.which("setpriv"):
            command = [setpriv, "--pdeathsig", "KILL", *command]
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                             start_new_session=True, env={**os.environ, **(environment or {})})

    @property
    def out(self) -> str:
        """Standard output so far."""
        return self._out.read_text("utf-8", "replace")

    @property
    def err(self) -> str:
        """Standard error so far."""
        return self._err.read_text("utf-8", "replace")

    def records(self) -> list[dict[str, Any]]:
        """Standard output as JSON lines; a line that is not complete yet is left out."""
        return [json.loads(line) for line in self.out.splitlines(keepends=True) if line.endswith("\n")]

    def wait_records(self, count: int, timeout: float = TIMEOUT) -> list[dict[str, Any]]:
        """Wait for so many."""
        return wait_for(lambda: found if len(found := self.records()) >= count else None, timeout,
                        f"{count} records of the command ({self.err})", self._ended)

    def wait_err(self, text: str, timeout: float = TIMEOUT) -> None:
        """Wait until standard error holds a text."""
        wait_for(lambda: text in self.err, timeout, f"{text!r} on standard error ({self.err})", self._ended)

    def _ended(self) -> str | None:
        if self._process.poll() is None:
            return None
        return f"the command ended with status {self._process.returncode}: {self.err}"

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; one that has ended needs none."""
        if self.running:
            self._process.send_signal(number)

    def wait(self, timeout: float = TIMEOUT) -> int:
        """Wait for its end; the exit status."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise ScenarioFailed(f"the command did not end within {timeout:g} s: {self.err}") from error

    def succeed(self, timeout: float = TIMEOUT) -> "Command":
        """Wait for its end, which must be a good one."""
        status = self.wait(timeout)
        check(status == 0, f"the command succeeds; status {status}: {self.err}{self.out}")
        return self

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.wait()

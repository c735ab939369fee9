"""A worker process of the build under test."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any, Mapping

from stack.process import tail
from stack.settings import HOST, ROOT

from .checks import ScenarioFailed, check, equal, wait_for
from .rest import Answer, Rest, quoted


def binary() -> Path:
    """The program: TIDEGATE_BIN, or the newest of cargo's builds."""
    if chosen := os.environ.get("TIDEGATE_BIN"):
        return Path(chosen)
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    built = [path for kind in ("debug", "release") if (path := target / kind / "tidegate").exists()]
    if not built:
        raise ScenarioFailed(f"no worker in {target}; run `make build`")
    return max(built, key=lambda path: path.stat().st_mtime)


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody has now."""
    while True:
        first = free_port()
        try:
            with contextlib.ExitStack() as probes:
                for number in range(first, first + count):
                    probes.enter_context(socket.socket()).bind((HOST, number))
            return first
        except (OSError, OverflowError):
            continue


class Worker:
    """One worker with a directory of its own. It dies with the harness."""

    def __init__(self, directory: Path, properties: Mapping[str, str], connectors: Mapping[str, str] | None = None):
        self.port = free_port()
        self.rest = Rest(f"http://{HOST}:{self.port}")
        self.log = directory / "worker.log"
        self._process: subprocess.Popen | None = None
        directory.mkdir(parents=True, exist_ok=True)
        file = directory / "worker.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in
                                {**properties, "listeners": f"http://{HOST}:{self.port}"}.items()))
        self._command = [str(binary()), "worker", str(file)]
        if setpriv := shutil.which("setpriv"):
            self._command = [setpriv, "--pdeathsig", "KILL", *self._command]
        for name, text in (connectors or {}).items():
            path = directory / f"{name}.json"
            path.write_text(text)
            self._command.append(str(path))

    def launch(self, **environment: str) -> None:
        """Start it; does not wait."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                             start_new_session=True, env={**os.environ, **environment})

    def start(self, timeout: float = 30, **environment: str) -> "Worker":
        """Start it and wait until REST answers."""
        self.launch(**environment)
        wait_for(self.answers, timeout, "the worker's REST endpoint", self.ended)
        return self

    def answers(self) -> bool:
        """Whether REST answers."""
        try:
            return self.rest("GET", "/").status == 200
        except OSError:
            return False

    def ended(self) -> str | None:
        """Why nothing can be expected of it any more."""
        if self._process is None or self._process.poll() is None:
            return None
        return f"the worker ended with status {self._process.returncode}: {tail(self.log, 3)}"

    @property
    def pid(self) -> int:
        """Its PID, while it runs."""
        check(self._process is not None, "the worker was started")
        return self._process.pid  # type: ignore[union-attr]

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self, timeout: float = 20) -> int:
        """SIGTERM, as a service manager would; returns the exit status."""
        check(self._process is not None, "the worker was started")
        self._process.send_signal(signal.SIGTERM)  # type: ignore[union-attr]
        return self.wait_exit(timeout)

    def wait_exit(self, timeout: float = 20) -> int:
        """Wait until it has ended; returns the exit status."""
        check(self._process is not None, "the worker was started")
        try:
            return self._process.wait(timeout)  # type: ignore[union-attr]
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise ScenarioFailed(f"the worker did not end within {timeout:g} s") from error

    def log_text(self) -> str:
        """All that it has logged."""
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

    def wait_log(self, text: str, timeout: float = 30) -> None:
        """Wait until the log holds a text."""
        wait_for(lambda: text in self.log_text(), timeout, f"{text!r} in the worker's log", self.ended)

    # ------------------------------------------------------------ connectors
    def create(self, name: str, config: Mapping[str, Any], *, running: bool = True) -> "Connector":
        """POST a connector; it must be taken, and by default run."""
        answer = self.rest("POST", "/connectors", {"name": name, "config": dict(config)}, timeout=90)
        equal(answer.status, 201, f"status of POST /connectors ({answer.message})")
        connector = Connector(self, name)
        if running:
            connector.wait_running()
        return connector

    def connector(self, name: str) -> "Connector":
        """A handle on one that is there already."""
        return Connector(self, name)


class Connector:
    """One connector of a worker."""

    def __init__(self, worker: Worker, name: str):
        self.worker = worker
        self.name = name
        self._path = f"/connectors/{quoted(name)}"

    def request(self, method: str, path: str = "", body: Any = None) -> Answer:
        """A request below its own path."""
        return self.worker.rest(method, self._path + path, body)

    def status(self) -> dict[str, Any]:
        """The status as REST gives it; empty while there is none."""
        try:
            answer = self.request("GET", "/status")
        except OSError:
            return {}
        return answer.body if answer.status == 200 else {}

    def trace(self) -> str | None:
        """Why it or its task is FAILED; None while neither is."""
        status = self.status()
        parts = [status["connector"], *status["tasks"]] if status else []
        return next((part.get("trace", "(no trace)") for part in parts if part["state"] == "FAILED"), None)

    def failed(self) -> str | None:
        """For `wait_for`: why nothing more will come."""
        trace = self.trace()
        return self.worker.ended() or (None if trace is None else f"the connector is FAILED: {trace}")

    def states(self) -> list[str]:
        """State of the connector, then of its tasks."""
        status = self.status()
        return [part["state"] for part in (status["connector"], *status["tasks"])] if status else []

    def wait_running(self, timeout: float = 60) -> None:
        """Wait until it and its task run. A failure ends the wait."""
        wait_for(lambda: self.states() == ["RUNNING", "RUNNING"], timeout, f"{self.name} RUNNING", self.failed)

    def wait_states(self, *states: str, timeout: float = 60) -> None:
        """Wait for these states of the connector and its tasks."""
        wait_for(lambda: self.states() == list(states), timeout, f"{self.name} {states}", self.worker.ended)

    def wait_failed(self, code: str = "", timeout: float = 60) -> str:
        """Wait until it is FAILED; the trace must begin with the code `TG-E-…`."""
        trace = wait_for(self.trace, timeout, f"{self.name} FAILED", self.worker.ended)
        check(trace.startswith(code), f"the trace begins with {code}; it is: {trace}")
        return trace

    def fail_again(self, code: str) -> str:
        """Restart it; it must fail anew with the code, not just still show the old failure."""
        known = self.worker.log_text().count(code)
        self.restart()
        wait_for(lambda: self.worker.log_text().count(code) > known, 60, f"another {code} in the log", self.worker.ended)
        return self.wait_failed(code)

    def restart(self) -> None:
        """Restart it and its tasks."""
        answer = self.request("POST", "/restart?includeTasks=true")
        check(answer.status in (202, 204), f"a restart is accepted; got {answer.status} {answer.message}")

    def put(self, action: str) -> None:
        """pause, resume or stop."""
        answer = self.request("PUT", f"/{action}")
        equal(answer.status, 204 if action == "stop" else 202, f"status of PUT …/{action} ({answer.message})")

    def delete(self) -> None:
        """Delete it and wait until it is gone."""
        answer = self.request("DELETE")
        equal(answer.status, 204, f"status of DELETE ({answer.message})")
        wait_for(lambda: self.request("GET", "/status").status == 404, 60, f"{self.name} gone", self.worker.ended)

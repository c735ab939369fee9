"""One background process: started with its output in a log, found again by a PID file, stopped or killed."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Callable, Mapping, Sequence

from .settings import HOST, StackError


class Process:
    """A process that outlives the command that started it.

    The PID file holds the PID and the start time that the kernel gives; a PID that another process has by now is
    never taken for ours.
    """

    def __init__(self, name: str, directory: Path):
        self.name = name
        self.directory = directory
        self.log = directory / f"{name}.log"
        self._pid_file = directory / f"{name}.pid"

    def pid(self) -> int | None:
        """The PID, if the process lives."""
        running = self._running()
        return None if running is None else running[0]

    def port(self) -> int | None:
        """The port it was started on, if it lives: that counts, whatever the environment says by now."""
        running = self._running()
        return None if running is None else running[1]

    def _running(self) -> tuple[int, int] | None:
        try:
            pid, started, port = self._pid_file.read_text().split()
        except (FileNotFoundError, ValueError):
            return None
        return (int(pid), int(port)) if _start_time(int(pid)) == started else None

    def launch(self, command: Sequence[str | Path], port: int, *, env: Mapping[str, str] | None = None,
               cwd: Path | None = None, **user) -> None:
        """Start it; does not wait. Output is appended to the log."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            child = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     env={**os.environ, **(env or {})}, cwd=cwd, start_new_session=True, **user)
        self._pid_file.write_text(f"{child.pid} {_start_time(child.pid)} {port}\n")

    def wait_until(self, ready: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait until it answers. A process that dies meanwhile, or the time, ends the wait with the log's end."""
        deadline = time.monotonic() + seconds
        while not ready():
            if self.pid() is None:
                raise StackError(f"{what} ended while starting; {self.log} says:\n{tail(self.log)}")
            if time.monotonic() > deadline:
                raise StackError(f"{what} does not answer after {seconds:g} s; {self.log} says:\n{tail(self.log)}")
            time.sleep(0.1)

    def stop(self, seconds: float, with_signal: int = signal.SIGTERM) -> None:
        """Ask it to end; kill it when it has not in time."""
        pid = self.pid()
        if pid is not None:
            os.kill(pid, with_signal)
            if not self._wait_gone(seconds):
                self.kill()
        self._pid_file.unlink(missing_ok=True)

    def kill(self) -> None:
        """kill -9, its children too."""
        pid = self.pid()
        if pid is not None:
            # Stopped, it makes no more children.
            os.kill(pid, signal.SIGSTOP)
            family = [pid, *_children(pid)]
            for member in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member, signal.SIGKILL)
            deadline = time.monotonic() + 10
            while any(map(is_alive, family)) and time.monotonic() < deadline:
                time.sleep(0.02)
        self._pid_file.unlink(missing_ok=True)

    def signal(self, number: int) -> None:
        """Send any other signal (SIGSTOP, SIGCONT, SIGHUP) to it and its children."""
        pid = self.pid()
        if pid is None:
            raise StackError(f"{self.name} is not running")
        for member in [pid, *_children(pid)]:
            os.kill(member, number)

    def _wait_gone(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.pid() is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True


def require_free_port(port: int, what: str, variable: str) -> None:
    """Refuse to start on a port that somebody else has. One that a dying process still holds is waited for."""
    deadline = time.monotonic() + 5
    while True:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
                return
            except OSError as error:
                if time.monotonic() > deadline:
                    raise StackError(f"port {port} for {what} is taken ({error.strerror}); if a stack of another checkout "
                                     f"has it, run `make down` there, or choose another port with {variable}=N") from error
        time.sleep(0.1)


def tail(path: Path, lines: int = 20) -> str:
    """The last lines of a log."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - 64 * 1024))
            return "\n".join(log.read().decode("utf-8", "replace").splitlines()[-lines:])
    except FileNotFoundError:
        return "(no log)"


def is_alive(pid: int) -> bool:
    """Whether a process runs. A dead one that nobody has fetched the status of does not."""
    return bool(_stat(pid))


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may itself hold blanks; empty for a dead process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [] if fields[0] in "ZX" else fields


def _start_time(pid: int) -> str | None:
    fields = _stat(pid)
    return fields[19] if fields else None


def _children(pid: int) -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and (fields := _stat(int(entry.name))) and fields[1] == str(pid)]

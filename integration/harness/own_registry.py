"""The registry of `integration/registry` as a part that a scenario can order faults from."""

import re
import sys
from pathlib import Path
from typing import Any

from stack.process import Process
from stack.settings import HOST, ROOT

from .checks import check
from .rest import Rest


class OwnRegistry:
    """One registry of a scenario's own. It keeps what was registered when it is killed and started again."""

    def __init__(self, directory: Path, port: int, *options: str):
        self.port = port
        self._options = options
        self.process = Process("own-registry", directory)
        self._journal = directory / "registry.journal"
        self._rest = Rest(self.address)

    @property
    def address(self) -> str:
        """What a converter is given as schema.registry.url."""
        return f"http://{HOST}:{self.port}"

    def start(self) -> None:
        """Start it unless it runs, and wait until it answers."""
        if self.process.pid() is None:
            command = [sys.executable, "-m", "registry", "--port", str(self.port), "--journal", self._journal, *self._options]
            self.process.launch(command, self.port, env={"PYTHONPATH": str(ROOT / "integration")})
        # It goes through its journal first.
        self.process.wait_until(self._answers, 60, "the registry")

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()

    def fault(self, answer: int | str, path: str = ".*", times: int = -1) -> None:
        """Answer requests whose `METHOD /path` matches with a status, or with "broken", "close" or "hang"."""
        self._ok("POST", "/faults", {"answer": answer, "path": path, "times": times})

    def heal(self) -> None:
        """No more faults; also forgets the requests seen."""
        self._ok("DELETE", "/faults")

    def requests(self, path: str = ".*") -> list[str]:
        """Requests seen since the last `heal`, as `METHOD /path`."""
        return [request for request in self._ok("GET", "/faults")["requests"] if re.search(path, request)]

    def set_mode(self, mode: str) -> None:
        """READWRITE or READONLY, for all subjects."""
        self._ok("PUT", "/mode", {"mode": mode})

    def _answers(self) -> bool:
        try:
            return self._rest("GET", "/faults").status == 200
        except OSError:
            return False

    def _ok(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._rest(method, path, body)
        check(answer.status == 200, f"the registry takes {method} {path}; it says {answer.status} {answer.message}")
        return answer.body

"""pgbouncer in front of a server, from Debian's package. Where it cannot be had, the reason is told."""

import shutil
import socket
import subprocess
from pathlib import Path

from .process import Process
from .settings import HOST, is_root, server_user

PACKAGE = "pgbouncer"


def install() -> str | None:
    """Install the package unless it is there. Returns why that cannot be done, if it cannot."""
    if program() is not None:
        return None
    if not is_root() or shutil.which("apt-get") is None:
        return f"{PACKAGE} is missing; as root: apt-get install --no-install-recommends {PACKAGE}"
    print(f"installing {PACKAGE}", flush=True)
    done = subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", PACKAGE],
                          env={"DEBIAN_FRONTEND": "noninteractive", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return None if done.returncode == 0 else f"{PACKAGE} cannot be installed: {done.stderr[-400:]}"


def program() -> str | None:
    """Where the program is."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


class PgBouncer:
    """One pooler for all databases of a server."""

    def __init__(self, directory: Path, port: int, server_port: int, **settings: str):
        self.port = port
        self._process = Process("pgbouncer", directory)
        self._settings = {"listen_addr": HOST, "listen_port": port, "unix_socket_dir": "", "auth_type": "any", **settings}
        self._server_port = server_port

    def start(self, user: str, password: str) -> None:
        """Start it; all its connections to the server are this user's."""
        directory = self._process.directory
        directory.mkdir(parents=True, exist_ok=True)
        file = directory / "pgbouncer.ini"
        quoted = password.replace("'", "''")
        file.write_text(f"[databases]\n* = host={HOST} port={self._server_port} user={user} password='{quoted}'\n[pgbouncer]\n"
                        + "".join(f"{key} = {value}\n" for key, value in self._settings.items()))
        self._process.launch([program() or PACKAGE, file], self.port, **server_user())
        self._process.wait_until(self._answers, 20, "pgbouncer")

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()

    def _answers(self) -> bool:
        try:
            with socket.create_connection((HOST, self.port), 2):
                return True
        except OSError:
            return False

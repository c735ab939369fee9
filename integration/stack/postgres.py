"""PostgreSQL with logical replication on: Debian's server, or one of 13 to 18 from Maven Central.

Superuser `postgres` needs no password from this machine; every other role needs its own (SCRAM).
"""

import platform
import re
import shutil
import signal
import socket
import struct
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Mapping

from . import fetch
from .process import Process, is_alive, require_free_port
from .settings import DIR, DOWNLOADS, HOST, PG_MAJOR, StackError, is_root, port, server_user

# Binaries without an installer, by io.zonky.test on Maven Central (Apache-2.0); contrib is in them.
VERSIONS = {"13": "13.23.0", "14": "14.24.0", "15": "15.19.0", "16": "16.15.0", "17": "17.11.0", "18": "18.6.0"}

SETTINGS = {
    "wal_level": "logical",
    "max_wal_senders": "30",
    "max_replication_slots": "30",
    "max_connections": "120",
    "shared_buffers": "64MB",
    "max_wal_size": "1GB",
    "timezone": "'UTC'",
    # 13 would keep passwords as MD5, which is not what the access rules below ask for.
    "password_encryption": "'scram-sha-256'",
    # Survives kill -9, not a power cut: nothing here is worth a disk flush.
    "fsync": "off",
    # The path of a socket is limited to 107 bytes, that of a checkout is not.
    "unix_socket_directories": "''",
    "listen_addresses": f"'{HOST}'",
}

ACCESS = f"""\
host all         postgres {HOST}/32 trust
host all         all      {HOST}/32 scram-sha-256
host replication all      {HOST}/32 scram-sha-256
"""


class Postgres:
    """One server. `major` chooses one from Maven Central; without it Debian's newest is taken."""

    def __init__(self, major: str = PG_MAJOR, *, name: str = "", at_port: int | None = None,
                 settings: Mapping[str, str] | None = None):
        if major and major not in VERSIONS:
            raise StackError(f"PG={major}: there is {', '.join(VERSIONS)}, or nothing for Debian's own")
        self.major = major
        self.name = name or (f"postgres-{major}" if major else "postgres")
        self.settings = {**SETTINGS, **(settings or {})}
        self.data = DIR / self.name / "data"
        self.process = Process(self.name, DIR / self.name)
        self.port = at_port or self.process.port() or port("STACK_PG_PORT", 15432) + int(major or 0)

    @property
    def address(self) -> str:
        """For people and for connection strings."""
        return f"postgres://postgres@{HOST}:{self.port}/postgres"

    def install(self) -> None:
        """Fetch the server if it is not there."""
        self._binaries()

    @property
    def home(self) -> Path:
        """Where its programs are, and for one from Maven Central all of its files."""
        return self._binaries().parent

    def launch(self) -> None:
        """Start it unless it runs; does not wait."""
        if self.process.pid() is not None:
            return
        require_free_port(self.port, "PostgreSQL", "STACK_PG_PORT")
        self._initialise()
        self._forget_dead()
        command = [self._binaries() / "postgres", "-D", self.data, "-p", str(self.port)]
        self.process.launch(command, self.port, cwd=self.data, **server_user())

    def wait(self) -> None:
        """Wait until it takes connections; after a crash that includes its recovery."""
        self.process.wait_until(self.ready, 60, "PostgreSQL")

    def ready(self) -> bool:
        """Whether the superuser can log in. A server that is still starting answers with an error instead."""
        parameters = b"user\0postgres\0database\0postgres\0\0"
        try:
            with socket.create_connection((HOST, self.port), 2) as connection:
                connection.sendall(struct.pack(">ii", 8 + len(parameters), 3 << 16) + parameters)
                answer = connection.recv(1)
                connection.sendall(b"X\0\0\0\4")
                return answer == b"R"
        except OSError:
            return False

    def stop(self) -> None:
        """Fast shutdown."""
        self.process.stop(60, signal.SIGINT)

    def kill(self) -> None:
        """kill -9 of the server and its sessions."""
        self.process.kill()

    def start(self) -> None:
        """`launch` and `wait`."""
        self.launch()
        self.wait()

    def remove(self) -> None:
        """Stop it and delete its data."""
        self.stop()
        shutil.rmtree(self.data.parent, ignore_errors=True)

    def _initialise(self) -> None:
        """Make the data directory, owned by the user the server runs as."""
        if (self.data / "PG_VERSION").exists():
            return
        home = self.data.parent
        shutil.rmtree(self.data, ignore_errors=True)
        home.mkdir(parents=True, exist_ok=True)
        self.data.mkdir(mode=0o700)
        if is_root():
            shutil.chown(self.data, server_user()["user"], server_user()["group"])
        command = [self._binaries() / "initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
                   "--locale=C", "--no-sync"]
        done = subprocess.run(command, cwd=self.data, capture_output=True, text=True, **server_user())
        if done.returncode != 0:
            shutil.rmtree(self.data, ignore_errors=True)
            raise StackError(f"initdb failed:\n{done.stdout}{done.stderr}")
        (self.data / "pg_hba.conf").write_text(ACCESS)
        with (self.data / "postgresql.conf").open("a") as conf:
            conf.writelines(f"{key} = {value}\n" for key, value in self.settings.items())

    def _forget_dead(self) -> None:
        """Remove the lock file of a server that was killed: to PostgreSQL a PID that nobody has reaped yet is alive."""
        lock = self.data / "postmaster.pid"
        if lock.exists() and not is_alive(int(lock.read_text().split()[0])):
            lock.unlink()

    def _binaries(self) -> Path:
        return self._fetched() if self.major else self._debian()

    @staticmethod
    def _debian() -> Path:
        found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
        if not found:
            raise StackError("no PostgreSQL server is installed; install one with: apt-get install postgresql\n"
                             f"or take one from Maven Central: PG={list(VERSIONS)[-1]} make up")
        return max(found, key=lambda path: int(re.sub(r"\D", "", path.parent.name) or 0))

    def _fetched(self) -> Path:
        version = VERSIONS[self.major]
        target = DOWNLOADS / f"postgresql-{version}"
        if not target.exists():
            machine = {"x86_64": "amd64", "aarch64": "arm64v8"}.get(platform.machine(), platform.machine())
            artifact = f"embedded-postgres-binaries-linux-{machine}"
            jar = fetch.artifact(f"io.zonky.test.postgres:{artifact}:{version}", f"{artifact}-{version}.jar")
            unpacked = target.with_suffix(".part")
            shutil.rmtree(unpacked, ignore_errors=True)
            with zipfile.ZipFile(jar) as archive:
                inner = next(name for name in archive.namelist() if name.endswith(".txz"))
                with archive.open(inner) as packed, tarfile.open(fileobj=packed, mode="r|xz") as files:
                    files.extractall(unpacked)
            unpacked.rename(target)
        return target / "bin"

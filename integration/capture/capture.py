#!/usr/bin/env python3
"""Records what a real PostgreSQL sends on a replication connection, for the replay tests.

    capture.py --bin "$(pg_config --bindir)" --port 21100 --out ../../tests/fixtures/streams

Starts a server of its own in a temporary directory, runs every script of scripts/ in a database of
its own, and writes the payload of each CopyData that pgoutput produced to pg<major>-<script>.bin, each
preceded by its length (32 bits, big-endian). Needs nothing but Python, psql and the server's programs.

It speaks the protocol by itself on purpose: what is recorded must not depend on the code that the
recording tests.

A script has two parts. Above the line "-- stream" it makes tables and the publication "tidegate"; the
slot is created at that line; what is below is recorded. Comment lines before it may say:

    -- needs: 15        skip the script on older servers
    -- again after: 2   record a second stream (pg<major>-<script>-again.bin) that begins at the end of the
                        second transaction, as a worker does that starts anew
    -- options: ...     options of pgoutput instead of protocol 1
    -- slot: ...        further arguments of pg_create_logical_replication_slot
"""

import argparse
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# The session settings on which the text of values depends.
PINNED = {
    "client_encoding": "UTF8",
    "datestyle": "ISO, YMD",
    "timezone": "UTC",
    "intervalstyle": "postgres",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "search_path": "pg_catalog",
    "lc_monetary": "C",
    # Little, so that a small transaction is streamed where that is asked for.
    "logical_decoding_work_mem": "64kB",
}
# The transaction after which a recording stops.
END_MARK = "select pg_logical_emit_message(true, 'tidegate-capture', 'end')"
SERVER = [
    "wal_level=logical",
    "max_wal_senders=10",
    "max_replication_slots=30",
    "max_prepared_transactions=10",
    "autovacuum=off",
    "fsync=off",
    "listen_addresses=localhost",
]


class Server:
    """A throw-away server; a root caller runs it as nobody."""

    def __init__(self, programs, port):
        self.programs, self.port = pathlib.Path(programs), port
        self.home = tempfile.mkdtemp(prefix="tidegate-capture-")
        self.prefix = []
        self.environment = dict(os.environ, HOME=self.home, LC_ALL="C")
        library = self.programs.parent / "lib"
        if (library / "postgresql").is_dir() or list(library.glob("libpq*")):
            self.environment["LD_LIBRARY_PATH"] = str(library)
        if os.geteuid() == 0:
            shutil.chown(self.home, "nobody")
            self.prefix = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]

    def run(self, program, *arguments):
        subprocess.run(
            [*self.prefix, str(self.programs / program), *arguments],
            check=True, env=self.environment, cwd=self.home, stdout=subprocess.DEVNULL,
        )

    def __enter__(self):
        data = f"{self.home}/data"
        self.run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C")
        options = " ".join(f"-c {setting}" for setting in [*SERVER, f"port={self.port}"])
        options += f" -k {self.home}"
        self.run("pg_ctl", "-D", data, "-w", "-l", f"{self.home}/log", "-o", options, "start")
        return self

    def __exit__(self, *_):
        self.run("pg_ctl", "-D", f"{self.home}/data", "-w", "-m", "immediate", "stop")
        shutil.rmtree(self.home)

    def psql(self, database, sql):
        """Runs SQL; a script may itself call psql by "\\!" as a second session."""
        environment = dict(
            os.environ, PGHOST="localhost", PGPORT=str(self.port), PGUSER="postgres", PGDATABASE=database,
            PGOPTIONS="-c client_min_messages=warning", PSQLRC="/dev/null",
        )
        done = subprocess.run(
            ["psql", "-v", "ON_ERROR_STOP=1", "-qAt", "-f", "-"],
            input=sql, text=True, env=environment, capture_output=True, check=False,
        )
        if done.returncode != 0 or "ERROR" in done.stderr:
            raise SystemExit(f"{database}: {done.stderr}")
        return done.stdout.strip()


class Walsender:
    """A replication connection."""

    def __init__(self, port, database):
        self.socket = socket.create_connection(("localhost", port))
        self.socket.settimeout(30)
        self.buffer = b""
        parameters = {"user": "postgres", "database": database, "replication": "database", **PINNED}
        body = b"".join(f"{key}\0{value}\0".encode() for key, value in parameters.items()) + b"\0"
        self.socket.sendall(struct.pack(">ii", len(body) + 8, 196608) + body)
        self.until_ready()

    def message(self):
        header = self.take(5)
        kind, length = header[:1], struct.unpack(">i", header[1:])[0]
        body = self.take(length - 4)
        if kind == b"E":
            raise SystemExit(f"the server says {body!r}")
        return kind, body

    def take(self, length):
        while len(self.buffer) < length:
            received = self.socket.recv(65536)
            if not received:
                raise SystemExit("the server closed the connection")
            self.buffer += received
        taken, self.buffer = self.buffer[:length], self.buffer[length:]
        return taken

    def until_ready(self):
        while self.message()[0] != b"Z":
            pass

    def send(self, command):
        body = command.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack(">i", len(body) + 4) + body)

    def frames(self, slot, position, options):
        """The payload of each CopyData, up to the end of the transaction with the end mark."""
        self.send(
            f"START_REPLICATION SLOT {slot} LOGICAL {position} "
            f"({options}, publication_names 'tidegate', messages 'true')"
        )
        last = False
        while True:
            kind, body = self.message()
            if kind == b"N":
                raise SystemExit(f"the server notes {body!r}")
            if kind != b"d":
                continue
            yield body
            message = body[25:] if body[:1] == b"w" else b""
            last = last or (message[:1] == b"M" and b"tidegate-capture\0" in message)
            if last and message[:1] == b"C":
                return


def write(path, frames):
    frames = list(frames)
    path.write_bytes(b"".join(struct.pack(">I", len(frame)) + frame for frame in frames))
    print(f"{path.name}: {len(frames)} frames, {path.stat().st_size} bytes")
    return frames


def record(server, script, major, out):
    text = script.read_text()
    setup, changes = text.split("\n-- stream\n")
    said = dict(line[3:].split(": ", 1) for line in setup.splitlines() if line.startswith("-- ") and ": " in line)
    if major < int(said.get("needs", 0)):
        return
    database = script.stem.replace("-", "_")
    server.psql("postgres", f'create database "{database}"')
    server.psql(database, setup)
    further = ", " + said["slot"] if "slot" in said else ""
    server.psql(database, f"select pg_create_logical_replication_slot('{database}', 'pgoutput'{further})")
    options = said.get("options", "proto_version '1'")
    server.psql(database, changes)
    server.psql(database, END_MARK)
    name = f"pg{major}-{script.stem}"
    frames = write(out / f"{name}.bin", Walsender(server.port, database).frames(database, "0/0", options))
    if "again after" in said:
        commits = [frame[25:] for frame in frames if frame[:1] == b"w" and frame[25:26] == b"C"]
        end = struct.unpack(">Q", commits[int(said["again after"]) - 1][10:18])[0]
        position = f"{end >> 32:X}/{end & 0xFFFFFFFF:X}"
        wait = f"select 1 from pg_replication_slots where slot_name = '{database}' and not active"
        while not server.psql(database, wait):
            pass
        write(out / f"{name}-again.bin", Walsender(server.port, database).frames(database, position, options))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="the server's programs (initdb, pg_ctl, postgres)")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", help="one script")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with Server(arguments.bin, arguments.port) as server:
        major = int(server.psql("postgres", "show server_version_num")) // 10000
        for script in sorted((HERE / "scripts").glob("*.sql")):
            if arguments.only in (None, script.stem):
                record(server, script, major, arguments.out)


if __name__ == "__main__":
    main()

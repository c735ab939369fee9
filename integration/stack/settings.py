"""Where the stack lives, and what can be chosen from outside. Every variable is listed in integration/README.md."""

import hashlib
import os
import pwd
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def is_root() -> bool:
    """Whether this process may, and for PostgreSQL must, change to another user."""
    return os.geteuid() == 0


def server_user() -> dict:
    """Arguments for `subprocess` that make a server run as an ordinary user; none if we are one already."""
    if not is_root():
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _servers_reach(directory: Path) -> bool:
    return subprocess.run(["test", "-x", directory], **server_user()).returncode == 0


def _locate() -> Path:
    """The stack's directory: `.stack` in the checkout, unless the servers' user cannot get there (root's home)."""
    wanted = Path(os.environ.get("STACK_DIR") or ROOT / ".stack")
    if wanted.exists() or not is_root() or _servers_reach(wanted.parent):
        return wanted.resolve()
    return Path("/var/tmp") / f"tidegate-stack-{hashlib.sha256(str(wanted).encode()).hexdigest()[:12]}"


DIR = _locate()
DOWNLOADS = DIR / "downloads"

HOST = "127.0.0.1"
PG_MAJOR = os.environ.get("PG", "")
KAFKA_BROKERS = int(os.environ.get("KAFKA_BROKERS") or 1)


class StackError(Exception):
    """What is wrong and what to do about it, as text for a person."""


def port(variable: str, default: int) -> int:
    """A port from the environment."""
    text = os.environ.get(variable) or str(default)
    if not text.isdigit() or not 1024 <= int(text) <= 65000:
        raise StackError(f"{variable}={text} is not a port between 1024 and 65000")
    return int(text)


def prepare() -> None:
    """Make the stack's directory; if it is elsewhere, `.stack` in the checkout becomes a link to it."""
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    link = ROOT / ".stack"
    if not link.exists():
        link.unlink(missing_ok=True)
        link.symlink_to(DIR)
        print(f"the stack's files are in {DIR}", file=sys.stderr)
    if is_root() and not _servers_reach(DIR):
        raise StackError(f"user nobody cannot enter {DIR}; set STACK_DIR to a directory that it can reach")

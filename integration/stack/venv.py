"""The Python environment of the scenarios: the clients for Kafka, Avro and PostgreSQL that `requirements.txt` pins."""

import shutil
import subprocess
import sys
from pathlib import Path

from . import settings
from .settings import DIR, StackError

REQUIREMENTS = Path(__file__).parents[1] / "requirements.txt"


def main() -> None:
    """Make the environment unless it is there, and print its interpreter."""
    settings.prepare()
    home = DIR / "venv"
    stamp = home / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != REQUIREMENTS.read_text():
        shutil.rmtree(home, ignore_errors=True)
        _run(sys.executable, "-m", "venv", str(home))
        _run(str(home / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "-r", str(REQUIREMENTS))
        stamp.write_text(REQUIREMENTS.read_text())
    print(home / "bin" / "python")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise StackError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")

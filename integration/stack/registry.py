"""A schema registry with Confluent's API: Apicurio Registry, which keeps its schemas in a file."""

import json
import shutil
import tarfile
import urllib.error
import urllib.request
from pathlib import Path

from . import fetch
from .process import Process, require_free_port
from .settings import DIR, DOWNLOADS, HOST, port

# The newest line that runs on Java 17.
VERSION = "2.6.13.Final"
API = "/apis/ccompat/v7"


class Registry:
    """One registry. Compatibility is checked at level BACKWARD, Confluent's default, unless a subject says otherwise."""

    name = "registry"

    def __init__(self):
        self.directory = DIR / "registry"
        self.process = Process(self.name, self.directory)
        self.port = self.process.port() or port("STACK_REGISTRY_PORT", 18081)

    @property
    def address(self) -> str:
        """What a converter is given as schema.registry.url."""
        return f"http://{HOST}:{self.port}{API}"

    def install(self) -> None:
        """Fetch it."""
        fetch.java()
        _program()

    def launch(self) -> None:
        """Start it unless it runs; does not wait."""
        if self.process.pid() is not None:
            return
        require_free_port(self.port, "the schema registry", "STACK_REGISTRY_PORT")
        self.directory.mkdir(parents=True, exist_ok=True)
        env = {
            "QUARKUS_HTTP_HOST": HOST,
            "QUARKUS_HTTP_PORT": str(self.port),
            "QUARKUS_LOG_LEVEL": "WARN",
            "REGISTRY_DATASOURCE_URL": f"jdbc:h2:file:{self.directory}/schemas;DB_CLOSE_DELAY=-1",
        }
        command = [*fetch.java("-Xmx192m"), "-jar", _program()]
        self.process.launch(command, self.port, env=env, cwd=self.directory)

    def wait(self) -> None:
        """Wait until it answers, and set the global level, which it does not have at first."""
        self.process.wait_until(self.ready, 60, "the schema registry")
        if self._call("GET", "/config") != {"compatibilityLevel": "BACKWARD"}:
            self._call("PUT", "/config", {"compatibility": "BACKWARD"})

    def start(self) -> None:
        """`launch` and `wait`."""
        self.launch()
        self.wait()

    def stop(self) -> None:
        """Orderly shutdown."""
        self.process.stop(20)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()

    def ready(self) -> bool:
        """Whether it lists its subjects."""
        try:
            return isinstance(self._call("GET", "/subjects"), list)
        except (OSError, urllib.error.URLError, ValueError):
            return False

    def _call(self, method: str, path: str, body: dict | None = None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.load(answer)


def _program() -> Path:
    target = DOWNLOADS / f"apicurio-registry-{VERSION}"
    if not target.exists():
        packed = fetch.artifact(f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all",
                                f"apicurio-registry-app-{VERSION}-all.tar.gz")
        unpacked = target.with_suffix(".part")
        shutil.rmtree(unpacked, ignore_errors=True)
        with tarfile.open(packed) as files:
            files.extractall(unpacked)
        unpacked.rename(target)
    return target / f"apicurio-registry-app-{VERSION}-runner.jar"

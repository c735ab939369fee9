"""The HTTP side: Confluent's routes, and `/faults` to make it misbehave."""

import argparse
import json
import re
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Callable

from . import avro
from .store import GLOBAL, Refused, Store

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
SUBJECT = r"/subjects/([^/]+)"


class Registry:
    """The store, the faults ordered, and the requests seen."""

    def __init__(self, journal: Path | None):
        self.store = Store()
        self.faults: list[dict] = []
        self.requests: list[str] = []
        self._lock = threading.Lock()
        self._journal = None
        self._known: set[str] = set()
        if journal is not None:
            if journal.exists():
                for line in journal.read_text().splitlines():
                    self.answer(**json.loads(line))
            self._journal = journal.open("a")

    def handle(self, method: str, target: str, body: Any) -> Any:
        """Answer a request, and write down one that changed something."""
        if self._journal is None or method == "GET":
            return self.answer(method, target, body)
        # In the order in which numbers are given out, or they would be others the next time.
        with self._lock:
            result = self.answer(method, target, body)
            line = json.dumps({"method": method, "target": target, "body": body}) + "\n"
            if method != "POST":
                self._known.clear()
            if line not in self._known:
                self._journal.write(line)
                self._journal.flush()
            # What was registered is registered, until something else changes.
            self._known.add(line)
        return result

    def answer(self, method: str, target: str, body: Any) -> Any:
        """Find the route and carry it out."""
        url = urllib.parse.urlsplit(target)
        query = {key: values[-1] for key, values in urllib.parse.parse_qs(url.query).items()}
        for verb, form, action in self._routes(query, body if isinstance(body, dict) else {}):
            match = re.fullmatch(form, url.path.rstrip("/"))
            if match and verb == method:
                with self.store.lock:
                    return action(*(urllib.parse.unquote(part) for part in match.groups()))
        raise Refused(404, f"HTTP 404 Not Found: {method} {url.path}")

    def _routes(self, query: dict, body: dict) -> list[tuple[str, str, Callable]]:
        store = self.store

        def is_set(name: str) -> bool:
            return query.get(name, "").lower() == "true"

        return [
            ("GET", "", lambda: {}),
            ("GET", "/schemas/types", lambda: ["AVRO"]),
            ("GET", "/schemas/ids/([^/]+)", store.by_id),
            ("GET", "/schemas/ids/([^/]+)/schema", lambda i: json.loads(store.by_id(i)["schema"])),
            ("GET", "/schemas/ids/([^/]+)/versions", store.uses),
            ("GET", "/schemas/ids/([^/]+)/subjects", lambda i: sorted({use["subject"] for use in store.uses(i)})),
            ("GET", "/subjects", lambda: store.subjects(query.get("subjectPrefix", ""), is_set("deleted"))),
            ("POST", SUBJECT, lambda s: store.lookup(s, body)),
            ("DELETE", SUBJECT, lambda s: store.delete(s, is_set("permanent"))),
            ("GET", f"{SUBJECT}/versions", store.versions),
            ("POST", f"{SUBJECT}/versions", lambda s: store.register(s, body)),
            ("GET", f"{SUBJECT}/versions/([^/]+)", store.version),
            ("GET", f"{SUBJECT}/versions/([^/]+)/schema", lambda s, v: json.loads(store.version(s, v)["schema"])),
            ("DELETE", f"{SUBJECT}/versions/([^/]+)", store.delete_version),
            ("POST", f"/compatibility{SUBJECT}/versions", lambda s: store.compatible(s, None, body, is_set("verbose"))),
            ("POST", f"/compatibility{SUBJECT}/versions/([^/]+)",
             lambda s, v: store.compatible(s, v, body, is_set("verbose"))),
            ("GET", "/config", lambda: store.level(GLOBAL, False)),
            ("PUT", "/config", lambda: store.set_level(GLOBAL, body)),
            ("DELETE", "/config", lambda: store.drop_level(GLOBAL)),
            ("GET", "/config/([^/]+)", lambda s: store.level(s, is_set("defaultToGlobal"))),
            ("PUT", "/config/([^/]+)", lambda s: store.set_level(s, body)),
            ("DELETE", "/config/([^/]+)", store.drop_level),
            ("GET", "/mode", lambda: store.mode(GLOBAL, False)),
            ("PUT", "/mode", lambda: store.set_mode(GLOBAL, body)),
            ("DELETE", "/mode", lambda: store.drop_mode(GLOBAL)),
            ("GET", "/mode/([^/]+)", lambda s: store.mode(s, is_set("defaultToGlobal"))),
            ("PUT", "/mode/([^/]+)", lambda s: store.set_mode(s, body)),
            ("DELETE", "/mode/([^/]+)", store.drop_mode),
        ]

    def command(self, method: str, body: Any) -> Any:
        """`/faults`: POST adds one, DELETE forgets faults and requests, GET shows both."""
        with self._lock:
            match method:
                case "POST":
                    self.faults.append({"path": ".*", "times": -1, **body})
                case "DELETE":
                    self.faults.clear()
                    self.requests.clear()
            return {"faults": self.faults, "requests": self.requests}

    def fault(self, method: str, target: str) -> dict | None:
        """The fault that this request meets, used up by one."""
        with self._lock:
            self.requests.append(f"{method} {target}")
            for fault in self.faults:
                if fault["times"] != 0 and re.search(fault["path"], f"{method} {target}"):
                    fault["times"] -= 1
                    return fault
        return None


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    registry: Registry

    def _serve(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            return self._send(400, {"error_code": 400, "message": "Unrecognized token: the body is not JSON"})
        if self.path == "/faults":
            return self._send(200, self.registry.command(self.command, body))
        fault = self.registry.fault(self.command, self.path)
        if fault is not None:
            return self._misbehave(fault)
        try:
            self._send(200, self.registry.handle(self.command, self.path, body))
        except Refused as error:
            self._send(error.status, {"error_code": error.code, "message": str(error)})

    do_GET = do_POST = do_PUT = do_DELETE = _serve

    def _misbehave(self, fault: dict) -> None:
        match fault["answer"]:
            case int(status):
                headers = {"Retry-After": "1"} if status == 429 else {}
                self._send(status, {"error_code": 50001 if status == 500 else status, "message": "ordered"}, headers)
            case "broken":
                self._send(200, None, raw=b'{"id": ')
            case "close":
                self.close_connection = True
            case "hang":
                # Until the client gives up or the fault is taken back.
                while fault in self.registry.faults:
                    time.sleep(0.1)
                self.close_connection = True

    def _send(self, status: int, result: Any, headers: dict | None = None, raw: bytes | None = None) -> None:
        data = json.dumps(result, ensure_ascii=False).encode() if raw is None else raw
        self.send_response(status)
        for name, value in {"Content-Type": MEDIA_TYPE, "Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


class Server(ThreadingHTTPServer):
    """A thread per connection; none keeps the process alive."""

    daemon_threads = True
    request_queue_size = 64


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="registry", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--journal", type=Path, help="keep the registered schemas in this file")
    parser.add_argument("--any-namespace", action="store_true", help="do not check the namespaces of types, as Java's library")
    arguments = parser.parse_args()
    avro.checks_namespaces = not arguments.any_namespace
    Handler.registry = Registry(arguments.journal)
    Server(("127.0.0.1", arguments.port), Handler).serve_forever()


if __name__ == "__main__":
    main()

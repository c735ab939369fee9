"""The worker's REST endpoint, as any client sees it: a status and a JSON body."""

import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What came back. `body` is None for an empty one, a text if it was no JSON."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def message(self) -> str:
        """The error's text."""
        return self.body.get("message", "") if isinstance(self.body, dict) else str(self.body)


class Rest:
    """Requests to one address."""

    def __init__(self, base: str):
        self.base = base

    def __call__(self, method: str, path: str, body: Any = None, *, timeout: float = 30,
                 content_type: str = "application/json") -> Answer:
        """`body` is sent as it is when it is text, else as JSON. Connection errors are OSError."""
        data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json"} | ({} if data is None else {"Content-Type": content_type})
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return _answer(response.status, response)
        except urllib.error.HTTPError as error:
            with error:
                return _answer(error.code, error)
        except urllib.error.URLError as error:
            raise error.reason if isinstance(error.reason, OSError) else OSError(str(error.reason)) from error


def quoted(name: str) -> str:
    """A name as one segment of a path."""
    return urllib.parse.quote(name, safe="")


def _answer(status: int, response: Any) -> Answer:
    raw = response.read()
    try:
        body = json.loads(raw) if raw else None
    except ValueError:
        body = raw.decode("utf-8", "replace")
    return Answer(status, body, {key.lower(): value for key, value in response.headers.items()})

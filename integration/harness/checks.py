"""Saying what is expected, and waiting for it."""

import time
from typing import Any, Callable


class ScenarioFailed(Exception):
    """The worker did not do what the scenario says; the text is for the person who reads the report."""


class ScenarioSkipped(Exception):
    """What the scenario needs cannot be had here; the text says what and why."""


def check(condition: Any, what: str) -> None:
    """Fail unless the condition holds. `what` says what should be."""
    if not condition:
        raise ScenarioFailed(f"expected that {what}")


def equal(actual: Any, expected: Any, what: str) -> None:
    """Fail unless both are equal; shows the first place where they are not."""
    if actual != expected:
        raise ScenarioFailed(f"{what}: {_difference(actual, expected)}")


def wait_for(condition: Callable[[], Any], timeout: float, what: str,
             abort: Callable[[], str | None] | None = None) -> Any:
    """Ask again and again until the condition gives something true, and return that.

    `abort` may name a reason why it can never come true; it is asked now and then.
    """
    now = time.monotonic()
    deadline, next_abort = now + timeout, now
    while True:
        result = condition()
        if result:
            return result
        now = time.monotonic()
        if abort is not None and now >= next_abort:
            next_abort = now + 0.5
            if (reason := abort()) is not None:
                raise ScenarioFailed(f"waited for {what}, but {reason}")
        if now > deadline:
            raise ScenarioFailed(f"waited {timeout:g} s for {what}; the last answer was {result!r}")
        time.sleep(0.05)


def _difference(actual: Any, expected: Any, path: str = "") -> str:
    if isinstance(actual, dict) and isinstance(expected, dict):
        for key in {**expected, **actual}:
            here = f"{path}[{key!r}]"
            if key not in actual:
                return f"{here} is missing, expected {_short(expected[key])}"
            if key not in expected:
                return f"{here} is there with {_short(actual[key])}, expected none"
            if actual[key] != expected[key]:
                return _difference(actual[key], expected[key], here)
    if isinstance(actual, (list, tuple)) and isinstance(expected, (list, tuple)):
        for index, (one, other) in enumerate(zip(actual, expected)):
            if one != other:
                return _difference(one, other, f"{path}[{index}]")
        if len(actual) != len(expected):
            return f"{path or 'list'} has {len(actual)} items, expected {len(expected)}: {_short(actual)}"
    return f"{path + ' ' if path else ''}is {_short(actual)}, expected {_short(expected)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 400 else f"{text[:400]}… ({len(text)} characters)"

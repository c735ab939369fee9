"""The faults: who dies, and what becomes of the connections between the worker and what it talks to."""

import os
import random
import signal
import time
from typing import Any, Callable

from stack.settings import HOST, StackError

from harness.proxy import FaultProxy, Link
from harness.trial import Trial
from harness.worker import Worker, free_port

PARTS = ("postgres", "kafka", "registry")
# A service is waited for so many times as long as it may take.
STARTS = 4


class Faults:
    """Commits one fault at a time. Each is over when it returns: what was broken is whole again, and has to recover."""

    def __init__(self, t: Trial, chance: random.Random, kills: bool):
        self._t, self._chance = t, chance
        self._proxy = FaultProxy()
        t.later(self._proxy.close)
        behind, in_front = t.kafka.behind_proxy()
        self.links: dict[str, Link] = {
            "postgres": self._proxy.link(t.postgres.port, free_port()),
            "kafka": self._proxy.link(behind, in_front),
            "registry": self._proxy.link(t.registry.port, free_port()),
        }
        self.worker: Worker | None = None
        self._kinds: list[tuple[Callable[[], str], int]] = [
            (self._kill_worker, 16), (self._stand_still, 4), (self._cut, 10), (self._cut_inside, 12), (self._refuse, 7),
            (self._stall, 8), (self._stall_and_kill, 8), (self._delay, 4), (self._half_open, 8),
        ]
        if kills:
            self._kinds += [(self._kill_postgres, 6), (self._kill_kafka, 8)]
        self._kinds += [(self._kill_registry, 3)]

    @property
    def registry_address(self) -> str:
        """The registry's, through the proxy."""
        return f"http://{self.links['registry'].address}"

    def commit(self) -> str:
        """One more; answers what it was."""
        kinds, weights = zip(*self._kinds)
        return self._chance.choices(kinds, weights)[0]()

    # ------------------------------------------------------------ processes
    def _kill_worker(self) -> str:
        pause = self._chance.choice((0.0, 0.0, 0.5))
        self.restart_worker(pause)
        return "worker killed"

    def restart_worker(self, pause: float = 0.0) -> None:
        """kill -9, and another."""
        assert self.worker is not None
        self.worker.kill()
        time.sleep(pause)
        self.worker.launch()

    def _stand_still(self) -> str:
        assert self.worker is not None
        seconds = self._chance.uniform(0.2, 3)
        self._send(signal.SIGSTOP)
        time.sleep(seconds)
        self._send(signal.SIGCONT)
        return f"worker stopped for {seconds:.1f} s"

    def _send(self, number: signal.Signals) -> None:
        assert self.worker is not None
        if self.worker.ended() is None:
            os.kill(self.worker.pid, number)

    def _kill_postgres(self) -> str:
        return self._kill("postgres", self._t.postgres)

    def _kill_kafka(self) -> str:
        return self._kill("kafka", self._t.kafka)

    def _kill_registry(self) -> str:
        return self._kill("registry", self._t.registry)

    def _kill(self, name: str, part: Any) -> str:
        seconds = self._chance.choice((0.0, 0.3, 1.5))
        together = self._chance.random() < 0.25
        part.kill()
        if together:
            self.restart_worker()
        time.sleep(seconds)
        _start(part)
        return f"{name} killed{', and the worker with it' if together else ''}"

    # ------------------------------------------------------------ connections
    def _link(self) -> tuple[str, Link]:
        # The registry is asked now and then only.
        name = self._chance.choices(PARTS, (4, 4, 1))[0]
        return name, self.links[name]

    def _cut(self) -> str:
        name, link = self._link()
        reset = self._chance.random() < 0.5
        count = link.cut(reset=reset)
        return f"{name}: {count} connections {'reset' if reset else 'closed'}"

    def _cut_inside(self) -> str:
        name, link = self._link()
        count = int(10 ** self._chance.uniform(0, 5))
        link.cut_after(count)
        time.sleep(self._chance.uniform(0.2, 1))
        link.heal()
        return f"{name}: cut after {count} bytes"

    def _refuse(self) -> str:
        name, link = self._link()
        seconds = self._chance.uniform(0.1, 3)
        link.refuse()
        time.sleep(seconds)
        link.heal()
        return f"{name}: refused for {seconds:.1f} s"

    def _stall(self) -> str:
        name, link = self._link()
        seconds = self._chance.uniform(0.3, 4)
        link.stall()
        time.sleep(seconds)
        link.heal()
        return f"{name}: stalled for {seconds:.1f} s"

    def _stall_and_kill(self) -> str:
        name, link = self._link()
        self.kill_in_stall(link, self._chance.uniform(0.3, 1.5))
        return f"{name}: stalled, and the worker killed"

    def kill_in_stall(self, link: Link, seconds: float) -> None:
        """The worker waits for an answer when it dies, and does not learn whether it was heard."""
        assert self.worker is not None
        link.stall()
        time.sleep(seconds)
        self.worker.kill()
        if self._chance.random() < 0.5:
            # What was on its way arrives after all, from one who is dead.
            link.heal()
            time.sleep(0.2)
        else:
            link.cut()
            link.heal()
        self.worker.launch()

    def _delay(self) -> str:
        name, link = self._link()
        seconds, late = self._chance.uniform(0.5, 3), self._chance.uniform(0.01, 0.2)
        link.delay(late)
        time.sleep(seconds)
        link.heal()
        return f"{name}: {late * 1000:.0f} ms late for {seconds:.1f} s"

    def _half_open(self) -> str:
        name, link = self._link()
        side, seconds = self._chance.choice(("client", "server")), self._chance.uniform(0.5, 4)
        count = link.half_open(side)
        time.sleep(seconds)
        link.cut()
        return f"{name}: the {side}'s side of {count} connections was gone for {seconds:.1f} s"


def _start(part: Any) -> None:
    """On a machine that has much else to do a service may take longer than a person would wait."""
    for attempt in range(STARTS):
        try:
            part.start()
            return
        except StackError:
            if attempt == STARTS - 1:
                raise


def address_of(link: Link) -> dict[str, str]:
    """For the connector's configuration."""
    return {"database.hostname": HOST, "database.port": str(link.port)}

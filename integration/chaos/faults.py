"""The faults: who dies, and what becomes of the connections between the worker and what it talks to."""

import os
import random
import signal
import time
from collections import Counter
from typing import Any, Callable

from confluent_kafka import KafkaException

from stack.settings import HOST, StackError

from harness.checks import wait_for
from harness.proxy import FaultProxy, Link, Links
from harness.trial import Trial
from harness.worker import Worker, free_port

PARTS = ("postgres", "kafka", "registry")
# A service is waited for so many times as long as it may take.
STARTS = 4
# So long may a broker that was killed take until it has again all that the others have.
CATCH_UP = 180
# What was committed: its kind, and more about this one.
What = tuple[str, str]


class Faults:
    """Commits one fault at a time. Each is over when it returns: what was broken is whole again, and has to recover."""

    def __init__(self, t: Trial, chance: random.Random, kills: bool):
        self._t, self._chance = t, chance
        self._proxy = FaultProxy()
        t.later(self._proxy.close)
        self._brokers = [self._proxy.link(behind, in_front) for behind, in_front in t.kafka.behind_proxy()]
        self.links: dict[str, Link | Links] = {
            "postgres": self._proxy.link(t.postgres.port, free_port()),
            "kafka": Links(self._brokers),
            "registry": self._proxy.link(t.registry.port, free_port()),
        }
        self.worker: Worker | None = None
        self.committed: Counter[str] = Counter()
        self._kinds: list[tuple[Callable[[], What], int]] = [
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
        kind, more = self._chance.choices(kinds, weights)[0]()
        self.committed[kind] += 1
        return kind + more

    # ------------------------------------------------------------ processes
    def _kill_worker(self) -> What:
        pause = self._chance.choice((0.0, 0.0, 0.5))
        self.restart_worker(pause)
        return "worker killed", ""

    def restart_worker(self, pause: float = 0.0) -> None:
        """kill -9, and another."""
        assert self.worker is not None
        self.worker.kill()
        time.sleep(pause)
        self.worker.launch()

    def _stand_still(self) -> What:
        assert self.worker is not None
        seconds = self._chance.uniform(0.2, 3)
        self._send(signal.SIGSTOP)
        time.sleep(seconds)
        self._send(signal.SIGCONT)
        return "worker stopped", f" for {seconds:.1f} s"

    def _send(self, number: signal.Signals) -> None:
        assert self.worker is not None
        if self.worker.ended() is None:
            os.kill(self.worker.pid, number)

    def _kill_postgres(self) -> What:
        return self._kill("postgres", self._t.postgres)

    def _kill_kafka(self) -> What:
        """One broker of three is gone at a time: what they promise to keep holds as long as one more has it."""
        brokers = self._t.kafka.brokers
        broker = self._chance.choice(brokers)
        if len(brokers) > 1:
            wait_for(self._in_sync, CATCH_UP, "Kafka's replicas to be in sync")
        kind, more = self._kill("broker" if len(brokers) > 1 else "kafka", broker)
        return kind, more + (f" (broker {broker.node})" if len(brokers) > 1 else "")

    def _in_sync(self) -> bool:
        try:
            return self._t.cluster.in_sync()
        except KafkaException:
            return False

    def _kill_registry(self) -> What:
        return self._kill("registry", self._t.registry)

    def _kill(self, name: str, part: Any) -> What:
        seconds = self._chance.choice((0.0, 0.3, 1.5))
        together = self._chance.random() < 0.25
        part.kill()
        if together:
            self.restart_worker()
        time.sleep(seconds)
        _start(part)
        return f"{name} killed{', and the worker with it' if together else ''}", ""

    # ------------------------------------------------------------ connections
    def _link(self) -> tuple[str, str, Link | Links]:
        """Whose connections, which of several, and those; of a cluster all brokers', or those of one."""
        # The registry is asked now and then only.
        name = self._chance.choices(PARTS, (4, 4, 1))[0]
        if name == "kafka" and len(self._brokers) > 1 and self._chance.random() < 0.6:
            number = self._chance.randrange(len(self._brokers))
            return "broker", f" (broker {self._t.kafka.brokers[number].node})", self._brokers[number]
        return name, "", self.links[name]

    def _cut(self) -> What:
        name, which, link = self._link()
        reset = self._chance.random() < 0.5
        count = link.cut(reset=reset)
        return f"{name}: connections {'reset' if reset else 'closed'}", f": {count}{which}"

    def _cut_inside(self) -> What:
        name, which, link = self._link()
        count = int(10 ** self._chance.uniform(0, 5))
        link.cut_after(count)
        time.sleep(self._chance.uniform(0.2, 1))
        link.heal()
        return f"{name}: cut in the middle", f" after {count} bytes{which}"

    def _refuse(self) -> What:
        name, which, link = self._link()
        seconds = self._chance.uniform(0.1, 3)
        link.refuse()
        time.sleep(seconds)
        link.heal()
        return f"{name}: refused", f" for {seconds:.1f} s{which}"

    def _stall(self) -> What:
        name, which, link = self._link()
        seconds = self._chance.uniform(0.3, 4)
        link.stall()
        time.sleep(seconds)
        link.heal()
        return f"{name}: stalled", f" for {seconds:.1f} s{which}"

    def _stall_and_kill(self) -> What:
        name, which, link = self._link()
        self.kill_in_stall(link, self._chance.uniform(0.3, 1.5))
        return f"{name}: stalled, and the worker killed", which

    def kill_in_stall(self, link: Link | Links, seconds: float) -> None:
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

    def _delay(self) -> What:
        name, which, link = self._link()
        seconds, late = self._chance.uniform(0.5, 3), self._chance.uniform(0.01, 0.2)
        link.delay(late)
        time.sleep(seconds)
        link.heal()
        return f"{name}: delayed", f" by {late * 1000:.0f} ms for {seconds:.1f} s{which}"

    def _half_open(self) -> What:
        name, which, link = self._link()
        side, seconds = self._chance.choice(("client", "server")), self._chance.uniform(0.5, 4)
        count = link.half_open(side)
        time.sleep(seconds)
        link.cut()
        return f"{name}: half open, the {side}'s side gone", f", {count} connections for {seconds:.1f} s{which}"


def _start(part: Any) -> None:
    """On a machine that has much else to do a service may take longer than a person would wait."""
    for attempt in range(STARTS):
        try:
            part.start()
            return
        except StackError:
            if attempt == STARTS - 1:
                raise


def address_of(link: Link | Links) -> dict[str, str]:
    """For the connector's configuration."""
    return {"database.hostname": HOST, "database.port": str(link.port)}

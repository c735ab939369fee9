"""The workloads: what is written, who reads it, and how often."""

from dataclasses import dataclass, field
from typing import Any, Callable

from . import loads
from .contestants import Tidegate
from .runs import Bench, Result
from .source import Load

# How many runs there are against each opponent, unless PAIRS says otherwise. A run of Debezium takes minutes.
HEADLINE = {"recvlogical": 5, "debezium": 2, "debezium-default": 1, "producer": 3}
SIDE = {"recvlogical": 3, "debezium": 1}


@dataclass
class Plan:
    """What was asked for."""

    workloads: list[str]
    opponents: list[str]
    scale: float
    pairs: int | None
    quick: bool
    tables: int
    runs: list[Result] = field(default_factory=list)

    def rows(self, number: int) -> int:
        """A number of rows, scaled; whole hundreds."""
        return max(100, int(number * self.scale * (0.25 if self.quick else 1)) // 100 * 100)

    def rounds(self, usual: dict[str, int]) -> dict[str, int]:
        """How often each opponent runs."""
        def of(name: str, count: int) -> int:
            if self.pairs is not None:
                return self.pairs
            return min(count, 1 if name.startswith("debezium") else 2) if self.quick else count
        return {name: of(name, count) for name, count in usual.items() if name in self.opponents}


class Session:
    """Carries out workloads and collects the runs."""

    def __init__(self, bench: Bench, plan: Plan, opponents: dict[str, Any], note: Callable[[Result], None],
                 stage: Callable[[str], None]):
        self.bench, self.plan, self.opponents, self._note, self._stage = bench, plan, opponents, note, stage
        self._connection = (bench.source, bench.kafka.address, bench.registry.address)

    def tidegate(self, **options: str) -> Tidegate:
        """The worker, with further options of the connector."""
        return Tidegate(*self._connection, **options)

    def warm_up(self) -> None:
        """Nothing is measured yet: the broker and the registry are used until their compilers have done the most of their work."""
        self._stage("warming up")
        load = loads.narrow(200_000)
        self.bench.source.write(load)
        # Many small transactions, then many records.
        for linger in ("5", "100"):
            self.bench.drain(self.tidegate(**{"transaction.linger.ms": linger}), load, keep=True)
        self.bench.producer(6_000_000)

    def take(self, variant: str, contestant: str, pair: int, run: Callable[[], Result]) -> None:
        """Carry out one run. One that fails is a result, too."""
        self._stage(f"{variant} {contestant} {pair + 1}")
        try:
            found = run()
        except Exception as error:
            found = {"right": False, "error": f"{type(error).__name__}: {error}"}
        found |= {"variant": variant, "contestant": contestant, "pair": pair}
        self.plan.runs.append(found)
        self._note(found)

    def drains(self, variant: str, load: Load, usual: dict[str, int], **options: str) -> None:
        """ABAB: in each round the worker, then every opponent that still has a run to do."""
        self._stage(f"{variant} writing {load.rows:,} rows")
        facts = self.bench.source.write(load)
        rounds = self.plan.rounds(usual)
        for pair in range(max([1, *rounds.values()])):
            self.take(variant, "tidegate", pair, lambda: self.bench.drain(self.tidegate(**options), load, keep=True) | facts)
            for name, count in rounds.items():
                if pair < count:
                    self.take(variant, name, pair, lambda: self._opponent(name, load, facts) | facts)

    def _opponent(self, name: str, load: Load, facts: Result) -> Result:
        if name == "recvlogical":
            return self.bench.recvlogical(self.opponents[name], load, facts)
        if name == "producer":
            return self.bench.producer(load.rows)
        return self.bench.drain(self.opponents[name], load)

    def snapshots(self, variant: str, load: Load, usual: dict[str, int]) -> None:
        """The same with tables instead of a log."""
        self._stage(f"{variant} writing {load.rows:,} rows")
        self.bench.source.write(load)
        rounds = self.plan.rounds(usual)
        for pair in range(max([1, *rounds.values()])):
            self.take(variant, "tidegate", pair, lambda: self.bench.drain(self.tidegate(), load, snapshot=True))
            if "recvlogical" in rounds and pair < rounds["recvlogical"]:
                self.take(variant, "copy", pair, lambda: self.bench.copy_out(load))
            for name in ("debezium", "debezium-default"):
                if pair < rounds.get(name, 0):
                    self.take(variant, name, pair, lambda: self.bench.drain(self.opponents[name], load, snapshot=True))

    def steady(self, rate: int, usual: dict[str, int], variant: str = "", **options: str) -> None:
        """Rows at a rate, for the latency."""
        variant = variant or f"W7 {rate}/s"
        seconds, warm = (15, 5) if self.plan.quick else (30, 15)
        self.bench.source.write(loads.paced())
        rounds = {name: count for name, count in self.plan.rounds(usual).items() if name.startswith("debezium")}
        for pair in range(max([1, *rounds.values()])):
            self.take(variant, "tidegate", pair,
                      lambda: self.bench.latency(self.tidegate(**options), rate, seconds, min(warm, 5)))
            for name, count in rounds.items():
                if pair < count:
                    self.take(variant, name, pair, lambda: self.bench.latency(self.opponents[name], rate, seconds, warm))

    def idle(self, count: int, usual: dict[str, int]) -> None:
        """Nothing to read, with a number of tables."""
        load = loads.many_tables(count, 0)
        self.bench.source.write(load)
        seconds = 10 if self.plan.quick else 30
        self.take(f"W12 {count} tables", "tidegate", 0, lambda: self.bench.idle(self.tidegate(), load.tables, seconds))
        for name in self.plan.rounds(usual):
            if name.startswith("debezium"):
                self.take(f"W12 {count} tables", name, 0, lambda: self.bench.idle(self.opponents[name], load.tables, seconds))


def w1(s: Session) -> None:
    """Backlog, five columns."""
    s.drains("W1", loads.narrow(s.plan.rows(2_000_000)), HEADLINE)


def w2(s: Session) -> None:
    """Small transactions."""
    s.drains("W2 10/tx", loads.narrow(s.plan.rows(500_000), 10), SIDE)
    s.drains("W2 1/tx", loads.narrow(s.plan.rows(200_000), 1), SIDE)


def w3(s: Session) -> None:
    """Backlog, thirty mixed columns."""
    s.drains("W3", loads.wide(s.plan.rows(500_000)), HEADLINE)


def w4(s: Session) -> None:
    """Updates and deletes."""
    s.drains("W4 update", loads.updates(s.plan.rows(200_000), "default"), SIDE)
    s.drains("W4 update full", loads.updates(s.plan.rows(200_000), "full"), SIDE)
    s.drains("W4 delete", loads.deletes(s.plan.rows(500_000)), SIDE)


def w5(s: Session) -> None:
    """Large values."""
    s.drains("W5 insert", loads.documents(s.plan.rows(20_000)), SIDE)
    s.drains("W5 unchanged", loads.untouched_documents(s.plan.rows(20_000)), SIDE)


def w6(s: Session) -> None:
    """One transaction."""
    s.drains("W6", loads.huge(s.plan.rows(2_000_000)), SIDE)


def w7(s: Session) -> None:
    """Latency at a steady rate."""
    if s.plan.quick:
        s.steady(2000, {"debezium": 1})
        return
    s.steady(500, {})
    s.steady(2000, {"debezium": 1, "debezium-default": 1})
    s.steady(10_000, {"debezium": 1})
    s.steady(30_000, {})


def w9(s: Session) -> None:
    """Snapshots."""
    s.snapshots("W9 narrow", loads.narrow(s.plan.rows(2_000_000)), SIDE)
    s.snapshots("W9 wide", loads.wide(s.plan.rows(300_000)), SIDE)


def w10(s: Session) -> None:
    """Many tables."""
    for count in dict.fromkeys((1, 100, s.plan.tables)):
        s.drains(f"W10 {count} tables", loads.many_tables(count, s.plan.rows(300_000)), {"recvlogical": 1, "debezium": 1})


def w11(s: Session) -> None:
    """Columns."""
    for count, rows in ((5, 400_000), (30, 200_000), (100, 60_000), (500, 12_000)):
        s.drains(f"W11 {count} columns", loads.columns(count, s.plan.rows(rows)), {"recvlogical": 2})


def w12(s: Session) -> None:
    """Idle."""
    s.idle(1, {"debezium": 1})
    s.idle(s.plan.tables, {})


def w13(s: Session) -> None:
    """Killed and started again."""
    s.bench.source.write(loads.paced())
    for pair in range(3):
        s.take("W13", "tidegate", pair, lambda: s.bench.restart(s.tidegate(), [], 500, 12 if s.plan.quick else 20))


def w15(s: Session) -> None:
    """How often Kafka transactions are committed."""
    load = loads.narrow(s.plan.rows(1_000_000))
    for linger in ("5", "20", "100", "1000"):
        s.drains(f"W15 {linger} ms", load, {}, **{"transaction.linger.ms": linger})
    for linger in ("5", "1000"):
        s.steady(2000, {}, f"W15 {linger} ms, 2000/s", **{"transaction.linger.ms": linger})


WORKLOADS: dict[str, Callable[[Session], None]] = {
    "W1": w1, "W2": w2, "W3": w3, "W4": w4, "W5": w5, "W6": w6, "W7": w7, "W9": w9, "W10": w10, "W11": w11, "W12": w12,
    "W13": w13, "W15": w15,
}
QUICK = ["W1", "W3", "W7"]

"""One run: clients write, faults are committed, everything drains, and is judged."""

import random
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable

import psycopg

from harness.checks import ScenarioFailed, check, equal, wait_for
from harness.trial import Trial
from harness.worker import Connector

from .faults import Faults, address_of
from .judge import Witness, judge
from .workload import READABLE, Counts, clients

# So long may the worker take until the source has a new acknowledgement, whatever happened.
PATIENCE = 300
# So many bytes of the log may be on their way before the clients pause.
BACKLOG = 3 << 20


@dataclass(frozen=True)
class Plan:
    """What is to be done. The same numbers make the same plan; when exactly something hits is chance."""

    seed: int
    faults: int
    # Kafka and PostgreSQL are killed too.
    kills: bool = True
    # So many of the faults fall into the first snapshot.
    in_snapshot: int = 6
    # Another fault than the plan's random ones, for the test of the test.
    directed: str = ""
    # The last fault: somebody moves the slot on.
    gap: bool = True
    # So long at most; then what there is is judged.
    minutes: float = float("inf")

    @property
    def metadata(self) -> bool:
        """Whether transactions are told of."""
        return self.seed % 2 == 1


class Course:
    """One run of a plan."""

    def __init__(self, t: Trial, plan: Plan, say: Callable[[str], None]):
        self._t, self._plan, self._say = t, plan, say
        # The order of the faults does not depend on what the clients do.
        self._chance = random.Random(f"{plan.seed}-faults")
        self._counts = Counts()
        self._began = time.monotonic()
        self._done = 0
        self._faults: Faults | None = None
        self._snapshots = 0

    def run(self) -> None:
        """All of it; a `ScenarioFailed` says what is wrong."""
        t, plan = self._t, self._plan
        t.own_registry()
        witness = Witness(t)
        faults = self._faults = Faults(t, self._chance, plan.kills)
        watch = Watch(t, self._counts.gate)
        worker = faults.worker = t.worker(
            bootstrap_servers=faults.links["kafka"].address,
            key_converter_schema_registry_url=faults.registry_address,
            value_converter_schema_registry_url=faults.registry_address)
        crowd = clients(t, plan.seed, self._counts)
        for client in crowd:
            client.start()
        try:
            config = t.config() | address_of(faults.links["postgres"]) | {
                "provide.transaction.metadata": str(plan.metadata).lower()}
            if plan.in_snapshot:
                faults.links["postgres"].throttle(300_000)
            connector = worker.create(t.name, config, running=False)
            self._in_snapshot(faults, connector)
            wait_for(lambda: watch.start_of_stream is not None, PATIENCE, "the stream of changes", connector.failed)
            while self._done < plan.faults and time.monotonic() < self._began + 60 * plan.minutes:
                self._one(faults, connector)
        finally:
            for client in crowd:
                client.finish()
        watch.finish()
        self._drain(connector, faults)
        records = judge(t, witness, watch.start_of_stream or 0, metadata=plan.metadata)
        self._nothing_else()
        check(self._counts.rows > 10 * self._done, f"the clients got something done: {self._counts.rows} rows")
        if plan.gap:
            self._gap(faults, connector)
        self._say(f"{self._done} faults, {self._counts.commits} transactions of {self._counts.rows} rows, {self._snapshots} "
                  f"incremental snapshots; {records} records judged in order, none lost, none twice")

    def summary(self) -> str:
        """How often each kind of fault was committed, the most frequent first."""
        if self._faults is None or not self._faults.committed:
            return "no faults"
        kinds = self._faults.committed.most_common()
        return "\n".join(f"{count:5}  {kind}" for kind, count in [*kinds, ("faults in all", sum(self._faults.committed.values()))])

    # ------------------------------------------------------------ faults
    def _in_snapshot(self, faults: Faults, connector: Connector) -> None:
        for _ in range(self._plan.in_snapshot):
            time.sleep(self._chance.uniform(0.2, 1.5))
            self._commit(faults, connector)
            # The fault took this back.
            faults.links["postgres"].throttle(300_000)
        faults.links["postgres"].heal()

    def _one(self, faults: Faults, connector: Connector) -> None:
        """A fault; then often until what was written before it is through, else right into its recovery."""
        if self._chance.random() < 0.1:
            self._snapshot(connector)
        self._commit(faults, connector)
        if self._chance.random() < 0.35:
            self._recovered(connector)
        time.sleep(self._chance.choice((0.0, 0.3, 0.9)))

    def _commit(self, faults: Faults, connector: Connector) -> None:
        if self._plan.directed == "stall-and-kill":
            faults.kill_in_stall(faults.links["kafka"], 0.7)
            what = "kafka: stalled, and the worker killed"
        elif self._plan.directed == "kill":
            # One that has just been started does nothing yet that could be half done.
            self._recovered(connector)
            time.sleep(self._chance.uniform(0, 0.5))
            faults.restart_worker()
            what = "worker killed"
        else:
            what = faults.commit()
        self._done += 1
        passed = time.monotonic() - self._began
        left = passed / self._done * (self._plan.faults - self._done)
        self._say(f"{self._done:4}/{self._plan.faults} faults  {self._counts.rows:8} rows  {_clock(passed)} passed  "
                  f"{_clock(left)} left  {what}")
        if (reason := connector.worker.ended()) is not None:
            raise ScenarioFailed(reason)

    def _recovered(self, connector: Connector) -> None:
        position = self._persist(lambda: self._t.server.value("select pg_current_wal_lsn()::text"))
        self._confirmed(position, connector)

    def _confirmed(self, position: str, connector: Connector) -> None:
        asked = "select confirmed_flush_lsn >= %s::pg_lsn from pg_replication_slots where slot_name = %s"
        wait_for(lambda: self._t.server.value(asked, position, self._t.name), PATIENCE,
                 f"the slot's confirmation of {position}", connector.failed)

    def _snapshot(self, connector: Connector) -> None:
        """Some tables are read beside the stream. Where that is not taken now (the worker is just starting, one is under
        way), it is left."""
        tables = self._chance.sample(READABLE, self._chance.randint(1, len(READABLE)))
        try:
            answer = connector.request("POST", "/snapshots", {"data-collections": [f"public.{name}" for name in tables]})
        except OSError:
            return
        self._snapshots += answer.status == 202

    def _persist(self, ask: Callable[[], Any]) -> Any:
        """The database may be starting."""
        def answer() -> Any:
            try:
                return ask()
            except psycopg.OperationalError:
                return None
        return wait_for(answer, 60, "the database")

    # ------------------------------------------------------------ the end
    def _drain(self, connector: Connector, faults: Faults) -> None:
        for link in faults.links.values():
            link.heal()
        connector.wait_running(PATIENCE)
        def all_read() -> bool:
            found = connector.request("GET", "/snapshots").body["snapshot"]
            return found is None or found["state"] not in ("RUNNING", "PAUSED")
        wait_for(all_read, PATIENCE, "the end of the incremental snapshot", connector.failed)
        self._recovered(connector)

    def _nothing_else(self) -> None:
        """The connector's slot and publication, and none besides."""
        t = self._t
        slots = t.server.query("select slot_name, active from pg_replication_slots where database = %s", t.name)
        equal(slots, [{"slot_name": t.name, "active": True}], "slots")
        equal(t.admin.query("select pubname from pg_publication"), [{"pubname": t.name}], "publications")

    def _gap(self, faults: Faults, connector: Connector) -> None:
        """While the worker is away somebody moves the slot behind changes that it has not seen: never may it just go on."""
        t = self._t
        connector.worker.kill()
        wait_for(lambda: (t.slot() or {}).get("active_pid") is None, 90, "the slot without a reader")
        t.sql("insert into only_new values (-1, 0, 'nobody reads this', null)")
        t.admin.query("select pg_replication_slot_advance(%s, pg_current_wal_lsn())", t.name)
        connector.worker.start()
        wait_for(lambda: connector.trace() or self._streams(), 90, "a decision about the gap", connector.worker.ended)
        trace = connector.trace()
        check(trace is not None and trace.startswith("TG-E-SLOT-GAP"),
              f"a slot that was moved past the stored offset is refused with TG-E-SLOT-GAP; it is {trace or 'streaming'}: "
              "a change was lost and nobody was told")

    def _streams(self) -> bool:
        return bool(self._t.server.value("select state in ('catchup', 'streaming') from pg_stat_replication join "
                                         "pg_replication_slots on active_pid = pid where slot_name = %s", self._t.name))


class Watch(threading.Thread):
    """Looks at the slot all the time. Where it stands when the stream begins is what the first snapshot shows; and the clients
    pause while too much of the log has not been acknowledged."""

    def __init__(self, t: Trial, gate: threading.Event):
        super().__init__(daemon=True)
        self._t, self._gate = t, gate
        self._over = threading.Event()
        self.start_of_stream: int | None = None
        self.start()

    def run(self) -> None:
        """Until the end, whatever becomes of the server."""
        ask = ("select s.confirmed_flush_lsn - '0/0' as at, coalesce(r.state in ('catchup', 'streaming'), false) as streams, "
               "pg_current_wal_lsn() - s.confirmed_flush_lsn as left from pg_replication_slots s "
               "left join pg_stat_replication r on r.pid = s.active_pid where s.slot_name = %s")
        seen = None
        while not self._over.is_set():
            try:
                with self._t.server.connect() as session:
                    while not self._over.wait(0.03 if self.start_of_stream is None else 0.1):
                        row = session.execute(ask, (self._t.name,)).fetchone()
                        if row is None or row["at"] is None:
                            continue
                        if row["streams"] and seen is not None and self.start_of_stream is None:
                            self.start_of_stream = seen
                        seen = int(row["at"])
                        (self._gate.set if row["left"] < BACKLOG else self._gate.clear)()
            except psycopg.OperationalError:
                self._over.wait(0.1)

    def finish(self) -> None:
        """It is not needed any more."""
        self._over.set()
        self.join(30)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def to_terminal(line: str) -> None:
    """For people who wait."""
    print(line, file=sys.stderr, flush=True)

"""One measured run of one contestant: what it does, what it takes, and whether it was right."""

import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Callable

from harness.checks import wait_for
from harness.topics import Schemas
from stack.kafka import Kafka
from stack.registry import Registry

from .cluster import Tools, Topics, delete_subjects
from .contestants import Debezium, Recvlogical, Tidegate, client_program
from .probes import Meter, Usage, thread_cpu_of
from .source import NAME, Load, Source, scratch

# A drain that does not get further for so long has failed.
STALLED = 60.0
# How long the last stable offset has to stay where it is, to be taken for the end.
SETTLED = 0.7
# How far a reader may be behind when the last row of a steady rate is written.
LATE = 120

Reader = Tidegate | Debezium
Result = dict[str, Any]


class Bench:
    """The services, and the runs on them."""

    def __init__(self, source: Source, kafka: Kafka, registry: Registry, say: Callable[[str], None]):
        self.source, self.kafka, self.registry, self.say = source, kafka, registry, say
        self.topics = Topics(kafka.address)
        self.tools = Tools(kafka.address)
        self.schemas = Schemas(registry.address)
        self._number = 0
        # The topic of the worker's last drain, from which the bare producer takes its records.
        self.example: str | None = None
        # What an interrupted benchmark left.
        self.topics.forget([NAME])
        delete_subjects(registry.address, NAME)
        shutil.rmtree(scratch(""), ignore_errors=True)

    def label(self) -> str:
        """A name for everything that a run makes."""
        self._number += 1
        return f"{NAME}{self._number}"

    def others(self) -> dict[str, int]:
        """Processes that are measured beside the contestant."""
        pids = {"broker": self.kafka.brokers[0].process.pid(), "registry": self.registry.process.pid(),
                "postmaster": self.source.server.process.pid()}
        return {name: pid for name, pid in pids.items() if pid}

    def forget(self, label: str) -> None:
        """Remove a run's topics, schemas and slot."""
        self.source.drop_slot(label)
        self.topics.forget([f"{label}.", f"{label}-"])
        delete_subjects(self.registry.address, f"{label}.")

    # ------------------------------------------------------------ a backlog, read to its end
    def recvlogical(self, reader: Recvlogical, load: Load, facts: Result) -> Result:
        """The load through PostgreSQL's own reader."""
        label = self.label()
        self.source.copy_slot(label)
        meter: list[Meter] = []

        def seen(tool: int, sender: int) -> None:
            meter.append(Meter(tool, lambda: sender, self.others(), interval=0.02))
            meter[0].begin()

        seconds = reader.run(label, facts["end"], seen)
        usage = meter[0].end(meter[0].began + seconds)
        self.source.drop_slot(label)
        return result(usage, load.rows) | {"right": True}

    def drain(self, reader: Reader, load: Load, *, keep: bool = False, snapshot: bool = False, **options: str) -> Result:
        """The load through the worker or Debezium into a fresh topic, which is then checked."""
        label = self.label()
        if not snapshot:
            self.source.copy_slot(label)
        topics = [f"{label}.{topic}" for topic in load.topics]
        self.topics.create(topics)
        try:
            if snapshot:
                options["snapshot.mode"] = "initial"
            tool = reader.start(label, load.tables, **{**reader.backlog, **options})
            submitted = time.monotonic()
            reader.submit()
            sender = self._sender(label, reader, snapshot)
            usage = self._follow(tool, sender, reader, load, topics)
            found = result(usage, load.rows) | {"start_s": usage.samples[0].at - submitted}
        except BaseException:
            reader.stop()
            self.forget(label)
            raise
        reader.stop()
        found["check"] = self._verify(load, topics)
        found["right"] = found["check"]["right"]
        if keep and reader.name == "tidegate":
            if self.example:
                self.forget(self.example.partition(".")[0])
            self.example = topics[0]
        else:
            self.forget(label)
        return found

    def _sender(self, label: str, reader: Reader, snapshot: bool) -> Callable[[], int | None]:
        deadline = time.monotonic() + 120
        while not snapshot:
            if (pid := self.source.sender(label)) is not None:
                return lambda: pid
            if time.monotonic() > deadline or (reason := reader.failed()):
                raise RuntimeError(f"{reader.name} does not read the slot: {reason or 'nothing happens'}")
        return self._busiest_backend

    def _busiest_backend(self) -> int | None:
        rows = self.source.admin.query("select pid from pg_stat_activity where datname = %s and pid <> pg_backend_pid() "
                                       "and state = 'active'", NAME)
        return max((row["pid"] for row in rows), key=lambda pid: thread_cpu_of(pid) or 0.0, default=None)

    def _follow(self, tool: int, sender: Callable[[], int | None], reader: Reader, load: Load, topics: list[str]) -> Usage:
        at = [0]
        meter = Meter(tool, sender, self.others(), lambda: at[0], interval=0.05)
        meter.begin(tool_from_now=True)
        total = load.rows * (2 if load.tombstones else 1)
        # Asking for hundreds of topics again and again would keep the broker busy: of many a few are watched until they have their
        # share, and then all.
        watched = topics if len(topics) < 4 else [topics[0], topics[len(topics) // 2], topics[-1]]
        share = total * len(watched) // len(topics) - len(watched)
        moved = told = meter.began
        while True:
            now = time.monotonic()
            end = sum(self.topics.committed(topic) for topic in watched)
            if watched is not topics:
                end = self.topics.committed_sum(topics) if end >= share else end * len(topics) // len(watched)
            if end != at[0]:
                at[0], moved = end, now
            if end >= total and now - moved > SETTLED and self._is_last(load, topics, end):
                return meter.end(moved)
            if now - moved > STALLED:
                raise RuntimeError(f"{reader.name} stopped at {end} of {total}: {reader.failed() or 'nothing happens'}")
            if now - told > 2:
                told = now
                self.say(f"{min(end, total):,} of {total:,}")
                if (reason := reader.failed()) is not None:
                    raise RuntimeError(reason)
            time.sleep(0.02 if len(topics) == 1 else 0.2)

    def _is_last(self, load: Load, topics: list[str], end: int) -> bool:
        if len(topics) > 1 or load.unordered:
            return True
        return self.topics.last_number(topics[0], end) == load.first + load.rows - 1

    def _verify(self, load: Load, topics: list[str]) -> Result:
        flags = ["--tombstones"] * load.tombstones + ["--unordered"] * load.unordered
        names = [word for topic in topics for word in ("--topic", topic)]
        found = self.tools.run("verify", *names, "--first", str(load.first), "--rows", str(load.rows), *flags)
        wrong = self._compare(load, topics[0]) if load.compare else 0
        return found | {"wrong_values": wrong, "right": found["right"] and wrong == 0}

    def _compare(self, load: Load, topic: str) -> int:
        """Rows, of a sample from beginning, middle and end, of which a value is not what the table has."""
        end = self.topics.committed(topic)
        wrong = 0
        for start in (0, end // 2, max(0, end - 120)):
            messages = self.topics.some(topic, start, 100)
            images = {}
            for message in messages:
                _, value = self.schemas.decode(message.value())
                images[value["after"]["id"]] = value["after"]
            # The topic's name makes it another statement for a table that was made anew with other columns.
            rows = self.source.database.query(f"select * from public.{load.tables[0]} where id = any(%s) -- {topic}", list(images))
            wrong += len(images) - len(rows)
            for row in rows:
                wrong += any(images[row["id"]][column] != row[column] for column in load.compare)
        return wrong

    # ------------------------------------------------------------ rows at a steady rate
    def latency(self, reader: Reader, rate: int, seconds: int, warm: int, **options: str) -> Result:
        """Rows written at a rate while the contestant reads, and when each became visible to a `read_committed` reader."""
        label = self.label()
        topic = f"{label}.public.paced"
        first = (self.source.database.value("select max(id) from paced") or 0) + 1
        self.source.database.query("select pg_create_logical_replication_slot(%s, 'pgoutput')", label)
        self.topics.create([topic])
        batch = max(1, rate // 2000)
        total = rate * (warm + seconds)
        out = scratch(label) / "visible"
        watch = None
        try:
            tool = reader.start(label, ["paced"], **options)
            reader.submit()
            sender = self._sender(label, reader, False)
            watch = subprocess.Popen(self.tools.command("watch", "--topic", topic, "--rows", str(total), "--seconds", str(
                warm + seconds + LATE), "--out", str(out)), stdout=subprocess.DEVNULL)
            writer = self._write_paced(label, rate, batch, total)
            time.sleep(warm)
            meter = Meter(tool, sender, self.others() | {"writer": writer.pid, "watch": watch.pid}, interval=0.2)
            meter.begin(tool_from_now=True)
            began = time.time()
            while writer.poll() is None:
                self.say(f"{rate:,} rows/s for {warm + seconds} s")
                time.sleep(0.5)
            usage = meter.end()
            if writer.returncode != 0:
                raise RuntimeError(f"pgbench ended with {writer.returncode}")
            if watch.wait(warm + seconds + 2 * LATE) != 0:
                raise RuntimeError("the program that watches the topic ended early")
            reason = reader.failed()
            if reason is not None:
                raise RuntimeError(reason)
        finally:
            reader.stop()
            if watch is not None:
                watch.kill()
                watch.wait()
        check = self.tools.run("verify", "--topic", topic, "--first", str(first), "--rows", str(total), "--unordered")
        rows = rate * usage.wall
        found = result(usage, int(rows)) | {"check": check, "right": check["right"], "asked_rate": rate}
        found |= self._percentiles(out, first, began)
        self.forget(label)
        return found

    def _write_paced(self, label: str, rate: int, batch: int, total: int) -> subprocess.Popen:
        script = scratch(label) / "paced.sql"
        script.write_text("insert into paced (delta, note, mtime, at) select n, 'note ' || n, now(), clock_timestamp() "
                          f"from generate_series(1, {batch}) n\n")
        server = self.source.server
        command = [client_program("pgbench"), "-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres", "-n", "-M", "prepared", "-c", "2",
                   "-j", "1", "-R", str(rate // batch), "-t", str(total // batch // 2), "-f", str(script), NAME]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _percentiles(self, visible: Path, first: int, began: float) -> Result:
        """Milliseconds from writing a row to reading it, for rows written after the warm-up."""
        written: dict[int, int] = {}
        with self.source.database.session() as session, session.cursor() as cursor:
            query = f"copy (select id, (extract(epoch from at) * 1000000)::bigint from paced where id >= {first}) to stdout"
            with cursor.copy(query) as copy:
                for row in copy.rows():
                    written[int(row[0])] = int(row[1])
        seen, appended = [], []
        for line in visible.read_text().splitlines():
            number, append_ms, visible_us = (int(word) for word in line.split())
            at = written.get(number)
            if at is not None and at >= began * 1e6:
                seen.append((visible_us - at) / 1000)
                appended.append(append_ms - at / 1000)
        return {"latency_ms": quantiles(seen), "append_ms": quantiles(appended)}

    # ------------------------------------------------------------ killed, and started again
    def restart(self, reader: Tidegate, tables: list[str], rate: int, seconds: int) -> Result:
        """kill -9 while rows are written at a rate: how long until a reader gets the first row that it did not get before."""
        label = self.label()
        topic = f"{label}.public.paced"
        first = (self.source.database.value("select max(id) from paced") or 0) + 1
        self.source.database.query("select pg_create_logical_replication_slot(%s, 'pgoutput')", label)
        self.topics.create([topic])
        total = rate * seconds
        out = scratch(label) / "visible"
        watch = None
        try:
            reader.start(label, ["paced", *tables])
            reader.submit()
            self._sender(label, reader, False)
            watch = subprocess.Popen(self.tools.command("watch", "--topic", topic, "--rows", str(total), "--seconds", str(seconds + LATE),
                                                        "--out", str(out)), stdout=subprocess.DEVNULL)
            writer = self._write_paced(label, rate, 1, total)
            wait_for(lambda: self.topics.committed(topic) > rate * 2, 60, "rows of the paced table", reader.failed)
            killed = time.time()
            reader.kill_and_start()
            if writer.wait(seconds + 60) != 0 or watch.wait(seconds + 2 * LATE) != 0:
                raise RuntimeError("the writer or the program that watches the topic failed")
        finally:
            reader.stop()
            if watch is not None:
                watch.kill()
                watch.wait()
        check = self.tools.run("verify", "--topic", topic, "--first", str(first), "--rows", str(total), "--unordered")
        seen = sorted(int(line.split()[2]) / 1e6 for line in out.read_text().splitlines())
        # What was committed just before may arrive just after; then nothing comes until the new worker has committed.
        pauses = [(after - before, after) for before, after in zip(seen, seen[1:]) if after > killed]
        self.forget(label)
        return {"rows": total, "right": check["right"], "check": check, "restart_s": max(pauses)[1] - killed}

    # ------------------------------------------------------------ nothing to do
    def idle(self, reader: Reader, tables: list[str], seconds: int) -> Result:
        """Connected, with nothing to read."""
        label = self.label()
        self.source.database.query("select pg_create_logical_replication_slot(%s, 'pgoutput')", label)
        try:
            submitted = time.monotonic()
            tool = reader.start(label, tables)
            reader.submit()
            sender = self._sender(label, reader, False)
            started = time.monotonic() - submitted
            time.sleep(5)
            meter = Meter(tool, sender, self.others(), interval=0.5)
            meter.begin(tool_from_now=True)
            time.sleep(seconds)
            usage = meter.end()
            reason = reader.failed()
            if reason is not None:
                raise RuntimeError(reason)
        finally:
            reader.stop()
        self.forget(label)
        return result(usage, 0) | {"right": True, "start_s": started, "tables": len(tables),
                                   "core_percent": 100 * usage.cpu["tool"] / usage.wall}

    # ------------------------------------------------------------ the Kafka client alone
    def producer(self, rows: int) -> Result:
        """The records of the worker's last drain, sent again by nothing but the Kafka client."""
        if self.example is None:
            raise RuntimeError("there is no drain of the worker to take records from")
        label = self.label()
        self.topics.create([f"{label}.copy"])
        settings = {"compression.type": "lz4", "linger.ms": "1", "batch.size": "1000000", "batch.num.messages": "1000000", "acks": "all",
                    "enable.idempotence": "true", "queue.buffering.max.kbytes": str(32 << 10),
                    "delivery.report.only.error": "true"}
        words = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
        found = self.tools.run("produce", "--from", self.example, "--to", f"{label}.copy", "--rows", str(rows), *words)
        self.forget(label)
        return {"rows": rows, "wall_s": found["wall_s"], "rate": rows / found["wall_s"], "cpu_us": found["cpu_s"] / rows * 1e6,
                "right": True}

    def copy_out(self, load: Load) -> Result:
        """The table through COPY into /dev/null: the speed at which the server can give a snapshot."""
        server = self.source.server
        command = [client_program("psql"), "-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres", "-qX", "-d", NAME, "-c",
                   f"copy public.{load.tables[0]} to stdout"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        meter = Meter(process.pid, self._busiest_backend, self.others(), interval=0.05)
        meter.begin()
        process.wait()
        return result(meter.end(), load.rows) | {"right": process.returncode == 0}


def result(usage: Usage, rows: int) -> Result:
    """What is kept of a run; times per row in microseconds."""
    per_row = {name: seconds / rows * 1e6 for name, seconds in usage.cpu.items()} if rows else {}
    found = {"rows": rows, "wall_s": usage.wall, "rate": rows / usage.wall if usage.wall else 0.0,
             "cpu_us": per_row.get("tool"), "sender_us": per_row.get("sender"), "broker_us": per_row.get("broker"),
             "cpu_s": usage.cpu, "rss_steady_mb": usage.rss_steady, "rss_peak_mb": usage.rss_peak,
             "foreign": usage.foreign, "steal": usage.steal, "load": usage.load}
    first = next((sample.at - usage.samples[0].at for sample in usage.samples if sample.rows), None)
    if first is not None:
        found["first_s"] = first
    if usage.warm_cpu is not None and usage.warm_wall and rows and usage.warm_rows < rows:
        warm = rows - usage.warm_rows
        found |= {"warm_cpu_us": usage.warm_cpu / warm * 1e6, "warm_rate": warm / usage.warm_wall}
    return found


def quantiles(values: list[float]) -> dict[str, float]:
    """The percentiles that are published; of nothing nothing."""
    values = sorted(values)
    if not values:
        return {}
    points = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
    found = {name: values[min(len(values) - 1, int(part * len(values)))] for name, part in points.items()}
    return found | {"max": values[-1], "count": len(values)}

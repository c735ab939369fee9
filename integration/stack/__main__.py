"""up, down, status, logs, env, venv, clean of the local stack."""

import fcntl
import os
import shutil
import sys
import time

from . import settings, venv
from .kafka import Kafka
from .postgres import VERSIONS, Postgres
from .process import tail
from .registry import Registry
from .settings import DIR, StackError

USAGE = "usage: python3 -m stack up|down|status|logs [PART]|env|venv|clean"


def parts() -> list:
    """What `up` starts."""
    return [Postgres(), Kafka(), Registry()]


def known() -> list:
    """What any earlier `up` may have started, with whatever choice of version or number."""
    # The benchmark's server is stopped by the benchmark, unless that was killed.
    servers = [*(Postgres(major) for major in ["", *VERSIONS]), Postgres(name="postgres-bench")]
    # And those of a comparison with Debezium, and of chaos, by these.
    return [*servers, Postgres(name="postgres-parity"), Kafka(1), Kafka(3), Kafka(1, name="kafka-parity"),
            Kafka(3, name="kafka-chaos"), Registry()]


def up() -> None:
    """Start everything, all parts at once, and say where it is."""
    settings.prepare()
    with (DIR / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        began = time.monotonic()
        chosen = parts()
        for part in chosen:
            part.install()
        for part in chosen:
            part.launch()
        for part in chosen:
            part.wait()
            print(f"{part.name:12} {part.address}")
        print(f"up in {time.monotonic() - began:.1f} s")


def down() -> None:
    """Stop everything; keeps the data."""
    for part in reversed(known()):
        part.stop()
    print("down")


def status() -> bool:
    """One line per part; whether all that `up` would start runs."""
    wanted = {part.name for part in parts()}
    complete = True
    seen = set()
    for part in known():
        processes = [broker.process for broker in part.brokers] if isinstance(part, Kafka) else [part.process]
        pids = [process.pid() for process in processes]
        if any(pids):
            state = "answers" if part.ready() else "DOES NOT ANSWER"
            print(f"{part.name:12} {state:8} {part.address}  pid {' '.join(str(pid) for pid in pids)}")
            seen.add(part.name)
            complete &= state == "answers"
    for name in sorted(wanted - seen):
        print(f"{name:12} is not running")
    return complete and wanted <= seen


def logs(name: str | None) -> None:
    """The end of each log, or of one part's."""
    for log in sorted(DIR.glob("*/*.log")):
        if name is None or log.stem.startswith(name):
            print(f"== {log}\n{tail(log, 20 if name is None else 200)}")


def env() -> None:
    """Shell lines for `eval`, as the tests with services want them."""
    postgres, kafka, registry = parts()
    for variable, part in (("PG", postgres), ("KAFKA", kafka), ("REGISTRY", registry)):
        print(f"export TIDEGATE_TEST_{variable}='{part.address}'")


def clean() -> None:
    """Stop everything and delete data and logs; downloads are kept."""
    down()
    for entry in DIR.iterdir() if DIR.exists() else []:
        if entry.name in ("downloads", "venv"):
            continue
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink()


def main(arguments: list[str]) -> int:
    """Carry out one command."""
    commands = {"up": up, "down": down, "status": status, "env": env, "venv": venv.main, "clean": clean}
    # PostgreSQL's user has to read what is downloaded and made here.
    os.umask(0o022)
    try:
        match arguments:
            case [word] if word in commands:
                return 1 if commands[word]() is False else 0
            case ["logs", *rest] if len(rest) < 2:
                logs(rest[0] if rest else None)
                return 0
        print(USAGE, file=sys.stderr)
        return 2
    except StackError as error:
        print(f"stack: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A fault proxy: TCP connections that are cut, stalled, delayed, throttled, or left half open on command."""

import asyncio
import contextlib
import socket
import struct
import threading
from dataclasses import dataclass, field
from typing import Any, Callable, Coroutine, Sequence

from stack.settings import HOST

CHUNK = 64 * 1024


@dataclass(eq=False)
class _End:
    """One side of a connection that goes through."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def close(self, *, reset: bool = False) -> None:
        """Close it; with a reset instead of an orderly end if asked for."""
        if reset:
            with contextlib.suppress(OSError, AttributeError):
                self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.writer.transport.abort()
        else:
            self.writer.close()


@dataclass(eq=False)
class _Connection:
    """Both sides. `lost`: what arrives goes nowhere, and nobody is told."""

    client: _End
    server: _End
    lost: bool = False
    tasks: list[asyncio.Task] = field(default_factory=list)


class Link:
    """One address that stands for another. Without orders it passes everything on.

    All methods may be called from any thread; they return when the order is carried out.
    """

    def __init__(self, proxy: "FaultProxy", target: int, port: int):
        self.port = port
        self._proxy = proxy
        self._target = target
        self._connections: set[_Connection] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._refuses = False
        self._delay = 0.0
        self._rate = 0.0
        # Bytes that may still pass until everything is cut.
        self._budget: int | None = None
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{HOST}:{self.port}"

    def count(self) -> int:
        """How many connections go through it."""
        return self._do(lambda: len(self._connections))

    def cut(self, *, reset: bool = True) -> int:
        """End all connections that there are; how many there were."""
        return self._do(lambda: self._cut(reset))

    def cut_after(self, count: int) -> None:
        """End all connections as soon as so many more bytes have passed: in the middle of anything."""
        self._do(lambda: setattr(self, "_budget", count))

    def refuse(self) -> None:
        """End connections, and let nobody in."""
        self._do(lambda: (setattr(self, "_refuses", True), self._cut(True)))

    def stall(self) -> None:
        """Pass nothing on; nothing is lost."""
        self._do(self._open.clear)

    def delay(self, seconds: float) -> None:
        """Pass each piece on so much later."""
        self._do(lambda: setattr(self, "_delay", seconds))

    def throttle(self, rate: float) -> None:
        """Pass on so many bytes in a second; 0: all at once."""
        self._do(lambda: setattr(self, "_rate", rate))

    def half_open(self, side: str) -> int:
        """The `client` or the `server` is gone; the other side of each connection hears nothing of it."""
        return self._do(lambda: self._half_open(side))

    def heal(self) -> None:
        """Take all orders back. What is half open stays so until `cut`."""
        def back() -> None:
            self._refuses, self._delay, self._rate, self._budget = False, 0.0, 0.0, None
            self._open.set()
        self._do(back)

    # ------------------------------------------------------------ in the loop
    def _do(self, order: Callable[[], Any]) -> Any:
        async def carried_out() -> Any:
            return order()
        return self._proxy.run(carried_out())

    def _cut(self, reset: bool) -> int:
        found = list(self._connections)
        for connection in found:
            self._end(connection, reset)
        return len(found)

    def _end(self, connection: _Connection, reset: bool) -> None:
        connection.client.close(reset=reset)
        connection.server.close(reset=reset)
        for task in connection.tasks:
            task.cancel()
        self._connections.discard(connection)

    def _half_open(self, side: str) -> int:
        found = [connection for connection in self._connections if not connection.lost]
        for connection in found:
            connection.lost = True
            (connection.client if side == "client" else connection.server).close(reset=True)
        return len(found)

    async def listen(self) -> None:
        """Take connections from now on."""
        self._server = await asyncio.start_server(self._accept, HOST, self.port)

    def close(self) -> None:
        """Take no more connections, and end those that there are."""
        if self._server is not None:
            self._server.close()
        self._cut(True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _End(reader, writer)
        if self._refuses:
            client.close(reset=True)
            return
        # In a stall nobody answers, but the connection is taken, as by a system that stands still.
        await self._open.wait()
        try:
            server = _End(*await asyncio.open_connection(HOST, self._target))
        except OSError:
            client.close(reset=True)
            return
        connection = _Connection(client, server)
        self._connections.add(connection)
        connection.tasks = [asyncio.create_task(self._pump(connection, client, server)),
                            asyncio.create_task(self._pump(connection, server, client))]
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*connection.tasks, return_exceptions=True)
        if not connection.lost:
            self._end(connection, False)

    async def _pump(self, connection: _Connection, source: _End, sink: _End) -> None:
        try:
            while data := await source.reader.read(CHUNK):
                if not connection.lost:
                    await self._pass_on(data, sink)
            if not connection.lost:
                await self._open.wait()
                sink.writer.write_eof()
        except OSError:
            # One side was reset, as when a process dies with something unread; the other hears of it.
            if not connection.lost:
                await self._open.wait()
                self._end(connection, True)

    async def _pass_on(self, data: bytes, sink: _End) -> None:
        if self._delay:
            await asyncio.sleep(self._delay)
        step = max(1024, int(self._rate / 20)) if self._rate else len(data)
        for begin in range(0, len(data), step):
            await self._open.wait()
            piece = data[begin:begin + step]
            if self._budget is not None:
                piece, self._budget = piece[:self._budget], self._budget - len(piece)
                if self._budget <= 0:
                    self._budget = None
                    sink.writer.write(piece)
                    self._proxy.soon(lambda: self._cut(False))
                    return
            sink.writer.write(piece)
            await sink.writer.drain()
            if self._rate:
                await asyncio.sleep(len(piece) / self._rate)


class Links:
    """Several links that obey as one: a cluster's brokers."""

    def __init__(self, links: Sequence[Link]):
        self.links = links

    @property
    def address(self) -> str:
        """All of them, separated by commas."""
        return ",".join(link.address for link in self.links)

    def __getattr__(self, order: str) -> Callable[..., int]:
        """Any of `Link`'s orders, to each; numbers that are answered are added."""
        def to_each(*arguments: Any, **more: Any) -> int:
            return sum(getattr(link, order)(*arguments, **more) or 0 for link in self.links)
        return to_each


class FaultProxy:
    """Any number of links, served by one thread."""

    def __init__(self) -> None:
        self._links: list[Link] = []
        self._loop = asyncio.new_event_loop()
        # That a connection was cancelled is no news here.
        self._loop.set_exception_handler(lambda _loop, _context: None)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def link(self, target: int, port: int) -> Link:
        """Stand for this machine's port `target` at `port`."""
        async def made() -> Link:
            link = Link(self, target, port)
            await link.listen()
            self._links.append(link)
            return link
        return self.run(made())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Do something in the loop, from another thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def soon(self, order: Callable[[], Any]) -> None:
        """Do something in the loop when it comes to it."""
        self._loop.call_soon(order)

    def close(self) -> None:
        """End everything that goes through. A second time does nothing."""
        if not self._thread.is_alive():
            return
        async def ended() -> None:
            for link in self._links:
                link.close()
            for task in asyncio.all_tasks():
                if task is not asyncio.current_task():
                    task.cancel()
        with contextlib.suppress(Exception):
            self.run(ended())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

"""Tests of the fault proxy, against an echo."""

import contextlib
import socket
import struct
import threading
import time
import unittest

from stack.settings import HOST

from .proxy import FaultProxy, Link, Links
from .worker import free_port


class ProxyTests(unittest.TestCase):
    """Each order does what it says, and no more."""

    def setUp(self) -> None:
        listener = socket.create_server((HOST, 0))
        self.addCleanup(listener.close)
        self.peers: list[socket.socket] = []
        threading.Thread(target=self.echo, args=(listener,), daemon=True).start()
        self.proxy = FaultProxy()
        self.addCleanup(self.proxy.close)
        self.server = listener.getsockname()[1]
        self.link = self.proxy.link(self.server, free_port())

    def echo(self, listener: socket.socket) -> None:
        """The server: whoever comes gets back what they send."""
        def one(peer: socket.socket) -> None:
            with contextlib.suppress(OSError), peer:
                while data := peer.recv(65536):
                    peer.sendall(data)

        with contextlib.suppress(OSError):
            while True:
                self.peers.append(listener.accept()[0])
                threading.Thread(target=one, args=(self.peers[-1],), daemon=True).start()

    def connect(self, link: Link | None = None) -> socket.socket:
        """A client that has been answered once."""
        client = socket.create_connection((HOST, (link or self.link).port), 5)
        self.addCleanup(client.close)
        self.assertEqual(self.ask(client, b"hello"), b"hello")
        return client

    @staticmethod
    def ask(client: socket.socket, data: bytes, timeout: float = 5) -> bytes:
        """What comes back, up to the end or as much as was sent; a reset ends it, too."""
        client.settimeout(timeout)
        answer = b""
        with contextlib.suppress(ConnectionError):
            client.sendall(data)
            while len(answer) < len(data) and (more := client.recv(65536)):
                answer += more
        return answer

    def test_all_passes_without_orders(self) -> None:
        data = bytes(range(256)) * 4096
        self.assertEqual(self.ask(self.connect(), data), data)

    def test_a_cut_ends_what_is_there_and_others_may_come(self) -> None:
        client = self.connect()
        self.assertEqual(self.link.cut(), 1)
        self.assertEqual(self.ask(client, b"x"), b"")
        self.connect()

    def test_a_cut_in_the_middle_lets_so_many_bytes_pass(self) -> None:
        client = self.connect()
        # There and back again.
        self.link.cut_after(1000 + 10)
        self.assertLess(len(self.ask(client, b"y" * 1000)), 1000)

    def test_a_stall_loses_nothing(self) -> None:
        client = self.connect()
        self.link.stall()
        with self.assertRaises(TimeoutError):
            self.ask(client, b"later", 0.2)
        self.link.heal()
        client.settimeout(5)
        self.assertEqual(client.recv(10), b"later")

    def test_nobody_comes_in_while_it_refuses(self) -> None:
        self.link.refuse()
        with socket.create_connection((HOST, self.link.port), 5) as client:
            self.assertEqual(self.ask(client, b"x"), b"")
        self.link.heal()
        self.connect()

    def test_half_open_tells_one_side_nothing(self) -> None:
        client = self.connect()
        self.assertEqual(self.link.half_open("server"), 1)
        with self.assertRaises(TimeoutError):
            self.ask(client, b"is anybody there", 0.2)
        self.connect()
        self.link.cut()
        self.assertEqual(self.ask(client, b"x"), b"")

    def test_a_reset_is_passed_on(self) -> None:
        client = self.connect()
        # A server that dies with something unread resets.
        self.peers[-1].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.peers[-1].shutdown(socket.SHUT_RD)
        self.peers[-1].close()
        client.settimeout(5)
        with contextlib.suppress(ConnectionError):
            self.assertEqual(client.recv(10), b"")

    def test_several_obey_as_one(self) -> None:
        links = Links([self.link, self.proxy.link(self.server, free_port())])
        clients = [self.connect(link) for link in links.links]
        self.assertEqual(links.cut(), 2)
        for client in clients:
            self.assertEqual(self.ask(client, b"x"), b"")

    def test_when_it_is_closed_its_place_is_free(self) -> None:
        client = self.connect()
        self.proxy.close()
        self.assertEqual(self.ask(client, b"x"), b"")
        FaultProxy().link(1, self.link.port)

    def test_a_delay_is_that_long(self) -> None:
        client = self.connect()
        self.link.delay(0.1)
        began = time.monotonic()
        self.assertEqual(self.ask(client, b"slow"), b"slow")
        self.assertGreaterEqual(time.monotonic() - began, 0.2)


if __name__ == "__main__":
    unittest.main()

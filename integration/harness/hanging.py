"""A transaction that Kafka will never end: its producer is through with it, and the coordinator does not know of it.

Brokers keep clients from making one, so the requests are written here by hand (https://kafka.apache.org/protocol), and the
cluster has to be told not to look (`transaction.partition.verification.enable=false`). Losing an end marker looks the same.
"""

import socket
import struct
import time
from typing import Iterator

INIT_PRODUCER_ID, PRODUCE, WRITE_TXN_MARKERS = 22, 0, 27


class HangingTransaction:
    """One record in one partition of a cluster of one broker."""

    def __init__(self, address: str, topic: str, partition: int, key: bytes, *, age: float):
        """`age` in seconds: the record says that it is so old."""
        self._address, self._topic, self._partition = address, topic, partition
        # No transactional id: whoever makes a transaction with it has no coordinator either.
        answer = self._ask(INIT_PRODUCER_ID, 0, struct.pack(">hi", -1, 60_000))
        _, error, self._id, self._epoch = struct.unpack(">ihqh", answer)
        assert error == 0, f"InitProducerId: error {error}"
        batch = self._batch(key, int((time.time() - age) * 1000))
        request = (_text("hanging") + struct.pack(">hii", -1, 10_000, 1) + _text(topic)
                   + struct.pack(">iii", 1, partition, len(batch)) + batch)
        answer = self._ask(PRODUCE, 3, request)
        at = 4 + 2 + len(topic) + 4
        _, error, self.start = struct.unpack(">ihq", answer[at:at + 14])
        assert error == 0, f"Produce: error {error}"

    def abort(self) -> None:
        """What `kafka-transactions.sh abort` does."""
        request = (b"\x02" + struct.pack(">qh?", self._id, self._epoch, False)
                   + b"\x02" + bytes([len(self._topic) + 1]) + self._topic.encode()
                   + b"\x02" + struct.pack(">i", self._partition) + b"\0" + struct.pack(">i", 0) + b"\0" + b"\0")
        answer = self._ask(WRITE_TXN_MARKERS, 1, request, flexible=True)
        error, = struct.unpack(">h", answer[-5:-3])
        assert error == 0, f"WriteTxnMarkers: error {error}"

    def _batch(self, key: bytes, millis: int) -> bytes:
        body = b"\0" + _varint(0) + _varint(0) + _varint(len(key)) + key + _varint(1) + b"x" + _varint(0)
        record = _varint(len(body)) + body
        transactional = 0x10
        rest = struct.pack(">hiqqqhii", transactional, 0, millis, millis, self._id, self._epoch, 0, 1) + record
        checked = struct.pack(">ibI", -1, 2, _crc32c(rest)) + rest
        return struct.pack(">qi", 0, len(checked)) + checked

    def _ask(self, api: int, version: int, request: bytes, *, flexible: bool = False) -> bytes:
        """A request and its answer, without their headers."""
        host, port = self._address.split(":")
        header = struct.pack(">hhi", api, version, 1) + _text("harness") + (b"\0" if flexible else b"")
        with socket.create_connection((host, int(port)), 20) as connection:
            connection.sendall(struct.pack(">i", len(header) + len(request)) + header + request)
            stream = connection.makefile("rb")
            answer = stream.read(struct.unpack(">i", stream.read(4))[0])
        return answer[5 if flexible else 4:]


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _table() -> Iterator[int]:
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        yield number


_TABLE = list(_table())


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF

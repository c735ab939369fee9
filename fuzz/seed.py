#!/usr/bin/env python3
"""Makes the fuzzer's seeds (fuzz/corpus) from the recorded streams (tests/fixtures/streams)."""

import hashlib
import pathlib
import struct

FUZZ = pathlib.Path(__file__).resolve().parent


def frames(recording):
    rest = recording.read_bytes()
    while rest:
        length = struct.unpack(">I", rest[:4])[0]
        yield rest[4 : 4 + length]
        rest = rest[4 + length :]


def seed(target, data):
    folder = FUZZ / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


for path in sorted((FUZZ.parent / "tests/fixtures/streams").glob("*.bin")):
    short = [frame for frame in frames(path) if len(frame) < 1000]
    for frame in short:
        seed("message", frame)
    if len(short) < 200:
        seed("decoder", b"".join(struct.pack(">H", len(frame)) + frame for frame in short))

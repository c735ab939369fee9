"""A key's partition is the one that the Java producer would choose, so that per-key order survives a migration."""

from harness.checks import check, equal
from harness.trial import Trial

# The same on every version of the server.
SERVER_MATTERS = False

PARTITIONS = 6


def murmur2(data: bytes) -> int:
    """The hash of the Java client's default partitioner, made positive."""
    mask, factor, shift = 0xFFFFFFFF, 0x5BD1E995, 24
    value = (0x9747B28C ^ len(data)) & mask
    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start:start + 4], "little") * factor & mask
        word = (word ^ word >> shift) * factor & mask
        value = (value * factor & mask) ^ word
    rest = data[whole:]
    if rest:
        value = (value ^ int.from_bytes(rest, "little")) * factor & mask
    value = (value ^ value >> 13) * factor & mask
    return (value ^ value >> 15) & 0x7FFFFFFF


def run(t: Trial) -> None:
    # Known answers: Avro keys of one int with schema id 1.
    for key, partition in {"000000000102": 0, "000000000104": 4, "000000000154": 0, "0000000001d00f": 4,
                           "0000000001feffffff0f": 3}.items():
        equal(murmur2(bytes.fromhex(key)) % PARTITIONS, partition, f"the test's own hash of {key}")
    t.connect(topic_creation_default_partitions=str(PARTITIONS))
    t.sql("insert into t select g, 0 from generate_series(1, 200) g", "update t set v = 1", "delete from t where id % 2 = 0",
          "insert into keyless select generate_series(1, 200)")
    records = t.settled_records("t")
    equal([r.partition for r in records], [murmur2(r.raw_key) % PARTITIONS for r in records], "partitions")
    check(len({r.partition for r in records}) == PARTITIONS, "all partitions are used")
    t.exactly_once(records)
    keyless = t.topic("keyless").read()
    equal(len(keyless), 200, "records without key")
    t.exactly_once(keyless)

"""That a difference is seen, and that what may vary is not one."""

import unittest

from . import allow, avro
from .allow import Allowed, Difference
from .compare import Comparison
from .images import Image, Part, masked
from .values import Matcher, parse


def differences(expected: str, got: str) -> list[str]:
    """Paths that differ between two JSON texts."""
    return [path for path, _, _ in Matcher().compare(parse(expected), parse(got), "$")]


class Values(unittest.TestCase):
    """JSON under the rules of placeholders."""

    def test_equal(self) -> None:
        """Numbers by value; placeholders by their rule."""
        for one, other in (("1", "1.0"), ("1.0E10", "10000000000"), ('{"ts_ms":"<ts_ms>"}', '{"ts_ms":1700000000000}'),
                           ('["<lsn#1>","<lsn#2>","<lsn#1>"]', "[5,6,5]"), ('"<version>"', '"0.1.0"')):
            self.assertEqual(differences(one, other), [], (one, other))

    def test_different(self) -> None:
        """A value, a type, a member, an order, an element."""
        for one, other, path in (("1", "2", "$"), ("1", '"1"', "$"), ("null", "0", "$"), ('{"a":1}', "{}", "$.a"), ("{}", '{"a":1}', "$.a"),
                                 ('{"a":1,"b":2}', '{"b":2,"a":1}', "$~order"), ("[1]", "[1,2]", "$[1]"),
                                 ('["<lsn#1>","<lsn#1>"]', "[5,6]", "$[1]"), ('["<lsn#1>","<lsn#2>"]', "[5,5]", "$[1]"),
                                 ('"<ts_us>"', "1700000000000", "$"), ('{"fields":[{"name":"a"},{"name":"b"}]}', '{"fields":[{"name":"b"}]}', "$.fields.a")):
            self.assertEqual(differences(one, other), [path], (one, other))


def image(value: str, key: str = '{"id":1}', topic: str = "t") -> Image:
    """A streamed record."""
    return Image("stream", topic, Part(parse(key)), Part(none=True) if value == "" else Part(parse(value)), partition=0)


def compared(expected: list[Image], got: list[Image]) -> list[tuple[str, str]]:
    """(record, path) of each difference."""
    comparison = Comparison("json")
    comparison.phase("stream", expected, got)
    return [(one.record, one.path) for one in comparison.differences]


class Records(unittest.TestCase):
    """Lists of records."""

    def test_one_that_is_missing_does_not_spoil_the_rest(self) -> None:
        """Pairs by key and kind."""
        three = [image('{"op":"c","after":%d}' % n, '{"id":%d}' % n) for n in (1, 2, 3)]
        self.assertEqual(compared(three, three), [])
        self.assertEqual(compared(three, [three[0], three[2]]), [("stream#2", "$(missing)")])
        self.assertEqual(compared(three[:2], three), [("stream#3", "$(extra)")])
        self.assertEqual(compared(three, [three[1], three[0], three[2]])[0], ("stream#1", "$.key.id"))

    def test_a_tombstone_is_no_null(self) -> None:
        """Bytes or none."""
        self.assertEqual(compared([image("null")], [image("")]), [("stream#1", "$.value~null")])

    def test_what_varies_between_readers(self) -> None:
        """The time of reading may, the source's own may not."""
        value = '{"source":{"version":"%s","connector":"p","ts_ms":%d,"snapshot":"false","txId":7},"ts_ms":%d}'
        one = masked(image(value % ("a", 1700000000000, 1700000000001)))
        self.assertEqual(compared([one], [image(value % ("b", 1700000000000, 1700000000009))]), [])
        self.assertEqual(compared([one], [image(value % ("b", 1700000000007, 1700000000009))]), [("stream#1", "$.value.source.ts_ms")])

    def test_avro_is_cut_at_fields(self) -> None:
        """A union's index is left out."""
        schema = parse('{"type":"record","name":"R","fields":[{"name":"a","type":["null","string"]},{"name":"b","type":"long"},{"name":"c","type":["null","int"]}]}')
        self.assertEqual(avro.fields(schema, bytes.fromhex("0202780300")), {"a": "0278", "b": "03", "c": None})


class Lists(unittest.TestCase):
    """Wanted differences."""

    def test_a_line_covers_its_part_only(self) -> None:
        """Case, part, topic and path."""
        line = Allowed("types-*:snapshot", "*.t", "$.value.after.d", "why", 1)
        found = Difference("snapshot", "shop.t", "snapshot#1", "$.value.after.d", "1", "2")
        self.assertTrue(line.covers("types-time", found))
        self.assertTrue(line.covers("types-time", Difference(**{**found.__dict__, "path": "$.value.after.d[0]"})))
        self.assertTrue(allow.matches("$avro.after.b", "$*.{before,after}.{a,b}"))
        self.assertFalse(line.covers("keys", found))
        for change in ({"phase": "stream"}, {"topic": "shop.u"}, {"path": "$.value.after.dd"}, {"path": "$.value.after"}):
            self.assertFalse(line.covers("types-time", Difference(**{**found.__dict__, **change})))

    def test_the_list_can_be_read(self) -> None:
        """Every line has four parts, and none is there twice."""
        lines = [(one.case, one.topic, one.path) for one in allow.load()]
        self.assertEqual(len(lines), len(set(lines)))


if __name__ == "__main__":
    unittest.main()

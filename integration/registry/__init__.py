"""A schema registry of our own, for tests: Confluent's documented behaviour for Avro, and faults on command.

`python3 -m registry --port 8081 [--journal FILE]`; the standard library is all it needs. See `integration/README.md`.
"""

"""The local stack: real PostgreSQL, Apache Kafka and schema registry, each a few processes of this machine.

`python3 -m stack up` (with this folder's parent on PYTHONPATH) starts it; see `integration/README.md`.
The scenarios import the same classes to kill and restart the parts.
"""

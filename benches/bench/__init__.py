"""Measures the worker against PostgreSQL's own reader, Debezium on Kafka Connect and a bare producer; see `docs/performance.md`."""

"""The worker beside Debezium, and beside what Debezium was recorded to do: the same statements, every record compared."""

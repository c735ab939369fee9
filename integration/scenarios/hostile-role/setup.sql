create table t (id int primary key, ts timestamp, tz timestamptz, b bytea, iv interval, f float8, r float4, d date, m money);
insert into t values (1, '2024-02-01 10:00', '2024-02-01 10:00+00', '\x00ff', '1 day 02:00', 5e-324, 1.1, '2024-02-01', 3);

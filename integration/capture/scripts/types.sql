-- The text of values of many types, and of their ends.
create extension if not exists hstore;
create type mood as enum ('sad', 'ok');
create table t (
    id int primary key, b bool, i2 int2, i8 int8, o oid, f4 float4, f8 float8, n numeric, nn numeric(5,2), m money,
    c char(5), vc varchar(10), t text, by bytea, d date, ti time, tz timetz, ts timestamp(3), tstz timestamptz, iv interval,
    u uuid, j json, jb jsonb, x xml, bit1 bit, bits varbit(9), inet inet, cidr cidr, mac macaddr, p point, r int4range,
    ia int[], ta text[], md mood, mda mood[], h hstore, ts_v tsvector, ln pg_lsn
);
create publication tidegate for all tables;

-- stream
insert into t values (
    1, true, -32768, 9223372036854775807, 4294967295, 1.5, 123456789012345.67, 1.10, 0.00, 1234.56,
    'ab', 'varchar', E'line\ntab\t\\', '\x00ff41', '2024-07-01', '24:00:00', '24:00:00-15:59:59', '2024-07-01 10:00:00.1235',
    '2024-07-01 15:30:00+05:30', '1 year 2 mons -3 days 04:05:06.789', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
    '{"a": 1,  "a": 2}', '{"a": 1,  "b": [null]}', '<a>b</a>', b'1', b'101', '10.0.0.1/8', '10.0.0.0/8', '08:00:2b:01:02:03',
    '(1.5,-2)', '[1,5)', '{1,NULL,-3}', '{"a,b","c\"d",NULL,"NULL",""}', 'ok', '{ok,sad}', 'k=>v, n=>NULL',
    'a fat cat'::tsvector, '16/B374D848'
);
insert into t (id) values (2);
insert into t (id, f4, f8, n, d, ts, tstz, t) values
    (3, 'NaN', 'Infinity', 'NaN', 'infinity', '-infinity', 'infinity', ''),
    (4, 1e-45, 5e-324, 0.00000000000000000001, '0044-03-15 BC', '294276-12-31 23:59:59.999', '0044-03-15 12:00:00.5+00 BC', '日本'),
    (5, '-Infinity', -0.0, '-Infinity', '5874897-12-31', '1970-01-01', '4713-01-01 00:00:00+00 BC', repeat('é', 30));

create extension hstore;
create extension citext;
create extension ltree;
create type mood as enum ('sad', 'ok', 'very "happy"');
create domain short_text as varchar(8) check (value <> '');
create type pair as (n int, t text);

create table types (
    id int primary key,
    v_bool bool, v_int2 int2, v_int4 int4, v_int8 int8, v_float4 real, v_float8 double precision,
    v_numeric_10_2 numeric(10, 2), v_numeric_38_0 numeric(38, 0), v_numeric_60_20 numeric(60, 20), v_numeric numeric,
    v_money money, v_oid oid,
    v_char char, v_char5 char(5), v_varchar varchar(10), v_text text, v_name name, v_one "char", v_citext citext,
    v_bytea bytea, v_bit1 bit(1), v_bit9 bit(9), v_varbit varbit(9),
    v_date date, v_time time, v_time3 time(3), v_timetz timetz,
    v_timestamp timestamp, v_timestamp3 timestamp(3), v_timestamp0 timestamp(0),
    v_timestamptz timestamptz, v_timestamptz3 timestamptz(3), v_interval interval,
    v_uuid uuid, v_json json, v_jsonb jsonb, v_xml xml,
    v_inet inet, v_cidr cidr, v_macaddr macaddr, v_macaddr8 macaddr8,
    v_int4range int4range, v_int8range int8range, v_numrange numrange,
    v_tsrange tsrange, v_tstzrange tstzrange, v_daterange daterange,
    v_tsvector tsvector, v_tsquery tsquery, v_pg_lsn pg_lsn, v_jsonpath jsonpath, v_regclass regclass,
    v_point point, v_box box, v_lseg lseg, v_path path, v_polygon polygon, v_circle circle, v_line line,
    v_enum mood, v_domain short_text, v_composite pair, v_hstore hstore, v_ltree ltree,
    v_bools bool[], v_ints int[], v_bigints bigint[], v_texts text[], v_numerics numeric(6, 2)[], v_floats float8[],
    v_timestamptzs timestamptz[], v_dates date[], v_uuids uuid[], v_byteas bytea[], v_jsonbs jsonb[], v_enums mood[],
    v_matrix int[][]
);

comment on table types is 'every type, in "one" table';
comment on column types.v_text is 'words, 語';
comment on column types.v_ints is 'numbers';

-- Large values stay known when an update leaves them alone.
alter table types replica identity full;

-- 1: ordinary values
insert into types values (1,
    true, 7, 70000, 7000000000, 1.5, 2.25, 1234.56, 12345678901234567890123456789012345678, 0.1, 12.3400, 12.34, 4000000000,
    'x', 'ab', 'varchar', 'text', 'name', 'c', 'CiText', '\x00ff10', B'1', B'100000001', B'101',
    '2024-02-29', '12:34:56.789012', '12:34:56.789', '12:34:56.789+02',
    '2024-02-29 12:34:56.789012', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56',
    '2024-02-29 12:34:56.789012+02', '2024-02-29 12:34:56.789+02', '1 year 2 mons 3 days 04:05:06.789012',
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{ "b" : 1.0, "a": [1, 2] }', '{ "b" : 1.0, "a": [1, 2] }', '<a b="c">d</a>',
    '192.168.0.1/24', '10.0.0.0/8', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05',
    '[1,10)', '[1,10)', '(1.5,2.5]', '[2024-01-01 00:00,2024-01-02 00:00)', '[2024-01-01 00:00+00,)', '[2024-01-01,2024-02-01)',
    'a fat cat', 'fat & (rat | cat)', '16/B374D848', '$.a[*] ? (@ > 2)', 'pg_class',
    '(1,2)', '((0,0),(1,1))', '[(0,0),(1,1)]', '((0,0),(1,1),(2,0))', '((0,0),(1,1),(2,0))', '<(1,2),3>', '{1,2,3}',
    'very "happy"', 'domain', '(5,"a, b")', '"a"=>"1", "b"=>NULL', 'Top.Science',
    '{t,f,null}', '{1,null,3}', '{9000000000}', array['a', null, 'NULL', 'with "quotes", comma and \ slash', ''],
    '{1.50,null,-2.25}', '{1.5,NaN,Infinity}', '{"2024-02-29 12:00:00+00"}', '{2024-02-29,null}',
    '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', array['\x00ff'::bytea, null], array['{"a":1}'::jsonb], '{sad,"very \"happy\""}',
    '{{1,2},{3,4}}');

-- 2: as large as can be
insert into types (id, v_bool, v_int2, v_int4, v_int8, v_float4, v_float8, v_numeric_10_2, v_numeric_38_0, v_numeric_60_20,
    v_numeric, v_money, v_oid, v_char, v_char5, v_varchar, v_text, v_bytea, v_bit1, v_bit9, v_varbit, v_date, v_time,
    v_time3, v_timetz, v_timestamp, v_timestamp3, v_timestamp0, v_timestamptz, v_timestamptz3, v_uuid, v_json, v_enum)
values (2, true, 32767, 2147483647, 9223372036854775807, 3.4028235e38, 1.7976931348623157e308, 99999999.99, repeat('9', 38)::numeric,
    (repeat('9', 40) || '.' || repeat('9', 20))::numeric, (repeat('9', 200) || '.' || repeat('9', 100))::numeric,
    92233720368547758.07, 4294967295, '語', '語語語語語', repeat('語', 10), repeat('long ', 10000), decode(repeat('ff', 50000), 'hex'),
    B'1', B'111111111', B'111111111', '9999-12-31', '23:59:59.999999', '23:59:59.999', '23:59:59.999999-15:59',
    '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59.999', '9999-12-31 23:59:59', '9999-12-31 23:59:59.999999+00',
    '9999-12-31 23:59:59.999+00', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '"\u8a9e\ud83d\ude00"', 'ok');

-- 3: as small as can be
insert into types (id, v_bool, v_int2, v_int4, v_int8, v_float4, v_float8, v_numeric_10_2, v_numeric_38_0, v_numeric_60_20,
    v_numeric, v_money, v_oid, v_char5, v_varchar, v_text, v_bytea, v_bit1, v_bit9, v_varbit, v_date, v_time,
    v_time3, v_timetz, v_timestamp, v_timestamp3, v_timestamp0, v_timestamptz, v_timestamptz3, v_interval, v_uuid, v_json,
    v_jsonb, v_hstore, v_ints, v_texts, v_int4range)
values (3, false, -32768, -2147483648, -9223372036854775808, -1e-45, 5e-324, -99999999.99, -repeat('9', 38)::numeric,
    -0.00000000000000000001, 1e-200, -92233720368547758.08, 0, '', '', '', '', B'0', B'000000000', B'', '0001-01-01', '00:00',
    '00:00', '00:00+15:59', '0001-01-01 00:00', '0001-01-01 00:00', '0001-01-01 00:00', '0001-01-01 00:00+00',
    '0001-01-01 00:00+00', '-178000 years', '00000000-0000-0000-0000-000000000000', 'null', 'null', '', '{}', '{}', 'empty');

-- 4: floats that are no numbers, the end of the day, before the common era
insert into types (id, v_float4, v_float8, v_time, v_date, v_timestamp, v_timestamptz)
values (4, 'NaN', '-Infinity', '24:00', '0044-03-15 BC', '0044-03-15 12:00 BC', '0044-03-15 12:00+00 BC');

-- 5: nothing
insert into types (id) values (5);

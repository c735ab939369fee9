create extension hstore;
create extension citext;
create extension ltree;
create type mood as enum ('low', 'high');
create table everything (
  id int primary key, i2 smallint, i8 bigint, f4 real, f8 double precision, yes boolean, n numeric(12,3), nn numeric, cash money,
  tx text, vc varchar(40), ch char(6), nm name, ci citext, by bytea, d date, t time, t3 time(3), ttz timetz, ts timestamp, ts3 timestamp(3),
  tz timestamptz, iv interval, j json, jb jsonb, x xml, u uuid, m mood, ine inet, cid cidr, mac macaddr, mac8 macaddr8, b1 bit,
  hs hstore, lt ltree, ir int4range, br int8range, nr numrange, dr daterange, tsr tsrange, tzr tstzrange, o oid, tv tsvector,
  ai int[], ab bigint[], at text[], ad double precision[], ay boolean[], au uuid[]);
create table large (id int primary key, v int, doc text, pic bytea, js jsonb, many text[]);
alter table large alter doc set storage external, alter pic set storage external, alter js set storage external, alter many set storage external;
alter table large replica identity full;
create table pair (a int, b text, v int, note text default 'none', primary key (b, a));
create table short (id int primary key, v text);

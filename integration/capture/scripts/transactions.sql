-- What stands around rows: interleaved, prepared, replicated and rolled-back transactions, truncates, messages.
create table long_one (id serial primary key);
create table short_one (id int primary key);
create table a (id serial primary key, v int);
create table b (id int primary key, a_id int references a);
create publication tidegate for all tables;

-- stream
begin;
insert into long_one select from generate_series(1, 3);
\! psql -qc 'insert into short_one values (90)'
insert into long_one select from generate_series(1, 2);
commit;
begin;
insert into short_one values (1);
prepare transaction 'two-phase';
insert into short_one values (2);
commit prepared 'two-phase';
begin;
insert into short_one values (3);
prepare transaction 'never';
rollback prepared 'never';
select pg_replication_origin_create('far');
select pg_replication_origin_session_setup('far');
begin;
select pg_replication_origin_xact_setup('1/ABCDEF', '2020-01-01 00:00:00+00');
insert into short_one values (4);
commit;
select pg_replication_origin_session_reset();
begin;
select pg_logical_emit_message(true, 'in', 'transactional');
insert into short_one values (5);
select pg_logical_emit_message(false, 'out', 'not transactional');
select pg_logical_emit_message(true, '', E'\\x00ff'::bytea);
commit;
begin;
select pg_logical_emit_message(true, 'in', 'lost');
select pg_logical_emit_message(false, 'out', 'survives');
rollback;
insert into a (v) values (1), (2);
insert into b values (1, 1);
truncate a restart identity cascade;
begin;
insert into a (v) values (3);
truncate a, short_one cascade;
insert into a (v) values (4);
commit;
create table only_ddl ();
truncate b;

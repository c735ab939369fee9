-- needs: 15
-- options: proto_version '2', streaming 'on'
-- Transactions that are sent while they run, with subtransactions that are rolled back.
create type mood as enum ('sad', 'ok');
create table t (id int primary key, m mood);
create publication tidegate for all tables;

-- stream
begin;
insert into t select g, 'ok' from generate_series(1, 500) g;
savepoint a;
insert into t select g, 'ok' from generate_series(501, 1100) g;
rollback to a;
update t set m = 'sad' where id = 1;
delete from t where id = 2;
select pg_logical_emit_message(true, 'in', 'streamed');
commit;
begin;
insert into t select g, 'ok' from generate_series(2001, 2500) g;
truncate t;
rollback;

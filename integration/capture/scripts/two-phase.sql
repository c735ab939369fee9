-- needs: 15
-- options: proto_version '3', two_phase 'on', streaming 'on'
-- slot: twophase => true
-- Transactions that are prepared first, one of them while it runs.
create table t (id int primary key);
create publication tidegate for all tables;

-- stream
begin;
insert into t values (1);
prepare transaction 'kept';
commit prepared 'kept';
begin;
insert into t values (2);
prepare transaction 'dropped';
rollback prepared 'dropped';
begin;
insert into t select g from generate_series(1001, 1500) g;
prepare transaction 'large';
commit prepared 'large';

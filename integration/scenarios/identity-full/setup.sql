create table t (id int primary key, v int, doc text, ia bigint[]);
alter table t replica identity full, alter doc set storage external, alter ia set storage external;
insert into t select 1, 1, repeat('x', 9000), array(select g from generate_series(1, 3000) g);
create table no_key (a int, b text);
alter table no_key replica identity full;
insert into no_key values (1, 'x');

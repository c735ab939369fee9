create table t (a int, b text, v int, doc text, primary key (b, a));
alter table t alter doc set storage external;
insert into t values (1, 'x', 1, repeat('d', 9000)), (2, 'y', 2, 'small');
create table d (id int primary key deferrable, v text);
alter table d replica identity full;
insert into d values (1, 'one'), (2, 'two');

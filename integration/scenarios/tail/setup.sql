create table t (id int primary key, v text, d date, doc text);
alter table t alter column doc set storage external;
insert into t values (1, 'one', '2024-01-01', repeat('x', 10000)), (2, 'two', null, null);

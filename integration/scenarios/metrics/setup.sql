create table t (id int primary key, v int, big text);
alter table t alter big set storage external;
insert into t values (1, 1, repeat('x', 5000)), (2, 2, 'small');
create table "odd ""name\
here" (id int primary key);

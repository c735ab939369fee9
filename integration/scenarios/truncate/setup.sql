create table t (id int primary key, v text);
create table child (id int primary key, t int references t);
insert into t values (1, 'one'), (2, 'two');
insert into child values (1, 1);

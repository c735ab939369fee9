create table t (id int primary key, v text);
insert into t values (1, 'one'), (2, 'two');

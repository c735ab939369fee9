create table t (id int primary key);
insert into t values (1);

create table t (id int primary key, v int);
create table other (id int primary key);
insert into t values (1, 1);

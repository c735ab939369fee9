create table t (id int primary key, v int);
insert into t values (1, 1);
create table quiet (id int primary key);

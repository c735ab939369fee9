create table t (id int primary key, v int);
insert into t values (1, 1);
create table t_quiet (id int primary key, v int);
create table t_gone (id int primary key);
create schema elsewhere;

create table t (id int primary key);
create table late (id int primary key);
insert into t values (1);

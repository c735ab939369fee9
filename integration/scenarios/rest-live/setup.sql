create table t (id int primary key);
create table u (id int primary key);
insert into t values (1);

create table t (id int primary key, a int, b text, n numeric(10,4), i interval(3));
insert into t values (0, 0, 'seed', 99.9999, '1.5 s');
create table other (id int primary key, v int);
create type mood as enum ('sad', 'ok');

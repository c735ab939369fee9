create table t (id int primary key, v int, s text);
insert into t values (1, 1, 'one');
create table quiet (id int primary key, n int, s text);
create table p (k int primary key, v int) partition by list (k);
create table p_1 partition of p for values in (1);
create type mood as enum ('sad', 'ok');
create table m (id int primary key, m mood);

create table t (id int primary key, v int, w text);
insert into t values (1, 1, 'one');
create table p (k int primary key, v int) partition by list (k);
create table p_1 partition of p for values in (1);

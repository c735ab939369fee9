create table t (id int, d date, v text, primary key (id, d)) partition by range (d);
create table t_01 partition of t for values from ('2026-01-01') to ('2026-02-01');
insert into t values (1, '2026-01-05', 'a');

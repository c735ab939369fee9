create table t (id int primary key, v int, doc text, pic bytea);
alter table t alter doc set storage external, alter pic set storage external;
insert into t values (1, 0, repeat('old', 3000), null);
create table p (id int, k int, doc text, primary key (id, k)) partition by list (k);
create table p1 partition of p for values in (1);
create table p2 partition of p for values in (2);
alter table p1 alter doc set storage external;
alter table p2 alter doc set storage external;

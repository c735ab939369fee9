create table t (id int primary key, v int, doc text, pic bytea);
alter table t alter doc set storage external, alter pic set storage external;
insert into t select n, n, repeat('d' || n, 3000), decode(repeat('ff', 5000), 'hex') from generate_series(1, 3) n;
create table kin () inherits (t);
alter table kin add primary key (id);
create table p (id int, k int, doc text, primary key (id, k)) partition by list (k);
create table p1 partition of p for values in (1);
alter table p1 alter doc set storage external;
insert into p values (1, 1, repeat('part', 3000));

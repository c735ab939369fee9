create table t (id int primary key, v text, doc text);
alter table t alter column doc set storage external;
create table u (id bigint primary key, price numeric(10,2), at timestamptz);
insert into t select i, 'v' || i, null from generate_series(1, 20) i;
insert into u values (1, 12.50, '2024-01-01T00:00:00Z');

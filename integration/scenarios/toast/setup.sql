create table t (id int primary key, v int, doc text, j jsonb, b bytea, ta text[], ia bigint[]);
alter table t alter doc set storage external, alter j set storage external, alter b set storage external,
    alter ta set storage external, alter ia set storage external;
insert into t select 1, 1, repeat('x', 9000), jsonb_build_object('k', repeat('z', 9000)), decode(repeat('ff', 9000), 'hex'),
    array[repeat('y', 9000)], array(select g from generate_series(1, 3000) g);

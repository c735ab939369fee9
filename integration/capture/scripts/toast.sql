-- Values that are stored out of line and did not change.
create table plain (id int primary key, v int, doc text, j jsonb, b bytea, ta text[], ia bigint[]);
alter table plain alter doc set storage external, alter j set storage external, alter b set storage external,
    alter ta set storage external, alter ia set storage external;
create table whole (id int primary key, v int, doc text, j jsonb);
alter table whole alter doc set storage external, alter j set storage external;
alter table whole replica identity full;
create publication tidegate for all tables;

-- stream
insert into plain select 1, 1, repeat('x', 2100), jsonb_build_object('k', repeat('z', 2100)),
    decode(repeat('ff', 2100), 'hex'), array[repeat('y', 2100)], array(select g from generate_series(1, 300) g);
update plain set v = 2;
update plain set doc = doc, v = 3;
update plain set j = jsonb_set(j, '{m}', '1');
update plain set doc = null;
update plain set doc = repeat('w', 2100);
update plain set doc = substr(doc, 1);
update plain set id = 2;
begin;
insert into plain (id, v, doc) values (3, 1, repeat('s', 2100));
update plain set v = 2 where id = 3;
commit;
delete from plain where id = 2;
insert into whole values (1, 1, repeat('x', 2100), jsonb_build_object('k', repeat('z', 2100)));
update whole set v = 2;
update whole set id = 2;
update whole set doc = null;
update whole set v = 3;
delete from whole;

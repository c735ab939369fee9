-- Every form of DML, and the order in which it arrives.
create schema other;
create table item (id int primary key, name text, price numeric(10,2) default 1.50, note text);
create table other.item (id int primary key);
create table parent (id int primary key);
create table child (id int primary key, parent_id int references parent on delete cascade on update cascade);
create table empty ();
create table "Wei rd.Näme" ("a.b" int primary key, "é""\" text);
create publication tidegate for all tables;

-- stream
insert into item (id, name) values (1, 'one'), (2, ''), (3, null);
update item set name = name where id = 1;
update item set price = 2.00, note = 'two' where id = 2;
update item set id = 30 where id = 3;
delete from item where id = 30;
insert into item (id, name) values (1, 'again') on conflict (id) do update set name = excluded.name;
insert into item (id, name) values (1, 'never') on conflict do nothing;
copy item (id, name) from stdin;
10	ten
11	\N
12	tab\tand\\backslash
\.
begin;
insert into item (id) values (20);
savepoint a;
insert into item (id) values (21);
rollback to a;
insert into item (id) values (22);
update item set name = 'twenty-two' where id = 22;
update item set id = 23 where id = 22;
delete from item where id = 23;
commit;
begin;
insert into item (id) values (99);
rollback;
insert into other.item values (1);
insert into parent values (1);
insert into child values (7, 1);
update parent set id = 2;
delete from parent;
insert into empty default values;
insert into "Wei rd.Näme" values (1, '日本 é');
update "Wei rd.Näme" set "é""\" = 'x';
create table ctas as select 5 as five, 'x'::text as letter;

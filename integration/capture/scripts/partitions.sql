-- Leaves published under their root, with identities that agree.
create table root (id int, region text, v text, primary key (region, id)) partition by list (region);
create table root_a partition of root for values in ('a');
create table root_b (v text, region text not null, id int not null);
alter table root attach partition root_b for values in ('b');
create table whole (id int primary key, v text) partition by range (id);
create table whole_1 partition of whole for values from (0) to (100);
alter table whole replica identity full;
alter table whole_1 replica identity full;
create table more_than_root (id int primary key, v text) partition by range (id);
create table more_than_root_1 partition of more_than_root for values from (0) to (100);
alter table more_than_root_1 replica identity full;
create publication tidegate for all tables with (publish_via_partition_root = true);

-- stream
insert into root values (1, 'a', 'x'), (2, 'b', 'y');
update root set v = 'z';
update root set region = 'b' where id = 1;
update root set id = 3 where id = 2;
delete from root where id = 3;
create table root_c partition of root for values in ('c');
insert into root values (9, 'c', 'new leaf');
insert into whole values (1, 'x');
update whole set v = 'y';
delete from whole;
insert into more_than_root values (1, 'x');
update more_than_root set v = 'y';
update more_than_root set id = 2;
delete from more_than_root;
truncate root_a;
truncate root;

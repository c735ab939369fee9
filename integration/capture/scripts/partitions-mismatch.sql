-- A leaf whose identity is narrower than its root's: the root promises whole old rows, the leaf sends keys.
create table root (id int primary key, v text) partition by range (id);
create table root_1 partition of root for values from (0) to (100);
alter table root replica identity full;
create publication tidegate for all tables with (publish_via_partition_root = true);

-- stream
insert into root values (1, 'x');
update root set v = 'y';
update root set id = 2;
delete from root;

-- One row to a block, so that there are blocks enough to be shared.
create table wide (id int primary key, v text);
alter table wide alter v set storage plain;
insert into wide select g, 'v' || g || repeat('x', 7000) from generate_series(1, 2100) g;
create table narrow (id int primary key, v text);
insert into narrow select g, 'v' || g from generate_series(1, 500) g;
create table nothing (id int primary key, v text);
create table one (id int primary key, v text);
insert into one values (1, 'alone');
create table parted (id int primary key, v text) partition by range (id);
create table parted_a partition of parted for values from (0) to (100);
create table parted_b partition of parted for values from (100) to (1000);
insert into parted select g, 'p' || g from generate_series(1, 300) g;
analyze;

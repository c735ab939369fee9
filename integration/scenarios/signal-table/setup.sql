-- Rows are loaded before the connector is there, and snapshot.mode is no_data: only signals bring them.
create table plain (id int primary key, v int);
insert into plain select g, g from generate_series(1, 40) g;
create table other (id int primary key, v int);
insert into other select g, g from generate_series(1, 10) g;
create table signal (id varchar(42) primary key, type varchar(32) not null, data varchar(2048));

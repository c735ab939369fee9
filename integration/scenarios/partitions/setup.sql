create table t (id int primary key, v int);
create table keyless (v int);
alter table keyless replica identity full;

create table t (id int primary key, b bytea);
alter table t alter b set storage external;

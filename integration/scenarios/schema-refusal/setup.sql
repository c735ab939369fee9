create table t (id int primary key, v int, n numeric(10, 4), at timestamp, span interval, name varchar(20));
insert into t (id, v) values (1, 1);
create table other (id int primary key, v int, span interval);
insert into other values (1, 1, '1.5 s');

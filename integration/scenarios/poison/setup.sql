create table t (id int primary key, n numeric(6, 2));
create table other (id int primary key);

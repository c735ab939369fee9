create table t (id int primary key, v text, a_b text);
create table other (id int primary key);
create table stamps (id int primary key, at timestamp, n numeric(6, 2));

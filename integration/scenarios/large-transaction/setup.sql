create table t (id int primary key, v text);
create table small (id int primary key);

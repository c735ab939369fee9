create table t (id int primary key);
create table filler (v text);

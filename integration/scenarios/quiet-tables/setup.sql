create table t (id int primary key);
create table busy (id int, v text);

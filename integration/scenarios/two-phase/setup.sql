create table a (id int primary key, v text);
create table b (id int primary key, v text);

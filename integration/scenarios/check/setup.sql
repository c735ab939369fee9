create table t (id int primary key, v text);
create table u (id int primary key, v text);

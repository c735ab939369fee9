create table a (id serial primary key, v text);
create table b (id serial primary key, v text);
create table hidden (id int);

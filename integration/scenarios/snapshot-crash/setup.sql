create table a (id int primary key, v text);
create table b (id int primary key, v text);
create table c (id int primary key, v text);
insert into a select g, 'old' from generate_series(1, 20000) g;
insert into b select g, 'old' from generate_series(1, 20000) g;
insert into c select g, 'old' from generate_series(1, 20000) g;

create table a (id int primary key, v text);
create table b (id int primary key, v text);
create table c (id int primary key, v text);
insert into a select g, repeat('old', 20) from generate_series(1, 30000) g;
insert into b select g, repeat('old', 20) from generate_series(1, 30000) g;
insert into c select g, repeat('old', 20) from generate_series(1, 30000) g;

create table t (id int primary key);
create table uncovered (id int primary key);

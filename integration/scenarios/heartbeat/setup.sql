create table t (id int primary key);
create table beat (n int);
insert into beat values (0);

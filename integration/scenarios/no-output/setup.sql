create table other (id int primary key);

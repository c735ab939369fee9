create table long (id int primary key);
create table short (id int primary key);

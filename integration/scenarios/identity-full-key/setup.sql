-- something that stays
create table other (id int primary key);
create table gone (id int primary key, c text);
alter table gone replica identity full;
insert into gone values (1, 'a');
create table wider (id int primary key, c text);
alter table wider replica identity full;
insert into wider values (1, 'a');

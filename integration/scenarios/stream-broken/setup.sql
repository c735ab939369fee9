create type lost as enum ('a');
create table filed (id int primary key, kind lost);

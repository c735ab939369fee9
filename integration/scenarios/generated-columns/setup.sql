create table plain (id int primary key, a int, s int generated always as (a * 2) stored, c text);

create table person (id int primary key, name text not null, email varchar(40), pin char(4), notes text, born date, tags text[], secret text);
insert into person values (1, 'Ann Archer', 'ann@example.org', '1234', 'a long note', '1990-01-01', '{abcdef,g}', 's1'),
                          (2, 'Bo', null, null, null, null, null, null);
alter table person replica identity full;
create table visit (id int primary key, person int not null, place text, at date);
alter table visit replica identity full;
insert into visit values (1, 10, 'x', '2024-01-01');

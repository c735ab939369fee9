-- again after: 2
-- The same transactions, seen by a session from the start and by one that begins in the middle.
create type mood as enum ('sad', 'ok');
create table one (id int primary key, m mood);
create table two (id int primary key);
create publication tidegate for all tables;

-- stream
insert into one values (1, 'sad');
insert into two values (1);
begin;
insert into one values (2, 'ok'), (3, 'ok');
insert into two values (2);
update one set m = 'sad';
commit;
insert into one values (4, 'sad');

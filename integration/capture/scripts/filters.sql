-- needs: 15
-- Row filters and column lists: rows that enter and leave, columns that are not there.
create table seen (id int, v int, doc text, primary key (id, v));
alter table seen alter doc set storage external;
create table listed (id int primary key, a int, hidden text, b int);
create publication tidegate for table seen where (v > 10), listed (id, b);

-- stream
insert into seen values (1, 1, repeat('x', 2100)), (2, 20, 'in');
update seen set v = 11 where id = 1;
update seen set doc = 'short' where id = 1;
update seen set v = 2 where id = 2;
delete from seen;
insert into listed values (1, 1, 'secret', 1);
update listed set hidden = 'more';
delete from listed;
truncate seen;

create table free (id int primary key, v int);
-- A default, a key and an index are what a definition is read from.
create table held (id int primary key, v int not null default 7, note text);
alter table held replica identity full;
create table parted (id int not null, region text not null, primary key (id, region)) partition by list (region);
create table parted_eu partition of parted for values in ('eu');
create publication made for table free, held, parted;

-- Rows are loaded before the connector is there, and snapshot.mode is no_data: only chunks bring them.
create table keyed (a int, b text, n int not null default 0, note text, doc text, primary key (a, b));
alter table keyed alter doc set storage external;
insert into keyed select g, 'k' || g % 3, 0, 'note ' || g, 'doc ' || g || repeat('x', 3000) from generate_series(1, 300) g;

-- Without a key: told by whole rows.
create table keyless (id int, n int, pad text);
alter table keyless replica identity full;
insert into keyless select g, 0, repeat('p', 500) from generate_series(1, 400) g;

create table parted (id int not null, region text not null, n int default 0) partition by list (region);
create table parted_eu partition of parted for values in ('eu');
create table parted_us partition of parted for values in ('us');
alter table parted add primary key (id, region);
insert into parted select g, case g % 2 when 0 then 'eu' else 'us' end from generate_series(1, 100) g;

create table filtered (id int primary key, v int, note text);
alter table filtered replica identity full;
insert into filtered select g, g, 'row ' || g from generate_series(1, 200) g;

-- Old rows show their key alone.
create table by_key (a int, b text, n int not null default 0, primary key (a, b));
insert into by_key select g, 'k' || g % 3 from generate_series(1, 200) g;

create table plain (id int primary key, v int);
insert into plain select g, g from generate_series(1, 500) g;

create table secret (id int primary key);

create table doomed (id int primary key);
insert into doomed select g from generate_series(1, 1000) g;

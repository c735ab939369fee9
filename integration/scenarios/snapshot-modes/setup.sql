create table t (id int primary key, v text);
insert into t values (1, 'one'), (2, 'two');
create table added (id int primary key, v text);
insert into added select g, 'row ' || g from generate_series(1, 40) g;
create table filler (pad text);

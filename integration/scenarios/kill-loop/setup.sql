create table account (id int primary key, balance bigint not null, note text);
create table branch (region text, number int, total bigint not null, primary key (region, number));
create table history (account int, delta bigint not null, note text);
alter table branch replica identity full;
alter table history replica identity full;
insert into account select g, 0, 'start' from generate_series(1, 500) g;
insert into branch select 'r' || g % 5, g, 0 from generate_series(1, 50) g;

create table t (id uuid primary key, n int not null, note text);
insert into t select md5(g::text)::uuid, g, repeat('x', 50) from generate_series(1, 40000) g;
create table amounts (id numeric primary key, v int);
insert into amounts select g / 100.0, g from generate_series(1, 10000) g;

-- pgvector: vectors of each kind, and large ones that are not sent.
create extension vector;
create table vec_all(id integer primary key, v integer, a vector(3), need vector not null, h halfvec(3), s sparsevec(5), l vector(1000), va vector(2)[]);
create table vec_full(id integer primary key, v integer, l vector(1000));
alter table vec_full replica identity full;
insert into vec_all values (1, 1, '[1,2.5,-3]', '[0.1]', '[1,2.5,-3]', '{1:1.5,5:-2}/5', null, array['[1,2]'::vector]);
insert into vec_all values (2, 1, null, '[1e-20,3.4e38]', null, null, null, null);
insert into vec_all select 3, 1, '[0,0,0]', '[7]', '[0,-65504,0.1]', '{}/5', array(select g * 0.5 from generate_series(1, 1000) g)::vector, '{}';
insert into vec_full select 1, 1, array(select g * 0.5 from generate_series(1, 1000) g)::vector;

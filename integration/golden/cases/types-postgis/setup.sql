-- PostGIS: shapes of every kind, with and without a reference system, in lists, and large ones that are not sent.
create extension postgis;
create table geo_all(id integer primary key, v integer, g geometry, p geometry(Point,4326) not null, z geometry(PointZ), gg geography, gp geography(Point,4326), ga geometry[], gga geography[], pt point not null default '(0,0)');
alter table geo_all alter g set storage external;
create table geo_full(id integer primary key, v integer, g geometry);
alter table geo_full alter g set storage external, replica identity full;
insert into geo_all values (1, 1, 'POINT(1.5 -2)', 'SRID=4326;POINT(13.4 52.5)', 'POINT Z (1 2 3)', 'POINT(1 2)', 'POINT(1 2)', array['POINT(1 2)'::geometry, 'SRID=4326;LINESTRING(0 0,1 1)'], array['POINT(1 2)'::geography]);
insert into geo_all values (2, 1, 'POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,2 1,2 2,1 1))', 'SRID=4326;POINT(0 0)', null, 'LINESTRING(0 0,1 1)', null, '{}', null);
insert into geo_all values (3, 1, null, 'SRID=4326;POINT EMPTY', null, null, null, null, null);
insert into geo_all values (4, 1, 'SRID=3857;GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(0 0,1 1))', 'SRID=4326;POINT(-180 90)', 'POINT Z (0 0 0)', 'MULTIPOINT(1 1,2 2)', 'POINT(0 0)', array['POINT ZM (1 2 3 4)'::geometry, null], null);
insert into geo_all select 5, 1, st_makeline(array(select st_makepoint(n, n * 1.1) from generate_series(1, 500) n)), 'SRID=4326;POINT(5 5)';
insert into geo_full select 1, 1, st_makeline(array(select st_makepoint(n, n * 1.1) from generate_series(1, 500) n));

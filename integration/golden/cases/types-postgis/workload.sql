insert into geo_all select id + 10, v, g, p, z, gg, gp, ga, gga, pt from geo_all where id < 5;
update geo_all set v = 2 where id = 5;
update geo_all set g = 'POINT(9 9)' where id = 5;
update geo_full set v = 2;
delete from geo_all where id = 1;
delete from geo_full;

insert into vec_all select id + 10, v, a, need, h, s, null, va from vec_all;
update vec_all set v = 2 where id = 3;
update vec_all set l = null where id = 3;
update vec_full set v = 2;
delete from vec_all where id = 1;
delete from vec_full;

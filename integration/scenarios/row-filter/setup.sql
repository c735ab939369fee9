-- the predicate reads bio, which is stored out of line
create table profiles (id int primary key, last_login timestamptz, bio text);
alter table profiles alter bio set storage external;
alter table profiles replica identity full;
insert into profiles values (42, null, 'vip ' || repeat('x', 9600)), (43, null, repeat('y', 9600));

create table moves (id int primary key, v int, note text);
alter table moves replica identity full;
insert into moves values (1, 1, 'in'), (2, 20, 'out'), (3, null, 'open');

-- the predicate reads the key only
create table regions (region text, id int, v int, primary key (region, id));
insert into regions values ('eu', 1, 1), ('us', 2, 2);

-- the identity of an index
create table indexed (id int primary key, code text not null, v int);
create unique index indexed_code on indexed (code);
alter table indexed replica identity using index indexed_code;
insert into indexed values (1, 'a1', 1), (2, 'b1', 2);

-- an identity that does not have what the predicate reads
create table small (id int primary key, v int, bio text);
alter table small alter bio set storage external;
insert into small values (1, 1, 'vip ' || repeat('x', 9600));

create table parted (id int, v int, bio text, primary key (id)) partition by range (id);
alter table parted alter bio set storage external;
create table parted_1 partition of parted for values from (1) to (100);
create table parted_2 partition of parted for values from (100) to (200);
alter table parted_1 alter bio set storage external;
alter table parted replica identity full;
alter table parted_1 replica identity full;
insert into parted values (1, 1, 'vip ' || repeat('x', 9600));

-- columns that become others
create table redefined (id int primary key, r real, s int, w int, w2 int, v varchar(3), n int);
alter table redefined replica identity full;
insert into redefined values (1, 0.1, 1, 1, 1, 'a', 0), (2, 0.1, 1, 3, 2, 'a', 0);

create type mood as enum ('a', 'b', 'c', 'd');
create table moods (id int primary key, e mood);
alter table moods replica identity full;
insert into moods values (1, 'a'), (2, 'b'), (3, 'c');

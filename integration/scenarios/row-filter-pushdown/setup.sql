create table moves (id int primary key, v int, note text);
alter table moves replica identity full;
insert into moves values (1, 1, 'in'), (2, 20, 'out'), (3, null, 'open');

-- the predicate reads bio, which is stored out of line
create table profiles (id int primary key, last_login timestamptz, bio text);
alter table profiles alter bio set storage external;
alter table profiles replica identity full;
insert into profiles values (42, null, 'vip ' || repeat('x', 9600)), (43, null, repeat('y', 9600));

-- the predicate reads the key, and no value can be large
create table regions (region char(2), id int, v int, primary key (region, id));
insert into regions values ('eu', 1, 1), ('us', 2, 2);

create table parted (id int primary key, v numeric, bio text) partition by range (id);
create table parted_1 partition of parted for values from (1) to (100);
create table parted_2 partition of parted for values from (100) to (200);
alter table parted replica identity full;
alter table parted_1 replica identity full;
alter table parted_2 replica identity full;
insert into parted values (1, 1, 'a'), (101, 200, 'b');

-- what a publication does not take as a row filter, though the worker evaluates it
create type mood as enum ('happy', 'sad');
create table moods (id int primary key, mood mood, n int, bio text);
alter table moods replica identity full;

-- an update that moves a row in would not send bio
create table small (region text, id int, bio text, primary key (region, id));

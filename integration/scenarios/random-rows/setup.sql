create extension hstore;
create extension citext;
create extension ltree;
create type mood as enum ('sad', 'ok', 'very "happy"');
create domain short_text as varchar(8);
create domain shorter as short_text;
create type pair as (n int, t text);

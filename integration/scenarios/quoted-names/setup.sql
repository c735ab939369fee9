create schema "Sales.EU";
create table "Sales.EU"."Order ""2024""" ("Id" int primary key, "id" int, "line.no" int, "имя" text, "日本" text, "select" text);
insert into "Sales.EU"."Order ""2024""" values (1, 2, 3, 'т', '語', 's');

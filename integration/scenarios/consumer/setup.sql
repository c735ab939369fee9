create table orders (id int primary key, customer text, total numeric(10,2), notes text, scan bytea, at timestamptz);
alter table orders alter notes set storage external, alter scan set storage external;
insert into orders select n, 'customer ' || n, n * 1.25, repeat('n' || n, 4000), decode(repeat('0' || n, 5000), 'hex'), '2026-01-31 12:00+00' from generate_series(1, 9) n;

"""What is written for each workload. Every row has a number in its key; numbers have no gaps."""

from .source import Load, batches

NARROW = "create table {} (id int primary key, bid int, aid int, delta int, mtime timestamp)"
NARROW_ROW = "insert into {} select n, n % 10, n, n % 5000, localtimestamp from generate_series(lo, hi) n"
NARROW_COLUMNS = ["bid", "aid", "delta"]

WIDE = """create table {} (id bigint primary key, i1 int, i2 int, i3 int, i4 int, i5 int, b1 bigint, b2 bigint, b3 bigint,
    n1 numeric(12,2), n2 numeric(20,6), f1 float8, f2 float8, t1 bool, t2 bool, t3 bool, d1 date, d2 date,
    ts1 timestamptz, ts2 timestamptz, ts3 timestamp, ts4 timestamp, u1 uuid, j1 jsonb, s1 text, s2 text, s3 text,
    s4 text, s5 varchar(120), by1 bytea)"""
# Values that take the server long to make are made once for a few hundred rows, so that the load is written quickly.
WIDE_SAMPLES = """create table wide_samples as select n, gen_random_uuid() as u1,
    jsonb_build_object('k', n, 'name', 'customer ' || n, 'tags', jsonb_build_array('a', 'b', 'c'),
        'addr', jsonb_build_object('city', 'Springfield', 'zip', n % 99999)) as j1,
    repeat(md5(n::text), 3) as s1, repeat(md5((n + 1)::text), 2) as s2, md5((n + 2)::text) || md5((n + 3)::text) as s5,
    decode(md5(n::text) || md5((n * 3)::text), 'hex') as by1, n * 1.234567 as n2, random() as f2
    from generate_series(0, 996) n"""
WIDE_ROW = """insert into {} select g, (g * 7) % 2000000000, g % 1000, (g * 13) % 2000000000, 42, g % 7, g * 1000003,
    9007199254740993 + g, -g, (g % 100000) / 100.0, w.n2, g * 0.1::float8, w.f2, true, false, g % 2 = 0,
    date '2024-01-01' + (g % 1000)::int, current_date, now(), now() - interval '1 day' * (g % 100), localtimestamp,
    localtimestamp, w.u1, w.j1, w.s1, w.s2, 'status-' || (g % 9), 'A shorter text value for row ' || g, w.s5, w.by1
    from generate_series(lo, hi) g join wide_samples w on w.n = g % 997 order by g"""
WIDE_COLUMNS = ["i1", "i2", "i3", "b1", "b2", "b3", "f1", "t3", "s1", "s2", "s3", "s4", "s5", "by1"]

BODY = "(select string_agg(md5(random()::text || n || x), '') from generate_series(1, 320) x)"


def narrow(rows: int, per_transaction: int = 1000, name: str = "narrow") -> Load:
    """W1, W2: five columns."""
    return Load(name, ["narrow"], [NARROW.format("narrow")], [batches(rows, per_transaction, NARROW_ROW.format("narrow"))],
                rows, compare=NARROW_COLUMNS)


def wide(rows: int) -> Load:
    """W3: thirty mixed columns, about 750 bytes as Avro."""
    return Load("wide", ["wide"], [WIDE.format("wide"), WIDE_SAMPLES], [batches(rows, 1000, WIDE_ROW.format("wide"))],
                rows, compare=WIDE_COLUMNS)


def updates(rows: int, identity: str) -> Load:
    """W4: thirty columns, two of them changed."""
    fill = batches(rows, 10000, WIDE_ROW.format("wide"))
    return Load(f"update-{identity}", ["wide"],
                [WIDE.format("wide"), WIDE_SAMPLES, f"alter table wide replica identity {identity}", fill],
                [batches(rows, 1000, "update wide set i1 = i1 + 1, ts1 = now() where id between lo and hi")],
                rows, unordered=True, compare=WIDE_COLUMNS)


def deletes(rows: int) -> Load:
    """W4: deletes, each with its tombstone."""
    return Load("delete", ["narrow"], [NARROW.format("narrow"), batches(rows, 10000, NARROW_ROW.format("narrow"))],
                [batches(rows, 1000, "delete from narrow where id between lo and hi")], rows, tombstones=True, unordered=True)


def documents(rows: int) -> Load:
    """W5: 10 KB of text stored out of line."""
    return Load("toast-insert", ["doc"], ["create table doc (id int primary key, v int, body text)",
                                          "alter table doc alter body set storage external"],
                [batches(rows, 100, f"insert into doc select n, 0, {BODY} from generate_series(lo, hi) n")],
                rows, compare=["v", "body"])


def untouched_documents(rows: int) -> Load:
    """W5: updates that leave the large text alone, so that it is not sent."""
    made = documents(rows)
    return Load("toast-unchanged", ["doc"], [*made.setup, *made.body],
                [batches(rows, 100, "update doc set v = v + 1 where id between lo and hi")], rows, unordered=True,
                compare=["v"])


def huge(rows: int) -> Load:
    """W6: everything in one transaction."""
    return Load("huge", ["narrow"], [NARROW.format("narrow")],
                [f"do $load$ declare lo bigint := 1; hi bigint := {rows}; begin {NARROW_ROW.format('narrow')}; end $load$"],
                rows, compare=NARROW_COLUMNS)


def many_tables(count: int, rows: int) -> Load:
    """W10: the same rows, spread over many tables."""
    names = [f"t{number:05}" for number in range(count)]
    create = (f"do $load$ begin for n in 0..{count - 1} loop execute format('create table t%s (id int primary key, "
              "bid int, aid int, delta int, mtime timestamp)', to_char(n, 'FM00000')); "
              "if n % 500 = 0 then commit; end if; end loop; end $load$")
    # Two rows a transaction and table, as an application that works on several tables would.
    write = (f"do $load$ declare r bigint := 1; begin while r <= {rows} loop "
             f"for k in 0..9 loop exit when r > {rows}; execute format('insert into t%s values ($1, 1, 2, 3, localtimestamp)', "
             f"to_char((r - 1) % {count}, 'FM00000')) using r; r := r + 1; end loop; commit; end loop; end $load$")
    return Load(f"tables-{count}", names, [create], [write], rows, unordered=count > 1)


def columns(count: int, rows: int) -> Load:
    """W11: a number of integer and text columns."""
    kinds = ["int", "text", "bigint", "timestamptz", "numeric(12,2)"]
    values = ["g % 100000", "'value ' || g", "g * 1000003", "now()", "(g % 100000) / 100.0"]
    columns_ = ", ".join(f"c{number} {kinds[number % 5]}" for number in range(count - 1))
    row = ", ".join(values[number % 5] for number in range(count - 1))
    return Load(f"columns-{count}", ["shape"], [f"create table shape (id int primary key, {columns_})"],
                [batches(rows, 1000, f"insert into shape select g, {row} from generate_series(lo, hi) g")], rows,
                compare=["c0", "c1"])


def paced() -> Load:
    """W7: each row knows when it was written; the rows come while the readers read."""
    return Load("paced", ["paced"], ["create table paced (id int generated always as identity primary key, "
                                     "delta int, note text, mtime timestamptz, at timestamptz not null)"], [], 0, unordered=True)

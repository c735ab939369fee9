-- What the event triggers cost the application's DDL: psql -X -v ON_ERROR_STOP=1 -f benches/ddl_capture.sql <address>
-- Prints the median of each statement in microseconds, without and with the triggers. Needs a superuser and a
-- database of its own, in which the triggers are not installed; leaves it without them.
\set QUIET on
\pset footer off
SET client_min_messages = warning;
CREATE TEMP TABLE cost (statement text, triggers text, micros float8);
CREATE PROCEDURE pg_temp.measure(label text) LANGUAGE plpgsql AS $$
DECLARE
    began timestamptz;
    step text[];
BEGIN
    FOR n IN 1..50 LOOP
        FOREACH step SLICE 1 IN ARRAY ARRAY[
            ['create a table', 'CREATE TABLE bench_t (id int PRIMARY KEY, a int, b text)'],
            ['add a column', 'ALTER TABLE bench_t ADD c int DEFAULT 5'],
            ['rewrite an empty table', 'ALTER TABLE bench_t ALTER a TYPE int USING a * 2'],
            ['drop a column', 'ALTER TABLE bench_t DROP COLUMN b'],
            ['add a column to one of 300', 'ALTER TABLE bench_wide ADD extra int'],
            ['drop it again', 'ALTER TABLE bench_wide DROP COLUMN extra'],
            ['add one to 100 partitions', 'ALTER TABLE bench_p ADD extra int'],
            ['drop it from them', 'ALTER TABLE bench_p DROP COLUMN extra'],
            ['grant', 'GRANT SELECT ON bench_t TO PUBLIC'],
            ['drop a table', 'DROP TABLE bench_t']] LOOP
            CONTINUE WHEN n % 10 <> 0 AND step[2] LIKE '%bench_p %';
            began := clock_timestamp();
            EXECUTE step[2];
            INSERT INTO cost VALUES (step[1], label, 1e6 * extract(epoch FROM clock_timestamp() - began));
            COMMIT;
        END LOOP;
    END LOOP;
END $$;
SELECT 'CREATE TABLE bench_wide (' || string_agg('c' || n || ' int', ', ') || ')' FROM generate_series(1, 300) n \gexec
CREATE TABLE bench_p (k int, v int) PARTITION BY LIST (k);
SELECT format('CREATE TABLE bench_p_%s PARTITION OF bench_p FOR VALUES IN (%s)', n, n) FROM generate_series(1, 100) n \gexec
CALL pg_temp.measure('without');
\i schemas/postgres-ddl-capture.sql
CALL pg_temp.measure('with');
DROP EVENT TRIGGER tidegate_ddl_command_end;
DROP EVENT TRIGGER tidegate_sql_drop;
DROP EVENT TRIGGER tidegate_table_rewrite;
DROP SCHEMA tidegate CASCADE;
DROP TABLE bench_wide, bench_p;
SELECT statement, round(max(median) FILTER (WHERE triggers = 'without')) AS without,
    round(max(median) FILTER (WHERE triggers = 'with')) AS with,
    round(max(median) FILTER (WHERE triggers = 'with') - max(median) FILTER (WHERE triggers = 'without')) AS cost
FROM (SELECT statement, triggers, percentile_cont(0.5) WITHIN GROUP (ORDER BY micros) AS median
    FROM cost GROUP BY 1, 2) c GROUP BY 1 ORDER BY 2;

-- What `tidegate ddl-capture install` runs, in one transaction: event triggers that write a note of each
-- table's definition into the log, inside the transaction that changes it. Version 1.
--
-- What the application's own statements can notice of it:
-- * An error while a note is made is caught, and only its code is noted. The block that catches writes
--   nothing, so it takes no transaction id, and the note keeps its place.
-- * No lock is waited for longer than a second. Nothing of the application is locked, read or written.
-- * Names are looked up in pg_catalog only, whatever the session says.
--
-- A note is `1 <signature> <JSON>`. The signature binds it to its transaction; the key is for the owner and
-- for the roles of connectors, so that nobody else can write a note that is believed.

CREATE SCHEMA IF NOT EXISTS tidegate;

CREATE TABLE IF NOT EXISTS tidegate.ddl_capture (version integer NOT NULL, key bytea NOT NULL);

-- Two random UUIDs have 244 random bits.
INSERT INTO tidegate.ddl_capture (version, key)
SELECT 1, pg_catalog.decode(pg_catalog.replace(
    pg_catalog.gen_random_uuid()::text || pg_catalog.gen_random_uuid()::text, '-', ''), 'hex')
WHERE NOT EXISTS (SELECT FROM tidegate.ddl_capture);

UPDATE tidegate.ddl_capture SET version = 1;

-- Both helpers run inside capture_ddl only, with its search_path; plpgsql keeps their plans.
-- A table as it is at this place, in the words of `src/sources/postgres/ddl/note.rs`.
CREATE OR REPLACE FUNCTION tidegate.describe_table(relation oid, event text, command text, reason integer)
RETURNS text LANGUAGE plpgsql AS $body$
BEGIN
RETURN (SELECT json_build_object(
    'event', $2, 'command', $3, 'reason', $4, 'oid', c.oid::int8, 'schema', n.nspname, 'table', c.relname,
    'kind', c.relkind, 'persistence', c.relpersistence, 'identity', c.relreplident,
    'comment', obj_description(c.oid, 'pg_class'),
    'root', CASE WHEN c.relispartition THEN pg_partition_root(c.oid)::oid::int8 END,
    'partitions', CASE WHEN c.relkind = 'p' THEN
        (SELECT json_agg(p.name) FROM (SELECT t.relid::text AS name
            FROM pg_partition_tree(c.oid) t WHERE t.isleaf LIMIT 1001) p) END,
    -- number, name, type, modifier, NOT NULL, dimensions, generated, default, comment, and the number of the
    -- command of this transaction that wrote the definition; put together as text, for tables are wide
    'columns', (
        SELECT ('[' || string_agg('[' || a.attnum || ',' || to_json(a.attname::text) || ',' || a.atttypid || ','
            || a.atttypmod || ',' || (a.attnotnull AND NOT EXISTS (
                SELECT FROM pg_constraint k WHERE k.conrelid = a.attrelid
                AND k.contype = 'n' AND NOT k.convalidated AND k.conkey = ARRAY[a.attnum]))::text || ','
            || a.attndims || ',"' || a.attgenerated::text || '",'
            || coalesce(CASE WHEN a.atthasdef AND a.attgenerated = '' THEN (
                SELECT to_json(pg_get_expr(d.adbin, d.adrelid))::text FROM pg_attrdef d
                WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum) END, 'null') || ','
            || coalesce((SELECT to_json(o.description)::text FROM pg_description o WHERE o.objoid = a.attrelid
                AND o.classoid = 'pg_class'::regclass AND o.objsubid = a.attnum), 'null') || ','
            || coalesce(CASE WHEN x.ahead >= 0 AND
                pg_xact_status((x.now + x.ahead)::text::xid8) = 'in progress' THEN a.cmin::text END, 'null')
            || ']', ',' ORDER BY a.attnum) || ']')::json
        FROM pg_attribute a
        CROSS JOIN LATERAL (SELECT txid_current() AS now,
            a.xmin::text::int8 - txid_current() % 4294967296 AS ahead) x
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
    'keys', (
        SELECT json_agg(json_build_object('primary', i.indisprimary, 'identity', i.indisreplident,
            'immediate', i.indimmediate, 'columns', (
                SELECT json_agg(a.attname ORDER BY k.place)
                FROM unnest(i.indkey) WITH ORDINALITY k(attnum, place)
                JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
                WHERE k.place <= i.indnkeyatts)))
        FROM pg_index i WHERE i.indrelid = c.oid AND (i.indisprimary OR i.indisreplident))
)::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = $1 AND c.relkind IN ('r', 'p') AND c.relpersistence <> 't');
END
$body$;

-- A note with its signature. One that is too large says only which table it is about.
CREATE OR REPLACE FUNCTION tidegate.sign_note(note text)
RETURNS bytea LANGUAGE plpgsql AS $body$
BEGIN
RETURN (SELECT convert_to('1 ' || encode(sha256(k.key || sha256(k.key ||
    convert_to((txid_current() % 4294967296)::text || ' ' || b.body, 'UTF8'))), 'hex') || ' ' || b.body, 'UTF8')
FROM tidegate.ddl_capture k CROSS JOIN (
    SELECT CASE WHEN octet_length($1) <= 1000000 THEN $1 ELSE json_build_object(
        'event', 'cut', 'command', $1::json -> 'command', 'oid', $1::json -> 'oid',
        'schema', $1::json -> 'schema', 'table', $1::json -> 'table')::text END AS body) b
WHERE $1 IS NOT NULL);
END
$body$;

CREATE OR REPLACE FUNCTION tidegate.capture_ddl()
RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' SET quote_all_identifiers = off
SET DateStyle = 'ISO, YMD' SET IntervalStyle = postgres SET TimeZone = 'UTC' SET extra_float_digits = 3
SET bytea_output = hex SET lc_monetary = 'C' AS $body$
DECLARE
    notes bytea[];
    note bytea;
BEGIN
    BEGIN
        IF tg_event = 'table_rewrite' THEN
            notes := ARRAY[tidegate.sign_note(tidegate.describe_table(pg_event_trigger_table_rewrite_oid(),
                'rewrite', tg_tag, pg_event_trigger_table_rewrite_reason()))];
        ELSIF tg_event = 'sql_drop' THEN
            SELECT array_agg(tidegate.sign_note(CASE WHEN o.objsubid = 0
                THEN json_build_object('event', 'drop', 'command', tg_tag, 'oid', o.objid::int8,
                    'table', o.object_identity)::text
                ELSE tidegate.describe_table(o.objid, 'table', tg_tag, NULL) END)) INTO notes
            FROM pg_event_trigger_dropped_objects() o
            WHERE o.classid = 'pg_class'::regclass AND NOT o.is_temporary
            AND (o.object_type = 'table' OR o.object_type = 'table column' AND tg_tag <> 'ALTER TABLE');
        ELSE
            WITH RECURSIVE command AS (
                SELECT c.classid, c.objid, c.command_tag AS tag FROM pg_event_trigger_ddl_commands() c
                WHERE NOT c.in_extension
            ), relation AS (
                (SELECT c.objid AS oid, c.tag, 0 AS depth FROM command c WHERE c.classid = 'pg_class'::regclass
                    AND c.tag IN ('ALTER TABLE', 'CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO')
                UNION SELECT pg_partition_root(c.objid)::oid, c.tag, 0 FROM command c
                    WHERE c.classid = 'pg_class'::regclass AND c.tag = 'CREATE TABLE'
                UNION SELECT r.oid, c.tag, 0 FROM command c JOIN pg_class r ON r.relnamespace = c.objid
                    WHERE c.classid = 'pg_namespace'::regclass AND c.tag = 'ALTER SCHEMA')
                UNION SELECT i.inhrelid, r.tag, r.depth + 1 FROM relation r
                    JOIN pg_inherits i ON i.inhparent = r.oid WHERE r.tag = 'ALTER TABLE'
            )
            SELECT array_agg(s.note ORDER BY s.depth, s.oid) INTO notes FROM (
                SELECT r.oid, min(r.depth) AS depth,
                    tidegate.sign_note(tidegate.describe_table(r.oid, 'table', min(r.tag), NULL)) AS note
                FROM relation r GROUP BY r.oid
                UNION ALL SELECT c.objid, 0, tidegate.sign_note(json_build_object('event', 'type',
                    'command', c.tag, 'oid', coalesce(r.reltype, c.objid)::int8)::text)
                FROM command c LEFT JOIN pg_class r ON r.oid = c.objid AND c.classid = 'pg_class'::regclass
                WHERE c.tag IN ('ALTER TYPE', 'ALTER DOMAIN')) s;
        END IF;
    EXCEPTION WHEN OTHERS THEN
        notes := ARRAY[convert_to('error ' || sqlstate, 'UTF8')];
    END;
    IF num_nonnulls(VARIADIC notes) > 0 THEN
        FOREACH note IN ARRAY notes LOOP
            IF note IS NOT NULL THEN
                PERFORM pg_logical_emit_message(true, 'tidegate.ddl', note);
            END IF;
        END LOOP;
        -- A message stands at the end of its record, so one of a savepoint and the change that is written
        -- next outside of it stand at the same place. This one has nothing to say.
        PERFORM pg_logical_emit_message(true, 'tidegate.ddl', ''::bytea);
    END IF;
END
$body$;

-- Not even the names that ordinary roles see may be enough to write a note.
REVOKE ALL ON FUNCTION tidegate.describe_table(oid, text, text, integer), tidegate.sign_note(text),
    tidegate.capture_ddl() FROM PUBLIC;
REVOKE ALL ON TABLE tidegate.ddl_capture FROM PUBLIC;

DROP EVENT TRIGGER IF EXISTS tidegate_ddl_command_end;
DROP EVENT TRIGGER IF EXISTS tidegate_sql_drop;
DROP EVENT TRIGGER IF EXISTS tidegate_table_rewrite;
CREATE EVENT TRIGGER tidegate_ddl_command_end ON ddl_command_end EXECUTE FUNCTION tidegate.capture_ddl();
CREATE EVENT TRIGGER tidegate_sql_drop ON sql_drop EXECUTE FUNCTION tidegate.capture_ddl();
CREATE EVENT TRIGGER tidegate_table_rewrite ON table_rewrite EXECUTE FUNCTION tidegate.capture_ddl();
-- Also for sessions whose session_replication_role is replica.
ALTER EVENT TRIGGER tidegate_ddl_command_end ENABLE ALWAYS;
ALTER EVENT TRIGGER tidegate_sql_drop ENABLE ALWAYS;
ALTER EVENT TRIGGER tidegate_table_rewrite ENABLE ALWAYS;

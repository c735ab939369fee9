//! Facts of the catalogue, held against what the stream says of the same tables.

use std::collections::BTreeMap;

use tidegate::change::{BeforeImage, ColumnDefault, ColumnType};
use tidegate::sources::postgres::TableFilter;
use tidegate::sources::postgres::capture::select;
use tidegate::sources::postgres::catalogue::{
    Generated, fetch_tables, fetch_types, list_relations,
};
use tidegate::sources::postgres::connection::{Connection, Purpose, StreamOptions};
use tidegate::sources::postgres::key_rules::KeyRules;
use tidegate::sources::postgres::relations::RelationDescriptor;
use tidegate::sources::postgres::retype::modifier_of;
use tidegate::sources::postgres::table_version::build;
use tidegate::sources::postgres::values::TypeCatalogue;
use tidegate::sources::postgres::wire::{Context, Frame, Message};

use super::Database;

const ZOO: &str = r#"
    CREATE SCHEMA "Odd Näme";
    CREATE TYPE mood AS ENUM ('sad', 'it''s, "ok"', 'happy');
    CREATE DOMAIN positive AS numeric(10,2) CHECK (value > 0);
    CREATE TYPE pair AS (a int, b text);
    CREATE TABLE by_key (b int, gone text, a text DEFAULT 'it''s', m mood[] NOT NULL,
        p positive, c pair, stored int GENERATED ALWAYS AS (b * 2) STORED,
        i int GENERATED ALWAYS AS IDENTITY, at timestamptz(3) DEFAULT now(), PRIMARY KEY (a, b));
    ALTER TABLE by_key DROP COLUMN gone;
    COMMENT ON TABLE by_key IS 'a table';
    COMMENT ON COLUMN by_key.a IS 'a column';
    CREATE TABLE by_index (id int PRIMARY KEY, code varchar(5) NOT NULL, v numeric(5,1)[][]);
    CREATE UNIQUE INDEX by_index_code ON by_index (code) INCLUDE (id);
    ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_code;
    CREATE TABLE whole (id int, v text); ALTER TABLE whole REPLICA IDENTITY FULL;
    CREATE TABLE keyless (v text);
    CREATE TABLE deferrable_key (id int PRIMARY KEY DEFERRABLE);
    CREATE TABLE "Odd Näme"."a.b" ("é" int PRIMARY KEY, "x y" bit(3));
    CREATE TABLE parted (k int, v text, PRIMARY KEY (k)) PARTITION BY LIST (k);
    CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
    CREATE TABLE parted_2 (v text, k int NOT NULL);
    ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES IN (2);
    CREATE TABLE no_columns ();
    CREATE VIEW seen AS SELECT * FROM by_key;
    CREATE UNLOGGED TABLE unlogged (id int);
    INSERT INTO by_key (b, a, m) VALUES (1, 'x', '{sad}');
    INSERT INTO parted VALUES (1, 'one'); ANALYZE parted, parted_1; ANALYZE by_key"#;

const ROWS: &str = r#"
    INSERT INTO by_key (b, a, m) VALUES (2, 'x', '{}');
    INSERT INTO by_index VALUES (1, 'c'); INSERT INTO whole VALUES (1);
    INSERT INTO keyless VALUES ('v'); INSERT INTO deferrable_key VALUES (1);
    INSERT INTO "Odd Näme"."a.b" VALUES (1); INSERT INTO parted VALUES (2);
    INSERT INTO no_columns DEFAULT VALUES"#;

/// Streams until a transaction of its own ends, and collects the descriptions.
async fn streamed(
    database: &Database,
    slot: &str,
    rows: &str,
) -> BTreeMap<String, RelationDescriptor> {
    let mut connection =
        Connection::open(&database.settings, Purpose::Replication).await.expect("open");
    let start = connection.create_slot(slot, true).await.expect("created").consistent_point;
    database.execute(&format!("BEGIN; {rows}; COMMIT")).await;
    let options = StreamOptions { publication: "p", messages: false };
    let mut stream = connection.start_replication(slot, start, &options).await.expect("started");
    let (mut found, mut values) = (BTreeMap::new(), Vec::new());
    loop {
        let payload = stream.next().await.expect("well").expect("not the end");
        let Frame::XLogData(data) = Frame::decode(payload).expect("a frame") else { continue };
        match Message::decode(data.payload, Context::default(), &mut values).expect("a message") {
            Message::Relation(relation) => {
                let descriptor = RelationDescriptor::from_wire(&relation);
                found.insert(descriptor.qualified_name(), descriptor);
            }
            Message::Commit(_) => return found,
            _ => {}
        }
    }
}

#[tokio::test]
async fn the_catalogue_foretells_what_the_stream_says() {
    let Some(database) = Database::create("catalogue").await else { return };
    database.execute(ZOO).await;
    for (via_root, slot) in [(false, "tidegate_test_zoo"), (true, "tidegate_test_zoo_root")] {
        database
            .execute(&format!(
                "CREATE PUBLICATION p FOR ALL TABLES WITH (publish_via_partition_root = {via_root})"
            ))
            .await;
        let found = streamed(&database, slot, ROWS).await;
        database
            .execute(
                "DROP PUBLICATION p; TRUNCATE by_key, by_index, deferrable_key, parted, \
                 \"Odd Näme\".\"a.b\"",
            )
            .await;
        let mut control =
            Connection::open(&database.settings, Purpose::Control).await.expect("open");
        let relations = list_relations(&mut control).await.expect("listed");
        let selection = select(&relations, &TableFilter::default(), via_root).expect("selected");
        let oids: Vec<u32> = selection.captured.iter().map(|relation| relation.oid).collect();
        for table in fetch_tables(&mut control, &oids).await.expect("fetched") {
            let name = table.qualified_name();
            let Some(streamed) = found.get(&name) else {
                assert_eq!(name, "public.parted_1", "{found:?}");
                continue;
            };
            assert_eq!(table.descriptor(false), *streamed, "{name}");
        }
        let root = found.contains_key("public.parted");
        assert_eq!(root, via_root);
    }
    database.remove().await;
}

#[tokio::test]
async fn table_versions_have_what_only_the_catalogue_knows() {
    let Some(database) = Database::create("versions").await else { return };
    database.execute(ZOO).await;
    let mut control = Connection::open(&database.settings, Purpose::Control).await.expect("open");
    let oid = |name: &'static str| {
        let sql = format!("SELECT '{name}'::regclass::oid");
        let client = &database.client;
        async move { client.query_one(&sql, &[]).await.expect("a table").get::<_, u32>(0) }
    };
    let oids = [oid("by_index").await, 1, oid("by_key").await, oid("parted").await];
    let facts = fetch_tables(&mut control, &oids).await.expect("fetched");
    let names: Vec<_> = facts.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["by_index", "by_key", "parted"]);
    assert_eq!(facts[1].estimated_rows, Some(1));
    assert_eq!(facts[2].estimated_rows, Some(1));
    assert_eq!(facts[1].column("stored").expect("a column").generated, Generated::Stored);

    let mut types = TypeCatalogue::new();
    let of_columns: Vec<u32> =
        facts.iter().flat_map(|table| &table.columns).map(|column| column.type_oid).collect();
    fetch_types(&mut control, &mut types, &of_columns).await.expect("fetched");
    let version = |index: usize| {
        let table = &facts[index];
        build(&table.descriptor(false), Some(table), &types, &|_| None, 1, &KeyRules::default())
    };
    let by_key = version(1);
    assert_eq!(by_key.labels.len(), 1);
    let by_key = by_key.version;
    assert_eq!(by_key.comment.as_deref(), Some("a table"));
    let columns: Vec<_> = by_key.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(columns, ["b", "a", "m", "p", "c", "i", "at"]);
    assert_eq!(by_key.key, [1, 0]);
    assert_eq!(by_key.before_image, BeforeImage::Key(vec![0, 1]));
    let nullable: Vec<_> = by_key.columns.iter().map(|column| column.nullable).collect();
    assert_eq!(nullable, [false, false, false, true, true, false, true]);
    assert_eq!(by_key.columns[1].default, Some(ColumnDefault::Literal(b"it's".to_vec())));
    assert_eq!(by_key.columns[1].comment.as_deref(), Some("a column"));
    assert_eq!(by_key.columns[6].default, Some(ColumnDefault::Computed));
    assert_eq!(by_key.columns[3].kind, ColumnType::Decimal { precision: 10, scale: 2 });
    let labels = ["sad", "it's, \"ok\"", "happy"].map(str::to_owned);
    let mood = ColumnType::Enum { labels: labels.to_vec().into() };
    assert_eq!(by_key.columns[2].kind, ColumnType::Array(Box::new(mood)));
    let by_index = version(0).version;
    assert_eq!((by_index.key.as_slice(), by_index.columns[1].nullable), (&[1][..], false));
    database.remove().await;
}

#[tokio::test]
async fn columns_whose_constraint_is_not_valid_yet_may_have_nulls() {
    let Some(database) = Database::create("not_valid").await else { return };
    let mut control = Connection::open(&database.settings, Purpose::Control).await.expect("open");
    if control.version().major() < 18 {
        return database.remove().await;
    }
    database
        .execute(
            "CREATE TABLE t (a int, b int NOT NULL); INSERT INTO t VALUES (NULL, 1); \
             ALTER TABLE t ADD CONSTRAINT later NOT NULL a NOT VALID",
        )
        .await;
    let sql = "SELECT 't'::regclass::oid";
    let oid: u32 = database.client.query_one(sql, &[]).await.expect("a table").get(0);
    let facts = fetch_tables(&mut control, &[oid]).await.expect("fetched");
    let not_null: Vec<bool> = facts[0].columns.iter().map(|column| column.not_null).collect();
    assert_eq!(not_null, [false, true]);
    database.remove().await;
}

/// A type with modifiers of which nobody decided what another one does to values would pass for one
/// that is safe.
#[tokio::test]
async fn what_each_types_modifier_means_is_decided() {
    let Some(database) = Database::create("modifiers").await else { return };
    let sql = "SELECT oid, typname::text, typmodin <> 0 FROM pg_type WHERE oid < 16384";
    let rows = database.client.query(sql, &[]).await.expect("types");
    let mut with_modifier = 0;
    for row in &rows {
        let (oid, name, has_modifier): (u32, String, bool) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(modifier_of(oid).is_some(), has_modifier, "{name}, number {oid}");
        with_modifier += usize::from(has_modifier);
    }
    assert!(with_modifier >= 20, "{with_modifier} of {} types", rows.len());
    database.remove().await;
}

//! What is refused before anything is created, and what is created then.

use tidegate::error::{Code, Fault};
use tidegate::sources::postgres::capture::{Selection, select};
use tidegate::sources::postgres::catalogue::list_relations;
use tidegate::sources::postgres::connection::{Connection, Purpose};
use tidegate::sources::postgres::preflight::check;
use tidegate::sources::postgres::publication::{drop_publication, ensure, read_publication};
use tidegate::sources::postgres::{PublicationAutocreate, Settings, TableFilter};

use super::cluster::Cluster;
use super::{Database, source_settings};

fn filter(include: &[&str]) -> TableFilter {
    let pattern = |text: &&str| regex::Regex::new(&format!("^(?:{text})$")).expect("a pattern");
    TableFilter {
        table_include: Some(include.iter().map(pattern).collect()),
        ..TableFilter::default()
    }
}

fn settings(database: &Database, include: &[&str]) -> Settings {
    let mut settings =
        source_settings(&database.settings, "tidegate_test_none", "tidegate_publication");
    settings.tables = filter(include);
    settings
}

/// All faults as `CODE table`, sorted.
async fn faults(settings: &Settings) -> Vec<String> {
    let mut found: Vec<String> = check(settings).await.iter().map(short).collect();
    found.sort();
    found
}

fn short(fault: &Fault) -> String {
    let table = fault.place().table.as_deref().unwrap_or("-");
    let code = fault.code().id().trim_start_matches("TG-E-");
    format!("{code} {}", table.trim_start_matches("public."))
}

const TABLES: &str = "\
    CREATE TABLE good (id int PRIMARY KEY, v text);\
    CREATE TABLE keyless (v text);\
    CREATE TABLE deferrable_key (id int PRIMARY KEY DEFERRABLE);\
    CREATE TABLE nothing (id int PRIMARY KEY); ALTER TABLE nothing REPLICA IDENTITY NOTHING;\
    CREATE TABLE lost_index (id int NOT NULL); CREATE UNIQUE INDEX lost ON lost_index (id);\
    ALTER TABLE lost_index REPLICA IDENTITY USING INDEX lost; DROP INDEX lost;\
    CREATE TABLE generated_key (id int, g int GENERATED ALWAYS AS (id * 2) STORED PRIMARY KEY);\
    CREATE TABLE whole (v text); ALTER TABLE whole REPLICA IDENTITY FULL;\
    CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY);\
    CREATE VIEW seen AS SELECT 1 AS one;\
    CREATE TABLE root (k int PRIMARY KEY) PARTITION BY LIST (k);\
    CREATE TABLE leaf PARTITION OF root FOR VALUES IN (1);\
    ALTER TABLE root REPLICA IDENTITY FULL";

#[tokio::test]
async fn every_fault_is_reported_and_nothing_is_left_behind() {
    let Some(database) = Database::create("preflight").await else { return };
    database.execute(TABLES).await;
    let bad = [
        r"public\.good",
        r"public\.keyless",
        r"public\.deferrable_key",
        r"public\.nothing",
        r"public\.lost_index",
        r"public\.generated_key",
        r"public\.whole",
    ];
    assert_eq!(
        faults(&settings(&database, &bad)).await,
        [
            "SOURCE-REPLICA-IDENTITY deferrable_key",
            "SOURCE-REPLICA-IDENTITY generated_key",
            "SOURCE-REPLICA-IDENTITY keyless",
            "SOURCE-REPLICA-IDENTITY lost_index",
            "SOURCE-REPLICA-IDENTITY nothing",
        ]
    );
    assert_eq!(
        faults(&settings(&database, &[r"public\.(good|unlogged)", r"public\.seen", "no.such"]))
            .await,
        ["TABLE-MISSING -", "TABLE-UNSUPPORTED seen", "TABLE-UNSUPPORTED unlogged"]
    );
    let mut by_root = settings(&database, &[r"public\.root"]);
    assert_eq!(faults(&by_root).await, ["TABLE-MISSING root"]);
    by_root.publish_via_partition_root = true;
    assert_eq!(faults(&by_root).await, ["SOURCE-REPLICA-IDENTITY leaf"]);
    database.execute("ALTER TABLE leaf REPLICA IDENTITY FULL").await;
    assert_eq!(faults(&by_root).await, [""; 0]);
    assert_eq!(faults(&settings(&database, &[r"public\.good"])).await, [""; 0]);
    // A publication of all tables makes every table accountable.
    let mut all = settings(&database, &[r"public\.good"]);
    all.publication_autocreate = PublicationAutocreate::AllTables;
    assert_eq!(faults(&all).await.len(), 5);
    let left = "SELECT count(*) FROM pg_publication";
    assert_eq!(database.client.query_one(left, &[]).await.expect("a row").get::<_, i64>(0), 0);
    database.remove().await;
}

async fn selection(control: &mut Connection, settings: &Settings) -> Selection {
    let relations = list_relations(control).await.expect("listed");
    select(&relations, &settings.tables, settings.publish_via_partition_root).expect("selected")
}

#[tokio::test]
async fn publications_are_made_only_where_the_application_goes_on_working() {
    let Some(database) = Database::create("publication").await else { return };
    database.execute(TABLES).await;
    let mut control = Connection::open(&database.settings, Purpose::Control).await.expect("open");
    let publication = "tidegate_publication";

    let both = settings(&database, &[r"public\.(good|keyless)"]);
    let chosen = selection(&mut control, &both).await;
    let refused = ensure(&mut control, &both, &chosen, false).await.expect_err("refused");
    assert_eq!(refused.iter().map(short).collect::<Vec<_>>(), ["SOURCE-REPLICA-IDENTITY keyless"]);
    assert_eq!(read_publication(&mut control, publication).await.expect("read"), None);
    database.execute("INSERT INTO keyless VALUES ('x'); UPDATE keyless SET v = 'y'").await;

    let good = settings(&database, &[r"public\.good"]);
    let chosen = selection(&mut control, &good).await;
    let made = ensure(&mut control, &good, &chosen, false).await.expect("made");
    assert!(made.created);
    assert_eq!(made.added, ["public.good"]);
    let again = ensure(&mut control, &good, &chosen, true).await.expect("there");
    assert!(!again.created && again.added.is_empty());
    assert_eq!(again.facts.fingerprint(), made.facts.fingerprint());

    // Extending is refused for the table that would break, and undone.
    let chosen = selection(&mut control, &both).await;
    ensure(&mut control, &both, &chosen, true).await.expect_err("refused");
    database.execute("UPDATE keyless SET v = 'z'").await;
    database.execute("ALTER TABLE keyless REPLICA IDENTITY FULL").await;
    let extended = ensure(&mut control, &both, &chosen, true).await.expect("extended");
    assert_eq!(extended.added, ["public.keyless"]);
    assert_ne!(extended.facts.fingerprint(), made.facts.fingerprint());
    assert_eq!(faults(&both).await, [""; 0]);

    drop_publication(&mut control, publication).await.expect("dropped");
    let past = ensure(&mut control, &good, &chosen, true).await.expect_err("a slot exists");
    assert_eq!(past[0].code(), Code::PublicationMissing);
    database.remove().await;
}

#[tokio::test]
async fn generated_columns_spoil_whole_rows_where_the_server_would_refuse_updates() {
    let Some(database) = Database::create("generated").await else { return };
    database
        .execute(
            "CREATE TABLE whole (id int, g int GENERATED ALWAYS AS (id * 2) STORED); \
             ALTER TABLE whole REPLICA IDENTITY FULL; INSERT INTO whole VALUES (1)",
        )
        .await;
    let settings = settings(&database, &[r"public\.whole"]);
    let found = faults(&settings).await;
    // What is told must be what the server does.
    database.execute("CREATE PUBLICATION tidegate_publication FOR TABLE whole").await;
    let update = database.client.batch_execute("UPDATE whole SET id = 2").await;
    assert_eq!(found.is_empty(), update.is_ok(), "{found:?} {update:?}");
    if update.is_err() {
        assert_eq!(found, ["SOURCE-REPLICA-IDENTITY whole"]);
        let publish = "ALTER PUBLICATION tidegate_publication \
                       SET (publish_generated_columns = stored)";
        database.execute(publish).await;
        assert_eq!(faults(&settings).await, [""; 0]);
        database.execute("UPDATE whole SET id = 2").await;
    }
    database.remove().await;
}

#[tokio::test]
async fn publications_of_others_are_judged_as_they_are() {
    let Some(database) = Database::create("judged").await else { return };
    database.execute(TABLES).await;
    let mut disabled = settings(&database, &[r"public\.(good|whole)"]);
    disabled.publication_autocreate = PublicationAutocreate::Disabled;
    assert_eq!(faults(&disabled).await, ["PUBLICATION-MISSING -"]);
    let cases: [(&str, &[&str]); 5] = [
        ("FOR TABLE good", &["PUBLICATION-CHANGED whole"]),
        ("FOR TABLE good, whole WITH (publish = 'insert')", &["PUBLICATION-CHANGED -"]),
        ("FOR TABLE good WHERE (id > 0), whole", &["PUBLICATION-CHANGED good"]),
        ("FOR TABLE good (id), whole", &["PUBLICATION-CHANGED good"]),
        ("FOR TABLE good, whole", &[]),
    ];
    let version = Connection::open(&database.settings, Purpose::Control).await.expect("open");
    for (objects, expect) in cases {
        // Row filters and column lists came with version 15.
        if version.version().major() < 15 && objects.contains('(') && !objects.contains("WITH") {
            continue;
        }
        database.execute(&format!("CREATE PUBLICATION tidegate_publication {objects}")).await;
        assert_eq!(faults(&disabled).await, expect, "{objects}");
        database.execute("DROP PUBLICATION tidegate_publication").await;
    }
    database.execute("ALTER TABLE leaf REPLICA IDENTITY FULL").await;
    let mut by_root = settings(&database, &[r"public\.root"]);
    by_root.publish_via_partition_root = true;
    database.execute("CREATE PUBLICATION tidegate_publication FOR TABLE root").await;
    assert_eq!(faults(&by_root).await, ["PUBLICATION-CHANGED root"]);
    database
        .execute("ALTER PUBLICATION tidegate_publication SET (publish_via_partition_root = true)")
        .await;
    assert_eq!(faults(&by_root).await, [""; 0]);
    database.remove().await;
}

#[tokio::test]
async fn privileges_that_are_missing_are_named() {
    let Some(database) = Database::create("privileges").await else { return };
    database.execute(TABLES).await;
    let role = "tidegate_test_privileges";
    database
        .execute(&format!(
            "CREATE SCHEMA closed; CREATE TABLE closed.hidden (id int PRIMARY KEY); \
             CREATE TABLE guarded (id int PRIMARY KEY); \
             ALTER TABLE guarded ENABLE ROW LEVEL SECURITY; \
             SET password_encryption = 'scram-sha-256'; \
             DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN PASSWORD 'p'; \
             GRANT SELECT ON guarded, closed.hidden TO {role}"
        ))
        .await;
    let mut restricted = settings(&database, &[r"public\.(good|guarded)", r"closed\.hidden"]);
    restricted.connection.user = role.to_owned();
    restricted.connection.password = tidegate::config::Secret::new("p");
    assert_eq!(
        faults(&restricted).await,
        [
            "REPLICATION-PERMISSION -", // the role may not replicate
            "REPLICATION-PERMISSION -", // nor create a publication
            "REPLICATION-PERMISSION closed.hidden",
            "REPLICATION-PERMISSION good",
            "REPLICATION-PERMISSION guarded",
        ]
    );
    database
        .execute(&format!(
            "ALTER ROLE {role} REPLICATION; GRANT CREATE ON DATABASE {} TO {role}; \
             GRANT SELECT ON good TO {role}",
            database.settings.database
        ))
        .await;
    restricted.tables = filter(&[r"public\.good"]);
    let owner = check(&restricted).await;
    assert_eq!(owner.len(), 1, "{owner:?}");
    assert!(owner[0].to_string().contains("good"), "{}", owner[0]);
    database.execute(&format!("ALTER TABLE good OWNER TO {role}")).await;
    assert_eq!(faults(&restricted).await, [""; 0]);
    database.execute(&format!("REASSIGN OWNED BY {role} TO CURRENT_USER")).await;
    database.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    database.remove().await;
}

#[tokio::test]
async fn slots_that_cannot_be_taken_up_are_told() {
    let Some(database) = Database::create("taken_up").await else { return };
    database.execute(TABLES).await;
    let mut wanted = settings(&database, &[r"public\.good"]);
    wanted.slot_name = "tidegate_test_taken_up".to_owned();
    let create = |what: &str| format!("SELECT pg_create_{what}");
    let slot = &wanted.slot_name;
    database.execute(&create(&format!("physical_replication_slot('{slot}')"))).await;
    assert_eq!(faults(&wanted).await, ["SLOT-MISMATCH -"]);
    database.execute(&format!("SELECT pg_drop_replication_slot('{slot}')")).await;
    database.execute(&create(&format!("logical_replication_slot('{slot}', 'pgoutput')"))).await;
    // The slot would look for the publication in the past.
    assert_eq!(faults(&wanted).await, ["PUBLICATION-MISSING -"]);
    database.execute("CREATE PUBLICATION tidegate_publication FOR TABLE good").await;
    assert_eq!(faults(&wanted).await, [""; 0]);
    let mut other = wanted.connection.clone();
    other.application_name = "somebody else".to_owned();
    let start = tidegate::sources::postgres::wire::Lsn::ZERO;
    let options = tidegate::sources::postgres::connection::StreamOptions {
        publication: "tidegate_publication",
        messages: false,
    };
    for (name, expect) in [(&other, &["SLOT-ACTIVE -"][..]), (&wanted.connection, &[])] {
        let reader = Connection::open(name, Purpose::Replication).await.expect("open");
        let stream = reader.start_replication(slot, start, &options).await.expect("started");
        assert_eq!(faults(&wanted).await, expect);
        super::leave(stream).await;
    }
    database.remove().await;
}

#[tokio::test]
async fn servers_that_cannot_be_captured_from_are_told() {
    let access = "host all postgres 127.0.0.1/32 trust\n";
    let conf = "wal_level = replica\nmax_replication_slots = 1\n";
    let Some(cluster) = Cluster::start("server", conf, access, |_| {}).await else { return };
    cluster.execute("CREATE TABLE good (id int PRIMARY KEY)").await;
    let mut settings = source_settings(&cluster.settings("postgres", ""), "s", "p");
    settings.tables = filter(&[r"public\.good"]);
    assert_eq!(faults(&settings).await, ["WAL-LEVEL -"]);
    cluster.restart_with("wal_level = logical\nmax_wal_senders = 0");
    assert_eq!(faults(&settings).await, ["SLOT-HEADROOM -"]);
    cluster.restart_with("max_wal_senders = 5");
    cluster.execute("SELECT pg_create_physical_replication_slot('other')").await;
    let full = check(&settings).await;
    assert_eq!(full.iter().map(short).collect::<Vec<_>>(), ["SLOT-HEADROOM -"]);
    assert!(full[0].message().contains("other"), "{}", full[0]);
    cluster.execute("SELECT pg_drop_replication_slot('other')").await;
    cluster
        .execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
        .await;
    settings.connection.database = "ascii".to_owned();
    assert_eq!(faults(&settings).await, ["SERVER-ENCODING -", "TABLE-MISSING -"]);
}

#[tokio::test]
async fn slots_that_the_server_gave_up_are_lost_for_good() {
    use tidegate::sources::postgres::offset::{Offset, Phase};
    use tidegate::sources::postgres::slot::{check_gap, examine};
    let access = "host all postgres 127.0.0.1/32 trust\n";
    let conf = "max_slot_wal_keep_size = 1MB\nmin_wal_size = 32MB\nmax_wal_size = 32MB\n";
    let Some(cluster) = Cluster::start("lost", conf, access, |_| {}).await else { return };
    cluster
        .execute("CREATE TABLE good (id int PRIMARY KEY); CREATE PUBLICATION p FOR TABLE good")
        .await;
    let connection = cluster.settings("postgres", "");
    let mut replication = Connection::open(&connection, Purpose::Replication).await.expect("open");
    let created = replication.create_slot("s", false).await.expect("created");
    let identity = replication.identify_system().await.expect("an identity");
    for _ in 0..6 {
        cluster.execute("SELECT pg_logical_emit_message(false, 'x', 'y')").await;
        cluster.execute("SELECT pg_switch_wal()").await;
        cluster.execute("CHECKPOINT").await;
    }
    let offset = Offset {
        system_id: identity.system_id,
        timeline: identity.timeline,
        slot: "s".to_owned(),
        nonce: 0,
        phase: Phase::Streaming { end: created.consistent_point },
        inside: None,
        settings_fingerprint: 0,
        publication_fingerprint: 0,
        publication_stamp: 0,
    };
    let standing = examine(&mut replication, "s", Some(&offset)).await.expect("examined");
    let fault = check_gap(&offset, &standing).expect_err("lost");
    assert_eq!(fault.code(), Code::SlotLost);
    assert!(fault.message().contains("wal_status=lost"), "{fault}");
    let mut settings = source_settings(&connection, "s", "p");
    settings.tables = filter(&[r"public\.good"]);
    assert_eq!(faults(&settings).await, ["SLOT-LOST -"]);
    let options = tidegate::sources::postgres::connection::StreamOptions {
        publication: "p",
        messages: false,
    };
    let start = replication.start_replication("s", created.consistent_point, &options).await;
    assert_eq!(start.expect_err("lost").code(), Code::SlotLost);
}

#[tokio::test]
async fn promotions_are_followed_on_a_real_history() {
    use tidegate::sources::postgres::offset::{Offset, Phase};
    use tidegate::sources::postgres::slot::{check_gap, examine};
    use tidegate::sources::postgres::wire::Lsn;
    let access = "host all postgres 127.0.0.1/32 trust\n";
    let Some(cluster) = Cluster::start("promoted", "", access, |_| {}).await else { return };
    cluster.execute("CREATE TABLE good (id int PRIMARY KEY)").await;
    let connection = cluster.settings("postgres", "");
    let identify = async || {
        let mut replication =
            Connection::open(&connection, Purpose::Replication).await.expect("open");
        replication.identify_system().await.expect("an identity")
    };
    let before = identify().await;
    cluster.restart_as_standby();
    let mut settings = source_settings(&connection, "s", "p");
    settings.tables = filter(&[r"public\.good"]);
    assert!(faults(&settings).await.contains(&"SOURCE-STANDBY -".to_owned()));
    cluster.promote();
    let after = identify().await;
    assert_eq!((before.timeline, after.timeline), (1, 2));
    let mut replication = Connection::open(&connection, Purpose::Replication).await.expect("open");
    let created = replication.create_slot("s", false).await.expect("created");
    let mut verdict = async |end: Lsn| {
        let offset = Offset {
            system_id: before.system_id,
            timeline: before.timeline,
            slot: "s".to_owned(),
            nonce: 0,
            phase: Phase::Streaming { end },
            inside: None,
            settings_fingerprint: 0,
            publication_fingerprint: 0,
            publication_stamp: 0,
        };
        let standing = examine(&mut replication, "s", Some(&offset)).await.expect("examined");
        check_gap(&offset, &standing).err().map(|fault| fault.code())
    };
    // On shared history, but the slot is younger; and beyond the switch.
    assert_eq!(verdict(before.flushed).await, Some(Code::SlotGap));
    assert_eq!(verdict(created.consistent_point).await, Some(Code::SourceDiverged));
}

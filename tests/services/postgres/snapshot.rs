//! Slots and snapshots: the hand-over, what a snapshot sees, what makes it useless.

use std::time::Duration;

use tidegate::change::{Cell, RowImage};
use tidegate::error::{Code, Fault};
use tidegate::sources::postgres::connection::{Connection, Purpose};
use tidegate::sources::postgres::offset::{Offset, Phase};
use tidegate::sources::postgres::slot::{check_gap, examine, read_slot};
use tidegate::sources::postgres::snapshot::{SnapshotSession, SnapshotTable};
use tidegate::sources::postgres::wire::Lsn;

use super::Database;

pub(super) async fn table_oid(database: &Database, name: &str) -> u32 {
    let sql = format!("SELECT '{name}'::regclass::oid");
    database.client.query_one(&sql, &[]).await.expect("a table").get(0)
}

async fn read(
    session: &mut SnapshotSession,
    table: &SnapshotTable<'_>,
) -> Result<Vec<Vec<Option<String>>>, Fault> {
    let mut reader = session.read_table(table).await?;
    let mut rows = Vec::new();
    while let Some(row) = reader.next_row().await? {
        let image =
            RowImage { bytes: row.bytes, before: None, after: Some(row.cells), reread: &[] };
        let text = |cell: &Cell| {
            image.raw(*cell).map(|bytes| String::from_utf8(bytes.to_vec()).expect("text"))
        };
        rows.push(row.cells.iter().map(text).collect());
    }
    Ok(rows)
}

async fn table<'a>(
    database: &Database,
    name: &'a str,
    columns: &'a [&'a str],
) -> SnapshotTable<'a> {
    let oid = table_oid(database, name).await;
    SnapshotTable {
        oid,
        namespace: "public",
        name,
        columns,
        is_partitioned: false,
        predicate: None,
        query: None,
        blocks: None,
        limit: None,
    }
}

#[tokio::test]
async fn rows_come_as_of_the_slots_beginning_in_the_order_of_columns_asked_for() {
    let Some(database) = Database::create("snapshot").await else { return };
    database
        .execute(
            "CREATE TABLE t (id int PRIMARY KEY, \"odd \"\"name\" text, gone int, n numeric(10,2));\
             ALTER TABLE t DROP COLUMN gone; \
             INSERT INTO t VALUES (1, E'tab\\there\\\\ and\\nline', 1.50), (2, NULL, 0), (3, '', 7),\
                 (4, '\\N', 4), (5, '\\.', NULL); \
             CREATE TABLE child () INHERITS (t); INSERT INTO child VALUES (9, 'child', 9); \
             CREATE TABLE nothing (); INSERT INTO nothing DEFAULT VALUES; \
             CREATE TABLE p (k int, v text) PARTITION BY LIST (k); \
             CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); \
             CREATE TABLE p2 (v text, k int); ALTER TABLE p ATTACH PARTITION p2 FOR VALUES IN (2); \
             INSERT INTO p VALUES (1, 'one'), (2, 'two')",
        )
        .await;
    let slot = "tidegate_test_snapshot";
    let mut replication =
        Connection::open(&database.settings, Purpose::Replication).await.expect("open");
    let created = replication.create_slot(slot, true).await.expect("created");
    database.execute("INSERT INTO t VALUES (6, 'later', 6); DELETE FROM t WHERE id = 2").await;
    let mut session = SnapshotSession::begin(&database.settings, created.snapshot.as_deref())
        .await
        .expect("imported");
    let columns = ["n", "odd \"name", "id"];
    let rows = read(&mut session, &table(&database, "t", &columns).await).await.expect("rows");
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        rows,
        [
            [text("1.50"), text("tab\there\\ and\nline"), text("1")],
            [text("0.00"), None, text("2")],
            [text("7.00"), text(""), text("3")],
            [text("4.00"), text("\\N"), text("4")],
            [None, text("\\."), text("5")],
        ]
    );
    let rows = read(&mut session, &table(&database, "nothing", &[]).await).await.expect("rows");
    assert_eq!(rows, [Vec::<Option<String>>::new()]);
    let mut root = table(&database, "p", &["k", "v"]).await;
    root.is_partitioned = true;
    let rows = read(&mut session, &root).await.expect("rows");
    assert_eq!(rows, [[text("1"), text("one")], [text("2"), text("two")]]);
    session.finish().await.expect("ended");
    database.remove().await;
}

#[tokio::test]
async fn tables_that_changed_under_the_snapshot_are_not_read() {
    let Some(database) = Database::create("stale").await else { return };
    database
        .execute(
            "CREATE TABLE rewritten (id int); INSERT INTO rewritten VALUES (1); \
             CREATE TABLE emptied (id int); INSERT INTO emptied VALUES (1); \
             CREATE TABLE lost_column (id int, v int); \
             CREATE TABLE dropped (id int); \
             CREATE TABLE untouched (id int); INSERT INTO untouched VALUES (1); \
             CREATE TABLE p (k int) PARTITION BY LIST (k); \
             CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); INSERT INTO p VALUES (1)",
        )
        .await;
    let stale = [
        table(&database, "rewritten", &["id"]).await,
        table(&database, "emptied", &["id"]).await,
        table(&database, "lost_column", &["id", "v"]).await,
        table(&database, "dropped", &["id"]).await,
        SnapshotTable { is_partitioned: true, ..table(&database, "p", &["k"]).await },
    ];
    let mut replication =
        Connection::open(&database.settings, Purpose::Replication).await.expect("open");
    let created = replication.create_slot("tidegate_test_stale", true).await.expect("created");
    database
        .execute(
            "ALTER TABLE rewritten ALTER id TYPE bigint; TRUNCATE emptied; \
             ALTER TABLE lost_column DROP COLUMN v; DROP TABLE dropped; TRUNCATE p1; \
             ALTER TABLE untouched ADD COLUMN more int DEFAULT 5",
        )
        .await;
    for table in &stale {
        let mut session = SnapshotSession::begin(&database.settings, created.snapshot.as_deref())
            .await
            .expect("imported");
        let fault = read(&mut session, table).await.expect_err("stale");
        assert_eq!(fault.code(), Code::SnapshotStale, "{}: {fault}", table.name);
    }
    let mut session = SnapshotSession::begin(&database.settings, created.snapshot.as_deref())
        .await
        .expect("imported");
    let rows = read(&mut session, &table(&database, "untouched", &["id"]).await).await;
    assert_eq!(rows.expect("rows"), [[Some("1".to_owned())]]);
    // The exported snapshot ends with the next command of its exporter.
    replication.identify_system().await.expect("an identity");
    let gone = SnapshotSession::begin(&database.settings, created.snapshot.as_deref()).await;
    assert_eq!(gone.expect_err("gone").code(), Code::SnapshotStale);
    database.remove().await;
}

#[tokio::test]
async fn rows_that_a_policy_hides_are_an_error() {
    let Some(database) = Database::create("policy").await else { return };
    database
        .execute(
            "CREATE TABLE t (id int); INSERT INTO t VALUES (1), (2); \
             ALTER TABLE t ENABLE ROW LEVEL SECURITY; \
             CREATE POLICY half ON t USING (id = 1); \
             DROP ROLE IF EXISTS tidegate_test_policy; \
             CREATE ROLE tidegate_test_policy; GRANT SELECT ON t TO tidegate_test_policy",
        )
        .await;
    let mut session = SnapshotSession::begin(&database.settings, None).await.expect("begun");
    session.connection().query("", "SET ROLE tidegate_test_policy").await.expect("set");
    let fault = read(&mut session, &table(&database, "t", &["id"]).await).await;
    assert_eq!(fault.expect_err("hidden").code(), Code::ReplicationPermission);
    drop(session);
    database.execute("DROP OWNED BY tidegate_test_policy; DROP ROLE tidegate_test_policy").await;
    database.remove().await;
}

#[tokio::test]
async fn a_snapshot_tells_which_transactions_it_sees() {
    let Some(database) = Database::create("visibility").await else { return };
    database.execute("CREATE TABLE t (id int)").await;
    let xid = |row: tokio_postgres::Row| {
        u32::try_from(row.get::<_, String>(0).parse::<u64>().expect("a number") & 0xffff_ffff)
            .expect("32 bits")
    };
    let sql = "INSERT INTO t VALUES (1) RETURNING pg_current_xact_id()::text";
    let before = xid(database.client.query_one(sql, &[]).await.expect("inserted"));
    let mut session = SnapshotSession::begin(&database.settings, None).await.expect("begun");
    let visibility = session.visibility().await.expect("told");
    let after = xid(database.client.query_one(sql, &[]).await.expect("inserted"));
    assert!(visibility.sees(before));
    assert!(!visibility.sees(after));
    let rows = read(&mut session, &table(&database, "t", &["id"]).await).await.expect("rows");
    assert_eq!(rows.len(), 1);
    database.remove().await;
}

fn stored(slot: &str, system_id: u64, timeline: u32, end: Lsn) -> Offset {
    Offset {
        system_id,
        timeline,
        slot: slot.to_owned(),
        nonce: 1,
        phase: Phase::Streaming { end },
        inside: None,
        settings_fingerprint: 0,
        publication_fingerprint: 0,
        publication_stamp: 0,
    }
}

#[tokio::test]
async fn recreated_and_advanced_slots_are_found_out() {
    let Some(database) = Database::create("gap").await else { return };
    let slot = "tidegate_test_gap";
    let mut connection =
        Connection::open(&database.settings, Purpose::Replication).await.expect("open");
    let created = connection.create_slot(slot, false).await.expect("created");
    let system = connection.identify_system().await.expect("an identity");
    let offset = stored(slot, system.system_id, system.timeline, created.consistent_point);
    let mut verdict = async |offset: &Offset| {
        let standing = examine(&mut connection, slot, Some(offset)).await.expect("examined");
        check_gap(offset, &standing).err().map(|fault| fault.code())
    };
    assert_eq!(verdict(&offset).await, None);

    database
        .execute("CREATE TABLE t (id int); SELECT pg_logical_emit_message(true, 'x', 'y')")
        .await;
    let advance = format!("SELECT pg_replication_slot_advance('{slot}', pg_current_wal_lsn())");
    database.execute(&advance).await;
    assert_eq!(verdict(&offset).await, Some(Code::SlotGap));

    database.execute(&format!("SELECT pg_drop_replication_slot('{slot}')")).await;
    assert_eq!(verdict(&offset).await, Some(Code::SlotMissing));
    let recreate = format!("SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')");
    database.execute(&recreate).await;
    assert_eq!(verdict(&offset).await, Some(Code::SlotGap));

    let ahead = stored(slot, system.system_id, system.timeline, Lsn(u64::MAX));
    assert_eq!(verdict(&ahead).await, Some(Code::SourceDiverged));
    let other = stored(slot, system.system_id + 1, system.timeline, created.consistent_point);
    assert_eq!(verdict(&other).await, Some(Code::SourceIdentityChanged));

    database.execute(&format!("SELECT pg_drop_replication_slot('{slot}')")).await;
    database.execute(&format!("SELECT pg_create_physical_replication_slot('{slot}')")).await;
    assert_eq!(verdict(&offset).await, Some(Code::SlotMismatch));
    database.execute(&format!("SELECT pg_drop_replication_slot('{slot}')")).await;
    assert_eq!(read_slot(&mut connection, slot).await.expect("read"), None);
    database.remove().await;
}

#[tokio::test]
async fn the_idle_timer_does_not_end_the_exported_snapshot() {
    let Some(database) = Database::create("idle").await else { return };
    database
        .execute(&format!(
            "CREATE TABLE t (id int); \
             ALTER DATABASE {} SET idle_in_transaction_session_timeout = '50ms'",
            database.settings.database
        ))
        .await;
    let mut replication =
        Connection::open(&database.settings, Purpose::Replication).await.expect("open");
    let created = replication.create_slot("tidegate_test_idle", true).await.expect("created");
    // The server's own clock, not ours, makes the exporter idle for longer than its limit.
    database.execute("SELECT pg_sleep(0.3)").await;
    let session = SnapshotSession::begin(&database.settings, created.snapshot.as_deref()).await;
    session.expect("still there").finish().await.expect("ended");
    database.remove().await;
}

#[tokio::test]
async fn a_slot_that_is_in_use_is_waited_for() {
    use tidegate::sources::postgres::connection::StreamOptions;
    let Some(database) = Database::create("attach").await else { return };
    let slot = "tidegate_test_attach";
    database.execute("CREATE TABLE t (id int); CREATE PUBLICATION p FOR TABLE t").await;
    let open =
        async || Connection::open(&database.settings, Purpose::Replication).await.expect("open");
    let mut first = open().await;
    let start = first.create_slot(slot, false).await.expect("created").consistent_point;
    let options = StreamOptions { publication: "p", messages: false };
    let stream = first.start_replication(slot, start, &options).await.expect("started");
    let mut settings = super::source_settings(&database.settings, slot, "p");
    settings.slot_max_retries = 1;
    settings.slot_retry_delay = Duration::from_millis(1);
    let metrics = tidegate::observe::SourceMetrics::default();
    let told = metrics.waiting();
    let fault = tidegate::sources::postgres::slot::attach(
        open().await,
        &settings,
        start,
        &options,
        &metrics,
    )
    .await
    .expect_err("in use");
    assert_eq!(fault.code(), Code::SlotActive);
    assert_eq!(told.borrow().as_ref().map(Fault::code), Some(Code::SlotActive));
    settings.slot_max_retries = 1_000;
    settings.slot_retry_delay = Duration::from_millis(10);
    let waiting = open().await;
    let (outcome, ()) = tokio::join!(
        tidegate::sources::postgres::slot::attach(waiting, &settings, start, &options, &metrics),
        super::leave(stream),
    );
    super::leave(outcome.expect("attached")).await;
    assert_eq!(*told.borrow(), None, "nothing is waited for any more");
    database.remove().await;
}

#[tokio::test]
async fn a_temporary_slot_lives_until_its_session_drops_it() {
    use tidegate::sources::postgres::connection::StreamOptions;
    let Some(database) = Database::create("temporary").await else { return };
    database.execute("CREATE TABLE t (id int); CREATE PUBLICATION p FOR TABLE t").await;
    let slot = "tidegate_test_temporary";
    let mut connection =
        Connection::open(&database.settings, Purpose::Replication).await.expect("open");
    connection.create_slot(slot, false).await.expect("created");
    let mut other = Connection::open(&database.settings, Purpose::Replication).await.expect("open");
    for name in ["tidegate_test_temporary_a", "tidegate_test_temporary_b"] {
        other.create_slot(name, true).await.expect("created");
    }
    // What is not dropped would keep the server's log for as long as the stream lives.
    other.drop_slot("tidegate_test_temporary_a").await.expect("dropped");
    let options = StreamOptions { publication: "p", messages: false };
    let stream = other.start_replication(slot, Lsn::ZERO, &options).await.expect("started");
    let gone = read_slot(&mut connection, "tidegate_test_temporary_a").await.expect("read");
    let kept = read_slot(&mut connection, "tidegate_test_temporary_b").await.expect("read");
    assert!(gone.is_none());
    assert!(kept.expect("still there").restart.is_some());
    super::leave(stream).await;
    database.remove().await;
}

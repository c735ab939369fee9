//! Connecting, pinning, statements and the stream.

use std::time::Duration;

use tidegate::config::Secret;
use tidegate::error::Code;
use tidegate::sources::postgres::connection::{Connection, Purpose, StreamOptions};
use tidegate::sources::postgres::wire::{Frame, Lsn, StatusUpdate, WireTime};

use super::Database;

/// Settings that change how every value is written.
const ADVERSE: &str = "\
    ALTER DATABASE {db} SET datestyle = 'German'; \
    ALTER DATABASE {db} SET timezone = 'Asia/Kolkata'; \
    ALTER DATABASE {db} SET intervalstyle = 'sql_standard'; \
    ALTER DATABASE {db} SET bytea_output = 'escape'; \
    ALTER DATABASE {db} SET extra_float_digits = 0; \
    ALTER DATABASE {db} SET search_path = 'public'; \
    ALTER DATABASE {db} SET row_security = on; \
    ALTER DATABASE {db} SET idle_in_transaction_session_timeout = '1s'; \
    ALTER DATABASE {db} SET statement_timeout = '1h'; \
    ALTER DATABASE {db} SET client_min_messages = 'error'; \
    ALTER DATABASE {db} SET quote_all_identifiers = on";

#[tokio::test]
async fn display_settings_of_database_do_not_reach_our_sessions() {
    let Some(database) = Database::create("display_settings").await else { return };
    database.execute(&ADVERSE.replace("{db}", &database.settings.database)).await;
    for purpose in [Purpose::Replication, Purpose::Control, Purpose::Snapshot] {
        let mut connection = Connection::open(&database.settings, purpose).await.expect("pinned");
        let sql = "SELECT timestamptz '2024-07-01 10:00:00+00', interval '1 day 2 hours', \
                   bytea '\\x00ff', float8 '5e-324', money '1234.5', \
                   current_setting('idle_in_transaction_session_timeout')";
        let row = connection.query_one("testing", sql).await.expect("a row");
        let texts: Vec<_> = (0..6).map(|index| row.text(index).expect("text")).collect();
        let expect =
            ["2024-07-01 10:00:00+00", "1 day 02:00:00", "\\x00ff", "5e-324", "$1234.50", "0"];
        // The C locale writes no sign for money in some builds.
        assert_eq!(texts[..4], expect[..4]);
        assert!(texts[4].trim_start_matches('$').replace(',', "") == "1234.50", "{}", texts[4]);
        assert_eq!(texts[5], "0");
        connection.close().await;
    }
    database.remove().await;
}

#[tokio::test]
async fn refusals_of_a_real_server_are_coded() {
    let Some(database) = Database::create("refusals").await else { return };
    let mut settings = database.settings.clone();
    settings.database = "tidegate_no_such_database".to_owned();
    let refused = async |settings: &_, purpose| {
        Connection::open(settings, purpose).await.expect_err("refused").code()
    };
    assert_eq!(refused(&settings, Purpose::Control).await, Code::SourceDatabaseMissing);
    let mut settings = database.settings.clone();
    settings.user = "tidegate_no_such_role".to_owned();
    settings.password = Secret::new("x");
    assert_eq!(refused(&settings, Purpose::Control).await, Code::SourceAuthentication);
    let mut settings = database.settings.clone();
    settings.port = 1;
    let fault = Connection::open(&settings, Purpose::Control).await.expect_err("refused");
    assert_eq!(fault.code(), Code::SourceUnreachable);
    assert!(fault.to_string().contains(":1"), "{fault}");
    let mut settings = database.settings.clone();
    settings.host = "no-such-host.invalid".to_owned();
    let fault = Connection::open(&settings, Purpose::Control).await.expect_err("refused");
    assert_eq!(fault.code(), Code::SourceUnreachable);
    assert!(fault.to_string().contains("no-such-host.invalid:"), "{fault}");
    database.remove().await;
}

#[tokio::test]
async fn statement_beyond_its_limit_is_ended_by_the_server() {
    let Some(database) = Database::create("limit").await else { return };
    let mut settings = database.settings.clone();
    settings.query_timeout = Duration::from_millis(200);
    let mut connection = Connection::open(&settings, Purpose::Control).await.expect("open");
    let fault = connection.query("napping", "SELECT pg_sleep(60)").await.expect_err("too long");
    assert_eq!(fault.code(), Code::SourceUnreachable, "{fault}");
    assert!(fault.to_string().contains("57014"), "{fault}");
    connection.query("going on", "SELECT 1").await.expect("still in step");
    database.remove().await;
}

#[tokio::test]
async fn changes_stream_until_we_stop_and_the_slot_keeps_what_we_confirmed() {
    let Some(database) = Database::create("stream").await else { return };
    database
        .execute(
            "CREATE TABLE t (id int PRIMARY KEY, v text); \
             CREATE PUBLICATION \"Pub-X\" FOR TABLE t",
        )
        .await;
    let slot = "tidegate_test_stream";
    let mut connection =
        Connection::open(&database.settings, Purpose::Replication).await.expect("open");
    let identity = connection.identify_system().await.expect("an identity");
    assert_eq!(identity.database, database.settings.database);
    assert!(identity.system_id > 0 && identity.timeline >= 1);
    assert_eq!(connection.show("wal_level").await.expect("shown"), "logical");
    assert_eq!(connection.timeline_history(1).await.expect("none"), []);
    let created = connection.create_slot(slot, false).await.expect("created");
    assert!(created.snapshot.is_some());
    let again = connection.create_slot(slot, false).await.expect_err("it exists");
    assert_eq!(again.code(), Code::SlotForeign);
    database
        .execute("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 5000) i")
        .await;

    let options = StreamOptions { publication: "Pub-X", messages: true };
    let start = created.consistent_point;
    let mut stream = connection.start_replication(slot, start, &options).await.expect("started");
    let (mut inserts, mut end) = (0, Lsn::ZERO);
    while inserts < 5000 || end == Lsn::ZERO {
        let payload = stream.next().await.expect("well").expect("not the end");
        match Frame::decode(payload).expect("a frame") {
            Frame::XLogData(data) => match payload[25] {
                b'I' => inserts += 1,
                b'C' => end = data.wal_end,
                _ => {}
            },
            Frame::Keepalive(_) => {}
        }
    }
    let busy = Connection::open(&database.settings, Purpose::Replication).await.expect("open");
    let fault = busy.start_replication(slot, start, &options).await.expect_err("busy");
    assert_eq!(fault.code(), Code::SlotActive, "{fault}");
    let update = StatusUpdate {
        written: end,
        flushed: end,
        applied: end,
        clock: WireTime(0),
        reply_requested: true,
    };
    stream.send_status(&update).await.expect("sent");
    super::leave(stream).await;
    let mut connection =
        Connection::open(&database.settings, Purpose::Replication).await.expect("open");
    let sql =
        format!("SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = '{slot}'");
    let row = connection.query_one("reading the slot", &sql).await.expect("a slot");
    assert_eq!(row.parse_as::<Lsn>(0).expect("a position"), end);
    connection.drop_slot(slot).await.expect("dropped");
    let gone = connection.drop_slot(slot).await.expect_err("gone");
    assert_eq!(gone.code(), Code::SlotMissing, "{gone}");
    database.remove().await;
}

#[tokio::test]
async fn publication_that_is_dropped_ends_the_stream() {
    let Some(database) = Database::create("dropped").await else { return };
    database.execute("CREATE TABLE t (id int PRIMARY KEY); CREATE PUBLICATION p FOR TABLE t").await;
    let mut connection =
        Connection::open(&database.settings, Purpose::Replication).await.expect("open");
    let slot = "tidegate_test_dropped";
    let start = connection.create_slot(slot, true).await.expect("created").consistent_point;
    let options = StreamOptions { publication: "p", messages: false };
    database
        .execute("INSERT INTO t VALUES (1); DROP PUBLICATION p; INSERT INTO t VALUES (2)")
        .await;
    database.execute("CREATE PUBLICATION p FOR TABLE t; INSERT INTO t VALUES (3)").await;
    let mut stream = connection.start_replication(slot, start, &options).await.expect("started");
    let fault = loop {
        match stream.next().await {
            Ok(payload) => assert!(payload.is_some()),
            Err(fault) => break fault,
        }
    };
    // An error up to version 17, a warning and silence from 18 on.
    assert_eq!(fault.code(), Code::PublicationMissing, "{fault}");
    database.remove().await;
}

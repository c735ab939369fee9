//! The PostgreSQL source against a real server (`TIDEGATE_TEST_PG`, a superuser's URL).

mod catalogue;
mod cluster;
mod connection;
mod encryption;
mod preflight;
mod row_filter;
mod snapshot;

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate::config::Secret;
use tidegate::plan::KeyValueMode;
use tidegate::sources::postgres::connection::ReplicationStream;
use tidegate::sources::postgres::ddl::DdlSettings;
use tidegate::sources::postgres::key_rules::KeyRules;
use tidegate::sources::postgres::{
    ConnectionSettings, KeyChangeToast, MessageFilter, OffsetMismatch, PublicationAutocreate,
    RowFilters, Settings, SlotUse, SnapshotMode, SnapshotOrder, SslMode, TableFilter, ToastMode,
};
use tokio_postgres::config::Host;
use tokio_postgres::{Client, NoTls};

/// A database of its own for one test, and an independent client in it.
struct Database {
    client: Client,
    settings: ConnectionSettings,
    admin: Client,
}

impl Database {
    /// Creates the database, or says that the test is skipped. The name must be the test's own.
    async fn create(name: &str) -> Option<Self> {
        let url = super::service("TIDEGATE_TEST_PG")?;
        let mut config: tokio_postgres::Config = url.parse().expect("a connection URL");
        let admin = connect(&config).await;
        let name = format!("tidegate_test_{name}");
        drop_database(&admin, &name).await;
        admin.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a database");
        config.dbname(&name);
        let client = connect(&config).await;
        let settings = settings(&config);
        Some(Self { client, settings, admin })
    }

    async fn execute(&self, sql: &str) {
        let outcome = self.client.batch_execute(sql).await;
        assert!(outcome.is_ok(), "{sql}: {outcome:?}");
    }

    /// Removes the database with its slots.
    async fn remove(self) {
        drop(self.client);
        drop_database(&self.admin, &self.settings.database).await;
    }
}

/// Ends a stream in order.
async fn leave(stream: ReplicationStream) {
    let (mut reader, mut writer) = stream.into_split();
    writer.finish().await.expect("told");
    while reader.next().await.expect("an end").is_some() {}
    writer.close().await;
}

async fn drop_database(admin: &Client, name: &str) {
    let slots = format!(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots \
         WHERE (database = '{name}' OR slot_name = '{name}') AND active"
    );
    admin.batch_execute(&slots).await.expect("terminated");
    for _ in 0..100 {
        let drop_slots = format!(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots \
             WHERE database = '{name}' OR slot_name = '{name}'"
        );
        if admin.batch_execute(&drop_slots).await.is_ok() {
            break;
        }
    }
    let sql = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
    admin.batch_execute(&sql).await.expect("dropped");
}

async fn connect(config: &tokio_postgres::Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.expect("the server of the stack");
    tokio::spawn(connection);
    client
}

fn settings(config: &tokio_postgres::Config) -> ConnectionSettings {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".to_owned(),
    };
    let password = config.get_password().map(String::from_utf8_lossy).unwrap_or_default();
    ConnectionSettings {
        host,
        port: config.get_ports().first().copied().unwrap_or(5432),
        user: config.get_user().unwrap_or("postgres").to_owned(),
        password: Secret::new(password),
        database: config.get_dbname().unwrap_or("postgres").to_owned(),
        sslmode: SslMode::Disable,
        sslrootcert: None,
        sslcert: None,
        sslkey: None,
        tcp_keepalive: true,
        connect_timeout: Duration::from_secs(10),
        query_timeout: Duration::from_secs(30),
        application_name: "tidegate tests".to_owned(),
    }
}

/// Settings of a connector that captures every table.
fn source_settings(connection: &ConnectionSettings, slot: &str, publication: &str) -> Settings {
    Settings {
        connection: connection.clone(),
        slot_name: slot.to_owned(),
        publication_name: publication.to_owned(),
        publication_autocreate: PublicationAutocreate::Filtered,
        messages: MessageFilter::default(),
        publish_via_partition_root: false,
        snapshot_mode: SnapshotMode::Initial,
        snapshot_threads: 1,
        snapshot_order: SnapshotOrder::Names,
        snapshot_delay: Duration::ZERO,
        snapshot_queries: BTreeMap::new(),
        offset_mismatch: OffsetMismatch::Stop,
        slot_use: SlotUse::default(),
        tables: TableFilter::default(),
        toast: ToastMode::Backfill,
        key_change_toast: KeyChangeToast::Sentinel,
        hstore: KeyValueMode::Json,
        key_rules: KeyRules::default(),
        ddl: DdlSettings::default(),
        probe_interval: Duration::ZERO,
        row_filters: RowFilters::default(),
        status_interval: Duration::from_secs(10),
        slot_max_retries: 0,
        slot_retry_delay: Duration::from_millis(1),
        slot_health_interval: Duration::ZERO,
        slot_retained_warning: 0,
        snapshot_include: None,
        chunk_rows: 1024,
        trial: None,
    }
}

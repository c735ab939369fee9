//! What the PostgreSQL source is told, typed. Made by `keys::parse`; nothing here is a string that
//! still has to be understood.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use regex::Regex;

use super::ddl::DdlSettings;
use super::key_rules::KeyRules;
use super::messages::MessageFilter;
use super::row_filter::RowFilters;
use crate::config::Secret;
use crate::plan::{Incomplete, IncompleteRows, KeyValueMode};
use crate::sources::Trial;

/// Everything that the source needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where and as whom to connect.
    pub connection: ConnectionSettings,
    /// The replication slot (`slot.name`), checked against the server's rules.
    pub slot_name: String,
    /// The publication (`publication.name`), checked.
    pub publication_name: String,
    /// `publication.autocreate.mode`.
    pub publication_autocreate: PublicationAutocreate,
    /// `publish.via.partition.root`.
    pub publish_via_partition_root: bool,
    /// `snapshot.mode`.
    pub snapshot_mode: SnapshotMode,
    /// Which messages are published.
    pub messages: MessageFilter,
    /// Which tables are captured.
    pub tables: TableFilter,
    /// `toast.mode`.
    pub toast: ToastMode,
    /// `key.change.toast`.
    pub key_change_toast: KeyChangeToast,
    /// `hstore.handling.mode`.
    pub hstore: KeyValueMode,
    /// `message.key.columns`.
    pub key_rules: KeyRules,
    /// `row.filter.*`.
    pub row_filters: RowFilters,
    /// `ddl.capture`, `schema.rewrite.*`.
    pub ddl: DdlSettings,
    /// `schema.probe.interval.ms`; zero: never.
    pub probe_interval: Duration,
    /// `status.update.interval.ms`.
    pub status_interval: Duration,
    /// `snapshot.max.threads`: so many connections read the initial snapshot.
    pub snapshot_threads: usize,
    /// `snapshot.tables.order.by.row.count`.
    pub snapshot_order: SnapshotOrder,
    /// `snapshot.delay.ms`.
    pub snapshot_delay: Duration,
    /// `snapshot.select.statement.overrides`: queries of rows, by `schema.table`.
    pub snapshot_queries: BTreeMap<String, String>,
    /// `offset.mismatch.strategy`.
    pub offset_mismatch: OffsetMismatch,
    /// What the slot is for beyond the stream.
    pub slot_use: SlotUse,
    /// `slot.max.retries`: attempts to attach to a busy slot.
    pub slot_max_retries: u32,
    /// `slot.retry.delay.ms`.
    pub slot_retry_delay: Duration,
    /// `slot.health.interval.ms`; zero: never.
    pub slot_health_interval: Duration,
    /// `slot.retained.warn.bytes`; 0: never.
    pub slot_retained_warning: u64,
    /// `snapshot.fetch.size` is accepted without effect; rows are streamed by COPY.
    pub snapshot_include: Option<Vec<Regex>>,
    /// `incremental.snapshot.chunk.size`: about so many rows are read at once beside the stream.
    pub chunk_rows: u64,
    /// A look at the changes that leaves nothing behind, instead of capture.
    pub trial: Option<Trial>,
}

/// Where and as whom to connect.
#[derive(Clone, Debug)]
pub struct ConnectionSettings {
    /// `database.hostname`: a name, an address, or a directory of a Unix socket.
    pub host: String,
    /// `database.port`.
    pub port: u16,
    /// `database.user`.
    pub user: String,
    /// `database.password`.
    pub password: Secret,
    /// `database.dbname`.
    pub database: String,
    /// `database.sslmode`.
    pub sslmode: SslMode,
    /// `database.sslrootcert` (PEM); `None`: the system's roots.
    pub sslrootcert: Option<PathBuf>,
    /// `database.sslcert` (PEM): the client's certificate.
    pub sslcert: Option<PathBuf>,
    /// `database.sslkey` (PEM): its key.
    pub sslkey: Option<PathBuf>,
    /// `database.tcpKeepAlive`.
    pub tcp_keepalive: bool,
    /// Limit on reaching the server (`connection.validation.timeout.ms`).
    pub connect_timeout: Duration,
    /// Limit on a control query (`database.query.timeout.ms`).
    pub query_timeout: Duration,
    /// Shown by the server in its activity views; names the connector.
    pub application_name: String,
}

/// `database.sslmode`, with the meaning that the server's own clients give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SslMode {
    /// Never encrypted.
    Disable,
    /// Encrypted only if the server refuses otherwise.
    Allow,
    /// Encrypted if the server can; the certificate is not checked.
    Prefer,
    /// Encrypted; the certificate is checked only if a root certificate is given.
    Require,
    /// Encrypted, certificate chain checked.
    VerifyCa,
    /// Encrypted, chain and host name checked.
    VerifyFull,
}

/// `publication.autocreate.mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublicationAutocreate {
    /// Created for the captured tables, and altered when that set changes.
    Filtered,
    /// Created FOR ALL TABLES.
    AllTables,
    /// Created without tables.
    NoTables,
    /// Never created.
    Disabled,
}

/// `toast.mode`: large values that a change leaves out because they did not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToastMode {
    /// Taken from the old row or from what the transaction sent before, else marked; a new row must
    /// be complete.
    Backfill,
    /// Taken from the old row of the same message, else marked.
    Sentinel,
    /// Taken from the old row or from what the transaction sent before, else refused.
    Refuse,
}

/// `key.change.toast`: the same in the create of a changed key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyChangeToast {
    /// Marked, and said to be so.
    Sentinel,
    /// Refused.
    Refuse,
    /// Read from the table as it is now, else marked.
    Reselect,
}

impl Settings {
    /// The query whose rows the initial snapshot reads of a table, named `schema.table`.
    pub(super) fn snapshot_query(&self, table: &str) -> Option<&str> {
        self.snapshot_queries.get(table).map(String::as_str)
    }

    /// Whether snapshots read a table, named `schema.table`.
    pub(super) fn snapshot_reads(&self, table: &str) -> bool {
        let listed = self.snapshot_include.as_ref();
        listed.is_none_or(|patterns| patterns.iter().any(|pattern| pattern.is_match(table)))
    }

    /// What becomes of rows that nothing could complete.
    pub const fn incomplete_rows(&self) -> IncompleteRows {
        let marked = IncompleteRows {
            updates: Incomplete::Mark,
            creates: match self.toast {
                ToastMode::Backfill => {
                    Incomplete::Refuse("a created row under toast.mode=backfill")
                }
                ToastMode::Sentinel | ToastMode::Refuse => Incomplete::Mark,
            },
            key_changes: match self.key_change_toast {
                KeyChangeToast::Refuse => {
                    Incomplete::Refuse("a row with a new key under key.change.toast=refuse")
                }
                KeyChangeToast::Sentinel | KeyChangeToast::Reselect => Incomplete::Mark,
            },
            rereads: matches!(self.key_change_toast, KeyChangeToast::Reselect),
            remedy: "toast.mode=refuse",
        };
        match self.toast {
            ToastMode::Refuse => IncompleteRows::refused("a row under toast.mode=refuse"),
            ToastMode::Backfill | ToastMode::Sentinel => marked,
        }
    }
}

/// `snapshot.mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotMode {
    /// A snapshot at the first start, then the stream.
    Initial,
    /// The same; and at every later start all tables are read beside the stream.
    Always,
    /// The same; and a snapshot if the slot no longer has what the offset needs.
    WhenNeeded,
    /// A snapshot at the first start, then nothing.
    InitialOnly,
    /// The stream only.
    NoData,
}

impl SnapshotMode {
    /// Whether rows that a table had before its changes are streamed are wanted.
    pub(super) const fn reads_rows(self) -> bool {
        !matches!(self, Self::NoData)
    }
}

/// What a slot is for beyond the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotUse {
    /// `slot.failover`: standbys get it too.
    pub fails_over: bool,
    /// `slot.drop.on.stop`: it goes with the task.
    pub goes_on_stop: bool,
}

/// `snapshot.tables.order.by.row.count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotOrder {
    /// By name.
    Names,
    /// By the number of rows.
    SmallestFirst,
    /// The other way round.
    LargestFirst,
}

/// `offset.mismatch.strategy`: what becomes of changes that the slot passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetMismatch {
    /// The task stops: they cannot be read any more.
    Stop,
    /// They are given up, and the stream begins where the slot is.
    PassOver,
}

/// Which tables are captured: anchored, case-insensitive patterns over `schema` or `schema.table`.
#[derive(Clone, Debug, Default)]
pub struct TableFilter {
    /// `schema.include.list`.
    pub schema_include: Option<Vec<Regex>>,
    /// `schema.exclude.list`.
    pub schema_exclude: Option<Vec<Regex>>,
    /// `table.include.list`.
    pub table_include: Option<Vec<Regex>>,
    /// `table.exclude.list`.
    pub table_exclude: Option<Vec<Regex>>,
    /// `signal.data.collection`.
    pub signals: Option<SignalTable>,
}

/// The table by whose rows orders come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalTable {
    /// Its schema.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl SignalTable {
    /// Reads `schema.table`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (namespace, name) = text.trim().split_once('.')?;
        let is_name = |text: &str| !text.is_empty() && !text.contains(['.', ',', '"']);
        (is_name(namespace) && is_name(name))
            .then(|| Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// Whether it is the table of this name.
    pub(super) fn is(&self, namespace: &str, name: &str) -> bool {
        (self.namespace.as_str(), self.name.as_str()) == (namespace, name)
    }
}

impl TableFilter {
    /// Whether orders come by a table's rows.
    pub(super) fn gives_orders(&self, schema: &str, table: &str) -> bool {
        self.signals.as_ref().is_some_and(|signals| signals.is(schema, table))
    }

    /// Whether a table is captured. The server's own schemas never are.
    pub fn captures(&self, schema: &str, table: &str) -> bool {
        if matches!(schema, "pg_catalog" | "information_schema" | "pg_toast") {
            return false;
        }
        let qualified = format!("{schema}.{table}");
        let any = |list: &Option<Vec<Regex>>, text: &str| {
            list.as_ref().map(|patterns| patterns.iter().any(|pattern| pattern.is_match(text)))
        };
        any(&self.schema_include, schema).unwrap_or(true)
            && !any(&self.schema_exclude, schema).unwrap_or(false)
            && any(&self.table_include, &qualified).unwrap_or(true)
            && !any(&self.table_exclude, &qualified).unwrap_or(false)
    }
}

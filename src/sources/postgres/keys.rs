//! The keys that only the PostgreSQL source has, and their way into [`Settings`].
//!
//! Names, values and (where nothing else is said) defaults are those of Debezium's PostgreSQL
//! connector. **Invariant:** what comes out of [`parse`] needs no further checking of text.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::ddl::{DdlCaptureMode, DdlSettings, RewriteAction};
use super::key_rules::KeyRules;
use super::messages::MessageFilter;
use super::row_filter::{Pushdown, RowFilters};
use super::settings::{
    ConnectionSettings, KeyChangeToast, OffsetMismatch, PublicationAutocreate, Settings,
    SignalTable, SlotUse, SnapshotMode, SnapshotOrder, SslMode, TableFilter, ToastMode,
};
use crate::config::keys::keys;
use crate::config::{Choice, ConfigFault, KeyDef, Rejection, Rule, Table, Values};
use crate::error::Code;
use crate::plan::KeyValueMode;

/// Every table of this source, in the order of display.
pub const TABLES: [&Table; 4] = [&CONNECTION, &REPLICATION, &TABLES_CAPTURED, &SNAPSHOT];

/// Every name of the connector's class.
pub const CLASSES: [&str; 6] = [
    "io.debezium.connector.postgresql.PostgresConnector",
    "PostgresConnector",
    "Postgres",
    "io.tidegate.PostgresSourceConnector",
    "PostgresSourceConnector",
    "PostgresSource",
];

const NOT_ON_SERVER: &str = "it has to be installed on the server; pgoutput is there already";

/// The limit that the server sets to names of slots and publications.
const NAME_LIMIT: usize = 63;

fn slot_name(text: &str) -> Result<(), Rejection> {
    plain_name(text, Code::SlotNameInvalid)
}

fn publication_name(text: &str) -> Result<(), Rejection> {
    plain_name(text, Code::PublicationNameInvalid)
}

fn signal_table(text: &str) -> Result<(), Rejection> {
    let rejection = || Rejection::invalid("must be the name of one table, as schema.table");
    SignalTable::parse(text).map(drop).ok_or_else(rejection)
}

fn plain_name(text: &str, code: Code) -> Result<(), Rejection> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if (1..=NAME_LIMIT).contains(&text.len()) && text.chars().all(is_plain) {
        return Ok(());
    }
    Err(Rejection { code, message: "must be 1 to 63 of the characters a-z, 0-9 and _".to_owned() })
}

keys! {
    /// Where and as whom to connect.
    CONNECTION "PostgreSQL: Connection"
    supported {
        HOSTNAME "database.hostname" String (required) High
            "The server's name or address, or the directory of its Unix socket."
            Rule::NotBlank;
        PORT "database.port" Int ("5432") High
            "The server's port."
            Rule::Between(1, 65_535);
        USER "database.user" String (required) High
            "The role, which needs REPLICATION, and SELECT on the captured tables."
            Rule::NotBlank;
        PASSWORD "database.password" Password () High
            "The role's password; without it the server must not ask for one.";
        DBNAME "database.dbname" String (required) High
            "The database; a connector captures one."
            Rule::NotBlank;
        SSLMODE "database.sslmode" String ("prefer") Medium
            "Whether the connection is encrypted, and what is checked, with the meaning that libpq gives the words."
            Rule::OneOf(&[
                Choice::of("disable"),
                Choice::of("allow"),
                Choice::of("prefer"),
                Choice::of("require"),
                Choice::of("verify-ca"),
                Choice::of("verify-full"),
            ]);
        SSLROOTCERT "database.sslrootcert" String () Medium
            "PEM file of the certificates against which the server's is checked; without it the system's.";
        SSLCERT "database.sslcert" String () Medium
            "PEM file of the client's certificate.";
        SSLKEY "database.sslkey" String () Medium
            "PEM file of the client certificate's key, not encrypted.";
        TCP_KEEPALIVE "database.tcpKeepAlive" Boolean ("true") Low
            "Whether the operating system probes idle connections.";
        CONNECT_TIMEOUT "connection.validation.timeout.ms" Long ("60000") Low
            "Limit on reaching the server."
            Rule::AtLeast(1);
        QUERY_TIMEOUT "database.query.timeout.ms" Long ("600000") Low
            "Limit on a query that is not a snapshot's; 0 is none."
            Rule::AtLeast(0);
    }
    no effect {}
    refused {
        "database.sslpassword" Password () "encrypted key files are not read; give the key without a password";
        "database.sslfactory" String () "it names a Java class; see database.sslmode";
        "database.initial.statements" String () "the settings of a session are pinned, so that values read the same everywhere";
        "database.connection.factory.class" Class () "it names a Java class";
        "database.server.name" String () "its name is topic.prefix";
        "sourceinfo.struct.maker" Class ("io.debezium.connector.postgresql.PostgresSourceInfoStructMaker")
            "it names a Java class";
        "driver.<property>" String () "properties of the Java driver have no meaning here";
    }
}

keys! {
    /// Slot, publication, positions.
    REPLICATION "PostgreSQL: Replication"
    supported {
        SLOT_NAME "slot.name" String ("debezium") High
            "The replication slot; created if it does not exist. No two connectors may share one."
            Rule::Is(slot_name);
        OFFSET_MISMATCH "offset.mismatch.strategy" String ("no_validation") Low
            "What becomes of changes between the stored offset and a slot that is ahead of it. They cannot be read any more: the task stops (no_validation, trust_offset), or they are given up and the stream begins where the slot is (trust_slot, trust_greater_lsn). A slot that is behind loses nothing, and nothing is published twice."
            Rule::OneOf(&[
                Choice::of("no_validation"),
                Choice::of("trust_offset"),
                Choice::of("trust_slot"),
                Choice::of("trust_greater_lsn"),
            ]);
        SLOT_FAILOVER "slot.failover" Boolean ("false") Medium
            "The replication slot is synchronized to standbys (PostgreSQL 17), so that a promoted one goes on with it; one that exists is altered. Needs synchronized_standby_slots at the server, of which its absence is warned.";
        SLOT_DROP "slot.drop.on.stop" Boolean ("false") Low
            "The replication slot is dropped whenever the task ends in good order (stop, pause, restart, the worker's end), and what is written until the next start is not in any stream; so that start must read all tables anew (snapshot.mode=when_needed).";
        SLOT_MAX_RETRIES "slot.max.retries" Int ("6") Low
            "Attempts to attach to a slot that another process is using."
            Rule::AtLeast(0);
        SLOT_RETRY_DELAY "slot.retry.delay.ms" Long ("10000") Low
            "The pause between them."
            Rule::AtLeast(0);
        SLOT_HEALTH_INTERVAL "slot.health.interval.ms" Long ("5000") Low
            "How often the slot is looked at for the metrics and warnings, also while the connector is paused or failed; 0 is never."
            Rule::AtLeast(0);
        SLOT_RETAINED_WARN "slot.retained.warn.bytes" Long ("1073741824") Low
            "The log says it, once, when the server keeps so much log for the slot; 0 is never."
            Rule::AtLeast(0);
        PUBLICATION_NAME "publication.name" String ("dbz_publication") High
            "The publication."
            Rule::Is(publication_name);
        PUBLICATION_AUTOCREATE "publication.autocreate.mode" String ("filtered") Medium
            "Whether and how a publication that does not exist is created: for the captured tables (and altered when they change), for all tables, for none, or not at all. Debezium's default is all_tables, which needs a superuser."
            Rule::OneOf(&[
                Choice::of("filtered"),
                Choice::of("all_tables"),
                Choice::of("no_tables"),
                Choice::of("disabled"),
            ]);
        VIA_ROOT "publish.via.partition.root" Boolean ("false") Medium
            "Whether a publication that is created publishes rows of partitions under the partitioned table's name.";
        MESSAGE_INCLUDE "message.prefix.include.list" List () Medium
            "Regular expressions for the prefixes of those logical decoding messages (pg_logical_emit_message) that are published; each must fit the whole prefix. Without it all are, from PostgreSQL 14 on; skipped.operations=m leaves them out."
            Rule::Patterns;
        MESSAGE_EXCLUDE "message.prefix.exclude.list" List () Medium
            "Regular expressions for the prefixes of those that are not."
            Rule::Patterns;
        DDL_CAPTURE "ddl.capture" String ("off") Medium
            "Who tells of changed definitions: off is the stream alone, which describes a table before its next row; event_trigger is also the event triggers that `tidegate ddl-capture install` puts into the database, which tell of every change at its place: of tables without rows, defaults, nullability, renames, partitions, and rewrites. From PostgreSQL 14 on. See docs/schema-changes.md."
            Rule::OneOf(&[Choice::of("off"), Choice::of("event_trigger")]);
        PROBE_INTERVAL "schema.probe.interval.ms" Long ("60000") Low
            "With ddl.capture=off: how often the catalogue is looked at for tables that may have been rewritten; 0 is never. A suspicion is a warning and a record of the kind suspected, never a refusal."
            Rule::AtLeast(0);
        REWRITE_ACTION "schema.rewrite.action" String ("warn") Medium
            "What becomes of a captured table that a change of its definition wrote anew (ALTER … TYPE … USING, a volatile default), so that rows which were published may have other values now. warn: the log and the control topic say so. With ddl.capture=event_trigger also refuse: the task stops there, until the change is acknowledged (schema.changes.acknowledged); and resnapshot: the table is read again beside the stream, and the control topic says when that is through."
            Rule::OneOf(&[Choice::of("warn"), Choice::of("refuse"), Choice::of("resnapshot")]);
        STATUS_INTERVAL "status.update.interval.ms" Int ("10000") Low
            "How often the server is told what it may forget."
            Rule::AtLeast(1);
    }
    no effect {
        "plugin.name" String ("pgoutput")
            "pgoutput is always used; every server has it. Debezium's default is decoderbufs"
            Rule::OneOf(&[
                Choice::of("pgoutput"),
                Choice::refused("decoderbufs", NOT_ON_SERVER),
                Choice::refused("wal2json", NOT_ON_SERVER),
            ]);
        "lsn.flush.mode" String () "the slot moves on as soon as Kafka holds what is before, with keepalives too"
            Rule::OneOf(&[
                Choice::of("connector"),
                Choice::of("connector_and_driver"),
                Choice::refused("manual", "a slot that is never told would keep the server's log for ever"),
            ]);
        "lsn.flush.timeout.ms" Long ("30000") "telling the server does not wait for an answer";
        "lsn.flush.timeout.action" String ("fail") "telling the server does not wait for an answer"
            Rule::OneOf(&[Choice::of("fail"), Choice::of("warn"), Choice::of("ignore")]);
        "internal.create.slot.command.timeout" Long ("90")
            "creating a slot waits for as long as running transactions make it";
    }
    refused {
        "schema.rewrite.acknowledged" List ()
            "rewrites are acknowledged in schema.changes.acknowledged, like all changes";
        "flush.lsn.source" Boolean ("true") "a slot that is never told would keep the server's log for ever";
        "internal.slot.seek.to.known.offset.on.start" Boolean ("false")
            "a gap between slot and offset is lost data; it is never passed over";
        "slot.stream.params" String () "the parameters of the stream are fixed";
        "replica.identity.autoset.values" String () "the worker does not alter tables; use ALTER TABLE … REPLICA IDENTITY";
        "xmin.fetch.interval.ms" Long ("0") "source.xmin is not filled";
    }
}

const TOAST_MODES: &[Choice] =
    &[Choice::of("backfill"), Choice::of("sentinel"), Choice::of("refuse")];
const KEY_CHANGES: &[Choice] =
    &[Choice::of("sentinel"), Choice::of("refuse"), Choice::of("reselect")];

keys! {
    /// Which tables are captured, and their types.
    TABLES_CAPTURED "PostgreSQL: Tables"
    supported {
        SCHEMA_INCLUDE "schema.include.list" List () High
            "Regular expressions for the schemas that are captured; each must fit the whole name, in any case."
            Rule::Patterns;
        SCHEMA_EXCLUDE "schema.exclude.list" List () Medium
            "Regular expressions for the schemas that are not captured."
            Rule::Patterns;
        TABLE_INCLUDE "table.include.list" List () High
            "Regular expressions for the tables that are captured, as schema.table."
            Rule::Patterns;
        TABLE_EXCLUDE "table.exclude.list" List () Medium
            "Regular expressions for the tables that are not captured, as schema.table."
            Rule::Patterns;
        TOAST_MODE "toast.mode" String ("backfill") High
            "What becomes of a large value that did not change and that the server left out. In every mode the old row of the same message completes it (REPLICA IDENTITY FULL). backfill also takes what the transaction sent before; what is still missing then has a marker that __tidegate.unavailable names, and a created row (which a row filter of the publication can let in) is refused. sentinel looks no further than the message, and marks created rows too. refuse takes what the transaction sent before and refuses what is still missing."
            Rule::OneOf(TOAST_MODES);
        KEY_CHANGE_TOAST "key.change.toast" String ("sentinel") High
            "The same where the row's key changed: there is no earlier record of the new key from which a reader could take the value. sentinel: a marker, __tidegate.unmergeable, a warning, and the metric tidegate_unmergeable_records_total. refuse: the task stops with a code. reselect: the value is read from the table as it is now, under the new key, and __tidegate.reselected names it; a row that is gone or cannot be read has the marker."
            Rule::OneOf(KEY_CHANGES);
        HSTORE_MODE "hstore.handling.mode" String ("json") Low
            "How hstore is published: as a JSON object in text, or as a map from text to text or null."
            Rule::OneOf(&[Choice::of("json"), Choice::of("map")]);
        KEY_COLUMNS "message.key.columns" String () Medium
            "Other columns as record keys: <tables>:<column>,<column>;… with a regular expression for schema.table. They must be among what the source sends with deletes (the replica identity; everything under FULL)."
            Rule::Is(key_columns);
        ROW_FILTER "row.filter.<schema.table>" String () Medium
            "An SQL predicate over the columns of a table: only rows of which it is true are published, and a row that comes to fulfil it, or no longer does, is published as a create or a delete. See docs/filters.md."
            Rule::NotBlank;
        ROW_FILTER_PUSHDOWN "row.filter.pushdown" String ("none") Medium
            "Who leaves rows out: the worker, or (from PostgreSQL 15 on) the server, by row filters of the publication, which the worker then holds against its own."
            Rule::OneOf(&[Choice::of("none"), Choice::of("publication")]);
    }
    no effect {}
    refused {
        "unavailable.value.handling.mode" String () "its name is toast.mode";
        "schema.whitelist" List () "its name is schema.include.list";
        "schema.blacklist" List () "its name is schema.exclude.list";
        "table.whitelist" List () "its name is table.include.list";
        "table.blacklist" List () "its name is table.exclude.list";
    }
}

keys! {
    /// Snapshots.
    SNAPSHOT "PostgreSQL: Snapshot"
    supported {
        SNAPSHOT_MODE "snapshot.mode" String ("initial") High
            "What a connector without a stored offset does: read the tables and then stream, read them and end, or stream only. And with one: read all tables again at every start (always), or if the slot no longer has what the offset needs (when_needed)."
            Rule::OneOf(&[
                Choice::of("initial"),
                Choice::of("initial_only"),
                Choice::of("always"),
                Choice::of("when_needed"),
                Choice::of("no_data"),
                Choice::of("never"),
                Choice::of("configuration_based"),
                Choice::refused("custom", "it names a Java class"),
            ]);
        BASED_ON_DATA "snapshot.mode.configuration.based.snapshot.data" Boolean ("false") Low
            "With snapshot.mode=configuration_based: tables are read at the first start.";
        BASED_ON_STREAM "snapshot.mode.configuration.based.start.stream" Boolean ("false") Low
            "With snapshot.mode=configuration_based: changes are streamed.";
        BASED_ON_DATA_ERROR "snapshot.mode.configuration.based.snapshot.on.data.error" Boolean ("false") Low
            "With snapshot.mode=configuration_based: as when_needed does, tables are read anew if the slot no longer has what the offset needs.";
        SNAPSHOT_INCLUDE "snapshot.include.collection.list" List () Medium
            "Regular expressions for those captured tables that a snapshot reads, as schema.table; without it all."
            Rule::Patterns;
        SNAPSHOT_THREADS "snapshot.max.threads" Int ("1") Medium
            "Connections that read the tables of the snapshot side by side. Large tables are read in parts (PostgreSQL 14), of which the order of rows is not kept."
            Rule::Between(1, 64);
        SNAPSHOT_ORDER "snapshot.tables.order.by.row.count" String ("disabled") Low
            "The order in which the snapshot reads tables: by name, or by how many rows the server believes them to have."
            Rule::OneOf(&[Choice::of("disabled"), Choice::of("ascending"), Choice::of("descending")]);
        SNAPSHOT_DELAY "snapshot.delay.ms" Long ("0") Low
            "How long a first start waits before its snapshot."
            Rule::AtLeast(0);
        SNAPSHOT_QUERIES "snapshot.select.statement.overrides" List () Medium
            "Tables, as schema.table, of which the snapshot reads the rows of a query (the next key) instead of all."
            Rule::NotBlank;
        SNAPSHOT_QUERY "snapshot.select.statement.overrides.<schema.table>" String () Medium
            "A SELECT whose rows the snapshot reads of that table; it must have the columns that are published, by their names. What is read beside the stream does not know of it: tables with a query are not read there by themselves."
            Rule::NotBlank;
        CHUNK_SIZE "incremental.snapshot.chunk.size" Int ("1024") Medium
            "Rows that a snapshot beside the stream reads at once; fewer where rows are large. The stream stands still while they are read."
            Rule::AtLeast(1);
        SIGNAL_TABLE "signal.data.collection" String () Medium
            "A table, as schema.table, with the columns id, type and data: a row that is inserted there orders a snapshot beside the stream, or stops, pauses or resumes one. It must be in the publication, and is published as records only if it is captured."
            Rule::Is(signal_table);
    }
    no effect {
        "incremental.snapshot.watermarking.strategy" String ("INSERT_INSERT")
            "chunks are placed by what their snapshot sees; nothing is written to the source"
            Rule::OneOf(&[Choice::of("INSERT_INSERT"), Choice::of("INSERT_DELETE")]);
        "incremental.snapshot.allow.schema.changes" Boolean ("false")
            "a table may be altered while it is read: chunks follow its definition";
    }
    refused {}
}

/// The key that a fault of the live check is about.
pub(crate) const fn blamed_key(code: Code) -> &'static str {
    match code {
        Code::SourceAuthentication | Code::ReplicationPermission => USER.name,
        Code::SourceDatabaseMissing | Code::ServerEncoding => DBNAME.name,
        Code::SourceTls => SSLMODE.name,
        Code::TableMissing | Code::TableUnsupported | Code::SourceReplicaIdentity => {
            TABLE_INCLUDE.name
        }
        Code::PublicationMissing | Code::PublicationChanged => PUBLICATION_NAME.name,
        Code::FilterUnsupported
        | Code::FilterUnknownTable
        | Code::FilterBeforeImage
        | Code::FilterAfterImage => ROW_FILTER.name,
        Code::FilterPushdownDrift => ROW_FILTER_PUSHDOWN.name,
        Code::DdlCapture => DDL_CAPTURE.name,
        Code::SchemaRewrite => REWRITE_ACTION.name,
        Code::SlotMissing
        | Code::SlotMismatch
        | Code::SlotGap
        | Code::SlotLost
        | Code::SlotActive
        | Code::SlotHeadroom => SLOT_NAME.name,
        _ => HOSTNAME.name,
    }
}

fn key_columns(text: &str) -> Result<(), Rejection> {
    KeyRules::parse(text).map(drop).map_err(Rejection::invalid)
}

fn snapshot_mode(values: &mut Values<'_>) -> SnapshotMode {
    let chosen = values.choice(
        &SNAPSHOT_MODE,
        ("initial", Some(SnapshotMode::Initial)),
        &[
            ("initial_only", Some(SnapshotMode::InitialOnly)),
            ("always", Some(SnapshotMode::Always)),
            ("when_needed", Some(SnapshotMode::WhenNeeded)),
            ("no_data", Some(SnapshotMode::NoData)),
            ("never", Some(SnapshotMode::NoData)),
            ("configuration_based", None),
        ],
    );
    let parts =
        [&BASED_ON_DATA, &BASED_ON_STREAM, &BASED_ON_DATA_ERROR].map(|key| values.flag(key));
    chosen.unwrap_or_else(|| match parts {
        [_, true, true] => SnapshotMode::WhenNeeded,
        [true, true, false] => SnapshotMode::Initial,
        [false, true, false] => SnapshotMode::NoData,
        [true, false, _] => SnapshotMode::InitialOnly,
        [false, false, _] => {
            values.fault(
                &SNAPSHOT_MODE,
                format!(
                    "with configuration_based, {} or {} must be true: neither rows nor changes are wanted",
                    BASED_ON_DATA.name, BASED_ON_STREAM.name
                ),
            );
            SnapshotMode::NoData
        }
    })
}

/// By table. Each one that is listed has a query, and the other way round.
fn snapshot_queries(values: &mut Values<'_>) -> BTreeMap<String, String> {
    let listed = values.list(&SNAPSHOT_QUERIES);
    let given: BTreeMap<String, String> = values
        .under(&SNAPSHOT_QUERY)
        .into_iter()
        .map(|(table, sql)| (table.to_owned(), sql.trim_end().trim_end_matches(';').to_owned()))
        .collect();
    for table in listed.iter().filter(|table| !given.contains_key(*table)) {
        let key = format!("{}.{table}", SNAPSHOT_QUERIES.name);
        values.fault(&SNAPSHOT_QUERIES, format!("{table} has no query: {key} is missing"));
    }
    for table in given.keys().filter(|table| !listed.contains(table)) {
        let key = format!("{}.{table}", SNAPSHOT_QUERIES.name);
        values.fault_of_name(&key, format!("{} does not list {table}", SNAPSHOT_QUERIES.name));
    }
    given
}

fn offset_mismatch(values: &mut Values<'_>) -> OffsetMismatch {
    values.choice(
        &OFFSET_MISMATCH,
        ("no_validation", OffsetMismatch::Stop),
        &[
            ("trust_offset", OffsetMismatch::Stop),
            ("trust_slot", OffsetMismatch::PassOver),
            ("trust_greater_lsn", OffsetMismatch::PassOver),
        ],
    )
}

/// Without its slot a connector goes on only if it may read the tables anew.
fn drops_slot_on_stop(values: &mut Values<'_>, mode: SnapshotMode) -> bool {
    let drops = values.flag(&SLOT_DROP);
    if drops && mode != SnapshotMode::WhenNeeded {
        values.fault(
            &SLOT_DROP,
            "what is written until the next start would be lost: it needs \
             snapshot.mode=when_needed, by which the next start reads all tables anew",
        );
    }
    drops
}

/// Reads the source's settings. After a fault the result is of no use; the faults are in `values`.
pub fn parse(values: &mut Values<'_>, connector: &str) -> Settings {
    let (toast, key_change_toast) = toast(values);
    let snapshot_mode = snapshot_mode(values);
    Settings {
        toast,
        key_change_toast,
        hstore: values.choice(
            &HSTORE_MODE,
            ("json", KeyValueMode::Json),
            &[("map", KeyValueMode::Map)],
        ),
        connection: connection(values, connector),
        slot_name: values.text(&SLOT_NAME),
        publication_name: values.text(&PUBLICATION_NAME),
        publication_autocreate: values.choice(
            &PUBLICATION_AUTOCREATE,
            ("filtered", PublicationAutocreate::Filtered),
            &[
                ("all_tables", PublicationAutocreate::AllTables),
                ("no_tables", PublicationAutocreate::NoTables),
                ("disabled", PublicationAutocreate::Disabled),
            ],
        ),
        publish_via_partition_root: values.flag(&VIA_ROOT),
        snapshot_mode,
        snapshot_threads: values.number(&SNAPSHOT_THREADS),
        snapshot_order: values.choice(
            &SNAPSHOT_ORDER,
            ("disabled", SnapshotOrder::Names),
            &[
                ("ascending", SnapshotOrder::SmallestFirst),
                ("descending", SnapshotOrder::LargestFirst),
            ],
        ),
        snapshot_delay: values.millis(&SNAPSHOT_DELAY),
        snapshot_queries: snapshot_queries(values),
        offset_mismatch: offset_mismatch(values),
        slot_use: SlotUse {
            fails_over: values.flag(&SLOT_FAILOVER),
            goes_on_stop: drops_slot_on_stop(values, snapshot_mode),
        },
        messages: messages(values),
        tables: tables(values),
        key_rules: values
            .optional(&KEY_COLUMNS)
            .and_then(|text| KeyRules::parse(text).ok())
            .unwrap_or_default(),
        row_filters: row_filters(values),
        ddl: ddl(values),
        probe_interval: values.millis(&PROBE_INTERVAL),
        status_interval: values.millis(&STATUS_INTERVAL),
        slot_max_retries: values.number(&SLOT_MAX_RETRIES),
        slot_retry_delay: values.millis(&SLOT_RETRY_DELAY),
        slot_health_interval: values.millis(&SLOT_HEALTH_INTERVAL),
        slot_retained_warning: values.number(&SLOT_RETAINED_WARN),
        snapshot_include: values.patterns(&SNAPSHOT_INCLUDE),
        chunk_rows: values.number(&CHUNK_SIZE),
        trial: None,
    }
}

fn toast(values: &mut Values<'_>) -> (ToastMode, KeyChangeToast) {
    let toast = values.choice(
        &TOAST_MODE,
        ("backfill", ToastMode::Backfill),
        &[("sentinel", ToastMode::Sentinel), ("refuse", ToastMode::Refuse)],
    );
    let key_change = values.choice(
        &KEY_CHANGE_TOAST,
        ("sentinel", KeyChangeToast::Sentinel),
        &[("refuse", KeyChangeToast::Refuse), ("reselect", KeyChangeToast::Reselect)],
    );
    let contradicts = toast == ToastMode::Refuse && key_change != KeyChangeToast::Refuse;
    if contradicts && values.is_given(&KEY_CHANGE_TOAST) {
        let message = "toast.mode=refuse lets no row through that is not complete";
        values.fault(&KEY_CHANGE_TOAST, message);
    }
    (toast, key_change)
}

fn connection(values: &mut Values<'_>, connector: &str) -> ConnectionSettings {
    if values.is_given(&SSLCERT) != values.is_given(&SSLKEY) {
        let missing = if values.is_given(&SSLKEY) { &SSLCERT } else { &SSLKEY };
        values.fault(missing, "database.sslcert and database.sslkey need each other");
    }
    let path = |def| values.optional(def).map(PathBuf::from);
    ConnectionSettings {
        host: values.text(&HOSTNAME),
        port: values.number(&PORT),
        user: values.text(&USER),
        password: values.secret(&PASSWORD),
        database: values.text(&DBNAME),
        sslmode: values.choice(
            &SSLMODE,
            ("prefer", SslMode::Prefer),
            &[
                ("disable", SslMode::Disable),
                ("allow", SslMode::Allow),
                ("require", SslMode::Require),
                ("verify-ca", SslMode::VerifyCa),
                ("verify-full", SslMode::VerifyFull),
            ],
        ),
        sslrootcert: path(&SSLROOTCERT),
        sslcert: path(&SSLCERT),
        sslkey: path(&SSLKEY),
        tcp_keepalive: values.flag(&TCP_KEEPALIVE),
        connect_timeout: values.millis(&CONNECT_TIMEOUT),
        query_timeout: values.millis(&QUERY_TIMEOUT),
        application_name: application_name(connector),
    }
}

/// The server cuts names beyond its limit without a word, so they are cut here, between characters.
fn application_name(connector: &str) -> String {
    let name = format!("tidegate {connector}");
    name.char_indices()
        .take_while(|(at, c)| at + c.len_utf8() <= NAME_LIMIT)
        .map(|(_, c)| if c.is_ascii_graphic() || c == ' ' { c } else { '?' })
        .collect()
}

fn messages(values: &mut Values<'_>) -> MessageFilter {
    refuse_both(values, &MESSAGE_INCLUDE, &MESSAGE_EXCLUDE);
    MessageFilter {
        include: values.patterns(&MESSAGE_INCLUDE),
        exclude: values.patterns(&MESSAGE_EXCLUDE),
    }
}

fn row_filters(values: &mut Values<'_>) -> RowFilters {
    let mut filters = RowFilters::default();
    filters.pushdown = values.choice(
        &ROW_FILTER_PUSHDOWN,
        ("none", Pushdown::None),
        &[("publication", Pushdown::Publication)],
    );
    let given: Vec<(String, String)> = values
        .under(&ROW_FILTER)
        .into_iter()
        .filter(|(table, _)| *table != "pushdown")
        .map(|(table, text)| (table.to_owned(), text.to_owned()))
        .collect();
    for (table, text) in given {
        if let Err(fault) = filters.add(&table, &text) {
            let key = format!("row.filter.{table}");
            values.push_fault(ConfigFault::new(fault.code(), key, fault.message()));
        }
    }
    filters
}

fn ddl(values: &mut Values<'_>) -> DdlSettings {
    let capture = values.choice(
        &DDL_CAPTURE,
        ("off", DdlCaptureMode::Off),
        &[("event_trigger", DdlCaptureMode::EventTrigger)],
    );
    let rewrites = values.choice(
        &REWRITE_ACTION,
        ("warn", RewriteAction::Warn),
        &[("refuse", RewriteAction::Refuse), ("resnapshot", RewriteAction::Resnapshot)],
    );
    if rewrites != RewriteAction::Warn && capture == DdlCaptureMode::Off {
        let message = "it needs ddl.capture=event_trigger: without it a rewrite is suspected at \
                       best, never known";
        values.fault(&REWRITE_ACTION, message);
    }
    DdlSettings { capture, rewrites }
}

fn refuse_both(values: &mut Values<'_>, include: &'static KeyDef, exclude: &'static KeyDef) {
    if values.is_given(include) && values.is_given(exclude) {
        values.fault(exclude, format!("cannot be given together with {}", include.name));
    }
}

fn tables(values: &mut Values<'_>) -> TableFilter {
    refuse_both(values, &SCHEMA_INCLUDE, &SCHEMA_EXCLUDE);
    refuse_both(values, &TABLE_INCLUDE, &TABLE_EXCLUDE);
    TableFilter {
        schema_include: values.patterns(&SCHEMA_INCLUDE),
        schema_exclude: values.patterns(&SCHEMA_EXCLUDE),
        table_include: values.patterns(&TABLE_INCLUDE),
        table_exclude: values.patterns(&TABLE_EXCLUDE),
        signals: values.optional(&SIGNAL_TABLE).and_then(SignalTable::parse),
    }
}

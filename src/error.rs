//! The registry of coded errors: every refusal and every failure that an operator can meet.
//!
//! Knows no layer: all others build a [`Fault`] from a [`Code`]. `docs/errors.md` is generated from
//! [`Code::ALL`] and compared with it by a test in both directions.
//! **Invariant:** a code has exactly one fate, one cause and one remedy.

use std::fmt;

/// What becomes of a task that met the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The world may heal: rebuild from the stored offset, with back-off.
    Retry,
    /// A person must act: the task goes FAILED with the fault as its trace.
    Halt,
}

macro_rules! codes {
    ($($variant:ident $slug:literal $fate:ident $cause:literal $remedy:literal;)*) => {
        /// A code: stable, documented in `docs/errors.md`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $cause] $variant,)*
        }

        impl Code {
            /// All codes, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The text that users search for, `TG-E-…`.
            pub const fn id(self) -> &'static str {
                match self { $(Self::$variant => concat!("TG-E-", $slug),)* }
            }

            /// What becomes of a task that met it.
            pub const fn fate(self) -> Fate {
                match self { $(Self::$variant => Fate::$fate,)* }
            }

            /// When it is raised.
            pub const fn cause(self) -> &'static str {
                match self { $(Self::$variant => $cause,)* }
            }

            /// What to do about it.
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)* }
            }
        }
    };
}

codes! {
    // configuration and REST
    ConfigMalformed "CONFIG-MALFORMED" Halt
        "The request or file is not the JSON (or properties) that is expected here."
        "Send a flat JSON object whose values are strings, numbers or booleans; a list is one string with commas (\"a,b\").";
    ConfigUnknownKey "CONFIG-UNKNOWN-KEY" Halt
        "A configuration key is known neither to Kafka Connect, nor to Debezium, nor to Tidegate."
        "Correct or remove the key; docs/compatibility.md lists all that are known.";
    ConfigUnsupported "CONFIG-UNSUPPORTED" Halt
        "A known configuration key or value that this version does not carry out."
        "Use another value, or remove the key; docs/compatibility.md says what each key does here.";
    ConfigInvalid "CONFIG-INVALID" Halt
        "A configuration value is missing, out of range, or contradicts another one."
        "Correct the value as the message says.";
    ConnectorUnknownClass "CONNECTOR-UNKNOWN-CLASS" Halt
        "`connector.class` names a connector that this worker does not have."
        "Use io.debezium.connector.postgresql.PostgresConnector, PostgresConnector or Postgres.";
    WorkerState "WORKER-STATE" Halt
        "The worker's local state directory cannot be read or written."
        "Check the path, its permissions and the free space; correct or remove the file that is named.";
    // reaching the source database
    SourceUnreachable "SOURCE-UNREACHABLE" Retry
        "The source database does not answer at the given address, or the connection was lost."
        "Check database.hostname, database.port, the network and that the server runs.";
    SourceAuthentication "SOURCE-AUTHENTICATION" Halt
        "The source database refuses the user, the password or the certificate."
        "Check database.user, database.password and the server's pg_hba.conf.";
    SourceTls "SOURCE-TLS" Halt
        "The encrypted connection that database.sslmode asks for cannot be had."
        "Check database.sslmode, database.sslrootcert and the server's certificate.";
    SourceDatabaseMissing "SOURCE-DATABASE-MISSING" Halt
        "The database in database.dbname does not exist."
        "Correct database.dbname or create the database.";
    ReplicationPermission "REPLICATION-PERMISSION" Halt
        "The role lacks a privilege that capture needs (REPLICATION, SELECT on a table, ownership for a publication)."
        "Grant what the message names.";
    WalLevel "WAL-LEVEL" Halt
        "The source server does not write the logical log: `wal_level` is not 'logical'."
        "ALTER SYSTEM SET wal_level = logical, then restart the server.";
    ServerVersion "SERVER-VERSION" Halt
        "The source server's version is not supported, or lacks what the configuration asks for."
        "Use PostgreSQL 14 to 18 (13: stream and initial snapshot only).";
    ServerEncoding "SERVER-ENCODING" Halt
        "The source database's encoding cannot be turned into UTF-8 faithfully."
        "Capture databases whose server_encoding is UTF8 (or one that the server can convert).";
    PoolerDetected "POOLER-DETECTED" Halt
        "The connection goes through a pooler or proxy that does not pass replication or session settings on."
        "Point database.hostname and database.port at the server itself.";
    SessionNotPinned "SESSION-NOT-PINNED" Halt
        "A session setting on which the text of values depends did not take the pinned value."
        "Connect directly to the server, and remove what overrides the setting that is named.";
    SourceStandby "SOURCE-STANDBY" Halt
        "The source server is a standby."
        "Capture from the primary.";
    SourceIdentityChanged "SOURCE-IDENTITY-CHANGED" Halt
        "The server is not the one that the stored offset belongs to (another system identifier or database)."
        "Point the connector at the original server, or delete its offset to begin anew.";
    SourceDiverged "SOURCE-DIVERGED" Halt
        "The server was promoted before the stored offset: changes were published that it does not have."
        "Delete the connector's offset and snapshot anew.";
    SourceQuery "SOURCE-QUERY" Halt
        "The source database refuses a statement that the connector needs."
        "See the server's message; if it is not about privileges or settings, please report it.";
    // tables, publication, slot
    TableMissing "TABLE-MISSING" Halt
        "The table filters match no table, or name one that does not exist."
        "Correct table.include.list / schema.include.list; the names are schema.table.";
    TableUnsupported "TABLE-UNSUPPORTED" Halt
        "A captured table is of a kind that has no change stream (unlogged, temporary, foreign, view)."
        "Exclude the table, or make it an ordinary logged table.";
    SourceReplicaIdentity "SOURCE-REPLICA-IDENTITY" Halt
        "A captured table has no identity by which updates and deletes could be told; publishing it would make the application's own statements fail."
        "Add a primary key that is not deferrable, or ALTER TABLE … REPLICA IDENTITY FULL, or exclude the table.";
    PublicationMissing "PUBLICATION-MISSING" Halt
        "The publication does not exist, and may not be created."
        "Create it (the message gives the SQL), or set publication.autocreate.mode=filtered.";
    PublicationChanged "PUBLICATION-CHANGED" Halt
        "The publication does not cover what is captured, or changed while streaming."
        "Restore the publication as the message says.";
    SourceShared "SOURCE-SHARED" Halt
        "`DELETE …?drop=source` would drop a publication or slot that another connector of the worker, or another process, uses. Nothing was dropped, and nothing was stopped."
        "Delete the connector without ?drop=source, or delete or stop first what uses it.";
    PublicationNameInvalid "PUBLICATION-NAME-INVALID" Halt
        "The publication's name is not one that the stream can ask for exactly."
        "Use 1 to 63 of the characters a-z, 0-9 and _.";
    SlotNameInvalid "SLOT-NAME-INVALID" Halt
        "The replication slot's name is not legal."
        "Use 1 to 63 of the characters a-z, 0-9 and _.";
    SlotMissing "SLOT-MISSING" Halt
        "There is a stored offset, but the replication slot is gone; changes since the offset cannot be read."
        "To read all tables anew: PUT /connectors/{name}/stop, DELETE /connectors/{name}/offsets, PUT /connectors/{name}/resume. A slot made anew under the name does not have the changes in between.";
    SlotMismatch "SLOT-MISMATCH" Halt
        "The replication slot exists, but for another plug-in, another database, or as a temporary or physical slot."
        "Use another slot.name, or drop that slot.";
    SlotGap "SLOT-GAP" Halt
        "The slot has moved past the stored offset (recreated, advanced or read by somebody else); the changes between are lost to the stream."
        "Find out who else uses the slot. To read all tables anew: PUT /connectors/{name}/stop, DELETE /connectors/{name}/offsets, PUT /connectors/{name}/resume.";
    SlotLost "SLOT-LOST" Halt
        "The server gave the slot up (`wal_status` is lost): the log it needs is removed."
        "Raise max_slot_wal_keep_size. Then, to read all tables anew: PUT /connectors/{name}/stop, DELETE /connectors/{name}/offsets, SELECT pg_drop_replication_slot('…'), PUT /connectors/{name}/resume.";
    SlotHeadroom "SLOT-HEADROOM" Halt
        "The server has no free replication slot or walsender."
        "Raise max_replication_slots / max_wal_senders, or drop slots that nobody uses.";
    SlotActive "SLOT-ACTIVE" Retry
        "Another process is using the replication slot."
        "Stop the other reader; after a crash the server releases the slot within wal_sender_timeout.";
    SlotForeign "SLOT-FOREIGN" Halt
        "The slot appeared while this connector was about to create it."
        "Choose another slot.name, or drop the slot if nobody needs it.";
    SnapshotStale "SNAPSHOT-STALE" Retry
        "A table was rewritten, emptied, altered or dropped after the position that the snapshot shows, or the snapshot ended with its connection."
        "None needed unless it repeats: the snapshot begins anew; then keep ALTER TABLE, TRUNCATE, VACUUM FULL and CLUSTER away while it runs.";
    SnapshotConflict "SNAPSHOT-CONFLICT" Halt
        "An order for a snapshot beside the stream does not fit what the connector does: a table is being read already, none is, or the stream does not run."
        "GET /connectors/{name}/snapshots says what is being read.";
    SignalRefused "SIGNAL-REFUSED" Halt
        "A row of the signal table cannot be read, or is no signal that is known. It has no effect and ends nothing; the log warns of it, with its id."
        "Correct it and insert it anew, under another id; docs/snapshots.md lists the types.";
    // the stream
    ProtocolUnexpected "PROTOCOL-UNEXPECTED" Halt
        "The source sent a message that the protocol does not allow here."
        "Report it with the position; check for a proxy between worker and server.";
    RelationUnknown "RELATION-UNKNOWN" Halt
        "A row arrived for a relation that was not described before."
        "Report it with the position; check for a proxy between worker and server.";
    StreamStopped "STREAM-STOPPED" Retry
        "The source ended the stream or refused it with an error."
        "See the server's message and log.";
    StreamBroken "STREAM-BROKEN" Retry
        "The source cannot read on at one place of its log: its own error, which comes again at each try."
        "See the server's message and log; update the server if the error is a known one. If it stays: PUT /connectors/{name}/stop, DELETE /connectors/{name}/offsets, SELECT pg_drop_replication_slot('…'), PUT /connectors/{name}/resume; the tables are read anew.";
    ToastUnavailable "TOAST-UNAVAILABLE" Halt
        "An image that must be complete lacks a value that the source did not send (unchanged and stored out of line)."
        "Set toast.mode=backfill or sentinel (the value that was not sent is marked), and restart the task; ALTER TABLE … REPLICA IDENTITY FULL helps with what is written from then on.";
    ImageInconsistent "IMAGE-INCONSISTENT" Halt
        "A row image contradicts the relation's replica identity (a partition whose identity differs from its root's)."
        "Give every partition the identity of its root; the message has the command, and how to pass what is in the log already.";
    FilterUnsupported "FILTER-UNSUPPORTED-PREDICATE" Halt
        "A row filter holds something that cannot be evaluated exactly as the source database does."
        "Write the predicate with comparisons of columns and constants; docs/filters.md has what is understood.";
    FilterUnknownTable "FILTER-UNKNOWN-TABLE" Halt
        "A row filter names a table that is not captured under that name."
        "Correct the name in row.filter.<schema.table>, or capture the table.";
    FilterBeforeImage "FILTER-BEFORE-IMAGE" Halt
        "A row filter reads a column that the row before a change does not have, so that it cannot be known whether the row was published."
        "ALTER TABLE … REPLICA IDENTITY FULL, on the table and each of its partitions; for what is in the log already see docs/filters.md, \"A row that cannot be judged\".";
    FilterAfterImage "FILTER-AFTER-IMAGE" Halt
        "A row filter reads a column that the row after a change does not have (unchanged, stored out of line and not sent)."
        "ALTER TABLE … REPLICA IDENTITY FULL, on the table and each of its partitions; for what is in the log already see docs/filters.md, \"A row that cannot be judged\".";
    FilterChanged "FILTER-CHANGED" Halt
        "The row filter of a table is another one than that by which its rows were published so far, or may mean something else: a column that it reads, a label or the table's name changed."
        "Restore the filter, or apply the new one: PUT /connectors/{name}/stop, PUT /connectors/{name}/row-filters with {\"mode\": \"from_now\"} or {\"mode\": \"resnapshot\"}, PUT /connectors/{name}/resume. Where the publication left rows out the message says what comes first.";
    FilterDisagreement "FILTER-DISAGREEMENT" Halt
        "The source database let a row through that does not fulfil the table's row filter here."
        "Please report it with the predicate, the columns' types and the row's key; a table altered during a snapshot can be the cause.";
    FilterPushdownDrift "FILTER-PUSHDOWN-DRIFT" Halt
        "The publication's row filter is not the configured one, or let a row through that the configured one refuses."
        "Take the row filters out of the publication, set row.filter.pushdown=none without changing the filters, and restart. For a connector that has read everything give the publication the configured filter (the message says it).";
    DdlCapture "DDL-CAPTURE" Halt
        "`ddl.capture=event_trigger`, and the event triggers are missing, disabled or not those of this version."
        "Run tidegate ddl-capture install, or set ddl.capture=off; see docs/schema-changes.md.";
    DdlNoteRefused "DDL-NOTE-REFUSED" Halt
        "A note of the event triggers is not believed: it is not signed for its transaction, or not of their form. It has no effect; the log warns of it."
        "See who writes messages of the prefix tidegate.ddl; run tidegate ddl-capture verify.";
    SchemaRewrite "SCHEMA-REWRITE" Halt
        "A table was rewritten by a change of its definition: values of rows that were published may be others now, and no change event says so."
        "Stop the writers, apply the change downstream or read the table again, then acknowledge it; docs/schema-changes.md has the recipe.";
    ValueEncoding "VALUE-ENCODING" Halt
        "A text value is not valid UTF-8."
        "Repair the value at the source, or exclude the column.";
    ValueUnrepresentable "VALUE-UNREPRESENTABLE" Halt
        "A value that the target type cannot hold exactly."
        "Choose another handling mode for its type, or exclude the column.";
    NullUnexpected "NULL-UNEXPECTED" Halt
        "A null in a column that the published schema calls required; the table version is compiled anew with the column nullable."
        "None: the stream goes on by itself. If it is seen as a failure, report it with the table's definition.";
    ValueMalformed "VALUE-MALFORMED" Halt
        "A value's text is not of the form its type prescribes."
        "Report it with the type and position; check that the session settings are pinned.";
    ValueTooLarge "VALUE-TOO-LARGE" Halt
        "The source cannot send a value because of its size (its text would exceed about 1 GB)."
        "Make the value smaller and begin anew, for the stream cannot pass the change that wrote it: stop the connector, drop its slot, DELETE its offsets, resume it.";
    // schemas and the registry
    SchemaIllegalName "SCHEMA-ILLEGAL-NAME" Halt
        "A topic, table or column name is not legal in the schema format, or two collapse to one."
        "Set schema.name.adjustment.mode / field.name.adjustment.mode to avro, or rename.";
    SchemaInvalid "SCHEMA-INVALID" Halt
        "A generated schema is refused by the schema format's own parser or by the registry (422)."
        "Report it with the table's definition.";
    SchemaIncompatible "SCHEMA-INCOMPATIBLE" Halt
        "The registry refuses the schema as incompatible with the subject's earlier ones (409)."
        "Change the subject's compatibility level, or begin a new topic.";
    SchemaNotRegistered "SCHEMA-NOT-REGISTERED" Halt
        "The registry does not have the schema of a record, and auto.register.schemas=false; or, with use.latest.version, the subject's latest version says something else."
        "Register the schema that the fault shows under the subject that it names, then restart the connector.";
    SchemaProjectionInvisible "SCHEMA-PROJECTION-INVISIBLE" Halt
        "A change of a column's type or modifier by which values may be others now, and which the published schema does not show (interval(3) became interval(0))."
        "Apply the change downstream as well, then acknowledge it; docs/schema-changes.md has the recipe.";
    SchemaReinterpreted "SCHEMA-REINTERPRETED" Halt
        "A column has another type by which the values that are there mean something else (timestamp became timestamptz)."
        "Apply the change downstream as well, then acknowledge it; docs/schema-changes.md has the recipe.";
    SchemaKeyChanged "SCHEMA-KEY-CHANGED" Halt
        "Rows are keyed by other columns than before: records of one row come under another key, perhaps in another partition, and nobody deletes what was published under the earlier ones."
        "See what becomes of the earlier keys downstream, then acknowledge the change, or set schema.key.action=forward; see docs/schema-changes.md.";
    SchemaRenamed "SCHEMA-RENAMED" Halt
        "A table was renamed or moved to another schema, and schema.rename.action=refuse: its records would go to another topic."
        "See that readers take the other topic, then acknowledge the change; see docs/schema-changes.md.";
    SchemaChanged "SCHEMA-CHANGED" Halt
        "The definition of a table changed, and schema.changes=refuse."
        "Apply the change downstream as well, then acknowledge it; docs/schema-changes.md has the recipe.";
    ConverterUnsuitable "CONVERTER-UNSUITABLE" Halt
        "The key or value converter cannot write records of this shape."
        "Use the Avro or the JSON converter, or settings that give values which the converter can write.";
    ColumnRuleUnfit "COLUMN-RULE-UNFIT" Halt
        "A rule for columns (a mask, a cut, a hash, message.key.columns) cannot be carried out on a column that it names."
        "Correct the rule's list of columns.";
    RegistryUnreachable "REGISTRY-UNREACHABLE" Retry
        "The schema registry does not answer, or answers with a server error."
        "Check the converter's schema.registry.url and that the registry runs.";
    RegistryRefused "REGISTRY-REFUSED" Halt
        "The schema registry refuses the request (credentials, read-only mode, unknown subject)."
        "Check the registry's credentials and mode.";
    // transforms
    TransformUnfit "TRANSFORM-UNFIT" Halt
        "A transform cannot be applied to the records of a table."
        "Correct the transform's options, or limit it to the tables that it fits (predicate TopicNameMatches).";
    // Kafka
    KafkaUnreachable "KAFKA-UNREACHABLE" Retry
        "No Kafka broker answers at bootstrap.servers."
        "Check bootstrap.servers, the network and that the brokers run.";
    KafkaClient "KAFKA-CLIENT" Retry
        "The machine does not let the Kafka client start: a thread of it could not be made, or did not begin in time."
        "None needed if it passes; else see the machine's load, its memory, and the limit on threads (ulimit -u).";
    KafkaAuthentication "KAFKA-AUTHENTICATION" Halt
        "Kafka refuses the client's credentials or certificate."
        "Check the security settings of worker and connector.";
    KafkaAuthorization "KAFKA-AUTHORIZATION" Halt
        "Kafka refuses access to a topic, the cluster or the transactional id."
        "Grant Write and Describe on the topic, and Write and Describe on the transactional id, to the principal.";
    KafkaTransaction "KAFKA-TRANSACTION" Retry
        "A Kafka transaction failed or its outcome is not known; it is aborted, and the stored offset decides."
        "None needed unless it repeats; then see the brokers' logs.";
    KafkaFenced "KAFKA-FENCED" Halt
        "Another producer with the same transactional id took over: this task is a zombie."
        "See that one connector name runs on one worker only; then restart the task.";
    OffsetUnreadable "OFFSET-UNREADABLE" Retry
        "The stored offset could not be read. It is never taken for 'no offset'."
        "Check the offsets topic and the access to it; docs/kafka.md says what ends a transaction that hangs in it.";
    OffsetImport "OFFSET-IMPORT" Halt
        "Another program's stored offset cannot be gone on from: it is none, or leaves open which changes were published."
        "Do what docs/takeover.md says, or begin anew without an offset.";
    OffsetMalformed "OFFSET-MALFORMED" Halt
        "The stored offset is not one that this version understands."
        "Use the version that wrote it, or delete the connector's offset to begin anew.";
    OffsetConfigChanged "OFFSET-CONFIG-CHANGED" Halt
        "A source transaction is half published, and the configuration or publication changed since."
        "Restore the configuration until that transaction is through.";
    OffsetElsewhere "OFFSET-ELSEWHERE" Halt
        "The connector has published under another `topic.prefix`, and has no offset under this one: it would begin anew beside what it has published."
        "Restore topic.prefix. To begin anew: stop it with the old prefix, DELETE /connectors/{name}/offsets, then change it; or create a connector with another name.";
    OffsetMoved "OFFSET-MOVED" Halt
        "Partitions were added to the topic of offsets: connectors are told apart by partitions, and would begin anew."
        "Internal topics keep the partitions that they were made with. In the worker's file set offset.storage.topic to a topic with the earlier number of partitions into which the records were copied with their keys; or to a new topic, and every connector begins anew.";
    TopicMissing "TOPIC-MISSING" Halt
        "A topic does not exist, and may not be created."
        "Create it, or set topic.creation.default.partitions and .replication.factor.";
    TopicCreation "TOPIC-CREATION" Halt
        "Kafka refuses to create a topic with the given settings."
        "Correct topic.creation.* as the broker's reason says.";
    TopicCompacted "TOPIC-COMPACTED" Halt
        "Records without a key would go to a topic with cleanup.policy=compact, which the broker refuses."
        "Set cleanup.policy=delete on the topic, or give the table a key (message.key.columns).";
    RecordTooLarge "RECORD-TOO-LARGE" Halt
        "A record is larger than the producer or the topic accepts."
        "Raise producer.override.max.request.size and the topic's max.message.bytes.";
    TransactionTooLong "TRANSACTION-TOO-LONG" Retry
        "A Kafka transaction could not be ended before transaction.timeout.ms."
        "Raise producer.override.transaction.timeout.ms, or see why the broker is slow.";
    // the program itself
    Internal "INTERNAL" Halt
        "An invariant of the program does not hold."
        "Please report it with the log.";
}

impl Code {
    /// How often a fault that may heal is met at one place before it ends the task; `None`: it may
    /// always heal yet.
    pub const fn tries(self) -> Option<u32> {
        match self {
            Self::StreamBroken => Some(5),
            _ => None,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// Where a fault was met, as far as it is known. Parts that are not known are left empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// `namespace.table` in the source, or a topic.
    pub table: Option<String>,
    /// The column's name.
    pub column: Option<String>,
    /// A position in the source's own notation.
    pub position: Option<String>,
    /// The record's key, as readable text.
    pub key: Option<String>,
    /// The configuration's key that it is about; inside a transform, its option.
    pub setting: Option<String>,
}

/// A coded failure: what, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    code: Code,
    message: String,
    place: Place,
    hint: Option<String>,
    cause: Option<String>,
}

impl Code {
    /// Builds a fault with this code. `message` is lower case, without a final stop, names quoted.
    pub fn fault(self, message: impl Into<String>) -> Fault {
        Fault(Box::new(Inner {
            code: self,
            message: message.into(),
            place: Place::default(),
            hint: None,
            cause: None,
        }))
    }
}

impl Code {
    /// Several faults as one with this code, each on a line of its own.
    pub fn fault_of_many<T: fmt::Display>(self, faults: &[T]) -> Fault {
        let lines: String = faults.iter().map(|fault| format!("\n- {fault}")).collect();
        let text = format!("{} faults:{}", faults.len(), lines.trim_end_matches('.'));
        self.fault(text).hint("Each line says what mends it.")
    }
}

impl Fault {
    /// The code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// What becomes of the task.
    pub fn fate(&self) -> Fate {
        self.0.code.fate()
    }

    /// The message alone, without code, place and remedy.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Where it was met.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// What a lower layer said.
    pub fn cause(&self) -> Option<&str> {
        self.0.cause.as_deref()
    }

    /// What mends it: the hint for this very case, or the code's general remedy.
    pub fn remedy(&self) -> &str {
        self.0.hint.as_deref().unwrap_or_else(|| self.0.code.remedy())
    }

    /// Says in front of the message which part of the configuration it is about.
    #[must_use]
    pub fn within(mut self, part: impl fmt::Display) -> Self {
        self.0.message = format!("{part}: {}", self.0.message);
        self
    }

    /// Names the configuration's key that it is about.
    #[must_use]
    pub fn about(mut self, setting: impl Into<String>) -> Self {
        self.0.place.setting = Some(setting.into());
        self
    }

    /// Names the table, unless a deeper layer already did.
    #[must_use]
    pub fn at_table(mut self, table: impl Into<String>) -> Self {
        self.0.place.table.get_or_insert_with(|| table.into());
        self
    }

    /// Names the column, unless a deeper layer already did.
    #[must_use]
    pub fn at_column(mut self, column: impl Into<String>) -> Self {
        self.0.place.column.get_or_insert_with(|| column.into());
        self
    }

    /// Names the position, unless a deeper layer already did.
    #[must_use]
    pub fn at_position(mut self, position: impl Into<String>) -> Self {
        self.0.place.position.get_or_insert_with(|| position.into());
        self
    }

    /// Names the key, unless a deeper layer already did.
    #[must_use]
    pub fn at_key(mut self, key: impl Into<String>) -> Self {
        self.0.place.key.get_or_insert_with(|| key.into());
        self
    }

    /// Replaces the code's general remedy by one that fits this case exactly.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Keeps what a lower layer said.
    #[must_use]
    pub fn caused_by(mut self, cause: &dyn std::error::Error) -> Self {
        self.0.cause = Some(chain(cause));
        self
    }
}

impl fmt::Display for Fault {
    /// One line: code, what, where, cause, remedy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { code, message, place, cause, .. } = &*self.0;
        write!(f, "{code}: {message}")?;
        let parts = [
            ("table", &place.table),
            ("column", &place.column),
            ("key", &place.key),
            ("position", &place.position),
        ];
        let mut separator = " (";
        for (name, value) in parts {
            if let Some(value) = value {
                write!(f, "{separator}{name} {value}")?;
                separator = ", ";
            }
        }
        if separator == ", " {
            f.write_str(")")?;
        }
        if let Some(cause) = cause {
            write!(f, ": {cause}")?;
        }
        write!(f, ". {}", self.remedy())
    }
}

impl std::error::Error for Fault {}

/// Prints an error and all its causes on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_says_what_where_and_what_to_do_on_one_line() {
        let fault = Code::ValueEncoding
            .fault("byte 0xff is not UTF-8")
            .at_table("public.t")
            .at_column("b")
            .at_position("0/1A2B");
        assert_eq!(
            fault.to_string(),
            "TG-E-VALUE-ENCODING: byte 0xff is not UTF-8 (table public.t, column b, position 0/1A2B). \
             Repair the value at the source, or exclude the column."
        );
    }

    #[test]
    fn the_deepest_layer_names_the_place() {
        let fault = Code::Internal.fault("x").at_table("inner").at_table("outer");
        assert_eq!(fault.place().table.as_deref(), Some("inner"));
    }

    #[test]
    fn codes_are_unique_and_well_formed() {
        let mut seen = std::collections::HashSet::new();
        for code in Code::ALL {
            assert!(seen.insert(code.id()), "{code} twice");
            assert!(code.id().chars().all(|c| c.is_ascii_uppercase() || c == '-'), "{code}");
            assert!(code.cause().ends_with('.') && code.remedy().ends_with('.'), "{code}");
        }
    }
}

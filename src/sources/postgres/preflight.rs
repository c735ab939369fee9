//! Everything that can be known to be wrong before anything is created.
//!
//! For validation of a configuration and for the start of a task: asks the server all questions and
//! reports all faults, so that an operator need not find them one by one. Decides nothing by itself:
//! the rules are `capture`'s, `identity`'s, `publication`'s and `slot`'s.
//! **Invariant:** it leaves nothing behind on the server.

use super::capture::{Selection, select};
use super::catalogue::list_relations;
use super::connection::{Connection, Purpose, Row, identifier};
use super::ddl;
use super::publication::{
    Change, accountable, check_coverage, check_definition, check_identities, plan, read_publication,
};
use super::pushdown;
use super::rejoin;
use super::row_filter::Pushdown;
use super::session::ServerVersion;
use super::slot::{SlotFacts, check_kind, read_slot};
use super::{PublicationAutocreate, Settings};
use crate::error::{Code, Fate, Fault};

/// The oldest version that has everything which the stream and the first snapshot need.
const OLDEST: u32 = 13;
/// The newest version that the program was tried on.
const NEWEST: u32 = 18;

/// Asks the server everything, and reports all faults.
pub async fn check(settings: &Settings) -> Vec<Fault> {
    check_beside(settings, false).await
}

/// The same for who may have a connection for replication already: that takes no further walsender.
pub async fn check_beside(settings: &Settings, is_connected: bool) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut control = match Connection::open(&settings.connection, Purpose::Control).await {
        Ok(control) => control,
        Err(fault) => return vec![fault],
    };
    if let Err(fault) = examine(&mut control, settings, is_connected, &mut faults).await {
        faults.push(fault);
    }
    control.close().await;
    faults
}

/// Fails at what makes the rest impossible; everything else is added to the faults.
async fn examine(
    control: &mut Connection,
    settings: &Settings,
    is_connected: bool,
    faults: &mut Vec<Fault>,
) -> Result<(), Fault> {
    let server = read_server(control).await?;
    faults.extend(server.faults(control.version()));
    if settings.slot_use.fails_over && control.version().major() < 17 {
        let fault = Code::ServerVersion.fault("slot.failover needs version 17 of the server");
        faults.push(fault.about("slot.failover"));
    }
    faults.extend(rejoin::always_is_possible(settings, control.version()).err());
    faults.extend(settings.messages.check(control.version()).err());
    if settings.ddl.takes_notes() {
        faults.extend(ddl::require(control, &settings.connection.user).await.err());
    }
    let slot = read_slot(control, &settings.slot_name).await?;
    // the slot's reader has its walsender too: it is us, or ends before we begin
    let has_sender = is_connected || slot.as_ref().is_some_and(|slot| slot.active_pid.is_some());
    faults.extend(server.headroom(slot.as_ref(), has_sender));
    if server.has_free_sender() {
        faults.extend(try_replication(control, settings).await.err());
    }
    if let Some(slot) = &slot {
        faults.extend(judge_slot(control, settings, slot).await?);
    }
    let relations = list_relations(control).await?;
    let selected = select(&relations, &settings.tables, settings.publish_via_partition_root);
    match selected {
        Ok(selection) => {
            for warning in &selection.warnings {
                tracing::warn!("{warning}");
            }
            if settings.snapshot_mode.reads_rows() {
                faults.extend(unreadable(control, &selection).await?);
                faults.extend(unfit_queries(control, settings, &selection).await?);
            }
            faults.extend(unfit_signals(control, &selection).await?);
            let publishing = Publishing { settings, selection: &selection, server: &server };
            let is_usable =
                |slot: &SlotFacts| check_kind(slot, &settings.connection.database).is_ok();
            let slot_exists = slot.as_ref().is_some_and(is_usable);
            faults.extend(publishing.check(control, slot_exists).await?);
        }
        Err(unselected) => faults.extend(unselected),
    }
    Ok(())
}

/// What the server says of itself.
#[derive(Debug)]
struct Server {
    wal_level: String,
    is_standby: bool,
    encoding: String,
    /// Allowed and in use.
    slots: (u32, u32),
    senders: (u32, u32),
    rights: Rights,
    idle_slots: String,
}

/// What the role may do in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rights {
    Everything,
    Create,
    Use,
}

async fn read_server(control: &mut Connection) -> Result<Server, Fault> {
    let sql = "\
        SELECT current_setting('wal_level'), pg_is_in_recovery(), \
        current_setting('server_encoding'), current_setting('max_replication_slots'), \
        (SELECT count(*) FROM pg_replication_slots), current_setting('max_wal_senders'), \
        (SELECT count(*) FROM pg_stat_replication), \
        has_database_privilege(current_database(), 'CREATE'), \
        (SELECT rolsuper FROM pg_roles WHERE rolname = current_user), \
        (SELECT string_agg(slot_name, ', ') FROM pg_replication_slots WHERE NOT active)";
    let row = control.query_one("reading the server's settings", sql).await?;
    Ok(Server {
        wal_level: row.text(0)?.to_owned(),
        is_standby: row.is_true(1)?,
        encoding: row.text(2)?.to_owned(),
        slots: (row.parse_as(3)?, row.parse_as(4)?),
        senders: (row.parse_as(5)?, row.parse_as(6)?),
        rights: match (row.is_true(8)?, row.is_true(7)?) {
            (true, _) => Rights::Everything,
            (false, true) => Rights::Create,
            (false, false) => Rights::Use,
        },
        idle_slots: row.optional(9)?.unwrap_or("none").to_owned(),
    })
}

impl Server {
    fn faults(&self, version: ServerVersion) -> Vec<Fault> {
        let mut faults = Vec::new();
        if version.major() < OLDEST {
            faults.push(Code::ServerVersion.fault(format!("the server has version {version}")));
        } else if version.major() > NEWEST {
            tracing::warn!("the server has version {version}, newer than any that was tried");
        }
        if self.wal_level != "logical" {
            faults.push(Code::WalLevel.fault(format!("wal_level is '{}'", self.wal_level)));
        }
        if self.is_standby {
            faults.push(Code::SourceStandby.fault("the server is in recovery"));
        }
        // Neither has a conversion to UTF-8: the one names no encoding, the other many at once.
        if ["SQL_ASCII", "MULE_INTERNAL"].contains(&self.encoding.as_str()) {
            faults.push(
                Code::ServerEncoding.fault(format!("the database's encoding is {}", self.encoding)),
            );
        }
        faults
    }

    fn has_free_sender(&self) -> bool {
        self.senders.1 < self.senders.0
    }

    fn headroom(&self, slot: Option<&SlotFacts>, has_sender: bool) -> Vec<Fault> {
        let mut faults = Vec::new();
        let (allowed, used) = self.slots;
        if slot.is_none() && used >= allowed {
            faults.push(Code::SlotHeadroom.fault(format!(
                "all {allowed} replication slots are in use (max_replication_slots); nobody reads: \
                 {}",
                self.idle_slots
            )));
        }
        let (allowed, used) = self.senders;
        if !has_sender && !self.has_free_sender() {
            faults.push(
                Code::SlotHeadroom
                    .fault(format!("{used} of {allowed} walsenders are in use (max_wal_senders)")),
            );
        }
        faults
    }
}

/// Opens a replication connection, which needs the privilege however the role came to it, and sees
/// that both connections reach the same server.
async fn try_replication(control: &mut Connection, settings: &Settings) -> Result<(), Fault> {
    let opened = Connection::open(&settings.connection, Purpose::Replication).await;
    let mut replication = opened.map_err(|fault| match fault.code() {
        Code::ReplicationPermission => {
            let role = identifier(&settings.connection.user);
            fault.hint(format!("ALTER ROLE {role} REPLICATION;"))
        }
        _ => fault,
    })?;
    let identity = replication.identify_system().await;
    replication.close().await;
    let identity = identity?;
    let sql = "SELECT system_identifier FROM pg_control_system()";
    let seen = match control.query_one("reading the system identifier", sql).await {
        Ok(row) => row.parse_as::<u64>(0)?,
        // Some services do not let ordinary roles ask.
        Err(fault) if fault.code() == Code::ReplicationPermission => return Ok(()),
        Err(fault) => return Err(fault),
    };
    if seen == identity.system_id {
        return Ok(());
    }
    Err(Code::PoolerDetected.fault(format!(
        "two connections to {} reach two servers, with the system identifiers {seen} and {}",
        control.endpoint(),
        identity.system_id
    )))
}

/// A slot that exists must be one that we can take up.
async fn judge_slot(
    control: &mut Connection,
    settings: &Settings,
    slot: &SlotFacts,
) -> Result<Vec<Fault>, Fault> {
    let mut faults: Vec<Fault> =
        check_kind(slot, &settings.connection.database).err().into_iter().collect();
    if slot.wal_status.as_deref() == Some("lost") {
        faults.push(Code::SlotLost.fault(format!(
            "the replication slot \"{}\" was invalidated (wal_status=lost)",
            slot.name
        )));
    }
    if let Some(warning) = slot.warning() {
        tracing::warn!("{warning}");
    }
    if let Some(pid) = slot.active_pid {
        let sql = format!("SELECT application_name FROM pg_stat_activity WHERE pid = {pid}");
        let rows = control.query("asking who uses the replication slot", &sql).await?;
        let user = rows.first().map(|row| row.optional(0)).transpose()?.flatten();
        // Our own task, running or about to be noticed as gone: attaching waits for that.
        if !is_ours(user.unwrap_or_default(), &settings.connection.application_name) {
            faults.push(Code::SlotActive.fault(format!(
                "the replication slot \"{}\" is in use by process {pid} (\"{}\")",
                slot.name,
                user.unwrap_or("unknown")
            )));
        }
    }
    Ok(faults)
}

/// The server cuts names of applications at 63 bytes and replaces what is not ASCII.
fn is_ours(shown: &str, name: &str) -> bool {
    let visible =
        |text: &str| text.bytes().take(63).filter(u8::is_ascii_graphic).collect::<Vec<_>>();
    !shown.is_empty() && visible(shown) == visible(name)
}

/// Tables that a snapshot could not read, or not all rows of.
async fn unreadable(control: &mut Connection, selection: &Selection) -> Result<Vec<Fault>, Fault> {
    let oids: Vec<String> = selection.captured.iter().map(|table| table.oid.to_string()).collect();
    let sql = format!(
        "SELECT n.nspname || '.' || c.relname, has_table_privilege(c.oid, 'SELECT'), \
         has_schema_privilege(n.oid, 'USAGE'), row_security_active(c.oid), quote_ident(n.nspname), \
         c.oid::regclass::text, quote_ident(current_user) \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.oid = ANY ('{{{}}}'::oid[]) ORDER BY 1",
        oids.join(",")
    );
    let rows = control.query("reading the privileges on the tables", &sql).await?;
    let mut faults = Vec::new();
    for row in &rows {
        faults.extend(unreadable_table(row)?);
    }
    Ok(faults)
}

/// Signals are read by the places of three columns.
async fn unfit_signals(
    control: &mut Connection,
    selection: &Selection,
) -> Result<Option<Fault>, Fault> {
    let Some(table) = &selection.signals else { return Ok(None) };
    let sql = format!(
        "SELECT count(*) FROM pg_catalog.pg_attribute \
         WHERE attrelid = {} AND attnum > 0 AND NOT attisdropped",
        table.oid
    );
    let row = control.query_one("counting the columns of the signal table", &sql).await?;
    let count: u32 = row.parse_as(0)?;
    let name = table.qualified_name();
    Ok((count != 3).then(|| {
        Code::TableUnsupported
            .fault(format!("the signal table \"{name}\" must have three columns: it has {count}"))
            .hint("id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048)")
            .about("signal.data.collection")
            .at_table(name)
    }))
}

/// Queries that take a table's place in the snapshot must give the columns that it has.
async fn unfit_queries(
    control: &mut Connection,
    settings: &Settings,
    selection: &Selection,
) -> Result<Vec<Fault>, Fault> {
    let mut faults = Vec::new();
    for (name, query) in &settings.snapshot_queries {
        let key = format!("snapshot.select.statement.overrides.{name}");
        let table = selection.captured.iter().find(|table| table.qualified_name() == *name);
        let Some(table) = table else {
            faults.push(Code::TableMissing.fault(format!("{name} is not captured")).about(key));
            continue;
        };
        let columns = format!(
            "SELECT pg_catalog.string_agg(pg_catalog.quote_ident(attname), ', ' ORDER BY attnum) \
             FROM pg_catalog.pg_attribute WHERE attrelid = {} AND attnum > 0 \
             AND NOT attisdropped AND attgenerated = ''",
            table.oid
        );
        let row = control.query_one("reading the columns of a table", &columns).await?;
        let columns = row.optional(0)?.unwrap_or_default();
        let sql = format!("SELECT {columns} FROM ({query}) AS query LIMIT 0");
        match control.query("trying the query", &sql).await {
            Ok(_) => {}
            Err(fault) if fault.fate() == Fate::Retry => return Err(fault),
            Err(fault) => faults.push(
                Code::ConfigInvalid
                    .fault(format!("the server refuses it: {}", fault.message()))
                    .about(key)
                    .at_table(name.clone()),
            ),
        }
    }
    Ok(faults)
}

fn unreadable_table(row: &Row) -> Result<Option<Fault>, Fault> {
    let (table, schema, quoted, role) = (row.text(0)?, row.text(4)?, row.text(5)?, row.text(6)?);
    let refuse = |why: &str, hint: String| {
        let fault = Code::ReplicationPermission.fault(format!("{why} \"{table}\""));
        Ok(Some(fault.hint(hint).at_table(table)))
    };
    if !row.is_true(2)? {
        return refuse(
            "no USAGE on the schema of",
            format!("GRANT USAGE ON SCHEMA {schema} TO {role};"),
        );
    }
    if !row.is_true(1)? {
        return refuse("no SELECT on", format!("GRANT SELECT ON {quoted} TO {role};"));
    }
    if row.is_true(3)? {
        return refuse(
            "row security would hide rows of",
            format!("ALTER ROLE {role} BYPASSRLS; or exclude the table."),
        );
    }
    Ok(None)
}

/// The publication, as it is or is to be.
struct Publishing<'a> {
    settings: &'a Settings,
    selection: &'a Selection,
    server: &'a Server,
}

impl Publishing<'_> {
    async fn check(
        &self,
        control: &mut Connection,
        slot_exists: bool,
    ) -> Result<Vec<Fault>, Fault> {
        let (settings, mut selection) = (self.settings, self.selection.clone());
        let facts = read_publication(control, &settings.publication_name).await?;
        let unfit = pushdown::want(control, settings, &mut selection, facts.as_ref()).await?;
        let planned = plan(settings, facts.as_ref(), &selection, slot_exists);
        let (change, mut faults) = match planned {
            Ok(change) => (change, Vec::new()),
            Err(fault) => (None, vec![fault]),
        };
        // without a filter that can be held against it, a publication's is nothing to speak of
        let is_judged = unfit.is_empty() || settings.row_filters.pushdown == Pushdown::None;
        if let Some(facts) = facts.as_ref().filter(|_| is_judged) {
            faults.extend(check_definition(settings, facts, &selection));
            if change.is_none() && faults.is_empty() {
                faults.extend(check_coverage(settings, facts, &selection));
            }
        }
        let accountable = match &change {
            Some(change) => {
                let owner = facts.as_ref().and_then(|facts| facts.foreign_owner.as_deref());
                faults.extend(self.forbidden(control, change, owner).await?);
                accountable(control, settings, &selection, change).await?
            }
            None => selection.accountable.clone(),
        };
        let generated = facts.as_ref().is_some_and(|facts| facts.generated);
        faults.extend(check_identities(control, &accountable, generated).await?);
        faults.extend(unfit);
        Ok(faults)
    }

    /// What the role may not do of the change.
    async fn forbidden(
        &self,
        control: &mut Connection,
        change: &Change,
        foreign_owner: Option<&str>,
    ) -> Result<Option<Fault>, Fault> {
        if self.server.rights == Rights::Everything {
            return Ok(None);
        }
        let refuse = |why: String| {
            let hint = format!("Let an owner or superuser do it: {};", change.statement);
            Some(Code::ReplicationPermission.fault(why).hint(hint))
        };
        let name = &self.settings.publication_name;
        if let Some(owner) = foreign_owner {
            return Ok(refuse(format!("the publication \"{name}\" belongs to \"{owner}\"")));
        }
        if change.creates && self.server.rights == Rights::Use {
            return Ok(refuse(format!(
                "creating the publication \"{name}\" needs CREATE on the database"
            )));
        }
        if self.settings.publication_autocreate == PublicationAutocreate::AllTables {
            return Ok(refuse("a publication of all tables needs a superuser".to_owned()));
        }
        let oids: Vec<String> =
            change.adds.iter().flatten().map(|table| table.oid.to_string()).collect();
        let sql = format!(
            "SELECT string_agg(oid::regclass::text, ', ') FROM pg_class \
             WHERE oid = ANY ('{{{}}}'::oid[]) AND NOT pg_has_role(relowner, 'USAGE')",
            oids.join(",")
        );
        let row = control.query_one("asking who owns the tables", &sql).await?;
        let foreign = row.optional(0)?;
        Ok(foreign.and_then(|tables| {
            refuse(format!(
                "publishing a table needs its owner, and the role is not that of {tables}"
            ))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        Server {
            wal_level: "logical".to_owned(),
            is_standby: false,
            encoding: "UTF8".to_owned(),
            slots: (10, 3),
            senders: (10, 3),
            rights: Rights::Create,
            idle_slots: "old_slot".to_owned(),
        }
    }

    #[track_caller]
    fn check_server(change: impl FnOnce(&mut Server), major: u32, expect: &[Code]) {
        let mut server = server();
        change(&mut server);
        let mut faults = server.faults(ServerVersion(major * 10_000));
        faults.extend(server.headroom(None, false));
        assert_eq!(faults.iter().map(Fault::code).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn servers_that_cannot_be_captured_from_are_told() {
        check_server(|_| {}, 13, &[]);
        check_server(|_| {}, 19, &[]);
        check_server(|_| {}, 12, &[Code::ServerVersion]);
        check_server(|server| server.wal_level = "replica".into(), 15, &[Code::WalLevel]);
        check_server(|server| server.is_standby = true, 15, &[Code::SourceStandby]);
        check_server(|server| server.encoding = "SQL_ASCII".into(), 15, &[Code::ServerEncoding]);
        check_server(|server| server.encoding = "LATIN1".into(), 15, &[]);
        check_server(|server| server.slots = (3, 3), 15, &[Code::SlotHeadroom]);
        check_server(|server| server.senders = (3, 3), 15, &[Code::SlotHeadroom]);
    }

    #[test]
    fn a_slot_that_exists_needs_no_free_one() {
        let mut full = server();
        full.slots = (3, 3);
        assert!(full.headroom(Some(&SlotFacts::default()), false).is_empty());
        assert!(full.headroom(None, false)[0].message().contains("old_slot"));
    }

    #[test]
    fn the_last_walsender_is_enough_for_who_has_it() {
        let full = Server { senders: (1, 1), ..server() };
        let codes = |has_sender| {
            full.headroom(None, has_sender).iter().map(Fault::code).collect::<Vec<_>>()
        };
        assert_eq!(codes(false), [Code::SlotHeadroom]);
        assert_eq!(codes(true), []);
    }

    #[test]
    fn our_own_name_is_known_however_the_server_shows_it() {
        assert!(is_ours("tidegate c1", "tidegate c1"));
        assert!(is_ours(&"n".repeat(63), &"n".repeat(90)));
        assert!(!is_ours("", ""));
        assert!(!is_ours("pg_recvlogical", "tidegate c1"));
    }
}

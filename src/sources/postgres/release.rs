//! Removes what a connector made at the server: its slot and its publication.
//!
//! Both or neither, and nothing that somebody else reads. Knows no connector but as settings with a
//! name. **Invariants:** who else uses them is asked before anything is dropped; the publication is
//! dropped in a transaction that commits only when the slot is gone.

use super::Settings;
use super::connection::{Connection, Purpose, identifier, literal};
use super::settings::PublicationAutocreate;
use super::slot;
use crate::error::{Code, Fault};

const REMEDY: &str = "Delete the connector without ?drop=source, or delete or stop first what uses it. To keep the \
                      publication and drop the slot alone set publication.autocreate.mode=disabled.";

/// Sees that what a connector made can be removed, and that nobody else uses it: no other connector
/// of this worker, whether it runs or not, and no other process that reads now.
///
/// # Errors
/// `SOURCE-SHARED` names who uses it, `SLOT-MISMATCH` what the slot is, `REPLICATION-PERMISSION` that the role may not drop it; or the
/// server cannot be asked.
pub async fn check_release(settings: &Settings, others: &[(&str, &Settings)]) -> Result<(), Fault> {
    let mut connection = Connection::open(&settings.connection, Purpose::Replication).await?;
    let system = connection.identify_system().await?.system_id;
    for (name, other) in others {
        let Some(what) = shared(settings, other) else { continue };
        if is_at(system, settings, other).await {
            return Err(Code::SourceShared
                .fault(format!("the connector \"{name}\" uses {what} as well"))
                .hint(REMEDY));
        }
    }
    let slot = slot::read_slot(&mut connection, &settings.slot_name).await?;
    if let Some(slot) = &slot {
        // one that a stream could not begin with was made by somebody else
        slot::check_kind(slot, &settings.connection.database).map_err(|fault| {
            fault.hint("Delete the connector without ?drop=source: it is not its slot.")
        })?;
    }
    if drops_publication(settings) {
        let own = slot.and_then(|slot| slot.active_pid);
        check_publication(&mut connection, settings, own).await?;
    }
    connection.close().await;
    Ok(())
}

fn drops_publication(settings: &Settings) -> bool {
    settings.publication_autocreate != PublicationAutocreate::Disabled
}

/// What two connectors have in common if their server is the same. Slots belong to all of its
/// databases, publications to one.
fn shared(own: &Settings, other: &Settings) -> Option<String> {
    if own.slot_name == other.slot_name {
        return Some(format!("the replication slot \"{}\"", own.slot_name));
    }
    let is_shared = drops_publication(own)
        && own.publication_name == other.publication_name
        && own.connection.database == other.connection.database;
    is_shared.then(|| format!("the publication \"{}\"", own.publication_name))
}

/// Whether another connector's server is this one. One that cannot be asked may be.
async fn is_at(system: u64, own: &Settings, other: &Settings) -> bool {
    let place = |settings: &Settings| (settings.connection.host.clone(), settings.connection.port);
    if place(own) == place(other) {
        return true;
    }
    let asked = async {
        let mut connection = Connection::open(&other.connection, Purpose::Replication).await?;
        let system = connection.identify_system().await?.system_id;
        connection.close().await;
        Ok::<_, Fault>(system)
    };
    asked.await.map_or(true, |found| found == system)
}

/// Sees that the role may drop the publication, and that nobody else reads it. `own` is the process
/// that reads the connector's slot.
async fn check_publication(
    connection: &mut Connection,
    settings: &Settings,
    own: Option<i32>,
) -> Result<(), Fault> {
    let name = &settings.publication_name;
    let what = format!("asking who uses the publication \"{name}\"");
    let sql = format!(
        "SELECT pg_catalog.pg_has_role(p.pubowner, 'USAGE'), pg_catalog.pg_get_userbyid(p.pubowner) \
         FROM pg_catalog.pg_publication p WHERE p.pubname = {}",
        literal(name)
    );
    let rows = connection.query(&what, &sql).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    if !row.is_true(0)? {
        return Err(Code::ReplicationPermission
            .fault(format!(
                "the publication \"{name}\" belongs to the role \"{}\", so that \"{}\" may not \
                 drop it; nothing was dropped",
                row.text(1)?,
                settings.connection.user
            ))
            .hint(REMEDY));
    }
    let sql = "SELECT pid, query FROM pg_catalog.pg_stat_activity WHERE backend_type = 'walsender' \
               AND datname = pg_catalog.current_database() AND query LIKE 'START_REPLICATION%'";
    for row in connection.query(&what, sql).await? {
        let pid: i32 = row.parse_as(0)?;
        if own != Some(pid) && reads(row.optional(1)?.unwrap_or_default(), name) {
            return Err(Code::SourceShared
                .fault(format!("the process {pid} reads the publication \"{name}\""))
                .hint(REMEDY));
        }
    }
    Ok(())
}

/// Whether a command that starts a stream asks for a publication. The names are a list inside of
/// single quotes, each of them quoted or not (`SplitIdentifierString`, varlena.c).
fn reads(command: &str, publication: &str) -> bool {
    let Some((_, rest)) = command.split_once("publication_names") else { return false };
    let Some(list) = rest.split('\'').nth(1) else { return false };
    list.split(',').any(|name| name.trim().trim_matches('"') == publication)
}

/// Removes what a connector made at the server: its slot, and its publication where the
/// configuration lets it make one. What is not there is no fault.
///
/// # Errors
/// The slot is in use, or the role may not drop them; then both stay.
pub async fn release(settings: &Settings) -> Result<(), Fault> {
    let mut connection = Connection::open(&settings.connection, Purpose::Replication).await?;
    let name = &settings.publication_name;
    if drops_publication(settings) {
        let sql = format!("DROP PUBLICATION IF EXISTS {}", identifier(name));
        let what = format!("dropping the publication \"{name}\"");
        let mut control = Connection::open(&settings.connection, Purpose::Control).await?;
        control.query("beginning to drop", "BEGIN READ WRITE").await?;
        control.query(&what, &sql).await?;
        // if this fails the transaction ends with its connection
        slot::drop_when_free(&mut connection, settings).await?;
        control.query("ending to drop", "COMMIT").await?;
        control.close().await;
    } else {
        slot::drop_when_free(&mut connection, settings).await?;
        tracing::info!(publication = name, "the publication stays: the worker did not make it");
    }
    connection.close().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::reads;

    #[track_caller]
    fn check(names: &str, expect: bool) {
        let command = format!("START_REPLICATION SLOT \"s\" LOGICAL 0/1 ({names})");
        assert_eq!(reads(&command, "p1"), expect, "{command}");
    }

    #[test]
    fn readers_of_a_publication_are_known_by_their_command() {
        check(r#""proto_version" '1', "publication_names" '"p1"'"#, true);
        check(r#"proto_version '4', publication_names '"p0","p1"'"#, true);
        check(r#""proto_version" '1', "publication_names" 'p1', "messages" 'true'"#, true);
        check(r#"proto_version '1', publication_names '"p10"', x 'p1'"#, false);
        check("", false);
        assert!(!reads("START_REPLICATION 0/1 TIMELINE 1", "p1"));
    }
}

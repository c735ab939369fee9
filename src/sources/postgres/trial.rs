//! A look at the changes that leaves nothing behind: a temporary slot, and where the configured
//! publication does not serve, one of its own that is dropped at the end.
//!
//! Takes the same way as capture. Whoever looks may be killed: the slot goes with its session, but
//! a publication stays. So one that was made here has a name that says so, and is locked as long as
//! it is in use; the next look drops those that nobody holds.
//! **Invariant:** a publication that somebody else made is neither altered nor dropped.

use std::sync::Arc;
use std::time::Duration;

use super::capture::select;
use super::catalogue::list_relations;
use super::connection::{Connection, Purpose, literal};
use super::driver::{self, combine, told_to_stop};
use super::preflight;
use super::publication::{drop_publication, plan, read_publication};
use super::settings::{PublicationAutocreate, Settings, SnapshotMode};
use super::status::clock_micros;
use crate::error::{Code, Fault};
use crate::sources::{Start, Trial};
use crate::stage::{Services, Stage};

/// How the names of slots and publications that are made here begin.
const PREFIX: &str = "tidegate_try_";
/// How long the stream may take to end by itself.
const FAREWELL: Duration = Duration::from_secs(2);

/// Passes changes on until it is told to stop.
///
/// # Errors
/// What capture would meet, too; or the publication that was made cannot be dropped.
pub async fn try_out<S: Services>(
    settings: &Settings,
    trial: Trial,
    start: Start,
    stage: Stage<S>,
) -> Result<(), Fault> {
    let settings = of_trial(settings, trial);
    let mut stop = start.stop.clone();
    let prepared = tokio::select! {
        prepared = prepare(&settings) => prepared?,
        () = told_to_stop(&mut stop) => return Ok(()),
    };
    let settings = Arc::new(prepared.settings);
    let outcome = tokio::select! {
        outcome = driver::run(Arc::clone(&settings), start, stage) => outcome,
        () = told_to_end(&mut stop) => Ok(()),
    };
    let removed = match prepared.holder {
        Some(holder) => remove(holder, &settings).await,
        None => Ok(()),
    };
    outcome.and(removed)
}

async fn told_to_end(stop: &mut tokio::sync::watch::Receiver<bool>) {
    told_to_stop(stop).await;
    tokio::time::sleep(FAREWELL).await;
}

/// The settings, with a slot of its own that nothing else knows.
fn of_trial(settings: &Settings, trial: Trial) -> Settings {
    let mut own = settings.clone();
    let nonce = clock_micros().cast_unsigned() ^ (u64::from(std::process::id()) << 40);
    own.slot_name = format!("{PREFIX}{nonce:016x}");
    own.connection.application_name = format!("{} (try)", settings.connection.application_name);
    own.snapshot_mode =
        if trial.rows.is_some() { SnapshotMode::Initial } else { SnapshotMode::NoData };
    own.trial = Some(trial);
    own
}

struct Prepared {
    settings: Settings,
    /// The connection that holds the lock of a publication that is to be made.
    holder: Option<Connection>,
}

/// Finds out whether the configured publication serves.
async fn prepare(settings: &Settings) -> Result<Prepared, Fault> {
    combine(&preflight::check(settings).await)?;
    let mut settings = settings.clone();
    let mut control = Connection::open(&settings.connection, Purpose::Control).await?;
    drop_leftovers(&mut control).await?;
    let relations = list_relations(&mut control).await?;
    let selection = select(&relations, &settings.tables, settings.publish_via_partition_root)
        .or_else(|faults| combine(&faults).map(|()| Default::default()))?;
    let facts = read_publication(&mut control, &settings.publication_name).await?;
    if plan(&settings, facts.as_ref(), &selection, false)?.is_none() {
        control.close().await;
        settings.publication_autocreate = PublicationAutocreate::Disabled;
        return Ok(Prepared { settings, holder: None });
    }
    settings.publication_name.clone_from(&settings.slot_name);
    settings.publication_autocreate = PublicationAutocreate::Filtered;
    if !lock(&mut control, &settings.publication_name).await? {
        return Err(Code::Internal.fault("another process has the lock of a new publication"));
    }
    Ok(Prepared { settings, holder: Some(control) })
}

/// The lock is the session's, so it is gone with the process.
async fn lock(control: &mut Connection, publication: &str) -> Result<bool, Fault> {
    let sql = format!("SELECT pg_try_advisory_lock(hashtextextended({}, 0))", literal(publication));
    control.query_one("locking the publication's name", &sql).await?.is_true(0)
}

async fn drop_leftovers(control: &mut Connection) -> Result<(), Fault> {
    let sql = format!(
        "SELECT pubname FROM pg_publication \
         WHERE starts_with(pubname, {}) AND pg_has_role(pubowner, 'USAGE')",
        literal(PREFIX)
    );
    for row in control.query("looking for publications that were left behind", &sql).await? {
        let name = row.text(0)?;
        if lock(control, name).await? {
            tracing::warn!(publication = name, "dropping what an earlier look left behind");
            drop_publication(control, name).await?;
        }
    }
    Ok(())
}

/// Drops the publication, by a new connection if the old one is gone.
async fn remove(mut holder: Connection, settings: &Settings) -> Result<(), Fault> {
    let name = &settings.publication_name;
    let outcome = match drop_publication(&mut holder, name).await {
        Ok(()) => Ok(()),
        Err(_broken) => match Connection::open(&settings.connection, Purpose::Control).await {
            Ok(mut control) => drop_publication(&mut control, name).await,
            Err(fault) => Err(fault),
        },
    };
    holder.close().await;
    outcome.map_err(|fault| fault.hint(format!("Drop it yourself: DROP PUBLICATION {name};")))
}

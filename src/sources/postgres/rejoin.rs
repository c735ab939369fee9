//! A stored offset that the slot does not fit, and tables that join a stream that is under way.
//!
//! Carries out what the configuration says of them. Knows no record format. **Invariants:** a gap is
//! passed over only where the configuration says so in its own words, and never in silence; of a
//! server that is another one nothing is ever assumed.

use super::Settings;
use super::capture::Selection;
use super::catalogue::RelationEntry;
use super::connection::{Connection, Purpose};
use super::incremental::{Aim, OLDEST, TableWork, Work};
use super::offset::{Offset, Phase};
use super::publication::PublicationFacts;
use super::session::ServerVersion;
use super::settings::{OffsetMismatch, SnapshotMode};
use super::slot::{self, Standing};
use crate::error::{Code, Fault};

/// The faults that mean that the slot no longer has what the offset needs.
const LOST: [Code; 3] = [Code::SlotMissing, Code::SlotGap, Code::SlotLost];

/// What becomes of a stored offset that the slot does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The task stops.
    Stop,
    /// Everything is read anew.
    Anew,
    /// What lies between is given up.
    PassOver,
    /// No stream follows, so that there is nothing that a slot would have to have.
    NeedsNone,
}

fn outcome(settings: &Settings, phase: Phase, code: Code) -> Outcome {
    let is_lost = LOST.contains(&code);
    let has_streamed = matches!(phase, Phase::Streaming { .. });
    match (settings.snapshot_mode, settings.offset_mismatch) {
        (SnapshotMode::InitialOnly, _) if is_lost && !has_streamed => Outcome::NeedsNone,
        (SnapshotMode::WhenNeeded, _) if is_lost => Outcome::Anew,
        (_, OffsetMismatch::PassOver) if code == Code::SlotGap => Outcome::PassOver,
        _ => Outcome::Stop,
    }
}

/// Sees that the stream can go on at the stored offset, or makes of both what the configuration
/// wants if it cannot: without an offset everything begins anew.
///
/// # Errors
/// As [`slot::check_gap`]; a lost slot cannot be dropped.
pub(super) async fn hold_against(
    settings: &Settings,
    connection: &mut Connection,
    stored: &mut Option<Offset>,
    mut standing: Standing,
) -> Result<Standing, Fault> {
    let Some(offset) = stored else { return Ok(standing) };
    let Err(fault) = slot::check_gap(offset, &standing) else { return Ok(standing) };
    let confirmed = standing.slot.as_ref().and_then(|slot| slot.confirmed);
    match (outcome(settings, offset.phase, fault.code()), confirmed) {
        (Outcome::NeedsNone, _) => {}
        (Outcome::Anew, _) => {
            tracing::warn!(
                cause = %fault,
                "all tables are read anew (snapshot.mode=when_needed); rows that were deleted since \
                 the stored offset stay in the topics"
            );
            if fault.code() == Code::SlotLost {
                slot::drop_when_free(connection, settings).await?;
                standing.slot = None;
            }
            *stored = None;
        }
        (Outcome::PassOver, Some(confirmed)) => {
            tracing::warn!(
                cause = %fault,
                position = %confirmed,
                "the changes before the slot's position are given up (offset.mismatch.strategy)"
            );
            offset.phase = match offset.phase {
                // rows are missing still; only what was deleted before is given up
                Phase::Snapshot { has_slot, .. } => {
                    Phase::Snapshot { consistent_point: confirmed, has_slot }
                }
                _ => Phase::Streaming { end: confirmed },
            };
            // the rest of a transaction that was split is among them
            offset.inside = None;
        }
        (Outcome::Stop | Outcome::PassOver, _) => return Err(fault),
    }
    Ok(standing)
}

/// What a task that goes on with a stored offset will stop with because of its slot; `None`: nothing
/// that is known. Of a slot that is being read nothing is: it moves on together with the offset.
///
/// # Errors
/// The offset cannot be understood, or the server cannot be asked.
pub async fn foresee_gap(settings: &Settings, stored: &[u8]) -> Result<Option<Fault>, Fault> {
    let stored = Offset::decode(stored)?;
    if stored.slot != settings.slot_name {
        return Ok(None);
    }
    let mut connection = Connection::open(&settings.connection, Purpose::Replication).await?;
    let standing = slot::examine(&mut connection, &settings.slot_name, Some(&stored)).await?;
    connection.close().await;
    if standing.slot.as_ref().is_some_and(|slot| slot.active_pid.is_some()) {
        return Ok(None);
    }
    let fault = slot::check_gap(&stored, &standing).err();
    Ok(fault.filter(|fault| outcome(settings, stored.phase, fault.code()) == Outcome::Stop))
}

/// A slot that is lost while it is read is no end where the tables may be read anew.
pub(super) fn again_if_wanted(settings: &Settings, fault: Fault) -> Fault {
    if settings.snapshot_mode == SnapshotMode::WhenNeeded && LOST.contains(&fault.code()) {
        return Code::StreamStopped.fault(fault.to_string());
    }
    fault
}

/// Drops the slot behind a stream that has ended in good order. If that fails it stays, and so does
/// everything that is written: the next start goes on with it.
pub(super) async fn drop_slot(settings: &Settings) -> Result<(), Fault> {
    let mut connection = Connection::open(&settings.connection, Purpose::Replication).await?;
    connection.drop_slot_when_idle(&settings.slot_name).await?;
    connection.close().await;
    tracing::info!(
        slot = settings.slot_name,
        "the replication slot is dropped (slot.drop.on.stop); the next start reads all tables anew"
    );
    Ok(())
}

/// The tables whose rows are to be read beside the stream: those that the publication does not
/// carry yet, those that were not captured for a while, and all of them where each start of the task reads them anew.
///
/// # Errors
/// `SERVER-VERSION`: that is wanted, and the server is too old for reading beside the stream.
pub(super) fn joining(
    settings: &Settings,
    (version, is_first): (ServerVersion, bool),
    (selection, facts): (&Selection, &PublicationFacts),
    (work, has_left): (&Work, &dyn Fn(u32) -> bool),
) -> Result<Vec<TableWork>, Fault> {
    let (reads_new, reads_all) = match settings.snapshot_mode {
        SnapshotMode::Initial | SnapshotMode::WhenNeeded => (true, false),
        SnapshotMode::Always => (true, is_first),
        SnapshotMode::InitialOnly | SnapshotMode::NoData => (false, false),
    };
    always_is_possible(settings, version)?;
    if version.major() < OLDEST {
        return Ok(Vec::new());
    }
    let is_waiting = |name: &str| work.tables().iter().any(|one| one.qualified_name() == name);
    let tables = selection.captured.iter().filter(|table| {
        let name = table.qualified_name();
        (reads_all || (reads_new && (!facts.carries(table) || has_left(table.oid))))
            && settings.snapshot_reads(&name)
            && settings.snapshot_query(&name).is_none()
            && !is_waiting(&name)
    });
    let work = |table: &RelationEntry| {
        let work = TableWork::new(&table.namespace, &table.name, Aim::Read);
        if facts.carries(table) { work } else { work.joining() }
    };
    Ok(tables.map(work).collect())
}

/// Whether the server can do what `snapshot.mode=always` takes.
///
/// # Errors
/// `SERVER-VERSION`.
pub(super) fn always_is_possible(settings: &Settings, version: ServerVersion) -> Result<(), Fault> {
    if settings.snapshot_mode == SnapshotMode::Always && version.major() < OLDEST {
        return Err(Code::ServerVersion.fault(format!(
            "snapshot.mode=always reads tables beside the stream, which needs version {OLDEST} of \
             the server"
        )));
    }
    Ok(())
}

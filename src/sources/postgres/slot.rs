//! The replication slot: what the server says of it, whether it still has what we need, attaching.
//!
//! A slot has no identity and no memory of who read it, and the server starts a stream at any
//! position that it is asked for, silently skipping what lies between. So everything that proves
//! that nothing is missing is proved here, before each start. Knows no stream content.
//! **Invariant:** [`check_gap`] accepts only a slot from which every change after the stored offset
//! can still be read, on the history on which the changes before it were published.

use tokio::io::{AsyncRead, AsyncWrite};

use super::Settings;
use super::connection::{
    Connection, ReplicationStream, StreamOptions, SystemIdentity, TimelineSwitch, literal,
};
use super::offset::{Offset, Phase};
use super::wire::Lsn;
use crate::error::{Code, Fault};
use crate::observe::SourceMetrics;

/// The only plug-in that is read.
pub const PLUGIN: &str = "pgoutput";

/// What `pg_replication_slots` says of a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotFacts {
    /// Its name.
    pub name: String,
    /// `None`: a physical slot.
    pub plugin: Option<String>,
    /// `None`: a physical slot.
    pub database: Option<String>,
    /// It goes with its connection.
    pub temporary: bool,
    /// It hands prepared transactions out before they are committed.
    pub two_phase: bool,
    /// The process that uses it.
    pub active_pid: Option<i32>,
    /// From here on the server keeps its log. `None`: it no longer does.
    pub restart: Option<Lsn>,
    /// Everything that ends at or before this position was confirmed.
    pub confirmed: Option<Lsn>,
    /// `reserved`, `extended`, `unreserved` or `lost`.
    pub wal_status: Option<String>,
    /// Why the server gave it up, where it tells (from version 17 on).
    pub invalidation_reason: Option<String>,
}

/// Everything that decides whether a stored offset can be resumed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The server.
    pub system: SystemIdentity,
    /// The slot; `None`: there is none of this name.
    pub slot: Option<SlotFacts>,
    /// Where the server's earlier timelines ended.
    pub history: Vec<TimelineSwitch>,
}

/// Reads what the server says of a slot.
///
/// # Errors
/// The connection breaks.
pub async fn read_slot<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    name: &str,
) -> Result<Option<SlotFacts>, Fault> {
    let major = connection.version().major();
    let two_phase = if major >= 14 { "two_phase" } else { "false" };
    let reason = if major >= 17 { "invalidation_reason" } else { "NULL" };
    let sql = format!(
        "SELECT plugin, database, temporary, {two_phase}, active_pid, restart_lsn, \
         confirmed_flush_lsn, wal_status, {reason} \
         FROM pg_catalog.pg_replication_slots WHERE slot_name = {}",
        literal(name)
    );
    let rows = connection.query(&format!("reading the replication slot \"{name}\""), &sql).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(SlotFacts {
        name: name.to_owned(),
        plugin: row.optional(0)?.map(str::to_owned),
        database: row.optional(1)?.map(str::to_owned),
        temporary: row.is_true(2)?,
        two_phase: row.is_true(3)?,
        active_pid: row.optional_as(4)?,
        restart: row.optional_as(5)?,
        confirmed: row.optional_as(6)?,
        wal_status: row.optional(7)?.map(str::to_owned),
        invalidation_reason: row.optional(8)?.map(str::to_owned),
    }))
}

/// Reads everything that [`check_gap`] needs. The connection must be one for replication.
///
/// # Errors
/// The connection breaks, or goes through a pooler.
pub async fn examine<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    slot: &str,
    stored: Option<&Offset>,
) -> Result<Standing, Fault> {
    // The slot first: what it confirms cannot be ahead of a log position that is read later.
    let slot = read_slot(connection, slot).await?;
    let system = connection.identify_system().await?;
    let history = match stored {
        Some(stored) if stored.timeline < system.timeline => {
            connection.timeline_history(system.timeline).await?
        }
        _ => Vec::new(),
    };
    Ok(Standing { system, slot, history })
}

/// Sees that the stream can go on at the stored offset without a change missing.
///
/// An offset behind which no stream is to begin (the slot was about to be created, rows were read
/// without one) is only held against the server's identity. Of a snapshot that was interrupted rows
/// are published, so what was deleted since is needed as much as behind a stream.
///
/// # Errors
/// `SOURCE-IDENTITY-CHANGED`, `SOURCE-DIVERGED`: another server, or another history.
/// `SLOT-MISSING`, `SLOT-MISMATCH`, `SLOT-LOST`, `SLOT-GAP`: the slot does not have the changes.
pub fn check_gap(stored: &Offset, standing: &Standing) -> Result<(), Fault> {
    let Standing { system, slot, history } = standing;
    if stored.system_id != system.system_id {
        return Err(Code::SourceIdentityChanged.fault(format!(
            "the offset belongs to the server with the system identifier {}, this one has {}",
            stored.system_id, system.system_id
        )));
    }
    let Some(position) = position(stored.phase) else { return Ok(()) };
    #[cfg(feature = "sabotage")]
    if crate::sabotage::Sabotage::NoGapCheck.is_on() {
        return Ok(());
    }
    check_history(stored.timeline, position, system, history)?;
    let Some(slot) = slot else {
        return Err(Code::SlotMissing.fault(format!(
            "the replication slot \"{}\" does not exist, and changes after {position} are needed",
            stored.slot
        )));
    };
    check_kind(slot, &system.database)?;
    check_kept(slot, position)?;
    let confirmed = slot.confirmed.unwrap_or_default();
    if confirmed > position {
        return Err(Code::SlotGap
            .fault(format!(
                "the stored position {position} is older than the confirmed position {confirmed} \
                 of the replication slot \"{}\"; changes between them cannot be read",
                slot.name
            ))
            .at_position(position.to_string()));
    }
    Ok(())
}

/// The position after which changes are needed.
const fn position(phase: Phase) -> Option<Lsn> {
    match phase {
        Phase::Creating | Phase::Snapshot { has_slot: false, .. } => None,
        Phase::Streaming { end } => Some(end),
        Phase::Snapshot { consistent_point, has_slot: true }
        | Phase::SnapshotDone { consistent_point } => Some(consistent_point),
    }
}

/// Up to its switch a timeline is part of its successors; what it wrote later is not.
fn check_history(
    timeline: u32,
    position: Lsn,
    system: &SystemIdentity,
    history: &[TimelineSwitch],
) -> Result<(), Fault> {
    let diverged = |how: String| Err(Code::SourceDiverged.fault(how));
    if timeline > system.timeline {
        return diverged(format!(
            "the offset is of timeline {timeline}, the server went back to {}",
            system.timeline
        ));
    }
    if timeline < system.timeline {
        match history.iter().find(|switch| switch.timeline == timeline) {
            Some(switch) if position <= switch.end => {}
            Some(switch) => {
                return diverged(format!(
                    "changes up to {position} were published, and the server left timeline \
                     {timeline} at {}",
                    switch.end
                ));
            }
            None => {
                return diverged(format!(
                    "the offset is of timeline {timeline}, of which the server's timeline {} is \
                     no successor",
                    system.timeline
                ));
            }
        }
    }
    if position > system.flushed {
        // Same identifier and timeline, but a shorter log: restored from a copy.
        return diverged(format!(
            "changes up to {position} were published, and the server's log ends at {}",
            system.flushed
        ));
    }
    Ok(())
}

/// Sees that a slot is one that can be streamed from.
///
/// # Errors
/// `SLOT-MISMATCH` says what it is instead.
pub fn check_kind(slot: &SlotFacts, database: &str) -> Result<(), Fault> {
    let mismatch = |what: String| {
        Err(Code::SlotMismatch.fault(format!("the replication slot \"{}\" {what}", slot.name)))
    };
    match (&slot.plugin, &slot.database) {
        (Some(plugin), _) if plugin != PLUGIN => {
            mismatch(format!("is for the plug-in \"{plugin}\" instead of {PLUGIN}"))
        }
        (Some(_), Some(of)) if of != database => {
            mismatch(format!("is for the database \"{of}\" instead of \"{database}\""))
        }
        (Some(_), Some(_)) if slot.temporary => {
            mismatch("is temporary: it belongs to another session".to_owned())
        }
        (Some(_), Some(_)) if slot.two_phase => {
            mismatch("hands prepared transactions out before they are committed".to_owned())
        }
        (Some(_), Some(_)) => Ok(()),
        _ => mismatch("is a physical one".to_owned()),
    }
}

/// Sees that the server still keeps the log that a slot needs.
fn check_kept(slot: &SlotFacts, position: Lsn) -> Result<(), Fault> {
    if slot.wal_status.as_deref() != Some("lost") && slot.restart.is_some() {
        return match slot.confirmed {
            Some(_) => Ok(()),
            None => Err(Code::SlotMismatch.fault(format!(
                "the replication slot \"{}\" was never completely created",
                slot.name
            ))),
        };
    }
    let reason = slot.invalidation_reason.as_ref();
    let reason = reason.map(|reason| format!(", {reason}")).unwrap_or_default();
    Err(Code::SlotLost
        .fault(format!(
            "the replication slot \"{}\" was invalidated (wal_status={}{reason}); changes after \
             {position} are gone",
            slot.name,
            slot.wal_status.as_deref().unwrap_or("lost"),
        ))
        .at_position(position.to_string()))
}

impl SlotFacts {
    /// What an operator should be told of a slot that still works but may not for long.
    pub fn warning(&self) -> Option<String> {
        let status = self.wal_status.as_deref()?;
        matches!(status, "extended" | "unreserved").then(|| {
            format!(
                "the replication slot \"{}\" holds more log than max_wal_size (wal_status={status}); \
                 beyond max_slot_wal_keep_size the server gives it up",
                self.name
            )
        })
    }
}

/// Drops a slot. While another process uses it, tries again as often as the settings allow. One
/// that is gone already is no fault.
///
/// # Errors
/// `SLOT-ACTIVE` after the last attempt; otherwise what the server says at once.
pub async fn drop_when_free<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    settings: &Settings,
) -> Result<(), Fault> {
    let mut retries = settings.slot_max_retries;
    loop {
        match connection.drop_slot(&settings.slot_name).await {
            Err(fault) if fault.code() == Code::SlotMissing => return Ok(()),
            Err(fault) if fault.code() == Code::SlotActive && retries > 0 => {
                tracing::warn!(error = %fault, retries, "the replication slot is in use; waiting");
                retries -= 1;
                tokio::time::sleep(settings.slot_retry_delay).await;
            }
            outcome => return outcome,
        }
    }
}

/// Has standbys get the slot too, and says what else that takes: without
/// `synchronized_standby_slots` the stream may be ahead of a standby that is promoted, which then
/// lacks what was published (manual, "Logical Replication Failover").
///
/// # Errors
/// The slot is in use, or the connection breaks.
pub async fn let_fail_over<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    slot: &str,
) -> Result<(), Fault> {
    let sql = format!(
        "SELECT failover, pg_catalog.current_setting('synchronized_standby_slots') \
         FROM pg_catalog.pg_replication_slots WHERE slot_name = {}",
        literal(slot)
    );
    let rows = connection.query("asking whether the slot fails over", &sql).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    if row.text(1)?.is_empty() {
        tracing::warn!(
            slot,
            "slot.failover=true, and the server's synchronized_standby_slots is empty: the stream \
             may be ahead of a standby that is promoted, and would be refused there \
             (TG-E-SOURCE-DIVERGED)"
        );
    }
    if !row.is_true(0)? {
        connection.let_slot_fail_over(slot).await?;
        tracing::info!(slot, "the replication slot fails over to standbys from now on");
    }
    Ok(())
}

/// Starts the stream. While another process uses the slot, tries again as often as the settings
/// allow: after a crash the server takes a while to see that its reader is gone.
///
/// # Errors
/// `SLOT-ACTIVE` after the last attempt; otherwise what the server says at once.
pub async fn attach<S: AsyncRead + AsyncWrite + Unpin>(
    mut connection: Connection<S>,
    settings: &Settings,
    start: Lsn,
    options: &StreamOptions<'_>,
    metrics: &SourceMetrics,
) -> Result<ReplicationStream<S>, Fault> {
    let mut retries = settings.slot_max_retries;
    loop {
        match connection.enter_stream(&settings.slot_name, start, options).await {
            Ok(()) => {
                metrics.wait_for(None);
                return Ok(connection.into_stream());
            }
            Err(fault) if fault.code() == Code::SlotActive && retries > 0 => {
                tracing::warn!(error = %fault, retries, "the replication slot is in use; waiting");
                metrics.wait_for(Some(fault));
                retries -= 1;
                tokio::time::sleep(settings.slot_retry_delay).await;
            }
            Err(fault) => return Err(fault),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POSITION: Lsn = Lsn(0x200);

    fn stored(phase: Phase) -> Offset {
        Offset {
            system_id: 77,
            timeline: 2,
            slot: "s".to_owned(),
            nonce: 1,
            phase,
            inside: None,
            settings_fingerprint: 0,
            publication_fingerprint: 0,
            publication_stamp: 0,
        }
    }

    fn standing() -> Standing {
        Standing {
            system: SystemIdentity {
                system_id: 77,
                timeline: 2,
                flushed: Lsn(0x300),
                database: "d".to_owned(),
            },
            slot: Some(SlotFacts {
                name: "s".to_owned(),
                plugin: Some(PLUGIN.to_owned()),
                database: Some("d".to_owned()),
                restart: Some(Lsn(0x100)),
                confirmed: Some(Lsn(0x1f0)),
                wal_status: Some("reserved".to_owned()),
                ..SlotFacts::default()
            }),
            history: Vec::new(),
        }
    }

    #[track_caller]
    fn check_phase(phase: Phase, change: impl FnOnce(&mut Standing), expect: Option<Code>) {
        let mut standing = standing();
        change(&mut standing);
        let code = check_gap(&stored(phase), &standing).err().map(|fault| fault.code());
        assert_eq!(code, expect);
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Standing), expect: Option<Code>) {
        check_phase(Phase::Streaming { end: POSITION }, change, expect);
    }

    #[track_caller]
    fn check_slot(change: impl FnOnce(&mut SlotFacts), expect: Option<Code>) {
        check(|standing| change(standing.slot.as_mut().expect("a slot")), expect);
    }

    #[test]
    fn healthy_slots_pass() {
        check(|_| {}, None);
        check_slot(|slot| slot.confirmed = Some(POSITION), None);
        check_slot(|slot| slot.wal_status = Some("unreserved".to_owned()), None);
        check_slot(|slot| slot.active_pid = Some(9), None);
    }

    #[test]
    fn slots_that_moved_past_the_offset_have_a_gap() {
        check_slot(|slot| slot.confirmed = Some(Lsn(0x201)), Some(Code::SlotGap));
        check_slot(|slot| slot.confirmed = Some(Lsn(u64::MAX)), Some(Code::SlotGap));
        let done = Phase::SnapshotDone { consistent_point: Lsn(0x1e0) };
        check_phase(done, |_| {}, Some(Code::SlotGap));
        check_phase(Phase::SnapshotDone { consistent_point: POSITION }, |_| {}, None);
    }

    #[test]
    fn slots_that_are_gone_or_given_up_are_told_apart() {
        check(|standing| standing.slot = None, Some(Code::SlotMissing));
        check_slot(|slot| slot.wal_status = Some("lost".to_owned()), Some(Code::SlotLost));
        check_slot(
            |slot| {
                slot.restart = None;
                slot.invalidation_reason = Some("idle_timeout".to_owned());
            },
            Some(Code::SlotLost),
        );
        check_slot(|slot| slot.confirmed = None, Some(Code::SlotMismatch));
    }

    #[test]
    fn slots_of_another_kind_are_refused() {
        check_slot(|slot| slot.plugin = Some("wal2json".to_owned()), Some(Code::SlotMismatch));
        check_slot(|slot| slot.plugin = None, Some(Code::SlotMismatch));
        check_slot(|slot| slot.database = Some("e".to_owned()), Some(Code::SlotMismatch));
        check_slot(|slot| slot.temporary = true, Some(Code::SlotMismatch));
        check_slot(|slot| slot.two_phase = true, Some(Code::SlotMismatch));
    }

    #[test]
    fn another_server_is_told_before_anything_else() {
        let other = |standing: &mut Standing| {
            standing.system.system_id = 78;
            standing.slot = None;
        };
        check(other, Some(Code::SourceIdentityChanged));
        check_phase(Phase::Creating, other, Some(Code::SourceIdentityChanged));
    }

    #[test]
    fn offsets_without_a_position_need_no_slot() {
        check_phase(Phase::Creating, |standing| standing.slot = None, None);
        let snapshot = Phase::Snapshot { consistent_point: POSITION, has_slot: false };
        check_phase(snapshot, |standing| standing.slot = None, None);
    }

    #[test]
    fn an_interrupted_snapshot_needs_what_was_deleted_since() {
        let check = |change: fn(&mut Standing), expect| {
            let phase = Phase::Snapshot { consistent_point: POSITION, has_slot: true };
            check_phase(phase, change, expect);
        };
        let moved = |standing: &mut Standing| {
            standing.slot.iter_mut().for_each(|slot| slot.confirmed = Some(Lsn(0x201)));
        };
        check(|_| {}, None);
        check(moved, Some(Code::SlotGap));
        check(|standing| standing.slot = None, Some(Code::SlotMissing));
        check(|standing| standing.system.flushed = Lsn(0x1ff), Some(Code::SourceDiverged));
    }

    #[test]
    fn promotions_are_followed_up_to_the_switch() {
        let promoted = |end| {
            move |standing: &mut Standing| {
                standing.system.timeline = 4;
                let switch = |timeline, end| TimelineSwitch { timeline, end };
                standing.history =
                    vec![switch(1, Lsn(0x50)), switch(2, end), switch(3, Lsn(0x2f0))];
            }
        };
        check(promoted(Lsn(0x250)), None);
        check(promoted(POSITION), None);
        check(promoted(Lsn(0x1ff)), Some(Code::SourceDiverged));
        check(|standing| standing.system.timeline = 3, Some(Code::SourceDiverged));
        check(|standing| standing.system.timeline = 1, Some(Code::SourceDiverged));
    }

    #[test]
    fn servers_restored_from_a_copy_have_diverged() {
        check(|standing| standing.system.flushed = Lsn(0x1ff), Some(Code::SourceDiverged));
        check(|standing| standing.system.flushed = POSITION, None);
    }

    #[test]
    fn slots_in_danger_are_warned_about() {
        let warning = |status: &str| {
            SlotFacts { wal_status: Some(status.to_owned()), ..SlotFacts::default() }.warning()
        };
        assert!(warning("extended").is_some() && warning("unreserved").is_some());
        assert!(warning("reserved").is_none());
    }
}

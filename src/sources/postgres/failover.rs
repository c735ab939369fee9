//! Whether standbys could go on with the slot, as far as the primary can tell.
//!
//! The primary does not see what its standbys have: it sees whether the slot is marked for them,
//! whether somebody fetches marked slots, and how far those standbys are for which the stream waits
//! (manual, "Logical Replication Failover"). For a person; decides nothing, and knows no stream.
//! **Invariant:** "ready" is said only if nothing that the primary sees speaks against it.

use super::Settings;
use super::connection::{Connection, Purpose, literal};
use super::wire::Lsn;
use crate::error::Fault;

/// The oldest version whose slots fail over.
const SINCE: u32 = 17;

/// What a standby's session that fetches slots calls itself at the primary, behind its
/// `cluster_name` (`ReplSlotSyncWorkerMain`, slotsync.c).
const FETCHER: &str = "slotsync worker";

/// What the primary says.
#[derive(Clone, Debug, Default)]
struct Readiness {
    /// Whether the slot is marked; `None`: there is no slot.
    fails_over: Option<bool>,
    /// Sessions of standbys that fetch slots.
    fetchers: u32,
    /// What `synchronized_standby_slots` lists.
    standbys: Vec<Standby>,
}

/// A standby's own slot.
#[derive(Clone, Debug, Default)]
struct Standby {
    slot: String,
    state: State,
    /// Up to here it has the log.
    position: Option<Lsn>,
}

/// How a standby stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// There is no physical slot of that name.
    #[default]
    Missing,
    /// Nobody reads its slot.
    Away,
    /// It lacks something that our slot has confirmed.
    Behind,
    Ready,
}

/// What a person is told; nothing where that is not wanted, or the server cannot be asked.
pub async fn note(settings: &Settings) -> Option<String> {
    if !settings.slot_use.fails_over {
        return None;
    }
    let mut control = Connection::open(&settings.connection, Purpose::Control).await.ok()?;
    let found = if control.version().major() >= SINCE {
        read(&mut control, &settings.slot_name).await.ok()
    } else {
        None
    };
    control.close().await;
    found.map(|readiness| format!("slot.failover: {}", readiness.verdict(&settings.slot_name)))
}

async fn read(control: &mut Connection, slot: &str) -> Result<Readiness, Fault> {
    let what = "asking whether standbys have the slot";
    let slot = literal(slot);
    let sql = format!(
        "SELECT (SELECT failover FROM pg_catalog.pg_replication_slots WHERE slot_name = {slot}), \
         (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity \
         WHERE application_name LIKE '%{FETCHER}')"
    );
    let row = control.query_one(what, &sql).await?;
    let fails_over = row.optional(0)?.map(|_| row.is_true(0)).transpose()?;
    let mut readiness = Readiness { fails_over, fetchers: row.parse_as(1)?, standbys: Vec::new() };
    let sql = format!(
        "SELECT named.slot, s.slot_name IS NOT NULL, coalesce(s.active, false), s.restart_lsn, \
         coalesce(s.restart_lsn >= (SELECT confirmed_flush_lsn FROM pg_catalog.pg_replication_slots \
         WHERE slot_name = {slot}), false) \
         FROM (SELECT pg_catalog.btrim(one, ' \"') AS slot FROM pg_catalog.unnest( \
         pg_catalog.string_to_array(pg_catalog.current_setting('synchronized_standby_slots'), ',')) \
         one) named LEFT JOIN pg_catalog.pg_replication_slots s \
         ON s.slot_name = named.slot AND s.slot_type = 'physical' WHERE named.slot <> ''"
    );
    for row in &control.query(what, &sql).await? {
        readiness.standbys.push(Standby {
            slot: row.text(0)?.to_owned(),
            state: match (row.is_true(1)?, row.is_true(2)?, row.is_true(4)?) {
                (false, ..) => State::Missing,
                (true, false, _) => State::Away,
                (true, true, false) => State::Behind,
                (true, true, true) => State::Ready,
            },
            position: row.optional_as(3)?,
        });
    }
    Ok(readiness)
}

impl Readiness {
    fn verdict(&self, slot: &str) -> String {
        let problems = self.problems(slot);
        if !problems.is_empty() {
            return format!("no standby is known to be ready: {}", problems.join("; "));
        }
        let standbys: Vec<String> = self.standbys.iter().map(Standby::shown).collect();
        format!(
            "ready as far as the primary can tell: \"{slot}\" is marked, a standby fetches slots, and \
             the stream waits for {}; whether it is there yet, only the standby says \
             (SELECT synced AND NOT temporary FROM pg_replication_slots WHERE slot_name = '{slot}')",
            standbys.join(", ")
        )
    }

    fn problems(&self, slot: &str) -> Vec<String> {
        let mut problems = Vec::new();
        match self.fails_over {
            None => problems.push(format!("the slot \"{slot}\" does not exist yet")),
            Some(false) => problems.push(format!(
                "the slot \"{slot}\" is not marked yet, the next start of the task does it"
            )),
            Some(true) => {}
        }
        if self.fetchers == 0 {
            problems.push("no standby fetches slots now (sync_replication_slots = on)".to_owned());
        }
        if self.standbys.is_empty() {
            problems.push(
                "synchronized_standby_slots is empty, so the stream waits for no standby"
                    .to_owned(),
            );
        }
        problems.extend(self.standbys.iter().filter_map(Standby::problem));
        problems
    }
}

impl Standby {
    fn shown(&self) -> String {
        let position = self.position.unwrap_or_default();
        format!("\"{}\", which is at {position}", self.slot)
    }

    fn problem(&self) -> Option<String> {
        let what = match self.state {
            State::Missing => "is no physical slot of this server",
            State::Away => "is not read: its standby is not connected",
            State::Behind => "is behind what the slot has confirmed",
            State::Ready => return None,
        };
        Some(format!("\"{}\" of synchronized_standby_slots {what}", self.slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(change: impl FnOnce(&mut Readiness), expect: &str) {
        let standby =
            Standby { slot: "b".to_owned(), state: State::Ready, position: Some(Lsn(0x10)) };
        let mut readiness =
            Readiness { fails_over: Some(true), fetchers: 1, standbys: vec![standby] };
        change(&mut readiness);
        let verdict = readiness.verdict("s");
        assert!(verdict.contains(expect), "{verdict}");
        assert_eq!(verdict.starts_with("ready"), expect.contains("waits for \"b\""), "{verdict}");
    }

    #[test]
    fn ready_is_said_only_if_nothing_speaks_against_it() {
        check(|_| {}, "waits for \"b\", which is at 0/10");
        check(|found| found.fails_over = None, "\"s\" does not exist yet");
        check(|found| found.fails_over = Some(false), "\"s\" is not marked yet");
        check(|found| found.fetchers = 0, "no standby fetches slots");
        check(|found| found.standbys.clear(), "synchronized_standby_slots is empty");
        let with = |state| move |found: &mut Readiness| found.standbys[0].state = state;
        check(with(State::Missing), "\"b\" of synchronized_standby_slots is no");
        check(with(State::Away), "is not read");
        check(with(State::Behind), "is behind what the slot");
    }
}

//! Looks at the replication slot now and then, whether the stream is read or not.
//!
//! A slot that is not read keeps the server's log until the disk is full, or until the server gives
//! it up; neither is seen in the stream. Asks on a connection of its own, shows the answers as
//! metrics, and warns in the log when one crosses a threshold. Decides nothing.
//! **Invariant:** a value is shown only while it is fresh: after a failed look there is none.

use std::time::Duration;

use super::Settings;
use super::connection::{Connection, Purpose, literal};
use super::status::clock_micros;
use super::wire::Lsn;
use crate::error::{Code, Fault};
use crate::observe::{MetricKind, Reading, SourceMetrics, metrics};
use MetricKind::Gauge;

metrics! {
    /// What only this source has.
    METRICS "PostgreSQL's"
    LAG "tidegate_slot_lag_bytes" Gauge, "bytes", ["connector", "task"], "From the position that the slot has confirmed to the server's own. Includes what other databases of the server write.";
    RETAINED "tidegate_slot_retained_bytes" Gauge, "bytes", ["connector", "task"], "Log that the server keeps for the slot (from its restart_lsn).";
    SAFE "tidegate_slot_safe_wal_bytes" Gauge, "bytes", ["connector", "task"], "How much more can be written before the server may give the slot up; only with max_slot_wal_keep_size.";
    WAL_STATUS "tidegate_slot_wal_status" Gauge, "", ["connector", "task", "status"], "1 for the slot's wal_status: reserved, extended, unreserved or lost.";
    ACTIVE "tidegate_slot_active" Gauge, "", ["connector", "task"], "Whether a process reads the slot.";
    INACTIVE "tidegate_slot_inactive_seconds" Gauge, "s", ["connector", "task"], "For how long the slot has not been read; 0 while it is. PostgreSQL 17 and newer.";
    CATALOG_XMIN "tidegate_slot_catalog_xmin_age" Gauge, "transactions", ["connector", "task"], "How many transactions old the oldest one is whose catalogue rows the slot keeps from being vacuumed.";
    CONFIRMED "tidegate_slot_confirmed_position" Gauge, "bytes", ["connector", "task"], "The position that the slot has confirmed, as a number.";
    EXISTS "tidegate_slot_exists" Gauge, "", ["connector", "task"], "Whether there is a slot of that name. The other metrics of it are there only then.";
    OLDEST "tidegate_source_oldest_transaction_seconds" Gauge, "s", ["connector", "task"], "Since when the oldest writing transaction of the server has been open, prepared ones included, as far as it was seen: it keeps the slot from moving on.";
}

const STATUSES: [&str; 4] = ["reserved", "extended", "unreserved", "lost"];

/// How long a look may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a look found.
#[derive(Clone, Debug, Default, PartialEq)]
struct Health {
    /// The server's own position.
    position: Lsn,
    /// The oldest transaction that is running, and whether there is one.
    oldest: Option<u64>,
    /// For how long a transaction has been open, where the server lets us see it.
    oldest_seconds: Option<f64>,
    /// The oldest prepared transaction, and for how long it has been prepared.
    prepared: Option<(String, f64)>,
    slot: Option<SlotHealth>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct SlotHealth {
    active: bool,
    wal_status: Option<String>,
    restart: Option<Lsn>,
    confirmed: Option<Lsn>,
    safe_bytes: Option<f64>,
    catalog_xmin_age: Option<f64>,
    inactive_seconds: Option<f64>,
}

/// Looks at the slot again and again. Never ends.
pub async fn watch_health(
    settings: &Settings,
    connector: &str,
    metrics: &SourceMetrics,
    caught_up: &(dyn Fn(i64) + Send + Sync),
) {
    if settings.slot_health_interval.is_zero() {
        return std::future::pending().await;
    }
    let mut watch = HealthWatch::new(settings.slot_retained_warning);
    let (mut connection, mut is_seen) = (None, true);
    let mut tick = tokio::time::interval(settings.slot_health_interval);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let now = clock_micros();
        let look = look(settings, &mut connection);
        match tokio::time::timeout(PATIENCE, look).await.unwrap_or_else(|_elapsed| Err(too_slow()))
        {
            Ok(health) => {
                is_seen = true;
                if let Some(time) = watch.confirmed_since(&health, now) {
                    caught_up(time);
                }
                for warning in watch.warnings(&health) {
                    tracing::warn!(connector, slot = settings.slot_name, "{warning}");
                }
                metrics.set_readings(Some(watch.readings(&health, now)));
            }
            Err(fault) => {
                connection = None;
                metrics.set_readings(None);
                if std::mem::replace(&mut is_seen, false) {
                    tracing::warn!(connector, error = %fault, "the slot cannot be looked at now");
                }
            }
        }
    }
}

fn too_slow() -> Fault {
    Code::SourceUnreachable.fault("no answer about the replication slot in time")
}

async fn look(settings: &Settings, kept: &mut Option<Connection>) -> Result<Health, Fault> {
    // taken out: a look that is given up half-way must not leave a connection in its middle
    let mut connection = match kept.take() {
        Some(connection) => connection,
        None => Connection::open(&settings.connection, Purpose::Control).await?,
    };
    let health = read(&mut connection, &settings.slot_name).await?;
    *kept = Some(connection);
    Ok(health)
}

async fn read(connection: &mut Connection, slot: &str) -> Result<Health, Fault> {
    let inactive = if connection.version().major() >= 17 {
        "CASE WHEN s.active THEN 0 ELSE \
         pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - s.inactive_since) END"
    } else {
        "NULL"
    };
    // the slot first: what it confirms cannot be ahead of a position that is read later
    let sql = format!(
        "SELECT s.slot_name IS NOT NULL, s.active, s.wal_status, s.restart_lsn, \
         s.confirmed_flush_lsn, s.safe_wal_size, pg_catalog.age(s.catalog_xmin), {inactive}, \
         CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn() \
         ELSE pg_catalog.pg_current_wal_lsn() END, \
         pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot()), \
         pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot()), \
         (SELECT pg_catalog.max(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - a.xact_start)) \
         FROM pg_catalog.pg_stat_activity a WHERE a.backend_xid IS NOT NULL), p.gid, \
         pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - p.prepared) \
         FROM (SELECT 1) one LEFT JOIN pg_catalog.pg_replication_slots s ON s.slot_name = {} \
         LEFT JOIN (SELECT gid, prepared FROM pg_catalog.pg_prepared_xacts \
         ORDER BY prepared LIMIT 1) p ON true",
        literal(slot)
    );
    let row = connection.query_one("looking at the replication slot", &sql).await?;
    let (xmin, xmax): (u64, u64) = (row.parse_as(9)?, row.parse_as(10)?);
    let mut health = Health {
        position: row.optional_as(8)?.unwrap_or_default(),
        oldest: (xmin < xmax).then_some(xmin),
        oldest_seconds: row.optional_as(11)?,
        prepared: row.optional(12)?.map(str::to_owned).zip(row.optional_as(13)?),
        slot: None,
    };
    if row.is_true(0)? {
        health.slot = Some(SlotHealth {
            active: row.is_true(1)?,
            wal_status: row.optional(2)?.map(str::to_owned),
            restart: row.optional_as(3)?,
            confirmed: row.optional_as(4)?,
            safe_bytes: row.optional_as(5)?,
            catalog_xmin_age: row.optional_as(6)?,
            inactive_seconds: row.optional_as(7)?,
        });
    }
    Ok(health)
}

/// A transaction that has been open for so many seconds may be what holds a slot.
const LONG: f64 = 60.0;

impl Health {
    /// Why the slot retains log, as far as can be seen.
    fn cause(&self, is_active: bool) -> String {
        if let Some((name, seconds)) = self.prepared.as_ref().filter(|one| one.1 > LONG) {
            return format!(
                "the transaction '{name}' has been prepared for {seconds:.0} s, and neither COMMIT \
                 PREPARED nor ROLLBACK PREPARED has come"
            );
        }
        match self.oldest_seconds.filter(|seconds| *seconds > LONG) {
            Some(seconds) => format!("a transaction has been open for {seconds:.0} s"),
            None if is_active => "Kafka is behind, or a transaction is open for long".to_owned(),
            None => "nothing reads it".to_owned(),
        }
    }
}

/// What has to be remembered from one look to the next.
#[derive(Debug)]
struct HealthWatch {
    /// Warn of more retained bytes than these; 0: never.
    retained_warning: u64,
    /// Such a warning was given, and holds.
    is_warned: bool,
    /// The last `wal_status`.
    status: Option<String>,
    was_there: bool,
    /// A look whose position is not confirmed yet: its time and position.
    unconfirmed: Option<(i64, Lsn)>,
    /// The oldest running transaction, and when it was seen first.
    oldest: Option<(u64, i64)>,
}

impl HealthWatch {
    const fn new(retained_warning: u64) -> Self {
        Self {
            retained_warning,
            is_warned: false,
            status: None,
            was_there: false,
            unconfirmed: None,
            oldest: None,
        }
    }

    /// The time of the last look of which the slot has confirmed the position since: everything
    /// that was committed before is in Kafka.
    fn confirmed_since(&mut self, health: &Health, now: i64) -> Option<i64> {
        let confirmed = health.slot.as_ref()?.confirmed?;
        let passed = self.unconfirmed.filter(|(_, position)| confirmed >= *position);
        if passed.is_some() || self.unconfirmed.is_none() {
            self.unconfirmed = Some((now, health.position));
        }
        passed.map(|(time, _)| time)
    }

    /// What an operator should be told: each crossing of a threshold once.
    fn warnings(&mut self, health: &Health) -> Vec<String> {
        let mut warnings = Vec::new();
        let Some(slot) = &health.slot else {
            if std::mem::take(&mut self.was_there) {
                warnings.push("the replication slot is gone".to_owned());
            }
            return warnings;
        };
        self.was_there = true;
        if slot.wal_status != self.status {
            warnings.extend(slot.wal_status.as_deref().and_then(danger).map(str::to_owned));
            self.status.clone_from(&slot.wal_status);
        }
        let retained =
            slot.restart.map_or(0, |restart| health.position.0.saturating_sub(restart.0));
        let limit = self.retained_warning;
        if limit > 0 && retained >= limit && !self.is_warned {
            self.is_warned = true;
            warnings.push(format!(
                "the server keeps {retained} bytes of log for the replication slot \
                 (slot.retained.warn.bytes is {limit}): {}",
                health.cause(slot.active)
            ));
        } else if retained < limit - limit / 4 {
            self.is_warned = false;
        }
        warnings
    }

    fn readings(&mut self, health: &Health, now: i64) -> Vec<Reading> {
        self.oldest = match (health.oldest, self.oldest) {
            (Some(xmin), Some((known, since))) if xmin == known => Some((xmin, since)),
            (xmin, _) => xmin.map(|xmin| (xmin, now)),
        };
        let seen = self.oldest.map_or(0.0, |(_, since)| (now - since).max(0) as f64 / 1e6);
        let prepared = health.prepared.as_ref().map_or(0.0, |one| one.1);
        let told = health.oldest_seconds.unwrap_or(0.0).max(prepared);
        let flag = |condition: bool| f64::from(u8::from(condition));
        let mut all = vec![
            Reading { metric: &OLDEST, labels: &[], value: seen.max(told) },
            Reading { metric: &EXISTS, labels: &[], value: flag(health.slot.is_some()) },
        ];
        let Some(slot) = &health.slot else { return all };
        let behind = |lsn: Option<Lsn>| Some(health.position.0.saturating_sub(lsn?.0) as f64);
        let values = [
            (&LAG, behind(slot.confirmed)),
            (&RETAINED, behind(slot.restart)),
            (&SAFE, slot.safe_bytes),
            (&ACTIVE, Some(flag(slot.active))),
            (&INACTIVE, slot.inactive_seconds),
            (&CATALOG_XMIN, slot.catalog_xmin_age),
            (&CONFIRMED, slot.confirmed.map(|lsn| lsn.0 as f64)),
        ];
        all.extend(
            values
                .into_iter()
                .filter_map(|(metric, value)| Some(Reading { metric, labels: &[], value: value? })),
        );
        for status in &STATUSES {
            let value = flag(slot.wal_status.as_deref() == Some(*status));
            all.push(Reading { metric: &WAL_STATUS, labels: std::slice::from_ref(status), value });
        }
        all
    }
}

/// What a `wal_status` other than `reserved` means.
fn danger(status: &str) -> Option<&'static str> {
    match status {
        "extended" => Some(
            "the replication slot holds more log than max_wal_size (wal_status=extended); \
             beyond max_slot_wal_keep_size the server gives it up",
        ),
        "unreserved" => Some(
            "the replication slot holds more log than max_slot_wal_keep_size \
             (wal_status=unreserved); the next checkpoint may take it away",
        ),
        "lost" => Some(
            "the replication slot was given up by the server (wal_status=lost); \
             what it kept is gone, and the connector needs a new snapshot",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(position: u64, slot: SlotHealth) -> Health {
        Health { position: Lsn(position), slot: Some(slot), ..Health::default() }
    }

    fn at(restart: u64) -> SlotHealth {
        SlotHealth {
            active: true,
            wal_status: Some("reserved".to_owned()),
            restart: Some(Lsn(restart)),
            confirmed: Some(Lsn(restart)),
            ..SlotHealth::default()
        }
    }

    #[test]
    fn each_crossing_is_told_once_and_again_only_after_it_went_well() {
        let mut watch = HealthWatch::new(100);
        let mut told = |position| watch.warnings(&health(position, at(0))).len();
        assert_eq!([99, 100, 500, 80, 120, 74, 101].map(&mut told), [0, 1, 0, 0, 0, 0, 1]);
        let mut silent = HealthWatch::new(0);
        assert!(silent.warnings(&health(u64::MAX, at(0))).is_empty());
    }

    #[track_caller]
    fn check_cause(change: impl FnOnce(&mut Health), expect: &str) {
        let mut health = Health::default();
        change(&mut health);
        assert!(health.cause(true).contains(expect), "{}", health.cause(true));
    }

    #[test]
    fn what_holds_a_slot_is_named() {
        check_cause(|_| {}, "Kafka is behind");
        check_cause(|health| health.oldest_seconds = Some(61.0), "open for 61 s");
        check_cause(|health| health.prepared = Some(("x 1".into(), 59.0)), "Kafka is behind");
        check_cause(
            |health| health.prepared = Some(("x 1".into(), 90.0)),
            "'x 1' has been prepared",
        );
    }

    #[test]
    fn a_status_is_told_when_it_changes_and_a_slot_when_it_goes() {
        let mut watch = HealthWatch::new(0);
        let mut told = |status: &str| {
            let slot = SlotHealth { wal_status: Some(status.to_owned()), ..at(0) };
            watch.warnings(&health(0, slot)).len()
        };
        let all = ["reserved", "extended", "extended", "unreserved", "reserved", "lost", "lost"];
        assert_eq!(all.map(&mut told), [0, 1, 0, 1, 0, 1, 0]);
        assert_eq!(watch.warnings(&Health::default()), ["the replication slot is gone"]);
        assert!(watch.warnings(&Health::default()).is_empty());
    }

    #[test]
    fn what_is_confirmed_later_was_caught_up_with() {
        let mut watch = HealthWatch::new(0);
        assert_eq!(watch.confirmed_since(&health(50, at(10)), 1), None);
        assert_eq!(watch.confirmed_since(&health(60, at(49)), 2), None);
        assert_eq!(watch.confirmed_since(&health(70, at(50)), 3), Some(1));
        assert_eq!(watch.confirmed_since(&health(70, at(70)), 4), Some(3));
        assert_eq!(watch.confirmed_since(&Health::default(), 5), None);
    }

    #[track_caller]
    fn check(readings: &[Reading], name: &str, labels: &[&str], expect: Option<f64>) {
        let found = readings.iter().find(|one| one.metric.name == name && one.labels == labels);
        assert_eq!(found.map(|reading| reading.value), expect, "{name}");
    }

    #[test]
    fn readings_are_distances_and_what_is_not_known_is_left_out() {
        let mut watch = HealthWatch::new(0);
        let slot = SlotHealth { confirmed: Some(Lsn(80)), ..at(30) };
        let seen = Health { oldest: Some(7), ..health(100, slot) };
        watch.readings(&seen, 1_000_000);
        let readings = watch.readings(&seen, 3_500_000);
        check(&readings, "tidegate_slot_lag_bytes", &[], Some(20.0));
        check(&readings, "tidegate_slot_retained_bytes", &[], Some(70.0));
        check(&readings, "tidegate_slot_wal_status", &["reserved"], Some(1.0));
        check(&readings, "tidegate_slot_wal_status", &["lost"], Some(0.0));
        check(&readings, "tidegate_slot_safe_wal_bytes", &[], None);
        check(&readings, "tidegate_source_oldest_transaction_seconds", &[], Some(2.5));
        let gone = watch.readings(&Health::default(), 4_000_000);
        check(&gone, "tidegate_slot_exists", &[], Some(0.0));
        check(&gone, "tidegate_slot_lag_bytes", &[], None);
    }
}

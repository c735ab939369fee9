//! The settings on which the text of values depends, fixed for every session of ours.
//!
//! The server, the database and the role may each say how dates, intervals, floats or byte strings
//! are written; the stream and the snapshot must not depend on it. Applied at start-up, read back on
//! the very connection, before anything else is asked on it.
//! **Invariant:** no session is used in which a pinned setting has another value, or in which
//! another process answers than the one that was connected to.

use std::fmt;

use tokio::io::{AsyncRead, AsyncWrite};

use super::ConnectionSettings;
use super::connection::{Connection, Purpose, literal};
use crate::error::{Code, Fault};

/// A server's version as one number: 150018 is 15.18.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerVersion(pub u32);

impl ServerVersion {
    /// The major version.
    pub const fn major(self) -> u32 {
        self.0 / 10_000
    }

    /// Reads the version that a server reports at start-up: `15.18 (Debian …)`, `18beta1`.
    pub(super) fn parse(text: &str) -> Self {
        let number = |text: &str| {
            let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u32>().ok().filter(|number| *number < 10_000).unwrap_or(0)
        };
        let (_, minor) = text.split_once('.').unwrap_or_default();
        Self(number(text) * 10_000 + number(minor))
    }
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 10_000, self.0 % 10_000)
    }
}

/// A pinned setting. The value is what `pg_settings.setting` must say: in base units.
struct Pin {
    name: &'static str,
    value: &'static str,
    /// The first major version that has it. Older servers would refuse it at start-up, so the
    /// later ones are set after the server has told its version.
    since: u32,
}

const fn fixed(name: &'static str, value: &'static str) -> Pin {
    Pin { name, value, since: 0 }
}

const PINS: &[Pin] = &[
    // how values are written
    fixed("client_encoding", "UTF8"),
    fixed("DateStyle", "ISO, YMD"),
    fixed("IntervalStyle", "postgres"),
    fixed("TimeZone", "UTC"),
    fixed("extra_float_digits", "3"),
    fixed("bytea_output", "hex"),
    fixed("lc_monetary", "C"),
    fixed(SEARCH_PATH, "pg_catalog"),
    // how expressions are written, and literals read
    fixed("quote_all_identifiers", "off"),
    fixed("standard_conforming_strings", "on"),
    // a policy that hides rows is an error, not a shorter snapshot
    fixed("row_security", "off"),
    // a role that writes nothing elsewhere still makes its publication
    fixed("default_transaction_read_only", "off"),
    // what would end a session that waits
    fixed("idle_in_transaction_session_timeout", "0"),
    Pin { name: "idle_session_timeout", value: "0", since: 14 },
    Pin { name: "transaction_timeout", value: "0", since: 17 },
    // the warning that a publication is skipped must reach us
    fixed("client_min_messages", "warning"),
];

/// Where the names of tables are looked up.
const SEARCH_PATH: &str = "search_path";

fn pins(purpose: Purpose) -> impl Iterator<Item = &'static Pin> {
    PINS.iter().filter(move |pin| purpose != Purpose::Action || pin.name != SEARCH_PATH)
}

/// Pinned per connection, because their values depend on what the connection is for.
const STATEMENT_TIMEOUT: &str = "statement_timeout";
const LOCK_TIMEOUT: &str = "lock_timeout";

/// Milliseconds that a short statement waits for a table that somebody alters. Who asks then tries
/// again, and is not in the way of others in the queue meanwhile.
const LOCK_PATIENCE: &str = "10000";

const fn lock_timeout(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Control => LOCK_PATIENCE,
        Purpose::Replication | Purpose::Snapshot | Purpose::Action => "0",
    }
}

fn statement_timeout(settings: &ConnectionSettings, purpose: Purpose) -> String {
    match purpose {
        Purpose::Control | Purpose::Action => {
            i32::try_from(settings.query_timeout.as_millis()).unwrap_or(i32::MAX).to_string()
        }
        Purpose::Replication | Purpose::Snapshot => "0".to_owned(),
    }
}

/// The parameters of the start-up message. A value given here overrides what the server's files,
/// the database and the role say.
pub(super) fn startup_parameters(
    settings: &ConnectionSettings,
    purpose: Purpose,
) -> Vec<(&'static str, String)> {
    let mut parameters = vec![
        ("user", settings.user.clone()),
        ("database", settings.database.clone()),
        ("application_name", settings.application_name.clone()),
        (STATEMENT_TIMEOUT, statement_timeout(settings, purpose)),
        (LOCK_TIMEOUT, lock_timeout(purpose).to_owned()),
    ];
    if purpose == Purpose::Replication {
        parameters.push(("replication", "database".to_owned()));
    }
    let everywhere = pins(purpose).filter(|pin| pin.since == 0);
    parameters.extend(everywhere.map(|pin| (pin.name, pin.value.to_owned())));
    parameters
}

/// Sets what could not be set at start-up, reads everything back, and sees that the process that
/// answers is the one that was connected to.
///
/// # Errors
/// `SESSION-NOT-PINNED` names the setting; `POOLER-DETECTED` if another process answers.
pub(super) async fn pin<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    settings: &ConnectionSettings,
    purpose: Purpose,
) -> Result<(), Fault> {
    let what = "reading the session's settings";
    let major = connection.version().major();
    let later = pins(purpose).filter(|pin| (1..=major).contains(&pin.since));
    let set: String =
        later.map(|pin| format!("SET {} = {};", pin.name, literal(pin.value))).collect();
    if !set.is_empty() {
        connection.query("setting the session's limits", &set).await?;
    }
    let timeout = statement_timeout(settings, purpose);
    let expected: Vec<(&str, &str)> = pins(purpose)
        .filter(|pin| pin.since <= major)
        .map(|pin| (pin.name, pin.value))
        .chain([(STATEMENT_TIMEOUT, timeout.as_str()), (LOCK_TIMEOUT, lock_timeout(purpose))])
        .collect();
    let names: Vec<String> =
        expected.iter().map(|(name, _)| literal(&name.to_lowercase())).collect();
    let rows = connection
        .query(
            what,
            &format!(
                "SELECT pg_catalog.pg_backend_pid()::text, NULL UNION ALL \
                 SELECT pg_catalog.lower(name), setting FROM pg_catalog.pg_settings \
                 WHERE pg_catalog.lower(name) IN ({})",
                names.join(", ")
            ),
        )
        .await?;
    let mut pid = None;
    let mut actual = Vec::new();
    for row in &rows {
        match row.optional(1)? {
            None => pid = Some(row.parse_as::<i32>(0)?),
            Some(setting) => actual.push((row.text(0)?, setting)),
        }
    }
    check_process(connection.pid(), pid, connection.endpoint())?;
    check_settings(&expected, &actual)
}

fn check_process(connected: i32, answering: Option<i32>, endpoint: &str) -> Result<(), Fault> {
    if answering == Some(connected) {
        return Ok(());
    }
    Err(Code::PoolerDetected.fault(format!(
        "{endpoint} said that process {connected} serves the connection, and process {} answers",
        answering.map_or_else(|| "?".to_owned(), |pid| pid.to_string())
    )))
}

fn check_settings(expected: &[(&str, &str)], actual: &[(&str, &str)]) -> Result<(), Fault> {
    for (name, value) in expected {
        let found = actual.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        match found {
            Some((_, found)) if found == value => {}
            Some((_, found)) => {
                return Err(Code::SessionNotPinned
                    .fault(format!("the setting \"{name}\" is '{found}' instead of '{value}'")));
            }
            None => {
                return Err(Code::SessionNotPinned
                    .fault(format!("the server does not show the setting \"{name}\"")));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_version(text: &str, number: u32, major: u32) {
        let version = ServerVersion::parse(text);
        assert_eq!((version.0, version.major()), (number, major));
    }

    #[test]
    fn versions_are_read_in_every_form_that_servers_use() {
        check_version("15.18 (Debian 15.18-0+deb12u1)", 150_018, 15);
        check_version("18beta1", 180_000, 18);
        check_version("9.6.24", 90_006, 9);
        check_version("devel", 0, 0);
        check_version("99999999999.1", 1, 0);
    }

    #[test]
    fn a_setting_that_did_not_take_its_value_is_named() {
        let expected = [("DateStyle", "ISO, YMD"), ("TimeZone", "UTC")];
        let fault = check_settings(&expected, &[("datestyle", "German, DMY"), ("timezone", "UTC")])
            .expect_err("the date style differs");
        assert_eq!(fault.code(), Code::SessionNotPinned);
        assert!(fault.message().contains("DateStyle"), "{fault}");
        assert!(check_settings(&expected, &[("datestyle", "ISO, YMD")]).is_err());
        check_settings(&expected, &[("datestyle", "ISO, YMD"), ("timezone", "UTC")])
            .expect("all as pinned");
    }

    #[test]
    fn another_process_is_a_pooler() {
        check_process(7, Some(7), "h:1").expect("the same");
        for answering in [Some(8), None] {
            let fault = check_process(7, answering, "h:1").expect_err("another");
            assert_eq!(fault.code(), Code::PoolerDetected);
        }
    }
}

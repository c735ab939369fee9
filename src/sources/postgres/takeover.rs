//! Goes on where Debezium stopped: its stored offset becomes ours.
//!
//! Debezium remembers the last row that it published (`lsn_proc`, in the transaction `txId`), not
//! whether that transaction was published to its end. Its `lsn_commit` does not say so either: seen
//! are the end of the transaction before, and the last row's own position (3.6.3, after a stop). The
//! slot still has the transaction, because at most that position was confirmed to it; so it is looked
//! up there, without being consumed. Of a slot that was confirmed further nobody can say who did it:
//! Debezium, or whoever made the slot anew. Knows no Kafka and stores nothing.
//! **Invariant:** an offset is only made if every change is known to be on one side of it: what
//! Debezium's leaves open is refused.

use serde_json::Value;

use super::Settings;
use super::connection::{Connection, Purpose, literal};
use super::offset::{Offset, Phase};
use super::settings::OffsetMismatch;
use super::slot::{self, SlotFacts, Standing};
use super::wire::Lsn;
use crate::error::{Code, Fault};

/// How far behind the last row its commit is looked for at first, in bytes of the log.
const FIRST_LOOK: u64 = 16 << 20;

const REMEDY: &str = "Resume Debezium's connector, let it read everything, change one single row of a \
                      captured table in a transaction of its own, and stop it again.";

const GAP_REMEDY: &str = "If the slot is the one that Debezium read to the end: resume Debezium's \
                          connector, change one single row of a captured table in a transaction of \
                          its own, and stop it again. If it was made anew or advanced, the changes \
                          between are lost to the stream: begin without an offset, which reads all \
                          rows anew, or set offset.mismatch.strategy=trust_slot to give them up.";

/// What Debezium's offset says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// Everything that ends here was published, and nothing after it.
    End(Lsn),
    /// The last row that was published; of its transaction there may be more.
    Row { row: Lsn, transaction: u32 },
}

/// The rows of Debezium's last transaction by where they stand to its last row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    /// Rows at the very position: those of one COPY share theirs.
    same: u64,
    later: u64,
    /// The end of the commit.
    end: Lsn,
}

/// The offset of this connector that goes on behind what Debezium's says.
///
/// # Errors
/// `OFFSET-IMPORT`: it is no such offset, leaves open what was published, or the slot is in use.
/// `SLOT-*`: the slot is not there, or does not have what follows. The source cannot be asked.
pub async fn take_over(settings: &Settings, offset: &Value) -> Result<Offset, Fault> {
    let told = parse(offset)?;
    let mut connection = Connection::open(&settings.connection, Purpose::Replication).await?;
    let standing = slot::examine(&mut connection, &settings.slot_name, None).await?;
    let Some(facts) = &standing.slot else {
        return Err(Code::SlotMissing.fault(format!(
            "the replication slot \"{}\" does not exist; the one that Debezium used is needed",
            settings.slot_name
        )));
    };
    if let Some(pid) = facts.active_pid {
        return Err(refused(format!(
            "the replication slot \"{}\" is in use by process {pid}",
            facts.name
        ))
        .hint("Stop Debezium's connector first: PUT /connectors/{name}/stop on its worker."));
    }
    let end = match told {
        Told::End(end) => end,
        Told::Row { row, transaction } => {
            let found = find(&mut connection, settings, row, transaction).await?;
            end_of(row, transaction, found, facts)?.unwrap_or(row)
        }
    };
    let mut offset = Offset {
        system_id: standing.system.system_id,
        timeline: standing.system.timeline,
        slot: settings.slot_name.clone(),
        nonce: 0,
        phase: Phase::Streaming { end },
        inside: None,
        settings_fingerprint: 0,
        publication_fingerprint: 0,
        publication_stamp: 0,
    };
    check_gap(settings.offset_mismatch, &mut offset, &standing)?;
    connection.close().await;
    Ok(offset)
}

/// Sees that the slot has everything behind the offset, or moves that to where the slot is if the
/// configuration says so.
fn check_gap(
    mismatch: OffsetMismatch,
    offset: &mut Offset,
    standing: &Standing,
) -> Result<(), Fault> {
    let Err(fault) = slot::check_gap(offset, standing) else { return Ok(()) };
    let confirmed = standing.slot.as_ref().and_then(|slot| slot.confirmed);
    match (fault.code(), mismatch, confirmed) {
        (Code::SlotGap, OffsetMismatch::PassOver, Some(confirmed)) => {
            tracing::warn!(
                cause = %fault,
                position = %confirmed,
                "the changes before the slot's position are given up (offset.mismatch.strategy)"
            );
            offset.phase = Phase::Streaming { end: confirmed };
            Ok(())
        }
        (Code::SlotGap, ..) => Err(fault.hint(GAP_REMEDY)),
        _ => Err(fault),
    }
}

fn refused(message: impl Into<String>) -> Fault {
    Code::OffsetImport.fault(message)
}

fn parse(offset: &Value) -> Result<Told, Fault> {
    let number = |name: &str| -> Result<Option<u64>, Fault> {
        match offset.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let number = value.as_u64();
                number
                    .map(Some)
                    .ok_or_else(|| refused(format!("'{name}' is {value}, not a whole number")))
            }
        }
    };
    let position = |name| number(name).map(|found| found.map(Lsn));
    let in_snapshot = offset.get("snapshot").is_some_and(|value| !value.is_null());
    if in_snapshot {
        if offset.get("snapshot_completed") != Some(&Value::Bool(true)) {
            return Err(refused("Debezium's snapshot is not complete")
                .hint("Let it finish, or delete the slot and begin anew without an offset."));
        }
        let lsn = position("lsn")?.ok_or_else(|| refused("'lsn' is missing"))?;
        return Ok(Told::End(lsn));
    }
    let Some(row) = position("lsn_proc")?.or(position("lsn")?) else {
        return Err(refused(
            "'lsn_proc' is missing: this is no offset of Debezium's PostgreSQL connector",
        ));
    };
    let transaction = number("txId")?.ok_or_else(|| refused("'txId' is missing"))?;
    // the server's own ids of transactions have 32 bits, and so have those in the stream
    let transaction = u32::try_from(transaction & u64::from(u32::MAX)).unwrap_or(0);
    Ok(Told::Row { row, transaction })
}

/// Where Debezium's last transaction ends, if it was published to its end. `None`: the slot begins
/// behind its last row.
fn end_of(
    row: Lsn,
    transaction: u32,
    found: Option<Found>,
    slot: &SlotFacts,
) -> Result<Option<Lsn>, Fault> {
    match found {
        Some(Found { same: 1, later: 0, end }) => Ok(Some(end)),
        Some(Found { later: 1.., .. }) => Err(refused(format!(
            "Debezium was stopped in the middle of the transaction {transaction}, at {row}"
        ))
        .hint(REMEDY)),
        Some(Found { same: 2.., .. }) => Err(refused(format!(
            "several rows of the transaction {transaction} have the position {row} (COPY writes \
             them together); which of them Debezium published cannot be known"
        ))
        .hint(REMEDY)),
        Some(Found { .. }) => Err(refused(format!(
            "the transaction {transaction} has no row at {row}: the offset belongs to another \
             server, slot or publication"
        ))),
        None if slot.confirmed.is_some_and(|confirmed| confirmed > row) => Ok(None),
        None => Err(refused(format!(
            "the slot \"{}\" has no transaction {transaction} in what the publication carries: the \
             offset belongs to another server, slot or publication",
            slot.name
        ))),
    }
}

/// Looks at what the slot has, without consuming it, until the transaction's end is seen.
async fn find(
    connection: &mut Connection,
    settings: &Settings,
    row: Lsn,
    transaction: u32,
) -> Result<Option<Found>, Fault> {
    let mut reach = FIRST_LOOK;
    loop {
        let upto = Lsn(row.0.saturating_add(reach));
        let now = connection.identify_system().await?.flushed;
        let what = format!("looking at the replication slot \"{}\"", settings.slot_name);
        let answer =
            connection.query_one(&what, &question(settings, row, transaction, upto)).await?;
        if let Some(end) = answer.optional(2)? {
            let end = u64::from_str_radix(end, 16)
                .map_err(|error| Code::Internal.fault("a commit has no end").caused_by(&error))?;
            let (same, later) = (answer.optional_as(0)?, answer.optional_as(1)?);
            return Ok(Some(Found {
                same: same.unwrap_or(0),
                later: later.unwrap_or(0),
                end: Lsn(end),
            }));
        }
        if upto >= now {
            return Ok(None);
        }
        reach = reach.saturating_mul(4);
    }
}

/// Rows of the transaction at and behind a position, and the end of its commit in hex (protocol
/// documentation, "Logical Replication Message Formats": `C`, flags, commit, end).
fn question(settings: &Settings, row: Lsn, transaction: u32, upto: Lsn) -> String {
    let publication = settings.publication_name.replace('"', "\"\"");
    format!(
        "SELECT pg_catalog.count(*) FILTER (WHERE is_row AND lsn = '{row}'), \
         pg_catalog.count(*) FILTER (WHERE is_row AND lsn > '{row}'), \
         pg_catalog.max(ends) FROM (SELECT lsn, xid::text AS xid, \
         pg_catalog.chr(pg_catalog.get_byte(data, 0)) IN ('I', 'U', 'D', 'T') AS is_row, \
         CASE WHEN pg_catalog.chr(pg_catalog.get_byte(data, 0)) = 'C' \
         THEN pg_catalog.encode(pg_catalog.substring(data, 11, 8), 'hex') END AS ends \
         FROM pg_catalog.pg_logical_slot_peek_binary_changes({}, '{upto}', NULL, \
         'proto_version', '1', 'publication_names', {})) changes WHERE xid = '{transaction}'",
        literal(&settings.slot_name),
        literal(&format!("\"{publication}\"")),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::connection::SystemIdentity;
    use super::*;

    #[track_caller]
    fn check(offset: &Value, expect: Result<Told, &str>) {
        match (parse(offset), expect) {
            (Ok(told), Ok(expect)) => assert_eq!(told, expect),
            (Err(fault), Err(text)) => {
                assert_eq!(fault.code(), Code::OffsetImport);
                assert!(fault.to_string().contains(text), "{fault}");
            }
            (parsed, _) => panic!("{parsed:?}"),
        }
    }

    #[test]
    fn the_offsets_that_debezium_stores() {
        let snapshot = json!({"last_snapshot_record": true, "lsn": 100, "txId": 7, "snapshot": "INITIAL", "snapshot_completed": true});
        check(&snapshot, Ok(Told::End(Lsn(100))));
        check(&json!({"lsn": 100, "snapshot": "INITIAL"}), Err("is not complete"));
        let row =
            json!({"lsn_proc": 100, "messageType": "INSERT", "lsn": 100, "txId": 7, "ts_usec": 1});
        check(&row, Ok(Told::Row { row: Lsn(100), transaction: 7 }));
        check(
            &json!({"lsn_proc": 100, "lsn_commit": 90, "lsn": 100, "txId": 4_294_967_303_u64}),
            Ok(Told::Row { row: Lsn(100), transaction: 7 }),
        );
        // a row's own position is no end of a transaction
        check(
            &json!({"lsn_proc": 100, "lsn_commit": 100, "txId": 7}),
            Ok(Told::Row { row: Lsn(100), transaction: 7 }),
        );
    }

    #[test]
    fn what_is_no_such_offset_is_refused() {
        check(&json!({}), Err("'lsn_proc' is missing"));
        check(&json!({"lsn_proc": "0/1", "txId": 7}), Err("'lsn_proc' is \"0/1\""));
        check(&json!({"lsn_proc": -1}), Err("not a whole number"));
        check(&json!({"lsn_proc": 100}), Err("'txId' is missing"));
        check(&json!({"file": "binlog.1", "pos": 4}), Err("'lsn_proc' is missing"));
    }

    #[test]
    fn only_what_the_positions_decide_is_taken() {
        let slot =
            |confirmed| SlotFacts { confirmed: Some(Lsn(confirmed)), ..SlotFacts::default() };
        let end_of = |found, confirmed| end_of(Lsn(100), 7, found, &slot(confirmed));
        let found = |same, later| Some(Found { same, later, end: Lsn(120) });
        assert_eq!(end_of(found(1, 0), 90), Ok(Some(Lsn(120))));
        assert_eq!(end_of(None, 130), Ok(None));
        for (found, says) in [
            (found(1, 1), "in the middle"),
            (found(2, 0), "several rows"),
            (found(0, 0), "has no row at"),
            (None, "has no transaction 7"),
        ] {
            let fault = end_of(found, 90).unwrap_err();
            assert_eq!(fault.code(), Code::OffsetImport);
            assert!(fault.message().contains(says), "{fault}");
        }
    }
    #[test]
    fn a_slot_that_begins_behind_the_offset_is_no_slot_of_debeziums() {
        let confirmed = |confirmed| {
            let mut offset = Offset {
                system_id: 7,
                timeline: 1,
                slot: "s".to_owned(),
                nonce: 0,
                phase: Phase::Streaming { end: Lsn(100) },
                inside: None,
                settings_fingerprint: 0,
                publication_fingerprint: 0,
                publication_stamp: 0,
            };
            let standing = Standing {
                system: SystemIdentity {
                    system_id: 7,
                    timeline: 1,
                    flushed: Lsn(200),
                    database: "d".to_owned(),
                },
                slot: Some(SlotFacts {
                    plugin: Some(slot::PLUGIN.to_owned()),
                    database: Some("d".to_owned()),
                    restart: Some(Lsn(90)),
                    confirmed: Some(Lsn(confirmed)),
                    ..SlotFacts::default()
                }),
                history: Vec::new(),
            };
            move |mismatch| {
                check_gap(mismatch, &mut offset, &standing)
                    .map(|()| offset.phase)
                    .map_err(|fault| (fault.code(), fault.to_string().contains("made anew")))
            }
        };
        let begins = |end| Ok(Phase::Streaming { end: Lsn(end) });
        assert_eq!(confirmed(100)(OffsetMismatch::Stop), begins(100));
        assert_eq!(confirmed(130)(OffsetMismatch::Stop), Err((Code::SlotGap, true)));
        assert_eq!(confirmed(130)(OffsetMismatch::PassOver), begins(130));
    }
}

//! The commands of the replication protocol, up to the one that starts the stream.
//!
//! Knows their grammar and answers; whether a command is wise is `slot`'s and the driver's matter.
//! Source: manual, "Streaming Replication Protocol". The older grammar of `CREATE_REPLICATION_SLOT`
//! is used because every supported server understands it.

use tokio::io::{AsyncRead, AsyncWrite};

use super::query::{Row, one_row};
use super::server_message::During;
use super::{Connection, identifier};
use crate::error::{Code, Fault};
use crate::sources::postgres::wire::Lsn;

/// Who the server is and where it stands (`IDENTIFY_SYSTEM`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemIdentity {
    /// The cluster's system identifier.
    pub system_id: u64,
    /// The history branch that it writes.
    pub timeline: u32,
    /// How far its log is flushed.
    pub flushed: Lsn,
    /// The database of this connection.
    pub database: String,
}

/// A slot that was just created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedSlot {
    /// Its name.
    pub name: String,
    /// Transactions that commit from here on are in the stream, earlier ones in the snapshot.
    pub consistent_point: Lsn,
    /// The name of the exported snapshot, if one was asked for. It lives until the next command
    /// on this connection, or the end of the connection.
    pub snapshot: Option<String>,
}

/// Where a history branch ends and its successor begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineSwitch {
    /// The branch that ends.
    pub timeline: u32,
    /// What it wrote from here on is not part of its successor.
    pub end: Lsn,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    async fn command(&mut self, what: &str, command: &str) -> Result<Vec<Row>, Fault> {
        let limit = self.query_limit;
        self.run(what, command, During::Replication, limit).await
    }

    /// Asks who the server is.
    ///
    /// # Errors
    /// The server refuses (`POOLER-DETECTED`: it takes the command for SQL), or the connection
    /// breaks.
    pub async fn identify_system(&mut self) -> Result<SystemIdentity, Fault> {
        let what = "asking for the server's identity";
        let row = one_row(what, self.command(what, "IDENTIFY_SYSTEM").await?)?;
        Ok(SystemIdentity {
            system_id: row.parse_as(0)?,
            timeline: row.parse_as(1)?,
            flushed: row.parse_as(2)?,
            database: row.optional(3)?.unwrap_or_default().to_owned(),
        })
    }

    /// Reads a server setting as it stands for this very connection.
    ///
    /// # Errors
    /// There is no such setting, or the connection breaks.
    pub async fn show(&mut self, setting: &str) -> Result<String, Fault> {
        let what = format!("reading the setting \"{setting}\"");
        let row = self.query_one(&what, &format!("SHOW {}", identifier(setting))).await?;
        row.text(0).map(str::to_owned)
    }

    /// Creates a logical slot for pgoutput and exports the snapshot that it begins at.
    ///
    /// Waits, without limit, for every transaction that runs now.
    ///
    /// # Errors
    /// The server refuses (`SLOT-FOREIGN`: it exists; `SLOT-HEADROOM`: no more are allowed), or the
    /// connection breaks.
    pub async fn create_slot(&mut self, name: &str, temporary: bool) -> Result<CreatedSlot, Fault> {
        let temporary = if temporary { " TEMPORARY" } else { "" };
        self.create(name, &format!("{temporary} LOGICAL pgoutput EXPORT_SNAPSHOT")).await
    }

    /// The same for one that standbys get too (from version 17 on).
    ///
    /// # Errors
    /// As [`Self::create_slot`].
    pub async fn create_failover_slot(&mut self, name: &str) -> Result<CreatedSlot, Fault> {
        self.create(name, " LOGICAL pgoutput (SNAPSHOT 'export', FAILOVER)").await
    }

    /// Has standbys get a slot too that nobody uses (from version 17 on).
    ///
    /// # Errors
    /// It is in use (`SLOT-ACTIVE`), or the connection breaks.
    pub async fn let_slot_fail_over(&mut self, name: &str) -> Result<(), Fault> {
        let what = format!("altering the replication slot \"{name}\"");
        let command = format!("ALTER_REPLICATION_SLOT {} (FAILOVER)", identifier(name));
        self.command(&what, &command).await.map(drop)
    }

    async fn create(&mut self, name: &str, kind: &str) -> Result<CreatedSlot, Fault> {
        let what = format!("creating the replication slot \"{name}\"");
        let command = format!("CREATE_REPLICATION_SLOT {}{kind}", identifier(name));
        let rows = self.run(&what, &command, During::Replication, None).await?;
        let row = one_row(&what, rows)?;
        Ok(CreatedSlot {
            name: row.text(0)?.to_owned(),
            consistent_point: row.parse_as(1)?,
            snapshot: row.optional(2)?.map(str::to_owned),
        })
    }

    /// Drops a slot.
    ///
    /// # Errors
    /// It does not exist (`SLOT-MISSING`), is in use (`SLOT-ACTIVE`), or the connection breaks.
    pub async fn drop_slot(&mut self, name: &str) -> Result<(), Fault> {
        let what = format!("dropping the replication slot \"{name}\"");
        let command = format!("DROP_REPLICATION_SLOT {}", identifier(name));
        self.command(&what, &command).await.map(drop)
    }

    /// The same, as soon as nobody uses it.
    ///
    /// # Errors
    /// As [`Self::drop_slot`].
    pub async fn drop_slot_when_idle(&mut self, name: &str) -> Result<(), Fault> {
        let what = format!("dropping the replication slot \"{name}\"");
        let command = format!("DROP_REPLICATION_SLOT {} WAIT", identifier(name));
        self.command(&what, &command).await.map(drop)
    }

    /// Reads where the branches before a timeline ended, oldest first. The first timeline has none.
    ///
    /// # Errors
    /// The server does not have the history, or the connection breaks.
    pub async fn timeline_history(&mut self, timeline: u32) -> Result<Vec<TimelineSwitch>, Fault> {
        if timeline <= 1 {
            return Ok(Vec::new());
        }
        let what = format!("reading the history of timeline {timeline}");
        let command = format!("TIMELINE_HISTORY {timeline}");
        let row = one_row(&what, self.command(&what, &command).await?)?;
        // The file's bytes come as they are, not in bytea's notation.
        let file = row.bytes(1)?.unwrap_or_default();
        parse_history(&String::from_utf8_lossy(file))
            .ok_or_else(|| Code::ProtocolUnexpected.fault(format!("{what}: it is malformed")))
    }
}

/// Reads a history file: lines of timeline, position and a reason, and comments after `#`
/// (`readTimeLineHistory`, timeline.c).
fn parse_history(file: &str) -> Option<Vec<TimelineSwitch>> {
    file.lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
        .map(|line| {
            let mut words = line.split_whitespace();
            let timeline = words.next()?.parse().ok()?;
            let end = words.next()?.parse().ok()?;
            Some(TimelineSwitch { timeline, end })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_files_are_lines_of_branch_and_end() {
        let file = "1\t0/305BAC8\tno recovery target specified\n\n# a note\n2\t1/0\tbefore x\n";
        let expect = [
            TimelineSwitch { timeline: 1, end: Lsn(0x305_BAC8) },
            TimelineSwitch { timeline: 2, end: Lsn(0x1_0000_0000) },
        ];
        assert_eq!(parse_history(file).as_deref(), Some(&expect[..]));
        assert_eq!(parse_history("").as_deref(), Some(&[][..]));
        assert_eq!(parse_history("one two"), None);
        assert_eq!(parse_history("1"), None);
    }
}

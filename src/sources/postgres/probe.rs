//! Looks at the catalogue for what no description in the stream shows: rewrites, and tables that went.
//!
//! A table that is written anew has another file, and the column that was computed anew has another
//! row in the catalogue. `VACUUM FULL`, `CLUSTER` and `TRUNCATE` give it another file, too, but touch
//! no column. So a look can suspect, and name the column; it cannot know. Asks now and then, on a
//! connection of its own, and what it finds is told by whoever reads the stream.
//! **Invariant:** nothing is refused for a suspicion, and a server that cannot be asked is no fault.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

use super::Settings;
use super::catalogue::partition_tree;
use super::connection::{Connection, Purpose, Row};
use super::publication::published;
use super::session::ServerVersion;
use crate::change::{ChangeClass, ColumnChange};
use crate::error::Fault;

/// So many looks may wait for the stream's reader.
const WAITING: usize = 64;

/// A table as the catalogue had it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sight {
    /// Where the server's log ended then.
    pub(super) position: String,
    /// The files of the table or its partitions, by their numbers.
    files: BTreeMap<u32, u32>,
    /// `pg_class.relpersistence`.
    persistence: String,
    columns: Vec<SeenColumn>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SeenColumn {
    attnum: i16,
    name: String,
    type_oid: u32,
    typmod: i32,
    not_null: bool,
    /// Rows from before it was added take its value from the catalogue, until they are written anew.
    #[serde(default)]
    has_missing: bool,
    /// The transaction that wrote its row in the catalogue.
    written_by: u32,
}

/// What was seen of a table that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It looks other than it did.
    Other {
        /// Its number.
        oid: u32,
        /// How it looks.
        sight: Sight,
        /// What is suspected to have happened to its rows, and behind which position.
        suspicion: Option<(Vec<ColumnChange>, String)>,
    },
    /// It is not captured any more.
    Gone(Departure),
}

/// A table that was captured, and is not under the name that it has now, or is not there any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Departure {
    /// Its number.
    pub(super) oid: u32,
    /// Schema and name of now; `None`: it was dropped.
    pub(super) now: Option<(String, String)>,
    /// The publication carries it under that name: the stream tells of it with its next row.
    pub(super) is_published: bool,
    /// Where it was seen last as it was before.
    pub(super) after: String,
    /// Where it was looked for.
    pub(super) position: String,
}

/// Looks until it is dropped.
#[derive(Debug)]
pub(super) struct Probe {
    looks: mpsc::Receiver<Look>,
    join: Option<JoinHandle<()>>,
}

impl Probe {
    /// Begins with what was seen before, if it is wanted.
    pub(super) fn start(settings: &Arc<Settings>, seen: HashMap<u32, Sight>) -> Self {
        let (sender, looks) = mpsc::channel(WAITING);
        let is_wanted = !settings.probe_interval.is_zero() && !settings.ddl.takes_notes();
        let join = is_wanted.then(|| {
            let watcher = Watcher {
                settings: Arc::clone(settings),
                seen,
                sender,
                connection: None,
                is_failing: false,
            };
            tokio::spawn(watcher.run().in_current_span())
        });
        Self { looks, join }
    }

    /// Waits for a table that looks other than it did. Cancel-safe.
    pub(super) async fn next(&mut self) -> Look {
        match self.looks.recv().await {
            Some(look) => look,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if let Some(join) = &self.join {
            join.abort();
        }
    }
}

#[derive(Debug)]
struct Watcher {
    settings: Arc<Settings>,
    seen: HashMap<u32, Sight>,
    sender: mpsc::Sender<Look>,
    connection: Option<Connection>,
    /// It failed when it was tried last.
    is_failing: bool,
}

impl Watcher {
    async fn run(mut self) {
        loop {
            match self.look().await {
                Ok(looks) => {
                    self.is_failing = false;
                    for look in looks {
                        if self.sender.send(look).await.is_err() {
                            return;
                        }
                    }
                }
                Err(fault) => {
                    self.connection = None;
                    if !std::mem::replace(&mut self.is_failing, true) {
                        tracing::warn!(
                            error = %fault,
                            "the catalogue cannot be looked at for rewrites; it is tried again"
                        );
                    }
                }
            }
            tokio::time::sleep(self.settings.probe_interval).await;
        }
    }

    async fn look(&mut self) -> Result<Vec<Look>, Fault> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let new = Connection::open(&self.settings.connection, Purpose::Control).await?;
                none.insert(new)
            }
        };
        let sql = query(&self.settings.publication_name, connection.version());
        let rows = connection.query("looking for rewritten tables", &sql).await?;
        let mut looks = Vec::new();
        let mut missing: Vec<u32> = self.seen.keys().copied().collect();
        for row in &rows {
            if !self.settings.tables.captures(row.text(1)?, row.text(2)?) {
                continue;
            }
            let (oid, sight) = (row.parse_as(0)?, sight_of(row)?);
            missing.retain(|other| *other != oid);
            let before = self.seen.get(&oid);
            if before.is_some_and(|before| before.looks_like(&sight)) {
                continue;
            }
            let suspicion = before.and_then(|before| {
                let found = suspect(before, &sight);
                (!found.is_empty()).then(|| (found, before.position.clone()))
            });
            self.seen.insert(oid, sight.clone());
            looks.push(Look::Other { oid, sight, suspicion });
        }
        if !missing.is_empty() {
            missing.sort_unstable();
            let version = connection.version();
            let sql = departures(&self.settings.publication_name, version, &missing);
            let rows = connection.query("looking for tables by their numbers", &sql).await?;
            for row in &rows {
                looks.extend(self.departed(row)?.map(Look::Gone));
            }
        }
        Ok(looks)
    }

    /// A table that was seen before and is not listed any more.
    fn departed(&mut self, row: &Row) -> Result<Option<Departure>, Fault> {
        let oid = row.parse_as(0)?;
        let now = match (row.optional(1)?, row.optional(2)?) {
            // whoever looks after the publication tells of a table that fell out of it
            (Some(schema), Some(name)) if self.settings.tables.captures(schema, name) => {
                return Ok(None);
            }
            (Some(schema), Some(name)) => Some((schema.to_owned(), name.to_owned())),
            _ => None,
        };
        let is_published = row.is_true(4)?;
        let position = row.text(3)?.to_owned();
        let after = self.seen.remove(&oid).map(|before| before.position);
        Ok(after.map(|after| Departure { oid, now, is_published, after, position }))
    }
}

/// What became of tables with these numbers.
fn departures(publication: &str, version: ServerVersion, oids: &[u32]) -> String {
    let numbers: Vec<String> = oids.iter().map(ToString::to_string).collect();
    format!(
        "SELECT o.oid, n.nspname, c.relname, pg_current_wal_insert_lsn()::text, \
         EXISTS (SELECT FROM ({}) p WHERE p.oid = o.oid) \
         FROM unnest('{{{}}}'::oid[]) o (oid) LEFT JOIN pg_class c ON c.oid = o.oid \
         LEFT JOIN pg_namespace n ON n.oid = c.relnamespace ORDER BY o.oid",
        published(publication, version),
        numbers.join(",")
    )
}

fn query(publication: &str, version: ServerVersion) -> String {
    let tree = partition_tree("c.oid");
    format!(
        "SELECT c.oid, n.nspname, c.relname, pg_current_wal_insert_lsn()::text, c.relpersistence, \
         (SELECT json_object_agg(f.oid, f.relfilenode::int8) FROM pg_class f WHERE f.relfilenode <> 0 \
          AND (f.oid = c.oid OR c.relkind = 'p' \
               AND f.oid IN ({tree}))), \
         (SELECT json_agg(json_build_object('attnum', a.attnum, 'name', a.attname, \
          'type_oid', a.atttypid::int8, 'typmod', a.atttypmod, 'not_null', a.attnotnull, \
          'has_missing', a.atthasmissing, \
          'written_by', a.xmin::text::int8) ORDER BY a.attnum) FROM pg_attribute a \
          WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) \
         FROM ({}) p JOIN pg_class c ON c.oid = p.oid JOIN pg_namespace n ON n.oid = c.relnamespace",
        published(publication, version)
    )
}

fn sight_of(row: &Row) -> Result<Sight, Fault> {
    let malformed = |error: serde_json::Error| {
        crate::error::Code::SourceQuery
            .fault("the server's answer about a table is not of the form asked for")
            .caused_by(&error)
    };
    let files = row.optional(5)?.map_or_else(|| Ok(BTreeMap::new()), serde_json::from_str);
    let columns = row.optional(6)?.map_or_else(|| Ok(Vec::new()), serde_json::from_str);
    Ok(Sight {
        position: row.text(3)?.to_owned(),
        persistence: row.text(4)?.to_owned(),
        files: files.map_err(malformed)?,
        columns: columns.map_err(malformed)?,
    })
}

/// A sight of more columns is not stored: the state of its table is large without it.
const MOST_COLUMNS: usize = 500;

impl Sight {
    /// The sight, if it may be stored.
    pub(super) fn stored(&self) -> Option<Self> {
        (self.columns.len() <= MOST_COLUMNS).then(|| self.clone())
    }

    /// Whether nothing changed but the time.
    fn looks_like(&self, other: &Self) -> bool {
        self.files == other.files
            && self.persistence == other.persistence
            && self.columns == other.columns
    }
}

/// What may have happened to rows between two sights of a table. What the stream's next
/// description shows by itself is left to it.
fn suspect(before: &Sight, now: &Sight) -> Vec<ColumnChange> {
    let is_rewritten = before.persistence == now.persistence
        && now.files.iter().any(|(oid, file)| before.files.get(oid).is_some_and(|old| old != file));
    let mut found = Vec::new();
    for column in &now.columns {
        let Some(old) = before.columns.iter().find(|old| old.name == column.name) else { continue };
        let change = |kind, from: Option<String>, to: Option<String>, class| ColumnChange {
            column: column.name.clone(),
            kind,
            from,
            to,
            class,
        };
        if old.attnum != column.attnum {
            let (from, to) = (old.attnum.to_string(), column.attnum.to_string());
            found.push(change("replaced", Some(from), Some(to), ChangeClass::Destructive));
            continue;
        }
        let shape = |one: &SeenColumn| (one.type_oid, one.typmod, one.not_null, one.has_missing);
        let is_explained = shape(old) != shape(column);
        if is_rewritten && old.written_by != column.written_by && !is_explained {
            found.push(change("rewritten", None, None, ChangeClass::Rewriting));
        }
    }
    if is_rewritten && found.is_empty() {
        tracing::info!(
            "a table has a new file and no column was defined anew: VACUUM FULL, CLUSTER or TRUNCATE"
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight() -> Sight {
        let column = |attnum, name: &str| SeenColumn {
            attnum,
            name: name.to_owned(),
            type_oid: 23,
            typmod: -1,
            not_null: false,
            has_missing: false,
            written_by: 700,
        };
        Sight {
            position: "0/1".to_owned(),
            files: BTreeMap::from([(7, 70), (8, 80)]),
            persistence: "p".to_owned(),
            columns: vec![column(1, "id"), column(2, "v")],
        }
    }

    #[track_caller]
    fn check(alter: impl FnOnce(&mut Sight), expect: &[&str]) {
        let mut now = sight();
        alter(&mut now);
        let found: Vec<String> = suspect(&sight(), &now)
            .iter()
            .map(|change| format!("{} {}", change.kind, change.column))
            .collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn only_a_new_file_together_with_a_column_that_was_touched_is_suspected() {
        let touch = |sight: &mut Sight| sight.columns[1].written_by = 701;
        check(|_| {}, &[]);
        // VACUUM FULL, CLUSTER, TRUNCATE
        check(
            |now| {
                now.files.insert(7, 71);
            },
            &[],
        );
        // SET STATISTICS
        check(touch, &[]);
        // USING
        check(
            |now| {
                now.files.insert(8, 81);
                touch(now);
            },
            &["rewritten v"],
        );
        // SET NOT NULL and VACUUM FULL
        check(
            |now| {
                now.files.insert(7, 71);
                touch(now);
                now.columns[1].not_null = true;
            },
            &[],
        );
        // a table that had a column added with a default, written anew for another's sake
        check(
            |now| {
                now.files.insert(7, 71);
                touch(now);
                now.columns[1].has_missing = true;
            },
            &[],
        );
        // the stream's next description says it
        check(
            |now| {
                now.files.insert(7, 71);
                touch(now);
                now.columns[1].typmod = 9;
            },
            &[],
        );
        // SET UNLOGGED
        check(
            |now| {
                now.files.insert(7, 71);
                touch(now);
                now.persistence = "u".to_owned();
            },
            &[],
        );
        // a partition that came
        check(
            |now| {
                now.files.insert(9, 90);
                touch(now);
            },
            &[],
        );
    }

    #[test]
    fn a_column_that_went_and_came_under_its_name_is_an_alarm() {
        check(|now| now.columns[1].attnum = 3, &["replaced v"]);
        check(|now| now.columns[1].name = "w".to_owned(), &[]);
    }
}

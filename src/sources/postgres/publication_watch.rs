//! Looks after the publication while the stream runs.
//!
//! The server follows an altered publication without a word: rows of a table that was dropped from
//! it, or hidden by a filter, simply do not come any more. Asks the catalogue now and then, on a
//! connection of its own. Looks after the event triggers too, where they are relied upon.
//! **Invariants:** a publication that hides something of what it carried ends the stream with a code;
//! one that cannot be asked about does not, nor does a table that was made meanwhile.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tracing::Instrument as _;

use super::Settings;
use super::capture::select;
use super::catalogue::{RelationEntry, list_relations};
use super::connection::{Connection, Purpose};
use super::ddl;
use super::driver::combine;
use super::publication::{
    Member, PublicationFacts, PublishedName, altered, check_coverage, check_definition,
    read_publication,
};
use super::pushdown;
use super::row_filter::{Pushdown, renamed};
use super::tables::{WatchedLabels, redefined};
use crate::error::{Code, Fault};

/// How often the publication is looked at.
const INTERVAL: Duration = Duration::from_secs(10);

/// Looks after the publication until it is dropped.
#[derive(Debug)]
pub(super) struct PublicationWatch {
    join: JoinHandle<Fault>,
}

impl PublicationWatch {
    /// Begins with a publication that was found in order.
    pub(super) fn start(settings: Arc<Settings>, seen: Seen, labels: WatchedLabels) -> Self {
        let look = Look { settings, seen, labels, connection: None };
        Self { join: tokio::spawn(look.run().in_current_span()) }
    }

    /// Ends only if the publication hides something.
    pub(super) async fn changed(&mut self) -> Fault {
        match (&mut self.join).await {
            Ok(fault) => fault,
            Err(error) => Code::Internal.fault("the publication's watch ended").caused_by(&error),
        }
    }
}

impl Drop for PublicationWatch {
    fn drop(&mut self) {
        self.join.abort();
    }
}

/// The publication as it was found in order.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// What it says, and which rows of the catalogue say so.
    pub(super) fingerprint: u64,
    /// See [`PublicationFacts::stamp`].
    pub(super) stamp: u64,
    /// The relations under whose names rows come.
    pub(super) names: Vec<PublishedName>,
    /// What it lists.
    pub(super) members: Vec<Member>,
}

impl Seen {
    /// Whether it carried a table, perhaps under another name.
    fn had(&self, table: &RelationEntry) -> bool {
        self.members.iter().any(|member| member.oid == table.oid)
            || self.names.iter().any(|name| name.is_of(table))
    }
}

#[derive(Debug)]
struct Look {
    settings: Arc<Settings>,
    seen: Seen,
    /// Labels that row filters depend on.
    labels: WatchedLabels,
    connection: Option<Connection>,
}

impl Look {
    async fn run(mut self) -> Fault {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let Some(mut connection) = self.connect().await else { continue };
            match self.look(&mut connection).await {
                Ok(()) => self.connection = Some(connection),
                Err(fault)
                    if matches!(
                        fault.code(),
                        Code::PublicationChanged
                            | Code::FilterPushdownDrift
                            | Code::FilterChanged
                            | Code::DdlCapture
                    ) =>
                {
                    return fault;
                }
                Err(fault) => {
                    tracing::debug!(error = %fault, "the publication cannot be looked at now");
                }
            }
        }
    }

    async fn connect(&mut self) -> Option<Connection> {
        match self.connection.take() {
            Some(connection) => Some(connection),
            None => Connection::open(&self.settings.connection, Purpose::Control).await.ok(),
        }
    }

    async fn look(&mut self, connection: &mut Connection) -> Result<(), Fault> {
        let settings = &self.settings;
        if settings.ddl.takes_notes() {
            ddl::require(connection, &settings.connection.user).await?;
        }
        refuse_renamed_labels(connection, &self.labels).await?;
        let name = &settings.publication_name;
        let Some(facts) = read_publication(connection, name).await? else {
            return Err(Code::PublicationChanged
                .fault(format!(
                    "the publication \"{name}\" was dropped while its changes were read"
                ))
                .hint(
                    "What was written since is lost to the stream: drop the slot, delete the \
                     connector's offset and snapshot anew.",
                ));
        };
        self.refuse_replaced(&facts)?;
        let (fingerprint, stamp) = (facts.fingerprint(), facts.stamp());
        let is_same = fingerprint == self.seen.fingerprint;
        if is_same && stamp != self.seen.stamp {
            return Err(altered(name));
        }
        if is_same && facts.names == self.seen.names {
            return Ok(());
        }
        let relations = list_relations(connection).await?;
        self.refuse_lost(&facts, &relations)?;
        if is_same {
            self.seen.names = facts.names;
            return Ok(());
        }
        let selected = select(&relations, &settings.tables, settings.publish_via_partition_root);
        // tables that are gone from the catalogue are another matter
        let Ok(mut selection) = selected else { return Ok(()) };
        // a predicate that does not fit its table any more is the stream's matter
        let unfit = pushdown::want(connection, settings, &mut selection, Some(&facts)).await?;
        if !unfit.is_empty() && settings.row_filters.pushdown == Pushdown::Publication {
            return Ok(());
        }
        // a table that was made meanwhile joins when the task starts the next time
        selection.captured.retain(|table| self.seen.had(table));
        let mut faults = check_definition(settings, &facts, &selection);
        faults.extend(check_coverage(settings, &facts, &selection));
        combine(&faults)?;
        let PublicationFacts { names, members, .. } = facts;
        self.seen = Seen { fingerprint, stamp, names, members };
        Ok(())
    }

    /// A row filter that was taken out and put back between two looks shows by its number only.
    fn refuse_replaced(&self, facts: &PublicationFacts) -> Result<(), Fault> {
        let filters = &self.settings.row_filters;
        let replaced = facts.members.iter().find(|now| {
            filters.is_pushed(&now.namespace, &now.name)
                && self.seen.members.iter().any(|before| {
                    before.oid == now.oid
                        && before.entry != now.entry
                        && before.row_filter == now.row_filter
                })
        });
        replaced.map_or(Ok(()), |now| Err(pushdown::replaced(&now.namespace, &now.name)))
    }

    /// A captured table can fall out of a publication that was not altered: a partition that is
    /// detached, a table that is moved out of a published schema. It goes on living unseen.
    fn refuse_lost(
        &self,
        facts: &PublicationFacts,
        relations: &[RelationEntry],
    ) -> Result<(), Fault> {
        let lost = relations.iter().find(|relation| {
            let is = |name: &PublishedName| name.is_of(relation);
            self.seen.names.iter().any(is)
                && !facts.names.iter().any(is)
                && self.settings.tables.captures(&relation.namespace, &relation.name)
        });
        let Some(table) = lost else { return Ok(()) };
        let name = table.qualified_name();
        let publication = &self.settings.publication_name;
        Err(Code::PublicationChanged
            .fault(format!(
                "the publication \"{publication}\" does not carry \"{name}\" any more \
                 (a partition that was detached?); what is written to it from now on is not in the stream"
            ))
            .at_table(name)
            .hint(
                "Exclude the table if it is not wanted any more; or add it to the publication, \
                 and restart the task: what was written meanwhile is not in the stream.",
            ))
    }
}

/// A label that changed its name shows in no description and, if another one has its name by now, in
/// no row. One that is gone went with its type, which the stream shows.
async fn refuse_renamed_labels(
    connection: &mut Connection,
    labels: &WatchedLabels,
) -> Result<(), Fault> {
    let watched = labels.all();
    if watched.is_empty() {
        return Ok(());
    }
    let numbers: Vec<String> = watched.iter().map(|one| one.oid.to_string()).collect();
    let sql = format!(
        "SELECT oid, enumlabel FROM pg_catalog.pg_enum WHERE oid = ANY ('{{{}}}'::oid[])",
        numbers.join(",")
    );
    let rows = connection.query("looking at the labels of enums", &sql).await?;
    let now = rows.iter().map(|row| Ok((row.parse_as(0)?, row.text(1)?.to_owned())));
    let now: Vec<(u32, String)> = now.collect::<Result<_, Fault>>()?;
    let is_there = |oid: u32| now.iter().any(|(other, _)| *other == oid);
    let told = watched.iter().filter(|one| is_there(one.oid)).find_map(|one| {
        let what = renamed(one.oid, &one.label, &now)?;
        // a publication takes no enums
        Some(redefined(one.has_key, (&one.table, &one.column), &what))
    });
    told.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::postgres::catalogue::RelationKind;

    #[test]
    fn only_a_table_that_was_carried_can_be_missed() {
        let member = Member {
            oid: 7,
            entry: 70,
            namespace: "public".to_owned(),
            name: "t".to_owned(),
            row_filter: None,
            column_list: None,
        };
        let name = |oid, name: &str| {
            let (namespace, name) = ("public".to_owned(), name.to_owned());
            PublishedName { oid, namespace, name }
        };
        let names = vec![name(5, "by_schema")];
        let seen = Seen { names, members: vec![member], ..Seen::default() };
        let had = |oid, name: &str| {
            seen.had(&RelationEntry {
                oid,
                namespace: "public".to_owned(),
                name: name.to_owned(),
                kind: RelationKind::Table,
                is_logged: true,
                partition_of: None,
            })
        };
        assert!(had(7, "renamed"));
        assert!(had(8, "by_schema"));
        assert!(had(5, "renamed_too"));
        assert!(!had(9, "made_meanwhile"));
    }
}

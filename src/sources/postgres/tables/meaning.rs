//! Whether a row filter still means what it meant when rows were published by it.
//!
//! A filter is bound to a table by its name, and to columns by theirs; tables, columns and labels of
//! enums can change their names and types. What the stream's descriptions show is judged there; the
//! rest (columns' numbers, labels) by the catalogue, when the stream begins, with each description,
//! and by whoever looks after the publication. **Invariants:** rows of a table whose filter may mean
//! something else stop the stream, they are not judged; what a filter was applied for is remembered
//! with the table's state.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::super::pushdown;
use super::super::row_filter::{Applied, Described, Pushdown, enum_of};
use super::super::state::TableHistory;
use super::super::wire::Lsn;
use super::filters::{changed_filters, told};
use super::{
    Code, Entry, Fault, RelationDescriptor, RelationId, Services, Stage, TableFacts, TableId,
    Tables, build, type_oids,
};
use crate::sources::postgres::catalogue::{Generated, fetch_names};
use crate::sources::postgres::connection::literal;

/// The labels of enums that row filters depend on, by table.
#[derive(Clone, Debug, Default)]
pub(in crate::sources::postgres) struct WatchedLabels(Arc<Mutex<HashMap<u32, Vec<WatchedLabel>>>>);

/// See [`WatchedLabels`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sources::postgres) struct WatchedLabel {
    /// The table, for people.
    pub(in crate::sources::postgres) table: String,
    /// Its column.
    pub(in crate::sources::postgres) column: String,
    /// The label's number in the catalogue.
    pub(in crate::sources::postgres) oid: u32,
    /// Its name.
    pub(in crate::sources::postgres) label: String,
    /// The table's records have a key.
    pub(in crate::sources::postgres) has_key: bool,
}

impl WatchedLabels {
    /// Those that a filter of a table depends on.
    pub(super) fn set(&self, descriptor: &RelationDescriptor, applied: &Applied, has_key: bool) {
        let table = descriptor.qualified_name();
        let labels = applied.labels().map(|(column, (oid, label))| WatchedLabel {
            table: table.clone(),
            column: column.to_owned(),
            oid: *oid,
            label: label.clone(),
            has_key,
        });
        let labels: Vec<_> = labels.collect();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(descriptor.oid.0, labels);
    }

    /// All of them.
    pub(in crate::sources::postgres) fn all(&self) -> Vec<WatchedLabel> {
        let tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tables.values().flatten().cloned().collect()
    }
}

/// The fault of a filter of which a column is another one than it was.
pub(in crate::sources::postgres) fn redefined(
    can_resnapshot: bool,
    (table, column): (&str, &str),
    what: &str,
) -> Fault {
    let or_compared = if can_resnapshot {
        ", or {\"mode\": \"resnapshot\"} to compare what readers hold with the table"
    } else {
        ""
    };
    Code::FilterChanged
        .fault(format!("the row filter of \"{table}\" may mean something else now: of its column {column}, {what}"))
        .hint(format!(
            "Undo it, or correct row.filter.{table}; then, or if the filter is right as it is: PUT \
             /connectors/{{name}}/stop, PUT /connectors/{{name}}/row-filters with {{\"mode\": \
             \"from_now\"}}{or_compared}, and PUT /connectors/{{name}}/resume."
        ))
        .at_table(table)
        .at_column(column)
}

/// The fault of a filtered table that comes under another name.
fn renamed(history: &TableHistory, filter: &str, now: &str) -> Fault {
    let before = history.newest().map_or_else(String::new, |one| one.descriptor.qualified_name());
    let other = if history.pushed.is_some() {
        "Another filter can be applied when that is done.".to_owned()
    } else {
        "For another filter, or none: set it, PUT /connectors/{name}/stop, PUT \
         /connectors/{name}/row-filters with {\"mode\": \"from_now\"}, PUT \
         /connectors/{name}/resume."
            .to_owned()
    };
    Code::FilterChanged
        .fault(format!(
            "\"{before}\" is called \"{now}\" now; it was published by a row filter, {}, and there is \
             no such row.filter.{now}",
            shortened(filter)
        ))
        .hint(format!(
            "Rename the key row.filter.{before} to row.filter.{now}. {other}"
        ))
        .at_table(now)
}

/// Told once for each description of which that is so.
fn warn_of_mixed(table: &str) {
    tracing::warn!(
        table,
        "what was written before the row filter was applied is judged by what its columns and labels \
         were called then: with \"resnapshot\" all rows are told anew behind that; behind \
         \"from_now\" rows stay as they were told until there is one"
    );
}

/// The first version whose publications have column lists.
const FIRST_WITH_LISTS: u32 = 15;

/// The most that is shown of a predicate.
const SHOWN: usize = 120;

/// A predicate, or its beginning.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => format!("({text})"),
        Some((end, _)) => {
            let beginning = text.get(..end).unwrap_or_default();
            format!("({beginning} … [{} bytes])", text.len())
        }
    }
}

impl Tables {
    /// Refuses a row filter that changed since rows were published.
    ///
    /// # Errors
    /// `FILTER-CHANGED` names the tables; or the catalogue cannot be asked.
    pub(in crate::sources::postgres) async fn refuse_changed_filters(
        &mut self,
        read: Option<Lsn>,
    ) -> Result<(), Fault> {
        let is_filtered = |history: &TableHistory| history.filter.is_some();
        if self.settings.row_filters.is_empty() && !self.histories.values().any(is_filtered) {
            return Ok(());
        }
        let oids: Vec<u32> = self.histories.keys().copied().collect();
        self.connect().await?;
        let names = match &mut self.catalogue {
            Some(connection) => fetch_names(connection, &oids).await?,
            None => HashMap::new(),
        };
        let changed = changed_filters(&self.settings, self.histories.values(), &|oid| {
            names.get(&oid).cloned()
        });
        let Some(first) = changed.first() else { return Ok(()) };
        let history = first.history;
        if let (Some(now), Some(filter)) = (&first.renamed, &history.filter) {
            return Err(renamed(history, filter, now));
        }
        told(&self.settings, &changed, read).map_or(Ok(()), Err)
    }

    /// Whether rows of a description are judged by a filter, as far as that is known before it is
    /// looked at.
    pub(super) fn has_filter(&self, descriptor: &RelationDescriptor) -> bool {
        !matches!(self.filter_of(descriptor), Ok(None))
    }

    /// The filter by which rows of a description are judged.
    ///
    /// # Errors
    /// `FILTER-CHANGED`: the table had one, and comes under a name that has not.
    pub(super) fn filter_of(&self, descriptor: &RelationDescriptor) -> Result<Option<&str>, Fault> {
        let RelationDescriptor { oid, namespace, name, .. } = descriptor;
        let configured = self.settings.row_filters.of(namespace, name);
        let Some(history) = self.histories.get(&oid.0) else { return Ok(configured) };
        match history.filter.as_deref() {
            Some(filter) if configured != Some(filter) => {
                if !history.was_named(namespace, name) {
                    return Err(renamed(history, filter, &descriptor.qualified_name()));
                }
                // the key has the table's new name, and rows of before still come
                Ok(configured.or(Some(filter)))
            }
            _ => Ok(configured),
        }
    }

    /// Keeps what the catalogue says of a table with a filter.
    pub(super) fn note_latest(&mut self, facts: &TableFacts) {
        if !self.settings.row_filters.is_empty() {
            self.latest.insert(facts.oid, facts.clone());
        }
    }

    /// Sees that the columns of a table's filter are what they were when it was applied.
    ///
    /// # Errors
    /// `FILTER-CHANGED`.
    pub(super) fn refuse_redefined(
        &self,
        described: Described<'_>,
        has_key: bool,
    ) -> Result<(), Fault> {
        let descriptor = described.descriptor;
        let oid = descriptor.oid.0;
        let applied = self.histories.get(&oid).and_then(|history| history.applied.as_ref());
        let Some(applied) = applied else { return Ok(()) };
        let latest = self.latest.get(&oid);
        match applied.redefined(described, latest, &self.labels, &self.types) {
            None => Ok(()),
            Some((column, what)) => {
                let pushdown = self.settings.row_filters.pushdown;
                let can_resnapshot = has_key && pushdown == Pushdown::None;
                let table = descriptor.qualified_name();
                Err(redefined(can_resnapshot, (&table, &column), &what))
            }
        }
    }

    /// Fetches the labels of a filtered table's enums, as they are now.
    ///
    /// # Errors
    /// The catalogue cannot be asked.
    pub(super) async fn fetch_labels(
        &mut self,
        descriptor: &RelationDescriptor,
    ) -> Result<(), Fault> {
        if !self.has_filter(descriptor) && self.former_of(descriptor).is_none() {
            return Ok(());
        }
        let oids = type_oids(descriptor);
        let mut enums: Vec<u32> =
            oids.iter().filter_map(|oid| enum_of(*oid, &self.types)).collect();
        enums.sort_unstable();
        enums.dedup();
        if enums.is_empty() {
            return Ok(());
        }
        self.connect().await?;
        let Some(connection) = &mut self.catalogue else { return Ok(()) };
        let numbers: Vec<String> = enums.iter().map(ToString::to_string).collect();
        let sql = format!(
            "SELECT enumtypid, oid, enumlabel FROM pg_catalog.pg_enum \
             WHERE enumtypid = ANY ('{{{}}}'::oid[]) ORDER BY enumtypid, enumsortorder",
            numbers.join(",")
        );
        let rows = connection.query("reading the labels of enums", &sql).await;
        if rows.is_err() {
            self.catalogue = None;
        }
        let rows = rows?;
        enums.iter().for_each(|oid| drop(self.labels.insert(*oid, Vec::new())));
        for row in rows {
            let label = (row.parse_as(1)?, row.text(2)?.to_owned());
            self.labels.entry(row.parse_as(0)?).or_default().push(label);
        }
        Ok(())
    }

    /// A description was repeated: what it does not show may be another, and the filter with it.
    ///
    /// # Errors
    /// The catalogue cannot be asked.
    pub(super) async fn recheck_filter(&mut self, relation: RelationId) -> Result<(), Fault> {
        let newest = self.entries.iter().rposition(|one| one.descriptor.oid == relation);
        let Some(index) = newest.filter(|index| self.is_filtered(*index)) else { return Ok(()) };
        let now = self.fetch_facts(relation.0).await?;
        let descriptor = self.entry(index)?.descriptor.clone();
        self.fetch_labels(&descriptor).await?;
        let entry = self.entry_mut(index)?;
        if let (Some(facts), Some(now)) = (&mut entry.facts, &now) {
            facts.take_text_orders(now);
        }
        let entry = self.entry(index)?;
        let filter = self.bound(entry);
        self.entry_mut(index)?.filter = filter;
        Ok(())
    }

    /// Looks, before the stream begins, at what no description shows, and learns what filters are
    /// applied for where that is not known. Answers whether anything has to be stored that was not.
    ///
    /// # Errors
    /// `FILTER-CHANGED`, or the catalogue cannot be asked.
    pub(in crate::sources::postgres) async fn look_at_filters<S: Services>(
        &mut self,
        generated: bool,
        stage: &mut Stage<S>,
    ) -> Result<bool, Fault> {
        let mut is_other = false;
        let mut written = None;
        let filtered: Vec<(RelationDescriptor, u64)> = self
            .histories
            .values()
            .filter(|history| history.filter.is_some())
            .filter_map(|history| history.newest())
            .map(|newest| (newest.descriptor.clone(), newest.epoch))
            .collect();
        for (newest, epoch) in filtered {
            let oid = newest.oid.0;
            let Some(facts) = self.fetch_facts(oid).await? else { continue };
            let is_known = self.histories.get(&oid).is_some_and(|one| one.applied.is_some());
            // of what is applied from here on, the catalogue says what it is
            let descriptor = if is_known { newest } else { facts.descriptor(generated) };
            self.fetch_types(&descriptor).await?;
            self.fetch_labels(&descriptor).await?;
            let rules = &self.settings.key_rules;
            let version =
                build(&descriptor, Some(&facts), &self.types, &|_| None, epoch, rules).version;
            match self.bind(&descriptor, &version, Some(&facts), Lsn(u64::MAX)) {
                Some(Ok(filtered)) if !is_known => {
                    let until = match written {
                        Some(until) => until,
                        None => *written.insert(self.written().await?),
                    };
                    let applied = filtered.bound.applied.through(epoch, until);
                    self.apply_anew((oid, applied), &facts, stage)?;
                    is_other = true;
                }
                Some(Err(fault)) if fault.code() == Code::FilterChanged => return Err(fault),
                // what does not fit is told with the first row
                _ => {}
            }
        }
        self.forget_mixed();
        Ok(is_other)
    }

    /// Remembers what a filter was applied for. What was written before, and is not read yet, is
    /// judged by what columns were then: if that was another filter, the topics are mixed.
    fn apply_anew<S: Services>(
        &mut self,
        (oid, applied): (u32, Applied),
        now: &TableFacts,
        stage: &mut Stage<S>,
    ) -> Result<(), Fault> {
        let Some(history) = self.histories.get_mut(&oid) else { return Ok(()) };
        let is_alike = history.newest().is_some_and(|then| {
            applied.judges_alike((&then.descriptor, then.facts.as_ref()), Some(now))
                && applied.labels_are_alike(&then.types, &self.labels, &self.types)
        });
        if !is_alike {
            warn_of_mixed(&now.qualified_name());
            history.is_mixed = true;
        }
        history.applied = Some(applied);
        stage.remember(history.encode()?);
        Ok(())
    }

    /// Up to where the server has written its log.
    async fn written(&mut self) -> Result<Lsn, Fault> {
        self.connect().await?;
        match &mut self.catalogue {
            Some(connection) => pushdown::position(connection).await,
            None => Ok(Lsn::ZERO),
        }
    }

    /// What is remembered of a version's filter with it. One that cannot be had leaves what was
    /// remembered as it was: it still has to be applied on purpose.
    pub(super) fn remember_filter(&self, entry: &Entry, history: &mut TableHistory) {
        let TableId { namespace, name } = &entry.version.table;
        let configured = || self.settings.row_filters.of(namespace, name).map(str::to_owned);
        match &entry.filter {
            None => (history.filter, history.applied) = (None, None),
            Some(Ok(filter)) => {
                history.filter =
                    self.filter_of(&entry.descriptor).ok().flatten().map(str::to_owned);
                let (descriptor, at) = (&entry.descriptor, entry.place.commit);
                let described = Described { descriptor, epoch: entry.version.epoch, at };
                let known = history.applied.take();
                let known = known.and_then(|one| one.knowing(described.epoch, described.at));
                let latest = self.latest.get(&descriptor.oid.0);
                if let Some(known) = &known
                    && !known.judges_alike((descriptor, entry.facts.as_ref()), latest)
                {
                    warn_of_mixed(&descriptor.qualified_name());
                    history.is_mixed = true;
                }
                history.applied = Some(known.unwrap_or_else(|| filter.bound.applied.clone()));
            }
            Some(Err(_)) => history.filter = history.filter.take().or_else(configured),
        }
    }

    /// A column that is not in a description any more while the table still has it may be hidden by
    /// a column list of the publication; the publication says whether it is.
    ///
    /// # Errors
    /// `PUBLICATION-CHANGED` names the column; or the catalogue cannot be asked.
    pub(super) async fn refuse_column_list(
        &mut self,
        descriptor: &RelationDescriptor,
        now: Option<&TableFacts>,
    ) -> Result<(), Fault> {
        let Some(column) = now.and_then(|now| self.hidden(descriptor, now)) else { return Ok(()) };
        let publication = self.settings.publication_name.clone();
        self.connect().await?;
        let Some(connection) = &mut self.catalogue else { return Ok(()) };
        if connection.version().major() < FIRST_WITH_LISTS {
            return Ok(());
        }
        let oid = descriptor.oid.0;
        let sql = format!(
            "SELECT FROM pg_catalog.pg_publication_rel m \
             JOIN pg_catalog.pg_publication p ON p.oid = m.prpubid WHERE p.pubname = {} \
             AND m.prattrs IS NOT NULL AND (m.prrelid = {oid} \
             OR m.prrelid IN (SELECT relid FROM pg_catalog.pg_partition_ancestors({oid})))",
            literal(&publication)
        );
        let lists = connection.query("asking for column lists of the publication", &sql).await;
        if lists.is_err() {
            self.catalogue = None;
        }
        let table = descriptor.qualified_name();
        if lists?.is_empty() {
            tracing::warn!(
                table,
                column,
                "a column is not in the stream here, and the table has it: the publication had a \
                 column list for a while"
            );
            return Ok(());
        }
        Err(Code::PublicationChanged
            .fault(format!(
                "the publication \"{publication}\" has a column list for \"{table}\" since here: the \
                 column {column} is in the table, and is not sent any more"
            ))
            .hint(
                "Take the column list out of the publication and restart the task. What was written \
                 with it comes without the column: POST /connectors/{name}/snapshots reads the table \
                 anew.",
            )
            .at_column(column)
            .at_table(table))
    }

    /// The first column that a table had in the stream and has still, and a description has not.
    fn hidden(&self, descriptor: &RelationDescriptor, now: &TableFacts) -> Option<String> {
        let before = self.histories.get(&descriptor.oid.0)?.newest()?;
        let columns = &before.descriptor.columns;
        // under another name a column is another one of as many
        if descriptor.columns.len() >= columns.len() {
            return None;
        }
        let facts = before.facts.as_ref()?;
        let is_described = |name: &str| descriptor.columns.iter().any(|column| column.name == name);
        let hidden = columns.iter().find(|column| {
            let known = facts.column(&column.name).map(|known| known.attnum);
            !is_described(&column.name)
                && now
                    .column(&column.name)
                    .is_some_and(|now| now.generated == Generated::No && known == Some(now.attnum))
        });
        hidden.map(|column| column.name.clone())
    }
}

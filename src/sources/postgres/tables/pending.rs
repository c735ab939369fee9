//! Row filters that were others before, while rows that moved by the change are looked for.
//!
//! Which rows of then may have been published is asked of the former filter, as long as it means what
//! it meant: by its columns' numbers, by its labels' numbers, under the table's name of then.
//! **Invariants:** where that is not known, every row may have been published; a table that is not
//! there under its name any more stops the stream if its topic may hold rows that are out.

use super::super::incremental::{Aim, FormerFilter, TableWork, Work};
use super::super::row_filter::Described;
use super::super::wire::Lsn;
use super::{RelationDescriptor, TableFacts, Tables};
use crate::error::{Code, Fault};
use crate::sources::postgres::catalogue::fetch_names;
use crate::stage::{Services, Stage};

/// What was published of a table by an earlier filter.
#[derive(Clone, Debug)]
pub(super) struct Former {
    namespace: String,
    name: String,
    oid: Option<u32>,
    what: Was,
}

/// See [`Former`].
#[derive(Clone, Debug)]
enum Was {
    /// Rows of which this is true.
    In(FormerFilter),
    /// Every row may have been.
    Any,
}

impl Former {
    /// Of all tables of which rows are looked for.
    pub(super) fn all(work: &Work) -> Vec<Self> {
        let pending = work.tables().iter().filter(|table| table.is_of_changed_filter());
        pending.map(Self::of).collect()
    }

    fn of(table: &TableWork) -> Self {
        let what = match &table.aim {
            Aim::Refilter(Some(filter)) => Was::In(filter.clone()),
            _ => Was::Any,
        };
        let (namespace, name) = (table.namespace.clone(), table.name.clone());
        Self { namespace, name, oid: table.oid, what }
    }

    fn is_of_table(&self, table: &RelationDescriptor) -> bool {
        match self.oid {
            Some(oid) => oid == table.oid.0,
            None => self.is_of(&table.namespace, &table.name),
        }
    }

    fn is_of(&self, namespace: &str, name: &str) -> bool {
        self.namespace == namespace && self.name == name
    }
}

impl Tables {
    pub(super) fn former_of(&self, descriptor: &RelationDescriptor) -> Option<&Former> {
        let RelationDescriptor { namespace, name, .. } = descriptor;
        self.former_filters.iter().find(|one| one.is_of(namespace, name))
    }

    /// The text of a former filter, if it means at a description what it meant.
    pub(super) fn still_asked<'f>(
        &self,
        former: &'f Former,
        described: Described<'_>,
    ) -> Option<&'f str> {
        let Was::In(FormerFilter { text, applied }) = &former.what else { return None };
        let facts = self.latest.get(&described.descriptor.oid.0);
        let redefined = applied.as_ref()?.redefined(described, facts, &self.labels, &self.types);
        redefined.is_none().then_some(text)
    }

    /// Whether it is known by a former filter (`None`: there was none) which rows of a table, as a
    /// chunk sees it, may have been published.
    ///
    /// # Errors
    /// The catalogue cannot be asked.
    pub(in crate::sources::postgres) async fn can_be_asked(
        &mut self,
        former: Option<&FormerFilter>,
        (facts, generated): (&TableFacts, bool),
    ) -> Result<bool, Fault> {
        // further rows were published, or taken back, by what columns were called in between
        if self.histories.get(&facts.oid).is_some_and(|history| history.is_mixed) {
            return Ok(false);
        }
        let Some(former) = former else { return Ok(true) };
        let Some(applied) = &former.applied else { return Ok(false) };
        let descriptor = facts.descriptor(generated);
        self.fetch_types(&descriptor).await?;
        if applied.has_labels() {
            self.fetch_labels(&descriptor).await?;
        }
        // whatever version that is, it is a later one, and of now
        let described = Described { descriptor: &descriptor, epoch: u64::MAX, at: Lsn(u64::MAX) };
        let redefined = applied.redefined(described, Some(facts), &self.labels, &self.types);
        Ok(redefined.is_none())
    }

    /// A table's former filter cannot be asked any more: every row may have been published.
    pub(in crate::sources::postgres) fn forget_former(&mut self, table: &TableWork) {
        let TableWork { namespace, name, .. } = table;
        let own = self.former_filters.iter_mut().filter(|one| one.is_of(namespace, name));
        own.for_each(|one| one.what = Was::Any);
        self.rebind(namespace, name);
    }

    /// Of tables whose topics hold rows by more than the former filter, every row may have been
    /// published. Answers whether there is one of which that is new.
    pub(super) fn forget_mixed(&mut self) -> bool {
        let mixed: Vec<&RelationDescriptor> = self
            .histories
            .values()
            .filter(|history| history.is_mixed)
            .filter_map(|history| history.newest().map(|newest| &newest.descriptor))
            .collect();
        let mut is_new = false;
        for former in &mut self.former_filters {
            if mixed.iter().any(|table| former.is_of_table(table)) {
                is_new |= matches!(former.what, Was::In(_));
                former.what = Was::Any;
            }
        }
        is_new
    }

    /// Rows that a changed filter moved are all found.
    pub(in crate::sources::postgres) fn end_refilter(&mut self, namespace: &str, name: &str) {
        self.former_filters.retain(|one| !one.is_of(namespace, name));
        self.rebind(namespace, name);
    }

    /// Refuses rows under another name of a table of which rows are looked for.
    ///
    /// # Errors
    /// `FILTER-CHANGED`.
    pub(super) fn refuse_moved(&self, descriptor: &RelationDescriptor) -> Result<(), Fault> {
        let RelationDescriptor { oid, namespace, name, .. } = descriptor;
        let moved = self.former_filters.iter().find(|one| one.oid == Some(oid.0));
        match moved.filter(|one| !one.is_of(namespace, name)) {
            None => Ok(()),
            Some(one) => {
                let before = format!("{}.{}", one.namespace, one.name);
                Err(self.moved(&before, &descriptor.qualified_name()))
            }
        }
    }

    fn moved(&self, before: &str, now: &str) -> Fault {
        let has_key = before
            .split_once('.')
            .is_some_and(|(schema, name)| self.settings.row_filters.of(schema, name).is_some());
        let key = match has_key {
            true => format!("rename the key row.filter.{before} to row.filter.{now}, "),
            false => String::new(),
        };
        Code::FilterChanged
            .fault(format!(
                "\"{before}\" is called \"{now}\" now, while rows were looked for that a change of its \
                 row filter moved: the topic of {before} may hold rows that are out"
            ))
            .hint(format!(
                "PUT /connectors/{{name}}/stop, {key}PUT /connectors/{{name}}/row-filters with \
                 {{\"mode\": \"from_now\"}}, PUT /connectors/{{name}}/resume: the topic of {before} stays \
                 as it is (delete it if rows that are out may not stay there), and rows come under the \
                 new name from here on; {{\"mode\": \"resnapshot\"}} later tells all of them there."
            ))
            .at_table(now)
    }

    /// Why rows of a table that is not there under its name cannot be looked for: it has another one.
    /// `None`: it is gone, and what was published of it stays as it is.
    ///
    /// # Errors
    /// The catalogue cannot be asked.
    pub(in crate::sources::postgres) async fn moved_away(
        &mut self,
        table: &TableWork,
    ) -> Result<Option<Fault>, Fault> {
        let TableWork { namespace, name, oid, .. } = table;
        let Some(oid) = *oid else { return Ok(None) };
        self.connect().await?;
        let Some(connection) = &mut self.catalogue else { return Ok(None) };
        let names = fetch_names(connection, &[oid]).await;
        if names.is_err() {
            self.catalogue = None;
        }
        let names = names?;
        let now = names.get(&oid).filter(|(schema, other)| (schema, other) != (namespace, name));
        Ok(now.map(|(schema, other)| {
            self.moved(&table.qualified_name(), &format!("{schema}.{other}"))
        }))
    }

    /// Rows that a changed filter moved are not looked for any more: the next time that rows are, all
    /// of them are told.
    ///
    /// # Errors
    /// Only if the program is wrong.
    pub(in crate::sources::postgres) fn give_up_refilter<S: Services>(
        &mut self,
        table: &TableWork,
        stage: &mut Stage<S>,
    ) -> Result<(), Fault> {
        let TableWork { namespace, name, oid, .. } = table;
        for (own, history) in &mut self.histories {
            let is_it = match oid {
                Some(oid) => own == oid,
                None => history.newest().is_some_and(|one| {
                    (&one.descriptor.namespace, &one.descriptor.name) == (namespace, name)
                }),
            };
            if is_it && !history.is_mixed {
                history.is_mixed = true;
                stage.remember(history.encode()?);
            }
        }
        self.end_refilter(namespace, name);
        Ok(())
    }
}

//! `row.filter.*`: which tables have a predicate, and what it is bound to.
//!
//! Read once from the configuration, asked once per table version. Knows no stream. **Invariants:**
//! a filter's text is kept as it was given (without blanks around it), and two texts are the same
//! filter only if they are equal; a predicate is bound only to images that can decide it, or its
//! rows stop.

use std::collections::BTreeMap;

use super::{Applied, Labels, Predicate, Scope, check_syntax, compile};
use crate::change::{BeforeImage, ChangeKind, RowImage, TableVersion};
use crate::error::{Code, Fault};
use crate::filter::{Filter, Stop, Verdict};
use crate::sources::postgres::catalogue::TableFacts;
use crate::sources::postgres::relations::RelationDescriptor;

/// Where rows are judged besides here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pushdown {
    /// Nowhere.
    #[default]
    None,
    /// The server leaves out what the publication's row filter refuses.
    Publication,
}

/// The predicates of a connector's tables.
#[derive(Clone, Debug, Default)]
pub struct RowFilters {
    /// By `schema.table`.
    tables: BTreeMap<String, String>,
    /// `row.filter.pushdown`.
    pub pushdown: Pushdown,
}

impl RowFilters {
    /// Adds the predicate of a table, `schema.table`.
    ///
    /// # Errors
    /// The name or the text is malformed.
    pub fn add(&mut self, table: &str, text: &str) -> Result<(), Fault> {
        if !table
            .split_once('.')
            .is_some_and(|(schema, name)| !schema.is_empty() && !name.is_empty())
        {
            return Err(Code::FilterUnknownTable
                .fault(format!("'{table}' is not of the form schema.table")));
        }
        check_syntax(text)?;
        self.tables.insert(table.to_owned(), text.trim().to_owned());
        Ok(())
    }

    /// Whether no table has one.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Whether there are any, and it is here that rows are told to move by them.
    pub fn are_judged_here(&self) -> bool {
        !self.is_empty() && self.pushdown == Pushdown::None
    }

    /// Whether the publication leaves out rows of a table.
    pub fn is_pushed(&self, namespace: &str, name: &str) -> bool {
        self.pushdown == Pushdown::Publication && self.of(namespace, name).is_some()
    }

    /// All tables that have one, with their predicates.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tables.iter().map(|(table, text)| (table.as_str(), text.as_str()))
    }

    /// A table's predicate.
    pub fn of(&self, namespace: &str, name: &str) -> Option<&str> {
        if self.tables.is_empty() {
            return None;
        }
        self.tables.get(&format!("{namespace}.{name}")).map(String::as_str)
    }

    /// A fingerprint of settings that includes these.
    pub fn mix(&self, fingerprint: u64) -> u64 {
        if self.tables.is_empty() {
            return fingerprint;
        }
        let parts = self.tables.iter().flat_map(|(table, text)| [table, text]);
        parts.fold(fingerprint, |hash, part| {
            // FNV-1a; no text holds the byte 255
            let bytes = part.bytes().chain([u8::MAX]);
            bytes.fold(hash, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            })
        })
    }
}

/// A predicate at work on a table version.
#[derive(Debug)]
pub(in crate::sources::postgres) struct BoundFilter {
    filter: Filter,
    /// The predicate as SQL.
    pub(in crate::sources::postgres) sql: String,
    /// What it depends on.
    pub(in crate::sources::postgres) applied: Applied,
}

impl BoundFilter {
    /// Binds a predicate to a version.
    ///
    /// # Errors
    /// `FILTER-UNSUPPORTED-PREDICATE`.
    pub(in crate::sources::postgres) fn bind(
        text: &str,
        scope: &Scope<'_>,
        (descriptor, labels): (&RelationDescriptor, &Labels),
    ) -> Result<Self, Fault> {
        let predicate = compile(text, scope)?;
        let applied = Applied::of(&predicate, scope, descriptor, labels);
        let Predicate { node, columns, sql } = predicate;
        let identity = match &scope.version.before_image {
            BeforeImage::Key(identity) => identity.clone(),
            BeforeImage::Full | BeforeImage::None => Vec::new(),
        };
        Ok(Self { filter: Filter::new(node, columns, identity), sql, applied })
    }

    /// Rows count as published before a change by another predicate.
    ///
    /// # Errors
    /// `FILTER-UNSUPPORTED-PREDICATE`.
    pub(in crate::sources::postgres) fn with_earlier(
        self,
        text: &str,
        scope: &Scope<'_>,
        described: (&RelationDescriptor, &Labels),
    ) -> Result<Self, Fault> {
        // of what cannot be asked of these columns any more, every row may have been published
        let earlier =
            Self::bind(text, scope, described).or_else(|_| Self::bind("TRUE", scope, described))?;
        Ok(Self { filter: self.filter.with_earlier(earlier.filter), ..self })
    }

    /// What becomes of a change.
    ///
    /// # Errors
    /// A value that decides was not sent, or cannot be understood.
    pub(in crate::sources::postgres) fn judge(
        &self,
        kind: ChangeKind,
        row: &RowImage<'_>,
    ) -> Result<Verdict, Stop> {
        self.filter.judge(kind, row)
    }
}

/// The fault of a change without a verdict.
pub(in crate::sources::postgres) fn stopped(
    stop: Stop,
    version: &TableVersion,
    pushdown: Pushdown,
) -> Fault {
    let name = |index: usize| {
        version.columns.get(index).map_or_else(String::new, |column| column.name.clone())
    };
    let is_unsent = matches!(stop, Stop::Before(_) | Stop::After(_));
    let fault = match stop {
        Stop::Before(column) => Code::FilterBeforeImage
            .fault("the row before the change lacks a column by which it is filtered")
            .at_column(name(column)),
        Stop::After(column) => Code::FilterAfterImage
            .fault("the row after the change lacks a column by which it is filtered")
            .at_column(name(column)),
        Stop::NoImage => Code::ImageInconsistent.fault("a change came without its row"),
        Stop::Cell(error) => error.error.into_fault().at_column(name(error.column)),
    };
    let table = version.table.to_string();
    let fault = if is_unsent { fault.hint(passing(&table, version, pushdown)) } else { fault };
    fault.at_table(table)
}

/// The way past a change that cannot be judged.
fn passing(table: &str, version: &TableVersion, pushdown: Pushdown) -> String {
    let log = format!(
        "What is in the log stays as it was written: ALTER TABLE … REPLICA IDENTITY FULL (on {table} and \
         each of its partitions) helps changes from now on."
    );
    let anew = "Or delete the connector's offsets and snapshot anew.";
    if pushdown == Pushdown::Publication {
        return format!("{log} {anew}");
    }
    // without a key nothing that is out can be deleted
    let mode = if version.key.is_empty() { "from_now" } else { "resnapshot" };
    format!(
        "{log} To pass this one: PUT /connectors/{{name}}/stop, remove row.filter.{table}, PUT \
         /connectors/{{name}}/row-filters with {{\"mode\": \"{mode}\"}}, PUT /connectors/{{name}}/resume; \
         when that is through, put the filter back the same way. Until then readers see rows that the \
         filter hides, and what they have read stays with them. {anew}"
    )
}

/// Whether old and new rows of a table will always tell what a predicate reads: the whole row is
/// sent, or what it reads is part of the identity. Then a change without an old row left it
/// alone, and a key column that is stored out of line comes with an old row.
pub(in crate::sources::postgres) fn images_fault(
    table: &TableFacts,
    columns: &[String],
    version: &TableVersion,
) -> Option<Fault> {
    let identity = table.identity_columns()?;
    let missing = columns.iter().find(|column| !identity.contains(column))?;
    let name = table.qualified_name();
    let of = version.table.to_string();
    let whose = if name == of { String::new() } else { format!(" of \"{of}\"") };
    Some(
        Code::FilterBeforeImage
            .fault(format!(
                "the filter{whose} reads a column that old rows of \"{name}\" do not have, for its \
                 replica identity is {}",
                table.replica_identity.as_str()
            ))
            .at_table(name.clone())
            .at_column(missing.clone())
            .hint(format!("ALTER TABLE {name} REPLICA IDENTITY FULL;")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_its_table_and_its_text() {
        let mut filters = RowFilters::default();
        assert_eq!(filters.mix(7), 7);
        filters.add("public.t", " a = 1 ").expect("a predicate");
        assert_eq!(filters.of("public", "t"), Some("a = 1"));
        assert_eq!(filters.of("public", "u"), None);
        let one = filters.mix(7);
        filters.add("public.t", "a = 2").expect("a predicate");
        assert!(one != 7 && filters.mix(7) != one);
        assert_eq!(filters.add("t", "a = 1").unwrap_err().code(), Code::FilterUnknownTable);
        assert_eq!(filters.add("public.t", "a =").unwrap_err().code(), Code::FilterUnsupported);
    }
}

//! What a predicate's names mean: the columns of one table version, with types and collations.
//!
//! Joins the version with what the catalogue says of it. Asks nobody. **Invariant:** a column whose
//! collation is not known is not compared as text.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sqlparser::ast::{DataType, Ident};

use super::operand::ColumnUse;
use super::sql_type::SqlType;
use crate::change::{CellParser, TableVersion};
use crate::sources::postgres::catalogue::{Generated, TableFacts};
use crate::sources::postgres::values::TypeCatalogue;

/// What equality and order of a column's texts depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextOrder {
    /// Not known, or the column has no texts.
    #[default]
    Unknown,
    /// Bytes (`C`, in a database of UTF-8).
    Bytewise,
    /// Equal texts are equal bytes; the order is a language's.
    Locale,
    /// Texts of other bytes can be equal (non-deterministic).
    Loose,
}

/// See the module.
pub(in crate::sources::postgres) struct Scope<'a> {
    pub(in crate::sources::postgres) version: &'a TableVersion,
    pub(in crate::sources::postgres) facts: Option<&'a TableFacts>,
    pub(in crate::sources::postgres) types: &'a TypeCatalogue,
}

impl Scope<'_> {
    /// A column by its name.
    pub(super) fn column(&self, name: &str) -> Result<ColumnUse, String> {
        let columns = &self.version.columns;
        let Some(index) = columns.iter().position(|column| column.name == name) else {
            let known = self.facts.and_then(|facts| facts.column(name));
            return Err(match known {
                Some(known) if known.generated != Generated::No => {
                    format!("the column {name} is generated, and not in the stream")
                }
                Some(_) => format!(
                    "the column {name} is in the table by now, and not in the rows that come here: it \
                     was added later, or the publication leaves it out"
                ),
                None => format!("there is no column {name}"),
            });
        };
        let oid = columns.get(index).map_or(0, |column| column.native.id);
        let of = SqlType::of(oid, self.types);
        let order = self
            .facts
            .and_then(|facts| facts.column(name))
            .map_or(TextOrder::Unknown, |facts| facts.text_order);
        Ok(ColumnUse { index, native: of.clone(), of, order })
    }

    /// A column's name.
    pub(super) fn name(&self, index: usize) -> String {
        self.version.columns.get(index).map(|column| column.name.clone()).unwrap_or_default()
    }

    /// What reads a column's cells.
    pub(super) fn parser(&self, index: usize) -> Arc<dyn CellParser> {
        self.version.columns.get(index).map_or_else(
            || crate::sources::postgres::values::resolve(25, -1, None, self.types, None).parser,
            |column| Arc::clone(&column.parser),
        )
    }

    /// The type that a cast names: one of the built-in ones, or the enum of a column.
    pub(super) fn type_named(&self, named: &DataType) -> Option<SqlType> {
        let word = named.to_string().to_ascii_lowercase();
        SqlType::named(&word).or_else(|| self.enum_named(named))
    }

    /// Without its schema an enum is meant only if there is no other one of its name.
    fn enum_named(&self, named: &DataType) -> Option<SqlType> {
        let DataType::Custom(written, modifiers) = named else { return None };
        if !modifiers.is_empty() {
            return None;
        }
        let parts: Option<Vec<String>> =
            written.0.iter().map(|part| part.as_ident().and_then(folded)).collect();
        let parts = parts?;
        let is_meant = |of: &SqlType| match (of, parts.as_slice()) {
            (SqlType::Enum { name, .. }, [only]) => name == only,
            (SqlType::Enum { namespace, name, .. }, [schema, last]) => {
                namespace == schema && name == last
            }
            _ => false,
        };
        let columns = self.version.columns.iter();
        let mut found = columns
            .map(|column| SqlType::of(column.native.id, self.types))
            .filter(|of| is_meant(of));
        let first = found.next()?;
        found.all(|other| other == first).then_some(first)
    }
}

/// A name as the server understands it.
fn folded(name: &Ident) -> Option<String> {
    match name.quote_style {
        Some('"') => Some(name.value.clone()),
        Some(_) => None,
        None => Some(name.value.to_ascii_lowercase()),
    }
}

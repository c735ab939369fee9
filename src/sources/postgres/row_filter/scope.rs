//! What a predicate's names mean: the columns of one table version, with types and collations.
//!
//! Joins the version with what the catalogue says of it. Asks nobody. **Invariant:** a column whose
//! collation is not known is not compared as text.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sqlparser::ast::DataType;

use super::operand::ColumnUse;
use super::sql_type::SqlType;
use crate::change::{CellParser, TableVersion};
use crate::sources::postgres::catalogue::TableFacts;
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
                Some(_) => format!("the column {name} is generated, and not in the stream"),
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
        SqlType::named(&word).or_else(|| {
            let of_column = |column: &crate::change::Column| SqlType::of(column.native.id, self.types);
            self.version.columns.iter().map(of_column).find(
                |of| matches!(of, SqlType::Enum { name, .. } if name.eq_ignore_ascii_case(&word) && *name == word),
            )
        })
    }
}

//! Which columns are published, which are hidden or shortened, and what their schemas tell of the
//! source's types.
//!
//! Rules name columns as `schema.table.column`. Knows no database. **Invariants:** what a rule hides
//! leaves neither in the value nor in the key; a rule that cannot be carried out for a column that
//! it names refuses the table.

use std::sync::Arc;

use regex::Regex;

use super::columns::PublishedColumn;
use super::fingerprint::Fingerprint;
use crate::change::{Column, DeclaredType, TableId, TableVersion};
use crate::error::{Code, Fault};
use crate::record::{HashAlgorithm, HashInput, Hiding, Kind, Render, SaltedHash, Schema};

/// What is asked for columns, by their names.
#[derive(Clone, Debug, Default)]
pub struct ColumnRules {
    /// `column.include.list`: only these are published in values.
    pub include: Option<Vec<Regex>>,
    /// `column.exclude.list`: these are not.
    pub exclude: Option<Vec<Regex>>,
    /// Masks, cuts and hashes, in order.
    pub treatments: Vec<ColumnTreatment>,
    /// `column.propagate.source.type`.
    pub propagate_columns: Option<Vec<Regex>>,
    /// `datatype.propagate.source.type`: as `type`, or as `schema.table.type`.
    pub propagate_types: Option<Vec<Regex>>,
}

/// A mask, cut or hash, and for which columns.
#[derive(Clone, Debug)]
pub struct ColumnTreatment {
    /// The key that asks for it, for faults.
    pub key: String,
    /// The columns.
    pub columns: Vec<Regex>,
    /// What becomes of their texts.
    pub treatment: Treatment,
}

/// What becomes of texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// So many asterisks stand for each.
    Mask(usize),
    /// They are cut to so many UTF-16 code units.
    Truncate(usize),
    /// A salted hash stands for each, no longer than the column.
    Hash {
        /// The algorithm.
        algorithm: HashAlgorithm,
        /// The salt, a secret.
        salt: Vec<u8>,
        /// What goes into the hash.
        input: HashInput,
    },
}

impl ColumnRules {
    /// Whether the column is in the records' values.
    pub(super) fn publishes(&self, table: &TableId, column: &str) -> bool {
        let name = format!("{table}.{column}");
        matches(&self.include, &name).unwrap_or(true)
            && !matches(&self.exclude, &name).unwrap_or(false)
    }

    /// The patterns that name none of these columns, each `schema.table.column`, and which key has
    /// each. Such a rule hides nothing, or leaves nothing out.
    #[must_use]
    pub fn idle(&self, columns: &[String]) -> Vec<(&str, &Regex)> {
        let lists = [
            ("column.include.list", &self.include),
            ("column.exclude.list", &self.exclude),
            ("column.propagate.source.type", &self.propagate_columns),
        ];
        let lists = lists
            .into_iter()
            .flat_map(|(key, list)| list.iter().flatten().map(move |pattern| (key, pattern)));
        let treatments = self
            .treatments
            .iter()
            .flat_map(|rule| rule.columns.iter().map(|pattern| (rule.name(), pattern)));
        lists
            .chain(treatments)
            .filter(|(_, pattern)| !columns.iter().any(|column| pattern.is_match(column)))
            .collect()
    }

    /// Carries the rules out on the columns of a version.
    pub(super) fn apply(
        &self,
        version: &TableVersion,
        published: &mut [PublishedColumn],
    ) -> Result<(), Fault> {
        for (index, (column, published)) in version.columns.iter().zip(published).enumerate() {
            published.is_shown = self.publishes(&version.table, &column.name);
            if let Some(treatment) = self.treatment_of(&version.table, &column.name)? {
                let in_key = version.key.contains(&index);
                treat(column, published, treatment, in_key)
                    .map_err(|fault| fault.at_column(column.name.as_str()))?;
            }
            if self.propagates(&version.table, column) {
                propagate(column, published);
            }
        }
        Ok(())
    }

    fn treatment_of(
        &self,
        table: &TableId,
        column: &str,
    ) -> Result<Option<&ColumnTreatment>, Fault> {
        let name = format!("{table}.{column}");
        let mut found = self
            .treatments
            .iter()
            .filter(|rule| rule.columns.iter().any(|pattern| pattern.is_match(&name)));
        let first = found.next();
        match (first, found.next()) {
            (Some(first), Some(second)) => Err(Code::ColumnRuleUnfit
                .fault(format!("both {} and {} name it", first.name(), second.name()))
                .at_column(column)
                .about(second.name())
                .hint("Let one rule name the column.")),
            _ => Ok(first),
        }
    }

    fn propagates(&self, table: &TableId, column: &Column) -> bool {
        let name = &column.declared.name;
        matches(&self.propagate_columns, &format!("{table}.{}", column.name)).unwrap_or(false)
            || matches(&self.propagate_types, name).unwrap_or(false)
            || matches(&self.propagate_types, &format!("{table}.{name}")).unwrap_or(false)
    }

    /// Adds what changes bytes to a hash; nothing if nothing is asked for.
    pub(super) fn fingerprint(&self, hash: &mut Fingerprint) {
        let lists = [&self.include, &self.exclude, &self.propagate_columns, &self.propagate_types];
        for (number, list) in (1..).zip(lists) {
            let Some(list) = list else { continue };
            hash.number(number);
            list.iter().for_each(|pattern| hash.text(pattern.as_str()));
        }
        for rule in &self.treatments {
            hash.text(&rule.key);
            rule.columns.iter().for_each(|pattern| hash.text(pattern.as_str()));
        }
    }
}

impl ColumnTreatment {
    /// The key without the salt.
    fn name(&self) -> &str {
        self.key.split_once(".salt.").map_or(self.key.as_str(), |(name, _)| name)
    }
}

fn matches(list: &Option<Vec<Regex>>, name: &str) -> Option<bool> {
    list.as_ref().map(|patterns| patterns.iter().any(|pattern| pattern.is_match(name)))
}

/// Makes a column show what stands for its texts.
fn treat(
    column: &Column,
    published: &mut PublishedColumn,
    rule: &ColumnTreatment,
    in_key: bool,
) -> Result<(), Fault> {
    if in_key && !matches!(rule.treatment, Treatment::Truncate(_)) {
        return Err(Code::ColumnRuleUnfit
            .fault(format!("{} would hide it, and the record's key shows it", rule.name()))
            .about(rule.name())
            .hint(
                "Key the records by other columns (message.key.columns), or take the column out \
                 of the rule.",
            ));
    }
    let hiding = hiding(&rule.treatment, &column.declared);
    let render = match &published.render {
        Render::Text => Render::Hidden(hiding),
        Render::Array { element, optional } if **element == Render::Text => {
            Render::Array { element: Box::new(Render::Hidden(hiding)), optional: *optional }
        }
        _ => {
            return Err(Code::ColumnRuleUnfit
                .fault(format!(
                    "{} is for text, and the column is published as something else ({})",
                    rule.name(),
                    column.native.name
                ))
                .about(rule.name())
                .hint("column.exclude.list leaves the column out."));
        }
    };
    let parameter = match rule.treatment {
        Treatment::Mask(_) | Treatment::Hash { .. } => ("masked", "true".to_owned()),
        Treatment::Truncate(units) => ("truncateLength", units.to_string()),
    };
    published.render = render;
    published.schema =
        Arc::new(plain((*published.schema).clone()).parameter(parameter.0, parameter.1));
    Ok(())
}

/// The schema of what stands for a value: it is no label, no UUID, no document any more.
fn plain(schema: Schema) -> Schema {
    let kind = match schema.kind {
        Kind::Array(items) => Kind::Array(Arc::new(plain((*items).clone()))),
        other => other,
    };
    Schema { kind, name: None, version: None, parameters: Vec::new(), ..schema }
}

fn hiding(treatment: &Treatment, declared: &DeclaredType) -> Hiding {
    match treatment {
        Treatment::Mask(length) => Hiding::Mask("*".repeat(*length).into()),
        Treatment::Truncate(units) => Hiding::Truncate(*units),
        Treatment::Hash { algorithm, salt, input } => Hiding::Hash(Arc::new(SaltedHash {
            algorithm: *algorithm,
            salt: salt.clone(),
            input: *input,
            digits: usize::try_from(declared.length).ok().filter(|digits| *digits > 0),
        })),
    }
}

/// Debezium's parameters of the source's type.
fn propagate(column: &Column, published: &mut PublishedColumn) {
    let DeclaredType { name, length, scale } = &column.declared;
    let mut schema = (*published.schema).clone();
    let mut add = |what: &str, value: String| {
        schema.parameters.push((format!("__debezium.source.column.{what}"), value));
    };
    add("type", name.clone());
    add("length", length.to_string());
    if let Some(scale) = scale {
        add("scale", scale.to_string());
    }
    add("name", column.name.clone());
    published.schema = Arc::new(schema);
}

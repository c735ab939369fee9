//! A table version's columns as published: names, schemas, renderings, markers, zeros.
//!
//! The one place in which what a column *holds* meets how it is *shown*. **Invariant:** two columns
//! never share a published name.

use std::collections::HashMap;
use std::sync::Arc;

use tracing::warn;

use super::settings::PlanSettings;
use super::types::{PublishedType, published_type, schema_default, zero};
use crate::change::{Column, TableVersion};
use crate::error::{Code, Fault};
use crate::record::{Field, Leaf, Literal, Node, Render, Schema, Shape, Unsent};

/// A column as published.
#[derive(Clone, Debug)]
pub(super) struct PublishedColumn {
    /// Its name, adjusted.
    pub(super) name: String,
    /// Its schema, with nullability and default.
    pub(super) schema: Arc<Schema>,
    /// How its values are written.
    pub(super) render: Render,
    /// Its schema in a record key, where no rule for columns holds.
    pub(super) key_schema: Arc<Schema>,
    /// How its values are written in a record key.
    pub(super) key_render: Render,
    /// Whether it is in the records' values.
    pub(super) is_shown: bool,
    /// What stands for a value that was not sent; `None`: its type has no room for it.
    pub(super) marker: Option<Literal>,
    /// What Debezium fills in where the table does not allow null.
    pub(super) filling: Option<Literal>,
}

impl PublishedColumn {
    /// The plain copy of the column into a field of this schema.
    pub(super) fn copy(&self, schema: &Arc<Schema>, leaf: Leaf, unsent: Unsent) -> Shape {
        Shape {
            schema: Arc::clone(schema),
            node: Node::Column { leaf, render: self.render.clone(), unsent },
        }
    }

    /// The field of this column in a record key.
    pub(super) fn key_field(&self) -> Field {
        Field { name: self.name.clone(), schema: Arc::clone(&self.key_schema) }
    }

    /// The field of this column in a struct.
    pub(super) fn field(&self) -> Field {
        Field { name: self.name.clone(), schema: Arc::clone(&self.schema) }
    }

    /// The same field, nullable, for a value that may not be known. Without its default: readers
    /// that put a default in the place of null would show it as the row's own value.
    pub(super) fn unsent_field(&self) -> Field {
        let schema = Schema { optional: true, default: None, ..(*self.schema).clone() };
        Field { name: self.name.clone(), schema: Arc::new(schema) }
    }
}

/// The columns of a version, in its order.
///
/// # Errors
/// [`Code::SchemaIllegalName`] if two columns get the same name, [`Code::ColumnRuleUnfit`] if a rule
/// cannot be carried out.
pub(super) fn published_columns(
    version: &TableVersion,
    settings: &PlanSettings,
) -> Result<Vec<PublishedColumn>, Fault> {
    let mut published = Vec::with_capacity(version.columns.len());
    for column in &version.columns {
        let name = settings.field_names.field_name(&column.name);
        published.push(published_column(name, column, version, settings));
    }
    settings.columns.apply(version, &mut published)?;
    check_names(version, &published)?;
    Ok(published)
}

/// No two columns that are published, be it in the key only, may have the same name.
fn check_names(version: &TableVersion, published: &[PublishedColumn]) -> Result<(), Fault> {
    let mut taken = HashMap::new();
    for (index, (column, published)) in version.columns.iter().zip(published).enumerate() {
        if !published.is_shown && !version.key.contains(&index) {
            continue;
        }
        let name = published.name.as_str();
        if let Some(other) = taken.insert(name, column.name.as_str()) {
            return Err(Code::SchemaIllegalName
                .fault(format!("columns '{other}' and '{}' both become '{name}'", column.name))
                .at_column(column.name.as_str())
                .about("field.name.adjustment.mode")
                .hint(
                    "Rename or exclude one of them, or set field.name.adjustment.mode to \
                     avro_unicode.",
                ));
        }
    }
    Ok(())
}

fn published_column(
    name: String,
    column: &Column,
    version: &TableVersion,
    settings: &PlanSettings,
) -> PublishedColumn {
    let PublishedType { schema, render } = published_type(&column.kind, &settings.values);
    let default = schema_default(column, &render).unwrap_or_else(|error| {
        warn!(
            table = %version.table,
            column = column.name,
            %error,
            "the column's default cannot be shown in its schema; rows are not affected"
        );
        None
    });
    // Asked of the column, not of its schema: Debezium's geometry is optional there, and filled in.
    let filling =
        default.clone().or_else(|| zero(&column.kind, &render)).filter(|_| !column.nullable);
    let is_optional = column.nullable || schema.optional;
    let mut schema = schema.optional_if(is_optional).default_value(default);
    // A type that is documented itself, as structures are, stays one and the same everywhere.
    if settings.values.comments && schema.doc.is_none() {
        schema.doc.clone_from(&column.comment);
    }
    let marker = settings.values.placeholder.marker(&render);
    let schema = Arc::new(schema);
    PublishedColumn {
        name,
        key_schema: Arc::clone(&schema),
        key_render: render.clone(),
        schema,
        render,
        is_shown: true,
        marker,
        filling,
    }
}

//! Sources: one folder per database. Siblings never import each other.

pub mod postgres;

use crate::config::{Table, Values};

/// A source's settings.
#[derive(Clone, Debug)]
pub enum SourceSettings {
    /// PostgreSQL.
    Postgres(Box<postgres::Settings>),
}

/// A source that a connector can name as its class.
#[derive(Clone, Copy, Debug)]
pub struct SourceClass {
    /// Every name of the class; the first is the full one.
    pub names: &'static [&'static str],
    /// The keys that only this source has.
    pub tables: &'static [&'static Table],
    /// Reads them for the connector of a name.
    pub parse: fn(&mut Values<'_>, &str) -> SourceSettings,
}

/// Every source.
pub const CLASSES: &[SourceClass] = &[SourceClass {
    names: &postgres::keys::CLASSES,
    tables: &postgres::keys::TABLES,
    parse: |values, connector| {
        SourceSettings::Postgres(Box::new(postgres::keys::parse(values, connector)))
    },
}];

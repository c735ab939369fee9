//! The types that a predicate can compare, and in which family two of them are compared.
//!
//! Follows the server's resolution of operators (manual, "Operator Type Resolution") for the types
//! that are listed here. Knows no values. **Invariant:** a pair of types that has no family here is
//! refused, never compared in some other way.

use std::fmt;
use std::sync::Arc;

use crate::sources::postgres::values::{TypeCatalogue, TypeKind};

/// A type as far as predicates tell types apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SqlType {
    Bool,
    Int2,
    Int4,
    Int8,
    Numeric,
    Float4,
    Float8,
    Text,
    Varchar,
    /// `char(n)`.
    Char,
    Date,
    Time,
    TimeTz,
    Timestamp,
    TimestampTz,
    Interval,
    Uuid,
    Bytea,
    Enum {
        namespace: String,
        name: String,
        labels: Arc<[String]>,
    },
    /// Any other: only asked whether it is NULL.
    Other {
        name: String,
        /// `IS NULL` asks for its fields.
        is_composite: bool,
    },
}

/// What is compared in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Bool,
    Int,
    Numeric,
    /// In double precision.
    Float,
    Text,
    /// Without padding.
    Char,
    /// Dates and timestamps without zone.
    Moment,
    ZonedMoment,
    Time,
    TimeTz,
    Interval,
    Uuid,
    Bytea,
    Enum,
}

impl Family {
    /// Whether its order depends on a collation.
    pub(super) const fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Char)
    }
}

impl SqlType {
    /// The type of a column, or of what a domain is over.
    pub(super) fn of(oid: u32, types: &TypeCatalogue) -> Self {
        let mut next = oid;
        // The server's own stack ends before so many domains over domains.
        for _ in 0..64 {
            let Some(facts) = types.facts(next) else { break };
            return match &facts.kind {
                TypeKind::Domain { base_oid, .. } => {
                    next = *base_oid;
                    continue;
                }
                TypeKind::Enum { labels } => {
                    let (namespace, name) = (facts.namespace.clone(), facts.name.clone());
                    Self::Enum { namespace, name, labels: Arc::clone(labels) }
                }
                TypeKind::Base if facts.is_built_in() => Self::built_in(&facts.name),
                kind => Self::Other {
                    name: facts.name.clone(),
                    is_composite: *kind == TypeKind::Composite,
                },
            };
        }
        Self::Other { name: format!("type {oid}"), is_composite: true }
    }

    fn built_in(name: &str) -> Self {
        Self::ALL.iter().find(|(built_in, _, _)| *built_in == name).map_or_else(
            || Self::Other { name: name.to_owned(), is_composite: false },
            |(_, _, of)| of.clone(),
        )
    }

    /// The type that a word of the predicate's text means, as a cast names it; without modifiers.
    pub(super) fn named(word: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(built_in, names, _)| *built_in == word || names.contains(&word))
            .map(|(_, _, of)| of.clone())
    }

    /// With their names: `pg_type.typname`, and those of SQL. `char` alone means `char(1)`.
    const ALL: [(&'static str, &'static [&'static str], Self); 18] = [
        ("bool", &["boolean"], Self::Bool),
        ("int2", &["smallint"], Self::Int2),
        ("int4", &["integer", "int"], Self::Int4),
        ("int8", &["bigint"], Self::Int8),
        ("numeric", &["decimal", "dec"], Self::Numeric),
        ("float4", &["real"], Self::Float4),
        ("float8", &["double precision"], Self::Float8),
        ("text", &[], Self::Text),
        ("varchar", &["character varying", "char varying"], Self::Varchar),
        ("bpchar", &[], Self::Char),
        ("date", &[], Self::Date),
        ("time", &["time without time zone"], Self::Time),
        ("timetz", &["time with time zone"], Self::TimeTz),
        ("timestamp", &["timestamp without time zone"], Self::Timestamp),
        ("timestamptz", &["timestamp with time zone"], Self::TimestampTz),
        ("interval", &[], Self::Interval),
        ("uuid", &[], Self::Uuid),
        ("bytea", &[], Self::Bytea),
    ];

    /// Numbers by how much they hold: implicit casts go upward (`pg_cast.dat`).
    pub(super) const fn number_rank(&self) -> Option<u8> {
        Some(match self {
            Self::Int2 => 1,
            Self::Int4 => 2,
            Self::Int8 => 3,
            Self::Numeric => 4,
            Self::Float4 => 5,
            Self::Float8 => 6,
            _ => return None,
        })
    }

    /// The family of a type compared with itself.
    pub(super) const fn family(&self) -> Option<Family> {
        Some(match self {
            Self::Bool => Family::Bool,
            Self::Int2 | Self::Int4 | Self::Int8 => Family::Int,
            Self::Numeric => Family::Numeric,
            Self::Float4 | Self::Float8 => Family::Float,
            Self::Text | Self::Varchar => Family::Text,
            Self::Char => Family::Char,
            Self::Date | Self::Timestamp => Family::Moment,
            Self::TimestampTz => Family::ZonedMoment,
            Self::Time => Family::Time,
            Self::TimeTz => Family::TimeTz,
            Self::Interval => Family::Interval,
            Self::Uuid => Family::Uuid,
            Self::Bytea => Family::Bytea,
            Self::Enum { .. } => Family::Enum,
            Self::Other { .. } => return None,
        })
    }

    /// The family in which two types are compared; `None`: the server has no such operator, or one
    /// that depends on a session.
    pub(super) fn common_family(&self, other: &Self) -> Option<Family> {
        if let (Some(one), Some(other)) = (self.number_rank(), other.number_rank()) {
            return Some(match one.max(other) {
                1..=3 => Family::Int,
                4 => Family::Numeric,
                _ => Family::Float,
            });
        }
        match (self, other) {
            // `text` is the preferred type; `varchar` has no operators of its own.
            (Self::Char, Self::Text) | (Self::Text, Self::Char) => Some(Family::Text),
            (Self::Char, Self::Varchar) | (Self::Varchar, Self::Char) => Some(Family::Char),
            (Self::Enum { .. }, _) | (_, Self::Enum { .. }) if self != other => None,
            _ => self.family().filter(|family| Some(*family) == other.family()),
        }
    }

    /// The type to which the elements of an `IN` list are cast together with what is asked about
    /// (`select_common_type` in `parse_coerce.c`).
    pub(super) fn common_type(&self, other: &Self) -> Option<Self> {
        if let (Some(one), Some(rank)) = (self.number_rank(), other.number_rank()) {
            return Some(if one >= rank { self.clone() } else { other.clone() });
        }
        match (self, other) {
            _ if self == other => Some(self.clone()),
            (Self::Text | Self::Varchar, Self::Text | Self::Varchar) => Some(Self::Text),
            (Self::Date | Self::Timestamp, Self::Date | Self::Timestamp) => Some(Self::Timestamp),
            _ => None,
        }
    }
}

impl fmt::Display for SqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enum { name, .. } | Self::Other { name, .. } => f.write_str(name),
            _ => {
                let known = Self::ALL.iter().find(|(_, _, of)| of == self);
                f.write_str(known.map_or("", |(name, _, _)| name))
            }
        }
    }
}

//! A column's type → neutral type, parser and name. Once per table version.
//!
//! Between the relation's description and the table version that a plan is compiled from. Built-in
//! types are told by their name in `pg_catalog`, extensions' types by their name in any schema,
//! because their numbers differ from database to database. Asks nobody. **Invariant:** every type has
//! an answer: what has no neutral type of its own goes on as the server's text, never not at all.

use std::sync::Arc;

use super::array::ArrayCell;
use super::catalogue::{BUILT_IN, TypeCatalogue, TypeFacts, TypeKind};
use super::hstore::HstoreCell;
use super::labels::LabelCheck;
use super::numbers::{
    BoolCell, Float4Cell, Float8Cell, Int2Cell, Int4Cell, Int8Cell, MoneyCell, NumericCell, OidCell,
};
use super::temporal::{
    DateCell, IntervalCell, TimeCell, TimeTzCell, TimestampCell, TimestampTzCell,
};
use super::text::{BitsCell, ByteaCell, GeometryCell, PointCell, TextCell, UuidCell};
use super::type_name::{numeric_limits, type_name};
use super::vector::{HalfVectorCell, VectorCell};
use crate::change::{CellParser, ColumnType, NativeType};

/// Domains over domains are followed so far; the server's own stack ends before.
const MAX_DEPTH: u8 = 64;

/// What the stream itself says of a type that is not built in (its type message).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireType<'a> {
    /// The type's schema; empty: `pg_catalog`.
    pub namespace: &'a str,
    /// Its name. For a domain both are those of the type at its bottom.
    pub name: &'a str,
}

/// A column's type, understood.
#[derive(Clone, Debug)]
pub struct ResolvedColumn {
    /// What the column holds.
    pub kind: ColumnType,
    /// Reads its cells.
    pub parser: Arc<dyn CellParser>,
    /// The type as the database names it.
    pub native: NativeType,
    /// For enums and arrays of enums: finds labels that [`Self::kind`] does not list.
    pub labels: Option<LabelCheck>,
}

/// Resolves the type of a column.
///
/// `dimensions` is `pg_attribute.attndims` where it is known: an array column that is declared with
/// more than one dimension is published as text, because a schema of flat lists cannot hold it. `wire`
/// helps with a type that the catalogue does not know, because it was dropped since.
pub fn resolve(
    type_oid: u32,
    typmod: i32,
    dimensions: Option<i16>,
    catalogue: &TypeCatalogue,
    wire: Option<WireType<'_>>,
) -> ResolvedColumn {
    let dimensions = dimensions.map_or(0, i32::from);
    let (name, mapped) = if let Some(facts) = catalogue.facts(type_oid) {
        let mapping = Mapping { catalogue };
        (type_name(facts, typmod, catalogue), mapping.of(facts, typmod, dimensions, 0))
    } else {
        unknown(type_oid, catalogue, wire, dimensions)
    };
    let Mapped { kind, parser, labels } = mapped;
    let native = NativeType { name, id: type_oid, modifier: typmod };
    ResolvedColumn { kind, parser, native, labels }
}

/// A type that the catalogue does not have: the stream's own words are all there is.
fn unknown(
    type_oid: u32,
    catalogue: &TypeCatalogue,
    wire: Option<WireType<'_>>,
    dimensions: i32,
) -> (String, Mapped) {
    let Some(WireType { namespace, name }) = wire else {
        let name = format!("type {type_oid}");
        return (name.clone(), Mapped::opaque(name));
    };
    let mapping = Mapping { catalogue };
    let namespace = if namespace.is_empty() { BUILT_IN } else { namespace };
    let facts = match catalogue.built_in(name) {
        Some(facts) if namespace == BUILT_IN => facts.clone(),
        _ => TypeFacts {
            oid: type_oid,
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            kind: TypeKind::Base,
        },
    };
    (type_name(&facts, -1, catalogue), mapping.of(&facts, -1, dimensions, 0))
}

/// Neutral type and parser of a type.
struct Mapped {
    kind: ColumnType,
    parser: Arc<dyn CellParser>,
    labels: Option<LabelCheck>,
}

impl Mapped {
    fn new(kind: ColumnType, parser: impl CellParser + 'static) -> Self {
        Self { kind, parser: Arc::new(parser), labels: None }
    }

    fn opaque(type_name: String) -> Self {
        Self::new(ColumnType::Opaque { type_name }, TextCell)
    }
}

struct Mapping<'a> {
    catalogue: &'a TypeCatalogue,
}

impl Mapping<'_> {
    fn of(&self, facts: &TypeFacts, typmod: i32, dimensions: i32, depth: u8) -> Mapped {
        let mapped = match &facts.kind {
            TypeKind::Base if facts.is_built_in() => built_in(&facts.name, typmod),
            TypeKind::Base => extension(&facts.name),
            TypeKind::Range if facts.is_built_in() => Some(Mapped::new(ColumnType::Text, TextCell)),
            TypeKind::Enum { labels } => {
                let mut mapped =
                    Mapped::new(ColumnType::Enum { labels: Arc::clone(labels) }, TextCell);
                mapped.labels = Some(LabelCheck::of_label(facts.oid, labels));
                Some(mapped)
            }
            TypeKind::Array { element_oid, delimiter } if dimensions <= 1 => {
                self.array(*element_oid, *delimiter, typmod, depth)
            }
            TypeKind::Array { .. } => {
                let brackets = usize::try_from(dimensions).unwrap_or(1).saturating_sub(1);
                let name = type_name(facts, typmod, self.catalogue) + &"[]".repeat(brackets);
                Some(Mapped::opaque(name))
            }
            TypeKind::Domain { base_oid, base_typmod, dimensions } => {
                self.below(*base_oid, depth, |base, depth| {
                    self.of(base, *base_typmod, *dimensions, depth)
                })
            }
            TypeKind::Composite | TypeKind::Range | TypeKind::Multirange | TypeKind::Pseudo => None,
        };
        mapped.unwrap_or_else(|| Mapped::opaque(opaque_name(facts, typmod, self.catalogue)))
    }

    /// A list of one level; an array whose elements are arrays (by way of a domain) or vectors stays
    /// text.
    fn array(&self, element_oid: u32, delimiter: u8, typmod: i32, depth: u8) -> Option<Mapped> {
        let element =
            self.below(element_oid, depth, |element, depth| self.of(element, typmod, 0, depth))?;
        if matches!(element.kind, ColumnType::Array(_) | ColumnType::Vector { .. }) {
            return None;
        }
        Some(Mapped {
            kind: ColumnType::Array(Box::new(element.kind)),
            parser: Arc::new(ArrayCell::new(element.parser, delimiter)),
            labels: element.labels.map(|labels| labels.of_array(delimiter)),
        })
    }

    fn below(
        &self,
        oid: u32,
        depth: u8,
        map: impl FnOnce(&TypeFacts, u8) -> Mapped,
    ) -> Option<Mapped> {
        let depth = depth.checked_add(1).filter(|depth| *depth < MAX_DEPTH)?;
        self.catalogue.facts(oid).map(|facts| map(facts, depth))
    }
}

/// The name under which a type without neutral type goes on: that of well-known extensions' types
/// without the schema that somebody happened to install them in.
fn opaque_name(facts: &TypeFacts, typmod: i32, catalogue: &TypeCatalogue) -> String {
    let known = matches!(facts.name.as_str(), "sparsevec" | "lquery" | "ltxtquery");
    if known && facts.kind == TypeKind::Base {
        facts.name.clone()
    } else {
        type_name(facts, typmod, catalogue)
    }
}

/// The server's own base types that have a neutral type.
fn built_in(name: &str, typmod: i32) -> Option<Mapped> {
    Some(match name {
        "bool" => Mapped::new(ColumnType::Bool, BoolCell),
        "int2" => Mapped::new(ColumnType::Int16, Int2Cell),
        "int4" => Mapped::new(ColumnType::Int32, Int4Cell),
        "int8" => Mapped::new(ColumnType::Int64, Int8Cell),
        "oid" => Mapped::new(ColumnType::Int64, OidCell),
        "float4" => Mapped::new(ColumnType::Float32, Float4Cell),
        "float8" => Mapped::new(ColumnType::Float64, Float8Cell),
        "numeric" => Mapped::new(decimal(typmod), NumericCell),
        "money" => Mapped::new(ColumnType::Money, MoneyCell),
        "text" | "varchar" | "bpchar" | "name" | "char" | "inet" | "cidr" | "macaddr"
        | "macaddr8" => Mapped::new(ColumnType::Text, TextCell),
        "json" | "jsonb" => Mapped::new(ColumnType::Json, TextCell),
        "xml" => Mapped::new(ColumnType::Xml, TextCell),
        "uuid" => Mapped::new(ColumnType::Uuid, UuidCell),
        "tsvector" => Mapped::new(ColumnType::TextSearchVector, TextCell),
        "bytea" => Mapped::new(ColumnType::Bytes, ByteaCell),
        "bit" | "varbit" => {
            let length = u32::try_from(typmod).ok().filter(|length| *length > 0);
            Mapped::new(ColumnType::Bits { length }, BitsCell)
        }
        "date" => Mapped::new(ColumnType::Date, DateCell),
        "time" => Mapped::new(ColumnType::Time { precision: precision(typmod) }, TimeCell),
        "timetz" => Mapped::new(ColumnType::ZonedTime, TimeTzCell),
        "timestamp" => {
            Mapped::new(ColumnType::Timestamp { precision: precision(typmod) }, TimestampCell)
        }
        "timestamptz" => Mapped::new(
            ColumnType::ZonedTimestamp { precision: precision(typmod) },
            TimestampTzCell,
        ),
        "interval" => Mapped::new(ColumnType::Interval, IntervalCell),
        "point" => Mapped::new(ColumnType::Point, PointCell),
        _ => return None,
    })
}

/// Extensions' base types that have a neutral type.
fn extension(name: &str) -> Option<Mapped> {
    Some(match name {
        "hstore" => Mapped::new(ColumnType::KeyValues, HstoreCell),
        "geometry" => Mapped::new(ColumnType::Geometry { geodetic: false }, GeometryCell),
        "geography" => Mapped::new(ColumnType::Geometry { geodetic: true }, GeometryCell),
        "vector" => Mapped::new(ColumnType::Vector { half: false }, VectorCell),
        "halfvec" => Mapped::new(ColumnType::Vector { half: true }, HalfVectorCell),
        "ltree" => Mapped::new(ColumnType::LabelTree, TextCell),
        "citext" | "isbn" | "isbn13" | "issn" | "issn13" | "ismn" | "ismn13" | "ean13" | "upc" => {
            Mapped::new(ColumnType::Text, TextCell)
        }
        _ => return None,
    })
}

fn decimal(typmod: i32) -> ColumnType {
    match numeric_limits(typmod) {
        Some((precision, scale)) => ColumnType::Decimal { precision, scale },
        None => ColumnType::VariableDecimal,
    }
}

/// Digits of a fraction of a second; without modifier all six.
fn precision(typmod: i32) -> u8 {
    u8::try_from(typmod).ok().filter(|precision| *precision <= 6).unwrap_or(6)
}

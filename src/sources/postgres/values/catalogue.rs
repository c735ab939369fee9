//! What is known of the database's types, by their numbers.
//!
//! Built-in types have the same number in every database of every version, so they are known from
//! the start (`pg_type.dat` of the server), and most tables need no query. Knows no connection: the
//! driver asks [`TypeCatalogue::missing`] and runs [`TYPE_QUERY`]. **Invariant:** a type that was
//! asked for in vain is remembered as absent, so that asking ends.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Fetches the facts of the types whose numbers are in `$1` (`oid[]`), one [`TypeRow`] each, in the
/// order of its fields.
///
/// An array type is told by its element's `typarray` pointing back: `name`, `point` or `int2vector`
/// have an element type as well, but are written in a form of their own.
pub const TYPE_QUERY: &str = "\
SELECT t.oid, t.typname::text, n.nspname::text, t.typtype, coalesce(e.oid, 0::oid), \
coalesce(e.typdelim, ','), t.typbasetype, t.typtypmod, t.typndims, \
ARRAY(SELECT l.enumlabel::text FROM pg_catalog.pg_enum l WHERE l.enumtypid = t.oid ORDER BY l.enumsortorder) \
FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace \
LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem AND e.typarray = t.oid \
WHERE t.oid = ANY ($1::oid[])";

/// A row of [`TYPE_QUERY`]. Stored with the versions of tables that use the type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeRow {
    /// `pg_type.oid`.
    pub oid: u32,
    /// `typname`.
    pub name: String,
    /// The name of `typnamespace`.
    pub namespace: String,
    /// `typtype`, an ASCII letter.
    pub letter: u8,
    /// The element type of an array type; 0: no array.
    pub element_oid: u32,
    /// The element type's `typdelim`.
    pub delimiter: u8,
    /// `typbasetype` of a domain; else 0.
    pub base_oid: u32,
    /// `typtypmod` of a domain; else −1.
    pub base_typmod: i32,
    /// `typndims` of a domain over an array.
    pub dimensions: i32,
    /// The labels of an enum in sort order.
    pub labels: Vec<String>,
}

/// What is known of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeFacts {
    /// The type's number.
    pub oid: u32,
    /// The name as `pg_type.typname` has it (`int4`, `_int4`).
    pub name: String,
    /// The schema that it is in.
    pub namespace: String,
    /// What kind of type it is.
    pub kind: TypeKind,
}

/// The kinds of types, each with what its values' text depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// Has input and output functions of its own.
    Base,
    /// A row type.
    Composite,
    /// Another type under constraints.
    Domain {
        /// The type below, which may be a domain again.
        base_oid: u32,
        /// The modifier that the type below has; −1: none.
        base_typmod: i32,
        /// Declared dimensions of a domain over an array.
        dimensions: i32,
    },
    /// One of a list of labels.
    Enum {
        /// The labels in sort order.
        labels: Arc<[String]>,
    },
    /// Ranges over another type.
    Range,
    /// Sets of ranges.
    Multirange,
    /// Not a type of stored values.
    Pseudo,
    /// Arrays.
    Array {
        /// The type of the elements.
        element_oid: u32,
        /// What separates elements in text: a comma, but a semicolon for boxes.
        delimiter: u8,
    },
}

impl From<&TypeFacts> for TypeRow {
    fn from(facts: &TypeFacts) -> Self {
        let mut row = Self {
            oid: facts.oid,
            name: facts.name.clone(),
            namespace: facts.namespace.clone(),
            letter: b'b',
            element_oid: 0,
            delimiter: b',',
            base_oid: 0,
            base_typmod: -1,
            dimensions: 0,
            labels: Vec::new(),
        };
        match &facts.kind {
            TypeKind::Base => {}
            TypeKind::Composite => row.letter = b'c',
            TypeKind::Domain { base_oid, base_typmod, dimensions } => {
                row.letter = b'd';
                (row.base_oid, row.base_typmod) = (*base_oid, *base_typmod);
                row.dimensions = *dimensions;
            }
            TypeKind::Enum { labels } => {
                row.letter = b'e';
                row.labels = labels.to_vec();
            }
            TypeKind::Range => row.letter = b'r',
            TypeKind::Multirange => row.letter = b'm',
            TypeKind::Pseudo => row.letter = b'p',
            TypeKind::Array { element_oid, delimiter } => {
                (row.element_oid, row.delimiter) = (*element_oid, *delimiter);
            }
        }
        row
    }
}

impl From<TypeRow> for TypeFacts {
    fn from(row: TypeRow) -> Self {
        let kind = match row.letter {
            b'd' => TypeKind::Domain {
                base_oid: row.base_oid,
                base_typmod: row.base_typmod,
                dimensions: row.dimensions,
            },
            b'e' => TypeKind::Enum { labels: row.labels.into() },
            b'c' => TypeKind::Composite,
            b'r' => TypeKind::Range,
            b'm' => TypeKind::Multirange,
            b'p' => TypeKind::Pseudo,
            _ if row.element_oid != 0 => {
                TypeKind::Array { element_oid: row.element_oid, delimiter: row.delimiter }
            }
            _ => TypeKind::Base,
        };
        Self { oid: row.oid, name: row.name, namespace: row.namespace, kind }
    }
}

/// The name of the schema of built-in types.
pub(super) const BUILT_IN: &str = "pg_catalog";

impl TypeFacts {
    /// Whether it is one of the server's own types.
    pub fn is_built_in(&self) -> bool {
        self.namespace == BUILT_IN
    }

    /// The type that must be known as well, if any.
    const fn depends_on(&self) -> Option<u32> {
        match self.kind {
            TypeKind::Domain { base_oid: oid, .. } | TypeKind::Array { element_oid: oid, .. } => {
                Some(oid)
            }
            TypeKind::Base
            | TypeKind::Composite
            | TypeKind::Enum { .. }
            | TypeKind::Range
            | TypeKind::Multirange
            | TypeKind::Pseudo => None,
        }
    }
}

/// The types that are known, by number.
#[derive(Clone, Debug)]
pub struct TypeCatalogue {
    known: HashMap<u32, TypeFacts>,
    absent: HashSet<u32>,
}

impl Default for TypeCatalogue {
    fn default() -> Self {
        Self::new()
    }
}

impl TypeCatalogue {
    /// Knows the built-in types.
    pub fn new() -> Self {
        let mut catalogue = Self { known: HashMap::new(), absent: HashSet::new() };
        for &(oid, array_oid, name, letter) in BUILT_IN_TYPES {
            let kind = match letter {
                'r' => TypeKind::Range,
                'm' => TypeKind::Multirange,
                _ => TypeKind::Base,
            };
            let namespace = BUILT_IN.to_owned();
            catalogue.insert(TypeFacts { oid, name: name.to_owned(), namespace, kind });
            // The only built-in type whose delimiter is not a comma.
            let delimiter = if name == "box" { b';' } else { b',' };
            catalogue.insert(TypeFacts {
                oid: array_oid,
                name: format!("_{name}"),
                namespace: BUILT_IN.to_owned(),
                kind: TypeKind::Array { element_oid: oid, delimiter },
            });
        }
        catalogue
    }

    /// What is known of a type.
    pub fn facts(&self, oid: u32) -> Option<&TypeFacts> {
        self.known.get(&oid)
    }

    /// A built-in type by its name in `pg_type`.
    pub(super) fn built_in(&self, name: &str) -> Option<&TypeFacts> {
        let &(oid, array_oid, ..) = BUILT_IN_TYPES
            .iter()
            .find(|(_, _, element, _)| name.strip_prefix('_').unwrap_or(name) == *element)?;
        self.facts(if name.starts_with('_') { array_oid } else { oid })
    }

    /// Adds a type, or replaces what was known of it.
    pub fn insert(&mut self, facts: TypeFacts) {
        self.absent.remove(&facts.oid);
        self.known.insert(facts.oid, facts);
    }

    /// Remembers that the database does not have these types (any more).
    pub fn insert_absent(&mut self, oids: impl IntoIterator<Item = u32>) {
        self.absent.extend(oids.into_iter().filter(|oid| !self.known.contains_key(oid)));
    }

    /// Which types must be fetched before the given ones can be resolved, sorted, each once.
    ///
    /// What is fetched may itself depend on types that are not known yet: fetch, insert what came
    /// (and as absent what did not), and ask again until there are none.
    pub fn missing(&self, oids: &[u32]) -> Vec<u32> {
        let mut missing: Vec<u32> =
            self.reachable(oids).into_iter().filter(|oid| !self.known.contains_key(oid)).collect();
        missing.retain(|oid| !self.absent.contains(oid));
        missing
    }

    /// Whether a value of the type, once stored, reads the same until it is replaced. An attribute
    /// that is added to a row type, a label or an object that is renamed show in values that are
    /// there, and no description of a table tells of it.
    pub fn is_text_fixed(&self, oid: u32) -> bool {
        self.reachable(&[oid]).iter().all(|oid| {
            self.known.get(oid).is_some_and(|facts| match &facts.kind {
                TypeKind::Base => !(facts.is_built_in() && facts.name.starts_with("reg")),
                TypeKind::Domain { .. } | TypeKind::Array { .. } => true,
                TypeKind::Range | TypeKind::Multirange => facts.is_built_in(),
                TypeKind::Composite | TypeKind::Enum { .. } | TypeKind::Pseudo => false,
            })
        })
    }

    /// The types among the given ones, and those that they are made of, that a user can alter:
    /// what to fetch again when the facts may be out of date. Sorted, each once.
    pub fn alterable(&self, oids: &[u32]) -> Vec<u32> {
        let mut alterable = self.reachable(oids);
        alterable.retain(|oid| !self.known.get(oid).is_some_and(TypeFacts::is_built_in));
        alterable
    }

    /// What is known of those among the given types, and those that they are made of, that a user
    /// can alter or drop.
    pub fn user_defined(&self, oids: &[u32]) -> Vec<TypeRow> {
        self.alterable(oids).iter().filter_map(|oid| self.known.get(oid)).map(Into::into).collect()
    }

    /// Takes over what was known of types that the database does not have any more.
    pub fn recall(&mut self, remembered: &[TypeRow]) {
        for row in remembered {
            if !self.known.contains_key(&row.oid) {
                self.insert(row.clone().into());
            }
        }
    }

    /// Adds a label to an enum that was met in a row and that the catalogue does not list (any
    /// more): the row is of then, the catalogue of now. It sorts last.
    pub fn learn_label(&mut self, enum_oid: u32, label: &str) {
        if let Some(TypeFacts { kind: TypeKind::Enum { labels }, .. }) =
            self.known.get_mut(&enum_oid)
            && !labels.iter().any(|known| known == label)
        {
            *labels = labels.iter().cloned().chain([label.to_owned()]).collect();
        }
    }

    /// The given types and what they are made of, as far as that is known.
    fn reachable(&self, oids: &[u32]) -> Vec<u32> {
        let mut seen = HashSet::new();
        let mut open = oids.to_vec();
        while let Some(oid) = open.pop() {
            if oid != 0 && seen.insert(oid) {
                open.extend(self.known.get(&oid).and_then(TypeFacts::depends_on));
            }
        }
        let mut reachable: Vec<u32> = seen.into_iter().collect();
        reachable.sort_unstable();
        reachable
    }
}

/// Number, number of the array type, name, `typtype`. From PostgreSQL 15's `pg_type`; numbers below
/// 10 000 are fixed for ever (`access/transam.h`, `FirstGenbkiObjectId`).
#[rustfmt::skip]
const BUILT_IN_TYPES: &[(u32, u32, &str, char)] = &[
    (16, 1000, "bool", 'b'),
    (17, 1001, "bytea", 'b'),
    (18, 1002, "char", 'b'),
    (19, 1003, "name", 'b'),
    (20, 1016, "int8", 'b'),
    (21, 1005, "int2", 'b'),
    (22, 1006, "int2vector", 'b'),
    (23, 1007, "int4", 'b'),
    (24, 1008, "regproc", 'b'),
    (25, 1009, "text", 'b'),
    (26, 1028, "oid", 'b'),
    (27, 1010, "tid", 'b'),
    (28, 1011, "xid", 'b'),
    (29, 1012, "cid", 'b'),
    (30, 1013, "oidvector", 'b'),
    (114, 199, "json", 'b'),
    (142, 143, "xml", 'b'),
    (600, 1017, "point", 'b'),
    (601, 1018, "lseg", 'b'),
    (602, 1019, "path", 'b'),
    (603, 1020, "box", 'b'),
    (604, 1027, "polygon", 'b'),
    (628, 629, "line", 'b'),
    (650, 651, "cidr", 'b'),
    (700, 1021, "float4", 'b'),
    (701, 1022, "float8", 'b'),
    (718, 719, "circle", 'b'),
    (774, 775, "macaddr8", 'b'),
    (790, 791, "money", 'b'),
    (829, 1040, "macaddr", 'b'),
    (869, 1041, "inet", 'b'),
    (1033, 1034, "aclitem", 'b'),
    (1042, 1014, "bpchar", 'b'),
    (1043, 1015, "varchar", 'b'),
    (1082, 1182, "date", 'b'),
    (1083, 1183, "time", 'b'),
    (1114, 1115, "timestamp", 'b'),
    (1184, 1185, "timestamptz", 'b'),
    (1186, 1187, "interval", 'b'),
    (1266, 1270, "timetz", 'b'),
    (1560, 1561, "bit", 'b'),
    (1562, 1563, "varbit", 'b'),
    (1700, 1231, "numeric", 'b'),
    (1790, 2201, "refcursor", 'b'),
    (2202, 2207, "regprocedure", 'b'),
    (2203, 2208, "regoper", 'b'),
    (2204, 2209, "regoperator", 'b'),
    (2205, 2210, "regclass", 'b'),
    (2206, 2211, "regtype", 'b'),
    (2950, 2951, "uuid", 'b'),
    (2970, 2949, "txid_snapshot", 'b'),
    (3220, 3221, "pg_lsn", 'b'),
    (3614, 3643, "tsvector", 'b'),
    (3615, 3645, "tsquery", 'b'),
    (3642, 3644, "gtsvector", 'b'),
    (3734, 3735, "regconfig", 'b'),
    (3769, 3770, "regdictionary", 'b'),
    (3802, 3807, "jsonb", 'b'),
    (3904, 3905, "int4range", 'r'),
    (3906, 3907, "numrange", 'r'),
    (3908, 3909, "tsrange", 'r'),
    (3910, 3911, "tstzrange", 'r'),
    (3912, 3913, "daterange", 'r'),
    (3926, 3927, "int8range", 'r'),
    (4072, 4073, "jsonpath", 'b'),
    (4089, 4090, "regnamespace", 'b'),
    (4096, 4097, "regrole", 'b'),
    (4191, 4192, "regcollation", 'b'),
    (4451, 6150, "int4multirange", 'm'),
    (4532, 6151, "nummultirange", 'm'),
    (4533, 6152, "tsmultirange", 'm'),
    (4534, 6153, "tstzmultirange", 'm'),
    (4535, 6155, "datemultirange", 'm'),
    (4536, 6157, "int8multirange", 'm'),
    (5038, 5039, "pg_snapshot", 'b'),
    (5069, 271, "xid8", 'b'),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn row(oid: u32, letter: u8, element_oid: u32, base_oid: u32) -> TypeFacts {
        TypeFacts::from(TypeRow {
            oid,
            name: format!("t{oid}"),
            namespace: "public".to_owned(),
            letter,
            element_oid,
            delimiter: b',',
            base_oid,
            base_typmod: -1,
            dimensions: 0,
            labels: vec!["a".to_owned()],
        })
    }

    #[test]
    fn a_type_comes_back_from_its_row() {
        let kinds = [
            TypeKind::Base,
            TypeKind::Composite,
            TypeKind::Domain { base_oid: 23, base_typmod: 4, dimensions: 1 },
            TypeKind::Enum { labels: ["a".to_owned(), "b".to_owned()].into() },
            TypeKind::Range,
            TypeKind::Multirange,
            TypeKind::Pseudo,
            TypeKind::Array { element_oid: 70_000, delimiter: b';' },
        ];
        for kind in kinds {
            let (name, namespace) = ("t".to_owned(), "public".to_owned());
            let facts = TypeFacts { oid: 70_001, name, namespace, kind };
            assert_eq!(TypeFacts::from(TypeRow::from(&facts)), facts);
        }
    }

    #[test]
    fn what_an_alter_type_shows_in_has_no_fixed_text() {
        let mut catalogue = TypeCatalogue::new();
        // a base type of an extension, an enum, an array of it, a row type, a domain over either
        for (oid, letter, element, base) in [
            (90_000, b'b', 0, 0),
            (90_001, b'e', 0, 0),
            (90_002, b'b', 90_001, 0),
            (90_003, b'c', 0, 0),
            (90_004, b'd', 0, 90_002),
            (90_005, b'd', 0, 90_000),
            (90_006, b'r', 0, 0),
        ] {
            catalogue.insert(row(oid, letter, element, base));
        }
        let regclass_array = 2210;
        // text, jsonb, int4range, text[]
        for oid in [25, 3802, 3904, 1009, 90_000, 90_005] {
            assert!(catalogue.is_text_fixed(oid), "{oid}");
        }
        for oid in [90_001, 90_002, 90_003, 90_004, 90_006, 99_999, regclass_array] {
            assert!(!catalogue.is_text_fixed(oid), "{oid}");
        }
    }

    #[test]
    fn built_in_types_need_no_query() {
        let catalogue = TypeCatalogue::new();
        assert!(catalogue.missing(&[16, 1231, 3802, 3910, 6157, 0]).is_empty());
        assert_eq!(catalogue.built_in("_box").map(|facts| facts.oid), Some(1020));
        assert_eq!(catalogue.built_in("int4").map(|facts| facts.oid), Some(23));
        assert_eq!(catalogue.built_in("addr"), None);
    }

    #[test]
    fn missing_types_are_found_step_by_step() {
        let mut catalogue = TypeCatalogue::new();
        // A domain over an array of domains over a type that was dropped.
        assert_eq!(catalogue.missing(&[90_001, 23, 90_001]), [90_001]);
        catalogue.insert(row(90_001, b'd', 0, 90_002));
        assert_eq!(catalogue.missing(&[90_001]), [90_002]);
        catalogue.insert(row(90_002, b'b', 90_003, 0));
        catalogue.insert(row(90_003, b'd', 0, 90_004));
        assert_eq!(catalogue.missing(&[90_001]), [90_004]);
        catalogue.insert_absent([90_004]);
        assert!(catalogue.missing(&[90_001]).is_empty());
        assert_eq!(catalogue.alterable(&[90_001, 23]), [90_001, 90_002, 90_003, 90_004]);
    }

    #[test]
    fn a_circle_of_types_does_not_hang() {
        let mut catalogue = TypeCatalogue::new();
        catalogue.insert(row(90_001, b'd', 0, 90_002));
        catalogue.insert(row(90_002, b'd', 0, 90_001));
        assert!(catalogue.missing(&[90_001]).is_empty());
    }

    #[test]
    fn a_label_met_in_a_row_is_learnt_once() {
        let mut catalogue = TypeCatalogue::new();
        catalogue.insert(row(90_001, b'e', 0, 0));
        catalogue.learn_label(90_001, "b");
        catalogue.learn_label(90_001, "a");
        let Some(TypeKind::Enum { labels }) = catalogue.facts(90_001).map(|facts| &facts.kind)
        else {
            panic!("not an enum");
        };
        assert_eq!(**labels, ["a", "b"]);
    }
}

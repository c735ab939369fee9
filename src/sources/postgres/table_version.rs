//! What the stream says of a table, joined with what only the catalogue knows.
//!
//! Once per table version. The stream speaks of then, the catalogue of now, so the catalogue adds to
//! a column only where both have the same name, type and modifier, and never contradicts the
//! stream. Pure. **Invariants:** the columns are the stream's, in its order; the key consists of
//! columns that old rows carry, wherever the table has such.

use super::catalogue::{ColumnFacts, Generated, KeyFacts, TableFacts};
use super::key_rules::KeyRules;
use super::relations::{RelationColumn, RelationDescriptor};
use super::values::{LabelCheck, TypeCatalogue, WireType, column_default, declared_type, resolve};
use super::wire::ReplicaIdentity;
use crate::change::{BeforeImage, Column, TableId, TableVersion};

/// A table version, and what the driver has to watch for it.
#[derive(Clone, Debug)]
pub struct ResolvedTable {
    /// The version.
    pub version: TableVersion,
    /// For columns of enums, by their index: finds labels that the version does not list.
    pub labels: Vec<(usize, LabelCheck)>,
}

/// Builds the table version of a description.
///
/// `facts` is what the catalogue says of the table, if it still exists; `types` must know the
/// columns' types, as far as they still exist; `wire_type` is what the stream said of types;
/// `rules` may give the records another key.
pub fn build<'t>(
    descriptor: &RelationDescriptor,
    facts: Option<&TableFacts>,
    types: &TypeCatalogue,
    wire_type: &dyn Fn(u32) -> Option<WireType<'t>>,
    epoch: u64,
    rules: &KeyRules,
) -> ResolvedTable {
    let mut columns = Vec::with_capacity(descriptor.columns.len());
    let mut labels = Vec::new();
    for (index, described) in descriptor.columns.iter().enumerate() {
        let known = facts.and_then(|facts| agreeing(facts, described));
        let resolved = resolve(
            described.type_oid,
            described.typmod,
            known.map(|column| column.dimensions),
            types,
            wire_type(described.type_oid),
        );
        let default = known
            .filter(|column| column.generated == Generated::No)
            .and_then(|column| column_default(column.default.as_deref(), &resolved, types));
        labels.extend(resolved.labels.map(|check| (index, check)));
        columns.push(Column {
            name: described.name.clone(),
            kind: resolved.kind,
            nullable: is_nullable(descriptor, described, known),
            default,
            native: resolved.native,
            declared: declared_type(
                described.type_oid,
                described.typmod,
                known.and_then(|column| column.default.as_deref()),
                types,
            ),
            identity: described.identity,
            comment: known.and_then(|column| column.comment.clone()),
            parser: resolved.parser,
        });
    }
    let mut version = TableVersion {
        table: TableId { namespace: descriptor.namespace.clone(), name: descriptor.name.clone() },
        native_id: u64::from(descriptor.oid.0),
        epoch,
        fingerprint: descriptor.fingerprint(),
        columns,
        key: key(descriptor, facts),
        before_image: before_image(descriptor),
        identity: descriptor.replica_identity.as_str().to_owned(),
        comment: facts.and_then(|facts| facts.comment.clone()),
    };
    if let Some(key) = rules.key(&version) {
        version.key = key;
    }
    ResolvedTable { version, labels }
}

/// The facts by which a description that is not remembered is completed.
///
/// Where every column is sent, the stream does not say which of them are the key. If the catalogue
/// of now cannot say it either, for the table is gone or the key's columns have changed since, what
/// was remembered of the version before is closer to the truth.
pub fn best_facts(
    descriptor: &RelationDescriptor,
    now: Option<TableFacts>,
    remembered: Option<&TableFacts>,
) -> Option<TableFacts> {
    if descriptor.replica_identity != ReplicaIdentity::Full
        || now.as_ref().is_some_and(|now| knows_key(descriptor, now))
    {
        return now;
    }
    let then = remembered.filter(|then| then.row_key().is_some() && knows_key(descriptor, then));
    then.cloned().or(now)
}

/// What the catalogue says now, but for columns that could be NULL in the version before and may
/// not be any more: nobody knows from which row on, and whoever reads the earlier records by the new
/// schema needs the field optional (a registry refuses it otherwise under BACKWARD).
pub fn still_optional(
    now: Option<TableFacts>,
    remembered: Option<&TableFacts>,
) -> Option<TableFacts> {
    let mut now = now?;
    let Some(then) = remembered else { return Some(now) };
    for column in &mut now.columns {
        let was_optional = then.column(&column.name).is_some_and(|then| !then.not_null);
        column.not_null &= !was_optional;
    }
    Some(now)
}

/// Whether a table's primary key consists of columns that the stream describes so. A table
/// without one is known to have none.
fn knows_key(descriptor: &RelationDescriptor, facts: &TableFacts) -> bool {
    let primary = facts.row_key();
    primary.is_none_or(|primary| places(descriptor, facts, primary).is_some())
}

/// The catalogue's column, if it is the one that the stream describes.
fn agreeing<'f>(facts: &'f TableFacts, described: &RelationColumn) -> Option<&'f ColumnFacts> {
    facts
        .column(&described.name)
        .filter(|column| column.type_oid == described.type_oid && column.typmod == described.typmod)
}

/// The columns of a key have no NULL, as long as they are flagged as one. Under FULL every column
/// is flagged, and the flag says nothing.
fn is_nullable(
    descriptor: &RelationDescriptor,
    described: &RelationColumn,
    known: Option<&ColumnFacts>,
) -> bool {
    let by_key =
        matches!(descriptor.replica_identity, ReplicaIdentity::Default | ReplicaIdentity::Index);
    let in_key = by_key && described.identity;
    !in_key && !known.is_some_and(|column| column.not_null)
}

/// The columns by which records are keyed.
///
/// Only a key that old rows carry can be deleted by, so it is the replica identity, whatever the
/// primary key is. Where every column is sent, it is the primary key of now,
/// unless that is deferrable: rows that exchange their keys would be told as a delete of either,
/// and the second delete would take the row that has just come.
fn key(descriptor: &RelationDescriptor, facts: Option<&TableFacts>) -> Vec<usize> {
    let primary = facts.and_then(TableFacts::row_key);
    let flagged = flagged(descriptor);
    match descriptor.replica_identity {
        ReplicaIdentity::Default => in_order_of(descriptor, primary, flagged),
        ReplicaIdentity::Index => {
            let index = facts.and_then(|facts| facts.identity_index.as_ref());
            in_order_of(descriptor, index, flagged)
        }
        // Without an identity there are inserts only, and no old row to be told.
        ReplicaIdentity::Full | ReplicaIdentity::Nothing => facts
            .zip(primary)
            .and_then(|(facts, primary)| places(descriptor, facts, primary))
            .unwrap_or_default(),
    }
}

fn flagged(descriptor: &RelationDescriptor) -> Vec<usize> {
    let columns = descriptor.columns.iter().enumerate();
    columns.filter(|(_, column)| column.identity).map(|(index, _)| index).collect()
}

/// The flagged columns in the order of the index, if it still is the one that they were flagged
/// for; otherwise in the stream's order.
fn in_order_of(
    descriptor: &RelationDescriptor,
    index: Option<&KeyFacts>,
    flagged: Vec<usize>,
) -> Vec<usize> {
    let place = |name: &String| {
        flagged
            .iter()
            .copied()
            .find(|at| descriptor.columns.get(*at).is_some_and(|column| column.name == *name))
    };
    let ordered: Option<Vec<usize>> =
        index.and_then(|index| index.columns.iter().map(place).collect());
    ordered.filter(|ordered| ordered.len() == flagged.len()).unwrap_or(flagged)
}

/// Where the columns of a key are in the description; `None` if one is not, or is another by now.
fn places(
    descriptor: &RelationDescriptor,
    facts: &TableFacts,
    key: &KeyFacts,
) -> Option<Vec<usize>> {
    key.columns
        .iter()
        .map(|name| {
            descriptor
                .columns
                .iter()
                .position(|column| column.name == *name && agreeing(facts, column).is_some())
        })
        .collect()
}

fn before_image(descriptor: &RelationDescriptor) -> BeforeImage {
    if descriptor.replica_identity == ReplicaIdentity::Full {
        return BeforeImage::Full;
    }
    match flagged(descriptor) {
        none if none.is_empty() => BeforeImage::None,
        columns => BeforeImage::Key(columns),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::change::{ColumnDefault, ColumnType};
    use crate::sources::postgres::catalogue::testing::table;
    use crate::sources::postgres::wire::RelationId;

    const INT4: u32 = 23;
    const TEXT: u32 = 25;
    const INT8: u32 = 20;

    fn column_facts(name: &str, type_oid: u32, not_null: bool, default: &str) -> ColumnFacts {
        ColumnFacts {
            attnum: 1,
            name: name.to_owned(),
            type_oid,
            typmod: -1,
            not_null,
            dimensions: 0,
            generated: Generated::No,
            default: Some(default.to_owned()).filter(|text| !text.is_empty()),
            comment: Some(format!("about {name}")),
            text_order: crate::sources::postgres::row_filter::TextOrder::Unknown,
        }
    }

    fn key_facts(columns: &[&str]) -> Option<KeyFacts> {
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        Some(KeyFacts { columns, is_immediate: true })
    }

    pub(in super::super) fn facts() -> TableFacts {
        let columns = vec![
            column_facts("a", INT4, true, ""),
            column_facts("b", INT4, true, ""),
            column_facts("c", TEXT, true, "'x'::text"),
            column_facts("d", TEXT, false, ""),
        ];
        TableFacts {
            primary_key: key_facts(&["b", "a"]),
            comment: Some("about t".to_owned()),
            ..table(columns)
        }
    }

    fn descriptor(identity: ReplicaIdentity, flags: [bool; 4]) -> RelationDescriptor {
        let columns = ["a", "b", "c", "d"].iter().zip(flags).zip([INT4, INT4, TEXT, TEXT]);
        RelationDescriptor {
            oid: RelationId(7),
            namespace: "public".to_owned(),
            name: "t".to_owned(),
            replica_identity: identity,
            columns: columns
                .map(|((name, identity), type_oid)| RelationColumn {
                    identity,
                    name: (*name).to_owned(),
                    type_oid,
                    typmod: -1,
                })
                .collect(),
        }
    }

    fn version(descriptor: &RelationDescriptor, facts: Option<&TableFacts>) -> TableVersion {
        build(descriptor, facts, &TypeCatalogue::new(), &|_| None, 3, &KeyRules::default()).version
    }

    /// The version of these facts where every column is sent.
    pub(in super::super) fn whole(facts: &TableFacts) -> TableVersion {
        version(&descriptor(ReplicaIdentity::Full, [true; 4]), Some(facts))
    }

    #[track_caller]
    fn check_key(
        (identity, flags): (ReplicaIdentity, [bool; 4]),
        facts: Option<&TableFacts>,
        key: &[usize],
        before: &BeforeImage,
    ) {
        let version = version(&descriptor(identity, flags), facts);
        assert_eq!((version.key.as_slice(), &version.before_image), (key, before));
    }

    #[test]
    fn records_are_keyed_by_what_old_rows_carry() {
        use ReplicaIdentity::{Default, Full, Index, Nothing};
        let (facts, none) = (facts(), [false; 4]);
        let both = BeforeImage::Key(vec![0, 1]);
        let ab = [true, true, false, false];
        check_key((Default, ab), Some(&facts), &[1, 0], &both);
        check_key((Default, ab), None, &[0, 1], &both);
        // The primary key changed since.
        let mut changed = facts.clone();
        changed.primary_key = key_facts(&["c"]);
        check_key((Default, ab), Some(&changed), &[0, 1], &both);
        // An index that is not the primary key.
        let mut by_index = facts.clone();
        by_index.identity_index = key_facts(&["c"]);
        let c = [false, false, true, false];
        check_key((Index, c), Some(&by_index), &[2], &BeforeImage::Key(vec![2]));
        check_key((Full, [true; 4]), Some(&facts), &[1, 0], &BeforeImage::Full);
        check_key((Full, [true; 4]), None, &[], &BeforeImage::Full);
        check_key((Nothing, none), Some(&facts), &[1, 0], &BeforeImage::None);
        let mut deferrable = facts.clone();
        deferrable.primary_key.iter_mut().for_each(|key| key.is_immediate = false);
        check_key((Full, [true; 4]), Some(&deferrable), &[], &BeforeImage::Full);
        check_key((Nothing, none), Some(&deferrable), &[], &BeforeImage::None);
        check_key((Default, none), None, &[], &BeforeImage::None);
    }

    #[test]
    fn a_primary_key_that_is_another_by_now_is_no_key() {
        let mut facts = facts();
        facts.columns[1].type_oid = INT8;
        check_key((ReplicaIdentity::Full, [true; 4]), Some(&facts), &[], &BeforeImage::Full);
        facts.primary_key = key_facts(&["gone"]);
        check_key((ReplicaIdentity::Full, [true; 4]), Some(&facts), &[], &BeforeImage::Full);
    }

    #[test]
    fn what_could_be_null_stays_optional() {
        let mut then = facts();
        then.columns[2].not_null = false;
        then.columns.truncate(3);
        let mut now = facts();
        now.columns.iter_mut().for_each(|column| column.not_null = true);
        let not_null = |facts: Option<TableFacts>| {
            let columns = facts.expect("known").columns;
            columns.iter().map(|column| column.not_null).collect::<Vec<_>>()
        };
        // the last column is new
        let expect: Vec<_> =
            then.columns.iter().map(|column| column.not_null).chain([true]).collect();
        assert_eq!(not_null(still_optional(Some(now.clone()), Some(&then))), expect);
        assert_eq!(not_null(still_optional(Some(now), None)), [true; 4]);
        assert_eq!(still_optional(None, Some(&then)), None);
    }

    #[test]
    fn a_key_that_the_catalogue_no_longer_knows_is_remembered() {
        use ReplicaIdentity::{Default, Full};
        let key = |identity, now: Option<TableFacts>, remembered: Option<&TableFacts>| {
            let descriptor = descriptor(identity, [true; 4]);
            let best = best_facts(&descriptor, now, remembered);
            version(&descriptor, best.as_ref()).key
        };
        let then = facts();
        let mut retyped = facts();
        retyped.columns[1].type_oid = INT8;
        let mut keyless = facts();
        keyless.primary_key = None;
        let mut deferrable = facts();
        deferrable.primary_key.iter_mut().for_each(|key| key.is_immediate = false);
        let mut moved = facts();
        moved.primary_key = key_facts(&["c"]);
        // dropped, or the key's column is another by now
        assert_eq!(key(Full, None, Some(&then)), [1, 0]);
        assert_eq!(key(Full, Some(retyped.clone()), Some(&then)), [1, 0]);
        assert_eq!(key(Full, Some(retyped.clone()), Some(&retyped)), [0; 0]);
        assert_eq!(key(Full, Some(retyped), Some(&keyless)), [0; 0]);
        // what the catalogue does know is newer
        assert_eq!(key(Full, Some(moved), Some(&then)), [2]);
        assert_eq!(key(Full, Some(keyless), Some(&then)), [0; 0]);
        assert_eq!(key(Full, Some(deferrable), Some(&then)), [0; 0]);
        // flags of columns need no help
        assert_eq!(key(Default, None, Some(&then)), [0, 1, 2, 3]);
    }

    #[test]
    fn the_catalogue_adds_only_to_columns_that_agree() {
        let full = descriptor(ReplicaIdentity::Full, [true; 4]);
        let joined = version(&full, Some(&facts()));
        let nullable: Vec<bool> = joined.columns.iter().map(|column| column.nullable).collect();
        assert_eq!(nullable, [false, false, false, true]);
        let c = &joined.columns[2];
        assert_eq!(c.default, Some(ColumnDefault::Literal(b"x".to_vec())));
        assert_eq!(c.comment.as_deref(), Some("about c"));
        assert_eq!(c.kind, ColumnType::Text);

        let mut other = full.clone();
        other.columns[2].typmod = 14;
        let c = &version(&other, Some(&facts())).columns[2];
        assert!(c.nullable && c.default.is_none() && c.comment.is_none());
        let alone = version(&full, None);
        assert!(alone.columns.iter().all(|column| column.nullable && column.default.is_none()));
    }

    #[test]
    fn flags_of_a_key_promise_that_there_is_no_null() {
        let flags = [true, false, false, false];
        let alone = version(&descriptor(ReplicaIdentity::Default, flags), None);
        assert!(!alone.columns[0].nullable && alone.columns[1].nullable);
    }

    #[test]
    fn the_rest_is_the_streams() {
        let descriptor = descriptor(ReplicaIdentity::Full, [true; 4]);
        let version = version(&descriptor, Some(&facts()));
        assert_eq!(version.table.to_string(), "public.t");
        assert_eq!((version.native_id, version.epoch), (7, 3));
        assert_eq!(version.fingerprint, descriptor.fingerprint());
        assert_eq!(version.identity, "full");
        assert_eq!(version.comment.as_deref(), Some("about t"));
    }
}

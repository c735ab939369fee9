//! What the columns of a predicate were when it was applied, and whether they are that still.
//!
//! A predicate's text means something only together with its columns: under another type, behind
//! another column of the same name, or with labels that changed their names it is another filter.
//! Pure. **Invariant:** what is not known to keep the meaning is told as a change.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::sql_type::SqlType;
use super::{Predicate, Scope};
use crate::sources::postgres::catalogue::TableFacts;
use crate::sources::postgres::connection::literal;
use crate::sources::postgres::relations::{RelationColumn, RelationDescriptor};
use crate::sources::postgres::values::{TypeCatalogue, TypeKind, TypeRow};
use crate::sources::postgres::wire::Lsn;

/// Labels of enums as the catalogue has them now, in their order, by the numbers of their types: each
/// with its own number, which stays the same when it is renamed.
pub(in crate::sources::postgres) type Labels = HashMap<u32, Vec<(u32, String)>>;

/// See the module. Stored with the table's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sources::postgres) struct Applied {
    /// Versions up to this one were there when it was applied: it holds for them as they are.
    epoch: u64,
    /// So does what was written up to this position of the log.
    #[serde(default, skip_serializing_if = "is_zero")]
    until: u64,
    /// The names of the columns of rows then, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    order: Vec<String>,
    columns: Vec<AppliedColumn>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A description that is held against what was applied.
#[derive(Clone, Copy)]
pub(in crate::sources::postgres) struct Described<'a> {
    pub(in crate::sources::postgres) descriptor: &'a RelationDescriptor,
    pub(in crate::sources::postgres) epoch: u64,
    /// Where it stands in the log.
    pub(in crate::sources::postgres) at: Lsn,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct AppliedColumn {
    name: String,
    type_oid: u32,
    typmod: i32,
    /// Its number; `None`: the catalogue did not have it so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attnum: Option<i16>,
    /// The labels that the predicate depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    labels: Vec<(u32, String)>,
}

impl Applied {
    /// What a predicate depends on as the table is described.
    pub(super) fn of(
        predicate: &Predicate,
        scope: &Scope<'_>,
        descriptor: &RelationDescriptor,
        labels: &Labels,
    ) -> Self {
        let is_named = |label: &str| predicate.sql.contains(&literal(label));
        let columns = predicate.columns.iter().filter_map(|index| {
            let column = descriptor.columns.get(*index)?;
            let known = enum_of(column.type_oid, scope.types).and_then(|oid| labels.get(&oid));
            let labels = known.into_iter().flatten().filter(|(_, label)| is_named(label));
            Some(AppliedColumn {
                name: column.name.clone(),
                type_oid: column.type_oid,
                typmod: column.typmod,
                attnum: number(scope.facts, column),
                labels: labels.cloned().collect(),
            })
        });
        let order = descriptor.columns.iter().map(|column| column.name.clone()).collect();
        Self { epoch: scope.version.epoch, until: 0, order, columns: columns.collect() }
    }

    /// As if it had been applied when a version was the newest, and the log ended at a position.
    pub(in crate::sources::postgres) fn through(self, epoch: u64, until: Lsn) -> Self {
        Self { epoch, until: until.0, ..self }
    }

    /// If it was applied behind a version that comes only now: itself, as having known that.
    pub(in crate::sources::postgres) fn knowing(self, epoch: u64, at: Lsn) -> Option<Self> {
        (at.0 <= self.until).then_some(Self { epoch, ..self })
    }

    /// How a column differs from what it was, in a way that may give the predicate another meaning.
    /// `facts` and `labels` are of now.
    pub(in crate::sources::postgres) fn redefined(
        &self,
        Described { descriptor, epoch, at }: Described<'_>,
        facts: Option<&TableFacts>,
        labels: &Labels,
        types: &TypeCatalogue,
    ) -> Option<(String, String)> {
        let mixes_chars = self.columns.iter().any(|one| one.type_oid == CHAR);
        let told = |before: &AppliedColumn, what| Some((before.name.clone(), what));
        let of_version =
            |before: &AppliedColumn| told(before, before.retyped(descriptor, types, mixes_chars)?);
        let of_now = |before: &AppliedColumn| {
            told(before, before.replaced(descriptor, facts, (labels, types))?)
        };
        let of_order =
            |before: &AppliedColumn| told(before, before.moved(&self.order, descriptor, facts?)?);
        let is_later = epoch > self.epoch && at.0 > self.until;
        let retyped = is_later.then(|| self.columns.iter().find_map(of_version)).flatten();
        retyped
            .or_else(|| self.columns.iter().find_map(of_now))
            .or_else(|| is_later.then(|| self.columns.iter().find_map(of_order)).flatten())
    }

    /// Whether rows of a description of before it was applied were judged by what its columns are
    /// now. `then` is that description with what the catalogue said of it, `now` what it says of the
    /// table at present. What is not known is not alike.
    pub(in crate::sources::postgres) fn judges_alike(
        &self,
        then: (&RelationDescriptor, Option<&TableFacts>),
        now: Option<&TableFacts>,
    ) -> bool {
        let Some(now) = now else { return false };
        let mixes_chars = self.columns.iter().any(|one| one.type_oid == CHAR);
        self.columns.iter().all(|one| one.was_itself(then, mixes_chars))
            && self.columns.iter().all(|one| one.moved(&self.order, then.0, now).is_none())
    }

    /// The same of labels: enums that it depends on had the labels that they have.
    pub(in crate::sources::postgres) fn labels_are_alike(
        &self,
        then: &[TypeRow],
        now: &Labels,
        types: &TypeCatalogue,
    ) -> bool {
        let dependent = self.columns.iter().filter(|one| !one.labels.is_empty());
        dependent.map(|one| enum_of(one.type_oid, types)).all(|of| {
            let then = then.iter().find(|row| Some(row.oid) == of);
            let now = of.and_then(|oid| now.get(&oid));
            then.zip(now)
                .is_some_and(|(then, now)| now.iter().map(|(_, label)| label).eq(&then.labels))
        })
    }

    /// Whether labels of enums decide what it means.
    pub(in crate::sources::postgres) fn has_labels(&self) -> bool {
        self.columns.iter().any(|one| !one.labels.is_empty())
    }

    /// The labels that it depends on.
    pub(in crate::sources::postgres) fn labels(
        &self,
    ) -> impl Iterator<Item = (&str, &(u32, String))> {
        let columns = self.columns.iter();
        columns.flat_map(|one| one.labels.iter().map(|label| (one.name.as_str(), label)))
    }
}

impl AppliedColumn {
    /// What the description shows.
    fn retyped(
        &self,
        descriptor: &RelationDescriptor,
        types: &TypeCatalogue,
        mixes_chars: bool,
    ) -> Option<String> {
        let Some(now) = descriptor.columns.iter().find(|column| column.name == self.name) else {
            return Some("there is no such column any more".to_owned());
        };
        let (was, is) = ((self.type_oid, self.typmod), (now.type_oid, now.typmod));
        let name = |(oid, typmod): (u32, i32)| type_name(oid, typmod, types);
        (!keeps_meaning(was, is, mixes_chars))
            .then(|| format!("it was of the type {}, and is of {}", name(was), name(is)))
    }

    /// Whether the column of this name was this one then.
    fn was_itself(
        &self,
        (descriptor, facts): (&RelationDescriptor, Option<&TableFacts>),
        mixes_chars: bool,
    ) -> bool {
        let Some(then) = descriptor.columns.iter().find(|column| column.name == self.name) else {
            return false;
        };
        let (was, is) = ((then.type_oid, then.typmod), (self.type_oid, self.typmod));
        let was_number = number(facts, then);
        keeps_meaning(was, is, mixes_chars) && (was_number.is_none() || was_number == self.attnum)
    }

    /// What only the catalogue shows.
    fn replaced(
        &self,
        descriptor: &RelationDescriptor,
        facts: Option<&TableFacts>,
        (labels, types): (&Labels, &TypeCatalogue),
    ) -> Option<String> {
        let now = descriptor.columns.iter().find(|column| column.name == self.name)?;
        if let (Some(was), Some(is)) = (self.attnum, number(facts, now))
            && was != is
        {
            return Some(format!(
                "it is another column under this name: it was the table's column number {was}, and \
                 is number {is}"
            ));
        }
        let known = enum_of(now.type_oid, types).and_then(|oid| labels.get(&oid))?;
        self.labels.iter().find_map(|(oid, was)| renamed(*oid, was, known))
    }

    /// What neither shows by itself: the name was another column's for a while. Rows have their
    /// columns in the order of their numbers, and no column ever comes to be before another; so a
    /// column stands where it stood when the filter was applied, or further in front by those that
    /// were dropped, and never further in front than now.
    fn moved(
        &self,
        order: &[String],
        descriptor: &RelationDescriptor,
        facts: &TableFacts,
    ) -> Option<String> {
        let was = order.iter().position(|name| *name == self.name)?;
        let columns = &descriptor.columns;
        let here = columns.iter().position(|column| column.name == self.name)?;
        let own = self.attnum?;
        let then: HashMap<&str, usize> =
            order.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
        let rows: HashMap<&str, usize> =
            columns.iter().enumerate().map(|(place, one)| (one.name.as_str(), place)).collect();
        // what no row had is not counted
        let is_shown = |name: &str| then.contains_key(name) || rows.contains_key(name);
        let in_front = |number: i16| number < own;
        let now = facts.columns.iter().filter(|one| in_front(one.attnum) && is_shown(&one.name));
        let has_changed_sides = facts.columns.iter().any(|other| {
            let name = other.name.as_str();
            let (Some(place), Some(row)) = (then.get(name), rows.get(name)) else { return false };
            (*place < was) == in_front(other.attnum) && (*place < was) != (*row < here)
        });
        (here > was || here < now.count() || has_changed_sides).then(|| {
            "it is another column under this name here: columns changed names, and changed them back"
                .to_owned()
        })
    }
}

/// What became of a label, if it has another name.
pub(in crate::sources::postgres) fn renamed(
    oid: u32,
    was: &str,
    now: &[(u32, String)],
) -> Option<String> {
    match now.iter().find(|(other, _)| *other == oid) {
        Some((_, is)) if is == was => None,
        Some((_, is)) => Some(format!("its label '{was}' is called '{is}' now")),
        None => Some(format!("its label '{was}' is gone")),
    }
}

/// The enum that values of a type are labels of.
pub(in crate::sources::postgres) fn enum_of(oid: u32, types: &TypeCatalogue) -> Option<u32> {
    let mut at = oid;
    for _ in 0..64 {
        match &types.facts(at)?.kind {
            TypeKind::Domain { base_oid, .. } => at = *base_oid,
            TypeKind::Enum { .. } => return Some(at),
            _ => return None,
        }
    }
    None
}

fn number(facts: Option<&TableFacts>, column: &RelationColumn) -> Option<i16> {
    facts?.column(&column.name).map(|known| known.attnum)
}

fn type_name(oid: u32, typmod: i32, types: &TypeCatalogue) -> String {
    let name = match types.facts(oid) {
        Some(facts) if facts.is_built_in() => SqlType::of(oid, types).to_string(),
        Some(facts) => format!("{}.{}", facts.namespace, facts.name),
        None => format!("number {oid}"),
    };
    match (oid, typmod) {
        (CHAR | VARCHAR, 4..) => format!("{name}({})", typmod - 4),
        (NUMERIC, 4..) => {
            let (precision, scale) = digits(typmod);
            format!("{name}({precision},{scale})")
        }
        (TIME | TIMESTAMP | TIMESTAMPTZ | TIMETZ, 0..) => format!("{name}({typmod})"),
        _ => name,
    }
}

const CHAR: u32 = 1042;
const VARCHAR: u32 = 1043;
const TEXT: u32 = 25;
const INT2: u32 = 21;
const INT4: u32 = 23;
const INT8: u32 = 20;
const NUMERIC: u32 = 1700;
const TIME: u32 = 1083;
const TIMESTAMP: u32 = 1114;
const TIMESTAMPTZ: u32 = 1184;
const TIMETZ: u32 = 1266;

/// Whether every comparison says of every value what it said before: `now` holds all values of
/// `was`, compares them alike, and no literal is read in another way.
fn keeps_meaning(was: (u32, i32), now: (u32, i32), mixes_chars: bool) -> bool {
    let is_wider = |was: i32, now: i32| now < 0 || (was >= 0 && now >= was);
    match (was.0, now.0) {
        _ if was == now => true,
        (INT2, INT4 | INT8) | (INT4, INT8) => true,
        (VARCHAR, VARCHAR) => is_wider(was.1, now.1),
        // beside a char(n) column a varchar is compared without padding, a text with it
        (VARCHAR, TEXT) => !mixes_chars,
        (NUMERIC, NUMERIC) => {
            let (before, after) = (digits(was.1), digits(now.1));
            now.1 < 0
                || (was.1 >= 0 && after.1 >= before.1 && after.0 - after.1 >= before.0 - before.1)
        }
        (TIME, TIME) | (TIMESTAMP, TIMESTAMP) | (TIMESTAMPTZ, TIMESTAMPTZ) | (TIMETZ, TIMETZ) => {
            is_wider(was.1, now.1)
        }
        _ => false,
    }
}

/// Precision and scale (`numeric_typmod_precision`, `numeric_typmod_scale`, numeric.c).
const fn digits(typmod: i32) -> (i32, i32) {
    let packed = typmod - 4;
    ((packed >> 16) & 0xffff, ((packed & 0x7ff) ^ 1024) - 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::postgres::catalogue::testing::{column, table};
    use crate::sources::postgres::values::TypeFacts;
    use crate::sources::postgres::wire::{RelationId, ReplicaIdentity};

    const MOOD: u32 = 70_000;
    const FLOAT4: u32 = 700;
    const FLOAT8: u32 = 701;

    #[track_caller]
    fn check(was: (u32, i32), now: (u32, i32), expect: bool) {
        assert_eq!(keeps_meaning(was, now, false), expect, "{was:?} {now:?}");
    }

    const fn numeric(precision: i32, scale: i32) -> (u32, i32) {
        (NUMERIC, ((precision << 16) | (scale & 0x7ff)) + 4)
    }

    #[test]
    fn only_what_holds_more_of_the_same_keeps_the_meaning() {
        check((INT2, -1), (INT4, -1), true);
        check((INT4, -1), (INT8, -1), true);
        check((INT8, -1), (INT4, -1), false);
        check((INT4, -1), (TEXT, -1), false);
        check((FLOAT4, -1), (FLOAT8, -1), false);
        check((VARCHAR, 7), (VARCHAR, 9), true);
        check((VARCHAR, 9), (VARCHAR, 7), false);
        check((VARCHAR, 9), (VARCHAR, -1), true);
        check((VARCHAR, -1), (VARCHAR, 9), false);
        check((VARCHAR, 9), (TEXT, -1), true);
        check((CHAR, 7), (CHAR, 9), false);
        check(numeric(10, 2), numeric(12, 3), true);
        check(numeric(10, 2), numeric(10, 3), false);
        check(numeric(10, 2), numeric(12, 1), false);
        check(numeric(10, -2), numeric(12, 0), true);
        check(numeric(10, 2), (NUMERIC, -1), true);
        check((NUMERIC, -1), numeric(10, 2), false);
        check((TIMESTAMP, 3), (TIMESTAMP, -1), true);
        check((TIMESTAMP, -1), (TIMESTAMP, 0), false);
        assert!(!keeps_meaning((VARCHAR, 9), (TEXT, -1), true));
    }

    fn descriptor(columns: &[(&str, u32, i32)]) -> RelationDescriptor {
        RelationDescriptor {
            oid: RelationId(7),
            namespace: "public".to_owned(),
            name: "t".to_owned(),
            replica_identity: ReplicaIdentity::Full,
            columns: columns
                .iter()
                .map(|(name, type_oid, typmod)| RelationColumn {
                    identity: true,
                    name: (*name).to_owned(),
                    type_oid: *type_oid,
                    typmod: *typmod,
                })
                .collect(),
        }
    }

    fn applied(labels: &[(u32, &str)]) -> Applied {
        Applied {
            epoch: 1,
            until: 0,
            order: Vec::new(),
            columns: vec![AppliedColumn {
                name: "a".to_owned(),
                type_oid: INT4,
                typmod: -1,
                attnum: None,
                labels: labels.iter().map(|(oid, label)| (*oid, (*label).to_owned())).collect(),
            }],
        }
    }

    #[test]
    fn a_change_is_told_with_its_column_and_what_it_was() {
        let types = TypeCatalogue::new();
        let told = |columns: &[(&str, u32, i32)]| {
            let of = descriptor(columns);
            let described = Described { descriptor: &of, epoch: 2, at: Lsn(5) };
            applied(&[]).redefined(described, None, &Labels::new(), &types)
        };
        assert_eq!(told(&[("b", TEXT, -1), ("a", INT4, -1)]), None);
        assert_eq!(told(&[("a", INT8, -1)]), None);
        let (column, what) = told(&[("a", VARCHAR, 7)]).expect("another type");
        assert_eq!(
            (column.as_str(), what.as_str()),
            ("a", "it was of the type int4, and is of varchar(3)")
        );
        assert!(told(&[("b", INT4, -1)]).is_some(), "gone");
        let text = descriptor(&[("a", TEXT, -1)]);
        let told = |applied: Applied, epoch| {
            let described = Described { descriptor: &text, epoch, at: Lsn(5) };
            applied.redefined(described, None, &Labels::new(), &types)
        };
        let old = told(applied(&[]), 1);
        assert_eq!(old, None, "a version that was there when it was applied");
        assert!(told(applied(&[]), 2).is_some());
        assert!(told(applied(&[]).through(1, Lsn(4)), 2).is_some());
        assert_eq!(told(applied(&[]).through(1, Lsn(5)), 2), None, "it was written before that");
    }

    fn facts(columns: &[(i16, &str)]) -> TableFacts {
        let columns = columns.iter().map(|(attnum, name)| column(*attnum, name, INT4));
        TableFacts { replica_identity: ReplicaIdentity::Full, ..table(columns.collect()) }
    }

    #[track_caller]
    fn moved(order: &str, rows: &str, now: &[(i16, &str)], expect: bool) {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let own = now.iter().find(|(_, name)| *name == "a").map(|(number, _)| *number);
        let mut applied = applied(&[]);
        applied.order = names(order);
        applied.columns.iter_mut().for_each(|column| column.attnum = own);
        let rows = names(rows);
        let columns: Vec<_> = rows.iter().map(|name| (name.as_str(), INT4, -1)).collect();
        let of = descriptor(&columns);
        let described = Described { descriptor: &of, epoch: 2, at: Lsn(5) };
        let types = TypeCatalogue::new();
        let told = applied.redefined(described, Some(&facts(now)), &Labels::new(), &types);
        assert_eq!(told.is_some(), expect, "{order} | {rows:?} | {now:?}: {told:?}");
    }

    #[test]
    fn a_name_that_was_another_columns_for_a_while_is_told_by_its_place() {
        let now = [(1, "k"), (2, "a"), (3, "b"), (4, "c")];
        moved("k a b c", "k a b c", &now, false);
        moved("k a b c", "k b a c", &now, true);
        moved("k a b c", "k x a c", &now, true);
        moved("k a b c", "a k b c", &now, true);
        moved("k a b c", "k a c b", &now, false);
        moved("k a b", "k a b c", &now, false);
        // columns in front of it that were dropped before, behind, or dropped and added anew
        let less = [(1, "k"), (3, "a"), (4, "b")];
        moved("k x a b", "k a b", &less, false);
        moved("k x a b", "k x a b", &less, false);
        moved("k x a b", "k b a", &less, true);
        moved("k x a b", "a k b", &less, true);
        moved("k x a b", "k x a b", &[(1, "k"), (3, "a"), (4, "b"), (5, "x")], false);
        // others that changed names and back around it, and one that has another name by now
        moved("k x a b", "k y a b", &[(1, "k"), (2, "x"), (3, "a"), (4, "b")], false);
        moved("k y a b", "k y a b", &[(1, "k"), (2, "x"), (3, "a"), (4, "b")], false);
        // of a publication's column list
        moved("a b", "a b", &now, false);
        moved("a b", "b a", &now, true);
    }

    #[test]
    fn a_label_is_told_by_its_number() {
        let now = [(10, "x".to_owned()), (11, "b".to_owned())];
        assert_eq!(renamed(11, "b", &now), None);
        assert_eq!(renamed(10, "b", &now).as_deref(), Some("its label 'b' is called 'x' now"));
        assert_eq!(renamed(12, "b", &now).as_deref(), Some("its label 'b' is gone"));
        let stored = applied(&[(10, "b")]);
        let text = serde_json::to_string(&stored).expect("written");
        assert_eq!(serde_json::from_str::<Applied>(&text).expect("read"), stored);
        assert_eq!(stored.labels().count(), 1);
    }

    fn shown(columns: &[(i16, &str)]) -> RelationDescriptor {
        let columns: Vec<_> = columns.iter().map(|(_, name)| (*name, INT4, -1)).collect();
        descriptor(&columns)
    }

    #[track_caller]
    fn alike(then: &[(i16, &str)], now: &[(i16, &str)], expect: bool) {
        let mut applied = applied(&[]);
        applied.order = now.iter().map(|(_, name)| (*name).to_owned()).collect();
        applied.columns.iter_mut().for_each(|column| {
            column.attnum = now.iter().find(|(_, name)| *name == "a").map(|(number, _)| *number);
        });
        let (descriptor, now) = (shown(then), facts(now));
        for known in [Some(&facts(then)), None] {
            let found = applied.judges_alike((&descriptor, known), Some(&now));
            assert_eq!(found, expect, "{then:?} {now:?} {}", known.is_some());
        }
        assert!(!applied.judges_alike((&descriptor, None), None), "nobody knows");
    }

    #[test]
    fn what_was_written_before_is_judged_alike_if_columns_were_themselves() {
        let now = [(1, "k"), (2, "a"), (3, "b")];
        alike(&now, &now, true);
        alike(&[(1, "k"), (2, "b"), (3, "a")], &now, false);
        alike(&[(1, "a"), (2, "k"), (3, "b")], &now, false);
        alike(&[(1, "k"), (2, "x"), (3, "b")], &now, false);
        alike(&[(1, "k"), (2, "a"), (3, "x")], &now, true);
        alike(&[(1, "k"), (2, "a")], &now, true);
        // one behind it was dropped meanwhile; one in front was, and may have been it
        alike(&[(1, "k"), (2, "a"), (3, "b"), (4, "c")], &now, true);
        alike(&[(1, "k"), (2, "x"), (3, "a")], &[(1, "k"), (3, "a")], false);
    }

    #[test]
    fn what_was_written_before_is_judged_alike_if_types_and_labels_were_the_same() {
        let now = TableFacts { replica_identity: ReplicaIdentity::Full, ..table(Vec::new()) };
        let judged = |type_oid| {
            let then = descriptor(&[("a", type_oid, -1)]);
            let applied = Applied { order: vec!["a".to_owned()], ..applied(&[]) };
            applied.columns[0].was_itself((&then, Some(&now)), false)
        };
        assert!(judged(INT2) && judged(INT4));
        assert!(!judged(INT8) && !judged(TEXT));
        let mut types = TypeCatalogue::new();
        let row = |labels: &[&str]| {
            let labels = labels.iter().map(|label| (*label).to_owned()).collect();
            let (name, namespace) = ("mood".to_owned(), "public".to_owned());
            let kind = TypeKind::Enum { labels };
            TypeRow::from(&TypeFacts { oid: MOOD, name, namespace, kind })
        };
        types.recall(&[row(&["a", "b"])]);
        let mut applied = applied(&[(10, "b")]);
        applied.columns[0].type_oid = MOOD;
        let of = |numbers: &[(u32, &str)]| {
            let labels = numbers.iter().map(|(oid, label)| (*oid, (*label).to_owned()));
            Labels::from([(MOOD, labels.collect())])
        };
        let asked = |then: &[TypeRow], now: &Labels| applied.labels_are_alike(then, now, &types);
        let then = [row(&["a", "b"])];
        assert!(asked(&then, &of(&[(9, "a"), (10, "b")])));
        assert!(!asked(&then, &of(&[(9, "b"), (10, "a")])), "they changed names");
        assert!(!asked(&then, &of(&[(9, "a"), (11, "b"), (10, "x")])), "one came in its place");
        assert!(!asked(&[], &of(&[(9, "a"), (10, "b")])), "nobody knows");
        assert!(!asked(&then, &Labels::new()), "nobody knows");
    }
}

//! Which relations are captured, published and held to account for their identity.
//!
//! Applies the filters to the catalogue's list, and follows partitions in the way in which the
//! publication will. Pure: asks nobody. **Invariants:** a filter that names nothing that can be
//! captured is a fault, never a quiet nothing; every relation whose rows a publication would carry
//! is listed for the identity check, captured or not, because it is the application whose
//! statements would fail.

use std::collections::{BTreeMap, HashMap, HashSet};

use regex::Regex;

use super::TableFilter;
use super::catalogue::{RelationEntry, RelationKind};
use super::connection::identifier;
use super::pushdown::Pushed;
use super::settings::SignalTable;
use crate::error::{Code, Fault};

/// How many tables a message names.
const SHOWN: usize = 5;

/// What the filters come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The relations under whose names rows are streamed and read by snapshots.
    pub captured: Vec<RelationEntry>,
    /// The relations that a publication must list. Partitions come with their partitioned table.
    pub published: Vec<RelationEntry>,
    /// The relations whose statements depend on their identity once published.
    pub accountable: Vec<Accountable>,
    /// The row filters that the publication must have, by the relations' numbers.
    pub pushed: BTreeMap<u32, Pushed>,
    /// The table by whose rows orders come.
    pub signals: Option<RelationEntry>,
    /// What an operator should know, though nothing fails.
    pub warnings: Vec<String>,
}

/// A relation whose identity matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accountable {
    /// The relation.
    pub oid: u32,
    /// The partitioned table under whose name its rows are published.
    pub root: Option<u32>,
}

/// Applies the filters. `via_root`: rows of partitions are published under the partitioned table.
///
/// # Errors
/// Every filter that names nothing, and every named relation that cannot be captured.
pub fn select(
    relations: &[RelationEntry],
    filter: &TableFilter,
    via_root: bool,
) -> Result<Selection, Vec<Fault>> {
    let tree = Tree::new(relations);
    let matched: HashSet<u32> = relations
        .iter()
        .filter(|relation| filter.captures(&relation.namespace, &relation.name))
        .map(|relation| relation.oid)
        .collect();
    let mut faults = unmatched_patterns(relations, filter);
    let mut selection = Selection::default();
    for relation in relations.iter().filter(|relation| matched.contains(&relation.oid)) {
        let is_named = filter.table_include.is_some();
        match unsupported(relation) {
            Some(_) if relation.kind == RelationKind::View => {}
            Some(what) if is_named => faults.push(unsupported_fault(relation, what)),
            Some(what) => selection
                .warnings
                .push(format!("{} is not captured: it is {what}", relation.qualified_name())),
            None => tree.add(relation, &matched, via_root, &mut selection, &mut faults),
        }
    }
    if let Some(signals) = &filter.signals {
        faults.extend(add_signals(relations, signals, &mut selection));
    }
    if selection.captured.is_empty() && faults.is_empty() {
        faults.push(Code::TableMissing.fault("the table filters match no table"));
    }
    if faults.is_empty() { Ok(selection) } else { Err(faults) }
}

/// The signal table has to be published, captured or not.
fn add_signals(
    relations: &[RelationEntry],
    signals: &SignalTable,
    selection: &mut Selection,
) -> Option<Fault> {
    let key = "signal.data.collection";
    let found = relations.iter().find(|one| signals.is(&one.namespace, &one.name));
    let Some(table) = found else {
        let (namespace, name) = (identifier(&signals.namespace), identifier(&signals.name));
        return Some(
            Code::TableMissing
                .fault(format!("there is no table {}.{}", signals.namespace, signals.name))
                .hint(format!(
                    "CREATE TABLE {namespace}.{name} (id varchar(42) PRIMARY KEY, type varchar(32) \
                     NOT NULL, data varchar(2048));"
                ))
                .about(key),
        );
    };
    if table.kind != RelationKind::Table || !table.is_logged || table.partition_of.is_some() {
        let fault = unsupported_fault(table, "no ordinary table, as signals need it");
        return Some(fault.about(key));
    }
    selection.signals = Some(table.clone());
    if !selection.published.iter().any(|one| one.oid == table.oid) {
        selection.published.push(table.clone());
        selection.accountable.push(Accountable { oid: table.oid, root: None });
    }
    None
}

/// Every table of a database, as a publication of all tables makes them accountable.
pub fn all_accountable(relations: &[RelationEntry], via_root: bool) -> Vec<Accountable> {
    let tree = Tree::new(relations);
    relations
        .iter()
        .filter(|relation| relation.kind == RelationKind::Table && unsupported(relation).is_none())
        .map(|relation| {
            let root = tree.topmost(relation).filter(|_| via_root);
            Accountable { oid: relation.oid, root }
        })
        .collect()
}

/// Why a relation has no change stream.
fn unsupported(relation: &RelationEntry) -> Option<&'static str> {
    match relation.kind {
        RelationKind::View => Some("a view"),
        RelationKind::Foreign => Some("a foreign table"),
        // A partitioned table has no rows of its own, so it is never unlogged.
        RelationKind::Table if !relation.is_logged => {
            Some("unlogged: its changes are not in the log")
        }
        RelationKind::Table | RelationKind::Partitioned => None,
    }
}

fn unsupported_fault(relation: &RelationEntry, what: &str) -> Fault {
    let table = relation.qualified_name();
    Code::TableUnsupported.fault(format!("\"{table}\" is {what}")).at_table(table)
}

/// Each pattern of `table.include.list` must stand for something that can be captured.
fn unmatched_patterns(relations: &[RelationEntry], filter: &TableFilter) -> Vec<Fault> {
    let fault = |pattern: &Regex| {
        let mut matches = relations
            .iter()
            .filter(|relation| pattern.is_match(&relation.qualified_name()))
            .peekable();
        if matches.peek().is_none() {
            return Some(no_match(pattern, relations));
        }
        // A view beside tables is passed over; a pattern for views alone is a mistake.
        let views: Vec<_> = matches.collect();
        let only_views = views.iter().all(|relation| relation.kind == RelationKind::View);
        views.first().filter(|_| only_views).map(|view| unsupported_fault(view, "a view"))
    };
    filter.table_include.iter().flatten().filter_map(fault).collect()
}

fn no_match(pattern: &Regex, relations: &[RelationEntry]) -> Fault {
    // as it was given, without what anchors it
    let text = pattern.as_str();
    let given = text.strip_prefix("^(?:").and_then(|text| text.strip_suffix(")$")).unwrap_or(text);
    let fault =
        Code::TableMissing.fault(format!("no table matches \"{given}\" of table.include.list"));
    let mut names: Vec<_> = relations.iter().map(RelationEntry::qualified_name).collect();
    names.sort_unstable();
    if names.is_empty() {
        return fault
            .hint("The database has no tables that the role can see; create the table first.");
    }
    let more = if names.len() > SHOWN { ", …" } else { "" };
    names.truncate(SHOWN);
    fault.hint(format!("Correct table.include.list; the database has {}{more}.", names.join(", ")))
}

/// Partitioned tables and their partitions.
struct Tree<'a> {
    by_oid: HashMap<u32, &'a RelationEntry>,
    children: HashMap<u32, Vec<&'a RelationEntry>>,
}

impl<'a> Tree<'a> {
    fn new(relations: &'a [RelationEntry]) -> Self {
        let by_oid = relations.iter().map(|relation| (relation.oid, relation)).collect();
        let mut children: HashMap<u32, Vec<&RelationEntry>> = HashMap::new();
        for relation in relations {
            if let Some(parent) = relation.partition_of {
                children.entry(parent).or_default().push(relation);
            }
        }
        Self { by_oid, children }
    }

    /// Whether a partitioned table above the relation is among the matched ones.
    fn is_below(&self, relation: &RelationEntry, matched: &HashSet<u32>) -> bool {
        let mut above = relation.partition_of;
        while let Some(oid) = above {
            if matched.contains(&oid) {
                return true;
            }
            above = self.by_oid.get(&oid).and_then(|parent| parent.partition_of);
        }
        false
    }

    /// The partitioned table at the top of a partition's tree.
    fn topmost(&self, relation: &RelationEntry) -> Option<u32> {
        let mut top = relation.partition_of?;
        while let Some(above) = self.by_oid.get(&top).and_then(|parent| parent.partition_of) {
            top = above;
        }
        Some(top)
    }

    /// The relations below that have rows.
    fn leaves(&self, oid: u32) -> Vec<&'a RelationEntry> {
        let mut leaves = Vec::new();
        let mut open = vec![oid];
        while let Some(oid) = open.pop() {
            for child in self.children.get(&oid).into_iter().flatten() {
                if child.kind == RelationKind::Partitioned {
                    open.push(child.oid);
                } else {
                    leaves.push(*child);
                }
            }
        }
        leaves.sort_by_key(|leaf| (&leaf.namespace, &leaf.name));
        leaves
    }

    fn add(
        &self,
        relation: &RelationEntry,
        matched: &HashSet<u32>,
        via_root: bool,
        selection: &mut Selection,
        faults: &mut Vec<Fault>,
    ) {
        let is_root = relation.kind == RelationKind::Partitioned;
        let is_covered = self.is_below(relation, matched);
        let comes_under_own_name = if via_root { !is_covered } else { !is_root };
        if comes_under_own_name {
            selection.captured.push(relation.clone());
        }
        if is_covered {
            return;
        }
        selection.published.push(relation.clone());
        if !is_root {
            selection.accountable.push(Accountable { oid: relation.oid, root: None });
            return;
        }
        let root = via_root.then_some(relation.oid);
        let leaves = self.leaves(relation.oid);
        for leaf in &leaves {
            match unsupported(leaf) {
                Some(what) => faults.push(unsupported_fault(leaf, what)),
                None => selection.accountable.push(Accountable { oid: leaf.oid, root }),
            }
        }
        if !via_root {
            self.judge_leaves(relation, &leaves, matched, selection, faults);
        }
    }

    /// Without the root's name, rows come under the partitions' own names, which the filters must
    /// name too.
    fn judge_leaves(
        &self,
        root: &RelationEntry,
        leaves: &[&RelationEntry],
        matched: &HashSet<u32>,
        selection: &mut Selection,
        faults: &mut Vec<Fault>,
    ) {
        let table = root.qualified_name();
        let left_out: Vec<String> = leaves
            .iter()
            .filter(|leaf| !matched.contains(&leaf.oid))
            .map(|leaf| leaf.qualified_name())
            .collect();
        if left_out.is_empty() {
            return;
        }
        let list = left_out.join(", ");
        if left_out.len() == leaves.len() {
            faults.push(
                Code::TableMissing
                    .fault(format!(
                        "\"{table}\" is partitioned, and the filters leave out its partitions \
                         {list}, under whose names its rows come"
                    ))
                    .hint(
                        "Set publish.via.partition.root=true, or let table.include.list match the \
                         partitions.",
                    )
                    .at_table(table),
            );
        } else {
            selection
                .warnings
                .push(format!("partitions of {table} that the filters leave out: {list}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(oid: u32, name: &str, kind: RelationKind, parent: Option<u32>) -> RelationEntry {
        RelationEntry {
            oid,
            namespace: "public".to_owned(),
            name: name.to_owned(),
            kind,
            is_logged: true,
            partition_of: parent,
        }
    }

    /// A plain table, a partitioned one with a sub-partitioned branch, and what has no stream.
    fn relations() -> Vec<RelationEntry> {
        use RelationKind::{Foreign, Partitioned, Table, View};
        let mut unlogged = entry(8, "u", Table, None);
        unlogged.is_logged = false;
        vec![
            entry(1, "t", Table, None),
            entry(2, "p", Partitioned, None),
            entry(3, "p_1", Table, Some(2)),
            entry(4, "p_2", Partitioned, Some(2)),
            entry(5, "p_2_a", Table, Some(4)),
            entry(6, "v", View, None),
            entry(7, "f", Foreign, None),
            unlogged,
        ]
    }

    fn filter(include: &[&str]) -> TableFilter {
        let pattern = |text: &&str| Regex::new(&format!("^(?:{text})$")).expect("a pattern");
        TableFilter {
            table_include: Some(include.iter().map(pattern).collect()),
            ..TableFilter::default()
        }
    }

    type Names<'a> = &'a [&'a str];

    #[track_caller]
    fn check(include: &[&str], via_root: bool, captured: Names<'_>, published: Names<'_>) {
        let selection = select(&relations(), &filter(include), via_root).expect("selected");
        let names = |list: &[RelationEntry]| {
            list.iter().map(|relation| relation.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&selection.captured), captured);
        assert_eq!(names(&selection.published), published);
    }

    #[test]
    fn the_signal_table_is_published_and_not_captured() {
        let with = |signals: &str| {
            let filter =
                TableFilter { signals: SignalTable::parse(signals), ..filter(&["public.t"]) };
            select(&relations(), &filter, true).map_err(|faults| faults[0].code())
        };
        let mut more = relations();
        more.push(entry(9, "s", RelationKind::Table, None));
        let both = TableFilter { signals: SignalTable::parse("public.s"), ..filter(&["public.t"]) };
        let selection = select(&more, &both, true).expect("selected");
        assert_eq!((selection.captured.len(), selection.published.len()), (1, 2));
        assert_eq!(selection.accountable.len(), 2, "its updates must not fail");
        assert_eq!(with("public.t").expect("selected").published.len(), 1, "once");
        assert_eq!(with("public.none"), Err(Code::TableMissing));
        for unfit in ["public.v", "public.p", "public.p_1", "public.u", "public.f"] {
            assert_eq!(with(unfit), Err(Code::TableUnsupported), "{unfit}");
        }
    }

    #[test]
    fn rows_come_under_the_name_that_the_publication_gives_them() {
        check(&[r"public\.t"], false, &["t"], &["t"]);
        check(&[r"public\.p"], true, &["p"], &["p"]);
        check(&[r"public\.p.*"], true, &["p"], &["p"]);
        check(&[r"public\.p.*"], false, &["p_1", "p_2_a"], &["p"]);
        check(&[r"public\.p_1"], true, &["p_1"], &["p_1"]);
        check(&[r"public\.p_2.*"], true, &["p_2"], &["p_2"]);
        check(&[r"public\.p_2_a", r"public\.t"], false, &["t", "p_2_a"], &["t", "p_2_a"]);
    }

    #[test]
    fn every_leaf_of_a_published_table_is_accountable() {
        let select =
            |via_root| select(&relations(), &filter(&[r"public\.(t|p.*)"]), via_root).expect("ok");
        let accountable = |oid, root| Accountable { oid, root };
        assert_eq!(
            select(true).accountable,
            [accountable(1, None), accountable(3, Some(2)), accountable(5, Some(2))]
        );
        assert_eq!(
            select(false).accountable,
            [accountable(1, None), accountable(3, None), accountable(5, None)]
        );
    }

    #[track_caller]
    fn check_fault(filter: &TableFilter, via_root: bool, code: Code, words: &str) {
        let faults = select(&relations(), filter, via_root).expect_err("refused");
        assert!(
            faults.iter().any(|fault| fault.code() == code && fault.to_string().contains(words)),
            "{faults:?}"
        );
    }

    #[test]
    fn filters_that_come_to_nothing_are_told() {
        check_fault(&filter(&[r"public\.t", r"public\.x"]), false, Code::TableMissing, "x");
        check_fault(&filter(&[r"public\.p"]), false, Code::TableMissing, "public.p_1");
        check_fault(&filter(&[r"public\.v"]), false, Code::TableUnsupported, "a view");
        check_fault(&filter(&[r"public\.[tf]"]), false, Code::TableUnsupported, "foreign");
        check_fault(&filter(&[r"public\.u"]), false, Code::TableUnsupported, "unlogged");
        let mut nothing = filter(&[r"public\.t"]);
        nothing.table_exclude = nothing.table_include.clone();
        check_fault(&nothing, false, Code::TableMissing, "match no table");
    }

    #[test]
    fn without_an_include_list_what_has_no_stream_is_passed_over_with_a_word() {
        let selection = select(&relations(), &TableFilter::default(), true).expect("selected");
        assert_eq!(selection.captured.len(), 2);
        assert_eq!(selection.warnings.len(), 2, "{:?}", selection.warnings);
        check(&[r"public\.[tv]"], false, &["t"], &["t"]);
    }

    #[test]
    fn publishing_everything_makes_everything_accountable() {
        let oids = |via_root| {
            let all = all_accountable(&relations(), via_root);
            all.iter().map(|one| (one.oid, one.root)).collect::<Vec<_>>()
        };
        assert_eq!(oids(false), [(1, None), (3, None), (5, None)]);
        assert_eq!(oids(true), [(1, None), (3, Some(2)), (5, Some(2))]);
    }

    #[test]
    fn leaves_without_a_stream_spoil_their_root() {
        let mut relations = relations();
        relations[2].is_logged = false;
        let faults = select(&relations, &filter(&[r"public\.p"]), true).expect_err("refused");
        assert_eq!(faults[0].place().table.as_deref(), Some("public.p_1"));
    }

    #[test]
    fn partitions_that_are_left_out_are_named() {
        let include = [r"public\.p", r"public\.p_1"];
        let selection = select(&relations(), &filter(&include), false).expect("selected");
        assert!(selection.warnings[0].contains("public.p_2_a"), "{:?}", selection.warnings);
    }
}

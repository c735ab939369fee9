//! What a note says, compared with what was known before it: changes of a definition, column by column.
//!
//! The stream's descriptions are compared by name (`change::diff`); a note also has the columns' own
//! numbers, so a rename is told from a column that went and one that came, and a column that was
//! made anew under its old name from one that stayed. Pure. **Invariant:** a definition that is as it
//! was gives no change, so a note that comes again says nothing.

use super::note::DescribedTable;
use crate::change::{ChangeClass, ColumnChange, Rewrite, TableChange, TableVersion, diff};
use crate::sources::postgres::catalogue::{ColumnFacts, Generated, TableFacts};

/// The server's reasons for writing a table anew (`AT_REWRITE_…` in `event_trigger.h`).
const REASONS: [(i32, &str); 4] =
    [(1, "persistence"), (PERHAPS_NEW, "default"), (TYPE, "type"), (8, "access method")];
const PERHAPS_NEW: i32 = 2;
const TYPE: i32 = 4;

/// One side of a comparison.
#[derive(Clone, Copy)]
pub(in crate::sources::postgres) struct Described<'a> {
    /// As it is compiled.
    pub(in crate::sources::postgres) version: &'a TableVersion,
    /// What the catalogue or a note said.
    pub(in crate::sources::postgres) facts: Option<&'a TableFacts>,
}

/// What differs; `None`: nothing.
pub(in crate::sources::postgres) fn altered(
    before: Described<'_>,
    after: Described<'_>,
) -> Option<TableChange> {
    let by_name = diff(before.version, after.version);
    let mut change = by_name.unwrap_or_else(|| TableChange {
        kind: "observed",
        class: ChangeClass::Baseline,
        columns: Vec::new(),
        rewrite: None,
    });
    if let (Some(then), Some(now)) = (before.facts, after.facts) {
        name_renames(&mut change.columns, then, now);
        for column in &now.columns {
            if let Some(old) = then.columns.iter().find(|old| old.attnum == column.attnum) {
                change.columns.extend(differences(old, column));
            }
        }
        change.columns.extend(topology(then, now));
    }
    let is_same = change.kind == "observed" && change.columns.is_empty();
    if is_same {
        return None;
    }
    change.class = change.columns.iter().map(|one| one.class).fold(
        match change.kind {
            "renamed" | "recreated" => ChangeClass::Relation,
            "identity" => ChangeClass::Identity,
            _ => ChangeClass::Additive,
        },
        ChangeClass::max,
    );
    if change.kind == "observed" {
        let is_topology = change.columns.iter().all(|one| one.class == ChangeClass::Topology);
        change.kind = if is_topology { "topology" } else { "ddl_captured" };
    }
    Some(change)
}

/// A column of another type that has another number was dropped and made anew under its name
/// (`pg_attribute.attnum` is never given twice): nothing was done to values that are there, for they
/// are gone.
pub(in crate::sources::postgres) fn name_replaced(
    change: &mut TableChange,
    then: Option<&TableFacts>,
    now: Option<&TableFacts>,
) {
    // another relation has numbers of its own
    let (Some(then), Some(now)) = (then, now.filter(|_| change.kind != "recreated")) else {
        return;
    };
    for column in change.columns.iter_mut().filter(|column| column.kind == "retyped") {
        let number = |facts: &TableFacts| facts.column(&column.column).map(|known| known.attnum);
        if let (Some(old), Some(new)) = (number(then), number(now))
            && old != new
        {
            column.kind = "replaced";
            column.class = ChangeClass::Destructive;
            change.class = change.class.max(ChangeClass::Destructive);
        }
    }
}

/// Columns that went and came under one number were renamed; one that kept its name under another
/// number went and came.
fn name_renames(changes: &mut Vec<ColumnChange>, then: &TableFacts, now: &TableFacts) {
    let mut known = Vec::new();
    for column in &now.columns {
        let same_name = then.column(&column.name);
        match then.columns.iter().find(|old| old.attnum == column.attnum) {
            Some(old) if old.name != column.name => known.push(ColumnChange {
                column: old.name.clone(),
                kind: "renamed",
                from: Some(old.name.clone()),
                to: Some(column.name.clone()),
                class: ChangeClass::Renamed,
            }),
            None if same_name.is_some() => known.push(ColumnChange {
                column: column.name.clone(),
                kind: "replaced",
                from: same_name.map(|old| old.attnum.to_string()),
                to: Some(column.attnum.to_string()),
                class: ChangeClass::Destructive,
            }),
            _ => {}
        }
    }
    let is_rename = |change: &ColumnChange| {
        known.iter().any(|one| {
            one.kind == "renamed"
                && match change.kind {
                    "dropped" => one.from.as_ref() == Some(&change.column),
                    "added" => one.to.as_ref() == Some(&change.column),
                    _ => false,
                }
        })
    };
    changes.retain(|change| !is_rename(change));
    known.append(changes);
    *changes = known;
}

/// What the stream's descriptions do not show of a column that stayed.
fn differences(old: &ColumnFacts, new: &ColumnFacts) -> Vec<ColumnChange> {
    let mut found = Vec::new();
    let mut add = |kind, from: Option<String>, to: Option<String>, class| {
        found.push(ColumnChange { column: new.name.clone(), kind, from, to, class });
    };
    let nullable = |column: &ColumnFacts| {
        Some(if column.not_null { "not null" } else { "nullable" }.to_owned())
    };
    if old.not_null != new.not_null {
        add("nullability", nullable(old), nullable(new), ChangeClass::Compatible);
    }
    if old.default != new.default {
        add("default", old.default.clone(), new.default.clone(), ChangeClass::Compatible);
    }
    if old.generated != new.generated {
        let word = |generated| {
            let word = match generated {
                Generated::No => "written",
                Generated::Stored => "stored",
                Generated::Virtual => "virtual",
            };
            Some(word.to_owned())
        };
        add("generated", word(old.generated), word(new.generated), ChangeClass::Compatible);
    }
    let is_renamed = old.name != new.name;
    if is_renamed && (old.type_oid, old.typmod) != (new.type_oid, new.typmod) {
        let number = |column: &ColumnFacts| Some(format!("{}/{}", column.type_oid, column.typmod));
        add("retyped", number(old), number(new), ChangeClass::Retyped);
    }
    found
}

/// Partitions that came and went.
fn topology(then: &TableFacts, now: &TableFacts) -> Vec<ColumnChange> {
    let (Some(then), Some(now)) = (&then.partitions, &now.partitions) else { return Vec::new() };
    let change = |kind, from: Option<&String>, to: Option<&String>| ColumnChange {
        column: String::new(),
        kind,
        from: from.cloned(),
        to: to.cloned(),
        class: ChangeClass::Topology,
    };
    let went = then.iter().filter(|name| now.binary_search(name).is_err());
    let came = now.iter().filter(|name| then.binary_search(name).is_err());
    went.map(|name| change("partition removed", Some(name), None))
        .chain(came.map(|name| change("partition added", None, Some(name))))
        .collect()
}

/// Adds to a change (if there is another one) that every row was written anew. `since` is the
/// number of the last command of the transaction that is known to have written definitions.
pub(in crate::sources::postgres) fn rewritten(
    change: Option<TableChange>,
    table: &DescribedTable,
    reason: i32,
    since: i64,
) -> TableChange {
    let mut change = change.unwrap_or_else(|| TableChange {
        kind: "ddl_captured",
        class: ChangeClass::Additive,
        columns: Vec::new(),
        rewrite: None,
    });
    let names = rewritten_columns(&change, table, reason, since);
    for name in names {
        change.columns.push(ColumnChange {
            column: name,
            kind: "rewritten",
            from: None,
            to: None,
            class: ChangeClass::Rewriting,
        });
    }
    let existing_rows = match reason {
        reason if reason & TYPE != 0 => "values_unknown",
        reason if reason & PERHAPS_NEW != 0 => "default_not_replayed",
        _ => "unaffected",
    };
    let changes_values = existing_rows != "unaffected";
    if changes_values {
        change.class = change.class.max(ChangeClass::Rewriting);
    }
    let words: Vec<&str> =
        REASONS.iter().filter(|(bit, _)| reason & bit != 0).map(|(_, word)| *word).collect();
    change.rewrite = Some(Rewrite {
        changes_values: Some(changes_values),
        reason: Some(words.join(", ")),
        existing_rows,
        recommended: if changes_values { "resnapshot" } else { "none" },
        action: if changes_values { "warned" } else { "forwarded" },
    });
    change
}

/// The columns whose values were computed anew, as far as that can be told: of another type, or new,
/// or defined again by this command without anything that shows why.
fn rewritten_columns(
    change: &TableChange,
    table: &DescribedTable,
    reason: i32,
    since: i64,
) -> Vec<String> {
    let has = |kinds: &[&str], name: &str| {
        change.columns.iter().any(|one| {
            let is_it =
                one.column == name || one.kind == "renamed" && one.to.as_deref() == Some(name);
            is_it && kinds.contains(&one.kind)
        })
    };
    let now: Vec<&str> = table
        .touched
        .iter()
        .filter(|(_, command)| *command > since)
        .map(|(name, _)| name.as_str())
        .collect();
    let mut found: Vec<&str> = Vec::new();
    if reason & PERHAPS_NEW != 0 {
        let columns = table.facts.columns.iter().map(|column| column.name.as_str());
        found.extend(columns.filter(|name| has(&["added", "replaced"], name)));
    }
    if reason & TYPE != 0 {
        let other = ["added", "replaced", "nullability", "default", "renamed"];
        // Writing a table anew also touches columns that had a default of the catalogue's for rows
        // before them, so a type that changed is the better witness.
        let retyped: Vec<&str> =
            now.iter().copied().filter(|name| has(&["retyped"], name)).collect();
        let unexplained: Vec<&str> =
            now.iter().copied().filter(|name| !has(&other, name)).collect();
        let old = now.iter().copied().filter(|name| !has(&["added", "replaced"], name));
        found.extend(match (retyped.is_empty(), unexplained.is_empty()) {
            (false, _) => retyped,
            (true, false) => unexplained,
            (true, true) => old.collect(),
        });
    }
    found.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::postgres::catalogue::testing::{column, table};
    use crate::sources::postgres::key_rules::KeyRules;
    use crate::sources::postgres::table_version::build;
    use crate::sources::postgres::values::TypeCatalogue;

    fn facts() -> TableFacts {
        table(vec![column(1, "id", 23), column(2, "a", 23), column(3, "b", 25)])
    }

    fn compare(then: &TableFacts, now: &TableFacts) -> Option<TableChange> {
        let version = |facts: &TableFacts| {
            let types = TypeCatalogue::new();
            let rules = KeyRules::default();
            build(&facts.descriptor(false), Some(facts), &types, &|_| None, 1, &rules).version
        };
        let (before, after) = (version(then), version(now));
        altered(
            Described { version: &before, facts: Some(then) },
            Described { version: &after, facts: Some(now) },
        )
    }

    /// Kinds and columns of what a change of the facts comes to, in order; and the whole's.
    #[track_caller]
    fn check(alter: impl FnOnce(&mut TableFacts), kind: &str, class: ChangeClass, expect: &[&str]) {
        let mut now = facts();
        alter(&mut now);
        let change = compare(&facts(), &now).expect("a change");
        let found: Vec<String> =
            change.columns.iter().map(|one| format!("{} {}", one.kind, one.column)).collect();
        assert_eq!(
            (change.kind, change.class, found),
            (kind, class, expect.iter().map(|one| (*one).to_owned()).collect())
        );
    }

    #[test]
    fn a_column_of_another_number_was_made_anew_whatever_its_type() {
        let facts = |attnum| TableFacts { columns: vec![column(attnum, "v", 23)], ..facts() };
        let check = |kind, then: Option<i16>, now: Option<i16>, expect: (&str, ChangeClass)| {
            let retyped = ColumnChange {
                column: "v".to_owned(),
                kind: "retyped",
                from: None,
                to: None,
                class: ChangeClass::Retyped,
            };
            let class = ChangeClass::Retyped;
            let mut change = TableChange { kind, class, columns: vec![retyped], rewrite: None };
            let (then, now) = (then.map(facts), now.map(facts));
            name_replaced(&mut change, then.as_ref(), now.as_ref());
            assert_eq!((change.columns[0].kind, change.class), expect);
        };
        check("observed", Some(3), Some(5), ("replaced", ChangeClass::Destructive));
        check("observed", Some(3), Some(3), ("retyped", ChangeClass::Retyped));
        check("observed", Some(3), None, ("retyped", ChangeClass::Retyped));
        check("observed", None, Some(5), ("retyped", ChangeClass::Retyped));
        check("recreated", Some(3), Some(5), ("retyped", ChangeClass::Retyped));
    }

    #[test]
    fn a_definition_that_is_as_it_was_is_no_change() {
        assert_eq!(compare(&facts(), &facts()), None);
        let mut now = facts();
        now.columns[1].comment = Some("c".to_owned());
        now.estimated_rows = Some(5);
        assert_eq!(compare(&facts(), &now), None);
    }

    #[test]
    fn what_no_description_in_the_stream_shows_is_told() {
        let captured = "ddl_captured";
        check(
            |t| t.columns[1].not_null = true,
            captured,
            ChangeClass::Compatible,
            &["nullability a"],
        );
        check(
            |t| t.columns[1].default = Some("7".to_owned()),
            captured,
            ChangeClass::Compatible,
            &["default a"],
        );
        check(
            |t| t.columns[1].name = "z".to_owned(),
            captured,
            ChangeClass::Renamed,
            &["renamed a"],
        );
        check(|t| t.columns[1].attnum = 4, captured, ChangeClass::Destructive, &["replaced a"]);
        check(
            |t| t.columns.push(column(4, "n", 23)),
            captured,
            ChangeClass::Additive,
            &["added n"],
        );
        check(|t| drop(t.columns.remove(1)), captured, ChangeClass::Destructive, &["dropped a"]);
        check(
            |t| t.columns[1] = column(4, "n", 23),
            captured,
            ChangeClass::Destructive,
            &["dropped a", "added n"],
        );
        check(|t| t.name = "u".to_owned(), "renamed", ChangeClass::Relation, &[]);
        check(
            |t| t.columns[1] = ColumnFacts { name: "z".to_owned(), ..column(2, "z", 20) },
            captured,
            ChangeClass::Renamed,
            &["renamed a", "retyped z"],
        );
    }

    #[test]
    fn columns_that_swap_their_names_are_renamed() {
        check(
            |t| {
                t.columns[1].name = "b".to_owned();
                t.columns[2].name = "a".to_owned();
            },
            "ddl_captured",
            ChangeClass::Renamed,
            &["renamed a", "renamed b", "retyped a", "retyped b"],
        );
    }

    #[test]
    fn partitions_come_and_go() {
        let with = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            TableFacts { partitions: Some(names), ..facts() }
        };
        let change =
            compare(&with(&["public.a", "public.b"]), &with(&["public.b", "public.c"])).unwrap();
        assert_eq!((change.kind, change.class), ("topology", ChangeClass::Topology));
        assert_eq!(change.columns[0].from.as_deref(), Some("public.a"));
        assert_eq!(change.columns[1].to.as_deref(), Some("public.c"));
        assert_eq!(compare(&with(&["public.a"]), &facts()), None);
    }

    #[track_caller]
    fn check_rewrite(
        alter: impl FnOnce(&mut TableFacts),
        touched: &[(&str, i64)],
        reason: i32,
        expect: (&[&str], &str),
    ) {
        let mut now = facts();
        alter(&mut now);
        let change = compare(&facts(), &now);
        let touched =
            touched.iter().map(|(name, command)| ((*name).to_owned(), *command)).collect();
        let table = DescribedTable { facts: now, is_logged: true, root: None, touched };
        let change = rewritten(change, &table, reason, 3);
        let found: Vec<&str> = change
            .columns
            .iter()
            .filter(|one| one.kind == "rewritten")
            .map(|one| one.column.as_str())
            .collect();
        let rewrite = change.rewrite.unwrap();
        assert_eq!((found.as_slice(), rewrite.existing_rows), expect);
    }

    #[test]
    fn the_column_that_was_computed_anew_is_named_where_it_can_be() {
        let same = |_: &mut TableFacts| {};
        check_rewrite(same, &[("a", 4)], TYPE, (&["a"], "values_unknown"));
        // b was altered by an earlier command of the transaction
        check_rewrite(same, &[("a", 4), ("b", 3)], TYPE, (&["a"], "values_unknown"));
        // the default explains b, nothing explains a
        let default = |t: &mut TableFacts| t.columns[2].default = Some("'x'".to_owned());
        check_rewrite(default, &[("a", 4), ("b", 5)], TYPE, (&["a"], "values_unknown"));
        check_rewrite(default, &[("b", 5)], TYPE, (&["b"], "values_unknown"));
        let retyped = |t: &mut TableFacts| t.columns[1].type_oid = 20;
        check_rewrite(retyped, &[("a", 4)], TYPE, (&["a"], "values_unknown"));
        // b had a default of the catalogue's
        check_rewrite(retyped, &[("a", 4), ("b", 5)], TYPE, (&["a"], "values_unknown"));
        let added = |t: &mut TableFacts| t.columns.push(column(4, "n", 2950));
        check_rewrite(added, &[("n", 4)], 2, (&["n"], "default_not_replayed"));
        check_rewrite(added, &[("n", 4), ("a", 5)], 6, (&["n", "a"], "values_unknown"));
        check_rewrite(same, &[], TYPE, (&[], "values_unknown"));
        check_rewrite(same, &[], 1, (&[], "unaffected"));
        check_rewrite(same, &[], 8, (&[], "unaffected"));
        check_rewrite(same, &[], -1, (&[], "values_unknown"));
    }
}

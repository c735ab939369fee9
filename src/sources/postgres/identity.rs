//! Whether a table's rows can be told apart once it is published.
//!
//! A publication of updates and deletes makes the application's own statements fail on a table
//! without a usable replica identity, and old rows come without a key or with a wrong one on some
//! others. Decides from catalogue facts alone, before a publication is touched. Pure. What each case
//! sends was observed on versions 13 to 18; the server's checks are in `CheckCmdReplicaIdentity`
//! (execReplication.c).

use super::catalogue::{Generated, TableFacts};
use super::session::ServerVersion;
use super::wire::ReplicaIdentity;
use crate::error::{Code, Fault};

/// From this version on generated columns can be published, and an identity that holds one that is
/// not makes updates and deletes fail.
const PUBLISHES_GENERATED: u32 = 18;

/// Sees that a table's updates and deletes can be published, and told apart.
///
/// `generated`: the publication publishes stored generated columns.
///
/// # Errors
/// `SOURCE-REPLICA-IDENTITY` names the cause and the ways out.
pub fn check_identity(
    table: &TableFacts,
    version: ServerVersion,
    generated: bool,
) -> Result<(), Fault> {
    let name = table.qualified_name();
    let refuse = |why: String, hint: String| {
        Err(Code::SourceReplicaIdentity.fault(why).hint(hint).at_table(name.clone()))
    };
    let Some(columns) = table.identity_columns() else {
        return match hidden_generated(table, generated) {
            Some(column) if version.major() >= PUBLISHES_GENERATED => refuse(
                format!(
                    "\"{name}\" has REPLICA IDENTITY FULL and the generated column \"{column}\", \
                     which the publication does not publish: UPDATE and DELETE would fail"
                ),
                format!(
                    "Use a primary key as identity (ALTER TABLE {name} REPLICA IDENTITY DEFAULT), \
                     or publish the column if it is a stored one (ALTER PUBLICATION … SET \
                     (publish_generated_columns = stored)), or exclude the table."
                ),
            ),
            _ => Ok(()),
        };
    };
    if columns.is_empty() {
        return refuse(no_identity(table), ways_out(table));
    }
    let computed = columns
        .iter()
        .find(|name| table.column(name).is_some_and(|column| column.generated != Generated::No));
    let may_be_null = |name: &&String| table.column(name).is_some_and(|column| !column.not_null);
    match computed {
        // The server asks for a NOT NULL only, from 18 on also for one that is not valid.
        None => columns.iter().find(may_be_null).map_or(Ok(()), |column| {
            refuse(
                format!(
                    "the identity of \"{name}\" contains the column \"{column}\", in which rows may \
                     have NULL: they could not be told apart"
                ),
                format!(
                    "ALTER TABLE {name} VALIDATE CONSTRAINT its NOT NULL constraint, or REPLICA \
                     IDENTITY USING INDEX an index of other columns, or FULL, or exclude the table."
                ),
            )
        }),
        Some(column) => refuse(
            format!(
                "the identity of \"{name}\" contains the generated column \"{column}\", which is \
                 not published: rows could not be told apart"
            ),
            format!(
                "ALTER TABLE {name} REPLICA IDENTITY USING INDEX an index of ordinary columns, or \
                 FULL where the server allows it, or exclude the table."
            ),
        ),
    }
}

fn no_identity(table: &TableFacts) -> String {
    let name = table.qualified_name();
    match (table.replica_identity, &table.primary_key) {
        (ReplicaIdentity::Nothing, _) => format!("\"{name}\" has REPLICA IDENTITY NOTHING"),
        (ReplicaIdentity::Index, _) => {
            format!("the index that \"{name}\" has as its replica identity was dropped")
        }
        (_, Some(_)) => format!(
            "the primary key of \"{name}\" is deferrable, and such a key is no replica identity"
        ),
        (_, None) => format!("\"{name}\" has neither a primary key nor another replica identity"),
    }
}

fn ways_out(table: &TableFacts) -> String {
    let name = table.qualified_name();
    let of_full = match table.row_key() {
        Some(_) => "",
        None => " (its records have no key then)",
    };
    let add = match &table.primary_key {
        Some(key) if !key.is_immediate => "Make the primary key one that is not deferrable",
        Some(_) => {
            return format!(
                "ALTER TABLE {name} REPLICA IDENTITY DEFAULT, or FULL, or exclude the table \
             (table.exclude.list)."
            );
        }
        None => "Add a primary key that is not deferrable",
    };
    format!(
        "{add}, or ALTER TABLE {name} REPLICA IDENTITY FULL{of_full}, or exclude the table \
         (table.exclude.list)."
    )
}

/// A generated column that a whole row is told by and the publication hides.
fn hidden_generated(table: &TableFacts, generated: bool) -> Option<&str> {
    let hidden = |kind| match kind {
        Generated::No => false,
        Generated::Stored => !generated,
        Generated::Virtual => true,
    };
    table.columns.iter().find(|column| hidden(column.generated)).map(|column| column.name.as_str())
}

/// Sees that old rows of a partition carry what is announced under its root's name: letter and
/// flags are the root's, the contents the leaf's.
///
/// # Errors
/// `SOURCE-REPLICA-IDENTITY` names the partition and the remedy.
pub fn check_leaf(root: &TableFacts, leaf: &TableFacts) -> Result<(), Fault> {
    let missing = match (root.identity_columns(), leaf.identity_columns()) {
        (_, None) => None,
        (None, Some(_)) => Some("a column that its identity lacks"),
        (Some(of_root), Some(of_leaf)) => {
            of_root.iter().find(|name| !of_leaf.contains(name)).map(String::as_str)
        }
    };
    let Some(missing) = missing else { return Ok(()) };
    let (leaf_name, root_name) = (leaf.qualified_name(), root.qualified_name());
    Err(Code::SourceReplicaIdentity
        .fault(format!(
            "old rows of the partition \"{leaf_name}\" ({}) would lack what \"{root_name}\" ({}), \
             under whose name they come, announces: {missing}",
            leaf.replica_identity.as_str(),
            root.replica_identity.as_str(),
        ))
        .hint(format!(
            "Give every partition the identity of its root; it is not inherited: \
             ALTER TABLE {leaf_name} REPLICA IDENTITY {}.",
            root.replica_identity.as_str().to_uppercase()
        ))
        .at_table(leaf_name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::postgres::catalogue::{ColumnFacts, KeyFacts, testing};

    fn table(identity: ReplicaIdentity, primary_key: Option<(&[&str], bool)>) -> TableFacts {
        let column = |(name, generated): &(&str, Generated)| ColumnFacts {
            not_null: true,
            generated: *generated,
            ..testing::column(1, name, 23)
        };
        let columns = [("a", Generated::No), ("b", Generated::No), ("s", Generated::Stored)];
        let key = |(columns, is_immediate): (&[&str], bool)| KeyFacts {
            columns: columns.iter().map(|&name| name.to_owned()).collect(),
            is_immediate,
        };
        TableFacts {
            replica_identity: identity,
            primary_key: primary_key.map(key),
            ..testing::table(columns.iter().map(column).collect())
        }
    }

    #[track_caller]
    fn check(table: &TableFacts, major: u32, generated: bool, expect: Option<&str>) {
        let verdict = check_identity(table, ServerVersion(major * 10_000), generated);
        assert_eq!(verdict.is_err(), expect.is_some(), "{verdict:?}");
        if let (Err(fault), Some(words)) = (verdict, expect) {
            assert_eq!(fault.code(), Code::SourceReplicaIdentity);
            assert!(fault.message().contains(words), "{fault}");
            let hint = fault.to_string();
            assert!(hint.contains("exclude the table"), "{hint}");
            assert_eq!(fault.place().table.as_deref(), Some("public.t"));
        }
    }

    #[test]
    fn tables_without_an_identity_are_refused_before_they_break_the_application() {
        use ReplicaIdentity::{Default, Full, Index, Nothing};
        let key: Option<(&[&str], bool)> = Some((&["a"], true));
        check(&table(Default, key), 15, false, None);
        check(&table(Default, None), 15, false, Some("neither a primary key"));
        check(&table(Default, Some((&["a"], false))), 15, false, Some("deferrable"));
        check(&table(Nothing, key), 15, false, Some("NOTHING"));
        check(&table(Index, key), 15, false, Some("was dropped"));
        check(&table(Full, None), 15, false, None);
        let mut by_index = table(Index, None);
        by_index.identity_index = Some(KeyFacts { columns: vec!["b".into()], is_immediate: true });
        check(&by_index, 15, false, None);
        by_index.columns[1].not_null = false;
        check(&by_index, 18, false, Some("may have NULL"));
    }

    #[test]
    fn generated_columns_spoil_an_identity() {
        use ReplicaIdentity::{Default, Full};
        check(&table(Default, Some((&["s"], true))), 15, false, Some("generated column \"s\""));
        check(&table(Default, Some((&["s"], true))), 18, true, Some("generated column \"s\""));
        check(&table(Full, None), 17, false, None);
        check(&table(Full, None), 18, false, Some("would fail"));
        check(&table(Full, None), 18, true, None);
        let mut with_virtual = table(Full, None);
        with_virtual.columns[2].generated = Generated::Virtual;
        check(&with_virtual, 18, true, Some("would fail"));
    }

    #[track_caller]
    fn check_pair(root: &TableFacts, leaf: &TableFacts, expect: bool) {
        assert_eq!(check_leaf(root, leaf).is_ok(), expect);
    }

    #[test]
    fn a_leaf_must_send_what_its_root_announces() {
        use ReplicaIdentity::{Default, Full, Nothing};
        let by_a = table(Default, Some((&["a"], true)));
        let by_b = table(Default, Some((&["b"], true)));
        let by_both = table(Default, Some((&["b", "a"], true)));
        let full = table(Full, Some((&["a"], true)));
        check_pair(&by_a, &by_a, true);
        check_pair(&by_a, &full, true);
        check_pair(&by_a, &by_both, true);
        check_pair(&by_a, &by_b, false);
        check_pair(&by_a, &table(Nothing, None), false);
        check_pair(&full, &full, true);
        check_pair(&full, &by_a, false);
        let fault = check_leaf(&full, &by_a).expect_err("refused");
        assert!(fault.to_string().contains("REPLICA IDENTITY FULL"), "{fault}");
    }
}

//! What changed definitions mean for the rows that were there.

use super::testing::{column, or, required, table};
use crate::change::{
    ChangeClass, ColumnChange, ColumnDefault, ColumnType, TableChange, TableVersion, consequence,
};

fn version() -> TableVersion {
    let mut computed = column("now", ColumnType::Text);
    computed.default = Some(ColumnDefault::Computed);
    let columns = vec![
        required("id", ColumnType::Int32),
        column("plain", ColumnType::Int32),
        or("x", column("literal", ColumnType::Text)),
        computed,
    ];
    table("t", columns)
}

fn change(parts: &[(&'static str, &str, ChangeClass)]) -> TableChange {
    let columns = parts.iter().map(|(kind, column, class)| ColumnChange {
        column: (*column).to_owned(),
        kind,
        from: None,
        to: None,
        class: *class,
    });
    let class = ChangeClass::Additive;
    TableChange { kind: "observed", class, columns: columns.collect(), rewrite: None }
}

#[track_caller]
fn check(
    parts: &[(&'static str, &str, ChangeClass)],
    command: Option<&str>,
    expect: [Option<&str>; 3],
) {
    let found = consequence(&change(parts), &version(), command);
    assert_eq!([found.rewrites, found.existing_rows, found.recommended], expect);
}

#[test]
fn as_far_as_it_is_known() {
    use ChangeClass::{Additive, Compatible, Destructive, Invisible, Reinterpreted, Rewriting};
    const ALTER: Option<&str> = Some("ALTER TABLE");
    let says = |rewrites, rows, mends| [Some(rewrites), Some(rows), Some(mends)];
    let nothing = says("no", "unaffected", "none");
    let unknown = says("unknown", "values_unknown", "resnapshot");
    check(&[], None, nothing);
    check(&[("retyped", "plain", Compatible)], None, nothing);
    check(&[("dropped", "gone", Destructive)], None, nothing);
    check(&[("nullability", "plain", Compatible)], ALTER, nothing);
    check(&[("added", "plain", Additive)], None, nothing);
    check(&[("added", "literal", Additive)], ALTER, says("no", "default_not_replayed", "recast"));
    check(
        &[("added", "literal", Additive)],
        None,
        says("unknown", "default_not_replayed", "recast"),
    );
    check(&[("added", "now", Additive)], ALTER, says("no", "default_not_replayed", "resnapshot"));
    check(&[("retyped", "plain", Rewriting)], None, says("yes", "recast_deterministic", "recast"));
    for class in [Invisible, Reinterpreted] {
        check(&[("retyped", "plain", class)], None, says("unknown", "values_unknown", "drain"));
    }
    // perhaps one column with another name
    let pair = [("dropped", "gone", Destructive), ("added", "plain", Additive)];
    check(&pair, None, unknown);
    check(&pair, ALTER, nothing);
    check(&[("type altered", "plain", Compatible)], ALTER, [None; 3]);
    let partition = [("partition added", "", ChangeClass::Topology)];
    check(&partition, Some("CREATE TABLE"), nothing);
    check(&partition, ALTER, says("no", "values_unknown", "resnapshot"));
}

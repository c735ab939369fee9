//! A change that the server could not send: which table and columns it is of.
//!
//! The server reports such an error in place of the change, with a position and without a name.
//! But it describes each relation directly before the relation's first change on a connection, so
//! an error directly behind a description is about that relation, and after a restart it usually
//! is. Knows no server message but the code that was made of it. **Invariant:** what is not certain
//! is called possible.

use std::sync::Arc;

use super::relations::RelationDescriptor;
use crate::error::{Code, Fault};

/// `bytea`, whose text is twice as long as the value.
const BYTEA: u32 = 17;
/// The first number that the server gives to what is not its own (`FirstNormalObjectId`,
/// transam.h). The output functions of its own types do not refuse.
const FIRST_USER_TYPE: u32 = 16_384;
/// So many possible columns are named.
const NAMED: usize = 5;

/// Adds table and column to a fault that came in place of a change. `announced` is the captured
/// relation that was described directly before; `captured` are all that were described.
pub(super) fn place<'a>(
    fault: Fault,
    announced: Option<&RelationDescriptor>,
    captured: impl Iterator<Item = &'a Arc<RelationDescriptor>>,
) -> Fault {
    let is_suspect = match fault.code() {
        Code::ValueTooLarge => |type_oid: u32| type_oid == BYTEA,
        Code::ValueUnrepresentable => |type_oid: u32| type_oid >= FIRST_USER_TYPE,
        Code::ValueEncoding => |_: u32| false,
        _ => return fault,
    };
    let suspects = |relation: &RelationDescriptor| -> Vec<String> {
        let columns = relation.columns.iter().filter(|column| is_suspect(column.type_oid));
        columns.map(|column| column.name.clone()).collect()
    };
    if let Some(relation) = announced {
        let columns = suspects(relation);
        let fault = fault.at_table(relation.qualified_name());
        return if columns.is_empty() { fault } else { fault.at_column(columns.join(" or ")) };
    }
    let mut possible: Vec<String> = captured
        .flat_map(|relation| {
            let table = relation.qualified_name();
            suspects(relation).into_iter().map(move |column| format!("{table}.{column}"))
        })
        .collect();
    possible.sort();
    let more = if possible.len() > NAMED { " or others" } else { "" };
    possible.truncate(NAMED);
    if possible.is_empty() {
        return fault;
    }
    fault.within(format!("a change, possibly of {}{more}", possible.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::postgres::relations::RelationColumn;
    use crate::sources::postgres::wire::{RelationId, ReplicaIdentity};

    fn relation(name: &str, columns: &[(&str, u32)]) -> Arc<RelationDescriptor> {
        let column = |(name, type_oid): &(&str, u32)| RelationColumn {
            identity: false,
            name: (*name).to_owned(),
            type_oid: *type_oid,
            typmod: -1,
        };
        Arc::new(RelationDescriptor {
            oid: RelationId(20_000),
            namespace: "public".to_owned(),
            name: name.to_owned(),
            replica_identity: ReplicaIdentity::Default,
            columns: columns.iter().map(column).collect(),
        })
    }

    #[track_caller]
    fn check(code: Code, is_announced: bool, expect: (Option<&str>, Option<&str>, &str)) {
        let files = relation("files", &[("id", 23), ("body", 17), ("kind", 16_400)]);
        let other = relation("other", &[("id", 23), ("mute", 16_401)]);
        let announced = is_announced.then_some(&*files);
        let fault = place(code.fault("no"), announced, [&files, &other].into_iter());
        let at = fault.place();
        assert_eq!((at.table.as_deref(), at.column.as_deref(), fault.message()), expect);
    }

    #[test]
    fn directly_behind_a_description_the_table_is_certain() {
        let table = Some("public.files");
        check(Code::ValueTooLarge, true, (table, Some("body"), "no"));
        check(Code::ValueUnrepresentable, true, (table, Some("kind"), "no"));
        check(Code::ValueEncoding, true, (table, None, "no"));
        check(Code::StreamStopped, true, (None, None, "no"));
    }

    #[test]
    fn elsewhere_the_columns_are_possible_ones() {
        let one = "a change, possibly of public.files.body: no";
        check(Code::ValueTooLarge, false, (None, None, one));
        let two = "a change, possibly of public.files.kind or public.other.mute: no";
        check(Code::ValueUnrepresentable, false, (None, None, two));
        check(Code::ValueEncoding, false, (None, None, "no"));
        check(Code::StreamStopped, false, (None, None, "no"));
    }

    #[test]
    fn of_very_many_columns_some_are_named() {
        let columns: Vec<(String, u32)> = (0..9).map(|n| (format!("c{n}"), 17)).collect();
        let columns: Vec<(&str, u32)> = columns.iter().map(|(n, oid)| (n.as_str(), *oid)).collect();
        let wide = relation("wide", &columns);
        let fault = place(Code::ValueTooLarge.fault("no"), None, [&wide].into_iter());
        assert!(fault.message().contains("c4 or others: no"), "{}", fault.message());
    }
}

//! A table's rows in the order of its key: which operators compare and sort, as SQL.
//!
//! The session finds operators in `pg_catalog` only. Where those of a key's type are elsewhere
//! (`citext`, `ltree`) a plain `>` would be another type's, or none, while `ORDER BY` takes the type's
//! own: rows between the two orders would never be read. So there the operators of the key's index are
//! named. **Invariant:** rows are compared and sorted by one order, and two rows that the index tells
//! apart are two in that order.

use std::collections::HashMap;

use serde::Deserialize;

use crate::error::{Code, Fault};
use crate::sources::postgres::connection::{identifier, literal};

/// The order of the key of the table whose row of `pg_class` is `c`, as text. NULL: it has no key.
///
/// `own`: the operators that the session finds are those of the index. What an index with another
/// operator class or collation than the column's tells apart, the column's own may not. A record is
/// compared with a plain text by no operator. Strategies of a B-tree: manual, "Interfacing Extensions
/// To Indexes".
pub(super) const QUERY: &str = "\
    (SELECT CASE WHEN bool_and(o.opcnamespace = 'pg_catalog'::regnamespace AND o.opcdefault \
         AND o.opcintype <> 'record'::regtype AND k.coll IN (0, a.attcollation)) THEN 'own' \
      ELSE json_agg(json_build_object( \
         'name', a.attname, 'kind', format_type(a.atttypid, a.atttypmod), \
         'collation', (SELECT format('%I.%I', n.nspname, l.collname) FROM pg_collation l \
             JOIN pg_namespace n ON n.oid = l.collnamespace \
             WHERE l.oid = k.coll AND l.oid <> a.attcollation), \
         'operators', (SELECT json_object_agg(m.amopstrategy, \
                 format('OPERATOR(%I.%s)', n.nspname, p.oprname)) \
             FROM pg_amop m JOIN pg_operator p ON p.oid = m.amopopr \
             JOIN pg_namespace n ON n.oid = p.oprnamespace \
             WHERE m.amopfamily = o.opcfamily AND m.amoppurpose = 's' \
             AND m.amoplefttype = o.opcintype AND m.amoprighttype = o.opcintype)) \
         ORDER BY k.place)::text END \
      FROM (SELECT i.* FROM pg_index i \
          WHERE i.indrelid = c.oid AND (i.indisprimary OR i.indisreplident) \
          ORDER BY i.indisprimary DESC LIMIT 1) i \
      CROSS JOIN LATERAL unnest(i.indkey::int2[], i.indclass::oid[], i.indcollation::oid[]) \
          WITH ORDINALITY k(attnum, class, coll, place) \
      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum \
      JOIN pg_opclass o ON o.oid = k.class \
      WHERE k.place <= i.indnkeyatts)";

/// By what the key of the table whose row of `pg_class` is `c` is ordered, as text that is another one
/// if rows may stand in another order: types, operator classes, collations. NULL: it has no key.
pub(super) const SIGNATURE: &str = "\
    (SELECT string_agg(concat_ws(',', a.atttypid, a.atttypmod, a.attcollation, k.class, k.coll), \
         ';' ORDER BY k.place) \
      FROM (SELECT i.* FROM pg_index i \
          WHERE i.indrelid = c.oid AND (i.indisprimary OR i.indisreplident) \
          ORDER BY i.indisprimary DESC LIMIT 1) i \
      CROSS JOIN LATERAL unnest(i.indkey::int2[], i.indclass::oid[], i.indcollation::oid[]) \
          WITH ORDINALITY k(attnum, class, coll, place) \
      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum \
      WHERE k.place <= i.indnkeyatts)";

/// How a table's key is ordered.
#[derive(Debug, Default)]
pub(super) enum KeyOrder {
    /// There is no key.
    #[default]
    None,
    /// By the operators that the session finds.
    Own,
    /// By these.
    Named(Vec<Column>),
}

/// A column of a key.
#[derive(Debug, Deserialize)]
pub(super) struct Column {
    name: String,
    /// Its type, as SQL.
    kind: String,
    /// Another collation than its own, as SQL.
    collation: Option<String>,
    /// As SQL, by their strategy numbers.
    operators: HashMap<String, String>,
}

/// Strategies of a B-tree.
#[derive(Clone, Copy)]
enum Strategy {
    Less = 1,
    LessEqual = 2,
    Equal = 3,
    GreaterEqual = 4,
    Greater = 5,
}

impl Column {
    fn sql(&self) -> String {
        let name = identifier(&self.name);
        match &self.collation {
            Some(collation) => format!("{name} COLLATE {collation}"),
            None => name,
        }
    }

    fn operator(&self, strategy: Strategy) -> &str {
        // `read` has seen that they are all there
        self.operators.get(&(strategy as u8).to_string()).map_or("", String::as_str)
    }

    fn compared(&self, strategy: Strategy, value: &str) -> String {
        format!("{} {} {}::{}", self.sql(), self.operator(strategy), literal(value), self.kind)
    }

    fn is_whole(&self) -> bool {
        (1..=5).all(|strategy: u8| self.operators.contains_key(&strategy.to_string()))
    }
}

impl KeyOrder {
    /// Reads what [`QUERY`] says. Where an operator is missing there is no order.
    ///
    /// # Errors
    /// It is not of its form.
    pub(super) fn read(text: Option<&str>) -> Result<Self, Fault> {
        match text {
            None => Ok(Self::None),
            Some("own") => Ok(Self::Own),
            Some(text) => {
                let columns: Vec<Column> = serde_json::from_str(text).map_err(|error| {
                    Code::ProtocolUnexpected.fault("the order of a key").caused_by(&error)
                })?;
                let is_whole = columns.iter().all(Column::is_whole);
                Ok(if is_whole { Self::Named(columns) } else { Self::None })
            }
        }
    }

    /// Whether these columns can be read in this order.
    pub(super) fn is_of(&self, columns: &[String]) -> bool {
        match self {
            Self::None => false,
            Self::Own => true,
            Self::Named(own) => own.iter().map(|column| &column.name).eq(columns),
        }
    }

    /// Rows behind a key, up to another one.
    pub(super) fn condition(
        &self,
        columns: &[String],
        after: Option<&[String]>,
        upto: &[String],
    ) -> String {
        if let Self::Named(own) = self {
            let upto = bounded(own, upto, (Strategy::Less, Strategy::LessEqual), true);
            return match after {
                None => upto,
                Some(after) => {
                    let strategies = (Strategy::Greater, Strategy::GreaterEqual);
                    format!("{} AND {upto}", bounded(own, after, strategies, false))
                }
            };
        }
        let names = list(columns, identifier);
        let upto = format!("({names}) <= ({})", list(upto, literal));
        match after {
            None => upto,
            Some(after) => format!("({names}) > ({}) AND {upto}", list(after, literal)),
        }
    }

    /// The last key of a relation.
    pub(super) fn last_statement(&self, from: &str, columns: &[String]) -> String {
        let names = list(columns, identifier);
        let order = self.sorted(columns, true);
        format!("SELECT {names} FROM {from} ORDER BY {order} LIMIT 1")
    }

    /// The last key of a range, and how many rows that has.
    pub(super) fn boundary_statement(
        &self,
        from: &str,
        columns: &[String],
        rest: &str,
        rows: u64,
    ) -> String {
        let names = list(columns, identifier);
        let (order, back) = (self.sorted(columns, false), self.sorted(columns, true));
        format!(
            "SELECT {names}, count(*) OVER () FROM (SELECT {names} FROM {from} WHERE {rest} \
             ORDER BY {order} LIMIT {rows}) c ORDER BY {back} LIMIT 1"
        )
    }

    fn sorted(&self, columns: &[String], is_reversed: bool) -> String {
        let Self::Named(own) = self else {
            let direction = if is_reversed { " DESC" } else { "" };
            return list(columns, |name| format!("{}{direction}", identifier(name)));
        };
        let strategy = if is_reversed { Strategy::Greater } else { Strategy::Less };
        let sorted = own
            .iter()
            .map(|column| format!("{} USING {}", column.sql(), column.operator(strategy)));
        sorted.collect::<Vec<_>>().join(", ")
    }
}

/// A row comparison, spelled out: `a > x OR (a = x AND b > y)`. The first column is bounded once more,
/// so that an index is of use.
fn bounded(
    columns: &[Column],
    values: &[String],
    (strict, loose): (Strategy, Strategy),
    is_inclusive: bool,
) -> String {
    let mut pairs = columns.iter().zip(values).rev();
    let Some((column, value)) = pairs.next() else { return "TRUE".to_owned() };
    let last = column.compared(if is_inclusive { loose } else { strict }, value);
    let spelled = pairs.fold(last, |rest, (column, value)| {
        let (beyond, same) =
            (column.compared(strict, value), column.compared(Strategy::Equal, value));
        format!("({beyond} OR ({same} AND {rest}))")
    });
    match (columns, values) {
        ([first, _, ..], [value, ..]) => format!("{} AND {spelled}", first.compared(loose, value)),
        _ => spelled,
    }
}

/// SQL of several parts.
pub(super) fn list<'a>(
    parts: impl IntoIterator<Item = &'a String>,
    write: impl Fn(&str) -> String,
) -> String {
    parts.into_iter().map(|part| write(part)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    fn column(name: &str, kind: &str, schema: &str) -> serde_json::Value {
        let operator = |sign: &str| format!("OPERATOR({schema}.{sign})");
        serde_json::json!({"name": name, "kind": kind, "collation": null, "operators": {
            "1": operator("<"), "2": operator("<="), "3": operator("="), "4": operator(">="),
            "5": operator(">")}})
    }

    fn read(columns: &[serde_json::Value]) -> KeyOrder {
        KeyOrder::read(Some(&serde_json::Value::from(columns).to_string())).expect("an order")
    }

    #[test]
    fn keys_of_several_columns_are_compared_as_rows() {
        let key = texts(&["a", "b c"]);
        let condition = |after: Option<&[String]>, upto: &[&str]| {
            KeyOrder::Own.condition(&key, after, &texts(upto))
        };
        assert_eq!(condition(None, &["1", "x'y"]), r#"("a", "b c") <= ('1', 'x''y')"#);
        assert_eq!(
            condition(Some(&texts(&["1", "x"])), &["9", "z"]),
            r#"("a", "b c") > ('1', 'x') AND ("a", "b c") <= ('9', 'z')"#
        );
    }

    #[test]
    fn operators_that_the_session_does_not_find_are_named() {
        let order = read(&[column("k", "public.citext", "public")]);
        let key = texts(&["k"]);
        assert!(order.is_of(&key) && !order.is_of(&texts(&["j"])));
        assert_eq!(
            order.condition(&key, Some(&texts(&["a"])), &texts(&["b"])),
            r#""k" OPERATOR(public.>) 'a'::public.citext AND "k" OPERATOR(public.<=) 'b'::public.citext"#
        );
        assert_eq!(
            order.last_statement("t", &key),
            r#"SELECT "k" FROM t ORDER BY "k" USING OPERATOR(public.>) LIMIT 1"#
        );
        assert_eq!(
            order.boundary_statement("t", &key, "r", 7),
            "SELECT \"k\", count(*) OVER () FROM (SELECT \"k\" FROM t WHERE r \
             ORDER BY \"k\" USING OPERATOR(public.<) LIMIT 7) c \
             ORDER BY \"k\" USING OPERATOR(public.>) LIMIT 1"
        );
    }

    #[test]
    fn rows_are_compared_column_by_column_where_operators_are_named() {
        let mut text = column("b", "text", "s");
        text["collation"] = serde_json::json!("pg_catalog.\"C\"");
        let order = read(&[column("a", "int", "s"), text]);
        let key = texts(&["a", "b"]);
        assert_eq!(
            order.condition(&key, Some(&texts(&["1", "x"])), &texts(&["2", "y"])),
            "\"a\" OPERATOR(s.>=) '1'::int AND (\"a\" OPERATOR(s.>) '1'::int \
             OR (\"a\" OPERATOR(s.=) '1'::int \
             AND \"b\" COLLATE pg_catalog.\"C\" OPERATOR(s.>) 'x'::text)) \
             AND \"a\" OPERATOR(s.<=) '2'::int AND (\"a\" OPERATOR(s.<) '2'::int \
             OR (\"a\" OPERATOR(s.=) '2'::int \
             AND \"b\" COLLATE pg_catalog.\"C\" OPERATOR(s.<=) 'y'::text))"
        );
    }

    #[test]
    fn without_an_order_a_table_is_read_otherwise() {
        let key = texts(&["k"]);
        assert!(!KeyOrder::read(None).expect("none").is_of(&key));
        let mut partial = column("k", "t", "s");
        partial["operators"] = serde_json::json!({"1": "OPERATOR(s.<)"});
        assert!(!read(&[partial]).is_of(&key));
        assert!(KeyOrder::read(Some("[")).is_err());
    }
}

//! The row as it is now, asked for by its new key, where a changed key left values behind.
//!
//! Between publishing and the catalogue's connection; says what is asked and what the answer makes
//! of the image. Opens nothing. **Invariants:** what is read here is never taken for what the
//! change holds: the image names it ([`RowImage::reread`]), and nothing remembers it; a row that
//! cannot be told for sure, or whose columns are of other types by now, is not read at all.

use std::fmt::Write as _;

use super::connection::{Row, identifier, literal};
use super::relations::RelationDescriptor;
use crate::change::{Cell, RowImage};
use crate::error::Fault;

/// An image with values of now.
#[derive(Debug)]
pub(super) struct Reread {
    bytes: Vec<u8>,
    after: Vec<Cell>,
    columns: Vec<usize>,
}

impl Reread {
    /// Puts the answer's values into the row after. `columns` are those that were asked for.
    /// `None`: the row is gone, or is not told by its key.
    pub(super) fn of(
        row: &RowImage<'_>,
        columns: Vec<usize>,
        answer: &[Row],
    ) -> Result<Option<Self>, Fault> {
        let (Some(after), [now]) = (row.after, answer) else { return Ok(None) };
        let mut bytes = row.bytes.to_vec();
        let mut after = after.to_vec();
        for (place, column) in columns.iter().enumerate() {
            let Some(cell) = after.get_mut(*column) else { return Ok(None) };
            *cell = match now.bytes(place)? {
                None => Cell::Null,
                Some(value) => {
                    let (start, len) = (u32::try_from(bytes.len()), u32::try_from(value.len()));
                    let (Ok(start), Ok(len)) = (start, len) else { return Ok(None) };
                    bytes.extend_from_slice(value);
                    Cell::Raw { start, len }
                }
            };
        }
        Ok(Some(Self { bytes, after, columns }))
    }

    /// The row, with what is known of it before.
    pub(super) fn image<'r>(&'r self, row: &RowImage<'r>) -> RowImage<'r> {
        RowImage {
            bytes: &self.bytes,
            before: row.before,
            after: Some(&self.after),
            reread: &self.columns,
        }
    }
}

/// Asks for columns of the row that has this identity. `None`: the identity is not known.
///
/// The name must still be that of the same table, and the columns of the same types, or there is no
/// answer. A row of a child by inheritance is another table's; one of a partition is its root's.
pub(super) fn question(
    table: &RelationDescriptor,
    identity: &[usize],
    columns: &[usize],
    row: &RowImage<'_>,
) -> Option<String> {
    let oid = table.oid.0;
    let mut asked = String::new();
    let mut types = String::new();
    for column in columns {
        let column = table.columns.get(*column)?;
        let separator = if asked.is_empty() { "" } else { ", " };
        let (name, type_oid, typmod) = (&column.name, column.type_oid, column.typmod);
        write!(asked, "{separator}t.{}", identifier(name)).ok()?;
        write!(types, "{separator}({}, {type_oid}::oid, {typmod})", literal(name)).ok()?;
    }
    let mut found = String::new();
    for column in identity {
        let cell = row.after?.get(*column).copied()?;
        let value = std::str::from_utf8(row.raw(cell)?).ok()?;
        let name = identifier(&table.columns.get(*column)?.name);
        write!(found, " AND t.{name} = {}", literal(value)).ok()?;
    }
    if asked.is_empty() || found.is_empty() {
        return None;
    }
    let name = format!("{}.{}", identifier(&table.namespace), identifier(&table.name));
    let count = columns.len();
    Some(format!(
        "SELECT {asked} FROM {name} t \
         WHERE to_regclass({as_text})::oid = {oid} \
         AND (t.tableoid = {oid} OR (SELECT relkind FROM pg_class WHERE oid = {oid}) = 'p') \
         AND (SELECT count(*) FROM pg_attribute WHERE attrelid = {oid} \
         AND (attname::text, atttypid, atttypmod) IN ({types})) = {count}{found}",
        as_text = literal(&name),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::postgres::relations::RelationColumn;
    use crate::sources::postgres::wire::{RelationId, ReplicaIdentity};

    fn table() -> RelationDescriptor {
        let column = |name: &str, identity, type_oid| RelationColumn {
            identity,
            name: name.to_owned(),
            type_oid,
            typmod: -1,
        };
        RelationDescriptor {
            oid: RelationId(7),
            namespace: "public".to_owned(),
            name: "it\"em".to_owned(),
            replica_identity: ReplicaIdentity::Default,
            columns: vec![
                column("id", true, 23),
                column("doc", false, 25),
                column("j", false, 3802),
            ],
        }
    }

    fn ask(cells: &[Cell], columns: &[usize]) -> Option<String> {
        let row = RowImage { bytes: b"o'k", before: None, after: Some(cells), reread: &[] };
        question(&table(), &[0], columns, &row)
    }

    const KEY: Cell = Cell::Raw { start: 0, len: 3 };

    #[test]
    fn the_row_is_asked_for_by_its_new_key_and_as_the_table_that_it_was() {
        let sql = ask(&[KEY, Cell::Unavailable, Cell::Unavailable], &[1, 2]).unwrap();
        assert_eq!(
            sql,
            "SELECT t.\"doc\", t.\"j\" FROM \"public\".\"it\"\"em\" t \
             WHERE to_regclass('\"public\".\"it\"\"em\"')::oid = 7 \
             AND (t.tableoid = 7 OR (SELECT relkind FROM pg_class WHERE oid = 7) = 'p') \
             AND (SELECT count(*) FROM pg_attribute WHERE attrelid = 7 \
             AND (attname::text, atttypid, atttypmod) IN (('doc', 25::oid, -1), \
             ('j', 3802::oid, -1))) = 2 AND t.\"id\" = 'o''k'"
        );
    }

    #[test]
    fn without_the_key_or_a_column_nothing_is_asked() {
        for key in [Cell::Unavailable, Cell::Null] {
            assert_eq!(ask(&[key, Cell::Unavailable, KEY], &[1]), None);
        }
        assert_eq!(ask(&[KEY, KEY, KEY], &[]), None);
        assert_eq!(ask(&[KEY, KEY, KEY], &[9]), None);
    }

    #[test]
    fn a_row_that_is_gone_or_not_alone_is_not_taken() {
        let cells = [KEY, Cell::Unavailable, Cell::Null];
        let row = RowImage { bytes: b"key", before: None, after: Some(&cells), reread: &[] };
        let answer = |values: &[Option<&str>]| {
            let mut body = u16::try_from(values.len()).unwrap().to_be_bytes().to_vec();
            for value in values {
                let length = value.map_or(-1, |value| i32::try_from(value.len()).unwrap());
                body.extend(length.to_be_bytes());
                body.extend(value.unwrap_or_default().as_bytes());
            }
            Row::parse(&body).unwrap()
        };
        let read = |rows: &[Row]| Reread::of(&row, vec![1], rows).unwrap();
        assert!(read(&[]).is_none());
        assert!(read(&[answer(&[Some("a")]), answer(&[Some("a")])]).is_none());
        let now = read(&[answer(&[Some("value")])]).unwrap();
        let image = now.image(&row);
        assert_eq!(image.reread, [1]);
        let after = image.after.unwrap();
        assert_eq!(
            (image.raw(after[0]), image.raw(after[1])),
            (Some(&b"key"[..]), Some(&b"value"[..]))
        );
        assert_eq!(after[2], Cell::Null);
        let gone = read(&[answer(&[None])]).unwrap();
        assert_eq!(gone.image(&row).after.unwrap()[1], Cell::Null);
    }
}

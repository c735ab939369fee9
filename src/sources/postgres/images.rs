//! Tuples of one message → the row before and after, as ranges into the frame.
//!
//! Completes what the new row leaves out from what the old row holds, marks what nobody holds, and
//! refuses what contradicts the relation's identity. Knows no types and no names beyond columns.
//! **Invariants:** a cell becomes NULL only if the server said NULL; `n` in a key tuple says "not
//! sent" and becomes [`Cell::Unavailable`]; no allocation once the scratch has grown.
//!
//! What the server sends, by the identity of the table that the row is stored in (PostgreSQL
//! manual, "Logical Replication Message Formats", `TupleData`; seen on 13 to 18):
//!
//! | identity | update, identity unchanged | update, identity changed | delete |
//! |---|---|---|---|
//! | key or index | new only, or key → new if an identity column is stored out of line | key → new | key |
//! | full | whole → new | whole → new | whole |
//! | nothing | refused at the source | refused at the source | refused at the source |

use super::relations::RelationDescriptor;
use super::wire::{DecodeError, OldTuple, ReplicaIdentity, Tuple, TupleValue};
use crate::change::{Cell, ChangeKind, RowImage};
use crate::error::{Code, Fault};

/// The scratch in which one row's images are made.
#[derive(Clone, Debug, Default)]
pub(super) struct Images {
    before: Vec<Cell>,
    after: Vec<Cell>,
}

/// By what a row is decoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowRule<'r> {
    pub(super) relation: &'r RelationDescriptor,
    /// The columns by which records are keyed.
    pub(super) key: &'r [usize],
}

impl Images {
    /// A row appeared. A column may still be missing: a row filter that lets a changed row in sends
    /// an insert whose unchanged out-of-line values nobody holds.
    pub(super) fn insert<'a>(
        &'a mut self,
        rule: RowRule<'_>,
        new: Tuple<'_>,
        frame: &'a [u8],
    ) -> Result<(ChangeKind, RowImage<'a>), Fault> {
        read_new(rule.relation, new, &mut self.after)?;
        let row = RowImage { bytes: frame, before: None, after: Some(&self.after), reread: &[] };
        Ok((ChangeKind::Create, row))
    }

    /// A row changed. The kind follows from the values of the key columns, never from the presence
    /// of an old tuple: a key column that is stored out of line brings a key tuple along with every
    /// update. A key column that the old tuple does not carry counts as unchanged.
    pub(super) fn update<'a>(
        &'a mut self,
        rule: RowRule<'_>,
        old: Option<OldTuple<'_>>,
        new: Tuple<'_>,
        frame: &'a [u8],
    ) -> Result<(ChangeKind, RowImage<'a>), Fault> {
        read_new(rule.relation, new, &mut self.after)?;
        let Some(old) = old else {
            expect_unchanged_identity(rule.relation)?;
            let row =
                RowImage { bytes: frame, before: None, after: Some(&self.after), reread: &[] };
            return Ok((ChangeKind::Update, row));
        };
        read_old(rule.relation, old, &mut self.before)?;
        complete(rule.relation, &self.before, &mut self.after)?;
        let row = RowImage {
            bytes: frame,
            before: Some(&self.before),
            after: Some(&self.after),
            reread: &[],
        };
        let kind =
            if key_changed(rule.key, row) { ChangeKind::KeyChange } else { ChangeKind::Update };
        Ok((kind, row))
    }

    /// A row went.
    pub(super) fn delete<'a>(
        &'a mut self,
        rule: RowRule<'_>,
        old: OldTuple<'_>,
        frame: &'a [u8],
    ) -> Result<(ChangeKind, RowImage<'a>), Fault> {
        read_old(rule.relation, old, &mut self.before)?;
        let row = RowImage { bytes: frame, before: Some(&self.before), after: None, reread: &[] };
        Ok((ChangeKind::Delete, row))
    }
}

/// No old tuple says that no identity column changed. Under FULL the server always sends one, so
/// then the letter is a partition root's, and the row is from a leaf with another identity.
fn expect_unchanged_identity(relation: &RelationDescriptor) -> Result<(), Fault> {
    if relation.replica_identity == ReplicaIdentity::Full {
        return Err(inconsistent("an update came without the old row, under identity full"));
    }
    Ok(())
}

fn read_new(
    relation: &RelationDescriptor,
    tuple: Tuple<'_>,
    cells: &mut Vec<Cell>,
) -> Result<(), Fault> {
    read(relation, tuple, cells, |_, unsent| match unsent {
        Unsent::Null => Ok(Cell::Null),
        Unsent::Unchanged => Ok(Cell::Unavailable),
    })
}

fn read_old(
    relation: &RelationDescriptor,
    old: OldTuple<'_>,
    cells: &mut Vec<Cell>,
) -> Result<(), Fault> {
    let is_full = relation.replica_identity == ReplicaIdentity::Full;
    match old {
        OldTuple::Full(tuple) if is_full => read(relation, tuple, cells, read_unsent_of_full),
        OldTuple::Key(tuple) if !is_full => {
            read(relation, tuple, cells, |column, unsent| {
                read_unsent_of_key(column_is_identity(relation, column), unsent)
            })?;
            if cells.iter().any(|cell| matches!(cell, Cell::Raw { .. })) {
                return Ok(());
            }
            Err(inconsistent("an old row came without a single identity column")
                .hint("Give the table an identity whose columns are all published."))
        }
        OldTuple::Full(_) | OldTuple::Key(_) => {
            Err(inconsistent("the kind of an old row is not that of the relation's identity"))
        }
    }
}

/// What a column holds that is not a value.
#[derive(Clone, Copy)]
enum Unsent {
    Null,
    Unchanged,
}

/// The server fetches what is stored out of line before it logs an old row.
fn read_unsent_of_full(_: usize, unsent: Unsent) -> Result<Cell, Fault> {
    match unsent {
        Unsent::Null => Ok(Cell::Null),
        Unsent::Unchanged => Err(inconsistent("an old row leaves an out-of-line value out")),
    }
}

/// In a key tuple `n` says "not sent". An identity column cannot be NULL, so one that is not sent
/// means that the row is from a partition with another identity than the root's.
fn read_unsent_of_key(is_identity: bool, unsent: Unsent) -> Result<Cell, Fault> {
    match unsent {
        Unsent::Null if is_identity => {
            Err(inconsistent("an old row came without one of its identity columns"))
        }
        Unsent::Null => Ok(Cell::Unavailable),
        Unsent::Unchanged => Err(inconsistent("an old row leaves an out-of-line value out")),
    }
}

fn read(
    relation: &RelationDescriptor,
    tuple: Tuple<'_>,
    cells: &mut Vec<Cell>,
    read_unsent: impl Fn(usize, Unsent) -> Result<Cell, Fault>,
) -> Result<(), Fault> {
    let (sent, described) = (tuple.len(), relation.columns.len());
    if sent != described {
        return Err(Code::ProtocolUnexpected.fault(format!(
            "a row of {sent} columns came for a relation that was described with {described}"
        )));
    }
    cells.clear();
    cells.reserve(sent);
    for (column, value) in tuple.iter().enumerate() {
        let named = |fault: Fault| fault.at_column(column_name(relation, column));
        cells.push(match *value {
            TupleValue::Text(span) => Cell::Raw { start: span.start, len: span.len },
            TupleValue::Null => read_unsent(column, Unsent::Null).map_err(named)?,
            TupleValue::Unchanged => read_unsent(column, Unsent::Unchanged).map_err(named)?,
            TupleValue::Binary(_) => {
                let text = "a value came in binary form, text was asked for";
                return Err(named(Code::ProtocolUnexpected.fault(text)));
            }
        });
    }
    Ok(())
}

/// Fills what the new row leaves out as unchanged from the old row: both are equal by the server's
/// contract, so the value is exact.
fn complete(
    relation: &RelationDescriptor,
    before: &[Cell],
    after: &mut [Cell],
) -> Result<(), Fault> {
    for (column, (new, old)) in after.iter_mut().zip(before).enumerate() {
        if *new != Cell::Unavailable {
            continue;
        }
        if *old == Cell::Null {
            // NULL is never stored out of line: this old row was not sent in full.
            return Err(inconsistent("the old row is null where the new one keeps a stored value")
                .at_column(column_name(relation, column)));
        }
        *new = *old;
    }
    Ok(())
}

fn key_changed(key: &[usize], row: RowImage<'_>) -> bool {
    let cell = |image: Option<&[Cell]>, column: usize| {
        image.and_then(|cells| cells.get(column)).copied().unwrap_or(Cell::Unavailable)
    };
    key.iter().any(|column| match (cell(row.before, *column), cell(row.after, *column)) {
        (Cell::Unavailable, _) | (_, Cell::Unavailable) => false,
        (old, new) => row.raw(old) != row.raw(new),
    })
}

fn column_is_identity(relation: &RelationDescriptor, column: usize) -> bool {
    relation.columns.get(column).is_some_and(|column| column.identity)
}

fn column_name(relation: &RelationDescriptor, column: usize) -> &str {
    relation.columns.get(column).map_or("", |column| &column.name)
}

fn inconsistent(message: &str) -> Fault {
    Code::ImageInconsistent.fault(message)
}

/// Bytes that are not what the protocol prescribes.
pub(super) fn malformed(error: &DecodeError) -> Fault {
    Code::ProtocolUnexpected.fault("malformed message").caused_by(error)
}

#[cfg(test)]
mod tests;

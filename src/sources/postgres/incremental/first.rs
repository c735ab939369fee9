//! How far the first snapshot is, for the case that it is interrupted.
//!
//! Part of what is stored of snapshots, written in the Kafka transaction of a table's last rows. Pure.
//! **Invariant:** a table is among those that are read only if all its rows are published, or are in
//! the transaction that says so; and only of the snapshot that began at this very position.

use serde::{Deserialize, Serialize};

use super::work::{Aim, TableWork, Work};
use crate::observe::{ChunkProgress, TableProgress};
use crate::sources::postgres::wire::Lsn;

/// So many tables are remembered: the record has to fit into a message. Further ones are read again.
const MOST: usize = 5_000;
/// The name of the first snapshot.
pub(in crate::sources::postgres) const FIRST: &str = "initial";

/// A first snapshot that is not through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sources::postgres) struct FirstSnapshot {
    /// Where the stream goes on behind it: it has every change since.
    begin: String,
    /// The tables of which all rows are published.
    read: Vec<ReadTable>,
    /// The names of others, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left: Vec<String>,
}

/// A table's number, name and rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ReadTable(u32, String, u64);

impl ReadTable {
    fn progress(&self) -> TableProgress {
        let Self(_, table, rows) = self;
        TableProgress {
            table: table.clone(),
            state: "completed",
            rows: *rows,
            scanned: *rows,
            ..TableProgress::default()
        }
    }
}

impl FirstSnapshot {
    /// Whether all rows of a table were published under this name.
    pub(in crate::sources::postgres) fn has(&self, oid: u32, name: &str) -> bool {
        self.read.iter().any(|one| one.0 == oid && one.1 == name)
    }

    /// What is told of the tables that are read.
    pub(in crate::sources::postgres) fn progress(
        &self,
    ) -> impl Iterator<Item = TableProgress> + use<'_> {
        self.read.iter().map(ReadTable::progress)
    }
}

impl Work {
    /// A first snapshot begins, behind which the stream goes on at `begin`. What an earlier one left
    /// to be read it reads itself.
    pub(in crate::sources::postgres) fn begin_first(&mut self, begin: Lsn) {
        let begin = begin.to_string();
        self.first = Some(FirstSnapshot { begin, read: Vec::new(), left: Vec::new() });
        let tables = std::mem::take(&mut self.tables);
        let kept = tables.into_iter().filter_map(|table| match table.aim {
            Aim::Initial => table.next(),
            _ => Some(table),
        });
        self.tables = kept.collect();
    }

    /// How far the first snapshot came, if it is the one behind which the stream goes on there.
    pub(in crate::sources::postgres) fn first_at(&self, begin: Lsn) -> Option<&FirstSnapshot> {
        self.first.as_ref().filter(|first| first.begin == begin.to_string())
    }

    /// Whether a first snapshot is under way that can be gone on with.
    pub(in crate::sources::postgres) const fn is_first(&self) -> bool {
        self.first.is_some()
    }

    /// It is known which tables are left to be read.
    pub(in crate::sources::postgres) fn set_left(&mut self, mut names: Vec<String>) {
        let Some(first) = &mut self.first else { return };
        if let Some(last) = names.pop() {
            names.truncate(MOST - 1);
            // as long as it is there it is not told that all are read
            names.push(last);
        }
        first.left = names;
    }

    /// A table is read through by the first snapshot. Says whether that has to be stored.
    pub(in crate::sources::postgres) fn note_read(
        &mut self,
        oid: u32,
        table: &str,
        rows: u64,
    ) -> bool {
        let Some(first) = self.first.as_mut().filter(|first| first.read.len() < MOST) else {
            return false;
        };
        first.left.retain(|name| name != table);
        first.read.push(ReadTable(oid, table.to_owned(), rows));
        true
    }

    /// A table's rows were read by another row filter than is to hold: they are read again.
    pub(in crate::sources::postgres) fn forget_read(&mut self, oid: u32) {
        if let Some(first) = &mut self.first {
            first.read.retain(|one| one.0 != oid);
        }
    }

    /// The first snapshot is through, but for tables that are to be read beside the stream. `shown`:
    /// what is told of it. Says whether there is anything to be stored.
    pub(in crate::sources::postgres) fn end_first(
        &mut self,
        shown: Option<&ChunkProgress>,
        beside: Vec<TableWork>,
    ) -> bool {
        let was_known = self.first.take().is_some();
        if let Some(shown) = shown {
            self.follow_first(shown);
        }
        let is_changed = was_known || shown.is_some() || !beside.is_empty();
        for mut table in beside {
            match self.tables.iter_mut().find(|old| old.is_of(&table)) {
                None => self.tables.push(table),
                // it reads all rows as well
                Some(old) if matches!(old.aim, Aim::Rewritten { .. }) => {}
                Some(old) => {
                    table.retells = old.is_of_changed_filter();
                    *old = table;
                }
            }
        }
        is_changed
    }

    /// What is told of a first snapshot that was interrupted; `None`: nothing is known.
    pub(super) fn first_progress(&self) -> Option<ChunkProgress> {
        let first = self.first.as_ref()?;
        let left = first.left.iter().map(|name| TableProgress {
            table: name.clone(),
            state: "waiting",
            ..TableProgress::default()
        });
        let behind = self.tables.iter().map(TableWork::progress);
        let tables: Vec<_> = first.progress().chain(left).chain(behind).collect();
        let progress = ChunkProgress { id: FIRST.to_owned(), tables, ..ChunkProgress::default() };
        (!progress.tables.is_empty()).then_some(progress)
    }

    /// All tables were read anew: that is the last snapshot now, unless some are still waiting.
    fn follow_first(&mut self, shown: &ChunkProgress) {
        if self.tables.is_empty() {
            *self = Self { id: shown.id.clone(), ..Self::default() };
            self.take_ends(shown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: Lsn = Lsn(0x20);

    fn table(name: &str, aim: Aim) -> TableWork {
        TableWork::new("public", name, aim)
    }

    fn stored(work: &Work) -> Work {
        Work::find(&[work.state().expect("a state")]).expect("it is understood")
    }

    fn told(progress: Option<ChunkProgress>) -> Vec<(String, &'static str, u64)> {
        let tables = progress.map(|one| one.tables).unwrap_or_default();
        tables.into_iter().map(|one| (one.table, one.state, one.rows)).collect()
    }

    #[test]
    fn what_is_read_belongs_to_one_snapshot_one_number_and_one_name() {
        let mut work = Work::default();
        assert!(!work.note_read(7, "public.a", 3), "no first snapshot is under way");
        work.begin_first(BEGIN);
        assert!(work.note_read(7, "public.a", 3));
        let work = stored(&work);
        let first = work.first_at(BEGIN).expect("it is under way");
        assert!(first.has(7, "public.a"));
        assert!(!first.has(8, "public.a"), "another table has its name");
        assert!(!first.has(7, "public.b"), "its rows are in another topic");
        assert!(work.first_at(Lsn(0x28)).is_none(), "that is another snapshot");
        let mut again = work.clone();
        again.begin_first(BEGIN);
        assert!(!again.first_at(BEGIN).expect("it is under way").has(7, "public.a"));
    }

    #[test]
    fn the_record_is_bounded() {
        let mut work = Work::default();
        work.begin_first(BEGIN);
        let count = u32::try_from(MOST).expect("small");
        work.set_left((0..2 * count).map(|oid| format!("public.{oid}")).collect());
        assert!((0..count).all(|oid| work.note_read(oid, &format!("public.{oid}"), 1)));
        assert!(!work.note_read(count, "public.further", 1));
        assert!(work.state().expect("a state").value.expect("one").len() < 500_000);
        let states: Vec<_> = told(work.progress()).into_iter().map(|one| one.1).collect();
        assert_eq!(
            states.iter().filter(|state| **state == "waiting").count(),
            1,
            "not all is read"
        );
    }

    #[test]
    fn what_is_left_is_read_behind_it_and_what_is_read_is_told() {
        let mut work = Work::default();
        work.begin_first(BEGIN);
        assert_eq!(stored(&work).progress(), None, "nothing is known of it");
        work.set_left(vec!["public.a".to_owned(), "public.b".to_owned()]);
        work.note_read(7, "public.a", 3);
        let expect =
            [("public.a".to_owned(), "completed", 3), ("public.b".to_owned(), "waiting", 0)];
        assert_eq!(told(stored(&work).progress()), expect);
        let shown = ChunkProgress {
            id: FIRST.to_owned(),
            tables: work.first_at(BEGIN).expect("it is under way").progress().collect(),
            ..ChunkProgress::default()
        };
        assert!(work.end_first(Some(&shown), vec![table("b", Aim::Initial)]));
        let work = stored(&work);
        assert_eq!((work.id.as_str(), &work.first), (FIRST, &None));
        assert_eq!(told(work.progress()), expect);
        assert!(!Work::default().end_first(None, Vec::new()), "there was none");
    }

    #[test]
    fn what_was_waiting_before_becomes_part_of_it() {
        let rewritten = Aim::Rewritten { by: "1".to_owned(), clears: true };
        let mut work = Work::default();
        let waiting = vec![
            TableWork { condition: Some("v > 1".to_owned()), ..table("a", Aim::Read) },
            table("b", rewritten.clone()),
            table("c", Aim::Retell),
        ];
        work.add(waiting, "1").expect("they are new");
        let beside = ["a", "b", "c", "d"].map(|name| table(name, Aim::Initial));
        work.end_first(None, beside.to_vec());
        let left: Vec<_> = work
            .tables
            .iter()
            .map(|one| (one.name.as_str(), &one.aim, one.retells, one.condition.is_some()))
            .collect();
        let expect = [
            ("a", &Aim::Initial, false, false),
            ("b", &rewritten, false, false),
            ("c", &Aim::Initial, true, false),
            ("d", &Aim::Initial, false, false),
        ];
        assert_eq!(left, expect);
        assert!(work.stop(&|name| name == "public.d").is_err(), "its rows are needed");
        work.begin_first(BEGIN);
        let left: Vec<_> = work.tables.iter().map(|one| (one.name.as_str(), &one.aim)).collect();
        assert_eq!(left, [("b", &rewritten), ("c", &Aim::Retell)], "the next one reads the rest");
    }
}

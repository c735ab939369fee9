//! What an interrupted snapshot left to be read, and how.
//!
//! ```text
//! all rows published             left alone: the slot has what changed since
//! others                         beside the stream, in chunks that are placed exactly
//! … that chunks must not read     again, through a temporary slot, before the stream
//! … if it cannot be gone on with all tables again
//! ```
//!
//! Wherever rows are read, the stream begins where the first attempt did: so every key ends in its
//! newest state, and what was deleted since is told. **Invariant:** a captured table of which not all
//! rows are known to be published under its name is read.

use std::collections::HashSet;

use crate::observe::TableProgress;
use crate::sources::postgres::Settings;
use crate::sources::postgres::catalogue::{RelationEntry, TableFacts};
use crate::sources::postgres::incremental::{Aim, FirstSnapshot, OLDEST, TableWork};
use crate::sources::postgres::session::ServerVersion;
use crate::sources::postgres::settings::SnapshotMode;
use crate::sources::postgres::wire::Lsn;

/// Beyond so many tables, reading them before the stream costs less than a chunk for each.
const MOST_BESIDE: usize = 1_000;
/// So many tables are named in the log.
const SHOWN: usize = 10;

/// A first snapshot that was interrupted, while its slot kept what changed since.
#[derive(Debug)]
pub(in crate::sources::postgres) struct Interrupted {
    /// Where it began, and where the stream begins.
    pub(in crate::sources::postgres) begin: Lsn,
    /// The publication has let everything through since.
    pub(in crate::sources::postgres) is_intact: bool,
    /// The tables that are captured now, as the publication was seen to have them.
    pub(in crate::sources::postgres) captured: Vec<RelationEntry>,
    /// Those of them that the publication carries only from now on.
    pub(in crate::sources::postgres) joined: HashSet<u32>,
    /// Tables are read again that were read.
    pub(in crate::sources::postgres) reads_all: bool,
}

/// See the module.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rest {
    /// The numbers of the tables that are read before the stream.
    pub(super) again: HashSet<u32>,
    /// The tables that are read beside it.
    pub(super) beside: Vec<TableWork>,
    /// What is told of those that are read.
    pub(super) read: Vec<TableProgress>,
}

impl Rest {
    /// What is told of the tables that are not read before the stream.
    pub(super) fn others(&self) -> Vec<TableProgress> {
        self.read.iter().cloned().chain(self.beside.iter().map(TableWork::progress)).collect()
    }
}

/// Why all tables are read again; `None`: it can be gone on.
pub(super) fn obstacle(
    settings: &Settings,
    interrupted: &Interrupted,
    first: Option<&FirstSnapshot>,
) -> Option<&'static str> {
    if settings.snapshot_mode == SnapshotMode::InitialOnly {
        return Some("no stream follows that would tell what changed since");
    }
    if !interrupted.is_intact {
        return Some("the publication was altered meanwhile; what it left out is not known");
    }
    match first {
        Some(_) => None,
        None => Some("it is not known how far it came with what the slot has"),
    }
}

/// Decides of each table.
pub(super) fn rest(
    settings: &Settings,
    (version, interrupted): (ServerVersion, &Interrupted),
    facts: &[TableFacts],
    first: &FirstSnapshot,
) -> Rest {
    let mut rest = Rest::default();
    // the numbers and names of those that are not left alone
    let mut left = Vec::new();
    let mut by_query = Vec::new();
    for table in facts {
        let name = table.qualified_name();
        if !settings.snapshot_reads(&name) {
            continue;
        }
        let has_query = settings.snapshot_query(&name).is_some();
        let is_read = first.has(table.oid, &name);
        if is_read && (has_query || !interrupted.reads_all) {
            continue;
        }
        // a transaction that is open may have written to it what the stream will not show, and a
        // chunk does not either; a slot is not made before it has ended
        if interrupted.joined.contains(&table.oid) {
            rest.again.insert(table.oid);
            left.push((table.oid, name));
            continue;
        }
        if has_query {
            rest.again.insert(table.oid);
            by_query.push(name.clone());
            left.push((table.oid, name));
            continue;
        }
        let aim = if is_read { Aim::Read } else { Aim::Initial };
        left.push((table.oid, name));
        let work = TableWork::new(&table.namespace, &table.name, aim);
        rest.beside.push(work.about(table.estimated_rows));
    }
    if !by_query.is_empty() {
        by_query.truncate(SHOWN);
        tracing::info!(
            tables = by_query.join(", "),
            "what snapshot.select.statement.overrides says is not read beside the stream; these \
             tables are read again from their first row"
        );
    }
    let is_too_old = version.major() < OLDEST;
    let count = rest.beside.len();
    if (is_too_old && count > 0) || count > MOST_BESIDE {
        tracing::info!(
            tables = count,
            "{}; those that were not read through are read again from their first row",
            if is_too_old {
                "the server's version does not allow reading beside the stream"
            } else {
                "many tables are left to be read"
            }
        );
        rest.again.extend(left.iter().map(|(oid, _)| *oid));
        rest.beside.clear();
    }
    let is_left = |one: &TableProgress| left.iter().any(|(_, name)| *name == one.table);
    rest.read = first.progress().filter(|one| !is_left(one)).collect();
    rest
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;
    use crate::sources::postgres::catalogue::testing;
    use crate::sources::postgres::incremental::Work;
    use crate::sources::postgres::publication::tests::settings;
    use crate::sources::postgres::settings::PublicationAutocreate;

    const NEW: ServerVersion = ServerVersion(18_00_06);
    const BEGIN: Lsn = Lsn(0x20);

    fn facts(oid: u32, name: &str) -> TableFacts {
        TableFacts { oid, name: name.to_owned(), ..testing::table(Vec::new()) }
    }

    fn base() -> Settings {
        settings(PublicationAutocreate::Filtered, false)
    }

    fn interrupted(joined: &[u32]) -> Interrupted {
        let joined = joined.iter().copied().collect();
        let (captured, reads_all) = (Vec::new(), false);
        Interrupted { begin: BEGIN, is_intact: true, captured, joined, reads_all }
    }

    /// Of a, b and c the first one was read.
    fn of(settings: &Settings, version: ServerVersion, reads_all: bool) -> Rest {
        with_joined(settings, (version, reads_all), &[])
    }

    fn with_joined(
        settings: &Settings,
        (version, reads_all): (ServerVersion, bool),
        joined: &[u32],
    ) -> Rest {
        let mut work = Work::default();
        work.begin_first(BEGIN);
        work.note_read(1, "public.a", 5);
        let tables = [facts(1, "a"), facts(2, "b"), facts(3, "c")];
        let first = work.first_at(BEGIN).expect("it is under way");
        rest(settings, (version, &Interrupted { reads_all, ..interrupted(joined) }), &tables, first)
    }

    fn names(rest: &Rest) -> (Vec<u32>, Vec<(String, Aim)>, Vec<&str>) {
        let mut again: Vec<u32> = rest.again.iter().copied().collect();
        again.sort_unstable();
        let beside = rest.beside.iter().map(|one| (one.name.clone(), one.aim.clone())).collect();
        (again, beside, rest.read.iter().map(|one| one.table.as_str()).collect())
    }

    #[test]
    fn what_is_read_is_left_alone_and_the_others_are_read_beside_the_stream() {
        let rest = of(&base(), NEW, false);
        let initial = |name: &str| (name.to_owned(), Aim::Initial);
        let expect = (vec![], vec![initial("b"), initial("c")], vec!["public.a"]);
        assert_eq!(names(&rest), expect);
        let told: Vec<_> =
            rest.others().into_iter().map(|one| (one.table, one.state, one.rows)).collect();
        let one = |name: &str, state, rows| (name.to_owned(), state, rows);
        let expect = [
            one("public.a", "completed", 5),
            one("public.b", "waiting", 0),
            one("public.c", "waiting", 0),
        ];
        assert_eq!(told, expect);
        assert!(rest.beside.iter().all(|table| table.oid.is_none()));
    }

    #[test]
    fn what_chunks_do_not_read_is_read_before_the_stream() {
        let mut queried = base();
        for table in ["public.a", "public.c"] {
            queried.snapshot_queries.insert(table.to_owned(), "select".to_owned());
        }
        let expect = (vec![3], vec![("b".to_owned(), Aim::Initial)], vec!["public.a"]);
        assert_eq!(names(&of(&queried, NEW, false)), expect);
        assert_eq!(names(&of(&queried, NEW, true)), expect, "a query is for the first start");
        let old = of(&base(), ServerVersion(13_00_20), false);
        assert_eq!(names(&old), (vec![2, 3], vec![], vec!["public.a"]));
        let joined = with_joined(&base(), (NEW, false), &[3]);
        assert_eq!(
            names(&joined),
            (vec![3], vec![("b".to_owned(), Aim::Initial)], vec!["public.a"])
        );
        let mut work = Work::default();
        work.begin_first(BEGIN);
        work.note_read(0, "public.t0", 5);
        let many: Vec<_> = (0..2_000).map(|oid| facts(oid, &format!("t{oid}"))).collect();
        let first = work.first_at(BEGIN).expect("it is under way");
        let many = rest(&base(), (NEW, &interrupted(&[])), &many, first);
        assert_eq!((many.again.len(), many.beside.len(), many.read.len()), (1_999, 0, 1));
    }

    #[test]
    fn tables_are_read_by_what_is_configured_now() {
        let mut listed = base();
        listed.snapshot_include = Some(vec![Regex::new(r"^(?:public\.b)$").expect("a pattern")]);
        assert_eq!(names(&of(&listed, NEW, false)).1, [("b".to_owned(), Aim::Initial)]);
        let all = of(&base(), NEW, true);
        let aims: Vec<_> = all.beside.iter().map(|one| one.aim.clone()).collect();
        assert_eq!(aims, [Aim::Read, Aim::Initial, Aim::Initial], "by snapshot.mode=always");
        assert!(all.read.is_empty());
    }

    #[test]
    fn all_is_read_again_where_it_is_not_known_what_the_slot_has() {
        let mut work = Work::default();
        work.begin_first(BEGIN);
        let first = work.first_at(BEGIN);
        assert_eq!(obstacle(&base(), &interrupted(&[]), first), None);
        let altered = Interrupted { is_intact: false, ..interrupted(&[]) };
        assert!(obstacle(&base(), &altered, first).is_some(), "the publication");
        let elsewhere = work.first_at(Lsn(0x28));
        assert!(obstacle(&base(), &interrupted(&[]), elsewhere).is_some(), "another snapshot");
        let only = Settings { snapshot_mode: SnapshotMode::InitialOnly, ..base() };
        assert!(obstacle(&only, &interrupted(&[]), first).is_some(), "no stream");
    }
}

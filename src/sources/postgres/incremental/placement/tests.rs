//! A server in memory: transactions that commit in the log and become visible later, a stream that
//! shows them in the log's order, snapshots at any moment. Whatever the schedule, a reader of the
//! topic ends with the table's rows.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;

use super::*;

fn window(seen: &str, fence: u64) -> Window {
    Window { seen: Visibility::parse(seen).expect("a snapshot"), fence: Lsn(fence) }
}

fn begin(placement: &mut Placement, xid: u32, commit: u64) -> Step {
    placement.begin(Xid(xid), Lsn(commit))
}

#[test]
fn a_chunk_waits_for_what_its_snapshot_sees() {
    let mut placement = Placement::default();
    assert_eq!(placement.open(window("10:12:10", 200), Lsn(100)), Err(Doubt::Unknown(vec![10])));
    placement.clear(&[10]);
    assert_eq!(placement.open(window("10:12:10", 200), Lsn(100)), Ok(Step::GoOn));
    assert_eq!(begin(&mut placement, 11, 150), Step::GoOn);
    assert_eq!(placement.reached(Lsn(190)), Step::GoOn);
    assert_eq!(begin(&mut placement, 10, 220), Step::Here);
}

#[test]
fn an_idle_stream_is_passed_by_a_position() {
    let mut placement = Placement::default();
    assert_eq!(placement.open(window("10:10:", 200), Lsn(100)), Ok(Step::GoOn));
    assert_eq!(placement.reached(Lsn(200)), Step::Here);
    assert_eq!(placement.reached(Lsn(300)), Step::GoOn, "placed once");
    assert_eq!(placement.open(window("10:10:", 200), Lsn(200)), Ok(Step::Here));
}

#[test]
fn what_may_interleave_is_taken_again() {
    let mut placement = Placement::default();
    assert_eq!(placement.open(window("10:12:", 200), Lsn(100)), Ok(Step::GoOn));
    assert_eq!(begin(&mut placement, 12, 150), Step::TakeAgain);
    assert_eq!(placement.reached(Lsn(300)), Step::GoOn, "it is given up");
    assert_eq!(placement.open(window("12:13:12", 250), Lsn(160)), Err(Doubt::Shown(12)));
    assert_eq!(placement.open(window("13:13:", 250), Lsn(160)), Ok(Step::GoOn));
}

#[test]
fn what_ended_or_was_shown_since_is_no_doubt() {
    let mut placement = Placement::default();
    let doubt = placement.open(window("10:14:10,12,13", 200), Lsn(100));
    assert_eq!(doubt, Err(Doubt::Unknown(vec![10, 12, 13])));
    assert_eq!(begin(&mut placement, 12, 150), Step::GoOn);
    // 10 has ended, 12 was shown and is not seen yet
    assert_eq!(placement.open(window("12:14:12,13", 210), Lsn(160)), Err(Doubt::Shown(12)));
    assert_eq!(placement.open(window("13:14:13", 210), Lsn(160)), Err(Doubt::Unknown(vec![13])));
}

/// One transaction of the server in memory.
#[derive(Clone, Debug)]
struct Transaction {
    xid: u32,
    /// When it got its id.
    begun: u64,
    /// Rows it writes; `None`: it deletes the row.
    writes: Vec<(u8, Option<u32>)>,
    /// When its commit record is written; the record's position.
    commit: u64,
    /// When snapshots begin to see it.
    visible: u64,
}

/// Who decides where a chunk goes.
trait Judge {
    fn open(&mut self, window: Window, position: Lsn) -> Result<Step, Doubt>;
    fn begin(&mut self, xid: Xid, commit: Lsn) -> Step;
    fn reached(&mut self, position: Lsn) -> Step;
}

impl Judge for Placement {
    fn open(&mut self, window: Window, position: Lsn) -> Result<Step, Doubt> {
        Self::open(self, window, position)
    }

    fn begin(&mut self, xid: Xid, commit: Lsn) -> Step {
        Self::begin(self, xid, commit)
    }

    fn reached(&mut self, position: Lsn) -> Step {
        Self::reached(self, position)
    }
}

/// The mutation: a chunk is placed where the stream stands when it is read.
struct Impatient;

impl Judge for Impatient {
    fn open(&mut self, _window: Window, _position: Lsn) -> Result<Step, Doubt> {
        Ok(Step::Here)
    }

    fn begin(&mut self, _xid: Xid, _commit: Lsn) -> Step {
        Step::GoOn
    }

    fn reached(&mut self, _position: Lsn) -> Step {
        Step::GoOn
    }
}

type Rows = BTreeMap<u8, u32>;

fn apply(rows: &mut Rows, writes: &[(u8, Option<u32>)]) {
    for (key, value) in writes {
        match value {
            Some(value) => rows.insert(*key, *value),
            None => rows.remove(key),
        };
    }
}

/// Rows that are written (kept or deleted), and how long it takes: before, from the id to the
/// commit, from the commit until it is seen.
type Plan = Vec<(Vec<(u8, bool)>, [u64; 3])>;

/// The server's transactions in the order of the log. A row that a transaction has written is
/// locked until it is visible, so who writes it next commits later than that.
fn history(plan: &Plan) -> Vec<Transaction> {
    let mut free: BTreeMap<u8, u64> = BTreeMap::new();
    let mut all = Vec::new();
    let mut clock = 20;
    for (rows, [pause, span, delay]) in plan {
        let locked = rows.iter().filter_map(|(key, _)| free.get(key)).max().copied().unwrap_or(0);
        clock = (clock + 1 + pause).max(locked + 1);
        for (key, _) in rows {
            free.insert(*key, clock + delay);
        }
        let writes = rows.iter().map(|(key, keeps)| (*key, keeps.then_some(0))).collect();
        let (begun, visible) = (clock - span, clock + delay);
        all.push(Transaction { xid: 0, begun, writes, commit: clock, visible });
    }
    // ids are given in the order of beginnings
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|index| all[*index].begun);
    for (number, index) in order.into_iter().enumerate() {
        let one = &mut all[index];
        one.xid = 100 + u32::try_from(number).expect("few");
        for (_, value) in &mut one.writes {
            *value = value.map(|_| one.xid);
        }
    }
    all
}

/// What a snapshot at a moment sees.
fn seen_at(all: &[Transaction], moment: u64) -> Visibility {
    let begun = all.iter().filter(|one| one.begun <= moment);
    let xmax = begun.clone().map(|one| u64::from(one.xid) + 1).max().unwrap_or(100);
    let in_progress: Vec<u64> =
        begun.filter(|one| one.visible > moment).map(|one| u64::from(one.xid)).collect();
    let xmin = in_progress.iter().min().copied().unwrap_or(xmax);
    Visibility { xmin, xmax, in_progress }
}

/// How a run goes: the stream lags behind the log; so many transactions were shown before the judge
/// began; the first chunk is wanted so late.
#[derive(Clone, Copy, Debug)]
struct Course {
    lag: u64,
    resumed: usize,
    pause: u64,
}

/// What came of a run.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    topic: Rows,
    table: Rows,
    /// Every chunk was placed.
    is_through: bool,
    /// Each chunk held what a reader of the stream has there anyway.
    is_exact: bool,
}

struct Run<'a> {
    all: &'a [Transaction],
    topic: Rows,
    /// How many transactions the stream has shown.
    shown: usize,
    chunk: Option<Rows>,
    /// The first key of the chunk that is being read.
    keys: u8,
    is_exact: bool,
}

impl Run<'_> {
    fn range(&self, mut rows: Rows) -> Rows {
        rows.retain(|key, _| (self.keys..self.keys + 2).contains(key));
        rows
    }

    fn place(&mut self) {
        let mut there = Rows::new();
        for one in self.all.iter().take(self.shown) {
            apply(&mut there, &one.writes);
        }
        let chunk = self.chunk.take().unwrap_or_default();
        self.is_exact &= self.range(there) == chunk;
        self.topic.extend(chunk);
        self.keys += 2;
    }

    fn read(&mut self, judge: &mut dyn Judge, moment: u64, position: Lsn) {
        let mut rows = Rows::new();
        for one in self.all.iter().filter(|one| one.visible <= moment) {
            apply(&mut rows, &one.writes);
        }
        // the log goes on while the fence is read
        let window = Window { seen: seen_at(self.all, moment), fence: Lsn(moment + 3) };
        let step = judge.open(window, position);
        if step.is_ok() {
            self.chunk = Some(self.range(rows));
        }
        if step == Ok(Step::Here) {
            self.place();
        }
    }
}

/// Chunks of two keys are read until all eight are through. The topic has none of the rows before.
fn run(judge: &mut dyn Judge, all: &[Transaction], course: Course) -> Outcome {
    let Course { lag, resumed, pause } = course;
    let mut table = Rows::new();
    for one in all {
        apply(&mut table, &one.writes);
    }
    let mut run =
        Run { all, topic: Rows::new(), shown: resumed, chunk: None, keys: 0, is_exact: true };
    let start = all.get(resumed.wrapping_sub(1)).map_or(0, |one| one.commit) + 1;
    let end = all.last().map_or(start, |last| last.visible).max(start + pause) + 5 * (lag + 10);
    for moment in start..=end {
        let head = moment.saturating_sub(lag);
        while let Some(one) = all.get(run.shown).filter(|one| one.commit <= head) {
            match judge.begin(Xid(one.xid), Lsn(one.commit)) {
                Step::Here => run.place(),
                Step::TakeAgain => run.chunk = None,
                Step::GoOn => {}
            }
            apply(&mut run.topic, &one.writes);
            run.shown += 1;
        }
        if run.chunk.is_some() && judge.reached(Lsn(head + 1)) == Step::Here {
            run.place();
        }
        if run.chunk.is_none() && run.keys < 8 && moment >= start + pause {
            run.read(judge, moment, Lsn(head + 1));
        }
    }
    Outcome { topic: run.topic, table, is_through: run.keys >= 8, is_exact: run.is_exact }
}

fn plans() -> impl Strategy<Value = Plan> {
    let rows = proptest::collection::vec((0_u8..8, proptest::bool::weighted(0.8)), 1..3);
    let times =
        (0_u64..4, 1_u64..9, 0_u64..9).prop_map(|(pause, span, delay)| [pause, span, delay]);
    proptest::collection::vec((rows, times), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_topic_ends_as_the_table_whatever_the_schedule(
        plan in plans(), lag in 0_u64..12, resumed in 0_usize..10, pause in 0_u64..40
    ) {
        let all = history(&plan);
        let course = Course { lag, resumed: resumed.min(all.len()), pause };
        let outcome = run(&mut Placement::default(), &all, course);
        prop_assert!(outcome.is_through, "every chunk is placed in the end");
        prop_assert!(outcome.is_exact, "a chunk holds what the stream has at its place");
        prop_assert_eq!(outcome.topic, outcome.table);
    }
}

/// The test of the test: chunks that do not wait for what their snapshot sees are found out, by
/// what they hold, and by what a reader ends with.
#[test]
fn a_chunk_that_does_not_wait_is_found_out() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut inexact, mut wrong) = (0, 0);
    for number in 0..400_u64 {
        let plan = plans().new_tree(&mut runner).expect("a plan").current();
        let course = Course { lag: number % 7, resumed: 0, pause: number % 60 };
        let outcome = run(&mut Impatient, &history(&plan), course);
        inexact += usize::from(!outcome.is_exact);
        wrong += usize::from(outcome.topic != outcome.table);
    }
    assert!(inexact > 0 && wrong > 0, "of 400 schedules {inexact} and {wrong} show it");
}

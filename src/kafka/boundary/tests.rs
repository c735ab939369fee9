//! The rules under hand-written and random schedules, against a log in memory.

use std::fmt::Write as _;
use std::sync::Arc;

use proptest::prelude::*;
use tokio::sync::oneshot;

use super::*;
use crate::error::Code;
use crate::record::{Record, TopicId};

/// Writes down what is committed: `[records @offset]`, states as `table=value`.
#[derive(Debug, Default)]
struct Journal {
    open: Option<Vec<String>>,
    text: String,
    /// Commit number that fails.
    refuse: Option<usize>,
    commits: usize,
}

impl TransactionLog for Journal {
    fn begin(&mut self) -> Result<(), Fault> {
        assert!(self.open.replace(Vec::new()).is_none(), "begin inside a transaction");
        Ok(())
    }

    fn produce(&mut self, batch: &Batch) -> Result<(), Fault> {
        let open = self.open.as_mut().expect("produce outside a transaction");
        open.extend(batch.records().iter().map(|record| record.sequence.to_string()));
        Ok(())
    }

    fn produce_states(&mut self, states: &[TableState]) -> Result<(), Fault> {
        let open = self.open.as_mut().expect("states outside a transaction");
        open.extend(states.iter().map(|state| format!("{}=", state.key)));
        Ok(())
    }

    fn commit(&mut self, offset: &OffsetRecord) -> Result<(), Fault> {
        let records = self.open.take().expect("commit outside a transaction");
        self.commits += 1;
        if self.refuse == Some(self.commits) {
            return Err(Code::KafkaTransaction.fault("refused"));
        }
        write!(self.text, "[{} @{}]", records.join(" "), text(offset)).unwrap();
        Ok(())
    }

    fn abort(&mut self) -> Result<(), Fault> {
        let records = self.open.take().expect("abort outside a transaction");
        write!(self.text, "({})", records.join(" ")).unwrap();
        Ok(())
    }
}

fn text(offset: &OffsetRecord) -> String {
    String::from_utf8(offset.0.to_vec()).unwrap()
}

fn offset(text: &str) -> OffsetRecord {
    OffsetRecord(Arc::from(text.as_bytes()))
}

/// Ten bytes for each record.
fn batch(sequences: impl IntoIterator<Item = u64>) -> Batch {
    let mut batch = Batch::new();
    for sequence in sequences {
        let value = Some(batch.append(&[0; 10]));
        batch.push(Record {
            topic: TopicId(0),
            partition: None,
            key: None,
            value,
            headers: 0..0,
            sequence,
            part: 0,
        });
    }
    batch
}

struct Bench {
    boundaries: Boundaries<Journal>,
    committed: watch::Receiver<Option<OffsetRecord>>,
    now: Instant,
    outcome: Result<(), Fault>,
}

impl Bench {
    fn new() -> Self {
        let (sender, committed) = watch::channel(None);
        let settings = BoundarySettings {
            linger: Duration::from_millis(100),
            max_bytes: 100,
            offset_flush_interval: Duration::from_secs(5),
        };
        #[expect(clippy::disallowed_methods, reason = "an arbitrary beginning")]
        let now = Instant::now();
        let timeout = Duration::from_secs(60);
        let boundaries = Boundaries::new(Journal::default(), settings, timeout, sender);
        Self { boundaries, committed, now, outcome: Ok(()) }
    }

    fn take(&mut self, staged: Staged) {
        if self.outcome.is_ok() {
            self.outcome = self.boundaries.take(staged, self.now).map(drop);
        }
    }

    /// One word each: `3` a record in a transaction of its own with that offset, `4,5` two records,
    /// `6+` a part of a large transaction, `m7` a marker, `c8` a control record, `f9` a flush,
    /// `f` one without offset, `s9` a record whose state goes with it, `s` a state without records, `!` a fault, `!8` one that is told by a control record, `~50` milliseconds pass, `.` the queue is empty.
    fn word(&mut self, word: &str) {
        let (head, rest) = word.split_at(1);
        match head {
            "m" => self.take(Staged::Marker { offset: offset(rest) }),
            "c" => self.take(Staged::Control {
                batch: batch([rest.parse().unwrap()]),
                states: vec![TableState { key: "t".into(), value: None }],
                offset: offset(&format!("c{rest}")),
            }),
            "f" => {
                let (done, _) = oneshot::channel();
                let offset = (!rest.is_empty()).then(|| offset(rest));
                self.take(Staged::Flush { offset, done });
            }
            "s" => self.take(Staged::Records {
                batch: batch(rest.parse().ok()),
                states: vec![TableState { key: "t".into(), value: None }],
                offset: offset(&format!("s{rest}")),
                complete: true,
            }),
            "!" if rest.is_empty() => {
                self.take(Staged::Fault(Code::ValueMalformed.fault("poison")));
            }
            "!" => self.take(Staged::Refusal {
                fault: Code::ValueMalformed.fault("poison"),
                batch: batch([rest.parse().unwrap()]),
                states: vec![TableState { key: "t".into(), value: None }],
                offset: offset("begin"),
            }),
            "~" => self.now += Duration::from_millis(rest.parse().unwrap()),
            "." if self.outcome.is_ok() => self.outcome = self.boundaries.rest(self.now),
            "." => {}
            _ => {
                let complete = !word.ends_with('+');
                let numbers = word.trim_end_matches('+');
                let last = numbers.rsplit(',').next().unwrap();
                let records = if numbers.starts_with('e') {
                    batch([])
                } else {
                    batch(numbers.split(',').map(|number| number.parse().unwrap()))
                };
                let offset = offset(&format!("{last}{}", if complete { "" } else { "+" }));
                self.take(Staged::Records { batch: records, states: Vec::new(), offset, complete });
            }
        }
    }

    fn acknowledged(&self) -> String {
        self.committed.borrow().as_ref().map_or(String::new(), text)
    }
}

#[track_caller]
fn check(script: &str, expect: &str) {
    let mut bench = Bench::new();
    for word in script.split_whitespace() {
        bench.word(word);
    }
    let journal = &bench.boundaries.log().text;
    assert_eq!(journal, expect, "{script}");
    let last = expect.rsplit_once('@').and_then(|(_, rest)| rest.split_once(']'));
    assert_eq!(bench.acknowledged(), last.map_or("", |(offset, _)| offset), "{script}");
}

#[test]
fn whole_transactions_share_a_kafka_transaction_until_the_queue_is_empty() {
    check("1 2 3", "");
    check("1 2 3 . 4 .", "[1 2 3 @3][4 @4]");
}

#[test]
fn a_kafka_transaction_does_not_linger_and_does_not_grow() {
    check("1 ~99 2 ~1 3 4", "[1 2 3 @3]");
    check("1,2,3,4,5 6,7,8,9,10 11", "[1 2 3 4 5 6 7 8 9 10 @10]");
}

#[test]
fn a_state_that_goes_with_records_is_in_their_kafka_transaction() {
    check("1 s2 3 .", "[1 2 t= 3 @3]");
    check("1 . s .", "[1 @1][t= @s]");
}

#[test]
fn a_large_transaction_stands_alone_and_takes_only_itself_down() {
    check("1 2 3+", "[1 2 @2]");
    check("1 2 3+ 4+ !", "[1 2 @2](3 4)");
    check("1 2 3+ 4+ !5", "[1 2 @2](3 4)[5 t= @2]");
    // nothing was committed in this life
    check("3+ !5", "(3)[5 t= @begin]");
    check("!5", "[5 t= @begin]");
    // what a split left in Kafka stays said
    check("1+ c2 3+ !5", "[1 @1+][2 t= @c2](3)[5 t= @c2]");
    check("1 2 3+ 4+ 5 6 .", "[1 2 @2][3 4 5 6 @6]");
}

#[test]
fn a_very_large_transaction_is_split_by_size_and_by_time() {
    check("1,2,3,4,5+ 6,7,8,9,10+ 11+ 12 .", "[1 2 3 4 5 6 7 8 9 10 @10+][11 12 @12]");
    check("1+ . ~19999 . ~1 . 2+ !", "[1 @1+](2)");
    check("1+ ~20000 2+ 3+ 4 .", "[1 2 @2+][3 4 @4]");
}

#[test]
fn the_end_of_a_split_transaction_may_be_empty() {
    check("1,2,3,4,5,6,7,8,9,10+ e11 .", "[1 2 3 4 5 6 7 8 9 10 @10+]");
    check("1,2,3,4,5,6,7,8,9,10+ e11 ~5000 .", "[1 2 3 4 5 6 7 8 9 10 @10+][ @e11]");
    check("1+ e2 .", "[1 @e2]");
}

#[test]
fn control_records_are_out_before_anything_later() {
    check("1 c2 3 .", "[1 @1][2 t= @c2][3 @3]");
    check("1+ c2 3 !", "[1 @1+][2 t= @c2][3 @3]");
}

#[test]
fn markers_move_the_offset_now_and_then() {
    check("m1 . m2 ~4999 . m3 ~1 . m4 .", "[ @1][ @3]");
    check("1 . ~6000 m2 m3 ~5000 m4", "[1 @1][ @2][ @4]");
    check("e1 . ~10 e2 .", "[ @e1]");
}

#[test]
fn a_marker_counts_only_with_nothing_open_before_it() {
    check("1 m2 . ~5000 .", "[1 @1][ @2]");
    check("1+ m2 ~20000 . ~9000 .", "[1 @1+]");
    check("m1 2 . ~9000 .", "[ @1][2 @2]");
    check("1 . m2 3 ~9000 .", "[1 @1][3 @3]");
}

#[test]
fn a_flush_stores_its_offset_at_once() {
    check("f1", "[ @1]");
    check("1 f2 f3", "[1 @1][ @2][ @3]");
    check("1 . m2 f", "[1 @1][ @2]");
    check("1+ f 2 .", "[1 @1+][2 @2]");
    check("f", "");
}

#[test]
fn a_fault_leaves_every_complete_transaction_before_it_in_kafka() {
    check("1 2 3 4 5 ! 6 .", "[1 2 3 4 5 @5]");
    check("1 . m2 !", "[1 @1][ @2]");
    let mut bench = Bench::new();
    for word in ["1", "!"] {
        bench.word(word);
    }
    assert_eq!(bench.outcome.unwrap_err().code(), Code::ValueMalformed);
}

#[test]
fn what_kafka_refuses_is_never_acknowledged() {
    let mut bench = Bench::new();
    bench.boundaries.log().refuse = Some(2);
    for word in ["1", ".", "2", ".", "3", "."] {
        bench.word(word);
    }
    assert_eq!(bench.boundaries.log().text, "[1 @1]");
    assert_eq!(bench.acknowledged(), "1");
    assert_eq!(bench.outcome.unwrap_err().code(), Code::KafkaTransaction);
}

#[test]
fn whoever_flushes_is_told_the_outcome() {
    let mut bench = Bench::new();
    bench.boundaries.log().refuse = Some(1);
    let (done, mut told) = oneshot::channel();
    bench.take(Staged::Flush { offset: Some(offset("1")), done });
    assert_eq!(told.try_recv().unwrap().unwrap_err().code(), Code::KafkaTransaction);
}

#[test]
fn the_publisher_wakes_up_when_something_is_due() {
    let mut bench = Bench::new();
    let patience = |bench: &Bench| bench.boundaries.patience(bench.now).as_millis();
    assert_eq!(patience(&bench), 1000);
    bench.word("1");
    assert_eq!(patience(&bench), 0);
    bench.word(".");
    bench.word("m2");
    assert_eq!(patience(&bench), 1000);
    bench.word("~4500");
    assert_eq!(patience(&bench), 500);
    bench.word("3+");
    bench.word("~19800");
    assert_eq!(patience(&bench), 200);
    bench.word("~9999");
    assert_eq!(patience(&bench), 0);
}

proptest! {
    /// Whatever the schedule: the committed records are a gapless prefix of what was sent, each
    /// offset describes exactly the records committed with and before it, and a transaction is
    /// only ever cut where it was cut by size, time, a control record or a flush.
    #[test]
    fn every_committed_offset_describes_what_is_committed(
        steps in prop::collection::vec((0_u8..10, 1_u64..40), 1..80),
    ) {
        let mut bench = Bench::new();
        let mut sent = 0_u64;
        for (step, argument) in steps {
            match step {
                0..=3 => { sent += 1; bench.word(&sent.to_string()); }
                4 | 5 => { sent += 1; bench.word(&format!("{sent}+")); }
                6 => bench.word(&format!("~{}", argument * argument * 20)),
                7 => { sent += 1; bench.word(&format!("c{sent}")); }
                8 if argument < 20 => bench.word("f"),
                _ => bench.word("."),
            }
        }
        if sent.is_multiple_of(2) { bench.word("!") } else { bench.word("f") }
        let journal = bench.boundaries.log().text.clone();
        let committed = journal.split('(').next().unwrap();
        let mut next = 1_u64;
        for transaction in committed.split_terminator(']') {
            let (records, offset) = transaction.trim_start_matches('[').split_once('@').unwrap();
            for record in records.split_whitespace().filter(|record| *record != "t=") {
                prop_assert_eq!(record.parse::<u64>().unwrap(), next, "{}", journal);
                next += 1;
            }
            let reached: u64 = offset.trim_matches(['c', '+']).parse().unwrap();
            prop_assert_eq!(reached, next - 1, "{}", journal);
        }
        // What is withdrawn is one unfinished transaction at the end, and nothing else is missing.
        let withdrawn = journal.split_once('(').map_or("", |(_, rest)| rest);
        let withdrawn = withdrawn.trim_end_matches(')').split_whitespace().count() as u64;
        prop_assert_eq!(next - 1 + withdrawn, sent, "{}", journal);
    }
}

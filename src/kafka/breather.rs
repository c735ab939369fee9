//! How long to wait between two Kafka transactions.
//!
//! The coordinator answers the end of a transaction before its markers are written, and refuses a
//! new one until they are. librdkafka then asks again after 20 ms (`rd_kafka_txn_handle_
//! AddPartitionsToTxn`), many times what the markers take. So a new transaction waits a little, and
//! how long is learned. Pure: knows no client and reads no clock. **Invariants:** whoever comes
//! when nothing was committed just now does not wait; the wait never exceeds [`LONGEST`].

use std::time::{Duration, Instant};

/// How long librdkafka waits when it was refused.
const REFUSED: Duration = Duration::from_millis(20);
/// The first guess.
const FIRST: Duration = Duration::from_millis(2);
/// Where learning stops: a broker that takes longer is better asked twice.
const LONGEST: Duration = Duration::from_millis(10);
/// Added after a refusal, which costs as much as it does.
const UP: Duration = Duration::from_millis(1);
/// Taken away after each transaction that was not refused. One in twenty may look refused because
/// the broker was slow, without the wait growing.
const DOWN: Duration = Duration::from_micros(50);

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Breather {
    wait: Duration,
    committed: Option<Instant>,
}

impl Breather {
    /// Begins with a guess.
    pub(super) const fn new() -> Self {
        Self { wait: FIRST, committed: None }
    }

    /// When a new transaction may begin; `None`: now.
    pub(super) fn due(&self) -> Option<Instant> {
        self.committed.map(|committed| committed + self.wait)
    }

    /// A transaction was committed: when it began, when its first records had been handed to the
    /// client, when the broker had them, and when it was committed.
    pub(super) fn committed(&mut self, began: Instant, given: Instant, had: Instant, now: Instant) {
        self.committed = Some(now);
        if given.duration_since(began) >= REFUSED {
            // whether it was refused at first cannot be seen any more
            return;
        }
        self.wait = if had.duration_since(began) >= REFUSED {
            (self.wait + UP).min(LONGEST)
        } else {
            self.wait.saturating_sub(DOWN)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::clock;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Transactions one after the other at a coordinator that needs `markers` after each; how many
    /// of the last thousand it refused at first, and the wait at the end.
    fn run(markers: Duration) -> (usize, Duration) {
        let mut now = clock();
        let mut breather = Breather::new();
        let mut free = now;
        let mut refused = Vec::new();
        for _ in 0..5000 {
            let began = breather.due().map_or(now, |due| due.max(now));
            let is_refused = began < free;
            let had = began + if is_refused { REFUSED + MS } else { MS };
            now = had + MS;
            free = now + markers;
            breather.committed(began, began, had, now);
            refused.push(is_refused);
        }
        (refused.iter().rev().take(1000).filter(|it| **it).count(), breather.wait)
    }

    #[track_caller]
    fn check(markers: Duration, refused_of_thousand: usize) {
        let (refused, wait) = run(markers);
        assert!(refused <= refused_of_thousand, "{refused} of 1000 were refused, wait {wait:?}");
        assert!(wait <= (markers + UP).min(LONGEST), "{wait:?} for {markers:?}");
    }

    #[test]
    fn the_wait_is_what_the_markers_take() {
        check(Duration::ZERO, 0);
        check(MS, 48);
        check(3 * MS, 48);
        check(8 * MS, 48);
    }

    #[test]
    fn a_coordinator_that_needs_longer_is_not_waited_for_in_vain() {
        let (_, wait) = run(50 * MS);
        assert_eq!(wait, LONGEST);
    }

    #[test]
    fn long_transactions_teach_nothing() {
        let start = clock();
        let mut breather = Breather::new();
        let given = start + 100 * MS;
        breather.committed(start, given, given + MS, given + 2 * MS);
        assert_eq!(breather.wait, FIRST);
        assert_eq!(breather.due(), Some(given + 2 * MS + FIRST));
    }

    #[test]
    fn the_first_transaction_does_not_wait() {
        assert_eq!(Breather::new().due(), None);
    }
}

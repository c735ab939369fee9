//! How a socket is waited for: for the next byte, or for a while.
//!
//! The server sends every row of a replication stream on its own. Whoever wakes up for each of them
//! pays for it several times over, and slows the sender down, for it is the sender who wakes
//! him. So while much arrives, the reader looks at the socket every now and then instead. Knows no
//! socket and reads no clock. **Invariant:** at a pace of a few thousand arrivals a second every
//! byte is waited for, so that nothing is later for this.
//!
//! ```text
//! Watching ── many arrivals in a window ──▶ Gathering ── little in a while ──▶ Watching
//! ```

use std::time::Duration;

use tokio::time::Instant;

/// Over such a time arrivals are counted.
const WINDOW: Duration = Duration::from_millis(4);
/// So many in a window are too many to be woken up for: 16,000 a second.
const MANY: u32 = 64;
/// How long the socket is left alone then. The timer adds up to a millisecond.
pub(super) const WHILE: Duration = Duration::from_millis(1);
/// Less than this in a while is no rush any more.
const LITTLE: usize = 1024;

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// The next byte. Entered at the start, and when a while brought little; left when many
    /// arrivals were counted.
    Watching,
    /// The end of a while.
    Gathering,
}

/// Decides on the pace by what arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacer {
    pace: Pace,
    window_began: Instant,
    arrivals: u32,
}

impl Pacer {
    /// Begins to watch.
    pub(super) const fn new(now: Instant) -> Self {
        Self { pace: Pace::Watching, window_began: now, arrivals: 0 }
    }

    /// Takes in that the wait brought so many bytes.
    pub(super) fn received(&mut self, bytes: usize, now: Instant) -> Pace {
        match self.pace {
            Pace::Watching => {
                self.arrivals = self.arrivals.saturating_add(1);
                if now.duration_since(self.window_began) >= WINDOW {
                    self.begin_window(now);
                } else if self.arrivals >= MANY {
                    self.pace = Pace::Gathering;
                }
            }
            Pace::Gathering if bytes < LITTLE => {
                self.pace = Pace::Watching;
                self.begin_window(now);
            }
            Pace::Gathering => {}
        }
        self.pace
    }

    fn begin_window(&mut self, now: Instant) {
        self.window_began = now;
        self.arrivals = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arrivals of `bytes` each, evenly spaced; the pace after each of them.
    fn arrive(pacer: &mut Pacer, from: Instant, spacing: Duration, bytes: usize) -> Vec<Pace> {
        (0..1000).map(|n| pacer.received(bytes, from + spacing * n)).collect()
    }

    #[track_caller]
    fn check(arrivals_a_second: u32, expect: Pace) {
        let start = Instant::now();
        let mut pacer = Pacer::new(start);
        let spacing = Duration::from_secs(1) / arrivals_a_second;
        let paces = arrive(&mut pacer, start, spacing, 100);
        assert_eq!(paces.contains(&Pace::Gathering), expect == Pace::Gathering, "{paces:?}");
    }

    #[test]
    fn only_many_arrivals_are_gathered() {
        check(1, Pace::Watching);
        check(2_000, Pace::Watching);
        check(12_000, Pace::Watching);
        check(20_000, Pace::Gathering);
        check(150_000, Pace::Gathering);
    }

    #[test]
    fn a_while_that_brings_little_ends_the_gathering() {
        let start = Instant::now();
        let mut pacer = Pacer::new(start);
        let paces = arrive(&mut pacer, start, Duration::from_micros(7), LITTLE);
        assert_eq!(paces.last(), Some(&Pace::Gathering));
        let later = start + Duration::from_secs(1);
        let gathered = [LITTLE, 100_000, LITTLE].map(|bytes| pacer.received(bytes, later));
        assert_eq!(gathered, [Pace::Gathering; 3]);
        assert_eq!(pacer.received(LITTLE - 1, later), Pace::Watching);
        assert_eq!(pacer.received(1_000_000, later), Pace::Watching, "one arrival is not many");
    }

    #[test]
    fn a_burst_after_a_long_silence_is_counted_from_its_beginning() {
        let start = Instant::now();
        let mut pacer = Pacer::new(start);
        let later = start + Duration::from_secs(60);
        let paces = arrive(&mut pacer, later, Duration::from_micros(7), 80);
        let first = paces.iter().position(|pace| *pace == Pace::Gathering);
        assert_eq!(first, Some(MANY as usize));
    }
}

//! Counters, gauges and histograms that are written by one side and read by another.
//!
//! Know neither names nor labels. **Invariant:** writing is one or two relaxed operations on memory
//! that is there already.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::metric::Buckets;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Adds to a counter that nobody else adds to at the same time: a load and a store, without the
    /// bus lock of [`Counter::add`]. For what is counted per row.
    pub fn add_as_only_writer(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// Sets it.
    pub fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Sets it to a length.
    pub fn set_len(&self, value: usize) {
        self.set(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// The number.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Observations counted in buckets.
#[derive(Debug)]
pub struct Histogram {
    buckets: &'static Buckets,
    /// One for each bound, and one for what is above all.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    /// An empty one.
    pub fn new(buckets: &'static Buckets) -> Self {
        let counts = (0..=buckets.bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { buckets, counts, sum: AtomicU64::new(0) }
    }

    /// Counts an observation, in the counted unit.
    pub fn observe(&self, value: u64) {
        let index = self.buckets.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get(index) {
            count.fetch_add(1, Ordering::Relaxed);
            self.sum.fetch_add(value, Ordering::Relaxed);
        }
    }

    /// Number of observations.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Their sum, in the shown unit.
    pub(super) fn sum(&self) -> f64 {
        self.sum.load(Ordering::Relaxed) as f64 / f64::from(self.buckets.per_unit)
    }

    /// The bounds in the shown unit, each with the observations up to it; the last has no bound.
    pub(super) fn cumulative(&self) -> impl Iterator<Item = (Option<f64>, u64)> {
        let per_unit = f64::from(self.buckets.per_unit);
        let bounds = self.buckets.bounds.iter().map(move |bound| Some(*bound as f64 / per_unit));
        bounds.chain([None]).zip(&self.counts).scan(0, |sum, (bound, count)| {
            *sum += count.load(Ordering::Relaxed);
            Some((bound, *sum))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static BUCKETS: Buckets = Buckets { bounds: &[10, 1000], per_unit: 1000 };

    #[test]
    fn a_bound_belongs_to_its_bucket_and_buckets_add_up() {
        let histogram = Histogram::new(&BUCKETS);
        for value in [0, 10, 11, 1000, 1001] {
            histogram.observe(value);
        }
        let all: Vec<_> = histogram.cumulative().collect();
        assert_eq!(all, [(Some(0.01), 2), (Some(1.0), 4), (None, 5)]);
        assert_eq!(histogram.count(), 5);
        assert!((histogram.sum() - 2.022).abs() < 1e-9);
    }

    #[test]
    fn counters_add_up_either_way() {
        let counter = Counter::default();
        counter.add(2);
        counter.add_as_only_writer(3);
        assert_eq!(counter.get(), 5);
    }
}

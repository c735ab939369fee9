//! How much the Kafka client is given at once.
//!
//! An idempotent librdkafka has one request of a partition on its way at a time: it holds the
//! *messages* on their way against its limit of five requests, and makes one request at each look
//! (`rd_kafka_toppar_producer_serve`; `queue.buffering.backpressure.threshold` is forced to 1). As
//! long as others wait behind that request its thread spins. So it is given what fits into one
//! request, and the next when that is acknowledged. Pure: knows no client. **Invariants:** what is
//! given between two pauses fits into one batch of every topic, or is a single record; nothing is
//! ever split.

/// What a record takes in a request besides its bytes, and more: lengths, offset, time.
const RECORD_OVERHEAD: usize = 40;
/// What a batch takes besides its records, and more (61 bytes, Kafka protocol guide).
const BATCH_OVERHEAD: usize = 128;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bite {
    given: usize,
    most: usize,
}

impl Bite {
    /// At most the client's own batches (`batch.size`).
    pub(super) const fn new(batch_size: usize) -> Self {
        Self { given: 0, most: batch_size.saturating_sub(BATCH_OVERHEAD) }
    }

    /// A topic takes batches of this size only (`max.message.bytes`): the broker refuses larger
    /// ones as a whole, and the client does not split them.
    pub(super) fn limit(&mut self, max_message_bytes: usize) {
        self.most = self.most.min(max_message_bytes.saturating_sub(BATCH_OVERHEAD));
    }

    /// Whether the client must be empty before a record of this size is given.
    pub(super) const fn is_full_before(&self, record: usize) -> bool {
        self.given > 0 && self.given + record + RECORD_OVERHEAD > self.most
    }

    /// A record is given.
    pub(super) const fn add(&mut self, record: usize) {
        self.given += record + RECORD_OVERHEAD;
    }

    /// The client is empty.
    pub(super) const fn begin(&mut self) {
        self.given = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sums between two pauses; the broker's measure is smaller than this one.
    fn bites(most: usize, records: &[usize]) -> Vec<Vec<usize>> {
        let mut bite = Bite::new(most);
        let mut bites = vec![Vec::new()];
        for record in records {
            if bite.is_full_before(*record) {
                bite.begin();
                bites.push(Vec::new());
            }
            bite.add(*record);
            bites.last_mut().unwrap().push(*record);
        }
        bites
    }

    #[test]
    fn a_record_that_fills_a_batch_alone_does_not_wait_and_lets_none_in() {
        assert_eq!(bites(1000, &[5000, 10, 10]), [vec![5000], vec![10, 10]]);
        assert_eq!(bites(1000, &[10, 5000, 10]), [vec![10], vec![5000], vec![10]]);
        assert_eq!(bites(0, &[1, 1]), [vec![1], vec![1]]);
    }

    #[test]
    fn the_smallest_limit_holds() {
        let mut bite = Bite::new(1_000_000);
        bite.limit(2_000_000);
        assert_eq!(bite.most, 1_000_000 - BATCH_OVERHEAD);
        bite.limit(500);
        bite.limit(70_000);
        assert_eq!(bite.most, 500 - BATCH_OVERHEAD);
    }

    proptest! {
        #[test]
        fn what_is_given_at_once_fits_into_a_batch_or_is_one_record(
            most in 0_usize..5000,
            records in prop::collection::vec(0_usize..3000, 0..50),
        ) {
            let bites = bites(most, &records);
            prop_assert_eq!(bites.concat(), records);
            for bite in bites {
                let size: usize = bite.iter().map(|record| record + RECORD_OVERHEAD).sum();
                prop_assert!(bite.len() <= 1 || size + BATCH_OVERHEAD <= most);
            }
        }
    }
}

//! What to say of a transaction that stays open in an internal topic.
//!
//! Asked when [`super::offsets`] cannot read a partition to its end. A transaction under way is
//! waited for; one that Kafka itself will never end (its producer and the coordinator are through
//! with it, but its end marker is missing) needs a person, who is told so. Knows no source.
//! **Invariant:** a transaction is called hanging only once it is older than any can be.

use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{Message as _, Timestamp};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::client::{self, Events, clock, wall_clock_micros};
use super::settings::KafkaSettings;
use crate::error::{Code, Fault};

/// The brokers' `transaction.max.timeout.ms` unless it was raised: no producer may ask for more.
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// The coordinator looks for transactions that are too old every ten seconds
/// (`transaction.abort.timed.out.transaction.cleanup.interval.ms`), then the markers are written.
const ENDING: Duration = Duration::from_secs(60);
/// How long the transaction's first record is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The oldest transaction that is open in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    /// The offset of its first record.
    start: i64,
    /// How long ago that was written, by this machine's clock.
    age: Duration,
    /// Whether the connector itself wrote it.
    is_own: bool,
}

/// A fault for a partition whose end cannot be read, as a transaction is open in it from `start`,
/// its last stable offset, on. All keys of the connector begin with `own_keys`.
pub(super) fn open_transaction(
    settings: &KafkaSettings,
    (topic, number): (&str, i32),
    start: i64,
    own_keys: &str,
) -> Fault {
    let open = look_at(settings, (topic, number), start, own_keys);
    let place = Place { topic, number, servers: settings.consumer.bootstrap_servers() };
    place.fault(open, settings.transaction_timeout())
}

/// The record that the transaction begins with; `None` if it cannot be read.
fn look_at(
    settings: &KafkaSettings,
    (topic, number): (&str, i32),
    start: i64,
    own_keys: &str,
) -> Option<Open> {
    let mut config = client::consumer_config(settings);
    config.set("isolation.level", "read_uncommitted");
    let consumer: BaseConsumer<Events> = client::make(&config, "consumer").ok()?;
    let mut assignment = TopicPartitionList::new();
    assignment.add_partition_offset(topic, number, Offset::Offset(start)).ok()?;
    consumer.assign(&assignment).ok()?;
    let deadline = clock() + PATIENCE;
    while clock() < deadline {
        let Some(Ok(record)) = consumer.poll(Duration::from_millis(100)) else { continue };
        let (Timestamp::CreateTime(millis) | Timestamp::LogAppendTime(millis)) = record.timestamp()
        else {
            return None;
        };
        let age = (wall_clock_micros() / 1000).saturating_sub(millis);
        return Some(Open {
            start: record.offset(),
            age: Duration::from_millis(u64::try_from(age).unwrap_or(0)),
            is_own: record.key().is_some_and(|key| key.starts_with(own_keys.as_bytes())),
        });
    }
    None
}

/// Where it is open.
struct Place<'a> {
    topic: &'a str,
    number: i32,
    servers: &'a str,
}

impl Place<'_> {
    fn fault(&self, open: Option<Open>, own_timeout: Duration) -> Fault {
        let Self { topic, number, .. } = self;
        let whose = match open {
            Some(Open { is_own: true, .. }) => "an earlier task's transaction",
            _ => "another connector's transaction",
        };
        let limit = match open {
            Some(Open { is_own: true, .. }) => own_timeout,
            _ => LONGEST,
        };
        let unreadable = format!("'{topic}' partition {number} cannot be read to its end: {whose}");
        match open {
            Some(open) if open.age > limit + ENDING => Code::OffsetUnreadable
                .fault(format!(
                    "{unreadable} hangs in it. It is open from offset {} on, for {} s, and Kafka \
                     ends one after {} s",
                    open.start,
                    open.age.as_secs(),
                    limit.as_secs()
                ))
                .hint(self.remedy(open.start)),
            _ => Code::OffsetUnreadable
                .fault(format!("{unreadable} is open in it"))
                .hint("It is ended after its transaction.timeout.ms at the latest."),
        }
    }

    /// What shows it, what ends it, and what becomes of its records.
    fn remedy(&self, start: i64) -> String {
        let Self { topic, number, servers } = self;
        format!(
            "Its end marker was lost in Kafka, and Kafka does not write it any more. `kafka-transactions.sh \
             --bootstrap-server {servers} describe-producers --topic {topic} --partition {number}` \
             shows it, `kafka-transactions.sh --bootstrap-server {servers} abort --topic {topic} \
             --partition {number} --start-offset {start}` ends it. What it published is then \
             published again: in topics that have its end marker, these records are there twice. \
             See docs/kafka.md before."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN_TIMEOUT: Duration = Duration::from_secs(60);

    #[track_caller]
    fn check(open: Option<(u64, bool)>, expect: &[&str]) {
        let open =
            open.map(|(age, is_own)| Open { start: 84, age: Duration::from_secs(age), is_own });
        let place = Place { topic: "offsets", number: 9, servers: "b:9092" };
        let fault = place.fault(open, OWN_TIMEOUT);
        assert_eq!(fault.code(), Code::OffsetUnreadable);
        let text = fault.to_string();
        for part in expect {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        assert_eq!(text.contains("hangs"), text.contains("abort"), "{text}");
    }

    #[test]
    fn a_transaction_that_may_still_be_ended_is_waited_for() {
        let waits = ["is open in it", "transaction.timeout.ms"];
        check(None, &waits);
        check(Some((30, false)), &waits);
        check(Some((16 * 60, false)), &waits);
        check(Some((30, true)), &["an earlier task's", waits[0], waits[1]]);
        check(Some((120, true)), &waits);
    }

    #[test]
    fn a_transaction_older_than_any_can_be_hangs_and_the_fault_says_what_ends_it() {
        let abort = "kafka-transactions.sh --bootstrap-server b:9092 abort --topic offsets \
                     --partition 9 --start-offset 84";
        check(Some((121, true)), &["an earlier task's transaction hangs", "121 s", "60 s", abort]);
        check(Some((961, false)), &["another connector's transaction hangs", "900 s", abort]);
        check(Some((961, false)), &["describe-producers", "twice", "docs/kafka.md"]);
    }
}

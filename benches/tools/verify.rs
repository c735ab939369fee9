//! Reads topics to their end and holds them against the rows that were written.
//!
//! Rows are numbered without gaps. Knows nothing of who wrote the topics, except that a header
//! with a position is held against its order if there is one.
//! **Invariant:** a row that is missing, there twice or out of order is counted as such.

use std::time::Duration;

use rdkafka::Message;
use rdkafka::message::Headers;
use serde_json::{Value, json};

use crate::Failure;
use crate::reading::{Next, Reader, number_in_key};

/// How long a partition may say nothing before its end.
const SILENCE: Duration = Duration::from_secs(20);

/// Options of `verify`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[arg(long)]
    bootstrap: String,
    #[arg(long = "topic", required = true)]
    topics: Vec<String>,
    /// The number of the first row.
    #[arg(long, default_value_t = 1)]
    first: i64,
    /// How many rows there are.
    #[arg(long)]
    rows: usize,
    /// Each row's record is followed by a tombstone.
    #[arg(long)]
    tombstones: bool,
    /// The rows were written in another order than that of their numbers.
    #[arg(long)]
    unordered: bool,
}

/// What has been seen so far.
#[derive(Debug, Default)]
struct Seen {
    records: u64,
    tombstones: u64,
    duplicates: u64,
    strangers: u64,
    out_of_order: u64,
    without_position: u64,
    key_bytes: u64,
    value_bytes: u64,
    header_bytes: u64,
    last: Option<i64>,
    position: Option<(u64, u64, u64)>,
}

pub(crate) fn run(options: &Options) -> Result<Value, Failure> {
    let reader = Reader::open(&options.bootstrap, &options.topics)?;
    let mut found = vec![0_u8; options.rows];
    let mut seen = Seen::default();
    let mut ended = 0;
    while ended < reader.partitions {
        match reader.next(SILENCE)? {
            Next::Record(message) => seen.take(&message, options, &mut found),
            Next::End => ended += 1,
            Next::Nothing => return Err("the end of the topics was not reached".into()),
        }
    }
    let missing = found.iter().filter(|count| **count == 0).count();
    let tombstones_missing =
        if options.tombstones { (options.rows as u64).abs_diff(seen.tombstones) } else { 0 };
    let is_right = missing == 0
        && tombstones_missing == 0
        && seen.duplicates == 0
        && seen.strangers == 0
        && seen.out_of_order == 0;
    Ok(json!({
        "right": is_right, "records": seen.records, "tombstones": seen.tombstones,
        "missing": missing, "duplicates": seen.duplicates, "strangers": seen.strangers,
        "out_of_order": seen.out_of_order, "without_position": seen.without_position,
        "key_bytes": seen.key_bytes, "value_bytes": seen.value_bytes,
        "header_bytes": seen.header_bytes,
    }))
}

impl Seen {
    fn take(&mut self, message: &impl Message, options: &Options, found: &mut [u8]) {
        self.key_bytes += message.key().map_or(0, <[u8]>::len) as u64;
        self.value_bytes += message.payload().map_or(0, <[u8]>::len) as u64;
        let position = self.headers(message);
        let number = number_in_key(message.key());
        if message.payload().is_none() {
            self.tombstones += 1;
            // a tombstone follows the record of its own row
            self.out_of_order += u64::from(number != self.last);
            return;
        }
        self.records += 1;
        let count = number
            .and_then(|number| usize::try_from(number.checked_sub(options.first)?).ok())
            .and_then(|index| found.get_mut(index));
        match count {
            Some(count) => {
                self.duplicates += u64::from(*count > 0);
                *count = count.saturating_add(1);
            }
            None => self.strangers += 1,
        }
        if options.topics.len() == 1 {
            self.order(number, position, options.unordered);
        }
        self.last = number;
    }

    fn order(&mut self, number: Option<i64>, position: Option<(u64, u64, u64)>, unordered: bool) {
        let by_number = !unordered && number <= self.last;
        let by_position = position.is_some() && position <= self.position;
        self.out_of_order += u64::from(by_number || by_position);
        self.without_position += u64::from(position.is_none());
        self.position = position.or(self.position);
    }

    /// Counts the headers' bytes and reads the position, if they hold one.
    fn headers(&mut self, message: &impl Message) -> Option<(u64, u64, u64)> {
        let headers = message.headers()?;
        let (mut commit, mut sequence, mut part) = (None, None, None);
        for header in headers.iter() {
            let value = header.value.unwrap_or_default();
            self.header_bytes += (header.key.len() + value.len()) as u64;
            match header.key {
                "__tidegate.commit_lsn" => commit = place(value),
                "__tidegate.tx_seq" => sequence = place(value),
                "__tidegate.part" => part = place(value),
                _ => {}
            }
        }
        Some((commit?, sequence?, part?))
    }
}

/// A number, or a position as `X/Y`, possibly in quotes.
fn place(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim_matches('"');
    match text.split_once('/') {
        None => text.parse().ok(),
        Some((high, low)) => Some(
            u64::from(u32::from_str_radix(high, 16).ok()?) << 32
                | u64::from(u32::from_str_radix(low, 16).ok()?),
        ),
    }
}

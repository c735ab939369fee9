//! The floor of a producer: records that are there already, sent again by the Kafka client alone.
//!
//! Knows nothing of where the records came from.
//! **Invariant:** what is measured begins when the records to send are in memory, and ends when the
//! broker has acknowledged all of them.

use std::fs;
use std::time::{Duration, Instant};

use rdkafka::Message;
use rdkafka::config::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, OwnedMessage};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::{Value, json};

use crate::Failure;
use crate::reading::{Next, Reader};

/// Options of `produce`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[arg(long)]
    bootstrap: String,
    /// The topic to take records from.
    #[arg(long)]
    from: String,
    /// The topic to send them to.
    #[arg(long)]
    to: String,
    /// How many different records to take.
    #[arg(long, default_value_t = 20_000)]
    sample: usize,
    /// How many records to send.
    #[arg(long)]
    rows: usize,
    /// Settings of the producer, `name=value`.
    #[arg(short = 'X')]
    settings: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<Value, Failure> {
    let sample = sample(options)?;
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &options.bootstrap);
    for setting in &options.settings {
        let (name, value) = setting.split_once('=').ok_or("a setting is name=value")?;
        config.set(name, value);
    }
    let producer: BaseProducer = config.create()?;
    // the connection is there before the clock starts
    producer.client().fetch_metadata(Some(&options.to), Duration::from_secs(20))?;
    let cpu = cpu_seconds()?;
    #[expect(clippy::disallowed_methods, reason = "this program measures time")]
    let began = Instant::now();
    for message in sample.iter().cycle().take(options.rows) {
        send(&producer, &options.to, message)?;
    }
    producer.flush(Duration::from_secs(120))?;
    let wall = began.elapsed().as_secs_f64();
    Ok(json!({
        "rows": options.rows, "sample": sample.len(), "wall_s": wall,
        "cpu_s": cpu_seconds()? - cpu,
    }))
}

fn sample(options: &Options) -> Result<Vec<OwnedMessage>, Failure> {
    let reader = Reader::open(&options.bootstrap, std::slice::from_ref(&options.from))?;
    let mut found = Vec::with_capacity(options.sample);
    while found.len() < options.sample {
        match reader.next(Duration::from_secs(20))? {
            Next::Record(message) => found.push(BorrowedMessage::detach(&message)),
            Next::End | Next::Nothing => break,
        }
    }
    if found.is_empty() { Err("there is nothing to send".into()) } else { Ok(found) }
}

fn send(producer: &BaseProducer, topic: &str, message: &OwnedMessage) -> Result<(), KafkaError> {
    let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic);
    record.key = message.key();
    record.payload = message.payload();
    record.headers = message.headers().cloned();
    while let Err((error, refused)) = producer.send(record) {
        if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
            return Err(error);
        }
        producer.poll(Duration::from_millis(5));
        record = refused;
    }
    Ok(())
}

/// User and system time of this process, from the kernel's ticks of a hundredth of a second.
fn cpu_seconds() -> Result<f64, Failure> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(") ").ok_or("/proc/self/stat reads otherwise")?;
    let ticks: u32 = fields.split(' ').skip(11).take(2).filter_map(|n| n.parse::<u32>().ok()).sum();
    Ok(f64::from(ticks) / 100.0)
}

//! Reads a topic as it grows and notes when each row became visible.
//!
//! Knows nothing of when a row was written; that is joined to it later.
//! **Invariant:** a row's time is taken when the client hands it over, before anything else is done.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rdkafka::Message;
use serde_json::{Value, json};

use crate::Failure;
use crate::reading::{Next, Reader, number_in_key};

/// Options of `watch`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[arg(long)]
    bootstrap: String,
    #[arg(long)]
    topic: String,
    /// How many records to wait for.
    #[arg(long)]
    rows: u64,
    /// How long, altogether.
    #[arg(long)]
    seconds: u64,
    /// Where the lines `number append_ms visible_us` go.
    #[arg(long)]
    out: PathBuf,
}

#[expect(clippy::disallowed_methods, reason = "this program measures time")]
pub(crate) fn run(options: &Options) -> Result<Value, Failure> {
    let reader = Reader::open(&options.bootstrap, std::slice::from_ref(&options.topic))?;
    let deadline = Instant::now() + Duration::from_secs(options.seconds);
    let mut out = BufWriter::new(File::create(&options.out)?);
    let mut records = 0_u64;
    while records < options.rows && Instant::now() < deadline {
        if let Next::Record(message) = reader.next(Duration::from_millis(100))? {
            let visible = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros();
            let number = number_in_key(message.key()).unwrap_or(-1);
            let appended = message.timestamp().to_millis().unwrap_or(-1);
            writeln!(out, "{number} {appended} {visible}")?;
            records += 1;
        }
    }
    out.flush()?;
    Ok(json!({ "records": records }))
}

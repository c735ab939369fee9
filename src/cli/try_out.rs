//! `tidegate try`: the captured tables' changes as the records they would be, without Kafka.
//!
//! Prints only; what is read and how is the worker's matter. **Invariant:** every record is on
//! standard output, everything else on standard error.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, watch};

use super::files::{Addresses, assumed_worker, read_connector, read_worker};
use super::output::{self, Paint};
use super::signals::Signals;
use crate::error::{Code, Fault};
use crate::sources::Trial;
use crate::worker::{Look, TriedRecord, Worker};

/// Arguments of `tidegate try`.
#[derive(Debug, Args)]
pub(super) struct Try {
    /// The connector: properties, a flat JSON map, or the body of a create request.
    connector: PathBuf,
    /// The properties file of the worker that is to run it.
    #[arg(short, long, value_name = "FILE")]
    worker: Option<PathBuf>,
    /// Print the first rows of each table, too, ten if no number is given.
    #[arg(long, value_name = "ROWS", num_args = 0..=1, default_missing_value = "10")]
    snapshot: Option<u64>,
    /// Print the definitions of tables as they are and become, too.
    #[arg(long)]
    schema_changes: bool,
    /// End after so many records.
    #[arg(short = 'n', long)]
    limit: Option<u64>,
    /// Print each record over several lines.
    #[arg(short, long)]
    pretty: bool,
}

impl Try {
    /// Runs until told to stop.
    pub(super) async fn run(self) -> Result<(), Fault> {
        output::log_warnings();
        let mut signals = Signals::listen()?;
        let worker = match &self.worker {
            Some(file) => read_worker(file)?,
            None => assumed_worker(&Addresses::default())?,
        };
        let (_, config) = read_connector(&self.connector)?;
        let (stop, _) = watch::channel(false);
        let streaming = Arc::new(Notify::new());
        let trial = Trial { rows: self.snapshot, streaming: Arc::clone(&streaming) };
        let look = Look { trial, schema_changes: self.schema_changes, stop: stop.clone() };
        let paint = Paint(output::wants_colour());
        let (limit, pretty) = (self.limit, self.pretty);
        let mut printed = 0;
        let reader = move |record: &TriedRecord<'_>| {
            let text = if pretty { readable(record, paint) } else { json_line(record).to_string() };
            printed += 1;
            output::line(&text) && limit.is_none_or(|limit| printed < limit)
        };
        let worker = Worker::new(Arc::new(worker));
        let looking = worker.try_out(&config, look, reader);
        tokio::pin!(looking);
        loop {
            tokio::select! {
                outcome = &mut looking => return outcome,
                () = signals.next() => {
                    if stop.send_replace(true) {
                        return Err(Code::SourceUnreachable.fault("ended before all was put away").hint(
                            "The next `tidegate try` drops what this one made.",
                        ));
                    }
                }
                () = streaming.notified() => {
                    output::error("waiting for changes; Ctrl-C ends");
                }
            }
        }
    }
}

/// Text as JSON, whatever it is.
fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|_not_json| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}

fn json_line(record: &TriedRecord<'_>) -> Value {
    let headers: Map<String, Value> = record
        .headers
        .iter()
        .map(|(name, value)| {
            let text =
                value.map(|value| Value::String(String::from_utf8_lossy(value).into_owned()));
            (String::from_utf8_lossy(name).into_owned(), text.unwrap_or(Value::Null))
        })
        .collect();
    json!({
        "topic": record.topic,
        "key": record.key.map(parsed),
        "value": record.value.map(parsed),
        "headers": headers,
    })
}

fn readable(record: &TriedRecord<'_>, paint: Paint) -> String {
    let key = record.key.map_or_else(|| "no key".to_owned(), |key| parsed(key).to_string());
    let mut text = format!("{} {key}", paint.bold(record.topic));
    for (name, value) in &record.headers {
        let value = String::from_utf8_lossy(value.unwrap_or(b"null"));
        text.push_str(&paint.dim(&format!("\n  {}: {value}", String::from_utf8_lossy(name))));
    }
    text.push('\n');
    match record.value {
        None => text.push_str("  tombstone"),
        Some(value) => text.push_str(&format!("{:#}", parsed(value))),
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn record(value: Option<&'static [u8]>) -> TriedRecord<'static> {
        TriedRecord {
            topic: "shop.public.t",
            key: Some(b"{\"id\":1}"),
            value,
            headers: vec![(b"__tidegate.epoch", Some(b"1")), (b"empty", None)],
        }
    }

    #[test]
    fn a_line_has_topic_key_value_and_headers() {
        expect![[r#"{"topic":"shop.public.t","key":{"id":1},"value":{"op":"c"},"headers":{"__tidegate.epoch":"1","empty":null}}"#]]
            .assert_eq(&json_line(&record(Some(b"{\"op\":\"c\"}"))).to_string());
        assert_eq!(json_line(&record(None))["value"], Value::Null);
    }

    #[test]
    fn pretty_records_take_several_lines() {
        expect![[r#"
            shop.public.t {"id":1}
              __tidegate.epoch: 1
              empty: null
            {
              "op": "c"
            }"#]]
        .assert_eq(&readable(&record(Some(b"{\"op\":\"c\"}")), Paint(false)));
        assert!(readable(&record(None), Paint(false)).ends_with("\n  tombstone"));
    }
}

//! `tidegate tail`: topics as a `read_committed` consumer sees them, decoded.
//!
//! Reads only: no group is joined and nothing is committed. Topics that appear while it follows are
//! picked up. Arguments and the loop are here; what is read, how it is decoded, chosen and shown is
//! each in a file of its own.

mod choice;
mod control;
mod schema_change;
mod decode;
mod json_schema;
mod parts;
mod print;
mod raw;
mod reader;
mod row;

use std::io::IsTerminal;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rdkafka::message::OwnedMessage;
use tokio::time::Instant;

use self::choice::{Begin, Choice, KeyPattern};
use self::json_schema::without_schema;
use self::parts::Decoder;
use self::print::{json_line, readable};
use self::reader::{Event, Reader};
use super::output::{self, Paint};
use super::signals::Signals;
use crate::error::{Code, Fault};

/// How often new topics are looked for.
const LOOK_FOR_TOPICS: Duration = Duration::from_secs(1);

/// Arguments of `tidegate tail`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct Tail {
    /// Topics; a name that ends with `*` stands for all that begin so.
    #[arg(required_unless_present = "table")]
    topics: Vec<String>,
    /// Kafka's addresses.
    #[arg(short, long, default_value = "localhost:9092")]
    bootstrap_servers: String,
    /// The schema registry, for Avro.
    #[arg(short, long)]
    registry_url: Option<String>,
    /// A further property of the Kafka client (librdkafka's names), as `name=value`.
    #[arg(short = 'X', long = "property", value_name = "NAME=VALUE")]
    properties: Vec<String>,
    /// Where to begin in each partition: `beginning`, `end`, an offset, or `-N` for the last N.
    #[arg(long, value_name = "PLACE", default_value = "end", allow_hyphen_values = true)]
    from: Begin,
    /// The same as `--from beginning`.
    #[arg(long, conflicts_with = "from")]
    from_beginning: bool,
    /// Only the topic of this table, as `schema.table`, whatever its prefix.
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,
    /// Only records of this key: its value, or as JSON the fields that count.
    #[arg(short, long, value_name = "KEY")]
    key: Option<KeyPattern>,
    /// Bytes in hex and headers, nothing decoded.
    #[arg(long, conflicts_with = "key")]
    raw: bool,
    /// Go on when the end is reached (the default).
    #[arg(short, long, overrides_with = "no_follow")]
    follow: bool,
    /// End where the topics end now.
    #[arg(long)]
    no_follow: bool,
    /// End after so many records.
    #[arg(short = 'n', long)]
    max_records: Option<u64>,
    /// End when no record came for so many seconds.
    #[arg(long, value_name = "SECONDS")]
    idle_exit: Option<u64>,
    /// How records are printed.
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Readable on a terminal, JSON lines otherwise.
    Auto,
    /// A few lines for people.
    Readable,
    /// One JSON object a line.
    Json,
}

impl Tail {
    /// Runs until told to stop.
    pub(super) async fn run(self) -> Result<(), Fault> {
        let mut signals = Signals::listen()?;
        let begin = if self.from_beginning { Begin::Beginning } else { self.from };
        let choice = Choice::new(self.topics.clone(), self.table.clone());
        let mut reader = Reader::open(
            &self.bootstrap_servers,
            &self.properties,
            choice,
            (begin, self.follows()),
        )?;
        let mut printer = Printer::new(&self)?;
        let idle = self.idle_exit.map_or(Duration::MAX, Duration::from_secs);
        let mut last = Instant::now();
        let mut told_of_none = false;
        let mut look = tokio::time::interval(LOOK_FOR_TOPICS);
        loop {
            let idle_left = idle.saturating_sub(last.elapsed());
            tokio::select! {
                biased;
                () = signals.next() => return Ok(()),
                _ = look.tick() => {
                    let read = tokio::select! {
                        read = reader.look_for_topics() => read?,
                        () = signals.next() => return Ok(()),
                    };
                    if read == 0 && !told_of_none {
                        told_of_none = true;
                        let wanted = self.wanted();
                        if !self.follows() {
                            return Err(Code::TopicMissing.fault(format!("there is no {wanted}")));
                        }
                        output::error(&format!("there is no {wanted} yet; waiting for one"));
                    }
                    if reader.is_over() {
                        return Ok(());
                    }
                }
                event = reader.next() => match event? {
                    Event::Record(message) => {
                        last = Instant::now();
                        if !printer.print(&message).await || reader.is_over() {
                            return Ok(());
                        }
                    }
                    Event::End => return Ok(()),
                },
                () = tokio::time::sleep(idle_left.min(Duration::from_secs(3600))) => {
                    if last.elapsed() >= idle {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// What was asked for, as a message names it.
    fn wanted(&self) -> String {
        let topics = self.topics.join(", ");
        match &self.table {
            Some(table) => format!("topic of table {table}"),
            None => format!("topic {topics}"),
        }
    }

    const fn follows(&self) -> bool {
        self.follow || !self.no_follow
    }
}

/// Chooses and shows records.
struct Printer {
    decoder: Decoder,
    key: Option<KeyPattern>,
    raw: bool,
    json: bool,
    paint: Paint,
    left: Option<u64>,
}

impl Printer {
    fn new(arguments: &Tail) -> Result<Self, Fault> {
        Ok(Self {
            decoder: Decoder::new(arguments.registry_url.as_deref())?,
            key: arguments.key.clone(),
            raw: arguments.raw,
            json: match arguments.format {
                Format::Auto => !std::io::stdout().is_terminal(),
                Format::Readable => false,
                Format::Json => true,
            },
            paint: Paint(output::wants_colour()),
            left: arguments.max_records,
        })
    }

    /// Prints a record that is wanted. False: no more is wanted.
    async fn print(&mut self, message: &OwnedMessage) -> bool {
        let text = match (self.raw, self.json) {
            (true, true) => raw::json_line(message),
            (true, false) => raw::readable(message, self.paint),
            (false, json) => {
                let shown = self.decoder.decode(message).await;
                let key = without_schema(&shown.key);
                if self.key.as_ref().is_some_and(|pattern| !pattern.matches(&key)) {
                    return true;
                }
                if json { json_line(&shown) } else { readable(&shown, self.paint) }
            }
        };
        self.left = self.left.map(|left| left.saturating_sub(1));
        output::line(&text) && self.left != Some(0)
    }
}

//! What the benchmark needs a compiled program for: reading topics back and feeding a producer.
//!
//! `verify` reads a topic as a `read_committed` reader and says whether it holds each row exactly
//! once and in order; `watch` notes when each row became visible; `produce` sends the same bytes
//! again through nothing but the Kafka client. Every command prints one JSON object. Started by
//! `benches/run`; knows nothing of the worker.
//! **Invariant:** a row is counted only by the key that was read, never by an offset.

mod produce;
mod reading;
mod verify;
mod watch;

use std::io::Write;

use clap::Parser;

/// Reads topics back and feeds a producer, for the benchmark.
#[derive(Debug, Parser)]
enum Command {
    /// Whether topics hold each row exactly once and in order.
    Verify(verify::Options),
    /// When each row became visible.
    Watch(watch::Options),
    /// The same bytes again, through nothing but the Kafka client.
    Produce(produce::Options),
}

/// What ends a command.
type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    // `cargo bench` and `cargo test --all-targets` start every bench target, without a command
    if std::env::args().skip(1).all(|argument| argument == "--bench") {
        return Ok(());
    }
    let outcome = match Command::parse() {
        Command::Verify(options) => verify::run(&options)?,
        Command::Watch(options) => watch::run(&options)?,
        Command::Produce(options) => produce::run(&options)?,
    };
    writeln!(std::io::stdout(), "{outcome}")?;
    Ok(())
}

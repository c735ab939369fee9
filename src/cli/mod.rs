//! Arguments → command. Composition only: what a command does is in its own module.

mod output;

mod tail;
mod worker;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Change data capture from PostgreSQL to Kafka, driven through Kafka Connect's REST API.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, about, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a worker: connectors and the REST API.
    Worker(worker::WorkerCommand),
    /// Read topics as a consumer would, decoded through the schema registry.
    Tail(tail::Tail),
}

/// Runs the command. A failure is printed on standard error.
pub async fn run(arguments: Arguments) -> ExitCode {
    let outcome = match arguments.command {
        Command::Worker(worker) => Box::pin(worker.run()).await,
        Command::Tail(tail) => tail.run().await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            output::error(&fault.to_string());
            ExitCode::FAILURE
        }
    }
}

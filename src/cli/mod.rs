//! Arguments → command. Composition only: what a command does is in its own module.

mod address;
mod files;
mod output;

mod check;
mod ddl_capture;
mod signals;
mod tail;
mod try_out;
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
    /// Say everything that is wrong with a connector, and what mends it; change nothing.
    Check(check::Check),
    /// Event triggers that tell of changed definitions: install, compare, remove.
    DdlCapture(ddl_capture::DdlCapture),
    /// Show a connector's changes as the records they would be, without Kafka; keep nothing.
    Try(try_out::Try),
    /// Read topics as a consumer would, decoded through the schema registry.
    Tail(tail::Tail),
}

/// Runs the command. A failure is printed on standard error.
pub async fn run(arguments: Arguments) -> ExitCode {
    let outcome = match arguments.command {
        Command::Worker(worker) => Box::pin(worker.run()).await.map(|()| ExitCode::SUCCESS),
        Command::Check(check) => Box::pin(check.run()).await,
        Command::DdlCapture(command) => Box::pin(command.run()).await,
        Command::Try(look) => Box::pin(look.run()).await.map(|()| ExitCode::SUCCESS),
        Command::Tail(tail) => tail.run().await.map(|()| ExitCode::SUCCESS),
    };
    match outcome {
        Ok(code) => code,
        Err(fault) => {
            output::error(&fault.to_string());
            ExitCode::FAILURE
        }
    }
}

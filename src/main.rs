//! The binary: parses arguments and hands over to `cli`.

use std::process::ExitCode;

use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    tidegate::cli::run(tidegate::cli::Arguments::parse()).await
}

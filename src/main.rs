//! The binary: parses arguments and hands over to `cli`.

use std::process::ExitCode;

use clap::Parser;

fn main() -> std::io::Result<ExitCode> {
    let arguments = tidegate::cli::Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(tidegate::cli::run(arguments));
    // what a client library still waits for has no reader any more
    runtime.shutdown_background();
    Ok(code)
}

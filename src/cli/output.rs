//! Standard output and error of the commands, the only place that prints.

use std::io::{self, IsTerminal, Write};

/// Prints a line on standard output. False: nobody reads it any more.
pub(super) fn line(text: &str) -> bool {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).is_ok()
}

/// Prints a line on standard error; if even that is closed there is nobody to tell.
pub(super) fn error(text: &str) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Whether standard output is a terminal that wants colours.
pub(super) fn wants_colour() -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "the convention of no-color.org is an environment variable"
    )]
    let refused = std::env::var("NO_COLOR").is_ok_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !refused
}

/// Terminal colours, or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint(pub(super) bool);

impl Paint {
    /// Beside the matter.
    pub(super) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// A heading.
    pub(super) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// Good, or new.
    pub(super) fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    /// Bad, or old.
    pub(super) fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    /// By the terminal's own number of the colour.
    pub(super) fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Shows warnings of the layers below on standard error, for commands that are no worker.
pub(super) fn log_warnings() {
    let filter = tracing_subscriber::EnvFilter::new("warn,tidegate::kafka=error");
    let outcome = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .without_time()
        .with_target(false)
        .try_init();
    drop(outcome);
}

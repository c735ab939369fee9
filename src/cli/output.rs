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

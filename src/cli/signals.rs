//! The order to end: SIGTERM or SIGINT.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{Code, Fault};

/// Both signals. Neither ends the process by itself once this is there.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Begins to listen.
    ///
    /// # Errors
    /// Signals cannot be received.
    pub(super) fn listen() -> Result<Self, Fault> {
        let open = |kind| {
            signal(kind).map_err(|error| {
                Code::Internal.fault("signals cannot be received").caused_by(&error)
            })
        };
        Ok(Self {
            terminate: open(SignalKind::terminate())?,
            interrupt: open(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next one. Cancel-safe.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

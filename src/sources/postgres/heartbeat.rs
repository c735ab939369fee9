//! Signs of life: when one is due, and what is run on the server with it.
//!
//! The query runs on a connection and a task of its own, so that one that hangs delays nothing.
//! Knows no record. **Invariants:** without an interval nothing is ever due; a query that fails is
//! logged with its code and tried again, and never ends the stream.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior};
use tracing::Instrument as _;

use super::Settings;
use super::connection::{Connection, Purpose};
use crate::error::{Code, Fault};
use crate::sources::Heartbeats;

/// Says when a heartbeat is due.
#[derive(Debug)]
pub(super) struct Heart {
    ticks: Option<Interval>,
    action: Option<JoinHandle<()>>,
}

impl Heart {
    /// Begins to beat, if it is wanted; the first time after one interval.
    pub(super) fn start(settings: &Arc<Settings>, heartbeats: Option<Heartbeats>) -> Self {
        let Some(Heartbeats { interval, action }) = heartbeats else {
            return Self { ticks: None, action: None };
        };
        let action = action.map(|query| {
            let settings = Arc::clone(settings);
            let action = Action { settings, query, connection: None, failing: None };
            tokio::spawn(action.run(interval).in_current_span())
        });
        Self { ticks: Some(ticks(interval)), action }
    }

    /// Waits until a heartbeat is due. Cancel-safe.
    pub(super) async fn beat(&mut self) {
        match &mut self.ticks {
            Some(ticks) => {
                ticks.tick().await;
            }
            None => std::future::pending().await,
        }
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        if let Some(action) = &self.action {
            action.abort();
        }
    }
}

fn ticks(interval: Duration) -> Interval {
    let start = tokio::time::Instant::now() + interval;
    let mut ticks = tokio::time::interval_at(start, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// `heartbeat.action.query`.
struct Action {
    settings: Arc<Settings>,
    query: String,
    connection: Option<Connection>,
    /// Why it failed last, until it succeeds.
    failing: Option<Code>,
}

impl Action {
    async fn run(mut self, interval: Duration) {
        let mut ticks = ticks(interval);
        loop {
            ticks.tick().await;
            let outcome = self.act().await;
            self.report(outcome);
        }
    }

    async fn act(&mut self) -> Result<(), Fault> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.settings.connection, Purpose::Action).await?,
        };
        // After an error the connection is not used again: a statement may have left a transaction
        // open behind it.
        connection.query("running heartbeat.action.query", &self.query).await?;
        self.connection = Some(connection);
        Ok(())
    }

    /// Says it once for each cause, and when it is over.
    fn report(&mut self, outcome: Result<(), Fault>) {
        match (outcome, self.failing) {
            (Ok(()), None) => {}
            (Ok(()), Some(_)) => {
                tracing::info!("heartbeat.action.query succeeds again");
                self.failing = None;
            }
            (Err(fault), failing) if failing == Some(fault.code()) => {
                tracing::debug!(error = %fault, "heartbeat.action.query fails still");
            }
            (Err(fault), _) => {
                tracing::warn!(
                    error = %fault,
                    "heartbeat.action.query failed; it is tried again at the next heartbeat"
                );
                self.failing = Some(fault.code());
            }
        }
    }
}

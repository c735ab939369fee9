//! Orders to a running source: tables are to be read anew beside the stream.
//!
//! Neutral: which tables and conditions there are, the source says. **Invariant:** an order is
//! answered as done only when it outlives a crash; one that nobody waits for any more is not
//! carried out.

use std::sync::Arc;
use std::time::Duration;

use regex::Regex;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::error::{Code, Fault};

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(15);
/// How many orders may wait.
const DEPTH: usize = 16;

/// Tables that somebody wants to be read.
#[derive(Clone, Debug)]
pub struct SnapshotRequest {
    /// Patterns for `schema.table`, each of which must name a captured table.
    pub collections: Vec<Regex>,
    /// Only rows that fulfil a condition, of the tables that a pattern names.
    pub conditions: Vec<(Regex, String)>,
}

/// A table that is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotTable {
    /// Its schema.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Only rows of which this is true.
    pub condition: Option<String>,
    /// How many rows it has, about.
    pub estimate: Option<u64>,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum SnapshotAction {
    /// Reads these tables, behind those that are being read.
    Start(Vec<SnapshotTable>),
    /// Reads no more of the tables that one of the patterns names; `None`: of all.
    Stop(Option<Vec<Regex>>),
    /// Holds the reading.
    Pause,
    /// Goes on with it.
    Resume,
}

/// An order on its way.
#[derive(Debug)]
pub struct Order {
    /// What is to be done.
    pub action: SnapshotAction,
    /// Told when it is done, or why it is not.
    pub done: oneshot::Sender<Result<(), Fault>>,
}

/// Where a source finds its orders. One attempt at a time reads them.
pub type Orders = Arc<Mutex<mpsc::Receiver<Order>>>;

/// Where orders are given.
#[derive(Clone, Debug)]
pub struct OrderDesk(mpsc::Sender<Order>);

impl OrderDesk {
    /// A desk, and where its orders arrive.
    pub fn open() -> (Self, Orders) {
        let (sender, receiver) = mpsc::channel(DEPTH);
        (Self(sender), Arc::new(Mutex::new(receiver)))
    }

    /// Gives an order, and waits until it is done.
    ///
    /// # Errors
    /// It is not done; or it is not known (`SNAPSHOT-CONFLICT`): the stream is not running, or
    /// inside a transaction that does not end.
    pub async fn give(&self, action: SnapshotAction) -> Result<(), Fault> {
        let unanswered = || {
            Code::SnapshotConflict
                .fault(format!("the stream did not take the order within {} s", PATIENCE.as_secs()))
                .hint(
                    "Snapshots beside the stream need one that runs, and are begun between its \
                     transactions: see the connector's status, and look whether the order was \
                     carried out before it is given again.",
                )
        };
        let (done, answer) = oneshot::channel();
        let given = async {
            let order = Order { action, done };
            self.0.send(order).await.map_err(|_gone| unanswered())?;
            answer.await.map_err(|_gone| unanswered())?
        };
        tokio::time::timeout(PATIENCE, given).await.unwrap_or_else(|_elapsed| Err(unanswered()))
    }
}

//! Decides what runs where. Standalone: everything runs here.
//!
//! All that REST and the command line ask for is a method here; both are thin wrappers. Knows
//! nothing of sources: a [`Runtime`] checks and starts. **Invariant:** what was answered as done is
//! on disk before the answer is given.

mod standalone;
mod store;

use std::future::Future;
use std::pin::Pin;

use indexmap::IndexMap;

use crate::error::Fault;
use crate::worker::{Target, TaskHandle, TaskState};

pub use standalone::Standalone;
pub use store::{Kept, Store};

/// A connector's configuration as submitted: order, keys and texts are kept; `None` was a JSON null.
pub type Config = IndexMap<String, Option<String>>;

/// A future that a [`Runtime`] gives back.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Checks configurations and starts tasks: the worker, or a stand-in in tests.
pub trait Runtime: Send + Sync + std::fmt::Debug + 'static {
    /// All faults of a configuration, those included that only the live services can tell.
    fn validate<'a>(&'a self, config: &'a Config) -> BoxFuture<'a, Vec<Fault>>;

    /// Starts the connector's task.
    ///
    /// # Errors
    /// The configuration cannot be understood.
    fn start(&self, name: &str, config: &Config, target: Target) -> Result<TaskHandle, Fault>;
}

/// Why a request to the herder was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HerderError {
    /// No connector of that name.
    #[error("Connector {0} not found")]
    NotFound(String),
    /// No task of that number.
    #[error("Task {1} of connector {0} not found")]
    TaskNotFound(String, u32),
    /// A connector of that name exists.
    #[error("Connector {0} already exists")]
    Exists(String),
    /// The request contradicts itself or the rules.
    #[error("{0}")]
    BadRequest(String),
    /// The configuration has faults.
    #[error("{}", describe_faults(.0))]
    Invalid(Vec<Fault>),
    /// The state directory failed.
    #[error("{0}")]
    Store(Fault),
}

fn describe_faults(faults: &[Fault]) -> String {
    let mut text = format!(
        "Connector configuration is invalid and contains the following {} error(s):",
        faults.len()
    );
    for fault in faults {
        text.push('\n');
        text.push_str(&fault.to_string());
    }
    text.push_str(
        "\nYou can also find the above list of errors at the endpoint \
         `/connector-plugins/{connectorType}/config/validate`",
    );
    text
}

/// What is known of a connector.
#[derive(Clone, Debug)]
pub struct ConnectorInfo {
    /// Its name.
    pub name: String,
    /// Its configuration as submitted.
    pub config: Config,
    /// The numbers of its tasks.
    pub tasks: Vec<u32>,
}

/// What a connector does now.
#[derive(Clone, Debug)]
pub struct ConnectorStatus {
    /// Its name.
    pub name: String,
    /// The connector's own state: a word and, if failed, a trace.
    pub state: &'static str,
    /// Why the connector itself failed.
    pub trace: Option<String>,
    /// Its tasks' states.
    pub tasks: Vec<(u32, TaskState)>,
}

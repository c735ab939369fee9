//! Decides what runs where. Standalone: everything runs here.
//!
//! All that REST and the command line ask for is a method here; both are thin wrappers. Knows
//! nothing of sources: a [`Runtime`](crate::worker::Runtime) checks and starts. **Invariant:** what was answered as done is
//! on disk before the answer is given.

mod standalone;
mod store;

use crate::config::ConnectorConfig;
use crate::error::{Code, Fault};
use crate::worker::TaskState;

pub use standalone::Standalone;
pub use store::{Kept, Store};

/// What goes with a connector that is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// What it made at its source.
    pub source: bool,
    /// Its offsets, and what is remembered of its tables.
    pub offsets: bool,
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
    /// What was asked for cannot be done.
    #[error("{0}")]
    Refused(Fault),
    /// What was asked for does not fit what the connector does.
    #[error("{0}")]
    Conflict(Fault),
    /// The state directory failed.
    #[error("{0}")]
    Store(Fault),
}

impl HerderError {
    /// Whose fault it is that something is not done.
    fn of(fault: Fault) -> Self {
        match fault.code() {
            Code::SnapshotConflict | Code::SourceShared | Code::SlotActive | Code::SlotMismatch => {
                Self::Conflict(fault)
            }
            Code::FilterChanged => Self::BadRequest(fault.to_string()),
            Code::TableMissing
            | Code::TableUnsupported
            | Code::FilterUnsupported
            | Code::ConfigUnsupported
            | Code::ReplicationPermission
            | Code::ServerVersion
            | Code::SourceQuery => Self::Refused(fault),
            _ => Self::Store(fault),
        }
    }
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
    pub config: ConnectorConfig,
    /// The numbers of its tasks.
    pub tasks: Vec<u32>,
    /// What to know of a configuration that was submitted, though nothing is wrong with it.
    pub notes: Vec<String>,
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

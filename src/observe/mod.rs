//! What is counted, and how Prometheus reads it; levels of the log.
//!
//! Beside the path of a change: stage, publisher, registry and source count into the structures
//! here, the REST endpoint reads them. Knows no database, no Kafka client and no HTTP; a source adds
//! metrics of its own as data. **Invariants:** counting takes no lock, allocates nothing and looks
//! nothing up per row; nothing is decided by a count; a task's series live as long as the task.

mod definitions;
mod exposition;
mod loggers;
mod metric;
mod numbers;
mod observer;
mod process;
mod publisher;
mod registry;
mod source;
mod stage;
mod task;

pub use definitions::DEFINITIONS;
pub(crate) use definitions::{
    BUILD, CONNECTOR_STATUS, CONNECTOR_TASKS, CONNECTOR_TASKS_TOTAL, CONNECTORS, TASK_STATUS,
    TASKS, WAITING,
};
pub use exposition::{CONTENT_TYPE, Exposition};
pub use loggers::{Apply, Level, LoggerLevel, Loggers, UnknownLevel};
pub(crate) use metric::metrics;
pub use metric::{Buckets, Group, Metric, MetricKind};
pub use numbers::{Counter, Gauge, Histogram};
pub use observer::{Observer, WorkerMetrics};
pub use process::add_process;
pub use publisher::{PublisherMetrics, TopicMetrics};
pub use registry::{RegistryMetrics, RegistryOutcome};
pub use source::{
    ChunkMetrics, ChunkProgress, Reading, SignalMetrics, SnapshotMetrics, SourceMetrics,
    TableProgress,
};
pub use stage::{StageMetrics, TableMetrics};
pub use task::{TaskIdentity, TaskMetrics, TaskRegistration};

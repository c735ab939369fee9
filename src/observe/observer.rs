//! All tasks of a worker whose metrics are shown.

use std::sync::{Arc, Mutex, PoisonError};

use super::definitions as m;
use super::exposition::Exposition;
use super::numbers::Counter;
use super::task::{TaskIdentity, TaskMetrics, TaskRegistration};

/// Knows what there is to be shown. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Observer(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    tasks: Mutex<Vec<Arc<TaskMetrics>>>,
    worker: WorkerMetrics,
}

/// What a worker counts.
#[derive(Debug, Default)]
pub struct WorkerMetrics {
    /// Connectors of which the configuration was accepted at the start.
    pub connectors_started: Counter,
    /// Connectors of which it was refused.
    pub connectors_refused: Counter,
    /// Attempts of tasks that got under way.
    pub tasks_started: Counter,
    /// Attempts that did not.
    pub tasks_refused: Counter,
}

impl Observer {
    /// Shows a new task for as long as the answer lives.
    pub fn register(&self, identity: TaskIdentity) -> TaskRegistration {
        let metrics = Arc::new(TaskMetrics::new(identity));
        self.locked().push(Arc::clone(&metrics));
        TaskRegistration { metrics, observer: self.clone() }
    }

    pub(super) fn forget(&self, task: &Arc<TaskMetrics>) {
        self.locked().retain(|known| !Arc::ptr_eq(known, task));
    }

    /// What the worker itself counts.
    pub fn worker(&self) -> &WorkerMetrics {
        &self.0.worker
    }

    /// Adds everything as it is now.
    pub fn add_to(&self, out: &mut Exposition, now_micros: i64) {
        let worker = self.worker();
        let (good, bad) = (worker.connectors_started.get(), worker.connectors_refused.get());
        out.add_count(&m::CONNECTOR_STARTS, &[], good + bad);
        out.add_count(&m::CONNECTOR_STARTS_GOOD, &[], good);
        out.add_count(&m::CONNECTOR_STARTS_BAD, &[], bad);
        let (good, bad) = (worker.tasks_started.get(), worker.tasks_refused.get());
        out.add_count(&m::TASK_STARTS, &[], good + bad);
        out.add_count(&m::TASK_STARTS_GOOD, &[], good);
        out.add_count(&m::TASK_STARTS_BAD, &[], bad);
        let tasks = self.locked().clone();
        for task in tasks {
            task.add_to(out, now_micros);
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Vec<Arc<TaskMetrics>>> {
        self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

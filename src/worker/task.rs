//! The handle of a running task: what it is told and what it says.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::lifecycle::{Target, TaskState};
use crate::observe::{ChunkProgress, SourceMetrics};
use crate::sources::{OrderDesk, Orders};

/// A task that runs on its own. Dropping the handle does not stop it; [`TaskHandle::stop`] does.
#[derive(Debug)]
pub struct TaskHandle {
    target: watch::Sender<Target>,
    state: watch::Receiver<TaskState>,
    join: JoinHandle<()>,
    desk: OrderDesk,
    shown: Option<Arc<SourceMetrics>>,
}

/// The task's side of a handle.
#[derive(Debug)]
pub struct TaskControl {
    /// What is wanted; `Stopped` ends the task.
    pub target: watch::Receiver<Target>,
    /// Where the task says what it does.
    pub state: watch::Sender<TaskState>,
    /// Orders for the source.
    pub orders: Orders,
}

impl TaskHandle {
    /// Spawns a task.
    pub fn spawn<F, Fut>(target: Target, run: F) -> Self
    where
        F: FnOnce(TaskControl) -> Fut,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let (target_sender, target_receiver) = watch::channel(target);
        let (state_sender, state_receiver) = watch::channel(TaskState::Unassigned);
        let (desk, orders) = OrderDesk::open();
        let control = TaskControl { target: target_receiver, state: state_sender, orders };
        let join = tokio::spawn(run(control));
        Self { target: target_sender, state: state_receiver, join, desk, shown: None }
    }

    /// Where its source shows what it does.
    #[must_use]
    pub fn showing(self, metrics: Arc<SourceMetrics>) -> Self {
        Self { shown: Some(metrics), ..self }
    }

    /// Where orders for the source are given.
    pub fn desk(&self) -> OrderDesk {
        self.desk.clone()
    }

    /// The last snapshot beside the stream; `None`: there was none since the task began.
    pub fn chunk_progress(&self) -> Option<ChunkProgress> {
        self.shown.as_ref()?.incremental.progress()
    }

    /// Whether it is known if there was a snapshot before the task began.
    pub fn recalls_snapshots(&self) -> bool {
        self.shown.as_ref().is_some_and(|shown| shown.incremental.is_recalled())
    }

    /// What the task does now.
    pub fn state(&self) -> TaskState {
        self.state.borrow().clone()
    }

    /// Tells the task what is wanted, without waiting.
    pub fn set_target(&self, target: Target) {
        self.target.send_replace(target);
    }

    /// Stops the task: asks first, and takes it down if it has not ended by `grace`.
    ///
    /// Returns whether it ended by itself.
    pub async fn stop(mut self, grace: Duration) -> bool {
        self.target.send_replace(Target::Stopped);
        if tokio::time::timeout(grace, &mut self.join).await.is_ok() {
            return true;
        }
        self.join.abort();
        false
    }
}

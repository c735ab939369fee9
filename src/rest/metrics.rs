//! `GET /metrics`: everything that is counted, for Prometheus.
//!
//! States come from the herder, counts from the observer. **Invariant:** no label carries a value
//! of a configuration but names and `topic.prefix`.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::Api;
use crate::observe::{self, CONTENT_TYPE, DEFINITIONS, Exposition, add_process};
use crate::sources::CLASSES;
use crate::worker::TaskState;

/// Answers a scrape.
pub(super) async fn show(State(api): State<Api>) -> Response {
    let mut out = Exposition::default();
    out.add(&observe::BUILD, &[api.identity.version, api.identity.commit], 1.0);
    add_states(&mut out, &api);
    api.observer.add_to(&mut out, clock_micros());
    add_process(&mut out);
    let own = CLASSES.iter().map(|class| class.metrics);
    let text = out.finish(DEFINITIONS.into_iter().chain(own));
    ([(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE))], text).into_response()
}

fn add_states(out: &mut Exposition, api: &Api) {
    let names = api.herder.names();
    let mut all_tasks = 0;
    out.add_count(&observe::CONNECTORS, &[], names.len() as u64);
    // one that was deleted meanwhile is left out
    for status in names.iter().filter_map(|name| api.herder.status(name).ok()) {
        let name = status.name.as_str();
        all_tasks += status.tasks.len() as u64;
        out.add(&observe::CONNECTOR_STATUS, &[name, &status.state.to_lowercase()], 1.0);
        out.add_count(&observe::CONNECTOR_TASKS_TOTAL, &[name], status.tasks.len() as u64);
        for (word, metric) in observe::CONNECTOR_TASKS {
            let is_so = |(_, state): &&(u32, TaskState)| state.as_str() == word;
            out.add_count(metric, &[name], status.tasks.iter().filter(is_so).count() as u64);
        }
        for (number, state) in &status.tasks {
            let number = number.to_string();
            let labels = [name, &number, &state.as_str().to_lowercase()];
            out.add(&observe::TASK_STATUS, &labels, 1.0);
            let waits = matches!(state, TaskState::Running { waiting: Some(_) });
            out.add_count(&observe::WAITING, &[name, &number], u64::from(waits));
        }
    }
    out.add_count(&observe::TASKS, &[], all_tasks);
}

#[expect(clippy::disallowed_methods, reason = "a scrape says what holds now")]
fn clock_micros() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_micros()).ok())
        .unwrap_or(0)
}

//! The bodies of answers.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::Identity;
use crate::config::ConnectorConfig;
use crate::herder::{ConnectorInfo, ConnectorStatus, HerderError};
use crate::observe::{ChunkProgress, TableProgress};
use crate::worker::TaskState;

/// An error as Connect shows it: `{"error_code", "message"}`.
#[derive(Clone, Debug)]
pub struct ApiError {
    status: StatusCode,
    message: String,
}

impl ApiError {
    /// With a status and a sentence.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// 400.
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }
}

impl From<HerderError> for ApiError {
    fn from(error: HerderError) -> Self {
        let status = match &error {
            HerderError::NotFound(_) | HerderError::TaskNotFound(..) => StatusCode::NOT_FOUND,
            HerderError::Exists(_) | HerderError::Conflict(_) => StatusCode::CONFLICT,
            HerderError::BadRequest(_) | HerderError::Invalid(_) | HerderError::Refused(_) => {
                StatusCode::BAD_REQUEST
            }
            HerderError::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        json(self.status, &json!({ "error_code": self.status.as_u16(), "message": self.message }))
    }
}

/// A JSON answer; every answer with a body says that it is JSON.
pub(super) fn json(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// A configuration exactly as it was submitted.
pub(super) fn config(config: &ConnectorConfig) -> Value {
    Value::Object(
        config
            .iter()
            .map(|(key, value)| (key.clone(), value.clone().map_or(Value::Null, Value::String)))
            .collect(),
    )
}

/// `ConnectorInfo`.
pub(super) fn info(info: &ConnectorInfo) -> Value {
    let tasks: Vec<_> =
        info.tasks.iter().map(|task| json!({ "connector": info.name, "task": task })).collect();
    let mut body = json!({
        "name": info.name,
        "config": config(&info.config),
        "tasks": tasks,
        "type": "source",
    });
    add_notes(&mut body, &info.notes);
    body
}

/// Connect has no word for them; clients ignore members that they do not know.
pub(super) fn add_notes(body: &mut Value, notes: &[String]) {
    if let Value::Object(members) = body
        && !notes.is_empty()
    {
        members.insert("notes".to_owned(), json!(notes));
    }
}

/// `ConnectorStateInfo`.
pub(super) fn status(status: &ConnectorStatus, identity: &Identity) -> Value {
    let mut connector = state(identity, status.state, status.trace.clone());
    connector.insert("version".to_owned(), json!(identity.version));
    let tasks: Vec<_> = status.tasks.iter().map(|(id, one)| task(*id, one, identity)).collect();
    json!({ "name": status.name, "connector": connector, "tasks": tasks, "type": "source" })
}

/// `TaskState`.
pub(super) fn task(id: u32, one: &TaskState, identity: &Identity) -> Value {
    let mut body = Map::new();
    body.insert("id".to_owned(), json!(id));
    body.extend(state(identity, one.as_str(), one.trace()));
    body.insert("version".to_owned(), json!(identity.version));
    if let TaskState::Running { waiting: Some(fault) } = one {
        // Connect has no word for it; clients ignore members that they do not know
        body.insert("waiting".to_owned(), json!(fault.to_string()));
    }
    Value::Object(body)
}

/// A snapshot beside the stream, and how far it is.
pub(super) fn snapshot(name: &str, progress: Option<&ChunkProgress>) -> Value {
    let Some(progress) = progress else { return json!({ "name": name, "snapshot": null }) };
    let is_open = progress.tables.iter().any(TableProgress::is_open);
    let state = match (is_open, progress.paused) {
        (true, true) => "PAUSED",
        (true, false) => "RUNNING",
        (false, _) if progress.tables.iter().all(|one| one.state == "completed") => "COMPLETED",
        (false, _) => "STOPPED",
    };
    let tables: Vec<_> = progress
        .tables
        .iter()
        .map(|one| {
            json!({
                "data-collection": one.table,
                "state": one.state.to_ascii_uppercase(),
                "filter": one.condition,
                "rows": one.rows,
                "rows_scanned": one.scanned,
                "rows_estimated": one.estimate,
                "chunks": one.chunks,
                "seconds_left": one.seconds_left,
                "trace": one.fault,
            })
        })
        .collect();
    json!({
        "name": name,
        "snapshot": {
            "id": progress.id,
            "state": state,
            "waiting": progress.waiting.as_ref().filter(|_| is_open),
            "tables": tables,
        },
    })
}

fn state(identity: &Identity, word: &str, trace: Option<String>) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("state".to_owned(), json!(word));
    body.insert("worker_id".to_owned(), json!(identity.worker_id));
    if let Some(trace) = trace {
        body.insert("trace".to_owned(), json!(trace));
    }
    body
}

//! The handlers under `/admin/loggers`: levels of the log, changed at run time.
//!
//! Answers are those of Connect's worker. There is one worker, so scope `cluster` reaches all.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::connectors::query_values;
use super::content::Content;
use super::{Api, ApiError, answers, body};
use crate::observe::{Level, LoggerLevel};

type Answer = Result<Response, ApiError>;

/// `GET /admin/loggers`: those with a level of their own.
pub(super) async fn list(State(api): State<Api>) -> Answer {
    let all: Map<String, Value> =
        api.loggers.all().into_iter().map(|(name, own)| (name, level(own))).collect();
    Ok(answers::json(StatusCode::OK, &Value::Object(all)))
}

/// `GET /admin/loggers/{name}`.
pub(super) async fn get(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    let own = api
        .loggers
        .get(&name)
        .ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, format!("Logger {name} not found.")))?;
    Ok(answers::json(StatusCode::OK, &level(own)))
}

/// `PUT /admin/loggers/{name}`, `?scope=worker` (the default) or `cluster`.
pub(super) async fn set(
    State(api): State<Api>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    Content(bytes): Content,
) -> Answer {
    let config = body::config(&bytes)?;
    let word = config.get("level").cloned().flatten().ok_or_else(|| {
        ApiError::bad_request("Desired 'level' parameter was not specified in request.")
    })?;
    let level: Level = word.parse().map_err(|_unknown: crate::observe::UnknownLevel| {
        ApiError::new(StatusCode::NOT_FOUND, format!("invalid log level '{word}'."))
    })?;
    let changed = api.loggers.set(&name, level, now_millis());
    tracing::warn!(logger = name, level = level.as_str(), "the level of the log was changed");
    let is_cluster = query_values(query.as_deref(), "scope")
        .next()
        .is_some_and(|scope| scope.eq_ignore_ascii_case("cluster"));
    if is_cluster {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(answers::json(StatusCode::OK, &json!(changed)))
}

fn level(own: LoggerLevel) -> Value {
    json!({ "level": own.level.as_str(), "last_modified": own.last_modified })
}

#[expect(clippy::disallowed_methods, reason = "the time of a request is when it comes in")]
fn now_millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

//! The handlers under `/connectors`.

use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::content::Content;
use super::{Api, ApiError, answers, body};
use crate::config::TopicTracking;
use crate::herder::{HerderError, Removed};
use crate::sources::SnapshotAction;
use crate::worker::Target;

type Answer = Result<Response, ApiError>;

/// `GET /connectors`, with `expand=status` and `expand=info`.
pub(super) async fn list(State(api): State<Api>, RawQuery(query): RawQuery) -> Answer {
    let names = api.herder.names();
    let expand: Vec<_> = query_values(query.as_deref(), "expand").collect();
    if expand.is_empty() {
        return Ok(answers::json(StatusCode::OK, &json!(names)));
    }
    let mut all = Map::new();
    for name in names {
        let mut one = Map::new();
        // a connector that was deleted meanwhile is left out
        let (Ok(info), Ok(status)) = (api.herder.info(&name), api.herder.status(&name)) else {
            continue;
        };
        for kind in &expand {
            match *kind {
                "status" => {
                    one.insert("status".to_owned(), answers::status(&status, &api.identity));
                }
                "info" => {
                    one.insert("info".to_owned(), answers::info(&info));
                }
                _ => {}
            }
        }
        all.insert(name, Value::Object(one));
    }
    Ok(answers::json(StatusCode::OK, &Value::Object(all)))
}

/// `POST /connectors`.
pub(super) async fn create(
    State(api): State<Api>,
    headers: HeaderMap,
    Content(bytes): Content,
) -> Answer {
    let body::Create { name, config, target } = body::create(&bytes)?;
    let info = api.herder.create(&name, config, target).await?;
    Ok(created(&headers, &name, &answers::info(&info)))
}

/// `GET /connectors/{name}`.
pub(super) async fn info(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    Ok(answers::json(StatusCode::OK, &answers::info(&api.herder.info(&name)?)))
}

/// `GET /connectors/{name}/config`.
pub(super) async fn config(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    Ok(answers::json(StatusCode::OK, &answers::config(&api.herder.info(&name)?.config)))
}

/// `PUT /connectors/{name}/config`.
pub(super) async fn put_config(
    State(api): State<Api>,
    Path(name): Path<String>,
    headers: HeaderMap,
    Content(bytes): Content,
) -> Answer {
    let (new, info) = api.herder.put_config(&name, body::config(&bytes)?).await?;
    let body = answers::info(&info);
    Ok(if new { created(&headers, &name, &body) } else { answers::json(StatusCode::OK, &body) })
}

/// `PATCH /connectors/{name}/config`: null removes a key.
pub(super) async fn patch_config(
    State(api): State<Api>,
    Path(name): Path<String>,
    Content(bytes): Content,
) -> Answer {
    let info = api.herder.patch_config(&name, &body::config(&bytes)?).await?;
    Ok(answers::json(StatusCode::OK, &answers::info(&info)))
}

/// `DELETE /connectors/{name}`, with `drop=source,offsets`.
pub(super) async fn delete(
    State(api): State<Api>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let mut removed = Removed::default();
    for word in query_values(query.as_deref(), "drop").flat_map(|words| words.split(',')) {
        match word {
            "source" => removed.source = true,
            "offsets" => removed.offsets = true,
            other => {
                return Err(ApiError::bad_request(format!(
                    "drop={other}: can be \"source\" (what the connector made at the source), \
                     \"offsets\", or both with a comma"
                )));
            }
        }
    }
    api.herder.delete(&name, removed).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `GET /connectors/{name}/status`.
pub(super) async fn status(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    let status = api.herder.status(&name)?;
    Ok(answers::json(StatusCode::OK, &answers::status(&status, &api.identity)))
}

/// `PUT /connectors/{name}/pause`.
pub(super) async fn pause(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    api.herder.set_target(&name, Target::Paused).await?;
    Ok(StatusCode::ACCEPTED.into_response())
}

/// `PUT /connectors/{name}/resume`.
pub(super) async fn resume(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    api.herder.set_target(&name, Target::Started).await?;
    Ok(StatusCode::ACCEPTED.into_response())
}

/// `PUT /connectors/{name}/stop`.
pub(super) async fn stop(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    api.herder.set_target(&name, Target::Stopped).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /connectors/{name}/restart`.
///
/// Without flags Connect restarts the connector and not its tasks. Here a connector is its one
/// task, so a plain restart restarts that; with `onlyFailed`, only if it failed.
pub(super) async fn restart(
    State(api): State<Api>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let flag =
        |key| query_values(query.as_deref(), key).any(|value| value.eq_ignore_ascii_case("true"));
    let (include_tasks, only_failed) = (flag("includeTasks"), flag("onlyFailed"));
    api.herder.restart(&name, only_failed).await?;
    if !include_tasks && !only_failed {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let status = api.herder.status(&name)?;
    Ok(answers::json(StatusCode::ACCEPTED, &answers::status(&status, &api.identity)))
}

/// `GET /connectors/{name}/offsets`.
pub(super) async fn offsets(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    let offsets: Vec<_> = api
        .herder
        .offset(&name)
        .await?
        .map(|(partition, offset)| json!({ "partition": partition, "offset": offset }))
        .into_iter()
        .collect();
    Ok(answers::json(StatusCode::OK, &json!({ "offsets": offsets })))
}

/// `DELETE /connectors/{name}/offsets`.
pub(super) async fn reset_offsets(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    api.herder.reset_offset(&name).await?;
    let message = "The offsets for this connector have been reset successfully";
    Ok(answers::json(StatusCode::OK, &json!({ "message": message })))
}

/// `PATCH /connectors/{name}/offsets`: an offset can be forgotten, or taken over from Debezium; what
/// Kafka holds of our own nobody else can know.
pub(super) async fn patch_offsets(
    State(api): State<Api>,
    Path(name): Path<String>,
    Content(bytes): Content,
) -> Answer {
    let body::OffsetChange::TakeOver { partition, offset } = body::offset_change(&bytes)? else {
        return reset_offsets(State(api), Path(name)).await;
    };
    api.herder.take_over(&name, &partition, &offset).await?;
    let message = "The offsets for this connector have been altered successfully";
    Ok(answers::json(StatusCode::OK, &json!({ "message": message })))
}

/// `PUT /connectors/{name}/row-filters`: the configured row filters hold from the offset on.
pub(super) async fn apply_filters(
    State(api): State<Api>,
    Path(name): Path<String>,
    Content(bytes): Content,
) -> Answer {
    let resnapshot = body::applies_filters(&bytes)?;
    let tables = api.herder.adopt_filters(&name, resnapshot).await?;
    let message = format!("The row filters of {tables} table(s) were applied");
    Ok(answers::json(StatusCode::OK, &json!({ "message": message, "tables": tables })))
}

/// `GET /connectors/{name}/snapshots`.
pub(super) async fn snapshots(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    let progress = match api.herder.chunk_progress(&name)? {
        None => api.herder.stored_snapshot(&name).await?,
        shown => shown,
    };
    Ok(answers::json(StatusCode::OK, &answers::snapshot(&name, progress.as_ref())))
}

/// `POST /connectors/{name}/snapshots`: reads tables anew beside the stream.
pub(super) async fn start_snapshot(
    State(api): State<Api>,
    Path(name): Path<String>,
    Content(bytes): Content,
) -> Answer {
    let request = body::starts_snapshot(&bytes)?;
    api.herder.start_snapshot(&name, &request).await?;
    accepted(&api, &name)
}

/// `PUT /connectors/{name}/snapshots/stop`: of some tables, or of all.
pub(super) async fn stop_snapshot(
    State(api): State<Api>,
    Path(name): Path<String>,
    Content(bytes): Content,
) -> Answer {
    api.herder.order_snapshot(&name, body::stops_snapshot(&bytes)?).await?;
    accepted(&api, &name)
}

/// `PUT /connectors/{name}/snapshots/pause`.
pub(super) async fn pause_snapshot(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    api.herder.order_snapshot(&name, SnapshotAction::Pause).await?;
    accepted(&api, &name)
}

/// `PUT /connectors/{name}/snapshots/resume`.
pub(super) async fn resume_snapshot(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    api.herder.order_snapshot(&name, SnapshotAction::Resume).await?;
    accepted(&api, &name)
}

fn accepted(api: &Api, name: &str) -> Answer {
    let progress = api.herder.chunk_progress(name)?;
    Ok(answers::json(StatusCode::ACCEPTED, &answers::snapshot(name, progress.as_ref())))
}

/// `GET /connectors/{name}/topics`.
pub(super) async fn topics(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    if !api.topic_tracking.enabled {
        return Err(ApiError::new(StatusCode::FORBIDDEN, "Topic tracking is disabled."));
    }
    let topics = api.herder.topics(&name);
    let topics: Vec<&str> = topics.iter().map(AsRef::as_ref).collect();
    Ok(answers::json(StatusCode::OK, &json!({ name: { "topics": topics } })))
}

/// `PUT /connectors/{name}/topics/reset`.
pub(super) async fn reset_topics(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    let refused = match api.topic_tracking {
        TopicTracking { enabled: false, .. } => "Topic tracking is disabled.",
        TopicTracking { allows_reset: false, .. } => "Topic tracking reset is disabled.",
        TopicTracking { .. } => {
            api.herder.reset_topics(&name);
            return Ok(StatusCode::ACCEPTED.into_response());
        }
    };
    Err(ApiError::new(StatusCode::FORBIDDEN, refused))
}

/// `GET /connectors/{name}/tasks`.
pub(super) async fn tasks(State(api): State<Api>, Path(name): Path<String>) -> Answer {
    let info = api.herder.info(&name)?;
    let tasks: Vec<_> = info
        .tasks
        .iter()
        .map(|task| {
            json!({
                "id": { "connector": info.name, "task": task },
                "config": answers::config(&info.config),
            })
        })
        .collect();
    Ok(answers::json(StatusCode::OK, &json!(tasks)))
}

/// `GET /connectors/{name}/tasks/{task}/status`.
pub(super) async fn task_status(
    State(api): State<Api>,
    Path((name, task)): Path<(String, String)>,
) -> Answer {
    let number = task_number(&task)?;
    let status = api.herder.status(&name)?;
    let (id, state) = status
        .tasks
        .iter()
        .find(|(id, _)| *id == number)
        .ok_or(HerderError::TaskNotFound(name, number))?;
    Ok(answers::json(StatusCode::OK, &answers::task(*id, state, &api.identity)))
}

/// `POST /connectors/{name}/tasks/{task}/restart`.
pub(super) async fn restart_task(
    State(api): State<Api>,
    Path((name, task)): Path<(String, String)>,
) -> Answer {
    let number = task_number(&task)?;
    if !api.herder.info(&name)?.tasks.contains(&number) {
        return Err(HerderError::TaskNotFound(name, number).into());
    }
    api.herder.restart(&name, false).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A task id that is not an integer is an unknown path to Connect.
fn task_number(text: &str) -> Result<u32, ApiError> {
    text.parse().map_err(|_ignored: std::num::ParseIntError| {
        ApiError::new(StatusCode::NOT_FOUND, "HTTP 404 Not Found")
    })
}

fn created(headers: &HeaderMap, name: &str, body: &Value) -> Response {
    let host =
        headers.get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or("localhost");
    let location = format!("http://{host}/connectors/{}", percent_encode(name));
    let mut response = answers::json(StatusCode::CREATED, body);
    if let Ok(value) = location.parse() {
        response.headers_mut().insert(header::LOCATION, value);
    }
    response
}

fn percent_encode(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}

/// The values of a key that may be repeated.
pub(super) fn query_values<'a>(
    query: Option<&'a str>,
    key: &'a str,
) -> impl Iterator<Item = &'a str> {
    query.unwrap_or_default().split('&').filter_map(move |pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name == key).then_some(value)
    })
}

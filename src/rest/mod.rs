//! HTTP ↔ herder, in Kafka Connect's paths, bodies and codes. Thin: no handler holds a state.
//!
//! Knows no source and no Kafka. Where Connect answers 500 to bad input (malformed JSON, nested
//! values, missing `config`), the answer here is 400 with a plain sentence.

mod answers;
mod body;
mod connectors;
mod content;
mod loggers;
mod metrics;
mod plugins;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post, put};

use crate::config::TopicTracking;
use crate::herder::Standalone;
use crate::observe::{Loggers, Observer};

pub use answers::ApiError;

/// What the handlers share.
#[derive(Clone, Debug)]
pub struct Api {
    /// Who decides.
    pub herder: Arc<Standalone>,
    /// Who this worker is.
    pub identity: Arc<Identity>,
    /// What is counted.
    pub observer: Observer,
    /// Levels of the log.
    pub loggers: Arc<Loggers>,
    /// Whether topics are told.
    pub topic_tracking: TopicTracking,
}

/// Who this worker is.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Advertised `host:port`.
    pub worker_id: String,
    /// The program's version.
    pub version: &'static str,
    /// The commit it was built from, or `unknown`.
    pub commit: &'static str,
    /// The Kafka cluster's id; empty until the cluster was reached.
    pub kafka_cluster_id: tokio::sync::watch::Receiver<Option<String>>,
}

/// The whole API.
pub fn router(api: Api) -> Router {
    let mut router = Router::new();
    for (path, allowed, methods) in resources() {
        let methods = methods.fallback(async move |method: Method| others(&method, allowed));
        // three real clients end paths with a slash
        if path != "/" {
            router = router.route(&format!("{path}/"), methods.clone());
        }
        router = router.route(path, methods);
    }
    router
        .fallback(async || ApiError::new(StatusCode::NOT_FOUND, "HTTP 404 Not Found"))
        .layer(middleware::from_fn(negotiate))
        .layer(middleware::from_fn(to_the_end))
        // not JSON, so behind the negotiation
        .route("/metrics", get(metrics::show).fallback(async |method: Method| others(&method, GET)))
        .with_state(api)
}

const GET: &str = "GET,HEAD,OPTIONS";
const PUT: &str = "PUT,OPTIONS";
const POST: &str = "POST,OPTIONS";

/// Every path with its methods.
fn resources() -> [(&'static str, &'static str, MethodRouter<Api>); 26] {
    let config =
        get(connectors::config).put(connectors::put_config).patch(connectors::patch_config);
    let offsets =
        get(connectors::offsets).patch(connectors::patch_offsets).delete(connectors::reset_offsets);
    [
        ("/", GET, get(root)),
        ("/connectors", "GET,HEAD,POST,OPTIONS", get(connectors::list).post(connectors::create)),
        (
            "/connectors/{name}",
            "GET,HEAD,DELETE,OPTIONS",
            get(connectors::info).delete(connectors::delete),
        ),
        ("/connectors/{name}/config", "GET,HEAD,PUT,PATCH,OPTIONS", config),
        ("/connectors/{name}/status", GET, get(connectors::status)),
        ("/connectors/{name}/pause", PUT, put(connectors::pause)),
        ("/connectors/{name}/resume", PUT, put(connectors::resume)),
        ("/connectors/{name}/stop", PUT, put(connectors::stop)),
        ("/connectors/{name}/restart", POST, post(connectors::restart)),
        ("/connectors/{name}/offsets", "GET,HEAD,PATCH,DELETE,OPTIONS", offsets),
        ("/connectors/{name}/row-filters", PUT, put(connectors::apply_filters)),
        (
            "/connectors/{name}/snapshots",
            "GET,HEAD,POST,OPTIONS",
            get(connectors::snapshots).post(connectors::start_snapshot),
        ),
        ("/connectors/{name}/snapshots/pause", PUT, put(connectors::pause_snapshot)),
        ("/connectors/{name}/snapshots/resume", PUT, put(connectors::resume_snapshot)),
        ("/connectors/{name}/snapshots/stop", PUT, put(connectors::stop_snapshot)),
        ("/connectors/{name}/topics", GET, get(connectors::topics)),
        ("/connectors/{name}/topics/reset", PUT, put(connectors::reset_topics)),
        ("/connectors/{name}/tasks", GET, get(connectors::tasks)),
        ("/connectors/{name}/tasks/{task}/status", GET, get(connectors::task_status)),
        ("/connectors/{name}/tasks/{task}/restart", POST, post(connectors::restart_task)),
        ("/connector-plugins", GET, get(plugins::list)),
        ("/connector-plugins/{plugin}/config", GET, get(plugins::config)),
        ("/connector-plugins/{plugin}/config/validate", PUT, put(plugins::validate)),
        ("/admin/loggers", GET, get(loggers::list)),
        ("/admin/loggers/{name}", "GET,HEAD,PUT,OPTIONS", get(loggers::get).put(loggers::set)),
        ("/health", GET, get(health)),
    ]
}

/// What a resource answers to methods that it does not have.
fn others(method: &Method, allowed: &'static str) -> Response {
    let mut response = if *method == Method::OPTIONS {
        ([(header::CONTENT_TYPE, "text/plain")], allowed.replace(',', ", ")).into_response()
    } else {
        ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "HTTP 405 Method Not Allowed").into_response()
    };
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Carries out what a request asks for even if the client goes away meanwhile: a handler that is
/// dropped between two steps would leave a connector between two states.
async fn to_the_end(request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    tokio::spawn(next.run(request)).await.unwrap_or_else(|error| {
        tracing::error!(%error, "a request was not carried out to its end");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "HTTP 500 Internal Server Error")
            .into_response()
    })
}

async fn root(State(api): State<Api>) -> Response {
    answers::json(
        StatusCode::OK,
        &serde_json::json!({
            "version": api.identity.version,
            "commit": api.identity.commit,
            "kafka_cluster_id": api.identity.kafka_cluster_id.borrow().clone(),
        }),
    )
}

async fn health() -> Response {
    answers::json(
        StatusCode::OK,
        &serde_json::json!({
            "status": "healthy",
            "message": "Worker has completed startup and is ready to handle requests.",
        }),
    )
}

/// Only JSON comes in and goes out: 415 and 406 as Connect answers them.
async fn negotiate(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let has_body = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH)
        && headers.contains_key(header::CONTENT_TYPE);
    if has_body && !is_json(headers) {
        return ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "HTTP 415 Unsupported Media Type: send 'Content-Type: application/json'",
        )
        .into_response();
    }
    if !accepts_json(headers) {
        return ApiError::new(
            StatusCode::NOT_ACCEPTABLE,
            "HTTP 406 Not Acceptable: only application/json is served",
        )
        .into_response();
    }
    next.run(request).await
}

fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn accepts_json(headers: &HeaderMap) -> bool {
    let Some(accept) = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()) else {
        return true;
    };
    accept.split(',').filter_map(|one| one.split(';').next()).any(|kind| {
        let kind = kind.trim();
        ["*/*", "application/*", "application/json", ""]
            .iter()
            .any(|known| kind.eq_ignore_ascii_case(known))
    })
}

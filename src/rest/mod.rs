//! HTTP ↔ herder, in Kafka Connect's paths, bodies and codes. Thin: no handler holds a state.
//!
//! Knows no source and no Kafka. Where Connect answers 500 to bad input (malformed JSON, nested
//! values, missing `config`), the answer here is 400 with a plain sentence.

mod answers;
mod body;
mod connectors;
mod metrics;
mod plugins;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post, put};

use crate::herder::Standalone;
use crate::observe::Observer;

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
    let routes: [(&str, MethodRouter<Api>); 16] = [
        ("/connectors", get(connectors::list).post(connectors::create)),
        ("/connectors/{name}", get(connectors::info).delete(connectors::delete)),
        (
            "/connectors/{name}/config",
            get(connectors::config).put(connectors::put_config).patch(connectors::patch_config),
        ),
        ("/connectors/{name}/status", get(connectors::status)),
        ("/connectors/{name}/pause", put(connectors::pause)),
        ("/connectors/{name}/resume", put(connectors::resume)),
        ("/connectors/{name}/stop", put(connectors::stop)),
        ("/connectors/{name}/restart", post(connectors::restart)),
        ("/connectors/{name}/offsets", get(connectors::offsets).delete(connectors::reset_offsets)),
        ("/connectors/{name}/tasks", get(connectors::tasks)),
        ("/connectors/{name}/tasks/{task}/status", get(connectors::task_status)),
        ("/connectors/{name}/tasks/{task}/restart", post(connectors::restart_task)),
        ("/connector-plugins", get(plugins::list)),
        ("/connector-plugins/{plugin}/config", get(plugins::config)),
        ("/connector-plugins/{plugin}/config/validate", put(plugins::validate)),
        ("/health", get(health)),
    ];
    let mut router = Router::new().route("/", get(root));
    for (path, methods) in routes {
        // three real clients end paths with a slash
        router = router.route(&format!("{path}/"), methods.clone()).route(path, methods);
    }
    router
        .fallback(async || ApiError::new(StatusCode::NOT_FOUND, "HTTP 404 Not Found"))
        .method_not_allowed_fallback(async || {
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "HTTP 405 Method Not Allowed")
        })
        .layer(middleware::from_fn(negotiate))
        // not JSON, so behind the negotiation
        .route("/metrics", get(metrics::show))
        .with_state(api)
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

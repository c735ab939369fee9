//! `tidegate worker`: reads its file, starts the herder, serves the REST API, and ends in order.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

use crate::config::{
    ConfigFault, ConnectorConfig, Listener, WorkerConfig, parse_properties, process_environment,
};
use crate::error::{Code, Fault};
use crate::herder::{Standalone, Store};
use crate::rest::{Api, Identity, router};
use crate::worker::Worker;

/// Arguments of `tidegate worker`.
#[derive(Debug, Args)]
pub(super) struct WorkerCommand {
    /// The worker's properties file.
    properties: PathBuf,
    /// Connectors to create or to bring up to date: properties, a flat JSON map, or the body of a
    /// create request.
    connectors: Vec<PathBuf>,
}

impl WorkerCommand {
    /// Runs until SIGTERM or SIGINT.
    pub(super) async fn run(self) -> Result<(), Fault> {
        let config = Arc::new(read_worker(&self.properties)?);
        let connectors = self
            .connectors
            .iter()
            .map(|path| read_connector(path))
            .collect::<Result<Vec<_>, _>>()?;
        start_logging(&config)?;
        for note in &config.notes {
            tracing::warn!(key = note.key, "{}", note.message);
        }
        let listeners = bind(&config.listeners).await?;
        let store = Store::open(&config.directory)?;
        let worker = Worker::new(Arc::clone(&config));
        let observer = worker.observer();
        let (cluster_sender, cluster) = watch::channel(None);
        tokio::spawn(worker.clone().learn_cluster_id(cluster_sender));
        let herder = Arc::new(Standalone::open(Arc::new(worker), store)?);
        let identity = Identity {
            worker_id: advertised(&config, &listeners),
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("TIDEGATE_COMMIT").unwrap_or("unknown"),
            kafka_cluster_id: cluster,
        };
        tracing::info!(
            worker_id = identity.worker_id,
            version = identity.version,
            "worker started"
        );
        let app =
            router(Api { herder: Arc::clone(&herder), identity: Arc::new(identity), observer });
        let (stop, stopped) = watch::channel(false);
        let mut servers = tokio::task::JoinSet::new();
        for listener in listeners {
            let (app, mut stopped) = (app.clone(), stopped.clone());
            servers.spawn(async move {
                let shutdown = async move { drop(stopped.wait_for(|stopped| *stopped).await) };
                axum::serve(listener, app).with_graceful_shutdown(shutdown).await
            });
        }
        for (name, config) in connectors {
            herder.put_config(&name, config).await.map_err(|error| {
                Code::ConfigInvalid.fault(format!("connector '{name}': {error}"))
            })?;
        }
        wait_for_signal().await?;
        tracing::info!("stopping: tasks commit what they have and leave");
        herder.shut_down().await;
        stop.send_replace(true);
        let ended = async { while servers.join_next().await.is_some() {} };
        if tokio::time::timeout(config.shutdown_timeout, ended).await.is_err() {
            tracing::warn!("open requests were cut off");
        }
        tracing::info!("worker stopped");
        Ok(())
    }
}

fn read(path: &Path) -> Result<String, Fault> {
    std::fs::read_to_string(path).map_err(|error| {
        Code::ConfigMalformed
            .fault(format!("cannot read '{}'", path.display()))
            .caused_by(&error)
            .hint("Check the path and its permissions.")
    })
}

fn read_worker(path: &Path) -> Result<WorkerConfig, Fault> {
    WorkerConfig::parse(&read(path)?, &process_environment()).map_err(|faults| {
        let lines: Vec<_> = faults.iter().map(ConfigFault::to_string).collect();
        let code = faults.first().map_or(Code::ConfigInvalid, |fault| fault.code);
        code.fault(format!(
            "'{}' has {} fault(s):\n{}\n",
            path.display(),
            faults.len(),
            lines.join("\n")
        ))
        .hint("Correct the file; connector-config/worker.properties is an example.")
    })
}

/// Reads a connector in any of the three forms.
fn read_connector(path: &Path) -> Result<(String, ConnectorConfig), Fault> {
    let text = read(path)?;
    let malformed = |what: String| {
        Code::ConfigMalformed.fault(format!("connector file '{}': {what}", path.display()))
    };
    let config: ConnectorConfig = if text.trim_start().starts_with('{') {
        let body: Value =
            serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        let map = match (body.get("name"), body.get("config")) {
            (Some(_), Some(Value::Object(map))) => {
                let mut map = map.clone();
                if let Some(name) = body.get("name") {
                    map.insert("name".to_owned(), name.clone());
                }
                map
            }
            _ => body.as_object().cloned().unwrap_or_default(),
        };
        map.into_iter()
            .map(|(key, value)| match value {
                Value::Null => Ok((key, None)),
                Value::String(text) => Ok((key, Some(text))),
                Value::Bool(_) | Value::Number(_) => Ok((key, Some(value.to_string()))),
                Value::Array(_) | Value::Object(_) => {
                    Err(malformed(format!("the value of '{key}' is a nested JSON value")))
                }
            })
            .collect::<Result<_, _>>()?
    } else {
        let pairs = parse_properties(&text).map_err(|error| malformed(error.to_string()))?;
        pairs.into_iter().map(|(key, value)| (key, Some(value))).collect()
    };
    match config.get("name") {
        Some(Some(name)) => Ok((name.clone(), config)),
        _ => Err(malformed("'name' is missing".to_owned())),
    }
}

fn start_logging(config: &WorkerConfig) -> Result<(), Fault> {
    let filter = EnvFilter::try_new(&config.log_level)
        .map_err(|error| Code::ConfigInvalid.fault("log.level").caused_by(&error))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let outcome = if config.log_json { builder.json().try_init() } else { builder.try_init() };
    outcome.map_err(|error| Code::Internal.fault(format!("the log cannot be started: {error}")))
}

async fn bind(listeners: &[Listener]) -> Result<Vec<TcpListener>, Fault> {
    let mut bound = Vec::new();
    for listener in listeners {
        let host = if listener.host.is_empty() { "0.0.0.0" } else { &listener.host };
        let socket = TcpListener::bind((host, listener.port)).await.map_err(|error| {
            Code::ConfigInvalid
                .fault(format!("listeners: cannot listen on {host}:{}", listener.port))
                .caused_by(&error)
                .hint("Choose a free port, or stop what is listening there.")
        })?;
        bound.push(socket);
    }
    Ok(bound)
}

/// `host:port` under which others reach this worker.
fn advertised(config: &WorkerConfig, listeners: &[TcpListener]) -> String {
    let first = config.listeners.first();
    let host = config
        .advertised_host
        .clone()
        .or_else(|| first.map(|listener| listener.host.clone()).filter(|host| !host.is_empty()))
        .unwrap_or_else(|| "127.0.0.1".to_owned());
    let bound = listeners.first().and_then(|listener| listener.local_addr().ok());
    let port = config.advertised_port.or_else(|| bound.map(|address| address.port()));
    format!("{host}:{}", port.unwrap_or_default())
}

async fn wait_for_signal() -> Result<(), Fault> {
    let signals = signal(SignalKind::terminate()).and_then(|terminate| {
        signal(SignalKind::interrupt()).map(|interrupt| (terminate, interrupt))
    });
    let (mut terminate, mut interrupt) = signals
        .map_err(|error| Code::Internal.fault("signals cannot be received").caused_by(&error))?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

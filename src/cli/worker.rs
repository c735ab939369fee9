//! `tidegate worker`: reads its file, starts the herder, serves the REST API, and ends in order.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt, reload};

use super::files::{read_connector, read_worker};
use super::signals::Signals;
use crate::config::{Listener, WorkerConfig};
use crate::error::{Code, Fault};
use crate::herder::{Standalone, Store};
use crate::observe::Loggers;
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
        let loggers = Arc::new(start_logging(&config)?);
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
        let app = router(Api {
            herder: Arc::clone(&herder),
            identity: Arc::new(identity),
            observer,
            loggers,
            topic_tracking: config.topic_tracking,
        });
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
        Signals::listen()?.next().await;
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

/// Starts the log. Its levels can be changed from here on.
fn start_logging(config: &WorkerConfig) -> Result<Loggers, Fault> {
    let (filter, handle) = reload::Layer::new(EnvFilter::new(config.log_level.as_str()));
    let lines =
        fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let lines = if config.log_json { lines.json().boxed() } else { lines.boxed() };
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .try_init()
        .map_err(|error| Code::Internal.fault(format!("the log cannot be started: {error}")))?;
    // it fails only if the log is gone, and then nobody reads it
    let apply = Box::new(move |directives: &str| drop(handle.reload(EnvFilter::new(directives))));
    Ok(Loggers::new(config.log_level, apply))
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

//! Files that commands are given: a worker's properties, a connector in any of its forms; and what
//! is assumed where there is no worker's file.
//!
//! Knows no command. **Invariant:** a file that cannot be understood is refused by name.

use std::path::Path;

use clap::Args;
use serde_json::Value;

use crate::config::{
    ConfigFault, ConnectorConfig, WorkerConfig, parse_properties, process_environment,
};
use crate::error::{Code, Fault};

const KAFKA: &str = "localhost:9092";
const REGISTRY: &str = "http://localhost:8081";

/// Where the services are, for a command that is given no worker's file.
#[derive(Debug, Args)]
pub(super) struct Addresses {
    /// Kafka's addresses.
    #[arg(short, long, default_value = KAFKA, conflicts_with = "worker")]
    bootstrap_servers: String,
    /// The schema registry of converters that name none.
    #[arg(short, long, default_value = REGISTRY, conflicts_with = "worker")]
    registry_url: String,
}

impl Default for Addresses {
    fn default() -> Self {
        Self { bootstrap_servers: KAFKA.to_owned(), registry_url: REGISTRY.to_owned() }
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

/// Reads a worker's properties file.
///
/// # Errors
/// Everything that is wrong with it.
pub(super) fn read_worker(path: &Path) -> Result<WorkerConfig, Fault> {
    WorkerConfig::parse(&read(path)?, &process_environment()).map_err(|faults| {
        worker_faults(&path.display().to_string(), &faults)
            .hint("Correct the file; connector-config/worker.properties is an example.")
    })
}

/// What a command without a worker's file takes for one.
///
/// # Errors
/// An address is none.
pub(super) fn assumed_worker(addresses: &Addresses) -> Result<WorkerConfig, Fault> {
    let registry = escaped(&addresses.registry_url);
    let providers: String = [("env", "EnvVar"), ("file", "File"), ("dir", "Directory")]
        .iter()
        .map(|(name, class)| {
            format!(
                "config.providers.{name}.class=org.apache.kafka.common.config.provider.{class}ConfigProvider\n"
            )
        })
        .collect();
    let text = format!(
        "bootstrap.servers={}\nkey.converter.schema.registry.url={registry}\n\
         value.converter.schema.registry.url={registry}\nconfig.providers=env,file,dir\n{providers}",
        escaped(&addresses.bootstrap_servers)
    );
    WorkerConfig::parse(&text, &process_environment())
        .map_err(|faults| worker_faults("what the worker is assumed to be told", &faults))
}

/// A value as a properties file spells it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('\n', "\\n")
}

fn worker_faults(file: &str, faults: &[ConfigFault]) -> Fault {
    let lines: Vec<_> = faults.iter().map(ConfigFault::to_string).collect();
    let code = faults.first().map_or(Code::ConfigInvalid, |fault| fault.code);
    code.fault(format!("'{file}' has {} fault(s):\n{}\n", faults.len(), lines.join("\n")))
}

/// Reads a connector in any of the three forms: properties, a flat JSON map, or the body of a
/// create request.
///
/// # Errors
/// It cannot be read, or is none of them.
pub(super) fn read_connector(path: &Path) -> Result<(String, ConnectorConfig), Fault> {
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

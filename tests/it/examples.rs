//! The files in `connector-config/` are what the documentation shows: all of them must be accepted.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate::config::{ConnectorConfig, Environment, TypedConnector, WorkerConfig};

fn files(ending: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("connector-config");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|found| found == ending)).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Every variable has a value.
fn environment() -> Environment {
    Arc::new(|name| {
        let value = format!("value of {name}");
        Some(if name.ends_with("_PORT") { "5432".to_owned() } else { value })
    })
}

fn worker(path: &Path) -> WorkerConfig {
    let text = fs::read_to_string(path).unwrap();
    WorkerConfig::parse(&text, &environment()).map_err(|faults| (path, faults)).unwrap()
}

#[test]
fn every_worker_file_is_accepted() {
    for path in files("properties") {
        assert_eq!(worker(&path).notes, [], "{}", path.display());
    }
}

#[test]
fn every_connector_is_accepted_by_the_example_worker() {
    let worker = worker(files("properties").first().unwrap());
    for path in files("json") {
        let body: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let name = body["name"].as_str().unwrap().to_owned();
        let mut config: ConnectorConfig = serde_json::from_value(body["config"].clone()).unwrap();
        // REST adds the name of a create request.
        config.insert("name".to_owned(), Some(name));
        let connector =
            TypedConnector::parse(&config, &worker).map_err(|faults| (&path, faults)).unwrap();
        assert_eq!(connector.notes, [], "{}", path.display());
    }
}

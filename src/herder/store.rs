//! Connector configurations and wanted states in a local directory, one file each.
//!
//! A file is replaced whole (written beside, flushed, renamed), so that a crash leaves either the
//! old or the new one. Knows nothing of what the keys mean.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::ConnectorConfig;
use crate::error::{Code, Fault};
use crate::worker::Target;

/// What is kept of a connector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The configuration as submitted.
    pub config: ConnectorConfig,
    /// The wanted state.
    pub target_state: Target,
}

/// The directory. Only one process has it at a time.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    /// Held as long as the store lives.
    lock: Option<fs::File>,
}

/// The longest name of a file, less what is put behind it.
const LONGEST_NAME: usize = 240;

impl Store {
    /// Opens the directory, and creates it if it is not there.
    ///
    /// # Errors
    /// It cannot be created or written.
    pub fn open(directory: &Path) -> Result<Self, Fault> {
        let mut store = Self { directory: directory.to_path_buf(), lock: None };
        fs::create_dir_all(directory)
            .map_err(|error| store.fault("cannot create the directory", directory, &error))?;
        let path = directory.join(".lock");
        let lock = fs::File::create(&path)
            .map_err(|error| store.fault("cannot write to the directory", directory, &error))?;
        lock.try_lock().map_err(|error| {
            Code::WorkerState
                .fault(format!("the directory '{}' is in use by another worker", directory.display()))
                .caused_by(&error)
                .hint("Stop the other worker, or give this one a config.storage.directory of its own.")
        })?;
        store.lock = Some(lock);
        Ok(store)
    }

    /// Reads all connectors.
    ///
    /// # Errors
    /// A file cannot be read or understood: refused by name, never skipped.
    pub fn load(&self) -> Result<BTreeMap<String, Kept>, Fault> {
        let mut kept = BTreeMap::new();
        let entries = fs::read_dir(&self.directory)
            .map_err(|error| self.fault("cannot read the directory", &self.directory, &error))?;
        for entry in entries {
            let path = entry
                .map_err(|error| self.fault("cannot read the directory", &self.directory, &error))?
                .path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let text = fs::read(&path).map_err(|error| self.fault("cannot read", &path, &error))?;
            let one: Kept = serde_json::from_slice(&text)
                .map_err(|error| self.fault("cannot understand", &path, &error.into()))?;
            let name =
                path.file_stem().and_then(|stem| stem.to_str()).and_then(decode_name).ok_or_else(
                    || {
                        Code::WorkerState
                            .fault(format!("'{}' is not a connector's file", path.display()))
                    },
                )?;
            kept.insert(name, one);
        }
        Ok(kept)
    }

    /// Whether a connector of this name can be kept.
    pub fn can_keep(name: &str) -> bool {
        encode_name(name).len() <= LONGEST_NAME
    }

    /// Stores a connector; it is on disk when this returns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn put(&self, name: &str, kept: &Kept) -> Result<(), Fault> {
        let path = self.path(name);
        let write = || -> io::Result<()> {
            let beside = path.with_extension("json.new");
            let mut file = fs::File::create(&beside)?;
            file.write_all(&serde_json::to_vec_pretty(kept)?)?;
            file.sync_all()?;
            fs::rename(&beside, &path)?;
            fs::File::open(&self.directory)?.sync_all()
        };
        write().map_err(|error| self.fault("cannot write", &path, &error))
    }

    /// Forgets a connector. One that is not there is no error.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), Fault> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.fault("cannot remove", &path, &error))
            }
            _ => Ok(()),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{}.json", encode_name(name)))
    }

    fn fault(&self, what: &str, path: &Path, error: &io::Error) -> Fault {
        Code::WorkerState.fault(format!("{what} '{}'", path.display())).caused_by(error)
    }
}

/// Makes a connector's name a file's name: everything but letters, digits, `-`, `_` is `%XX`.
fn encode_name(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

fn decode_name(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("tidegate-store-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        path
    }

    #[test]
    fn connectors_survive_and_odd_names_come_back() {
        let directory = scratch("odd");
        let store = Store::open(&directory).unwrap();
        let mut config = ConnectorConfig::new();
        config.insert("b".to_owned(), Some("1".to_owned()));
        config.insert("a".to_owned(), None);
        let kept = Kept { config, target_state: Target::Paused };
        for name in ["plain", "with space", "ünï/x%", ".."] {
            store.put(name, &kept).unwrap();
        }
        assert_eq!(Store::open(&directory).unwrap_err().code(), Code::WorkerState, "in use");
        drop(store);
        let store = Store::open(&directory).unwrap();
        let back = store.load().unwrap();
        assert_eq!(back.keys().collect::<Vec<_>>(), ["..", "plain", "with space", "ünï/x%"]);
        assert_eq!(back["plain"], kept);
        assert_eq!(back["plain"].config.keys().collect::<Vec<_>>(), ["b", "a"]);
        store.remove("plain").unwrap();
        store.remove("plain").unwrap();
        assert_eq!(store.load().unwrap().len(), 3);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_damaged_file_is_refused_by_name() {
        let directory = scratch("damaged");
        let store = Store::open(&directory).unwrap();
        fs::write(directory.join("c.json"), b"{").unwrap();
        let fault = store.load().unwrap_err();
        assert_eq!(fault.code(), Code::WorkerState);
        assert!(fault.to_string().contains("c.json"), "{fault}");
        fs::remove_dir_all(directory).unwrap();
    }
}

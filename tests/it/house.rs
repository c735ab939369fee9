//! The house rules that a machine can hold: who may import whom, whose words stay where, file sizes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Which top-level modules each may name. `ARCHITECTURE.md` gives the reasons.
const IMPORTS: &[(&str, &[&str])] = &[
    ("error", &[]),
    // In builds for one test alone; those who ask it are those whose rules it breaks.
    ("sabotage", &[]),
    ("change", &["error"]),
    ("filter", &["change"]),
    ("record", &["error", "change"]),
    ("plan", &["error", "change", "record"]),
    ("convert", &["error", "change", "record", "plan"]),
    ("observe", &["error", "change", "filter"]),
    ("registry", &["error", "config", "observe"]),
    ("kafka", &["error", "config", "record", "observe", "sabotage"]),
    ("stage", &["error", "change", "record", "plan", "convert", "registry", "kafka", "observe"]),
    (
        "sources",
        &["error", "config", "change", "filter", "record", "plan", "stage", "observe", "sabotage"],
    ),
    ("config", &["error", "observe", "plan", "convert", "registry", "kafka", "sources"]),
    (
        "worker",
        &[
            "error", "change", "record", "config", "plan", "convert", "registry", "kafka", "stage",
            "sources", "observe",
        ],
    ),
    ("herder", &["error", "config", "worker"]),
    ("rest", &["error", "config", "herder", "worker", "sources", "observe"]),
    (
        "cli",
        &[
            "error", "observe", "config", "convert", "registry", "kafka", "worker", "herder",
            "rest", "sources",
        ],
    ),
];

/// PostgreSQL's vocabulary, as whole words in code (comments and documentation may compare).
const POSTGRES_WORDS: &str = r"(?i)\b(lsn|wal|pgoutput|toast|oid|xid|publication|replication_?slot|walsender|relreplident|postgres\w*)\b";

fn sources() -> Vec<PathBuf> {
    fn walk(directory: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    walk(&root().join("src"), &mut files);
    files.sort();
    files
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root().join("src")).unwrap().display().to_string()
}

/// The code without comments and without its tests.
fn code(path: &Path) -> String {
    if path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests")) {
        return String::new();
    }
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    text.lines()
        .map(|line| line.split_once("//").map_or(line, |(code, _)| code))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn modules_import_only_what_the_architecture_allows() {
    let allowed: BTreeMap<_, _> = IMPORTS.iter().copied().collect();
    let pattern = Regex::new(r"crate::(?:\{([^}]*)\}|([a-z_]+))").unwrap();
    let mut wrong = Vec::new();
    for path in sources() {
        let name = relative(&path);
        let module = name.split(['/', '.']).next().unwrap_or_default().to_owned();
        if matches!(module.as_str(), "main" | "lib") {
            continue;
        }
        let Some(may) = allowed.get(module.as_str()) else {
            wrong.push(format!("{name}: the module '{module}' is not in the table"));
            continue;
        };
        for found in pattern.captures_iter(&code(&path)) {
            let used = found.get(2).or_else(|| found.get(1)).map_or("", |m| m.as_str());
            for used in used.split(',').filter_map(|one| one.trim().split("::").next()) {
                if used != module && !used.is_empty() && !may.contains(&used) {
                    wrong.push(format!("{name} imports crate::{used}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_kafka_herder_and_cli_name_the_kafka_client() {
    for path in sources() {
        let name = relative(&path);
        if ["kafka/", "herder/", "cli/"].iter().all(|folder| !name.starts_with(folder)) {
            assert!(!code(&path).contains("rdkafka"), "{name} names rdkafka");
        }
    }
}

#[test]
fn unsafe_code_is_in_one_place() {
    for path in sources() {
        let name = relative(&path);
        let has = code(&path).contains("unsafe");
        assert_eq!(has, name == "kafka/flush.rs", "{name}");
    }
}

#[test]
fn the_wire_imports_nothing_but_bytes_and_positions() {
    for path in sources() {
        let name = relative(&path);
        if name.starts_with("sources/postgres/wire/") {
            let code = code(&path);
            for line in code.lines().filter(|line| line.trim_start().starts_with("use ")) {
                let ok =
                    ["use super::", "use std::", "use self::", "use thiserror::", "use bytes::"]
                        .iter()
                        .any(|prefix| line.trim_start().starts_with(prefix));
                assert!(ok, "{name}: {line}");
            }
            assert!(!code.contains("crate::"), "{name} names the crate");
        }
    }
}

#[test]
fn no_word_of_one_database_outside_its_folder() {
    let pattern = Regex::new(POSTGRES_WORDS).unwrap();
    // the registry of errors speaks to operators in their words; composition names the source
    let exempt = ["error.rs", "sources/", "cli/", "main.rs", "lib.rs"];
    let mut wrong = Vec::new();
    for path in sources() {
        let name = relative(&path);
        if exempt.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        for (number, line) in code(&path).lines().enumerate() {
            if let Some(found) = pattern.find(line)
                && !line.contains("sources::postgres")
            {
                wrong.push(format!("{name}:{}: {}", number + 1, found.as_str()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_source_file_is_longer_than_a_thousand_lines() {
    for path in sources() {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= 1000, "{} has {lines} lines", relative(&path));
    }
}

/// What loses data on purpose is in builds that ask for it, and in no other.
#[test]
fn no_default_build_has_the_deliberate_faults() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(!Regex::new(r"(?m)^default\s*=").unwrap().is_match(&manifest));
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let names = line.contains("sabotage::") || line.trim() == "mod sabotage;";
            if names && relative(&path) != "kafka/transaction.rs" {
                let guard = lines[number.saturating_sub(1)].trim();
                assert_eq!(guard, "#[cfg(feature = \"sabotage\")]", "{}", relative(&path));
            }
        }
    }
    let program = fs::read(env!("CARGO_BIN_EXE_tidegate")).unwrap();
    let has = program.windows(17).any(|bytes| bytes == b"TIDEGATE_SABOTAGE");
    assert_eq!(has, cfg!(feature = "sabotage"));
}

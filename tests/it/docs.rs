//! Documentation that comes from code: written anew with `UPDATE_EXPECT=1`, else compared.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use tidegate::config::{Catalogue, KeyDef, Presence, Status, Table};
use tidegate::config::{connector_catalogue, worker_catalogue};
use tidegate::error::{Code, Fate};
use tidegate::observe::DEFINITIONS;
use tidegate::sources;

/// Everything below this line of a page is generated.
const MARK: &str = "<!-- Below this line: generated from the key tables and the list of wanted differences by `UPDATE_EXPECT=1 cargo test`. -->\n";

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)
}

fn compare(name: &str, expect: &str) {
    let path = page(name);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, expect).unwrap();
    }
    let present = fs::read_to_string(&path).unwrap_or_default();
    let differs = present.lines().zip(expect.lines()).find(|(present, expect)| present != expect);
    assert!(
        present == expect,
        "docs/{name} is not what the code says (run UPDATE_EXPECT=1 cargo test); first difference: {differs:?}"
    );
}

#[test]
fn every_code_is_documented_and_nothing_else() {
    let mut text = "# Errors\n\n\
        Every refusal and failure has a code, a place (table, column, key, position), a cause and a remedy, on one line of the log and in the trace of a failed task.\n\
        *Retried* means that the task is rebuilt from the stored offset, with growing pauses, until the world has healed.\n\
        *Stops* means that a person must act: the task is FAILED, and everything before the place is in Kafka.\n\n\
        This page is generated from `src/error.rs` by `UPDATE_EXPECT=1 cargo test`.\n"
        .to_owned();
    for code in Code::ALL {
        let fate = match (code.fate(), code.tries()) {
            (Fate::Retry, None) => "Retried.".to_owned(),
            (Fate::Retry, Some(tries)) => {
                format!("Retried; stops when it was met {tries} times in a row at one offset.")
            }
            (Fate::Halt, _) => "Stops.".to_owned(),
        };
        write!(text, "\n## {code}\n\n{}\n\n{fate} {}\n", code.cause(), code.remedy()).unwrap();
    }
    compare("errors.md", &text);
}

#[test]
fn every_metric_is_documented_and_nothing_else() {
    let mut text = "# Metrics\n\n\
        `GET /metrics` on the worker's REST port answers in Prometheus' text format (0.0.4).\n\
        A task's series live as long as the task: they are there while it runs, is paused or has failed, begin at zero when it is started by REST, go on over restarts by itself, and are gone when the connector is stopped or deleted.\n\
        Times between source and Kafka are taken from the clocks of both machines.\n\n\
        This page is generated from the tables in `src/observe/definitions.rs` and beside the sources by `UPDATE_EXPECT=1 cargo test`.\n"
        .to_owned();
    let of_sources = sources::CLASSES.iter().map(|class| class.metrics);
    for group in DEFINITIONS.into_iter().chain(of_sources) {
        write!(
            text,
            "\n## {}\n\n| metric | type | unit | labels | what it says |\n|---|---|---|---|---|\n",
            group.title
        )
        .unwrap();
        for metric in group.metrics {
            let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let (kind, labels) = (metric.kind.as_str(), labels.join(", "));
            writeln!(
                text,
                "| `{}` | {kind} | {} | {labels} | {} |",
                metric.name, metric.unit, metric.help
            )
            .unwrap();
        }
    }
    compare("metrics.md", &text);
}

#[test]
fn metrics_have_legal_names_and_each_is_defined_once() {
    let of_sources = sources::CLASSES.iter().map(|class| class.metrics);
    let mut seen = std::collections::HashSet::new();
    for metric in DEFINITIONS.into_iter().chain(of_sources).flat_map(|group| group.metrics) {
        assert!(seen.insert(metric.name), "{} twice", metric.name);
        let names = metric.labels.iter().chain([&metric.name]);
        for name in names {
            let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
            assert!(
                name.chars().all(is_legal) && !name.starts_with(|c: char| c.is_ascii_digit()),
                "{name}"
            );
        }
        assert!(metric.help.ends_with('.'), "{}", metric.name);
    }
}

#[test]
fn every_key_is_documented() {
    let head = fs::read_to_string(page("compatibility.md")).unwrap();
    let head = head.split(MARK).next().unwrap_or_default();
    let mut text = format!("{head}{MARK}");
    let sections = [
        ("Connector keys", connector_catalogue(&sources::CLASSES[0])),
        ("Worker keys", worker_catalogue()),
    ];
    let reference = reference();
    for (title, catalogue) in sections {
        write_section(&mut text, title, &catalogue, &reference);
    }
    write_wanted_differences(&mut text);
    compare("compatibility.md", &text);
}

/// The list that every comparison with Debezium goes by.
fn write_wanted_differences(text: &mut String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("integration/golden/wanted.allow");
    text.push_str(
        "\n## Differences, place by place\n\n\
        What `make parity` (Debezium beside the worker) and `make test` (recorded Debezium) let pass, and nothing else: the list is `integration/golden/wanted.allow`, the cases are in `integration/golden/cases`.\n\
        `*` stands for any text. A case's name with `:snapshot` or `:stream` means that part of it. `$.key`, `$.value`, `$.headers` are a record's parts, `$key.…` and `$value.…` its schemas (`schema.json` Connect's, `avsc` Avro's), `$avro.…` its bytes; `$(missing)` and `$(extra)` whole records; `@outcome` is whether the connector runs.\n",
    );
    let list = fs::read_to_string(path).unwrap();
    let (_, list) = list.split_once("\n\n").unwrap();
    for line in list.lines().filter(|line| !line.is_empty()) {
        if let Some(heading) = line.strip_prefix("# ") {
            write!(text, "\n### {heading}\n\n| case | topic | place | why |\n|---|---|---|---|\n")
                .unwrap();
            continue;
        }
        let parts: Vec<_> = line.splitn(4, " | ").collect();
        assert_eq!(parts.len(), 4, "wanted.allow: {line}");
        let (place, why) = parts.split_at(3);
        let place: Vec<_> = place.iter().map(|part| format!("`{part}`")).collect();
        writeln!(text, "| {} | {} |", place.join(" | "), why.concat().replace('|', "\\|")).unwrap();
    }
}

/// Names and defaults of Debezium, Kafka Connect and the converters.
fn reference() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/config");
    let files =
        ["debezium-postgres.tsv", "connect-source.tsv", "connect-worker.tsv", "converters.tsv"];
    let lines = files.map(|file| fs::read_to_string(folder.join(file)).unwrap()).concat();
    lines
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut fields = line.split('\t');
            let name = fields.next().unwrap_or_default().to_owned();
            (name, fields.nth(1).unwrap_or_default().to_owned())
        })
        .collect()
}

fn write_section(
    text: &mut String,
    title: &str,
    catalogue: &Catalogue,
    reference: &[(String, String)],
) {
    let count =
        |wanted: fn(&Status) -> bool| catalogue.keys().filter(|def| wanted(&def.status)).count();
    write!(
        text,
        "\n## {title}\n\n{} keys and families of keys: {} are carried out, {} are accepted without effect, {} are refused unless they have the value that asks for nothing.\n\
         A part in angle brackets stands for any text, or for one of the words in it.\n\
         *There* is Debezium's or Kafka Connect's default, where it is another one.\n",
        catalogue.keys().count(),
        count(|status| matches!(status, Status::Supported)),
        count(|status| matches!(status, Status::NoEffect(_))),
        count(|status| matches!(status, Status::Refused(_))),
    )
    .unwrap();
    for table in catalogue.tables() {
        write_table(text, table, reference);
    }
}

fn write_table(text: &mut String, table: &Table, reference: &[(String, String)]) {
    write!(text, "\n### {}\n\n| key | default | what it does |\n|---|---|---|\n", table.group)
        .unwrap();
    for def in table.keys {
        let what = match def.status {
            Status::Supported => def.doc.to_owned(),
            Status::NoEffect(why) => format!("*No effect:* {why}."),
            Status::Refused(why) => format!("**Refused:** {why}."),
        };
        let name = def.name.replace('|', "\\|");
        let choices = choices(def);
        writeln!(text, "| `{name}` | {} | {what}{choices} |", default(def, reference)).unwrap();
    }
}

fn default(def: &KeyDef, reference: &[(String, String)]) -> String {
    let own = match def.presence {
        Presence::Required => "required".to_owned(),
        Presence::Optional => String::new(),
        Presence::Default(text) => format!("`{text}`"),
    };
    let short_name = def.name.trim_start_matches("<key|value>.converter.");
    let theirs = reference.iter().find(|(name, _)| name == def.name || name == short_name);
    match (theirs.map(|(_, default)| default.as_str()), def.presence) {
        // Only a fixed default can differ from a fixed default.
        (Some(theirs), Presence::Default(own_text))
            if !theirs.is_empty()
                && theirs != "(required)"
                && !def.kind.is_same(theirs, own_text) =>
        {
            format!("{own} (there: `{}`)", theirs.replace('|', "\\|"))
        }
        _ => own,
    }
}

fn choices(def: &KeyDef) -> String {
    let all = def.rule.choices();
    let join = |refused: bool| {
        let some = all.iter().filter(|choice| choice.refused.is_some() == refused);
        some.map(|choice| format!("`{}`", choice.value)).collect::<Vec<_>>().join(", ")
    };
    let (taken, refused) = (join(false), join(true));
    match (all.is_empty(), refused.is_empty()) {
        (true, _) => String::new(),
        (false, true) => format!(" Values: {taken}."),
        (false, false) => format!(" Values: {taken}; refused: {refused}."),
    }
}

//! `tidegate check`: everything that is wrong with a connector, as creating it would find it.
//!
//! The same code as the worker's validation, without a worker. **Invariant:** it only asks; so it
//! leaves nothing behind, however it ends.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use super::files::{Addresses, assumed_worker, read_connector, read_worker};
use super::output::{self, Paint};
use crate::error::Fault;
use crate::worker::{Finding, Worker, is_foreseen};

/// Arguments of `tidegate check`.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// The connector: properties, a flat JSON map, or the body of a create request.
    connector: PathBuf,
    /// The properties file of the worker that is to run it.
    #[arg(short, long, value_name = "FILE")]
    worker: Option<PathBuf>,
    #[command(flatten)]
    addresses: Addresses,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Succeeds if nothing is wrong.
    pub(super) async fn run(self) -> Result<ExitCode, Fault> {
        output::log_warnings();
        let worker = match &self.worker {
            Some(file) => read_worker(file)?,
            None => assumed_worker(&self.addresses)?,
        };
        let (name, config) = read_connector(&self.connector)?;
        let worker = Worker::new(Arc::new(worker));
        let findings = worker.examine(&config).await;
        let notes = worker.notes(&config).await;
        let paint = Paint(output::wants_colour());
        let text = if self.json {
            as_json(&name, &findings, &notes).to_string()
        } else {
            let text = as_text(&name, &findings, notes.iter().any(|note| is_foreseen(note)), paint);
            notes.iter().fold(text, |text, note| format!("{text}\n{}", paint.dim(note)))
        };
        output::line(&text);
        Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// The place, cause included, as the end of a sentence.
fn what(fault: &Fault) -> String {
    let mut text = fault.message().to_owned();
    if let Some(cause) = fault.cause() {
        text.push_str(": ");
        text.push_str(cause);
    }
    text
}

fn as_text(name: &str, findings: &[Finding], stops: bool, paint: Paint) -> String {
    if findings.is_empty() && stops {
        // of what is wrong with nothing but where the connector stands
        return format!("'{name}' has no faults, and its task will not go on as it is:");
    }
    if findings.is_empty() {
        return paint.green(&format!("'{name}' is in order."));
    }
    let mut text = String::new();
    for Finding { key, fault } in findings {
        let place = fault.place();
        let mut head = vec![key.clone()];
        head.extend(place.table.iter().map(|table| format!("table {table}")));
        head.extend(place.column.iter().map(|column| format!("column {column}")));
        text.push_str(&format!(
            "{}  {}\n    {}\n    {} {}\n",
            paint.red(fault.code().id()),
            head.join(", "),
            what(fault).replace('\n', "\n    "),
            paint.bold("to mend it:"),
            fault.remedy().replace('\n', "\n    "),
        ));
    }
    let plural = if findings.len() == 1 { "" } else { "s" };
    text.push_str(&format!("'{name}' has {} fault{plural}.", findings.len()));
    text
}

fn as_json(name: &str, findings: &[Finding], notes: &[String]) -> Value {
    let faults: Vec<_> = findings
        .iter()
        .map(|Finding { key, fault }| {
            json!({
                "code": fault.code().id(),
                "key": key,
                "message": what(fault),
                "table": fault.place().table,
                "column": fault.place().column,
                "remedy": fault.remedy(),
            })
        })
        .collect();
    json!({ "name": name, "ok": findings.is_empty(), "faults": faults, "notes": notes })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::error::Code;

    fn findings() -> Vec<Finding> {
        let fault = Code::ReplicationPermission
            .fault("no SELECT on \"public.t\"")
            .at_table("public.t")
            .hint("GRANT SELECT ON public.t TO the role.");
        vec![
            Finding { key: "table.include.list".to_owned(), fault },
            Finding {
                key: "database.hostname".to_owned(),
                fault: Code::WalLevel.fault("wal_level is 'replica'"),
            },
        ]
    }

    #[test]
    fn every_fault_says_code_key_what_and_what_mends_it() {
        expect![[r#"
            TG-E-REPLICATION-PERMISSION  table.include.list, table public.t
                no SELECT on "public.t"
                to mend it: GRANT SELECT ON public.t TO the role.
            TG-E-WAL-LEVEL  database.hostname
                wal_level is 'replica'
                to mend it: ALTER SYSTEM SET wal_level = logical, then restart the server.
            'c' has 2 faults."#]]
        .assert_eq(&as_text("c", &findings(), false, Paint(false)));
        assert_eq!(as_text("c", &[], false, Paint(false)), "'c' is in order.");
        let stops = as_text("c", &[], true, Paint(false));
        assert!(!stops.contains("in order"), "{stops}");
    }

    #[test]
    fn machines_get_one_object() {
        let body = as_json("c", &findings(), &[]);
        assert_eq!(
            (&body["ok"], &body["faults"][1]["code"]),
            (&json!(false), &json!("TG-E-WAL-LEVEL"))
        );
        let expect = json!({"name": "c", "ok": true, "faults": [], "notes": ["n"]});
        assert_eq!(as_json("c", &[], &["n".to_owned()]), expect);
    }
}

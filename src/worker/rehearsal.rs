//! A configuration, tried out on the tables as they are: everything that compiling their plans and
//! looking at their topics can tell, before anything is created.
//!
//! **Invariant:** nothing is registered, created or produced.

use std::sync::Arc;

use crate::change::TableVersion;
use crate::config::TypedConnector;
use crate::error::{Code, Fault};
use crate::kafka::Topics;
use crate::plan::{TablePlan, topic_collisions};
use crate::stage::{Side, refuse_null_keys_if_compacted};

/// All faults that publishing these tables would meet.
pub(super) async fn rehearse(
    connector: &TypedConnector,
    versions: Vec<TableVersion>,
    topics: Option<&Topics>,
) -> Vec<Fault> {
    let mut faults = collisions(connector, &versions);
    let source = connector.source.block(&connector.plan.topic_prefix);
    for version in versions {
        let table = version.table.to_string();
        let plan = match TablePlan::compile(Arc::new(version), &connector.plan, &source) {
            Ok(plan) => plan,
            Err(fault) => {
                faults.push(fault);
                continue;
            }
        };
        let checked = check_schemas(connector, &plan);
        faults.extend(checked.err().map(|fault| fault.at_table(table.clone())));
        if let Some(topics) = topics {
            let checked = check_topics(&plan, topics).await;
            faults.extend(checked.err().map(|fault| fault.at_table(table)));
        }
    }
    faults
}

/// The rules for columns that do nothing, each as a note: whoever misspells a column that is to be
/// hidden does not learn it from the records in time.
pub(super) fn idle_rules(connector: &TypedConnector, versions: &[TableVersion]) -> Vec<String> {
    let columns: Vec<String> = versions
        .iter()
        .flat_map(|version| {
            version.columns.iter().map(|column| format!("{}.{}", version.table, column.name))
        })
        .collect();
    let idle = connector.plan.columns.idle(&columns).into_iter();
    idle.map(|(key, pattern)| {
        let pattern = pattern.as_str().trim_start_matches("^(?:").trim_end_matches(")$");
        format!(
            "{key}: '{pattern}' names no column of a captured table, so it does nothing; the whole of \
             schema.table.column has to match"
        )
    })
    .collect()
}

/// Tables whose names become one topic's would be mixed up.
fn collisions(connector: &TypedConnector, versions: &[TableVersion]) -> Vec<Fault> {
    let tables = versions.iter().map(|version| &version.table);
    match topic_collisions(&connector.plan, tables) {
        Err(fault) => vec![fault],
        Ok(collisions) => collisions
            .iter()
            .map(|(topic, tables)| {
                let names: Vec<_> = tables.iter().map(ToString::to_string).collect();
                Code::SchemaIllegalName
                    .fault(format!(
                        "the tables {} would all go to the topic '{topic}'",
                        names.join(" and ")
                    ))
                    .hint("Exclude all but one of them, or rename.")
            })
            .collect(),
    }
}

fn check_schemas(connector: &TypedConnector, plan: &TablePlan) -> Result<(), Fault> {
    for record in plan.records() {
        let sides = [
            (Side::Key, &record.key, &connector.key),
            (Side::Value, &record.value, &connector.value),
        ];
        for (side, shape, settings) in sides {
            let Some(shape) = shape else { continue };
            let text = settings.converter.schema_text(&shape.schema)?;
            if let (Some(text), Some(registry)) = (text, &settings.registry) {
                // a topic that depends on rows is a topic all the same
                let topic = record.topic.fixed().unwrap_or("…");
                registry.naming.subject(topic, side.as_str(), &text)?;
            }
        }
    }
    Ok(())
}

async fn check_topics(plan: &TablePlan, topics: &Topics) -> Result<(), Fault> {
    let mut names: Vec<&str> = plan.records().filter_map(|record| record.topic.fixed()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        if let Some(facts) = topics.describe(name).await? {
            refuse_null_keys_if_compacted(plan, name, &facts)?;
        } else {
            topics.try_creation(name).await?;
        }
    }
    Ok(())
}

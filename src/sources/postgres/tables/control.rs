//! The control topic that a connector goes on with: it may be another one, or have another shape.
//!
//! **Invariants:** a topic has records of one shape, unless somebody else writes to it; a topic that a
//! connector comes to is opened by a baseline of each table.

use super::{ControlOrigin, Provenance, Services, Stage, Tables};
use crate::error::{Code, Fault};
use crate::sources::postgres::catalogue::fetch_names;

impl Tables {
    /// Sees to the control topic before the stream begins. Answers whether anything has to be stored.
    ///
    /// # Errors
    /// `CONFIG-INVALID`: the shape changed, and the topic did not; or the catalogue cannot be asked,
    /// or registry or broker refuse.
    pub(in crate::sources::postgres) async fn open_control<S: Services>(
        &mut self,
        stage: &mut Stage<S>,
    ) -> Result<bool, Fault> {
        let Some(now) = stage.control_form() else { return Ok(false) };
        let is_other = |told: &Option<String>| told.as_ref().is_some_and(|told| *told != now);
        let others = self.histories.iter().filter(|(_, history)| is_other(&history.told));
        let mut others: Vec<u32> = others.map(|(oid, _)| *oid).collect();
        if others.is_empty() {
            return Ok(false);
        }
        let mut told = self.histories.values().filter_map(|history| history.told.as_deref());
        told.try_for_each(|told| refuse_same_topic(told, &now))?;
        others.sort_unstable();
        self.connect().await?;
        let Some(connection) = &mut self.catalogue else { return Ok(false) };
        let names = fetch_names(connection, &others).await;
        if names.is_err() {
            self.catalogue = None;
        }
        let names = names?;
        for oid in others {
            let Some(mut history) = self.histories.get(&oid).cloned() else { continue };
            history.told = Some(now.clone());
            let newest = history.newest().cloned();
            let captures = |namespace: &str, name: &str| {
                self.settings.tables.captures(namespace, name) && names.contains_key(&oid)
            };
            match newest
                .filter(|newest| captures(&newest.descriptor.namespace, &newest.descriptor.name))
            {
                Some(known) => {
                    let version =
                        self.compile(&known.descriptor, known.facts.as_ref(), known.epoch, &|_| {
                            None
                        });
                    let position = known.place.commit.to_string();
                    let origin = ControlOrigin {
                        mode: stage.plan_settings().changes.of(&version.table),
                        ..self.control_origin(&position, known.place, Provenance::Catalogue)
                    };
                    let record = stage.control_record(&origin, (None, &version), None);
                    stage.announce(&record, history.encode()?).await?;
                }
                None => stage.remember(history.encode()?),
            }
            self.histories.insert(oid, history);
        }
        Ok(true)
    }
}

/// Refuses another shape in the topic that has records of the one before.
fn refuse_same_topic(told: &str, now: &str) -> Result<(), Fault> {
    let (Some((before, topic)), Some((format, same))) = (told.split_once(' '), now.split_once(' '))
    else {
        return Ok(());
    };
    if before == format || topic != same {
        return Ok(());
    }
    Err(Code::ConfigInvalid
        .fault(format!(
            "schema.changes.format is '{format}', and the topic {topic} has records in the format \
             '{before}'"
        ))
        .hint(format!(
            "Set schema.changes.topic to another topic as well (it begins with a baseline of each \
             table), or schema.changes.format={before}: PATCH /connectors/{{name}}/config; then \
             restart the task."
        )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_shape_takes_another_topic() {
        let refused = |told, now| refuse_same_topic(told, now).map_err(|fault| fault.code());
        assert_eq!(refused("tidegate a", "tidegate a"), Ok(()));
        assert_eq!(refused("tidegate a", "tidegate b"), Ok(()));
        assert_eq!(refused("tidegate a", "debezium b"), Ok(()));
        assert_eq!(refused("tidegate a", "debezium a"), Err(Code::ConfigInvalid));
    }
}

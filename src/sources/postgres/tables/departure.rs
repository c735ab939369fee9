//! Tables that were captured, and are not under the name that they have now: that is told, not passed
//! over.
//!
//! The stream describes such a table before its next row, if the publication still carries it; else
//! only the catalogue shows it, between two looks. **Invariants:** a departure is told once by each of
//! the two; what the stream will describe by itself is never refused before it does.

use std::collections::HashSet;

use super::super::capture::Selection;
use super::super::probe::Departure;
use super::{
    ControlOrigin, Lsn, Place, Provenance, RelationDescriptor, Services, Stage, State, TableId,
    Tables, WireTypes, best_facts, build, control_id,
};
use crate::change::{ChangeClass, ColumnChange, Rewrite, TableChange};
use crate::error::{Code, Fault};

/// Numbers what the catalogue shows at a position; suspicions there have 0.
const DEPARTURE: u64 = 1;

impl Tables {
    /// Whether a table was not captured for a while.
    pub(in crate::sources::postgres) fn has_left(&self, oid: u32) -> bool {
        self.histories.get(&oid).is_some_and(|history| history.has_left)
    }

    /// Takes note of which tables are captured from here on. It is stored with the next position: up
    /// to the last one nothing was missed. Answers those that come back.
    ///
    /// # Errors
    /// Only if the program is wrong.
    pub(in crate::sources::postgres) fn note_captured<S: Services>(
        &mut self,
        selection: &Selection,
        stage: &mut Stage<S>,
    ) -> Result<Vec<String>, Fault> {
        let relations = || selection.captured.iter().chain(&selection.published);
        let captured: HashSet<u32> = relations().map(|relation| relation.oid).collect();
        let mut back = Vec::new();
        for (oid, history) in &mut self.histories {
            let has_left = !captured.contains(oid);
            if std::mem::replace(&mut history.has_left, has_left) == has_left {
                continue;
            }
            stage.remember(history.encode()?);
            if let Some(newest) = history.newest().filter(|_| !has_left) {
                back.push(newest.descriptor.qualified_name());
            }
        }
        Ok(back)
    }

    /// A description of a table that is not captured: if it was, under another name, that is a
    /// change of its definition like others.
    ///
    /// # Errors
    /// The change is refused (`SCHEMA-RENAMED`), or catalogue, registry or broker cannot be reached.
    pub(in crate::sources::postgres) async fn depart<S: Services>(
        &mut self,
        descriptor: &RelationDescriptor,
        place: Place,
        wire_types: &WireTypes<'_>,
        stage: &mut Stage<S>,
    ) -> Result<(), Fault> {
        let Some(before) = self.remembered(descriptor.oid.0, place) else { return Ok(()) };
        // that it left was told when it did
        if !self.settings.tables.captures(&before.descriptor.namespace, &before.descriptor.name) {
            return Ok(());
        }
        self.fetch_types(descriptor).await?;
        let now = self.fetch_facts(descriptor.oid.0).await?;
        let facts = best_facts(descriptor, now, before.facts.as_ref());
        let epoch = self.next_epoch(descriptor);
        let rules = &self.settings.key_rules;
        let resolved = build(descriptor, facts.as_ref(), &self.types, wire_types, epoch, rules);
        let entry = (place, Provenance::Stream, State::New);
        let table = self.add(descriptor, facts, resolved, entry);
        self.announce(table.index, None, stage).await?;
        self.note_name(&before.descriptor, table.index);
        self.entry_mut(table.index)?.state = State::Known;
        tracing::warn!(
            code = Code::SchemaRenamed.id(),
            table = before.descriptor.qualified_name(),
            now = descriptor.qualified_name(),
            position = %place.commit,
            "a table is captured no more under the name that it has now: its rows are left out from \
             here on"
        );
        Ok(())
    }

    /// The catalogue shows that a table is gone, or has a name under which it is not captured.
    ///
    /// # Errors
    /// The stream will never tell, and tables with other names are refused (`SCHEMA-RENAMED`);
    /// registry or broker refuse.
    pub(super) async fn take_departure<S: Services>(
        &mut self,
        departure: Departure,
        stage: &mut Stage<S>,
    ) -> Result<(), Fault> {
        let Departure { oid, now, is_published, after, position } = departure;
        self.sights.remove(&oid);
        let Some(history) = self.histories.get(&oid) else { return Ok(()) };
        let Some(known) = history.newest().cloned() else { return Ok(()) };
        let RelationDescriptor { namespace, name, .. } = &known.descriptor;
        // that it left was told by the stream
        if !self.settings.tables.captures(namespace, name) {
            return Ok(());
        }
        let mut history = history.clone();
        let version = self.compile(&known.descriptor, known.facts.as_ref(), known.epoch, &|_| None);
        let now = now.map(|(namespace, name)| TableId { namespace, name });
        let mut change = departed(&version.table, now.as_ref());
        let place = Place { commit: position.parse().unwrap_or(Lsn::ZERO), sequence: DEPARTURE };
        let policy = &stage.plan_settings().changes;
        let mut origin = ControlOrigin {
            after_position: Some(&after),
            named_by: Some(&after),
            mode: policy.of(&version.table),
            ..self.control_origin(&position, place, Provenance::Catalogue)
        };
        let id = control_id(&origin, version.native_id);
        if let Some(now) = now.as_ref().filter(|_| !is_published)
            && let Err(fault) = policy.judge(&id, (&version.table, now), &change, None)
        {
            let fault = fault.at_position(format!("between {after} and {position}"));
            origin.refused = Some(fault.code());
            let told = control_id(&origin, version.native_id);
            if history.refused.as_ref() != Some(&told) {
                history.refused = Some(told);
                let record =
                    stage.control_record(&origin, (Some(&version), &version), Some(&change));
                stage.leave_word(&record, history.encode()?).await?;
            }
            return Err(fault);
        }
        warn(&known.descriptor, now.as_ref(), is_published, (&after, &position));
        origin.acknowledged = policy.lets_pass(&id);
        change.kind = "suspected";
        // so that it is not looked for again
        history.sight = None;
        history.refused = None;
        let record = stage.control_record(&origin, (Some(&version), &version), Some(&change));
        stage.announce(&record, history.encode()?).await?;
        self.histories.insert(oid, history);
        Ok(())
    }
}

/// What became of a table, as a change. It is judged as what it is, and told as a suspicion: nobody
/// knows at which place it happened.
fn departed(before: &TableId, now: Option<&TableId>) -> TableChange {
    let kind = if now.is_some() { "renamed" } else { "dropped" };
    TableChange {
        kind,
        class: ChangeClass::Relation,
        columns: vec![ColumnChange {
            column: String::new(),
            kind,
            from: Some(before.to_string()),
            to: now.map(ToString::to_string),
            class: ChangeClass::Relation,
        }],
        rewrite: Some(Rewrite {
            changes_values: Some(false),
            reason: None,
            existing_rows: "unaffected",
            recommended: if now.is_some() { "resnapshot" } else { "none" },
            action: "warned",
        }),
    }
}

fn warn(
    before: &RelationDescriptor,
    now: Option<&TableId>,
    is_published: bool,
    (after, position): (&str, &str),
) {
    let table = before.qualified_name();
    match now {
        None => tracing::warn!(
            table,
            after,
            before = position,
            "a captured table was dropped; what was published of it stays as it is"
        ),
        Some(now) => tracing::warn!(
            code = Code::SchemaRenamed.id(),
            table,
            %now,
            is_published,
            after,
            before = position,
            "a table is captured no more under the name that it has now: its rows are left out. \
             Capture the new name and restart the task, then POST /connectors/{{name}}/snapshots \
             reads what was left out"
        ),
    }
}

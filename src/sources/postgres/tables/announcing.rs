//! A version that differs from the one before: judged, announced, remembered.
//!
//! What differs is graded, held against the connector's policy, and told on the control topic together
//! with the state by which a restart knows it. **Invariants:** a change that is refused is judged before
//! anything of it is registered, and nothing of its version is remembered.

use super::super::ddl::name_replaced;
use super::super::retype::grade;
use super::super::state::{KnownVersion, PushedDown};
use super::{ControlOrigin, Entry, Services, Sight, Stage, TableId, Tables, control_id, type_oids};
use crate::change::{Rewrite, TableChange, TableVersion, diff};
use crate::error::Fault;
use crate::plan::{PlanSettings, changed_key, unshown_changes};

impl Tables {
    /// Stops at a change that does not go on by itself, before anything of it is registered. A
    /// snapshot begins anew, whatever was before.
    pub(super) async fn refuse_change<S: Services>(
        &self,
        index: usize,
        stage: &mut Stage<S>,
    ) -> Result<(), Fault> {
        let entry = self.entry(index)?;
        let Some(last) = self.last_of(&entry.descriptor).filter(|_| !entry.is_of_snapshot) else {
            return Ok(());
        };
        let facts = last.facts.as_ref();
        let before = self.compile(&last.descriptor, facts, last.epoch, &|_| None);
        let Some(mut change) = diff(&before, &entry.version) else { return Ok(()) };
        self.pass(index, (&before, &mut change), None, stage).await
    }

    /// Grades a change, and sees whether it goes on.
    async fn pass<S: Services>(
        &self,
        index: usize,
        (before, change): (&TableVersion, &mut TableChange),
        command: Option<&str>,
        stage: &mut Stage<S>,
    ) -> Result<(), Fault> {
        let entry = self.entry(index)?;
        let plan = stage.plan_settings();
        let then = self.last_of(&entry.descriptor).and_then(|last| last.facts.as_ref());
        name_replaced(change, then, entry.facts.as_ref());
        let unshown = unshown_changes(plan, before, &entry.version)?;
        grade(change, before, &entry.version, &unshown);
        if change.kind == "recreated" && change.rewrite.is_none() {
            // nobody deletes what was published of the earlier table
            change.rewrite = Some(Rewrite {
                changes_values: None,
                reason: None,
                existing_rows: "values_unknown",
                recommended: "resnapshot",
                action: "forwarded",
            });
        }
        if entry.is_of_snapshot {
            return Ok(());
        }
        let Err(fault) = self.judge(entry, (before, change), plan) else { return Ok(()) };
        self.tell_refusal(index, (before, change), (&fault, command), stage).await?;
        Err(fault)
    }

    /// Whether a change of a version goes on.
    fn judge(
        &self,
        entry: &Entry,
        (before, change): (&TableVersion, &TableChange),
        plan: &PlanSettings,
    ) -> Result<(), Fault> {
        let position = entry.place.commit.to_string();
        let origin = self.control_origin(&position, entry.place, entry.provenance);
        let id = control_id(&origin, entry.version.native_id);
        let key = changed_key(before, &entry.version);
        plan.changes
            .judge(&id, (&before.table, &entry.version.table), change, key.as_deref())
            .map_err(|fault| fault.at_position(format!("{position}, message {}", origin.sequence)))
    }

    /// The task stops at a change: that is told once, however often it stops there.
    pub(super) async fn tell_refusal<S: Services>(
        &self,
        index: usize,
        (before, change): (&TableVersion, &TableChange),
        (fault, command): (&Fault, Option<&str>),
        stage: &mut Stage<S>,
    ) -> Result<(), Fault> {
        let entry = self.entry(index)?;
        let position = entry.place.commit.to_string();
        let origin = ControlOrigin {
            command,
            mode: stage.plan_settings().changes.of(&entry.version.table),
            refused: Some(fault.code()),
            ..self.control_origin(&position, entry.place, entry.provenance)
        };
        let id = control_id(&origin, entry.version.native_id);
        let last = self.last_of(&entry.descriptor);
        let known = last.and_then(|last| self.histories.get(&last.descriptor.oid.0));
        let Some(history) = known.filter(|known| known.refused.as_ref() != Some(&id)) else {
            return Ok(());
        };
        let mut history = history.clone();
        history.refused = Some(id);
        let record = stage.control_record(&origin, (Some(before), &entry.version), Some(change));
        stage.leave_word(&record, history.encode()?).await
    }

    pub(super) async fn announce<S: Services>(
        &mut self,
        index: usize,
        command: Option<&str>,
        stage: &mut Stage<S>,
    ) -> Result<(), Fault> {
        let entry = self.entry(index)?;
        let before = self
            .last_of(&entry.descriptor)
            .map(|last| self.compile(&last.descriptor, last.facts.as_ref(), last.epoch, &|_| None));
        let change = before.as_ref().and_then(|before| diff(before, &entry.version));
        self.announce_change(index, (before.as_ref(), change), command, stage).await
    }

    /// Announces a version with what is said to differ from the one before.
    pub(super) async fn announce_change<S: Services>(
        &mut self,
        index: usize,
        (before, mut change): (Option<&TableVersion>, Option<TableChange>),
        command: Option<&str>,
        stage: &mut Stage<S>,
    ) -> Result<(), Fault> {
        if let (Some(before), Some(change)) = (before, &mut change) {
            self.pass(index, (before, change), command, stage).await?;
        }
        let entry = self.entry(index)?;
        let plan = stage.plan_settings();
        let position = entry.place.commit.to_string();
        let mut origin = ControlOrigin {
            command,
            mode: plan.changes.of(&entry.version.table),
            ..self.control_origin(&position, entry.place, entry.provenance)
        };
        origin.acknowledged = plan.changes.lets_pass(&control_id(&origin, entry.version.native_id));
        let record = stage.control_record(&origin, (before, &entry.version), change.as_ref());
        let known = KnownVersion {
            epoch: entry.version.epoch,
            place: entry.place,
            descriptor: entry.descriptor.clone(),
            facts: entry.facts.clone(),
            types: self.types.user_defined(&type_oids(&entry.descriptor)),
        };
        let mut history = self.histories.get(&entry.descriptor.oid.0).cloned().unwrap_or_default();
        history.push(known);
        history.refused = None;
        history.told = stage.control_form();
        let TableId { namespace, name } = &entry.version.table;
        self.remember_filter(entry, &mut history);
        history.sight = self.sights.get(&entry.descriptor.oid.0).and_then(Sight::stored);
        if self.settings.row_filters.is_pushed(namespace, name)
            && let Some(listed) = self.listed.get(&entry.descriptor.oid.0)
        {
            history.pushed = Some(PushedDown::by(*listed));
        }
        stage.announce(&record, history.encode()?).await?;
        let entry = self.entry(index)?;
        let (oid, TableId { namespace, name }) =
            (entry.descriptor.oid.0, entry.version.table.clone());
        self.histories.insert(oid, history);
        if self.forget_mixed() {
            self.rebind(&namespace, &name);
        }
        Ok(())
    }
}

//! A version that differs from the one before: judged, announced, remembered.
//!
//! What differs is graded, held against the connector's policy, and told on the control topic together
//! with the state by which a restart knows it. **Invariants:** a change that is refused is judged before
//! anything of it is registered, and nothing of its version is remembered.

use super::super::retype::grade;
use super::super::state::{KnownVersion, PushedDown};
use super::{
    ControlOrigin, Entry, Services, Sight, Stage, TableId, Tables, control_id, control_record,
    type_oids,
};
use crate::change::{TableChange, TableVersion, diff};
use crate::error::Fault;
use crate::plan::{PlanSettings, unshown_changes};

impl Tables {
    /// Stops at a change that does not go on by itself, before anything of it is registered. A
    /// snapshot begins anew, whatever was before.
    pub(super) fn refuse_change(&self, index: usize, plan: &PlanSettings) -> Result<(), Fault> {
        let entry = self.entry(index)?;
        let Some(last) = self.last_of(&entry.descriptor).filter(|_| !entry.is_of_snapshot) else {
            return Ok(());
        };
        let facts = last.facts.as_ref();
        let before = self.compile(&last.descriptor, facts, last.epoch, &|_| None);
        let Some(mut change) = diff(&before, &entry.version) else { return Ok(()) };
        let unshown = unshown_changes(plan, &before, &entry.version)?;
        grade(&mut change, &before, &entry.version, &unshown);
        self.judge(entry, &change, plan)
    }

    /// Whether a change of a version goes on.
    fn judge(&self, entry: &Entry, change: &TableChange, plan: &PlanSettings) -> Result<(), Fault> {
        let position = entry.place.commit.to_string();
        let origin = self.control_origin(&position, entry.place, entry.provenance);
        let id = control_id(&origin, entry.version.native_id);
        plan.changes
            .judge(&id, &entry.version.table, change)
            .map_err(|fault| fault.at_position(format!("{position}, message {}", origin.sequence)))
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
        let entry = self.entry(index)?;
        let plan = stage.plan_settings();
        if let (Some(before), Some(change)) = (before, &mut change) {
            let unshown = unshown_changes(plan, before, &entry.version)?;
            grade(change, before, &entry.version, &unshown);
            if !entry.is_of_snapshot {
                self.judge(entry, change, plan)?;
            }
        }
        let position = entry.place.commit.to_string();
        let mut origin = ControlOrigin {
            command,
            mode: plan.changes.of(&entry.version.table),
            ..self.control_origin(&position, entry.place, entry.provenance)
        };
        origin.acknowledged = plan.changes.lets_pass(&control_id(&origin, entry.version.native_id));
        let record = control_record(&origin, before, &entry.version, change.as_ref());
        let known = KnownVersion {
            epoch: entry.version.epoch,
            place: entry.place,
            descriptor: entry.descriptor.clone(),
            facts: entry.facts.clone(),
            types: self.types.user_defined(&type_oids(&entry.descriptor)),
        };
        let mut history = self.histories.get(&entry.descriptor.oid.0).cloned().unwrap_or_default();
        history.push(known);
        let TableId { namespace, name } = &entry.version.table;
        history.filter = self.settings.row_filters.of(namespace, name).map(str::to_owned);
        history.sight = self.sights.get(&entry.descriptor.oid.0).and_then(Sight::stored);
        if self.settings.row_filters.is_pushed(namespace, name)
            && let Some(listed) = self.listed.get(&entry.descriptor.oid.0)
        {
            history.pushed = Some(PushedDown::by(*listed));
        }
        stage.announce(&record, history.encode()?).await?;
        let oid = self.entry(index)?.descriptor.oid.0;
        self.histories.insert(oid, history);
        Ok(())
    }
}

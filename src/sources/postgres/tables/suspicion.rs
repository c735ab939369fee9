//! Looks of the catalogue's probe → what is remembered of tables, and records of suspicions.
//!
//! A suspicion makes no version: nobody knows at which place it happened, only between which.
//! **Invariant:** what is remembered of a look and the record about it are committed together, so a
//! suspicion is told once.

use std::collections::HashMap;

use super::super::probe::{Look, Sight};
use super::{ControlOrigin, Lsn, Place, Provenance, Services, Stage, Tables};
use crate::change::{ChangeClass, Rewrite, TableChange};
use crate::error::Fault;

impl Tables {
    /// How tables looked last.
    pub(in crate::sources::postgres) fn sights(&self) -> HashMap<u32, Sight> {
        self.sights.clone()
    }

    /// Remembers a look, and tells what it makes suspect.
    ///
    /// # Errors
    /// Registry or broker refuse.
    pub(in crate::sources::postgres) async fn take_look<S: Services>(
        &mut self,
        look: Look,
        stage: &mut Stage<S>,
    ) -> Result<(), Fault> {
        let (oid, sight, suspicion) = match look {
            Look::Other { oid, sight, suspicion } => (oid, sight, suspicion),
            Look::Gone(departure) => return self.take_departure(departure, stage).await,
        };
        self.sights.insert(oid, sight.clone());
        // a table without a version is remembered with its first one
        let Some(history) = self.histories.get_mut(&oid) else { return Ok(()) };
        history.sight = sight.stored();
        let state = history.encode()?;
        let (Some((columns, after)), Some(known)) = (suspicion, history.newest().cloned()) else {
            stage.remember(state);
            return Ok(());
        };
        let is_lost = columns.iter().any(|one| one.class == ChangeClass::Destructive);
        let names: Vec<&str> = columns.iter().map(|one| one.column.as_str()).collect();
        tracing::warn!(
            table = known.descriptor.qualified_name(),
            columns = names.join(", "),
            after,
            before = sight.position,
            "{}",
            if is_lost {
                "a column was dropped and made anew under its name: what its rows had before is \
                 gone at the source, and no change says so"
            } else {
                "the table was probably rewritten: values of these columns may be others now, and \
                 no change says so"
            }
        );
        let change = TableChange {
            kind: "suspected",
            class: columns
                .iter()
                .map(|one| one.class)
                .fold(ChangeClass::Rewriting, ChangeClass::max),
            columns,
            rewrite: Some(Rewrite {
                changes_values: is_lost.then_some(true),
                reason: None,
                existing_rows: "values_unknown",
                recommended: "resnapshot",
                action: "warned",
            }),
        };
        let version = self.compile(&known.descriptor, known.facts.as_ref(), known.epoch, &|_| None);
        let place = Place { commit: sight.position.parse().unwrap_or(Lsn::ZERO), sequence: 0 };
        let origin = ControlOrigin {
            after_position: Some(&after),
            ..self.control_origin(&sight.position, place, Provenance::Catalogue)
        };
        let record = stage.control_record(&origin, (Some(&version), &version), Some(&change));
        stage.announce(&record, state).await
    }
}

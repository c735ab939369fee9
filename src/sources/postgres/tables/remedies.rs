//! What mends a row filter that is not the one by which rows were published.
//!
//! Texts for people. Knows no stream, asks nobody. **Invariant:** no way is named that would be
//! refused where the table stands now; what has to come first is said first.

use super::super::Settings;
use super::super::connection::identifier;
use super::super::row_filter::Pushdown;
use super::super::settings::SnapshotMode;
use super::super::state::{PushedDown, TableHistory};
use super::super::wire::Lsn;
use super::RelationDescriptor;

/// How a filter is applied.
fn apply(can_resnapshot: bool) -> String {
    let or_looked_for = if can_resnapshot { " or {\"mode\": \"resnapshot\"}" } else { "" };
    format!(
        "PUT /connectors/{{name}}/stop, PUT /connectors/{{name}}/row-filters with \
         {{\"mode\": \"from_now\"}}{or_looked_for}, PUT /connectors/{{name}}/resume"
    )
}

/// What of a table's past decides how another filter comes to be applied.
#[derive(Clone, Copy)]
pub(super) struct Past<'a> {
    pub(super) history: &'a TableHistory,
    /// How far the stream was read.
    pub(super) read: Option<Lsn>,
    /// Rows can be told anew, as far as the table decides that.
    pub(super) can_resnapshot: bool,
}

impl Past<'_> {
    /// What the server left out, as far as that is not read yet.
    pub(super) fn pushed(&self) -> Option<PushedDown> {
        let pushed = self.history.pushed?;
        let is_read = self.read.is_some_and(|read| pushed.until <= read);
        (!is_read).then_some(pushed)
    }
}

/// What to do about a filter that is another one now.
pub(super) fn of_changed(settings: &Settings, past: Past<'_>) -> String {
    let restored = restored(past.history);
    if let Some(pushed) = past.pushed() {
        return of_pushed(settings, past, pushed);
    }
    if settings.snapshot_mode == SnapshotMode::InitialOnly {
        return format!(
            "{restored}, and restart the task; or delete the connector's offsets and begin anew, with \
             new topics."
        );
    }
    let apply = apply(past.can_resnapshot);
    if settings.row_filters.pushdown == Pushdown::Publication {
        return format!(
            "{restored}; or apply the new filter first and let the publication have it then: set \
             row.filter.pushdown=none (on a publication without filters), {apply}; then see \
             docs/filters.md, \"From one way to the other\"."
        );
    }
    format!("{restored}, and restart the task; or apply the new filter: {apply}.")
}

/// The way to another filter where the publication left rows out by the one of before.
pub(super) fn of_pushed(settings: &Settings, past: Past<'_>, pushed: PushedDown) -> String {
    let restored = restored(past.history);
    let apply = apply(past.can_resnapshot);
    let begin = "Or delete the connector's offsets and begin anew, with new topics.";
    let read = if pushed.lasts() {
        "when that is read (GET /connectors/{name}/offsets has passed what \
         pg_current_wal_lsn() was when the task began)"
            .to_owned()
    } else {
        format!("when GET /connectors/{{name}}/offsets has reached {}", pushed.until)
    };
    let first = if pushed.lasts() {
        format!(
            "{restored}; or, to apply the new one, in this order: PUT /connectors/{{name}}/stop; {}; \
             set row.filter.pushdown=none with the filter of before; PUT /connectors/{{name}}/resume",
            unfiltered(settings)
        )
    } else {
        format!("In this order: {restored}, and let the task run (PUT /connectors/{{name}}/resume)")
    };
    format!("{first}; {read}, set the new filter, and {apply}. {begin}")
}

/// How a publication comes to filter nothing.
pub(in crate::sources::postgres) fn unfiltered(settings: &Settings) -> String {
    format!(
        "take the row filters out of the publication (ALTER PUBLICATION {} SET TABLE …, with all its \
         tables and without WHERE)",
        identifier(&settings.publication_name)
    )
}

fn restored(history: &TableHistory) -> String {
    let name = history.newest().map_or_else(String::new, |one| {
        let RelationDescriptor { namespace, name, .. } = &one.descriptor;
        format!("{namespace}.{name}")
    });
    match &history.filter {
        Some(_) => format!("Restore row.filter.{name}"),
        None => format!("Remove row.filter.{name}"),
    }
}

//! What a changed definition means for the rows that were published before, and what mends it.
//!
//! For changes of which the source says nothing itself ([`TableChange::rewrite`]). Knows no database.
//! **Invariant:** what is not known is not said: a field is `None` then.

use super::diff::{ChangeClass, TableChange};
use super::table::{ColumnDefault, TableVersion};

/// What becomes of rows that were there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Consequence {
    /// Whether the source wrote them anew: `yes`, `no` or `unknown`.
    pub rewrites: Option<&'static str>,
    /// What it means for what was published: `unaffected`, `recast_deterministic`,
    /// `default_not_replayed` or `values_unknown`.
    pub existing_rows: Option<&'static str>,
    /// What mends it: `none`, `recast`, `drain` or `resnapshot`.
    pub recommended: Option<&'static str>,
}

/// Graver ones last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    /// Values stay as they are.
    None,
    /// New columns have their default in rows that were there, and no change says so.
    Default,
    /// The values are computed from those that were there, as anybody can.
    Recast,
    /// Values may be others, and no schema shows it.
    Unshown,
    /// New columns have values that the schema does not show.
    Computed,
    /// Values are others, and nobody can compute them.
    Unknown,
}

impl Effect {
    const fn says(self, is_rewritten: &'static str) -> Consequence {
        let (existing_rows, recommended) = match self {
            Self::None => ("unaffected", "none"),
            Self::Default => ("default_not_replayed", "recast"),
            Self::Recast => ("recast_deterministic", "recast"),
            Self::Unshown => ("values_unknown", "drain"),
            Self::Computed => ("default_not_replayed", "resnapshot"),
            Self::Unknown => ("values_unknown", "resnapshot"),
        };
        Consequence {
            rewrites: Some(is_rewritten),
            existing_rows: Some(existing_rows),
            recommended: Some(recommended),
        }
    }
}

/// What a change means. `command`: the one that made it, as whoever tells of each rewrite calls it: then
/// there was none. `None`: it is known from what it left only.
pub fn consequence(
    change: &TableChange,
    after: &TableVersion,
    command: Option<&str>,
) -> Consequence {
    let tells_rewrites = command.is_some();
    let has = |kind| change.columns.iter().any(|one| one.kind == kind);
    // the source does not say what was done to it
    if has("type altered") {
        return Consequence::default();
    }
    let mut effect = match change.kind {
        "recreated" => Effect::Unknown,
        _ => Effect::None,
    };
    let mut is_rewritten = false;
    for one in &change.columns {
        let own = match one.kind {
            "added" | "replaced" => of_new_column(after, &one.column),
            "retyped" => of_class(one.class),
            // made where it is, so without rows
            "partition added" if command == Some("CREATE TABLE") => Effect::None,
            "partition added" | "partition removed" | "unlogged" => Effect::Unknown,
            _ => Effect::None,
        };
        is_rewritten |= one.kind == "retyped" && matches!(own, Effect::Recast);
        effect = effect.max(own);
    }
    // one that went and one that came may be one with another name
    if !tells_rewrites && has("dropped") && has("added") {
        effect = Effect::Unknown;
    }
    effect.says(match effect {
        _ if tells_rewrites => "no",
        _ if is_rewritten => "yes",
        Effect::None => "no",
        _ => "unknown",
    })
}

fn of_class(class: ChangeClass) -> Effect {
    match class {
        ChangeClass::Compatible => Effect::None,
        ChangeClass::Invisible | ChangeClass::Reinterpreted => Effect::Unshown,
        _ => Effect::Recast,
    }
}

fn of_new_column(after: &TableVersion, name: &str) -> Effect {
    let column = after.columns.iter().find(|column| column.name == name);
    match column.and_then(|column| column.default.as_ref()) {
        None => Effect::None,
        Some(ColumnDefault::Literal(_)) => Effect::Default,
        Some(ColumnDefault::Computed) => Effect::Computed,
    }
}

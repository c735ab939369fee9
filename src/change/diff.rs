//! What differs between two versions of a table, keyed by column name.
//!
//! Compares only what a stream says (name, type, modifier, identity), never what the catalogue
//! adds: defaults and nullability of *now* must not look like changes of *then*.

use super::table::TableVersion;

/// How grave a change is for those who read the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeClass {
    /// The first description of a table.
    Baseline,
    /// New columns only.
    Additive,
    /// Defaults, nullability, types that hold more: the values that are there stay as they are.
    Compatible,
    /// A type or modifier changed.
    Retyped,
    /// Columns that are known to have another name and to be the same.
    Renamed,
    /// Rows were written anew by the definition's change, and the stream does not show them.
    Rewriting,
    /// The values that are there mean something else.
    Reinterpreted,
    /// Values that are there may be others, and the published schema is the same.
    Invisible,
    /// Parts of the table came or went, with the rows that they have.
    Topology,
    /// Columns went (a rename looks like one that went and one that came).
    Destructive,
    /// The identity by which rows are told changed.
    Identity,
    /// The relation was renamed, moved or recreated.
    Relation,
}

impl ChangeClass {
    /// The word in a control record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Additive => "additive",
            Self::Compatible => "compatible",
            Self::Retyped => "retyped",
            Self::Renamed => "renamed",
            Self::Rewriting => "rewriting",
            Self::Reinterpreted => "reinterpretation",
            Self::Invisible => "projection_invisible",
            Self::Topology => "topology",
            Self::Destructive => "destructive",
            Self::Identity => "identity",
            Self::Relation => "relation",
        }
    }
}

/// One difference in one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnChange {
    /// The column; empty for what is said of the whole table.
    pub column: String,
    /// `added`, `dropped`, `retyped` or `identity`; where the source says more of definitions also
    /// `renamed`, `replaced`, `default`, `nullability`, `generated`, `rewritten`, `partition added`,
    /// `partition removed` or `unlogged`.
    pub kind: &'static str,
    /// The earlier type or flag.
    pub from: Option<String>,
    /// The later type or flag.
    pub to: Option<String>,
    /// Its class.
    pub class: ChangeClass,
}

/// All differences between two versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableChange {
    /// `renamed`, `recreated`, `identity` or `observed`; where the source tells of definitions also
    /// `ddl_captured`, `topology`, `dropped` or `suspected`.
    pub kind: &'static str,
    /// The gravest class among them.
    pub class: ChangeClass,
    /// Column by column.
    pub columns: Vec<ColumnChange>,
    /// What became of the rows that were there, if the source says so.
    pub rewrite: Option<Rewrite>,
}

/// What a change of the definition did to rows that were there, beside the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// Whether values of rows may be others than before; `None`: it is not known.
    pub changes_values: Option<bool>,
    /// Why the source wrote them anew, in its own words.
    pub reason: Option<String>,
    /// What it means for what was published: `unaffected`, `default_not_replayed` or
    /// `values_unknown`.
    pub existing_rows: &'static str,
    /// What mends it: `none`, `drain` or `resnapshot`.
    pub recommended: &'static str,
    /// What was done: `forwarded`, `warned` or `resnapshot`.
    pub action: &'static str,
}

/// Compares two versions; `None` if the stream says the same of both.
pub fn diff(before: &TableVersion, after: &TableVersion) -> Option<TableChange> {
    if before.fingerprint == after.fingerprint && key_names(before) == key_names(after) {
        return None;
    }
    let mut columns = Vec::new();
    for old in &before.columns {
        match after.columns.iter().find(|new| new.name == old.name) {
            None => columns.push(ColumnChange {
                column: old.name.clone(),
                kind: "dropped",
                from: Some(old.native.name.clone()),
                to: None,
                class: ChangeClass::Destructive,
            }),
            Some(new) => {
                if (old.native.id, old.native.modifier) != (new.native.id, new.native.modifier) {
                    columns.push(ColumnChange {
                        column: old.name.clone(),
                        kind: "retyped",
                        from: Some(old.native.name.clone()),
                        to: Some(new.native.name.clone()),
                        class: ChangeClass::Retyped,
                    });
                }
                if old.identity != new.identity {
                    columns.push(ColumnChange {
                        column: old.name.clone(),
                        kind: "identity",
                        from: Some(old.identity.to_string()),
                        to: Some(new.identity.to_string()),
                        class: ChangeClass::Identity,
                    });
                }
            }
        }
    }
    columns.extend(
        after
            .columns
            .iter()
            .filter(|new| before.columns.iter().all(|old| old.name != new.name))
            .map(|new| ColumnChange {
                column: new.name.clone(),
                kind: "added",
                from: None,
                to: Some(new.native.name.clone()),
                class: ChangeClass::Additive,
            }),
    );
    Some(summarize(before, after, columns))
}

/// The columns by which records are keyed. Where old rows are sent whole, the stream does not say.
fn key_names(version: &TableVersion) -> Vec<&str> {
    let name = |index: &usize| version.columns.get(*index).map(|column| column.name.as_str());
    version.key.iter().filter_map(name).collect()
}

fn summarize(
    before: &TableVersion,
    after: &TableVersion,
    columns: Vec<ColumnChange>,
) -> TableChange {
    let (kind, own_class) = if before.native_id != after.native_id {
        ("recreated", ChangeClass::Relation)
    } else if before.table != after.table {
        ("renamed", ChangeClass::Relation)
    } else if before.identity != after.identity || key_names(before) != key_names(after) {
        ("identity", ChangeClass::Identity)
    } else {
        ("observed", ChangeClass::Additive)
    };
    let class = columns.iter().map(|change| change.class).fold(own_class, ChangeClass::max);
    TableChange { kind, class, columns, rewrite: None }
}

//! `schema.changes`: which changes of a table's definition go on by themselves, and which only when
//! an operator says so.
//!
//! Asked before the first row of a new shape. Knows no database: what a change is, is said in its
//! classes. **Invariant:** a change that stops is let pass by its own id and by nothing else.

use std::collections::BTreeMap;

use super::columns::published_columns;
use super::settings::PlanSettings;
use crate::change::{ChangeClass, ColumnChange, TableChange, TableId, TableVersion};
use crate::error::{Code, Fault};
use crate::record::Schema;

/// What becomes of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangeMode {
    /// They are announced, and rows go on.
    #[default]
    Forward,
    /// They stop the task.
    Refuse,
}

impl ChangeMode {
    /// The word in configurations and control records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Refuse => "refuse",
        }
    }

    /// Reads the word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Forward, Self::Refuse].into_iter().find(|mode| mode.as_str() == word)
    }
}

/// `schema.changes` with its exceptions.
#[derive(Clone, Debug)]
pub struct ChangePolicy {
    /// Where no exception names the table.
    pub default: ChangeMode,
    /// By `schema.table`.
    pub tables: BTreeMap<String, ChangeMode>,
    /// What becomes of changes by which records are keyed by other columns.
    pub keys: ChangeMode,
    /// What becomes of tables that get another name.
    pub renames: ChangeMode,
    /// The ids of the changes that an operator lets pass.
    pub acknowledged: Vec<String>,
}

impl Default for ChangePolicy {
    fn default() -> Self {
        Self {
            default: ChangeMode::Forward,
            tables: BTreeMap::new(),
            keys: ChangeMode::Refuse,
            renames: ChangeMode::Forward,
            acknowledged: Vec::new(),
        }
    }
}

impl ChangePolicy {
    /// What becomes of a table's changes.
    pub fn of(&self, table: &TableId) -> ChangeMode {
        if self.tables.is_empty() {
            return self.default;
        }
        self.tables.get(&table.to_string()).copied().unwrap_or(self.default)
    }

    /// Whether an operator lets a change pass.
    pub fn lets_pass(&self, id: &str) -> bool {
        self.acknowledged.iter().any(|one| one == id)
    }

    /// Sees whether a change goes on. `names` are the table's before and after it, `key` what became
    /// of the columns by which its records are keyed, if they are others.
    ///
    /// # Errors
    /// It stops until it is acknowledged under this id.
    pub fn judge(
        &self,
        id: &str,
        names: (&TableId, &TableId),
        change: &TableChange,
        key: Option<&str>,
    ) -> Result<(), Fault> {
        let (former, table) = names;
        let objection = self.objection(names, change, key.is_some());
        let Some((code, why)) = objection.filter(|_| !self.lets_pass(id)) else {
            return Ok(());
        };
        let renamed = (former != table).then(|| format!("renamed: {former} → {table}"));
        let what: Vec<String> = renamed
            .into_iter()
            .chain(key.map(str::to_owned))
            .chain(
                change
                    .columns
                    .iter()
                    .filter(|one| one.kind != "renamed" || !one.column.is_empty())
                    .map(describe),
            )
            .collect();
        let what = if what.is_empty() { change.kind.to_owned() } else { what.join("; ") };
        Err(code
            .fault(format!("the definition of \"{table}\" changed ({what}), and {why}"))
            .at_table(table.to_string())
            .hint(format!(
                "Stop what writes to the table, apply the change downstream as well, then let this \
                 one pass: {}; see docs/schema-changes.md.",
                self.call(id)
            )))
    }

    /// The call by which an operator lets a change pass; what passed before still does.
    pub fn call(&self, id: &str) -> String {
        let ids: Vec<&str> = self.acknowledged.iter().map(String::as_str).chain([id]).collect();
        let ids = ids.join(",");
        format!("PATCH /connectors/{{name}}/config {{\"schema.changes.acknowledged\": \"{ids}\"}}")
    }

    fn objection(
        &self,
        (former, table): (&TableId, &TableId),
        change: &TableChange,
        is_rekeyed: bool,
    ) -> Option<(Code, &'static str)> {
        let has = |class| change.columns.iter().any(|column| column.class == class);
        if has(ChangeClass::Invisible) {
            let why = "values that were published may be others now, and no published schema shows \
                       it";
            return Some((Code::SchemaProjectionInvisible, why));
        }
        if has(ChangeClass::Reinterpreted) {
            let why = "the values that are there mean something else now";
            return Some((Code::SchemaReinterpreted, why));
        }
        if is_rekeyed && self.keys == ChangeMode::Refuse {
            let why = "what was published under earlier keys stays there";
            return Some((Code::SchemaKeyChanged, why));
        }
        if change.kind == "renamed" && self.renames == ChangeMode::Refuse {
            return Some((Code::SchemaRenamed, "schema.rename.action=refuse"));
        }
        // a table does not leave its own rule by leaving its name
        let is_refused = [former, table].iter().any(|one| self.of(one) == ChangeMode::Refuse);
        is_refused.then_some((Code::SchemaChanged, "schema.changes=refuse"))
    }
}

fn describe(change: &ColumnChange) -> String {
    let ColumnChange { column, kind, from, to, .. } = change;
    match (from, to) {
        (Some(from), Some(to)) => format!("{column} {kind}: {from} → {to}"),
        (Some(one), None) | (None, Some(one)) => format!("{column} {kind}: {one}"),
        (None, None) => format!("{column} {kind}"),
    }
}

/// What became of the columns by which records are keyed, if they are others. Their order and types
/// are judged with the columns.
pub fn changed_key(before: &TableVersion, after: &TableVersion) -> Option<String> {
    let names = |version: &TableVersion| -> Vec<String> {
        let columns = version.key.iter().filter_map(|index| version.columns.get(*index));
        columns.map(|column| column.name.clone()).collect()
    };
    let (old, new) = (names(before), names(after));
    let is_same = old.len() == new.len() && old.iter().all(|name| new.contains(name));
    (!is_same).then(|| format!("key: ({}) → ({})", old.join(", "), new.join(", ")))
}

/// The columns whose type or modifier is another one, and whose published schema is not.
///
/// # Errors
/// A version cannot be published.
pub fn unshown_changes(
    settings: &PlanSettings,
    before: &TableVersion,
    after: &TableVersion,
) -> Result<Vec<String>, Fault> {
    let is_retyped = before.columns.iter().any(|old| {
        let new = after.columns.iter().find(|new| new.name == old.name);
        new.is_some_and(|new| new.native != old.native)
    });
    if !is_retyped {
        return Ok(Vec::new());
    }
    // nullability and defaults are not of the type
    let bare = |schema: &Schema| Schema { optional: true, default: None, ..schema.clone() };
    let (old, new) = (published_columns(before, settings)?, published_columns(after, settings)?);
    let new: BTreeMap<&str, &Schema> = after
        .columns
        .iter()
        .zip(&new)
        .map(|(column, published)| (column.name.as_str(), &*published.schema))
        .collect();
    let pairs = before.columns.iter().zip(&old);
    Ok(pairs
        .filter_map(|(column, old)| {
            let now = new.get(column.name.as_str())?;
            (bare(&old.schema) == bare(now)).then(|| column.name.clone())
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "1:s:7:0/10:2";

    fn change(class: ChangeClass) -> TableChange {
        let column = ColumnChange {
            column: "v".to_owned(),
            kind: "retyped",
            from: Some("interval".to_owned()),
            to: Some("interval(0)".to_owned()),
            class,
        };
        TableChange { kind: "observed", class, columns: vec![column], rewrite: None }
    }

    #[track_caller]
    fn check(mode: ChangeMode, acknowledged: &[&str], class: ChangeClass, expect: Option<Code>) {
        let policy = ChangePolicy {
            default: mode,
            acknowledged: acknowledged.iter().map(|id| (*id).to_owned()).collect(),
            ..ChangePolicy::default()
        };
        let table = TableId { namespace: "public".to_owned(), name: "t".to_owned() };
        let judged = policy.judge(ID, (&table, &table), &change(class), None);
        assert_eq!(judged.as_ref().err().map(Fault::code), expect);
        if let Err(fault) = judged {
            let text = fault.to_string();
            assert!(text.contains(ID) && text.contains("interval(0)"), "{text}");
        }
    }

    #[test]
    fn a_change_passes_by_its_mode_or_by_its_own_name() {
        use ChangeMode::{Forward, Refuse};
        check(Forward, &[], ChangeClass::Additive, None);
        check(Refuse, &[], ChangeClass::Additive, Some(Code::SchemaChanged));
        check(Refuse, &["1:s:7:0/10:1"], ChangeClass::Additive, Some(Code::SchemaChanged));
        check(Refuse, &["x", ID], ChangeClass::Additive, None);
        for mode in [Forward, Refuse] {
            check(mode, &[], ChangeClass::Invisible, Some(Code::SchemaProjectionInvisible));
            check(mode, &[], ChangeClass::Reinterpreted, Some(Code::SchemaReinterpreted));
            check(mode, &[ID], ChangeClass::Invisible, None);
        }
    }

    #[test]
    fn other_keys_and_other_names_have_actions_of_their_own() {
        use ChangeMode::{Forward, Refuse};
        let table = TableId { namespace: "public".to_owned(), name: "t".to_owned() };
        let check = |keys, renames, is_rekeyed: bool, kind, expect: Option<Code>| {
            let policy = ChangePolicy { keys, renames, ..ChangePolicy::default() };
            let change = TableChange { kind, columns: Vec::new(), ..change(ChangeClass::Relation) };
            let key = is_rekeyed.then_some("key: (id) → ()");
            let judged = policy.judge(ID, (&table, &table), &change, key);
            assert_eq!(judged.as_ref().err().map(Fault::code), expect);
            let text = judged.err().map(|fault| fault.to_string()).unwrap_or_default();
            assert_eq!(text.contains("key: (id) → ()"), is_rekeyed && expect.is_some(), "{text}");
        };
        check(Refuse, Forward, true, "identity", Some(Code::SchemaKeyChanged));
        check(Refuse, Forward, false, "identity", None);
        check(Forward, Forward, true, "identity", None);
        check(Refuse, Forward, true, "recreated", Some(Code::SchemaKeyChanged));
        check(Refuse, Forward, false, "renamed", None);
        check(Forward, Refuse, false, "renamed", Some(Code::SchemaRenamed));
        check(Forward, Refuse, false, "recreated", None);
    }

    #[test]
    fn a_table_does_not_leave_its_own_rule_by_leaving_its_name() {
        let named = |name: &str| TableId { namespace: "public".to_owned(), name: name.to_owned() };
        let tables = BTreeMap::from([("public.t".to_owned(), ChangeMode::Refuse)]);
        let policy = ChangePolicy { tables, ..ChangePolicy::default() };
        let change =
            TableChange { kind: "renamed", columns: Vec::new(), ..change(ChangeClass::Relation) };
        let (old, new) = (named("t"), named("u"));
        let fault = policy.judge(ID, (&old, &new), &change, None).unwrap_err();
        assert_eq!(fault.code(), Code::SchemaChanged);
        assert!(fault.to_string().contains("public.t → public.u"), "{fault}");
        policy.judge(ID, (&new, &new), &change, None).unwrap();
    }

    #[test]
    fn a_key_is_another_one_by_its_columns() {
        use crate::change::ColumnType;
        use crate::plan::testing::{column, required, table};
        let keyed = |key: &[usize]| {
            let columns = vec![required("id", ColumnType::Int32), column("a", ColumnType::Int32)];
            TableVersion { key: key.to_vec(), ..table("t", columns) }
        };
        assert_eq!(changed_key(&keyed(&[0]), &keyed(&[0])), None);
        assert_eq!(changed_key(&keyed(&[0, 1]), &keyed(&[1, 0])), None);
        assert_eq!(changed_key(&keyed(&[]), &keyed(&[])), None);
        let changed = |old: &[usize], new: &[usize]| changed_key(&keyed(old), &keyed(new));
        assert_eq!(changed(&[0], &[]).as_deref(), Some("key: (id) → ()"));
        assert_eq!(changed(&[0], &[1]).as_deref(), Some("key: (id) → (a)"));
        assert_eq!(changed(&[0], &[0, 1]).as_deref(), Some("key: (id) → (id, a)"));
    }

    #[test]
    fn a_table_can_be_an_exception() {
        let table = |name: &str| TableId { namespace: "public".to_owned(), name: name.to_owned() };
        let policy = ChangePolicy {
            tables: BTreeMap::from([("public.t".to_owned(), ChangeMode::Refuse)]),
            ..ChangePolicy::default()
        };
        assert_eq!(policy.of(&table("t")), ChangeMode::Refuse);
        assert_eq!(policy.of(&table("u")), ChangeMode::Forward);
    }
}

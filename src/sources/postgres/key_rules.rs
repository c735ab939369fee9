//! `message.key.columns`: other columns than the table's own key as record keys.
//!
//! Read once from the configuration, asked once per table version. **Invariants:** the first rule
//! that names a table holds; a column that a rule names and the table does not have is a fault,
//! never a shorter key; a deferrable primary key is a fault as well.

use regex::Regex;

use super::catalogue::TableFacts;
use crate::change::TableVersion;
use crate::config::parse_patterns;
use crate::error::{Code, Fault};

/// Which tables are keyed by which columns.
#[derive(Clone, Debug, Default)]
pub struct KeyRules(Vec<KeyRule>);

#[derive(Clone, Debug)]
struct KeyRule {
    tables: Vec<Regex>,
    columns: Vec<String>,
}

impl KeyRules {
    /// Reads `<tables>:<column>,<column>;<tables>:…`. The colon before the columns is the last one,
    /// for expressions have colons too.
    ///
    /// # Errors
    /// What is wrong, in a few words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rules = text.split(';').map(str::trim).filter(|rule| !rule.is_empty());
        rules.map(KeyRule::parse).collect::<Result<_, _>>().map(Self)
    }

    /// The key columns' indexes in a version, if a rule names its table and the table has them all.
    pub(super) fn key(&self, version: &TableVersion) -> Option<Vec<usize>> {
        self.rule(version)?.columns.iter().map(|name| place(version, name)).collect()
    }

    /// Sees that the table has the columns that a rule names, and that they are no key of which two
    /// rows may have the same for a while: told as deletes and creates in the order in which they
    /// were changed, rows that exchange their keys would lose one.
    ///
    /// # Errors
    /// [`Code::ColumnRuleUnfit`] names the column that is missing, or the deferrable key.
    pub(super) fn check(
        &self,
        version: &TableVersion,
        facts: Option<&TableFacts>,
    ) -> Result<(), Fault> {
        let Some(KeyRule { columns, .. }) = self.rule(version) else { return Ok(()) };
        let unfit = |why: String| Code::ColumnRuleUnfit.fault(why);
        if let Some(missing) = columns.iter().find(|name| place(version, name).is_none()) {
            let why =
                format!("message.key.columns names the column '{missing}', which is not there");
            return Err(unfit(why).at_table(version.table.to_string()));
        }
        let primary = facts.and_then(|facts| facts.primary_key.as_ref());
        match primary.filter(|key| !key.is_immediate) {
            Some(key) if key.columns.iter().all(|name| columns.contains(name)) => {
                let key = key.columns.join(", ");
                Err(unfit(format!(
                    "message.key.columns names the primary key ({key}), which is deferrable: rows \
                     that exchange their keys in one statement would be lost for readers by key"
                ))
                .hint(
                    "Make the key one that is not deferrable, or name the columns of another one; \
                     without message.key.columns the records have no key.",
                )
                .at_table(version.table.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn rule(&self, version: &TableVersion) -> Option<&KeyRule> {
        let name = version.table.to_string();
        self.0.iter().find(|rule| rule.tables.iter().any(|pattern| pattern.is_match(&name)))
    }
}

impl KeyRule {
    fn parse(text: &str) -> Result<Self, String> {
        let (tables, columns) = text
            .rsplit_once(':')
            .ok_or("must be <tables>:<column>,<column>, several of them separated by semicolons")?;
        let tables = parse_patterns(tables)?;
        let columns: Vec<_> = columns.split(',').map(|name| name.trim().to_owned()).collect();
        if tables.is_empty() || columns.iter().any(String::is_empty) {
            return Err("names no table or no column in one of its parts".to_owned());
        }
        let repeated = (1..columns.len()).find_map(|at| {
            columns.get(at).filter(|name| columns.iter().take(at).any(|c| c == *name))
        });
        match repeated {
            Some(name) => Err(format!("names the column {name} twice")),
            None => Ok(Self { tables, columns }),
        }
    }
}

fn place(version: &TableVersion, name: &str) -> Option<usize> {
    version.columns.iter().position(|column| column.name == *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deferrable_primary_key_is_no_record_key() {
        use crate::sources::postgres::table_version::tests as tables;
        let mut facts = tables::facts();
        let version = tables::whole(&facts);
        let told = |rule: &str, facts: &TableFacts| {
            let checked = KeyRules::parse(rule).unwrap().check(&version, Some(facts));
            checked.err().map(|fault| fault.to_string())
        };
        assert_eq!(told("public.t:a,b", &facts), None);
        facts.primary_key.iter_mut().for_each(|key| key.is_immediate = false);
        for rule in ["public.t:a,b", "public.t:c,b,a"] {
            let fault = told(rule, &facts).unwrap();
            assert!(fault.contains("(b, a), which is deferrable"), "{fault}");
        }
        assert_eq!(told("public.t:a,c", &facts), None, "rows share such a key anyway");
        assert_eq!(told("public.u:a,b", &facts), None);
    }

    #[track_caller]
    fn check(text: &str, expect: Result<&[(&str, &[&str])], &str>) {
        let parsed = KeyRules::parse(text);
        let rules = parsed.as_ref().map(|rules| {
            let columns = |rule: &KeyRule| rule.columns.clone();
            rules.0.iter().map(|rule| (rule.tables[0].as_str(), columns(rule))).collect::<Vec<_>>()
        });
        let expect = expect.map(|rules| {
            let columns =
                |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
            rules.iter().map(|(table, names)| (*table, columns(names))).collect::<Vec<_>>()
        });
        assert_eq!(rules.map_err(String::as_str), expect);
    }

    #[test]
    fn rules_are_tables_and_columns() {
        check("", Ok(&[]));
        check("public.t:a , b", Ok(&[("^(?:public.t)$", &["a", "b"])]));
        check(
            r"public\.(t|u):a;(?:shop)\..*:id;",
            Ok(&[(r"^(?:public\.(t|u))$", &["a"]), (r"^(?:(?:shop)\..*)$", &["id"])]),
        );
        check(
            "public.t",
            Err("must be <tables>:<column>,<column>, several of them separated by semicolons"),
        );
        check("public.t:a,", Err("names no table or no column in one of its parts"));
        check(":a", Err("names no table or no column in one of its parts"));
        check("t:a,b,a", Err("names the column a twice"));
    }
}

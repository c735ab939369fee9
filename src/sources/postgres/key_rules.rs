//! `message.key.columns`: other columns than the table's own key as record keys.
//!
//! Read once from the configuration, asked once per table version. **Invariant:** the first rule
//! that names a table holds; a column that a rule names and the table does not have is a fault,
//! never a shorter key.

use regex::Regex;

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

    /// Sees that the table has the columns that a rule names.
    ///
    /// # Errors
    /// [`Code::ColumnRuleUnfit`] names the column that is missing.
    pub(super) fn check(&self, version: &TableVersion) -> Result<(), Fault> {
        let columns = self.rule(version).map_or(&[][..], |rule| &rule.columns);
        match columns.iter().find(|name| place(version, name).is_none()) {
            Some(missing) => Err(Code::ColumnRuleUnfit
                .fault(format!(
                    "message.key.columns names the column '{missing}', which is not there"
                ))
                .at_table(version.table.to_string())),
            None => Ok(()),
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

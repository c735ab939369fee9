//! What a validation request is answered with, as plain structures; `rest` writes them down.
//!
//! The form is Kafka Connect's: a definition and a value with its errors for each key. Knows no
//! HTTP. **Invariant:** an answer has every fault that a create request would be refused for, and
//! shows no secret.

use super::catalogue::Catalogue;
use super::connector::{self, ConnectorConfig, check};
use super::fault::ConfigFault;
use super::key::{KeyDef, Kind, Presence, Rule, Status};
use super::transforms;
use super::values::is_secret;
use super::worker::WorkerConfig;

/// What stands for a secret, as in Kafka.
const HIDDEN: &str = "[hidden]";

/// The answer to a validation request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validation {
    /// How many faults there are.
    pub error_count: usize,
    /// The groups in order.
    pub groups: Vec<&'static str>,
    /// Every key that can be set, and every submitted one.
    pub configs: Vec<ConfigInfo>,
    /// What to know, though nothing is wrong.
    pub notes: Vec<String>,
}

impl Validation {
    /// Adds a fault that only the live services could tell to the key that it is about.
    pub fn blame(&mut self, key: &str, error: String) {
        self.error_count += 1;
        match self.configs.iter_mut().find(|info| info.value.name == key) {
            Some(info) => info.value.errors.push(error),
            None => self.configs.push(ConfigInfo {
                definition: None,
                value: ConfigValue {
                    name: key.to_owned(),
                    value: None,
                    recommended_values: Vec::new(),
                    errors: vec![error],
                },
            }),
        }
    }
}

/// One key of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigInfo {
    /// What the key is; `None`: it is not known.
    pub definition: Option<Definition>,
    /// What was submitted for it.
    pub value: ConfigValue,
}

/// What a key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// BOOLEAN, STRING, …
    pub kind: &'static str,
    /// Whether it must be given.
    pub required: bool,
    /// Its default.
    pub default_value: Option<&'static str>,
    /// HIGH, MEDIUM, LOW.
    pub importance: &'static str,
    /// What it is for, or why it has no effect.
    pub documentation: String,
    /// Its group.
    pub group: &'static str,
    /// Its place in the group, from 1.
    pub order: usize,
    /// SHORT, MEDIUM, LONG.
    pub width: &'static str,
    /// Its name for people.
    pub display_name: String,
}

/// What was submitted for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigValue {
    /// The key's name.
    pub name: String,
    /// The value as submitted, or the default; a secret is masked.
    pub value: Option<String>,
    /// Values to choose from.
    pub recommended_values: Vec<&'static str>,
    /// What is wrong.
    pub errors: Vec<String>,
}

/// Checks a configuration and describes every key.
pub fn validate(config: &ConnectorConfig, worker: &WorkerConfig) -> Validation {
    let (values, _) = check(config, worker);
    let catalogue = connector::catalogue_of(config);
    let mut configs = Vec::new();
    for_each_definition(&catalogue, |def, definition| {
        let name = definition.name.clone();
        let submitted = config.get(&name).and_then(Option::as_deref);
        let value = value(Some(def), &name, submitted, values.faults());
        configs.push(ConfigInfo { definition: Some(definition), value });
    });
    let submitted = config.iter().map(|(key, value)| (key.as_str(), value.as_deref()));
    // Faults may name keys that were not submitted.
    let blamed = values.faults().iter().map(|fault| (fault.key.as_str(), None));
    for (key, submitted) in submitted.chain(blamed) {
        let is_listed = configs.iter().any(|info: &ConfigInfo| info.value.name == key);
        let def = catalogue.find(key);
        let is_known_null =
            def.is_some() && submitted.is_none() && !is_blamed(values.faults(), key);
        if is_listed || is_known_null {
            continue;
        }
        let definition = def.map(|def| define(def, key.to_owned(), group_of(&catalogue, def), 0));
        configs.push(ConfigInfo { definition, value: value(def, key, submitted, values.faults()) });
    }
    for (key, def) in transforms::offered(config) {
        if configs.iter().all(|info| info.value.name != key) {
            let definition = define(def, key.clone(), group_of(&catalogue, def), 0);
            let value = value(Some(def), &key, None, values.faults());
            configs.push(ConfigInfo { definition: Some(definition), value });
        }
    }
    Validation {
        error_count: values.faults().len(),
        groups: catalogue.tables().iter().map(|table| table.group).collect(),
        configs,
        notes: Vec::new(),
    }
}

/// Every key that can be set, for a class.
pub fn definitions(class: &crate::sources::SourceClass) -> Vec<Definition> {
    let mut definitions = Vec::new();
    for_each_definition(&connector::catalogue(class), |_, definition| definitions.push(definition));
    definitions
}

/// Keys that are refused are not offered.
fn for_each_definition(catalogue: &Catalogue, mut each: impl FnMut(&'static KeyDef, Definition)) {
    for table in catalogue.tables() {
        let offered = table.keys.iter().filter(|def| !matches!(def.status, Status::Refused(_)));
        let named = offered.flat_map(|def| def.names().into_iter().map(move |name| (def, name)));
        for (index, (def, name)) in named.enumerate() {
            each(def, define(def, name, table.group, index + 1));
        }
    }
}

fn define(def: &'static KeyDef, name: String, group: &'static str, order: usize) -> Definition {
    Definition {
        display_name: display_name(&name),
        name,
        kind: def.kind.as_str(),
        required: def.presence == Presence::Required,
        default_value: def.default(),
        importance: def.importance.as_str(),
        documentation: match def.status {
            Status::Supported => def.doc.to_owned(),
            Status::NoEffect(why) => format!("Accepted without effect: {why}."),
            Status::Refused(why) => format!("Not supported: {why}."),
        },
        group,
        order,
        width: def.kind.width(),
    }
}

/// `slot.name` → `Slot name`.
fn display_name(name: &str) -> String {
    let text = name.replace('.', " ");
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn group_of(catalogue: &Catalogue, def: &KeyDef) -> &'static str {
    let holds =
        |table: &&&super::catalogue::Table| table.keys.iter().any(|key| key.name == def.name);
    catalogue.tables().iter().find(holds).map_or("", |table| table.group)
}

fn is_blamed(faults: &[ConfigFault], key: &str) -> bool {
    faults.iter().any(|fault| fault.key == key)
}

fn value(
    def: Option<&'static KeyDef>,
    name: &str,
    submitted: Option<&str>,
    faults: &[ConfigFault],
) -> ConfigValue {
    let text = submitted.or(def.and_then(KeyDef::default));
    let must_hide = def.is_none_or(|def| is_secret(def, name));
    let errors = faults.iter().filter(|fault| fault.key == name);
    ConfigValue {
        name: name.to_owned(),
        value: text.map(|text| if must_hide { HIDDEN.to_owned() } else { text.to_owned() }),
        recommended_values: def.map(recommended).unwrap_or_default(),
        errors: errors.map(ConfigFault::sentence).collect(),
    }
}

fn recommended(def: &'static KeyDef) -> Vec<&'static str> {
    if def.kind == Kind::Boolean && matches!(def.rule, Rule::Any) {
        return vec!["true", "false"];
    }
    let choices = def.rule.choices().iter().filter(|choice| choice.refused.is_none());
    choices.map(|choice| choice.value).collect()
}

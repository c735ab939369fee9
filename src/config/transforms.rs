//! `transforms.*` and `predicates.*`, typed.
//!
//! One entry for each class: its names, the tables of its options, its reader. Knows what options
//! mean to the plan, not what a transform does. **Invariant:** every key under the prefixes belongs
//! to a transform or predicate that is listed and has such an option, or is a fault.

use std::collections::HashMap;

use super::catalogue::{Table, nearest};
use super::connector::ConnectorConfig;
use super::fault::ConfigFault;
use super::key::{KeyDef, Status};
use super::keys::transforms as keys;
use super::list::split_list;
use super::values::{Values, member_key};
use crate::error::Code;
use crate::plan::{
    Condition, DeleteHandling, ExtractNewRecordState, FieldReference, Predicate, RegexRouter,
    ReplaceField, Side, SourceBlock, Step, TopicPattern, Transform,
};

/// What a transform's names must be legal for, and what it can refer to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings<'s> {
    /// The block of every envelope.
    pub(super) source: &'s SourceBlock,
    /// Whether keys are written in Avro.
    pub(super) avro_keys: bool,
    /// Whether values are.
    pub(super) avro_values: bool,
}

/// A class of transforms.
struct TransformClass {
    names: [&'static str; 2],
    options: Option<&'static Table>,
    /// Whether it has `replace.null.with.default`.
    replaces_null: bool,
    read: fn(&mut Options<'_, '_, '_>) -> Option<Transform>,
}

/// A class of predicates.
struct PredicateClass {
    names: [&'static str; 2],
    option: Option<&'static KeyDef>,
    read: fn(&mut Options<'_, '_, '_>) -> Option<Predicate>,
}

const TRANSFORM_CLASSES: [TransformClass; 5] = [
    TransformClass {
        names: ["io.debezium.transforms.ExtractNewRecordState", "ExtractNewRecordState"],
        options: Some(&keys::EXTRACT_NEW_RECORD_STATE),
        replaces_null: true,
        read: extract_new_record_state,
    },
    TransformClass {
        names: ["org.apache.kafka.connect.transforms.RegexRouter", "RegexRouter"],
        options: Some(&keys::REGEX_ROUTER),
        replaces_null: false,
        read: regex_router,
    },
    TransformClass {
        names: ["org.apache.kafka.connect.transforms.ReplaceField$Key", "ReplaceField$Key"],
        options: Some(&keys::REPLACE_FIELD),
        replaces_null: true,
        read: |options| replace_field(options, Side::Key),
    },
    TransformClass {
        names: ["org.apache.kafka.connect.transforms.ReplaceField$Value", "ReplaceField$Value"],
        options: Some(&keys::REPLACE_FIELD),
        replaces_null: true,
        read: |options| replace_field(options, Side::Value),
    },
    TransformClass {
        names: ["org.apache.kafka.connect.transforms.Filter", "Filter"],
        options: None,
        replaces_null: false,
        read: |_options| Some(Transform::Filter),
    },
];

const PREDICATE_CLASSES: [PredicateClass; 3] = [
    PredicateClass {
        names: [
            "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
            "TopicNameMatches",
        ],
        option: Some(&keys::TOPIC_PATTERN),
        read: |options| options.pattern(&keys::TOPIC_PATTERN).map(Predicate::TopicNameMatches),
    },
    PredicateClass {
        names: [
            "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
            "RecordIsTombstone",
        ],
        option: None,
        read: |_options| Some(Predicate::RecordIsTombstone),
    },
    PredicateClass {
        names: ["org.apache.kafka.connect.transforms.predicates.HasHeaderKey", "HasHeaderKey"],
        option: Some(&keys::HEADER_NAME),
        read: |options| options.required(&keys::HEADER_NAME).map(Predicate::HasHeaderKey),
    },
];

/// Reads all transforms, in order.
pub(super) fn parse(values: &mut Values<'_>, surroundings: Surroundings<'_>) -> Vec<Step> {
    let predicates = predicates(values, surroundings);
    let names = unique_names(values, &keys::TRANSFORMS);
    let mut steps = Vec::new();
    let mut owners = Vec::new();
    for name in &names {
        let class = class_of(values, &keys::TRANSFORM_TYPE, name)
            .and_then(|class| TRANSFORM_CLASSES.iter().find(|known| is_named(known.names, &class)));
        owners.push((name.as_str(), class.map(|class| (class.names[1], transform_options(class)))));
        let condition = condition(values, name, &predicates);
        let mut options = Options { values: &mut *values, name, surroundings };
        let Some(transform) = class.and_then(|class| (class.read)(&mut options)) else { continue };
        let step = Step { name: name.clone(), transform, condition };
        if let Err(reason) = step.check() {
            values.member_fault(&keys::TRANSFORM_PREDICATE, name, reason);
        }
        steps.push(step);
    }
    refuse_strangers(values, &keys::TRANSFORM_OPTION, &keys::TRANSFORMS, &owners);
    steps
}

/// The keys that the listed transforms and predicates can have, as a form shows them.
pub(super) fn offered(config: &ConnectorConfig) -> Vec<(String, &'static KeyDef)> {
    let text = |key: &str| config.get(key).and_then(Option::as_deref).unwrap_or_default();
    let mut offered = Vec::new();
    let mut offer = |name: &str, defs: &mut dyn Iterator<Item = &'static KeyDef>| {
        let carried_out = defs.filter(|def| matches!(def.status, Status::Supported));
        offered.extend(carried_out.map(|def| (member_key(def, name), def)));
    };
    for name in split_list(text(keys::TRANSFORMS.name)) {
        let class = text(&member_key(&keys::TRANSFORM_TYPE, name)).trim();
        let class = TRANSFORM_CLASSES.iter().find(|known| is_named(known.names, class));
        offer(name, &mut TRANSFORM_KEYS.into_iter());
        let own = class.and_then(|class| class.options).into_iter().flat_map(|table| table.keys);
        offer(name, &mut own.into_iter());
    }
    for name in split_list(text(keys::PREDICATES.name)) {
        let class = text(&member_key(&keys::PREDICATE_TYPE, name)).trim();
        let class = PREDICATE_CLASSES.iter().find(|known| is_named(known.names, class));
        let own = class.and_then(|class| class.option);
        offer(name, &mut [&keys::PREDICATE_TYPE].into_iter().chain(own));
    }
    offered
}

/// What every transform has.
const TRANSFORM_KEYS: [&KeyDef; 3] =
    [&keys::TRANSFORM_TYPE, &keys::TRANSFORM_PREDICATE, &keys::TRANSFORM_NEGATE];

/// The predicates by name; `None`: it has a fault.
fn predicates(
    values: &mut Values<'_>,
    surroundings: Surroundings<'_>,
) -> HashMap<String, Option<Predicate>> {
    let names = unique_names(values, &keys::PREDICATES);
    let mut predicates = HashMap::new();
    let mut owners = Vec::new();
    for name in &names {
        let class = class_of(values, &keys::PREDICATE_TYPE, name)
            .and_then(|class| PREDICATE_CLASSES.iter().find(|known| is_named(known.names, &class)));
        let options = class.map(|class| {
            let mut options = vec!["type", "plugin.version"];
            options.extend(class.option.map(option_name));
            (class.names[1], options)
        });
        owners.push((name.as_str(), options));
        let mut options = Options { values: &mut *values, name, surroundings };
        let predicate = class.and_then(|class| (class.read)(&mut options));
        predicates.insert(name.clone(), predicate);
    }
    refuse_strangers(values, &keys::PREDICATE_OPTION, &keys::PREDICATES, &owners);
    predicates
}

fn unique_names(values: &mut Values<'_>, def: &'static KeyDef) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in values.list(def) {
        if names.contains(&name) {
            values.fault(def, format!("has '{name}' twice"));
        } else {
            names.push(name);
        }
    }
    names
}

/// The class that is named; one that is missing is a fault.
fn class_of(values: &mut Values<'_>, def: &'static KeyDef, name: &str) -> Option<String> {
    let class = values.member(def, name).map(str::to_owned);
    if class.is_none() {
        values.member_fault(def, name, "must be given");
    }
    class
}

fn is_named(names: [&str; 2], class: &str) -> bool {
    names.iter().any(|name| name.eq_ignore_ascii_case(class))
}

fn condition(
    values: &mut Values<'_>,
    name: &str,
    predicates: &HashMap<String, Option<Predicate>>,
) -> Option<Condition> {
    let negate = values.member(&keys::TRANSFORM_NEGATE, name).and_then(super::parse_boolean);
    let Some(predicate) = values.member(&keys::TRANSFORM_PREDICATE, name).map(str::to_owned) else {
        if negate == Some(true) {
            let message = "needs a predicate";
            values.member_fault(&keys::TRANSFORM_NEGATE, name, message);
        }
        return None;
    };
    match predicates.get(&predicate) {
        None => {
            let near = nearest(&predicate, predicates.keys().map(String::as_str));
            let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
            let message = format!("is not in predicates{hint}");
            values.member_fault(&keys::TRANSFORM_PREDICATE, name, message);
            None
        }
        Some(predicate) => {
            let negate = negate.unwrap_or(false);
            predicate.clone().map(|predicate| Condition { predicate, negate })
        }
    }
}

/// What follows the name in the option's key.
fn option_name(def: &KeyDef) -> &'static str {
    def.name.split_once("<name>.").map_or(def.name, |(_, option)| option)
}

fn transform_options(class: &TransformClass) -> Vec<&'static str> {
    let mut options = vec!["type", "predicate", "negate", "plugin.version"];
    if class.replaces_null {
        options.push("replace.null.with.default");
    }
    let own = class.options.iter().flat_map(|table| table.keys);
    options.extend(own.map(option_name));
    options
}

/// A name, and its class with what that has, if it is known.
type Owner<'n> = (&'n str, Option<(&'static str, Vec<&'static str>)>);

/// Refuses the keys that no name in the list, or no option of its class, accounts for.
fn refuse_strangers(
    values: &mut Values<'_>,
    family: &'static KeyDef,
    list: &'static KeyDef,
    owners: &[Owner<'_>],
) {
    let prefix = family.name.split('<').next().unwrap_or_default();
    let faults: Vec<_> = values
        .under(family)
        .into_iter()
        .filter_map(|(key, _)| {
            let option_of = |name: &str| key.strip_prefix(name)?.strip_prefix('.');
            // The longest name, should one begin with another.
            let owner = owners
                .iter()
                .filter(|(name, _)| option_of(name).is_some())
                .max_by_key(|(name, _)| name.len());
            let (code, message) = match owner {
                None => (Code::ConfigInvalid, format!("belongs to no name in {}", list.name)),
                Some((_, None)) => return None,
                Some((name, Some((class, options)))) => {
                    let option = option_of(name)?;
                    if options.contains(&option) {
                        return None;
                    }
                    let hint = nearest(option, options.iter().copied())
                        .map_or_else(String::new, |near| format!("; did you mean {near}?"));
                    (Code::ConfigUnknownKey, format!("{class} has no option {option}{hint}"))
                }
            };
            Some(ConfigFault::new(code, format!("{prefix}{key}"), message))
        })
        .collect();
    faults.into_iter().for_each(|fault| values.push_fault(fault));
}

/// The options of one transform or predicate.
struct Options<'r, 'v, 's> {
    values: &'r mut Values<'v>,
    name: &'r str,
    surroundings: Surroundings<'s>,
}

impl Options<'_, '_, '_> {
    fn text(&self, def: &'static KeyDef) -> Option<&str> {
        self.values.member(def, self.name)
    }

    fn list(&self, def: &'static KeyDef) -> Vec<String> {
        split_list(self.text(def).unwrap_or_default()).map(str::to_owned).collect()
    }

    fn fault(&mut self, def: &'static KeyDef, message: impl Into<String>) {
        self.values.member_fault(def, self.name, message);
    }

    fn required(&mut self, def: &'static KeyDef) -> Option<String> {
        let text = self.text(def).map(str::to_owned);
        if text.is_none() {
            self.fault(def, "must be given");
        }
        text
    }

    fn pattern(&mut self, def: &'static KeyDef) -> Option<TopicPattern> {
        let text = self.required(def)?;
        TopicPattern::parse(&text).map_err(|reason| self.fault(def, reason)).ok()
    }

    fn references(&mut self, def: &'static KeyDef, prefix: &'static KeyDef) -> Vec<FieldReference> {
        let prefix = self.text(prefix).unwrap_or_default().to_owned();
        let mut references: Vec<FieldReference> = Vec::new();
        for element in self.list(def) {
            let read = FieldReference::parse(&element, &prefix)
                .and_then(|read| read.check(self.surroundings.source).map(|()| read));
            match read {
                Err(reason) => self.fault(def, reason),
                Ok(read) if references.iter().any(|other| other.name() == read.name()) => {
                    self.fault(def, format!("has '{}' twice", read.name()));
                }
                Ok(read) => references.push(read),
            }
        }
        references
    }

    /// Refuses a name that the converter could not write.
    fn check_name(&mut self, def: &'static KeyDef, side: Side, name: &str) {
        let is_avro = match side {
            Side::Key => self.surroundings.avro_keys,
            Side::Value => self.surroundings.avro_values,
        };
        if is_avro && !is_avro_name(name) {
            self.fault(def, format!("'{name}' is not a legal name of a field in Avro"));
        }
    }
}

/// Avro's rule for names, by its specification.
fn is_avro_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn extract_new_record_state(options: &mut Options<'_, '_, '_>) -> Option<Transform> {
    let deletes = options.text(&keys::UNWRAP_DELETES).unwrap_or_default().to_ascii_lowercase();
    let add_fields = options.references(&keys::UNWRAP_ADD_FIELDS, &keys::UNWRAP_ADD_FIELDS_PREFIX);
    for reference in &add_fields {
        options.check_name(&keys::UNWRAP_ADD_FIELDS, Side::Value, reference.name());
    }
    let add_headers =
        options.references(&keys::UNWRAP_ADD_HEADERS, &keys::UNWRAP_ADD_HEADERS_PREFIX);
    if add_headers.iter().any(FieldReference::is_image) {
        options.fault(&keys::UNWRAP_ADD_HEADERS, "a whole image of a row cannot be a header");
    }
    Some(Transform::ExtractNewRecordState(ExtractNewRecordState {
        deletes: DeleteHandling::from_word(&deletes)?,
        add_fields,
        add_headers,
        route_by_field: options.text(&keys::UNWRAP_ROUTE).map(str::to_owned),
    }))
}

fn regex_router(options: &mut Options<'_, '_, '_>) -> Option<Transform> {
    let pattern = options.pattern(&keys::ROUTER_REGEX);
    let is_given = options.values.is_member_given(&keys::ROUTER_REPLACEMENT, options.name);
    let replacement = options.text(&keys::ROUTER_REPLACEMENT).unwrap_or_default().to_owned();
    if !is_given {
        options.fault(&keys::ROUTER_REPLACEMENT, "must be given");
        return None;
    }
    RegexRouter::new(pattern?, &replacement)
        .map_err(|reason| options.fault(&keys::ROUTER_REPLACEMENT, reason))
        .map(Transform::RegexRouter)
        .ok()
}

fn replace_field(options: &mut Options<'_, '_, '_>, side: Side) -> Option<Transform> {
    let mut renames = Vec::new();
    for element in options.list(&keys::REPLACE_RENAMES) {
        match element.split_once(':').map(|(from, to)| (from.trim(), to.trim())) {
            Some((from, to)) if !from.is_empty() && !to.is_empty() && !to.contains(':') => {
                options.check_name(&keys::REPLACE_RENAMES, side, to);
                renames.push((from.to_owned(), to.to_owned()));
            }
            _ => options
                .fault(&keys::REPLACE_RENAMES, format!("'{element}' is not of the form old:new")),
        }
    }
    Some(Transform::ReplaceField(ReplaceField {
        side,
        include: options.list(&keys::REPLACE_INCLUDE),
        exclude: options.list(&keys::REPLACE_EXCLUDE),
        renames,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::key::Choice;
    use super::*;

    /// The names that the key accepts are those of the classes.
    #[track_caller]
    fn check(choices: &[Choice], names: &[[&str; 2]]) {
        let accepted = choices.iter().filter(|choice| choice.refused.is_none());
        let accepted: Vec<_> = accepted.map(|choice| choice.value).collect();
        assert_eq!(accepted, names.concat());
    }

    #[test]
    fn every_class_that_is_accepted_is_read() {
        check(keys::TRANSFORM_CLASSES, &TRANSFORM_CLASSES.map(|class| class.names));
        check(keys::PREDICATE_CLASSES, &PREDICATE_CLASSES.map(|class| class.names));
    }
}

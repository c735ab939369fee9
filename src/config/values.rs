//! Submitted values, checked against a catalogue, read as types.
//!
//! All faults are collected, never only the first. Reading goes on with defaults after a fault, so
//! that faults between keys are found too; what is read counts only if there is no fault in the
//! end. Knows no particular key. **Invariant:** a fault shows the text that was submitted, and
//! nothing that a reference was replaced by.

use std::borrow::Cow;
use std::time::Duration;

use regex::Regex;

use super::Secret;
use super::catalogue::Catalogue;
use super::fault::ConfigFault;
use super::key::{KeyDef, Kind, Presence, Rejection, Rule, Status, parse_boolean};
use super::list::{parse_patterns, split_list};
use super::providers::{Providers, has_reference};
use crate::error::Code;

/// Something that was accepted and should be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigNote {
    /// The key.
    pub key: String,
    /// What to know.
    pub message: String,
}

/// One submitted key.
#[derive(Clone, Debug)]
struct Entry<'a> {
    key: &'a str,
    /// As submitted.
    raw: &'a str,
    /// With references replaced.
    resolved: Cow<'a, str>,
}

/// The submitted keys and what is wrong with them.
#[derive(Clone)]
pub struct Values<'a> {
    entries: Vec<Entry<'a>>,
    faults: Vec<ConfigFault>,
    notes: Vec<ConfigNote>,
    #[cfg(test)]
    read: std::cell::RefCell<std::collections::BTreeSet<&'static str>>,
}

impl<'a> Values<'a> {
    /// Resolves references and checks every key by itself. A value that is `None` (JSON's null)
    /// counts as not given.
    pub fn check(
        submitted: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
        catalogue: &Catalogue,
        providers: &Providers,
    ) -> Self {
        let mut values = Self {
            entries: Vec::new(),
            faults: Vec::new(),
            notes: Vec::new(),
            #[cfg(test)]
            read: std::cell::RefCell::default(),
        };
        for (key, raw) in submitted {
            match catalogue.find(key) {
                None => values.refuse_unknown(key, catalogue),
                Some(def) => {
                    if let Some(raw) = raw {
                        values.admit(def, key, raw, providers);
                    }
                }
            }
        }
        values.require(catalogue);
        values
    }

    fn refuse_unknown(&mut self, key: &str, catalogue: &Catalogue) {
        let message = match catalogue.nearest(key) {
            Some(nearest) => format!("there is no such key; did you mean {nearest}?"),
            None => "there is no such key".to_owned(),
        };
        self.faults.push(ConfigFault::new(Code::ConfigUnknownKey, key, message));
    }

    fn admit(&mut self, def: &'static KeyDef, key: &'a str, raw: &'a str, providers: &Providers) {
        let resolved = match providers.resolve(raw) {
            Ok(resolved) => resolved,
            Err(message) => {
                return self.faults.push(ConfigFault::new(Code::ConfigInvalid, key, message));
            }
        };
        self.entries.push(Entry { key, raw, resolved });
        let Some(entry) = self.entries.last() else { return };
        match def.check(&entry.resolved) {
            Err(rejection) => {
                let fault = blame(def, entry, rejection);
                self.faults.push(fault);
            }
            Ok(()) => {
                if let Status::NoEffect(why) = def.status
                    && !def.is_harmless(&entry.resolved)
                {
                    let message = format!("has no effect: {why}");
                    self.notes.push(ConfigNote { key: key.to_owned(), message });
                }
            }
        }
    }

    fn require(&mut self, catalogue: &Catalogue) {
        for def in catalogue.keys().filter(|def| def.presence == Presence::Required) {
            let is_given = self.entry(def.name).is_some()
                || self.faults.iter().any(|fault| fault.key == def.name);
            if !is_given {
                self.fault(def, "must be given");
            }
        }
    }

    fn entry(&self, key: &str) -> Option<&Entry<'a>> {
        // The last one counts where a caller admits repetition.
        self.entries.iter().rev().find(|entry| entry.key == key)
    }

    /// Adds a fault of a key, for what its own rule cannot see.
    pub fn fault(&mut self, def: &KeyDef, message: impl Into<String>) {
        let rejection = Rejection::invalid(message);
        let fault = match self.entry(def.name) {
            Some(entry) => blame(def, entry, rejection),
            None => ConfigFault::new(rejection.code, def.name, rejection.message),
        };
        self.faults.push(fault);
    }

    /// Adds a fault of a key by its name; its value is not shown.
    pub fn fault_of_name(&mut self, key: &str, message: impl Into<String>) {
        self.faults.push(ConfigFault::new(Code::ConfigInvalid, key, message));
    }

    /// Adds a fault as it is.
    pub fn push_fault(&mut self, fault: ConfigFault) {
        self.faults.push(fault);
    }

    /// Adds something to know of a key.
    pub fn note(&mut self, key: &str, message: impl Into<String>) {
        self.notes.push(ConfigNote { key: key.to_owned(), message: message.into() });
    }

    /// Everything that is wrong, so far.
    pub fn faults(&self) -> &[ConfigFault] {
        &self.faults
    }

    /// What was read, if nothing is wrong.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn finish<T>(self, read: T) -> Result<(T, Vec<ConfigNote>), Vec<ConfigFault>> {
        if self.faults.is_empty() { Ok((read, self.notes)) } else { Err(self.faults) }
    }

    /// Notes that a key was read in another way than by the methods below.
    pub fn mark_read(&self, def: &'static KeyDef) {
        #[cfg(test)]
        self.read.borrow_mut().insert(def.name);
        #[cfg(not(test))]
        let _ = def;
    }

    /// The names of the definitions that were read.
    #[cfg(test)]
    pub(crate) fn names_read(&self) -> std::collections::BTreeSet<&'static str> {
        self.read.borrow().clone()
    }

    /// Whether the key was given with something other than blanks.
    pub fn is_given(&self, def: &'static KeyDef) -> bool {
        self.entry(def.name).is_some_and(|entry| !entry.resolved.trim().is_empty())
    }

    /// The text as given, or the default; `None` if there is neither or it is blank.
    pub fn optional(&self, def: &'static KeyDef) -> Option<&str> {
        self.mark_read(def);
        let text = match self.entry(def.name) {
            Some(entry) => &entry.resolved,
            None => def.default()?,
        };
        let text = if def.kind == Kind::Password { text } else { text.trim() };
        (!text.trim().is_empty()).then_some(text)
    }

    /// The text as given, or the default, or nothing.
    pub fn text(&self, def: &'static KeyDef) -> String {
        self.optional(def).unwrap_or_default().to_owned()
    }

    /// A secret.
    pub fn secret(&self, def: &'static KeyDef) -> Secret {
        Secret::new(self.optional(def).unwrap_or_default())
    }

    /// A truth value.
    pub fn flag(&self, def: &'static KeyDef) -> bool {
        self.optional(def).and_then(parse_boolean).unwrap_or_default()
    }

    /// A whole number.
    pub fn number<N: std::str::FromStr + Default>(&self, def: &'static KeyDef) -> N {
        self.optional(def).and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    /// A span of time given in milliseconds.
    pub fn millis(&self, def: &'static KeyDef) -> Duration {
        Duration::from_millis(self.number(def))
    }

    /// The elements of a list.
    pub fn list(&self, def: &'static KeyDef) -> Vec<String> {
        split_list(self.optional(def).unwrap_or_default()).map(str::to_owned).collect()
    }

    /// A list of regular expressions; `None` if it is empty.
    pub fn patterns(&self, def: &'static KeyDef) -> Option<Vec<Regex>> {
        parse_patterns(self.optional(def)?).ok().filter(|patterns| !patterns.is_empty())
    }

    /// One of several values. The first is taken when the text is none of them; then there is a
    /// fault already.
    pub fn choice<T: Copy>(
        &self,
        def: &'static KeyDef,
        first: (&str, T),
        others: &[(&str, T)],
    ) -> T {
        let text = self.optional(def).unwrap_or_default();
        let found = others.iter().find(|(value, _)| value.eq_ignore_ascii_case(text));
        found.map_or(first.1, |(_, value)| *value)
    }

    /// The text of a family's key for one name, or the default; `None` if there is neither or it is
    /// blank.
    pub fn member(&self, def: &'static KeyDef, name: &str) -> Option<&str> {
        self.mark_read(def);
        let text = match self.entry(&member_key(def, name)) {
            Some(entry) => entry.resolved.trim(),
            None => def.default()?,
        };
        (!text.is_empty()).then_some(text)
    }

    /// Whether a family's key was given for one name, be it blank.
    pub fn is_member_given(&self, def: &'static KeyDef, name: &str) -> bool {
        self.entry(&member_key(def, name)).is_some()
    }

    /// Adds a fault of a family's key for one name.
    pub fn member_fault(&mut self, def: &KeyDef, name: &str, message: impl Into<String>) {
        let key = member_key(def, name);
        let rejection = Rejection::invalid(message);
        let fault = match self.entry(&key) {
            Some(entry) => blame(def, entry, rejection),
            None => ConfigFault::new(rejection.code, key, rejection.message),
        };
        self.faults.push(fault);
    }

    /// The given keys of a family, with what follows its prefix, in order.
    pub fn under(&self, def: &'static KeyDef) -> Vec<(&str, &str)> {
        self.mark_read(def);
        self.under_prefix(def.name.split('<').next().unwrap_or_default())
    }

    /// The given keys that fall under these definitions, in order.
    pub fn covered_by(&self, defs: &[&'static KeyDef]) -> Vec<(&str, &str)> {
        for def in defs {
            self.mark_read(def);
        }
        self.entries
            .iter()
            .filter(|entry| defs.iter().any(|def| def.covers(entry.key)))
            .map(|entry| (entry.key, entry.resolved.as_ref()))
            .collect()
    }

    /// The given keys that begin so, with what follows, in order.
    pub fn under_prefix(&self, prefix: &str) -> Vec<(&str, &str)> {
        self.entries
            .iter()
            .filter_map(|entry| Some((entry.key.strip_prefix(prefix)?, entry.resolved.as_ref())))
            .collect()
    }
}

impl std::fmt::Debug for Values<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.entries.iter().map(|entry| entry.key)).finish()
    }
}

/// The key of a family for one name.
pub(super) fn member_key(def: &KeyDef, name: &str) -> String {
    def.name.replacen("<name>", name, 1)
}

/// The text of a rejected value is shown unless it is secret. A value that holds a reference is
/// shown as it was submitted; rules that quote what they refuse do not get a word then.
fn blame(def: &KeyDef, entry: &Entry<'_>, rejection: Rejection) -> ConfigFault {
    let Rejection { code, mut message } = rejection;
    let is_secret = is_secret(def, entry.key);
    let may_quote = matches!(def.rule, Rule::Patterns | Rule::Is(_));
    if may_quote && (is_secret || has_reference(entry.raw)) {
        "is not legal here".clone_into(&mut message);
    }
    let value = (!is_secret).then(|| entry.raw.to_owned());
    ConfigFault { key: entry.key.to_owned(), value, message, code }
}

/// Whether a key's value must not be shown: by its type, or, for names that pass through to a
/// client, by what the name says.
pub(super) fn is_secret(def: &KeyDef, key: &str) -> bool {
    const SECRET_ENDS: [&str; 9] = [
        "password",
        "secret",
        "token",
        "passphrase",
        "sasl.jaas.config",
        "user.info",
        "keystore.key",
        "ssl.key.pem",
        "private.key",
    ];
    def.kind == Kind::Password
        || def.is_family() && SECRET_ENDS.iter().any(|end| key.to_ascii_lowercase().ends_with(end))
}

#[cfg(test)]
#[expect(unreachable_pub, reason = "the macro makes tables for others")]
mod tests {
    use std::sync::Arc;

    use super::super::catalogue::Table;
    use super::super::providers::ProviderKind;
    use super::*;

    super::super::keys::keys! {
        /// For these tests.
        SHAPES "Shapes"
        supported {
            SIDES "shape.sides" Int (required) High "Number of sides." Rule::AtLeast(3);
            COLOURS "shape.colours" List ("red") Low "Colours.";
            FILLED "shape.filled" Boolean ("true") Low "Filled.";
            PATTERNS "shape.patterns" List () Low "Patterns." Rule::Patterns;
            PASSWORD "shape.password" Password () Low "Password." Rule::Is(long);
            OVERRIDE "shape.override.<property>" String () Low "Overrides.";
        }
        no effect {
            "shape.glow" Int ("0") "shapes do not glow" Rule::AtLeast(0);
        }
        refused {
            "shape.holes" Int ("0") "holes are not built yet";
        }
    }

    static TABLE: Table = SHAPES;

    fn long(text: &str) -> Result<(), Rejection> {
        if text.len() > 5 {
            Ok(())
        } else {
            Err(Rejection::invalid(format!("{text} is too short")))
        }
    }

    fn values<'a>(submitted: &[(&'a str, Option<&'a str>)]) -> Values<'a> {
        let environment = Arc::new(|name: &str| (name == "SHORT").then(|| "abc".to_owned()));
        let kind = ProviderKind::Environment { allowed: None };
        let providers = Providers::new(vec![("env".to_owned(), kind)], environment);
        Values::check(submitted.iter().copied(), &Catalogue::new([&TABLE]), &providers)
    }

    #[track_caller]
    fn check_faults(submitted: &[(&str, Option<&str>)], expect: &[&str]) {
        let values = values(submitted);
        let faults: Vec<_> = values.faults().iter().map(ToString::to_string).collect();
        assert_eq!(faults, expect);
    }

    #[test]
    fn all_faults_are_reported_at_once() {
        check_faults(
            &[
                ("shape.sides", Some("two")),
                ("shape.colour", Some("red")),
                ("shape.holes", Some("1")),
                ("shape.glow", Some("-1")),
                ("shape.patterns", Some("(a")),
                ("unheard.of", None),
            ],
            &[
                "TG-E-CONFIG-INVALID: shape.sides 'two': must be a 32-bit whole number",
                "TG-E-CONFIG-UNKNOWN-KEY: shape.colour: there is no such key; did you mean shape.colours?",
                "TG-E-CONFIG-UNSUPPORTED: shape.holes '1': not supported (only 0 is accepted): \
                 holes are not built yet",
                "TG-E-CONFIG-INVALID: shape.glow '-1': must be 0 or more",
                "TG-E-CONFIG-INVALID: shape.patterns '(a': (a is not a regular expression: unclosed group",
                "TG-E-CONFIG-UNKNOWN-KEY: unheard.of: there is no such key",
            ],
        );
    }

    #[test]
    fn a_required_key_is_missed_unless_it_has_another_fault() {
        check_faults(&[], &["TG-E-CONFIG-INVALID: shape.sides: must be given"]);
        check_faults(
            &[("shape.sides", None)],
            &["TG-E-CONFIG-INVALID: shape.sides: must be given"],
        );
        check_faults(
            &[("shape.sides", Some("${env:NOPE}"))],
            &["TG-E-CONFIG-INVALID: shape.sides: the reference ${env:NOPE} cannot be resolved: \
               there is no such variable"],
        );
    }

    #[test]
    fn neither_secrets_nor_what_references_stand_for_are_shown() {
        for (key, text) in [
            ("shape.password", "abc"),
            ("shape.password", "${env:SHORT}"),
            ("shape.patterns", "(${env:SHORT}"),
        ] {
            let values = values(&[("shape.sides", Some("3")), (key, Some(text))]);
            let [fault] = values.faults() else { panic!("{:?}", values.faults()) };
            let shown = format!("{fault} {fault:?} {values:?}");
            assert!(!shown.contains("abc"), "{shown}");
        }
    }

    #[test]
    fn values_are_read_as_types_with_defaults() {
        let values = values(&[
            ("shape.sides", Some(" 4 ")),
            ("shape.patterns", Some("a, b")),
            ("shape.override.b", Some("1")),
            ("shape.override.a", Some("2")),
            ("shape.glow", Some("7")),
        ]);
        assert_eq!(values.faults(), []);
        assert_eq!(values.number::<u8>(&SIDES), 4);
        assert_eq!(values.list(&COLOURS), ["red"]);
        assert!(values.flag(&FILLED));
        assert_eq!(values.patterns(&PATTERNS).map(|patterns| patterns.len()), Some(2));
        assert_eq!(values.optional(&PASSWORD), None);
        assert_eq!(values.under(&OVERRIDE), [("b", "1"), ("a", "2")]);
        let read = values.names_read();
        assert_eq!(read.len(), 6);
        let (_, notes) = values.finish(()).expect("no fault");
        assert_eq!(notes.len(), 1);
        assert_eq!(notes[0].message, "has no effect: shapes do not glow");
    }
}

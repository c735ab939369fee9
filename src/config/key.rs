//! What one configuration key is: name, type, default, what it does, what it accepts.
//!
//! The definitions themselves stand in tables beside those who read them (`config/keys/`, and one
//! file for each source). Parser, validation answer and documentation page all come from them.
//! Knows no particular key. **Invariant:** a key is carried out, declared to have no effect, or
//! refused; there is no fourth state.

use crate::error::Code;

use super::catalogue::nearest;
use super::list::{parse_patterns, split_list};

/// The type of a key's value, by Kafka Connect's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`, in any case.
    Boolean,
    /// Text; blanks around it do not count.
    String,
    /// 32-bit integer.
    Int,
    /// 64-bit integer.
    Long,
    /// Floating-point number.
    Double,
    /// Comma-separated elements.
    List,
    /// Name of a class, or what stands for it here.
    Class,
    /// Text that is never shown.
    Password,
}

impl Kind {
    /// The word in a validation answer.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::String => "STRING",
            Self::Int => "INT",
            Self::Long => "LONG",
            Self::Double => "DOUBLE",
            Self::List => "LIST",
            Self::Class => "CLASS",
            Self::Password => "PASSWORD",
        }
    }

    /// How wide a form's field should be, by Kafka Connect's words.
    pub const fn width(self) -> &'static str {
        match self {
            Self::Boolean | Self::Int | Self::Long | Self::Double => "SHORT",
            Self::String | Self::Password => "MEDIUM",
            Self::List | Self::Class => "LONG",
        }
    }

    /// Whether two texts are the same value of this type.
    pub fn is_same(self, one: &str, other: &str) -> bool {
        match self {
            Self::Password => one == other,
            Self::List => split_list(one).eq(split_list(other)),
            _ => one.trim().eq_ignore_ascii_case(other.trim()),
        }
    }

    pub(super) fn check(self, text: &str) -> Result<(), String> {
        let text = text.trim();
        let (is_legal, wanted) = match self {
            Self::Boolean => (parse_boolean(text).is_some(), "true or false"),
            Self::Int => (text.parse::<i32>().is_ok(), "a 32-bit whole number"),
            Self::Long => (text.parse::<i64>().is_ok(), "a whole number"),
            Self::Double => (text.parse::<f64>().is_ok_and(f64::is_finite), "a number"),
            Self::String | Self::List | Self::Class | Self::Password => (true, ""),
        };
        if is_legal { Ok(()) } else { Err(format!("must be {wanted}")) }
    }
}

/// How much a key matters to somebody who writes a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Importance {
    /// Nearly everybody sets it.
    High,
    /// Many set it.
    Medium,
    /// Few set it.
    Low,
}

impl Importance {
    /// The word in a validation answer.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::High => "HIGH",
            Self::Medium => "MEDIUM",
            Self::Low => "LOW",
        }
    }
}

/// What holds when a key is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It must be given.
    Required,
    /// Nothing, or something that depends on other keys; the documentation says what.
    Optional,
    /// This value.
    Default(&'static str),
}

/// What becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Does what its documentation says.
    Supported,
    /// Accepted with every legal value, and nothing depends on it; the text says why.
    NoEffect(&'static str),
    /// Accepted only with the value that asks for nothing; the text says why.
    Refused(&'static str),
}

/// One of several values that a key is known to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The value; its case does not matter.
    pub value: &'static str,
    /// Why it is not carried out, if it is not.
    pub refused: Option<&'static str>,
}

impl Choice {
    /// A value that is carried out.
    pub const fn of(value: &'static str) -> Self {
        Self { value, refused: None }
    }

    /// A value that is known elsewhere and not carried out here.
    pub const fn refused(value: &'static str, why: &'static str) -> Self {
        Self { value, refused: Some(why) }
    }
}

/// What a value must satisfy beyond its type.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// Nothing.
    Any,
    /// Something other than blanks.
    NotBlank,
    /// A number within these bounds, both included.
    Between(i64, i64),
    /// A number that is not below this one.
    AtLeast(i64),
    /// One of these.
    OneOf(&'static [Choice]),
    /// A list of these.
    EachOf(&'static [Choice]),
    /// A list of regular expressions.
    Patterns,
    /// What the function accepts.
    Is(fn(&str) -> Result<(), Rejection>),
}

/// A value that a key does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// `ConfigInvalid`, `ConfigUnsupported`, or a code of its own.
    pub code: Code,
    /// What is wrong, without the value.
    pub message: String,
}

impl Rejection {
    /// A value that is not legal.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { code: Code::ConfigInvalid, message: message.into() }
    }

    /// A value that is legal elsewhere and not carried out here.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self { code: Code::ConfigUnsupported, message: message.into() }
    }
}

impl Rule {
    pub(super) fn check(&self, text: &str) -> Result<(), Rejection> {
        let text = text.trim();
        let number = || text.parse::<i64>().ok();
        match *self {
            Self::Any => Ok(()),
            Self::NotBlank if text.is_empty() => Err(Rejection::invalid("must not be empty")),
            Self::NotBlank => Ok(()),
            Self::Between(low, high) if number().is_some_and(|n| n < low || n > high) => {
                Err(Rejection::invalid(format!("must be from {low} to {high}")))
            }
            Self::AtLeast(low) if number().is_some_and(|n| n < low) => {
                Err(Rejection::invalid(format!("must be {low} or more")))
            }
            Self::Between(..) | Self::AtLeast(_) => Ok(()),
            Self::OneOf(choices) => check_choice(choices, text),
            Self::EachOf(choices) => {
                split_list(text).try_for_each(|element| check_choice(choices, element))
            }
            Self::Patterns => parse_patterns(text).map(drop).map_err(Rejection::invalid),
            Self::Is(accepts) => accepts(text),
        }
    }

    /// The values to offer in a form.
    pub const fn choices(&self) -> &'static [Choice] {
        match self {
            Self::OneOf(choices) | Self::EachOf(choices) => choices,
            _ => &[],
        }
    }
}

fn check_choice(choices: &[Choice], text: &str) -> Result<(), Rejection> {
    let known = choices.iter().find(|choice| choice.value.eq_ignore_ascii_case(text));
    match known {
        Some(Choice { refused: None, .. }) => Ok(()),
        Some(Choice { value, refused: Some(why) }) => {
            Err(Rejection::unsupported(format!("{value} is not supported: {why}")))
        }
        None => {
            let offered = choices.iter().filter(|choice| choice.refused.is_none());
            let offered: Vec<_> = offered.map(|choice| choice.value).collect();
            let hint = nearest(text, offered.iter().copied())
                .map_or_else(String::new, |nearest| format!("; did you mean {nearest}?"));
            Err(Rejection::invalid(format!("must be one of {}{hint}", offered.join(", "))))
        }
    }
}

/// The definition of a key, or of a family of keys whose names share a form.
#[derive(Clone, Copy, Debug)]
pub struct KeyDef {
    /// The name. A part in angle brackets stands for one of the words it lists
    /// (`<key|value>.converter`), or for any text (`producer.override.<property>`).
    pub name: &'static str,
    /// The value's type.
    pub kind: Kind,
    /// What holds when it is not given.
    pub presence: Presence,
    /// How much it matters.
    pub importance: Importance,
    /// What becomes of it.
    pub status: Status,
    /// What a value must satisfy.
    pub rule: Rule,
    /// What it is for.
    pub doc: &'static str,
}

impl KeyDef {
    /// The default, if there is a fixed one.
    pub const fn default(&self) -> Option<&'static str> {
        match self.presence {
            Presence::Default(text) => Some(text),
            Presence::Required | Presence::Optional => None,
        }
    }

    /// Whether the name stands for other names.
    pub fn is_family(&self) -> bool {
        self.name.contains('<')
    }

    /// The names that it stands for, as far as they can be listed.
    pub fn names(&self) -> Vec<String> {
        let Some((before, rest)) = self.name.split_once('<') else {
            return vec![self.name.to_owned()];
        };
        match rest.split_once('>') {
            Some((words, after)) if words.contains('|') && !after.contains('<') => {
                words.split('|').map(|word| format!("{before}{word}{after}")).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether this value asks for nothing that is not done anyway: blank, or the default.
    pub fn is_harmless(&self, text: &str) -> bool {
        match self.default() {
            Some(default) => self.kind.is_same(text, default),
            None => text.trim().is_empty(),
        }
    }

    /// Whether a name is this one or one of those that it stands for.
    pub fn covers(&self, name: &str) -> bool {
        covers(self.name, name)
    }

    /// Checks a value that was given.
    ///
    /// # Errors
    /// The value is not legal, or the key or the value is not carried out here.
    pub fn check(&self, text: &str) -> Result<(), Rejection> {
        if self.is_harmless(text) && !matches!(self.presence, Presence::Required) {
            return Ok(());
        }
        if let Status::Refused(why) = self.status {
            let but =
                self.default().map_or_else(String::new, |d| format!(" (only {d} is accepted)"));
            return Err(Rejection::unsupported(format!("not supported{but}: {why}")));
        }
        self.kind.check(text).map_err(Rejection::invalid)?;
        self.rule.check(text)
    }
}

/// Whether a name is of a family's form: each part in angle brackets stands for one of the words it
/// lists, or, where it lists none, for one character or more.
fn covers(family: &str, name: &str) -> bool {
    let Some((literal, rest)) = family.split_once('<') else { return family == name };
    let Some(name) = name.strip_prefix(literal) else { return false };
    let (inside, after) = rest.split_once('>').unwrap_or((rest, ""));
    if inside.contains('|') {
        return inside
            .split('|')
            .filter_map(|word| name.strip_prefix(word))
            .any(|tail| covers(after, tail));
    }
    // The shortest stretch first; each start of a later character is tried.
    name.char_indices()
        .skip(1)
        .map(|(at, _)| at)
        .chain((!name.is_empty()).then_some(name.len()))
        .any(|at| name.get(at..).is_some_and(|tail| covers(after, tail)))
}

/// Reads a truth value as Kafka Connect does.
pub fn parse_boolean(text: &str) -> Option<bool> {
    match text.trim() {
        t if t.eq_ignore_ascii_case("true") => Some(true),
        t if t.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: &[Choice] = &[Choice::of("initial"), Choice::refused("always", "not yet")];

    fn key(kind: Kind, presence: Presence, status: Status, rule: Rule) -> KeyDef {
        KeyDef { name: "k", kind, presence, importance: Importance::Low, status, rule, doc: "" }
    }

    #[track_caller]
    fn check(key: KeyDef, text: &str, expect: &str) {
        let answer =
            key.check(text).map_or_else(|r| format!("{}: {}", r.code, r.message), |()| "ok".into());
        assert_eq!(answer, expect);
    }

    #[test]
    fn values_are_checked_by_type_then_by_rule() {
        let port =
            key(Kind::Int, Presence::Default("5432"), Status::Supported, Rule::Between(1, 65_535));
        check(port, " 5433 ", "ok");
        check(port, "5432", "ok");
        check(port, "", "TG-E-CONFIG-INVALID: must be a 32-bit whole number");
        check(port, "two", "TG-E-CONFIG-INVALID: must be a 32-bit whole number");
        check(port, "0", "TG-E-CONFIG-INVALID: must be from 1 to 65535");
        check(port, "4294967296", "TG-E-CONFIG-INVALID: must be a 32-bit whole number");
        let flag = key(Kind::Boolean, Presence::Default("true"), Status::Supported, Rule::Any);
        check(flag, "FALSE", "ok");
        check(flag, "yes", "TG-E-CONFIG-INVALID: must be true or false");
    }

    #[test]
    fn a_known_value_that_is_not_done_is_told_from_an_unknown_one() {
        let mode =
            key(Kind::String, Presence::Default("initial"), Status::Supported, Rule::OneOf(MODES));
        check(mode, "Initial", "ok");
        check(mode, "always", "TG-E-CONFIG-UNSUPPORTED: always is not supported: not yet");
        check(mode, "intial", "TG-E-CONFIG-INVALID: must be one of initial; did you mean initial?");
    }

    #[test]
    fn a_refused_key_accepts_only_what_asks_for_nothing() {
        let interval =
            key(Kind::Int, Presence::Default("0"), Status::Refused("not yet"), Rule::Any);
        check(interval, " 0", "ok");
        check(
            interval,
            "10",
            "TG-E-CONFIG-UNSUPPORTED: not supported (only 0 is accepted): not yet",
        );
        let list = key(Kind::List, Presence::Optional, Status::Refused("not yet"), Rule::Patterns);
        check(list, " ", "ok");
        check(list, "a", "TG-E-CONFIG-UNSUPPORTED: not supported: not yet");
    }

    #[test]
    fn an_empty_value_counts_as_absent_only_where_absence_is_allowed() {
        check(key(Kind::String, Presence::Optional, Status::Supported, Rule::NotBlank), "", "ok");
        check(
            key(Kind::String, Presence::Required, Status::Supported, Rule::NotBlank),
            " ",
            "TG-E-CONFIG-INVALID: must not be empty",
        );
    }

    #[test]
    fn a_name_with_alternatives_is_several_names() {
        let named = |name| {
            KeyDef { name, ..key(Kind::String, Presence::Optional, Status::Supported, Rule::Any) }
                .names()
        };
        assert_eq!(named("a.b"), ["a.b"]);
        assert_eq!(named("<key|value>.c"), ["key.c", "value.c"]);
        assert!(named("p.<property>").is_empty());
    }

    #[track_caller]
    fn check_covers(family: &str, name: &str, expect: bool) {
        assert_eq!(covers(family, name), expect, "{family} {name}");
    }

    #[test]
    fn families_cover_names_of_their_form() {
        check_covers("producer.override.<property>", "producer.override.linger.ms", true);
        check_covers("producer.override.<property>", "producer.override.", false);
        check_covers("column.mask.with.<n>.chars", "column.mask.with.12.chars", true);
        check_covers("column.mask.with.<n>.chars", "column.mask.with..chars", false);
        check_covers("a.<alg>.with.salt.<salt>", "a.SHA-256.with.salt.x.with.salt.y", true);
        check_covers("a.<alg>.with.salt.<salt>", "a.SHA-256.with.salt.", false);
        check_covers("plain", "plain", true);
        check_covers("<key|value>.converter.x", "value.converter.x", true);
        check_covers("<key|value>.converter.x", "header.converter.x", false);
    }

    proptest::proptest! {
        #[test]
        fn no_name_upsets_a_family(name in ".{0,30}") {
            covers("x.<a>.y.<b>.z", &name);
        }
    }
}

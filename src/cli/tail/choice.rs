//! Which topics, which records, and where to begin: what the arguments mean.
//!
//! Knows no Kafka client.

use std::convert::Infallible;
use std::str::FromStr;

use serde_json::{Map, Value};

/// Where to begin in each partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// With the oldest record.
    Beginning,
    /// With the next record.
    End,
    /// With the record of this offset.
    Offset(i64),
    /// So many offsets before the end.
    Last(i64),
}

impl FromStr for Begin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "beginning" | "earliest" => return Ok(Self::Beginning),
            "end" | "latest" => return Ok(Self::End),
            _ => {}
        }
        match (text.strip_prefix('-'), text.parse::<i64>()) {
            (Some(_), Ok(number)) if number < 0 => Ok(Self::Last(-number)),
            (None, Ok(number)) => Ok(Self::Offset(number)),
            _ => Err("it is beginning, end, an offset, or -N".to_owned()),
        }
    }
}

/// Which topics.
#[derive(Debug)]
pub(super) struct Choice {
    patterns: Vec<String>,
    table: Option<String>,
}

impl Choice {
    /// Topics by name or pattern, of one table or of all.
    pub(super) const fn new(patterns: Vec<String>, table: Option<String>) -> Self {
        Self { patterns, table }
    }

    /// Whether a topic is read.
    pub(super) fn wants(&self, topic: &str) -> bool {
        let by_name = self.patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => topic.starts_with(prefix),
            None => topic == pattern,
        });
        let by_table = self.table.as_ref().is_none_or(|table| {
            topic
                .strip_suffix(table.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        });
        by_table && (by_name || self.patterns.is_empty())
    }
}

/// Which keys.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeyPattern(Value);

impl FromStr for KeyPattern {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(
            serde_json::from_str(text).unwrap_or_else(|_not_json| Value::String(text.to_owned())),
        ))
    }
}

impl KeyPattern {
    /// Whether a decoded key is meant: its only value, or the fields that the pattern names.
    pub(super) fn matches(&self, key: &Value) -> bool {
        match (&self.0, key) {
            (Value::Object(wanted), Value::Object(fields)) => has_all(fields, wanted),
            (wanted, Value::Object(fields)) => {
                fields.len() == 1 && fields.values().all(|value| is_same(value, wanted))
            }
            (Value::Object(wanted), key) => {
                wanted.len() == 1 && wanted.values().all(|value| is_same(value, key))
            }
            (wanted, key) => is_same(key, wanted),
        }
    }
}

fn has_all(fields: &Map<String, Value>, wanted: &Map<String, Value>) -> bool {
    wanted.iter().all(|(name, value)| fields.get(name).is_some_and(|field| is_same(field, value)))
}

/// A shell does not tell a number from a text.
fn is_same(one: &Value, other: &Value) -> bool {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    one == other || text(one) == text(other)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "so that a case fits a line")]
    fn check_key(pattern: &str, key: Value, expect: bool) {
        assert_eq!(pattern.parse::<KeyPattern>().unwrap().matches(&key), expect, "{pattern} {key}");
    }

    #[test]
    fn keys_are_named_by_their_value_or_their_fields() {
        check_key("42", json!({"id": 42}), true);
        check_key("42", json!({"id": "42"}), true);
        check_key("42", json!({"id": 43}), false);
        check_key("42", json!({"a": 42, "b": 1}), false);
        check_key("42", json!(42), true);
        check_key("a b", json!({"name": "a b"}), true);
        check_key(r#"{"id":42}"#, json!({"id": 42}), true);
        check_key(r#"{"a":1}"#, json!({"a": 1, "b": 2}), true);
        check_key(r#"{"a":1,"b":3}"#, json!({"a": 1, "b": 2}), false);
        check_key("null", Value::Null, true);
    }

    #[test]
    fn places_to_begin() {
        for (text, expect) in [
            ("beginning", Ok(Begin::Beginning)),
            ("end", Ok(Begin::End)),
            ("17", Ok(Begin::Offset(17))),
            ("-5", Ok(Begin::Last(5))),
        ] {
            assert_eq!(text.parse::<Begin>(), expect, "{text}");
        }
        assert!("x".parse::<Begin>().is_err() && "-0".parse::<Begin>().is_err());
    }

    #[track_caller]
    fn check_topic(patterns: &[&str], table: Option<&str>, topic: &str, expect: bool) {
        let patterns = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        let choice = Choice::new(patterns, table.map(str::to_owned));
        assert_eq!(choice.wants(topic), expect, "{topic}");
    }

    #[test]
    fn topics_by_name_pattern_or_table() {
        check_topic(&["shop.*"], None, "shop.public.t", true);
        check_topic(&["shop.public.t"], None, "shop.public.tt", false);
        check_topic(&[], Some("public.t"), "shop.public.t", true);
        check_topic(&[], Some("public.t"), "shop.xpublic.t", false);
        check_topic(&[], Some("public.t"), "public.t", true);
        check_topic(&["shop.*"], Some("public.t"), "other.public.t", false);
    }
}

//! Under which subject a schema is known: Confluent's three subject name strategies.
//!
//! Knows a topic, which half of a record is meant, and the schema's text. **Invariant:** what has
//! no subject under a strategy is a coded fault that names the strategy, never another subject.
//! Confluent's documentation, "Subject name strategy".

use std::fmt;

use serde_json::Value;

use crate::error::{Code, Fault};

/// How subjects are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubjectNaming {
    /// `<topic>-key` and `<topic>-value` (`TopicNameStrategy`).
    #[default]
    Topic,
    /// The record's full name, whatever the topic (`RecordNameStrategy`).
    Record,
    /// `<topic>-<full name of the record>` (`TopicRecordNameStrategy`).
    TopicRecord,
}

impl SubjectNaming {
    /// The strategy with this class name, full or short.
    pub fn of_class(class: &str) -> Option<Self> {
        let name = class.trim().rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        match name.as_str() {
            "topicnamestrategy" => Some(Self::Topic),
            "recordnamestrategy" => Some(Self::Record),
            "topicrecordnamestrategy" => Some(Self::TopicRecord),
            _ => None,
        }
    }

    /// The subject of an Avro schema; `half` is `key` or `value`.
    ///
    /// # Errors
    /// [`Code::ConfigInvalid`] if the strategy needs a record's name and the schema is no record.
    pub fn subject(self, topic: &str, half: &str, schema_text: &str) -> Result<String, Fault> {
        if self == Self::Topic {
            return Ok(format!("{topic}-{half}"));
        }
        let name = record_name(schema_text).ok_or_else(|| {
            Code::ConfigInvalid
                .fault(format!(
                    "{self} names subjects after records, and the {half} in topic '{topic}' is none"
                ))
                .about(format!("{half}.converter.{half}.subject.name.strategy"))
                .hint(format!("Use TopicNameStrategy for the {half}, or publish it as a struct."))
        })?;
        Ok(if self == Self::Record { name } else { format!("{topic}-{name}") })
    }
}

impl fmt::Display for SubjectNaming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Topic => "TopicNameStrategy",
            Self::Record => "RecordNameStrategy",
            Self::TopicRecord => "TopicRecordNameStrategy",
        })
    }
}

/// The full name of a record's schema; `None` for every other schema.
fn record_name(schema_text: &str) -> Option<String> {
    let schema: Value = serde_json::from_str(schema_text).ok()?;
    if schema.get("type")?.as_str()? != "record" {
        return None;
    }
    let name = schema.get("name")?.as_str()?;
    match schema.get("namespace").and_then(Value::as_str) {
        Some(namespace) if !namespace.is_empty() && !name.contains('.') => {
            Some(format!("{namespace}.{name}"))
        }
        _ => Some(name.to_owned()),
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    const RECORD: &str = r#"{"type":"record","name":"Envelope","namespace":"s.t","fields":[]}"#;
    const BARE: &str = r#"{"type":"record","name":"Envelope","fields":[]}"#;
    const DOTTED: &str = r#"{"type":"record","name":"a.B","namespace":"c","fields":[]}"#;

    #[track_caller]
    fn check(class: &str, half: &str, text: &str, expect: Result<&str, Code>) {
        let naming = SubjectNaming::of_class(class).unwrap();
        let subject = naming.subject("top", half, text).map_err(|fault| fault.code());
        assert_eq!(subject.as_deref().map_err(|code| *code), expect);
    }

    #[test]
    fn subjects_are_named_as_confluents_strategies_name_them() {
        let full = "io.confluent.kafka.serializers.subject.RecordNameStrategy";
        check("TopicNameStrategy", "key", RECORD, Ok("top-key"));
        check("TopicNameStrategy", "value", "\"string\"", Ok("top-value"));
        check(full, "value", RECORD, Ok("s.t.Envelope"));
        check("RecordNameStrategy", "key", BARE, Ok("Envelope"));
        check("RecordNameStrategy", "key", DOTTED, Ok("a.B"));
        check("TopicRecordNameStrategy", "key", RECORD, Ok("top-s.t.Envelope"));
        for no_record in ["\"string\"", r#"["null","string"]"#, r#"{"type":"map"}"#, "?"] {
            check("RecordNameStrategy", "key", no_record, Err(Code::ConfigInvalid));
            check("TopicRecordNameStrategy", "value", no_record, Err(Code::ConfigInvalid));
        }
        assert_eq!(SubjectNaming::of_class("com.example.Mine"), None);
    }
}

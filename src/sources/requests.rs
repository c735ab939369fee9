//! What a person writes to ask for a snapshot beside the stream, with a sentence for what is wrong.
//!
//! The members are those of Debezium's signals `execute-snapshot` and `stop-snapshot`, whether they
//! come by HTTP or as a row. Knows no database and no way in. **Invariant:** a member that is not
//! known is refused, never passed over.

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::{SnapshotAction, SnapshotRequest};
use crate::error::{Code, Fault};

/// Reads `{"data-collections", "additional-conditions"?, "type"?}`.
///
/// # Errors
/// `CONFIG-MALFORMED`.
pub fn starts_snapshot(bytes: &[u8]) -> Result<SnapshotRequest, Fault> {
    let mut body = object(bytes)?;
    let collections =
        collections(body.remove("data-collections"))?.filter(|all| !all.is_empty()).ok_or_else(
            || malformed("'data-collections' must be a list of tables, schema.table"),
        )?;
    let mut conditions = match body.remove("additional-conditions") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(all)) => all.into_iter().map(condition).collect::<Result<_, _>>()?,
        Some(_) => return Err(malformed("'additional-conditions' must be a list")),
    };
    // Debezium's older form: of all tables
    match body.remove("additional-condition") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) if text.trim().is_empty() => {}
        Some(Value::String(text)) => {
            conditions.extend(collections.iter().map(|table| (table.clone(), text.clone())));
        }
        Some(_) => return Err(malformed("'additional-condition' must be a text")),
    }
    refuse_other_type(body.remove("type").as_ref())?;
    refuse_extra(&body, "data-collections, additional-conditions, type")?;
    Ok(SnapshotRequest { collections, conditions })
}

/// Reads `{"data-collections"?, "type"?}`; nothing, or no collections, is all tables.
///
/// # Errors
/// `CONFIG-MALFORMED`.
pub fn stops_snapshot(bytes: &[u8]) -> Result<SnapshotAction, Fault> {
    if bytes.is_empty() {
        return Ok(SnapshotAction::Stop(None));
    }
    let mut body = object(bytes)?;
    let collections = collections(body.remove("data-collections"))?;
    refuse_other_type(body.remove("type").as_ref())?;
    refuse_extra(&body, "data-collections, type")?;
    Ok(SnapshotAction::Stop(collections.filter(|all| !all.is_empty())))
}

fn refuse_other_type(word: Option<&Value>) -> Result<(), Fault> {
    match word {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(word)) if word.eq_ignore_ascii_case("incremental") => Ok(()),
        Some(_) => Err(malformed("'type' must be \"incremental\"")),
    }
}

fn refuse_extra(body: &Map<String, Value>, members: &str) -> Result<(), Fault> {
    match body.keys().next() {
        None => Ok(()),
        Some(extra) => {
            Err(malformed(format!("'{extra}' is not a member of this request ({members})")))
        }
    }
}

fn collections(value: Option<Value>) -> Result<Option<Vec<Regex>>, Fault> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(all)) => {
            let each = all.into_iter().map(|one| match one {
                Value::String(text) => pattern(&text),
                _ => Err(malformed("'data-collections' must be a list of texts")),
            });
            each.collect::<Result<_, _>>().map(Some)
        }
        Some(_) => Err(malformed("'data-collections' must be a list of texts")),
    }
}

fn condition(value: Value) -> Result<(Regex, String), Fault> {
    let Value::Object(mut one) = value else {
        return Err(malformed("each of 'additional-conditions' must be a JSON object"));
    };
    let (table, filter) = (one.remove("data-collection"), one.remove("filter"));
    refuse_extra(&one, "data-collection, filter")?;
    match (table, filter) {
        (Some(Value::String(table)), Some(Value::String(filter))) => Ok((pattern(&table)?, filter)),
        _ => Err(malformed(
            "each of 'additional-conditions' needs the texts 'data-collection' and 'filter'",
        )),
    }
}

/// A regular expression for the whole of `schema.table`, as those of the configuration.
fn pattern(text: &str) -> Result<Regex, Fault> {
    RegexBuilder::new(&format!("^(?:{})$", text.trim()))
        .case_insensitive(true)
        .build()
        .map_err(|error| malformed(format!("'{text}' is no regular expression: {error}")))
}

fn object(bytes: &[u8]) -> Result<Map<String, Value>, Fault> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(body)) => Ok(body),
        Ok(_) => Err(malformed("the body must be a JSON object")),
        Err(_) if bytes.is_empty() => {
            Err(malformed("the body is empty; a JSON object is expected"))
        }
        Err(error) => Err(malformed(format!("the body is not JSON: {error}"))),
    }
}

fn malformed(sentence: impl Into<String>) -> Fault {
    Code::ConfigMalformed.fault(sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_asked_for_as_debezium_signals_it() {
        let body = br#"{"type": "INCREMENTAL", "data-collections": ["public.a.*", "s.B"],
            "additional-conditions": [{"data-collection": "s.b", "filter": "x > 1"}]}"#;
        let request = starts_snapshot(body).unwrap();
        assert!(
            request.collections[0].is_match("public.ab") && request.collections[1].is_match("s.b")
        );
        assert!(!request.collections[1].is_match("s.bb"));
        assert_eq!(request.conditions[0].1, "x > 1");
        let older = br#"{"data-collections": ["a.b", "a.c"], "additional-condition": "x = 1"}"#;
        assert_eq!(starts_snapshot(older).unwrap().conditions.len(), 2, "of each table");
        for wrong in [
            "",
            "[]",
            "{}",
            r#"{"data-collections": []}"#,
            r#"{"data-collections": ["("]}"#,
            r#"{"data-collections": ["a.b"], "type": "blocking"}"#,
            r#"{"data-collections": ["a.b"], "surrogate-key": "x"}"#,
            r#"{"data-collections": ["a.b"], "additional-conditions": [{"filter": "x"}]}"#,
        ] {
            assert!(starts_snapshot(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(matches!(stops_snapshot(b""), Ok(SnapshotAction::Stop(None))));
        assert!(matches!(stops_snapshot(b"{}"), Ok(SnapshotAction::Stop(None))));
        let some = stops_snapshot(br#"{"data-collections": ["a.b"], "type": "incremental"}"#);
        assert!(matches!(some, Ok(SnapshotAction::Stop(Some(all))) if all.len() == 1));
        assert!(stops_snapshot(br#"{"tables": ["a.b"]}"#).is_err());
        assert!(stops_snapshot(br#"{"type": "blocking"}"#).is_err());
    }
}

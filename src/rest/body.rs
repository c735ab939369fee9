//! Request bodies → configurations, with a sentence for whatever is wrong.

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::ApiError;
use crate::config::ConnectorConfig;
use crate::error::Code;
use crate::sources::{SnapshotAction, SnapshotRequest};
use crate::worker::Target;

/// The body of a create request.
#[derive(Debug)]
pub(super) struct Create {
    /// The name, blanks around it removed.
    pub(super) name: String,
    /// The configuration.
    pub(super) config: ConnectorConfig,
    /// The wanted state.
    pub(super) target: Target,
}

/// Reads `{"name", "config", "initial_state"?}`.
pub(super) fn create(bytes: &[u8]) -> Result<Create, ApiError> {
    let mut body = object(bytes)?;
    let name = match body.remove("name") {
        Some(Value::String(name)) => name.trim().to_owned(),
        Some(_) => return Err(malformed("'name' must be a text")),
        None => return Err(malformed("'name' is missing")),
    };
    let config = match body.remove("config") {
        Some(Value::Object(config)) => flat(config)?,
        Some(_) => return Err(malformed("'config' must be a JSON object")),
        None => return Err(malformed("'config' is missing")),
    };
    let target = match body.remove("initial_state") {
        None | Some(Value::Null) => Target::Started,
        Some(Value::String(word)) => parse_initial_state(&word)?,
        Some(_) => return Err(malformed("'initial_state' must be a text")),
    };
    if let Some(extra) = body.keys().next() {
        return Err(malformed(format!(
            "'{extra}' is not a member of a create request (name, config, initial_state)"
        )));
    }
    Ok(Create { name, config, target })
}

/// Reads a flat map.
pub(super) fn config(bytes: &[u8]) -> Result<ConnectorConfig, ApiError> {
    flat(object(bytes)?)
}

/// What becomes of a connector's offset.
pub(super) enum OffsetChange {
    /// It is forgotten.
    Forget,
    /// Another program's, of this partition, takes its place.
    TakeOver { partition: Value, offset: Value },
}

/// Reads `{"offsets": [{"partition", "offset"}]}`. A connector has one partition.
pub(super) fn offset_change(bytes: &[u8]) -> Result<OffsetChange, ApiError> {
    let mut body = object(bytes)?;
    let offsets = match body.remove("offsets") {
        Some(Value::Array(offsets)) if !offsets.is_empty() => offsets,
        _ => {
            return Err(ApiError::bad_request(
                "Partitions / offsets need to be provided for an alter offsets request",
            ));
        }
    };
    if offsets.iter().all(|one| one.get("offset").is_some_and(Value::is_null)) {
        return Ok(OffsetChange::Forget);
    }
    let [Value::Object(only)] = &offsets[..] else {
        return Err(malformed("a connector has one partition, so there is one offset to set"));
    };
    match (only.get("partition"), only.get("offset")) {
        (Some(partition @ Value::Object(_)), Some(offset @ Value::Object(_))) => {
            Ok(OffsetChange::TakeOver { partition: partition.clone(), offset: offset.clone() })
        }
        _ => Err(malformed("'partition' and 'offset' must be JSON objects")),
    }
}

/// Reads `{"mode": "from_now" | "resnapshot"}`; says whether it is the second.
pub(super) fn applies_filters(bytes: &[u8]) -> Result<bool, ApiError> {
    let mut body = object(bytes)?;
    let mode = body.remove("mode");
    if let Some(extra) = body.keys().next() {
        return Err(malformed(format!("'{extra}' is not a member of this request (mode)")));
    }
    match mode.as_ref().and_then(Value::as_str) {
        Some("from_now") => Ok(false),
        Some("resnapshot") => Ok(true),
        _ => Err(ApiError::bad_request(
            Code::ConfigMalformed
                .fault("'mode' must be \"from_now\" or \"resnapshot\"")
                .hint(
                    "Send {\"mode\": \"from_now\"} (the new filters hold behind the offset) or \
                     {\"mode\": \"resnapshot\"} (and rows that they move are looked for); \
                     docs/filters.md, \"Another filter\".",
                )
                .to_string(),
        )),
    }
}

/// Reads `{"data-collections", "additional-conditions"?, "type"?}` as Debezium's signal
/// `execute-snapshot` has it.
pub(super) fn starts_snapshot(bytes: &[u8]) -> Result<SnapshotRequest, ApiError> {
    let mut body = object(bytes)?;
    let collections =
        collections(body.remove("data-collections"))?.filter(|all| !all.is_empty()).ok_or_else(
            || malformed("'data-collections' must be a list of tables, schema.table"),
        )?;
    let conditions = match body.remove("additional-conditions") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(all)) => all.into_iter().map(condition).collect::<Result<_, _>>()?,
        Some(_) => return Err(malformed("'additional-conditions' must be a list")),
    };
    match body.remove("type") {
        None => {}
        Some(Value::String(word)) if word.eq_ignore_ascii_case("incremental") => {}
        Some(_) => return Err(malformed("'type' must be \"incremental\"")),
    }
    refuse_extra(&body, "data-collections, additional-conditions, type")?;
    Ok(SnapshotRequest { collections, conditions })
}

/// Reads `{"data-collections"?}`; no body, or none of them, is all tables.
pub(super) fn stops_snapshot(bytes: &[u8]) -> Result<SnapshotAction, ApiError> {
    if bytes.is_empty() {
        return Ok(SnapshotAction::Stop(None));
    }
    let mut body = object(bytes)?;
    let collections = collections(body.remove("data-collections"))?;
    refuse_extra(&body, "data-collections")?;
    Ok(SnapshotAction::Stop(collections.filter(|all| !all.is_empty())))
}

fn refuse_extra(body: &Map<String, Value>, members: &str) -> Result<(), ApiError> {
    match body.keys().next() {
        None => Ok(()),
        Some(extra) => {
            Err(malformed(format!("'{extra}' is not a member of this request ({members})")))
        }
    }
}

fn collections(value: Option<Value>) -> Result<Option<Vec<Regex>>, ApiError> {
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

fn condition(value: Value) -> Result<(Regex, String), ApiError> {
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
fn pattern(text: &str) -> Result<Regex, ApiError> {
    RegexBuilder::new(&format!("^(?:{})$", text.trim()))
        .case_insensitive(true)
        .build()
        .map_err(|error| malformed(format!("'{text}' is no regular expression: {error}")))
}

fn parse_initial_state(word: &str) -> Result<Target, ApiError> {
    match word.to_ascii_uppercase().as_str() {
        "RUNNING" => Ok(Target::Started),
        "PAUSED" => Ok(Target::Paused),
        "STOPPED" => Ok(Target::Stopped),
        _ => Err(malformed("'initial_state' must be RUNNING, PAUSED or STOPPED")),
    }
}

fn object(bytes: &[u8]) -> Result<Map<String, Value>, ApiError> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(body)) => Ok(body),
        Ok(_) => Err(malformed("the body must be a JSON object")),
        Err(_) if bytes.is_empty() => {
            Err(malformed("the body is empty; a JSON object is expected"))
        }
        Err(error) => Err(malformed(format!("the body is not JSON: {error}"))),
    }
}

/// Scalars become text as Connect coerces them; nested values are refused by name.
fn flat(map: Map<String, Value>) -> Result<ConnectorConfig, ApiError> {
    map.into_iter()
        .map(|(key, value)| {
            let text = match value {
                Value::Null => None,
                Value::String(text) => Some(text),
                Value::Bool(flag) => Some(flag.to_string()),
                Value::Number(number) => Some(number.to_string()),
                Value::Array(_) | Value::Object(_) => {
                    return Err(malformed(format!(
                        "the value of '{key}' is a nested JSON value; \
                         write lists as one text with commas"
                    )));
                }
            };
            Ok((key, text))
        })
        .collect()
}

fn malformed(sentence: impl Into<String>) -> ApiError {
    ApiError::bad_request(Code::ConfigMalformed.fault(sentence).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, expected: &str) {
        let error = create(body.as_bytes()).unwrap_err();
        assert!(format!("{error:?}").contains(expected), "{error:?}");
    }

    #[test]
    fn whatever_is_wrong_is_named() {
        check("", "the body is empty");
        check("{", "not JSON");
        check("[]", "must be a JSON object");
        check(r#"{"config":{}}"#, "'name' is missing");
        check(r#"{"name":"a"}"#, "'config' is missing");
        check(r#"{"name":"a","config":{"k":{"x":1}}}"#, "'k' is a nested JSON value");
        check(r#"{"name":"a","config":{},"cfg":1}"#, "'cfg' is not a member");
        check(r#"{"name":"a","config":{},"initial_state":"GONE"}"#, "RUNNING, PAUSED or STOPPED");
    }

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
        for wrong in [
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
        let some = stops_snapshot(br#"{"data-collections": ["a.b"]}"#);
        assert!(matches!(some, Ok(SnapshotAction::Stop(Some(all))) if all.len() == 1));
        assert!(stops_snapshot(br#"{"tables": ["a.b"]}"#).is_err());
    }

    #[test]
    fn scalars_become_text_and_order_is_kept() {
        let body = br#"{"name":" a ","config":{"z":1,"y":true,"x":1.5,"w":"t","v":null}}"#;
        let create = create(body).unwrap();
        assert_eq!(create.name, "a");
        let pairs: Vec<_> =
            create.config.iter().map(|(key, value)| (key.as_str(), value.as_deref())).collect();
        assert_eq!(
            pairs,
            [
                ("z", Some("1")),
                ("y", Some("true")),
                ("x", Some("1.5")),
                ("w", Some("t")),
                ("v", None)
            ]
        );
    }
}

//! Request bodies → configurations, with a sentence for whatever is wrong.

use serde_json::{Map, Value};

use super::ApiError;
use crate::config::ConnectorConfig;
use crate::error::Code;
use crate::sources::{self, SnapshotAction, SnapshotRequest};
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

/// Reads the request for a snapshot.
pub(super) fn starts_snapshot(bytes: &[u8]) -> Result<SnapshotRequest, ApiError> {
    sources::starts_snapshot(bytes).map_err(|fault| ApiError::bad_request(fault.to_string()))
}

/// Reads which tables' snapshots end.
pub(super) fn stops_snapshot(bytes: &[u8]) -> Result<SnapshotAction, ApiError> {
    sources::stops_snapshot(bytes).map_err(|fault| ApiError::bad_request(fault.to_string()))
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

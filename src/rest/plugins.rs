//! The handlers under `/connector-plugins`: what there is, its keys, and whether a configuration
//! would be taken.

use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::connectors::query_values;
use super::content::Content;
use super::{Api, ApiError, answers, body};
use crate::config::{ConfigInfo, Definition, Validation, definitions, find_class, plug_ins};
use crate::sources::{CLASSES, SourceClass};

type Answer = Result<Response, ApiError>;

/// `GET /connector-plugins`; with `connectorsOnly=false` converters, predicates and transforms, too.
pub(super) async fn list(State(api): State<Api>, RawQuery(query): RawQuery) -> Answer {
    let connectors_only = query_values(query.as_deref(), "connectorsOnly")
        .next()
        .is_none_or(|flag| flag.eq_ignore_ascii_case("true"));
    let connectors = CLASSES.iter().filter_map(|class| class.names.first().copied());
    let mut all: Vec<_> = connectors.map(|name| (name, "source")).collect();
    if !connectors_only {
        all.extend(plug_ins());
    }
    let plugins: Vec<_> = all
        .into_iter()
        .map(|(name, kind)| json!({ "class": name, "type": kind, "version": api.identity.version }))
        .collect();
    Ok(answers::json(StatusCode::OK, &json!(plugins)))
}

/// `GET /connector-plugins/{plugin}/config`.
pub(super) async fn config(Path(plugin): Path<String>) -> Answer {
    let all: Vec<_> = definitions(known(&plugin)?).iter().map(definition).collect();
    Ok(answers::json(StatusCode::OK, &json!(all)))
}

/// `PUT /connector-plugins/{plugin}/config/validate`.
pub(super) async fn validate(
    State(api): State<Api>,
    Path(plugin): Path<String>,
    Content(bytes): Content,
) -> Answer {
    let class = known(&plugin)?;
    let mut config = body::config(&bytes)?;
    match config.get("connector.class").cloned().flatten() {
        None => {
            config.insert("connector.class".to_owned(), Some(plugin.clone()));
        }
        Some(named) if find_class(&named).is_some_and(|found| found.names == class.names) => {}
        Some(named) => {
            return Err(ApiError::bad_request(format!(
                "Included connector class {named} does not match request type {plugin}"
            )));
        }
    }
    let validation = api.herder.describe(&config).await;
    Ok(answers::json(StatusCode::OK, &infos(&plugin, &validation)))
}

fn known(plugin: &str) -> Result<&'static SourceClass, ApiError> {
    find_class(plugin)
        .ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, format!("Unknown plugin {plugin}.")))
}

/// `ConfigInfos`.
fn infos(plugin: &str, validation: &Validation) -> Value {
    let mut body = json!({
        "name": plugin,
        "error_count": validation.error_count,
        "groups": validation.groups,
        "configs": validation.configs.iter().map(info).collect::<Vec<_>>(),
    });
    answers::add_notes(&mut body, &validation.notes);
    body
}

fn info(info: &ConfigInfo) -> Value {
    json!({
        "definition": info.definition.as_ref().map(definition),
        "value": {
            "name": info.value.name,
            "value": info.value.value,
            "recommended_values": info.value.recommended_values,
            "errors": info.value.errors,
            "visible": true,
        },
    })
}

/// The place in the group has two names: one up to Connect 4.0, the other since.
fn definition(definition: &Definition) -> Value {
    json!({
        "name": definition.name,
        "type": definition.kind,
        "required": definition.required,
        "default_value": definition.default_value,
        "importance": definition.importance,
        "documentation": definition.documentation,
        "group": definition.group,
        "order_in_group": definition.order,
        "order": definition.order,
        "width": definition.width,
        "display_name": definition.display_name,
        "dependents": [],
    })
}

//! What of an Avro schema decides how bytes are read: two schemas with one essence can stand for
//! each other in a record's prefix.
//!
//! Avro's own parsing canonical form leaves logical types out, by which a decimal of another scale
//! would be the same schema and other numbers; so these and Connect's names count here too. What
//! documents, or helps readers with other schemas (documentation, defaults, aliases, parameters),
//! does not. **Invariant:** what cannot be understood has no essence, and so is never the same.

use serde_json::{Map, Value, json};

/// What counts beside names, types and their order.
const MEANING: [&str; 5] = ["logicalType", "precision", "scale", "connect.name", "size"];
/// Avro's types that have no name of their own.
const PRIMITIVES: [&str; 8] =
    ["null", "boolean", "int", "long", "float", "double", "bytes", "string"];

/// Whether bytes written by one of the schemas say the same when they are read by the other;
/// otherwise the first place where they do not.
pub(super) fn compare(own: &str, other: &str) -> Result<(), String> {
    let [own, other] = [own, other]
        .map(|text| serde_json::from_str(text).ok().and_then(|schema: Value| essence(&schema, "")));
    match (own, other) {
        (Some(own), Some(other)) => match difference(&own, &other, "") {
            Some(place) => Err(place),
            None => Ok(()),
        },
        _ => Err("the schema cannot be understood".to_owned()),
    }
}

/// A schema without what does not count; `None` if it is none.
fn essence(schema: &Value, namespace: &str) -> Option<Value> {
    match schema {
        Value::String(name) if PRIMITIVES.contains(&name.as_str()) => Some(json!({ "type": name })),
        Value::String(name) => Some(json!({ "type": full_name(name, namespace) })),
        Value::Array(branches) => {
            let branches = branches.iter().map(|branch| essence(branch, namespace));
            Some(Value::Array(branches.collect::<Option<_>>()?))
        }
        Value::Object(object) => essence_of_object(object, namespace),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn essence_of_object(object: &Map<String, Value>, namespace: &str) -> Option<Value> {
    let kind = match object.get("type")? {
        Value::String(kind) => kind.as_str(),
        // a type within a type
        inner => return essence(inner, namespace),
    };
    let mut essential = Map::new();
    let mut inner = namespace.to_owned();
    if matches!(kind, "record" | "error" | "enum" | "fixed") {
        let given = object.get("namespace").and_then(Value::as_str).unwrap_or(namespace);
        let name = full_name(object.get("name")?.as_str()?, given);
        inner = name.rsplit_once('.').map_or_else(String::new, |(space, _)| space.to_owned());
        essential.insert("name".to_owned(), name.into());
    }
    let kind_is_known = essential.contains_key("name")
        || matches!(kind, "array" | "map")
        || PRIMITIVES.contains(&kind);
    let shown = if kind_is_known { kind.to_owned() } else { full_name(kind, namespace) };
    essential.insert("type".to_owned(), shown.into());
    for name in MEANING.into_iter().chain(["symbols"]) {
        if let Some(value) = object.get(name) {
            essential.insert(name.to_owned(), value.clone());
        }
    }
    for name in ["items", "values"] {
        if let Some(element) = object.get(name) {
            essential.insert(name.to_owned(), essence(element, &inner)?);
        }
    }
    if let Some(fields) = object.get("fields") {
        let fields = fields.as_array()?.iter().map(|field| {
            let of_type = essence(field.get("type")?, &inner)?;
            Some(json!({ "name": field.get("name")?.as_str()?, "type": of_type }))
        });
        essential.insert("fields".to_owned(), Value::Array(fields.collect::<Option<_>>()?));
    }
    Some(Value::Object(essential))
}

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}.{name}")
    }
}

/// The first place at which two essences differ, `fields.after.fields.v: "int" and "long"`.
fn difference(own: &Value, other: &Value, place: &str) -> Option<String> {
    match (own, other) {
        (Value::Object(own), Value::Object(other)) => {
            let names = own.keys().chain(other.keys().filter(|name| !own.contains_key(*name)));
            names.into_iter().find_map(|name| {
                let at = joined(place, name);
                match (own.get(name), other.get(name)) {
                    (Some(own), Some(other)) => difference(own, other, &at),
                    (own, other) => Some(told(&at, own, other)),
                }
            })
        }
        (Value::Array(own), Value::Array(other)) => {
            (0..own.len().max(other.len())).find_map(|index| {
                let (own, other) = (own.get(index), other.get(index));
                let named = own.or(other).and_then(|one| one.get("name")).and_then(Value::as_str);
                let at = joined(place, named.unwrap_or(&index.to_string()));
                match (own, other) {
                    (Some(own), Some(other)) => difference(own, other, &at),
                    (own, other) => Some(told(&at, own, other)),
                }
            })
        }
        (own, other) => (own != other).then(|| told(place, Some(own), Some(other))),
    }
}

fn joined(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

fn told(place: &str, own: Option<&Value>, other: Option<&Value>) -> String {
    let shown = |value: Option<&Value>| match value {
        None => "nothing".to_owned(),
        Some(value @ (Value::Object(_) | Value::Array(_))) => {
            value.get("name").map_or_else(|| "another type".to_owned(), ToString::to_string)
        }
        Some(value) => value.to_string(),
    };
    format!("{place}: {} here, {} there", shown(own), shown(other))
}

#[cfg(test)]
mod unit {
    use super::*;

    const OWN: &str = r#"{"type":"record","name":"E","namespace":"n","fields":[
        {"name":"d","type":{"type":"bytes","scale":2,"precision":9,"connect.version":1,"logicalType":"decimal"}},
        {"name":"v","type":["null",{"type":"record","name":"V","fields":[{"name":"a","type":"int"}]}],"default":null},
        {"name":"w","type":["null","V"],"default":null},
        {"name":"l","type":{"type":"array","items":"V"}},
        {"name":"e","type":{"type":"enum","name":"K","symbols":["a","b"]}}]}"#;

    #[track_caller]
    fn check(from: &str, to: &str, expect: Option<&str>) {
        let other = OWN.replacen(from, to, 1);
        assert_ne!(other, OWN);
        assert_eq!(compare(OWN, &other).err().as_deref(), expect);
        assert_eq!(compare(&other, OWN).is_err(), expect.is_some());
    }

    #[test]
    fn what_documents_does_not_count() {
        check(r#"{"name":"v""#, r#"{"doc":"x","aliases":["y"],"name":"v""#, None);
        check(r#""type":"int""#, r#""type":{"type":"int"}"#, None);
        check(r#""type":"int""#, r#""type":"int","default":3"#, None);
        check(r#""V"],"#, r#""n.V"],"#, None);
        check(r#","connect.version":1"#, r#","connect.parameters":{"x":"1"}"#, None);
    }

    #[test]
    fn what_decides_how_bytes_are_read_is_named() {
        check(r#""scale":2"#, r#""scale":3"#, Some("fields.d.type.scale: 2 here, 3 there"));
        check(
            r#","logicalType":"decimal""#,
            "",
            Some(r#"fields.d.type.logicalType: "decimal" here, nothing there"#),
        );
        let long = r#"fields.v.type.n.V.fields.a.type.type: "int" here, "long" there"#;
        check(r#""type":"int""#, r#""type":"long""#, Some(long));
        check(r#""a","b""#, r#""a""#, Some(r#"fields.e.type.symbols.1: "b" here, nothing there"#));
        check(
            r#"["null","V"]"#,
            r#"["V","null"]"#,
            Some("fields.w.type.0.type: \"null\" here, \"n.V\" there"),
        );
        let field = Some(r#"fields.b: nothing here, "b" there"#);
        check(r#"["a","b"]}}"#, r#"["a","b"]}},{"name":"b","type":"int"}"#, field);
        assert!(compare(OWN, "?").is_err());
        assert!(compare("{}", "{}").is_err());
    }
}

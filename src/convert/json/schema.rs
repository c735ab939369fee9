//! Connect schema → the JSON that `JsonConverter` puts before each payload (`schemas.enable=true`).
//!
//! Knows no table. **Invariant:** members stand in the converter's own order.

use super::text::{append_integer, append_string};
use super::writer::Json;
use crate::convert::literal::append_literal;
use crate::error::Fault;
use crate::record::{Kind, Literal, Schema};

/// Appends the schema; `style` says how a decimal's default is spelled.
pub(in crate::convert) fn append_schema(
    out: &mut Vec<u8>,
    schema: &Schema,
    style: Json,
) -> Result<(), Fault> {
    append_member(out, schema, style, None)
}

fn append_member(
    out: &mut Vec<u8>,
    schema: &Schema,
    style: Json,
    field: Option<&str>,
) -> Result<(), Fault> {
    append_kind(out, schema, style)?;
    out.extend_from_slice(if schema.optional {
        b",\"optional\":true".as_slice()
    } else {
        b",\"optional\":false"
    });
    if let Some(name) = &schema.name {
        out.extend_from_slice(b",\"name\":");
        append_string(out, name);
    }
    if let Some(version) = schema.version {
        out.extend_from_slice(b",\"version\":");
        append_integer(out, version.into());
    }
    if let Some(doc) = &schema.doc {
        out.extend_from_slice(b",\"doc\":");
        append_string(out, doc);
    }
    if !schema.parameters.is_empty() {
        out.extend_from_slice(b",\"parameters\":");
        let mut separator = b'{';
        for (name, value) in &schema.parameters {
            out.push(separator);
            append_string(out, name);
            out.push(b':');
            append_string(out, value);
            separator = b',';
        }
        out.push(b'}');
    }
    if let Some(default) = &schema.default
        && *default != Literal::Null
    {
        out.extend_from_slice(b",\"default\":");
        append_literal(&style, schema, default, out)?;
    }
    if let Some(field) = field {
        out.extend_from_slice(b",\"field\":");
        append_string(out, field);
    }
    out.push(b'}');
    Ok(())
}

/// `{"type":…` with what belongs to the kind, left open.
fn append_kind(out: &mut Vec<u8>, schema: &Schema, style: Json) -> Result<(), Fault> {
    let name = match &schema.kind {
        Kind::Int8 => "int8",
        Kind::Int16 => "int16",
        Kind::Int32 => "int32",
        Kind::Int64 => "int64",
        Kind::Float32 => "float",
        Kind::Float64 => "double",
        Kind::Boolean => "boolean",
        Kind::String => "string",
        Kind::Bytes => "bytes",
        Kind::Struct(fields) => {
            out.extend_from_slice(b"{\"type\":\"struct\",\"fields\":[");
            for (index, field) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                append_member(out, &field.schema, style, Some(&field.name))?;
            }
            out.push(b']');
            return Ok(());
        }
        Kind::Array(items) => {
            out.extend_from_slice(b"{\"type\":\"array\",\"items\":");
            return append_schema(out, items, style);
        }
        Kind::Map(values) => {
            out.extend_from_slice(
                b"{\"type\":\"map\",\"keys\":{\"type\":\"string\",\"optional\":false},\"values\":",
            );
            return append_schema(out, values, style);
        }
    };
    out.extend_from_slice(b"{\"type\":");
    append_string(out, name);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::testing::{compact, golden_files, schema_from_json};

    #[test]
    fn recorded_schemas_are_spelled_byte_for_byte() {
        for file in golden_files(".schema.json") {
            let recorded = std::fs::read_to_string(&file).unwrap();
            let schema = schema_from_json(&serde_json::from_str(&recorded).unwrap());
            let mut out = Vec::new();
            append_schema(&mut out, &schema, Json::Base64).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), compact(&recorded), "{}", file.display());
        }
    }
}

//! Connect schema → the text of the Avro schema that is registered for it.
//!
//! Spells what Confluent's converter spells at its default settings, property order included: a
//! registry compares texts, and a taken-over subject must not gain a version. Knows no table and no
//! registry. **Invariants:** every text that leaves here has been parsed by `apache-avro` and its
//! canonical form computed; [`null_branch`] is the only place that decides a union's order.

use std::collections::HashMap;

use apache_avro::Schema as AvroSchema;

use crate::convert::json::text::{
    append_float32, append_float64, append_integer, append_latin1, append_string,
};
use crate::error::{Code, Fault};
use crate::record::{Field, Kind, Literal, Schema};

/// Where structs without a name go.
const DEFAULT_NAMESPACE: &str = "io.confluent.connect.avro";
/// What the first of them is called; the others carry a number behind it.
const DEFAULT_NAME: &str = "ConnectDefault";

/// Connect's own logical types that Avro knows too.
const DECIMAL: &str = "org.apache.kafka.connect.data.Decimal";
const LOGICAL_TYPES: [(&str, &str); 4] = [
    (DECIMAL, "decimal"),
    ("org.apache.kafka.connect.data.Date", "date"),
    ("org.apache.kafka.connect.data.Time", "time-millis"),
    ("org.apache.kafka.connect.data.Timestamp", "timestamp-millis"),
];
/// Precision of a decimal whose schema does not say.
const DEFAULT_PRECISION: i64 = 64;

/// The branch of null in the union of an optional schema: behind the type if there is a default,
/// for Avro takes a field's default as a value of the first branch. `None`: no union.
pub(in crate::convert) fn null_branch(schema: &Schema) -> Option<u8> {
    schema.optional.then(|| u8::from(default_of(schema).is_some()))
}

/// The default that the Avro schema can carry. JSON, the notation of Avro's defaults, has no
/// number for NaN and the infinities, so a default that holds one is left out.
fn default_of(schema: &Schema) -> Option<&Literal> {
    schema.default.as_ref().filter(|default| **default != Literal::Null && is_finite(default))
}

fn is_finite(literal: &Literal) -> bool {
    match literal {
        Literal::Float32(value) => value.is_finite(),
        Literal::Float64(value) => value.is_finite(),
        Literal::Array(items) | Literal::Struct(items) => items.iter().all(is_finite),
        Literal::Map(entries) => entries.iter().all(|(_, value)| is_finite(value)),
        Literal::Null
        | Literal::Boolean(_)
        | Literal::Int(_)
        | Literal::String(_)
        | Literal::Bytes(_) => true,
    }
}

/// The text of the Avro schema, without white space.
///
/// # Errors
/// [`Code::SchemaIllegalName`] if a name is not legal in Avro; [`Code::SchemaInvalid`] if the
/// schema contradicts itself or Avro's parser refuses the text.
pub(in crate::convert) fn schema_text(schema: &Schema) -> Result<String, Fault> {
    let mut writer = Writer { out: Vec::new(), defined: HashMap::new(), unnamed: 0 };
    writer.schema(schema, None)?;
    let text = String::from_utf8(writer.out)
        .map_err(|error| Code::Internal.fault("a schema's text is not UTF-8").caused_by(&error))?;
    let parsed = AvroSchema::parse_str(&text).map_err(|error| {
        Code::SchemaInvalid
            .fault(format!("the Avro parser refuses the schema '{text}'"))
            .caused_by(&error)
    })?;
    // Computing it walks every reference of the schema; consumers that fingerprint do the same.
    if parsed.canonical_form().is_empty() {
        return Err(Code::SchemaInvalid.fault(format!("no canonical form for the schema '{text}'")));
    }
    Ok(text)
}

struct Writer<'a> {
    out: Vec<u8>,
    /// Records written so far, by full name.
    defined: HashMap<String, &'a [Field]>,
    unnamed: u32,
}

impl<'a> Writer<'a> {
    fn raw(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// `,"key":` with the comma.
    fn property(&mut self, key: &str) {
        self.out.push(b',');
        append_string(&mut self.out, key);
        self.out.push(b':');
    }

    fn schema(&mut self, schema: &'a Schema, space: Option<&str>) -> Result<(), Fault> {
        match null_branch(schema) {
            None => self.inner(schema, space),
            Some(0) => {
                self.raw("[\"null\",");
                self.inner(schema, space)?;
                self.raw("]");
                Ok(())
            }
            Some(_) => {
                self.raw("[");
                self.inner(schema, space)?;
                self.raw(",\"null\"]");
                Ok(())
            }
        }
    }

    /// The schema without its union.
    fn inner(&mut self, schema: &'a Schema, space: Option<&str>) -> Result<(), Fault> {
        let primitive = match &schema.kind {
            Kind::Struct(fields) => return self.record(schema, fields, space),
            Kind::Array(items) => {
                self.raw("{\"type\":\"array\",\"items\":");
                self.schema(items, space)?;
                self.properties(schema)?;
                self.raw("}");
                return Ok(());
            }
            Kind::Map(values) => {
                self.raw("{\"type\":\"map\",\"values\":");
                self.schema(values, space)?;
                self.properties(schema)?;
                self.raw("}");
                return Ok(());
            }
            Kind::Int8 | Kind::Int16 | Kind::Int32 => "int",
            Kind::Int64 => "long",
            Kind::Float32 => "float",
            Kind::Float64 => "double",
            Kind::Boolean => "boolean",
            Kind::String => "string",
            Kind::Bytes => "bytes",
        };
        let start = self.out.len();
        self.raw("{\"type\":");
        append_string(&mut self.out, primitive);
        let bare = self.out.len();
        if schema.kind == Kind::Bytes && schema.name.as_deref() == Some(DECIMAL) {
            self.decimal(schema)?;
        }
        self.properties(schema)?;
        if self.out.len() == bare {
            self.out.truncate(start);
            append_string(&mut self.out, primitive);
        } else {
            self.raw("}");
        }
        Ok(())
    }

    fn decimal(&mut self, schema: &Schema) -> Result<(), Fault> {
        let number = |name: &str| {
            let value = schema.parameters.iter().find(|(key, _)| key == name);
            value.map(|(_, value)| value.parse::<i64>()).transpose().map_err(|error| {
                Code::SchemaInvalid
                    .fault(format!("parameter '{name}' of a decimal schema is no integer"))
                    .caused_by(&error)
            })
        };
        let scale = number("scale")?.ok_or_else(|| {
            Code::SchemaInvalid.fault("a decimal schema has no parameter 'scale'")
        })?;
        let precision = number("connect.decimal.precision")?.unwrap_or(DEFAULT_PRECISION);
        self.property("scale");
        append_integer(&mut self.out, scale);
        self.property("precision");
        append_integer(&mut self.out, precision);
        Ok(())
    }

    fn record(
        &mut self,
        schema: &'a Schema,
        fields: &'a [Field],
        space: Option<&str>,
    ) -> Result<(), Fault> {
        let full = match &schema.name {
            Some(name) => name.clone(),
            None => self.default_name(),
        };
        let (namespace, name) = match full.rsplit_once('.') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, full.as_str()),
        };
        if let Some(earlier) = self.defined.get(&full) {
            if *earlier != fields {
                return Err(Code::SchemaInvalid
                    .fault(format!("two different records are both called '{full}'")));
            }
            append_string(&mut self.out, reference(namespace, name, &full, space));
            return Ok(());
        }
        check_names(&full, fields)?;
        self.defined.insert(full.clone(), fields);
        self.raw("{\"type\":\"record\"");
        self.property("name");
        append_string(&mut self.out, name);
        if namespace != space {
            self.property("namespace");
            append_string(&mut self.out, namespace.unwrap_or_default());
        }
        self.property("fields");
        self.out.push(b'[');
        for (index, field) in fields.iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.field(field, namespace).map_err(|fault| fault.at_column(&field.name))?;
        }
        self.out.push(b']');
        self.properties(schema)?;
        self.raw("}");
        Ok(())
    }

    fn default_name(&mut self) -> String {
        self.unnamed += 1;
        match self.unnamed {
            1 => format!("{DEFAULT_NAMESPACE}.{DEFAULT_NAME}"),
            number => format!("{DEFAULT_NAMESPACE}.{DEFAULT_NAME}{number}"),
        }
    }

    fn field(&mut self, field: &'a Field, space: Option<&str>) -> Result<(), Fault> {
        self.raw("{\"name\":");
        append_string(&mut self.out, &field.name);
        self.property("type");
        self.schema(&field.schema, space)?;
        if let Some(default) = default_of(&field.schema) {
            self.property("default");
            append_default(&mut self.out, &field.schema, default)?;
        } else if field.schema.optional {
            self.raw(",\"default\":null");
        }
        self.raw("}");
        Ok(())
    }

    /// What Avro has no place for, in the converter's order.
    fn properties(&mut self, schema: &Schema) -> Result<(), Fault> {
        if let Some(doc) = &schema.doc {
            self.property("connect.doc");
            append_string(&mut self.out, doc);
        }
        if let Some(version) = schema.version {
            self.property("connect.version");
            append_integer(&mut self.out, i64::from(version));
        }
        if !schema.parameters.is_empty() {
            self.property("connect.parameters");
            let mut separator = b'{';
            for (name, value) in &schema.parameters {
                self.out.push(separator);
                append_string(&mut self.out, name);
                self.out.push(b':');
                append_string(&mut self.out, value);
                separator = b',';
            }
            self.raw("}");
        }
        if let Some(default) = default_of(schema) {
            self.property("connect.default");
            append_default(&mut self.out, schema, default)?;
        }
        if let Some(name) = &schema.name {
            self.property("connect.name");
            append_string(&mut self.out, name);
        }
        match schema.kind {
            Kind::Int8 => self.raw(",\"connect.type\":\"int8\""),
            Kind::Int16 => self.raw(",\"connect.type\":\"int16\""),
            _ => {}
        }
        if let Some(name) = &schema.name
            && let Some((_, logical)) = LOGICAL_TYPES.iter().find(|(known, _)| known == name)
        {
            self.property("logicalType");
            append_string(&mut self.out, logical);
        }
        Ok(())
    }
}

/// How a record that is already defined is named from inside `space`: in full unless it lies in the
/// same namespace and its short name is not a type's.
fn reference<'n>(
    namespace: Option<&str>,
    name: &'n str,
    full: &'n str,
    space: Option<&str>,
) -> &'n str {
    const TYPES: [&str; 14] = [
        "record", "enum", "array", "map", "union", "fixed", "string", "bytes", "int", "long",
        "float", "double", "boolean", "null",
    ];
    if namespace == space && !TYPES.contains(&name) { name } else { full }
}

/// Avro's names: ASCII letters, digits and `_`, not beginning with a digit; in a full name each part
/// between dots. (Java's library is laxer than the specification; most other readers are not.)
fn is_legal(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn check_names(full: &str, fields: &[Field]) -> Result<(), Fault> {
    if let Some(part) = full.split('.').find(|part| !is_legal(part)) {
        return Err(Code::SchemaIllegalName
            .fault(format!("'{part}' in the record name '{full}' is not a legal Avro name"))
            .hint("Set schema.name.adjustment.mode=avro (or avro_unicode), or rename."));
    }
    for (index, field) in fields.iter().enumerate() {
        if !is_legal(&field.name) {
            return Err(Code::SchemaIllegalName
                .fault(format!("'{}' in record '{full}' is not a legal Avro name", field.name))
                .at_column(&field.name)
                .hint("Set field.name.adjustment.mode=avro (or avro_unicode), or rename."));
        }
        if fields.iter().take(index).any(|earlier| earlier.name == field.name) {
            return Err(Code::SchemaIllegalName
                .fault(format!("record '{full}' has two fields called '{}'", field.name))
                .at_column(&field.name)
                .hint("Set field.name.adjustment.mode=avro_unicode, or rename."));
        }
    }
    Ok(())
}

/// A default in Avro's JSON notation.
fn append_default(out: &mut Vec<u8>, schema: &Schema, literal: &Literal) -> Result<(), Fault> {
    match (&schema.kind, literal) {
        (_, Literal::Null) if schema.optional => out.extend_from_slice(b"null"),
        (Kind::Boolean, Literal::Boolean(value)) => {
            out.extend_from_slice(if *value { b"true" } else { b"false" });
        }
        (Kind::Int8 | Kind::Int16 | Kind::Int32 | Kind::Int64, Literal::Int(value)) => {
            append_integer(out, *value);
        }
        (Kind::Float32, Literal::Float32(value)) => append_float32(out, *value, true),
        (Kind::Float64, Literal::Float64(value)) => append_float64(out, *value, true),
        (Kind::String, Literal::String(value)) => append_string(out, value),
        (Kind::Bytes, Literal::Bytes(value)) => append_latin1(out, value),
        (Kind::Array(items), Literal::Array(values)) => {
            out.push(b'[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                append_default(out, items, value)?;
            }
            out.push(b']');
        }
        (Kind::Struct(fields), Literal::Struct(values)) if fields.len() == values.len() => {
            let mut separator = b'{';
            for (field, value) in fields.iter().zip(values) {
                out.push(separator);
                append_string(out, &field.name);
                out.push(b':');
                append_default(out, &field.schema, value)?;
                separator = b',';
            }
            if fields.is_empty() {
                out.push(b'{');
            }
            out.push(b'}');
        }
        (Kind::Map(schema), Literal::Map(entries)) => {
            out.push(b'{');
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                append_string(out, key);
                out.push(b':');
                append_default(out, schema, value)?;
            }
            out.push(b'}');
        }
        _ => return Err(Code::SchemaInvalid.fault("a default is not of its schema's kind")),
    }
    Ok(())
}

//! What the tests of this module share: schemas from recorded files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value as Avro;
use apache_avro::writer::datum::GenericDatumWriter;
use serde_json::Value;

use crate::change::{
    ByteText, Cell, CellParser, ChangeKind, Column, ColumnType, Decimal, DeclaredType, Event,
    NativeType, RowImage, Scalar, Sequence, SequenceReader, ValueError,
};
use crate::record::{Field, Kind, Literal, Schema};

/// The recorded files, by case.
pub(super) fn golden_files(suffix: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/golden");
    let mut files = Vec::new();
    for case in std::fs::read_dir(root).unwrap() {
        for file in std::fs::read_dir(case.unwrap().path()).unwrap() {
            let file = file.unwrap().path();
            if file.to_str().unwrap().ends_with(suffix) {
                files.push(file);
            }
        }
    }
    files.sort();
    files
}

/// Takes out the white space outside strings, which the recording added.
pub(super) fn compact(text: &str) -> String {
    let (mut inside, mut escaped) = (false, false);
    text.chars()
        .filter(|&c| {
            let keep = inside || !c.is_ascii_whitespace();
            inside = match (inside, c) {
                (true, '"') if !escaped => false,
                (false, '"') => true,
                (state, _) => state,
            };
            escaped = inside && c == '\\' && !escaped;
            keep
        })
        .collect()
}

/// A schema from the form in which the JSON converter prints it.
pub(super) fn schema_from_json(json: &Value) -> Schema {
    let text = |key: &str| json.get(key).and_then(Value::as_str);
    let kind = match text("type").unwrap() {
        "int8" => Kind::Int8,
        "int16" => Kind::Int16,
        "int32" => Kind::Int32,
        "int64" => Kind::Int64,
        "float" => Kind::Float32,
        "double" => Kind::Float64,
        "boolean" => Kind::Boolean,
        "string" => Kind::String,
        "bytes" => Kind::Bytes,
        "array" => Kind::Array(Arc::new(schema_from_json(&json["items"]))),
        "map" => Kind::Map(Arc::new(schema_from_json(&json["values"]))),
        "struct" => {
            Kind::Struct(json["fields"].as_array().unwrap().iter().map(field_from_json).collect())
        }
        other => panic!("{other}"),
    };
    let mut schema = Schema::new(kind).optional_if(json["optional"].as_bool().unwrap());
    schema.name = text("name").map(str::to_owned);
    schema.version =
        json.get("version").map(|version| version.as_i64().unwrap().try_into().unwrap());
    schema.doc = text("doc").map(str::to_owned);
    if let Some(parameters) = json.get("parameters") {
        schema.parameters = parameters
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
            .collect();
    }
    schema.default = json.get("default").map(|default| literal_from_json(&schema, default));
    schema
}

fn field_from_json(json: &Value) -> Field {
    Field {
        name: json["field"].as_str().unwrap().to_owned(),
        schema: Arc::new(schema_from_json(json)),
    }
}

/// A value from the form in which the JSON converter prints it.
pub(super) fn literal_from_json(schema: &Schema, json: &Value) -> Literal {
    if json.is_null() {
        return Literal::Null;
    }
    match &schema.kind {
        Kind::Int8 | Kind::Int16 | Kind::Int32 | Kind::Int64 => {
            Literal::Int(json.as_i64().unwrap())
        }
        Kind::Float32 if json.is_number() => Literal::Float32(json.to_string().parse().unwrap()),
        Kind::Float32 => Literal::Float32(f32::NAN),
        Kind::Float64 => Literal::Float64(json.as_f64().unwrap_or(f64::NAN)),
        Kind::Boolean => Literal::Boolean(json.as_bool().unwrap()),
        Kind::String => Literal::String(json.as_str().unwrap().to_owned()),
        Kind::Bytes => Literal::Bytes(base64_decode(json.as_str().unwrap())),
        Kind::Array(items) => Literal::Array(
            json.as_array().unwrap().iter().map(|item| literal_from_json(items, item)).collect(),
        ),
        Kind::Map(values) => Literal::Map(
            json.as_object()
                .unwrap()
                .iter()
                .map(|(key, value)| (key.clone(), literal_from_json(values, value)))
                .collect(),
        ),
        Kind::Struct(fields) => Literal::Struct(
            fields
                .iter()
                .map(|field| literal_from_json(&field.schema, &json[field.name.as_str()]))
                .collect(),
        ),
    }
}

pub(super) fn base64_decode(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let (mut bits, mut count, mut out) = (0_u32, 0, Vec::new());
    for c in text.bytes().filter(|c| *c != b'=') {
        bits = bits << 6 | u32::from(digit(c));
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count).to_le_bytes()[0]);
        }
    }
    out
}

/// A value as an independent reader decoded it, as a literal of the schema.
pub(super) fn literal_from_avro(schema: &Schema, value: &Avro) -> Literal {
    match (&schema.kind, value) {
        (_, Avro::Union(_, inner)) => literal_from_avro(schema, inner),
        (_, Avro::Null) => Literal::Null,
        (_, Avro::Boolean(value)) => Literal::Boolean(*value),
        (_, Avro::Int(value) | Avro::Date(value) | Avro::TimeMillis(value)) => {
            Literal::Int(i64::from(*value))
        }
        (_, Avro::Long(value) | Avro::TimestampMillis(value)) => Literal::Int(*value),
        (_, Avro::Float(value)) => Literal::Float32(*value),
        (_, Avro::Double(value)) => Literal::Float64(*value),
        (_, Avro::Bytes(value)) => Literal::Bytes(value.clone()),
        (_, Avro::Decimal(value)) => Literal::Bytes(value.clone().try_into().unwrap()),
        (_, Avro::String(value)) => Literal::String(value.clone()),
        (Kind::Array(items), Avro::Array(values)) => {
            Literal::Array(values.iter().map(|value| literal_from_avro(items, value)).collect())
        }
        (Kind::Map(schema), Avro::Map(values)) => Literal::Map(
            values
                .iter()
                .map(|(key, value)| (key.clone(), literal_from_avro(schema, value)))
                .collect(),
        ),
        (Kind::Struct(fields), Avro::Record(values)) => Literal::Struct(
            fields
                .iter()
                .zip(values)
                .map(|(field, (name, value))| {
                    assert_eq!(field.name, *name);
                    literal_from_avro(&field.schema, value)
                })
                .collect(),
        ),
        (kind, value) => panic!("{value:?} for {kind:?}"),
    }
}

/// Decodes with Avro's own library.
pub(super) fn decode_avro(schema: &Schema, mut bytes: &[u8]) -> Avro {
    let schema = parsed(schema);
    let reader = GenericDatumReader::builder(&schema).build().unwrap();
    let value = reader.read_value(&mut bytes).unwrap();
    assert!(bytes.is_empty(), "{} bytes are left", bytes.len());
    value
}

/// Encodes with Avro's own library.
pub(super) fn encode_avro(schema: &Schema, value: &Avro) -> Vec<u8> {
    let schema = parsed(schema);
    let mut bytes = Vec::new();
    let writer = GenericDatumWriter::builder(&schema).build().unwrap();
    writer.write_value_ref(&mut bytes, value).unwrap();
    bytes
}

fn parsed(schema: &Schema) -> apache_avro::Schema {
    apache_avro::Schema::parse_str(&super::avro::schema_text(schema).unwrap()).unwrap()
}

/// Reads the tests' own notations.
#[derive(Clone, Copy, Debug)]
pub(super) enum TestParser {
    Bool,
    Int,
    Float32,
    Float64,
    Text,
    Bytes,
    /// An integer, taken as a decimal with so many digits after the point.
    Scaled(u8),
    /// A JSON array of integers, texts and nulls.
    Json,
}

impl CellParser for TestParser {
    fn parse<'a>(&'a self, raw: &'a [u8]) -> Result<Scalar<'a>, ValueError> {
        let text = || std::str::from_utf8(raw).unwrap();
        Ok(match self {
            Self::Bool => Scalar::Bool(text() == "true"),
            Self::Int => Scalar::Int(text().parse().map_err(|_error| ValueError::Malformed {
                kind: "integer",
                detail: "no number".to_owned(),
            })?),
            Self::Float32 => Scalar::Float32(text().parse().unwrap()),
            Self::Float64 => Scalar::Float64(text().parse().unwrap()),
            Self::Text => Scalar::Text(text()),
            Self::Bytes => Scalar::Bytes(ByteText::Raw(raw)),
            Self::Scaled(scale) => Scalar::Decimal(Decimal::Scaled {
                unscaled: text().parse().unwrap(),
                scale: *scale,
            }),
            Self::Json => Scalar::Sequence(Sequence { raw, reader: self }),
        })
    }
}

impl SequenceReader for TestParser {
    fn visit(
        &self,
        raw: &[u8],
        each: &mut dyn FnMut(Scalar<'_>) -> Result<(), ValueError>,
    ) -> Result<(), ValueError> {
        let values: Vec<Value> = serde_json::from_slice(raw).unwrap();
        values.iter().try_for_each(|value| match value {
            Value::Null => each(Scalar::Null),
            Value::String(text) => each(Scalar::Text(text)),
            number => each(Scalar::Int(number.as_i64().unwrap())),
        })
    }
}

/// A column of a table version.
pub(super) fn column(name: &str, kind: ColumnType, parser: TestParser) -> Column {
    Column {
        name: name.to_owned(),
        kind,
        nullable: true,
        default: None,
        native: NativeType { name: "test".to_owned(), id: 1, modifier: -1 },
        declared: DeclaredType::default(),
        identity: false,
        comment: None,
        parser: Arc::new(parser),
    }
}

/// An update with the given images.
pub(super) fn event<'a>(
    bytes: &'a [u8],
    before: Option<&'a [Cell]>,
    after: Option<&'a [Cell]>,
) -> Event<'a> {
    Event {
        kind: ChangeKind::Update,
        row: RowImage { bytes, before, after, reread: &[] },
        source: &[],
        commit_position: "0/1A2B",
        sequence: 4,
        first_part: 0,
        processed_micros: 1_700_000_000_123_456,
        transaction: None,
    }
}

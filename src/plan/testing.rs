//! What the tests of this module share: tables in a line, and schemas in Connect's JSON form.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{PlanSettings, SourceBlock, SourceField, TablePlan};
use crate::change::{
    BeforeImage, Bits, ByteText, CellParser, Column, ColumnDefault, ColumnType, Decimal,
    DecimalText, DeclaredType, Instant, Interval, IntervalParts, NativeType, Scalar, TableId,
    TableVersion, ValueError,
};
use crate::error::Fault;
use crate::record::{Field, Kind, Literal, Render, Schema};

/// Reads cells in a notation of its own: plain numbers for everything that counts.
#[derive(Debug)]
struct TestParser(ColumnType);

impl CellParser for TestParser {
    fn parse<'a>(&'a self, raw: &'a [u8]) -> Result<Scalar<'a>, ValueError> {
        let text = std::str::from_utf8(raw).unwrap_or_default();
        let malformed = || ValueError::Malformed { kind: "test", detail: "?".to_owned() };
        let number = || text.parse::<i64>().map_err(|_error| malformed());
        let instant = || number().map(|value| Instant::At(value.into()));
        Ok(match &self.0 {
            ColumnType::Bool => Scalar::Bool(text == "t"),
            ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64 => Scalar::Int(number()?),
            ColumnType::Float32 => Scalar::Float32(text.parse().map_err(|_error| malformed())?),
            ColumnType::Float64 => Scalar::Float64(text.parse().map_err(|_error| malformed())?),
            ColumnType::Decimal { .. } | ColumnType::VariableDecimal => {
                let (integer, fraction) = text.split_once('.').unwrap_or((text, ""));
                Scalar::Decimal(Decimal::Finite(DecimalText { negative: false, integer, fraction }))
            }
            ColumnType::Bits { .. } => Scalar::Bits(Bits(raw)),
            ColumnType::Bytes => Scalar::Bytes(ByteText::Raw(raw)),
            ColumnType::Date => Scalar::Date(instant()?),
            ColumnType::Time { .. } => Scalar::Time(number()?),
            ColumnType::Timestamp { .. } => Scalar::Timestamp(instant()?),
            ColumnType::ZonedTimestamp { .. } => Scalar::ZonedTimestamp(instant()?),
            ColumnType::Interval => Scalar::Interval(Interval::Finite(IntervalParts {
                micros: number()?,
                ..IntervalParts::default()
            })),
            _ => Scalar::Text(text),
        })
    }
}

/// A nullable column.
pub(crate) fn column(name: &str, kind: ColumnType) -> Column {
    Column {
        name: name.to_owned(),
        parser: Arc::new(TestParser(kind.clone())),
        native: NativeType { name: format!("{kind:?}"), id: 1, modifier: -1 },
        declared: DeclaredType::default(),
        kind,
        nullable: true,
        default: None,
        identity: false,
        comment: None,
    }
}

/// A column that is never null.
pub(crate) fn required(name: &str, kind: ColumnType) -> Column {
    Column { nullable: false, ..column(name, kind) }
}

/// The column with a default.
pub(super) fn or(default: &str, column: Column) -> Column {
    let default = match default {
        "computed" => ColumnDefault::Computed,
        literal => ColumnDefault::Literal(literal.as_bytes().to_vec()),
    };
    Column { default: Some(default), ..column }
}

/// `public.<name>` keyed by its first column, which is all that the source says of a row before.
pub(crate) fn table(name: &str, columns: Vec<Column>) -> TableVersion {
    TableVersion {
        table: TableId { namespace: "public".to_owned(), name: name.to_owned() },
        native_id: 16_385,
        epoch: 3,
        fingerprint: 0xfeed,
        columns,
        key: vec![0],
        before_image: BeforeImage::Key(vec![0]),
        identity: "default".to_owned(),
        comment: None,
    }
}

/// A block with one field of each origin.
pub(crate) fn source_block() -> SourceBlock {
    let field =
        |name: &str, schema: Schema| Field { name: name.to_owned(), schema: Arc::new(schema) };
    let text = || Schema::new(Kind::String);
    SourceBlock {
        schema: Arc::new(
            Schema::new(Kind::Struct(vec![
                field("connector", text()),
                field("schema", text()),
                field("table", text()),
                field("ts_ms", Schema::new(Kind::Int64)),
            ]))
            .named("test.Source", Some(1)),
        ),
        fields: vec![
            SourceField::Constant(Literal::String("test".to_owned())),
            SourceField::Namespace,
            SourceField::Table,
            SourceField::Event { index: 0, render: Render::ClockMillis },
        ],
        connector: "test".to_owned(),
        position_header: "__tidegate.position".to_owned(),
        announced: |origin| vec![("ts_ms", Literal::Int(origin.micros / 1000))],
    }
}

/// The plan of a table under these settings.
pub(super) fn compile(version: TableVersion, settings: &PlanSettings) -> Result<TablePlan, Fault> {
    TablePlan::compile(Arc::new(version), settings, &source_block())
}

/// The schema of the plan's keys, by the first record that has one.
pub(super) fn key_schema(plan: &TablePlan) -> Option<&Schema> {
    plan.records().find_map(|record| record.key.as_ref()).map(|shape| &*shape.schema)
}

/// The schema of the plan's values, by the first record that has one.
pub(super) fn value_schema(plan: &TablePlan) -> &Schema {
    &plan.records().find_map(|record| record.value.as_ref()).unwrap().schema
}

/// A schema in the form in which Connect's JSON converter prints it.
pub(super) fn connect_json(schema: &Schema) -> Value {
    described(schema, None)
}

fn described(schema: &Schema, field: Option<&str>) -> Value {
    let mut json = Map::new();
    let mut put = |key: &str, value: Value| {
        json.insert(key.to_owned(), value);
    };
    put("type", kind_word(&schema.kind).into());
    match &schema.kind {
        Kind::Struct(fields) => put(
            "fields",
            fields.iter().map(|field| described(&field.schema, Some(&field.name))).collect(),
        ),
        Kind::Array(items) => put("items", described(items, None)),
        _ => {}
    }
    put("optional", schema.optional.into());
    if let Some(name) = &schema.name {
        put("name", name.as_str().into());
    }
    if let Some(version) = schema.version {
        put("version", version.into());
    }
    if !schema.parameters.is_empty() {
        let parameters = schema.parameters.iter().map(|(key, value)| (key.clone(), json!(value)));
        put("parameters", Value::Object(parameters.collect()));
    }
    if let Some(default) = &schema.default {
        put("default", literal_json(default));
    }
    if let Some(doc) = &schema.doc {
        put("doc", doc.as_str().into());
    }
    if let Some(field) = field {
        put("field", field.into());
    }
    Value::Object(json)
}

const fn kind_word(kind: &Kind) -> &'static str {
    match kind {
        Kind::Int8 => "int8",
        Kind::Int16 => "int16",
        Kind::Int32 => "int32",
        Kind::Int64 => "int64",
        Kind::Float32 => "float",
        Kind::Float64 => "double",
        Kind::Boolean => "boolean",
        Kind::String => "string",
        Kind::Bytes => "bytes",
        Kind::Struct(_) => "struct",
        Kind::Array(_) => "array",
        Kind::Map(_) => "map",
    }
}

/// A literal as Connect's JSON converter prints it; bytes in Base64.
pub(super) fn literal_json(literal: &Literal) -> Value {
    match literal {
        Literal::Null => Value::Null,
        Literal::Boolean(value) => json!(value),
        Literal::Int(value) => json!(value),
        Literal::Float32(value) => json!(value),
        Literal::Float64(value) => json!(value),
        Literal::String(value) => json!(value),
        Literal::Bytes(bytes) => {
            let how = Render::Base64 { url_safe: false };
            match super::literal::literal_of(Scalar::Bytes(ByteText::Raw(bytes)), &how) {
                Ok(Literal::String(text)) => json!(text),
                _ => Value::Null,
            }
        }
        Literal::Array(values) | Literal::Struct(values) => {
            values.iter().map(literal_json).collect()
        }
        Literal::Map(entries) => Value::Object(
            entries.iter().map(|(key, value)| (key.clone(), literal_json(value))).collect(),
        ),
    }
}

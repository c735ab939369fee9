//! A column's neutral type → its Connect schema and how its values are rendered.
//!
//! Debezium's mapping, type by type and mode by mode; `docs/compatibility.md` lists where this one
//! differs and why. Knows no database. **Invariant:** schema and rendering belong together: what the
//! rendering writes is of the schema's kind.

use std::sync::Arc;

use super::literal::literal_of;
use super::settings::{BinaryMode, DecimalMode, IntervalMode, KeyValueMode, TimeMode, ValueModes};
use crate::change::{
    Bits, ByteText, Column, ColumnDefault, ColumnType, Decimal, DecimalText, Instant, Interval,
    IntervalParts, Scalar, ValueError,
};
use crate::record::{Field, Kind, Literal, Render, Schema};

/// A column's type, published.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PublishedType {
    /// The schema: required, without default.
    pub(super) schema: Schema,
    /// How values of it are written.
    pub(super) render: Render,
}

/// The type's schema and rendering under these modes.
pub(super) fn published_type(kind: &ColumnType, modes: &ValueModes) -> PublishedType {
    let plain = |kind, render| PublishedType { schema: Schema::new(kind), render };
    let named = |name: &str, kind, render| PublishedType {
        schema: Schema::new(kind).named(name, Some(1)),
        render,
    };
    match kind {
        ColumnType::Bool => plain(Kind::Boolean, Render::Boolean),
        ColumnType::Int16 => plain(Kind::Int16, Render::Int16),
        ColumnType::Int32 => plain(Kind::Int32, Render::Int32),
        ColumnType::Int64 => plain(Kind::Int64, Render::Int64),
        ColumnType::Float32 => plain(Kind::Float32, Render::Float32),
        ColumnType::Float64 => plain(Kind::Float64, Render::Float64),
        ColumnType::Decimal { .. } | ColumnType::VariableDecimal | ColumnType::Money => {
            decimal(kind, modes)
        }
        ColumnType::Text
        | ColumnType::Json
        | ColumnType::Xml
        | ColumnType::Uuid
        | ColumnType::LabelTree
        | ColumnType::TextSearchVector
        | ColumnType::Enum { .. }
        | ColumnType::Opaque { .. } => {
            PublishedType { schema: text_schema(kind), render: Render::Text }
        }
        ColumnType::Bytes => match modes.binary {
            BinaryMode::Bytes => plain(Kind::Bytes, Render::Bytes),
            BinaryMode::Base64 => plain(Kind::String, Render::Base64 { url_safe: false }),
            BinaryMode::Base64UrlSafe => plain(Kind::String, Render::Base64 { url_safe: true }),
            BinaryMode::Hex => plain(Kind::String, Render::Hex),
        },
        ColumnType::Bits { length: Some(1) } => plain(Kind::Boolean, Render::Bit),
        ColumnType::Bits { length } => {
            let mut published = named("io.debezium.data.Bits", Kind::Bytes, Render::Bits);
            // Without a limit Debezium writes Java's largest int.
            let length = length.unwrap_or(i32::MAX.unsigned_abs());
            published.schema = published.schema.parameter("length", length.to_string());
            published
        }
        ColumnType::Date | ColumnType::Time { .. } | ColumnType::Timestamp { .. } => {
            temporal(kind, modes.time)
        }
        ColumnType::ZonedTime => {
            named("io.debezium.time.ZonedTime", Kind::String, Render::ZonedTime)
        }
        ColumnType::ZonedTimestamp { precision } => {
            let render = Render::ZonedTimestamp { digits: *precision };
            named("io.debezium.time.ZonedTimestamp", Kind::String, render)
        }
        ColumnType::Interval => match modes.interval {
            IntervalMode::Numeric => {
                named("io.debezium.time.MicroDuration", Kind::Int64, Render::MicroDuration)
            }
            IntervalMode::String => {
                named("io.debezium.time.Interval", Kind::String, Render::IsoInterval)
            }
        },
        ColumnType::Point
        | ColumnType::KeyValues
        | ColumnType::Geometry { .. }
        | ColumnType::Vector { .. }
        | ColumnType::Array(_) => composite(kind, modes),
    }
}

/// What consists of parts.
fn composite(kind: &ColumnType, modes: &ValueModes) -> PublishedType {
    let plain = |kind, render| PublishedType { schema: Schema::new(kind), render };
    let named = |name: &str, kind, render| PublishedType {
        schema: Schema::new(kind).named(name, Some(1)),
        render,
    };
    match kind {
        ColumnType::Point => PublishedType { schema: point_schema(), render: Render::Point },
        ColumnType::KeyValues => match modes.key_values {
            KeyValueMode::Json => named("io.debezium.data.Json", Kind::String, Render::JsonObject),
            KeyValueMode::Map => {
                let values = Arc::new(Schema::new(Kind::String).optional());
                plain(Kind::Map(values), Render::TextMap)
            }
        },
        ColumnType::Geometry { geodetic } => {
            PublishedType { schema: geometry_schema(*geodetic), render: Render::Geometry }
        }
        ColumnType::Vector { half } => {
            let (name, kind, element) = match half {
                false => ("io.debezium.data.DoubleVector", Kind::Float64, Render::Float64),
                true => ("io.debezium.data.FloatVector", Kind::Float32, Render::Float32),
            };
            let items = Kind::Array(Arc::new(Schema::new(kind)));
            named(name, items, Render::Array { element: Box::new(element), optional: false })
        }
        ColumnType::Array(element) => {
            let PublishedType { schema, render } = published_type(element, modes);
            // Debezium makes elements of some types required, and loses every array with a null.
            let items = Arc::new(schema.optional());
            plain(Kind::Array(items), Render::Array { element: Box::new(render), optional: true })
        }
        _ => PublishedType { schema: text_schema(kind), render: Render::Text },
    }
}

/// What is published as the text that it is.
fn text_schema(kind: &ColumnType) -> Schema {
    let named = |name: &str| Schema::new(Kind::String).named(name, Some(1));
    match kind {
        ColumnType::Json => named("io.debezium.data.Json"),
        ColumnType::Xml => named("io.debezium.data.Xml"),
        ColumnType::Uuid => named("io.debezium.data.Uuid"),
        ColumnType::LabelTree => named("io.debezium.data.Ltree"),
        ColumnType::TextSearchVector => named("io.debezium.data.Tsvector"),
        ColumnType::Enum { labels } => {
            named("io.debezium.data.Enum").parameter("allowed", labels.join(","))
        }
        ColumnType::Opaque { type_name } => {
            named("io.tidegate.data.Opaque").parameter("type", type_name)
        }
        _ => Schema::new(Kind::String),
    }
}

fn decimal(kind: &ColumnType, modes: &ValueModes) -> PublishedType {
    let digits = modes.money_fraction_digits;
    let (schema, render) = match (modes.decimal, kind) {
        (DecimalMode::Double, _) => (Schema::new(Kind::Float64), Render::DecimalDouble),
        (DecimalMode::String, ColumnType::Money) => {
            (Schema::new(Kind::String), Render::DecimalText { scale: Some(digits.into()) })
        }
        (DecimalMode::String, _) => {
            (Schema::new(Kind::String), Render::DecimalText { scale: None })
        }
        (DecimalMode::Precise, ColumnType::Decimal { precision, scale }) => {
            let schema =
                fixed_schema(*scale).parameter("connect.decimal.precision", precision.to_string());
            (schema, Render::Decimal { scale: *scale })
        }
        (DecimalMode::Precise, ColumnType::Money) => {
            (fixed_schema(digits.into()), Render::Decimal { scale: digits.into() })
        }
        (DecimalMode::Precise, _) => (variable_decimal_schema(), Render::VariableDecimal),
    };
    PublishedType { schema, render }
}

fn fixed_schema(scale: i32) -> Schema {
    Schema::new(Kind::Bytes)
        .named("org.apache.kafka.connect.data.Decimal", Some(1))
        .parameter("scale", scale.to_string())
}

fn variable_decimal_schema() -> Schema {
    Schema::new(Kind::Struct(vec![
        field("scale", Schema::new(Kind::Int32)),
        field("value", Schema::new(Kind::Bytes)),
    ]))
    .named("io.debezium.data.VariableScaleDecimal", Some(1))
    .doc(Some("Variable scaled decimal".to_owned()))
}

fn point_schema() -> Schema {
    Schema::new(Kind::Struct(vec![
        field("x", Schema::new(Kind::Float64)),
        field("y", Schema::new(Kind::Float64)),
        field("wkb", Schema::new(Kind::Bytes).optional()),
        field("srid", Schema::new(Kind::Int32).optional()),
    ]))
    .named("io.debezium.data.geometry.Point", Some(1))
    .doc(Some("Geometry (POINT)".to_owned()))
}

/// Optional in columns that are NOT NULL, too, as Debezium's.
fn geometry_schema(geodetic: bool) -> Schema {
    let kind = if geodetic { "Geography" } else { "Geometry" };
    Schema::new(Kind::Struct(vec![
        field("wkb", Schema::new(Kind::Bytes)),
        field("srid", Schema::new(Kind::Int32).optional()),
    ]))
    .named(format!("io.debezium.data.geometry.{kind}"), Some(1))
    .doc(Some(kind.to_owned()))
    .optional()
}

fn field(name: &str, schema: Schema) -> Field {
    Field { name: name.to_owned(), schema: Arc::new(schema) }
}

/// Dates, times and timestamps without zone.
fn temporal(kind: &ColumnType, mode: TimeMode) -> PublishedType {
    let to_millis = |precision: u8| precision <= 3;
    let (name, kind, render) = match (kind, mode) {
        (ColumnType::Time { precision }, _) => match mode {
            TimeMode::Adaptive if to_millis(*precision) => {
                ("io.debezium.time.Time", Kind::Int32, Render::TimeMillis)
            }
            TimeMode::Adaptive | TimeMode::AdaptiveTimeMicroseconds | TimeMode::Microseconds => {
                ("io.debezium.time.MicroTime", Kind::Int64, Render::TimeMicros)
            }
            TimeMode::Connect => {
                ("org.apache.kafka.connect.data.Time", Kind::Int32, Render::TimeMillis)
            }
            TimeMode::Nanoseconds => ("io.debezium.time.NanoTime", Kind::Int64, Render::TimeNanos),
            TimeMode::IsoString => ("io.debezium.time.IsoTime", Kind::String, Render::IsoTime),
        },
        (ColumnType::Timestamp { precision }, _) => match mode {
            TimeMode::Adaptive | TimeMode::AdaptiveTimeMicroseconds if to_millis(*precision) => {
                ("io.debezium.time.Timestamp", Kind::Int64, Render::TimestampMillis)
            }
            TimeMode::Adaptive | TimeMode::AdaptiveTimeMicroseconds | TimeMode::Microseconds => {
                ("io.debezium.time.MicroTimestamp", Kind::Int64, Render::TimestampMicros)
            }
            TimeMode::Connect => {
                ("org.apache.kafka.connect.data.Timestamp", Kind::Int64, Render::TimestampMillis)
            }
            TimeMode::Nanoseconds => {
                ("io.debezium.time.NanoTimestamp", Kind::Int64, Render::TimestampNanos)
            }
            TimeMode::IsoString => {
                ("io.debezium.time.IsoTimestamp", Kind::String, Render::IsoTimestamp)
            }
        },
        (_, TimeMode::Connect) => ("org.apache.kafka.connect.data.Date", Kind::Int32, Render::Days),
        (_, TimeMode::IsoString) => ("io.debezium.time.IsoDate", Kind::String, Render::IsoDate),
        _ => ("io.debezium.time.Date", Kind::Int32, Render::Days),
    };
    PublishedType { schema: Schema::new(kind).named(name, Some(1)), render }
}

/// The default that the column's schema shows.
///
/// # Errors
/// The column has a literal default that its parser or its rendering refuses.
pub(super) fn schema_default(
    column: &Column,
    render: &Render,
) -> Result<Option<Literal>, ValueError> {
    if !shows_default(&column.kind, render) {
        return Ok(None);
    }
    match &column.default {
        None => Ok(None),
        Some(ColumnDefault::Literal(raw)) => {
            literal_of(column.parser.parse(raw)?, render).map(Some)
        }
        Some(ColumnDefault::Computed) => Ok(match &column.kind {
            ColumnType::Json => Some(Literal::String("{}".to_owned())),
            ColumnType::Uuid => {
                Some(Literal::String("00000000-0000-0000-0000-000000000000".to_owned()))
            }
            kind => zero(kind, render),
        }),
    }
}

/// Debezium shows defaults of these types only; a struct never has one.
const fn shows_default(kind: &ColumnType, render: &Render) -> bool {
    match kind {
        ColumnType::Bool
        | ColumnType::Int16
        | ColumnType::Int32
        | ColumnType::Int64
        | ColumnType::Float32
        | ColumnType::Float64
        | ColumnType::Decimal { .. }
        | ColumnType::Text
        | ColumnType::Json
        | ColumnType::Xml
        | ColumnType::Uuid
        | ColumnType::Enum { .. }
        | ColumnType::Bits { .. }
        | ColumnType::Date
        | ColumnType::Time { .. }
        | ColumnType::Timestamp { .. }
        | ColumnType::ZonedTimestamp { .. }
        | ColumnType::Interval => true,
        ColumnType::VariableDecimal => !matches!(render, Render::VariableDecimal),
        ColumnType::Money
        | ColumnType::LabelTree
        | ColumnType::TextSearchVector
        | ColumnType::Bytes
        | ColumnType::ZonedTime
        | ColumnType::Point
        | ColumnType::KeyValues
        | ColumnType::Geometry { .. }
        | ColumnType::Vector { .. }
        | ColumnType::Array(_)
        | ColumnType::Opaque { .. } => false,
    }
}

/// An empty collection in well-known binary: little-endian, kind 7, no members.
const EMPTY_GEOMETRY: &[u8] = &[1, 7, 0, 0, 0, 0, 0, 0, 0];

/// The type's zero as Debezium fills it in: 0, false, the empty text, the epoch.
pub(super) fn zero(kind: &ColumnType, render: &Render) -> Option<Literal> {
    let epoch = Instant::At(0);
    let scalar = match kind {
        ColumnType::Bool => Scalar::Bool(false),
        ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64 => Scalar::Int(0),
        ColumnType::Float32 => Scalar::Float32(0.0),
        ColumnType::Float64 => Scalar::Float64(0.0),
        ColumnType::Decimal { .. } | ColumnType::VariableDecimal | ColumnType::Money => {
            let zero = DecimalText { negative: false, integer: "0", fraction: "" };
            Scalar::Decimal(Decimal::Finite(zero))
        }
        ColumnType::Bytes => Scalar::Bytes(ByteText::Raw(&[])),
        ColumnType::Bits { length: Some(1) } => Scalar::Bits(Bits(b"0")),
        ColumnType::Bits { .. } => Scalar::Bits(Bits(&[])),
        ColumnType::Date => Scalar::Date(epoch),
        ColumnType::Time { .. } => Scalar::Time(0),
        ColumnType::ZonedTime => Scalar::ZonedTime { micros: 0, offset_seconds: 0 },
        ColumnType::Timestamp { .. } => Scalar::Timestamp(epoch),
        ColumnType::ZonedTimestamp { .. } => {
            // Whatever the column's precision, Debezium's zero has no fraction.
            let render = Render::ZonedTimestamp { digits: 0 };
            return literal_of(Scalar::ZonedTimestamp(epoch), &render).ok();
        }
        ColumnType::Interval => Scalar::Interval(Interval::Finite(IntervalParts::default())),
        ColumnType::Point => Scalar::Point { x: 0.0, y: 0.0 },
        ColumnType::KeyValues => {
            return Some(match render {
                Render::TextMap => Literal::Map(Vec::new()),
                _ => Literal::String("{}".to_owned()),
            });
        }
        ColumnType::Geometry { .. } => {
            Scalar::Geometry { wkb: ByteText::Raw(EMPTY_GEOMETRY), srid: None }
        }
        ColumnType::Vector { .. } | ColumnType::Array(_) => {
            return Some(Literal::Array(Vec::new()));
        }
        ColumnType::Text
        | ColumnType::Json
        | ColumnType::Xml
        | ColumnType::Uuid
        | ColumnType::LabelTree
        | ColumnType::TextSearchVector
        | ColumnType::Enum { .. }
        | ColumnType::Opaque { .. } => Scalar::Text(""),
    };
    literal_of(scalar, render).ok()
}

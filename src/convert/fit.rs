//! Whether what a rendering writes is what its schema says.
//!
//! Asked once, when a shape is compiled: a plan that pairs the wrong two would otherwise publish
//! bytes that readers take for something else. **Invariant:** every rendering has its entry here.

use crate::record::{Kind, Render, Schema};

/// Whether a rendering writes values of the schema, null apart.
pub(super) fn fits(render: &Render, schema: &Schema) -> bool {
    let kind = &schema.kind;
    match render {
        Render::Boolean | Render::Bit => *kind == Kind::Boolean,
        Render::Int16 => *kind == Kind::Int16,
        Render::Int32 | Render::Days | Render::TimeMillis => *kind == Kind::Int32,
        Render::Int64
        | Render::TimeMicros
        | Render::TimeNanos
        | Render::TimestampMillis
        | Render::TimestampMicros
        | Render::TimestampNanos
        | Render::ClockMillis
        | Render::MicroDuration => *kind == Kind::Int64,
        Render::Float32 => *kind == Kind::Float32,
        Render::Float64 | Render::DecimalDouble => *kind == Kind::Float64,
        Render::Text
        | Render::Hidden(_)
        | Render::JsonObject
        | Render::Base64 { .. }
        | Render::Hex
        | Render::IsoDate
        | Render::IsoTime
        | Render::ZonedTime
        | Render::IsoTimestamp
        | Render::ZonedTimestamp { .. }
        | Render::IsoInterval
        | Render::DecimalText { .. } => *kind == Kind::String,
        Render::Bytes | Render::Bits => *kind == Kind::Bytes,
        Render::Decimal { scale } => *kind == Kind::Bytes && has_scale(schema, *scale),
        Render::VariableDecimal => {
            has_fields(schema, &[("scale", Kind::Int32, false), ("value", Kind::Bytes, false)])
        }
        Render::Point => has_fields(
            schema,
            &[
                ("x", Kind::Float64, false),
                ("y", Kind::Float64, false),
                ("wkb", Kind::Bytes, true),
                ("srid", Kind::Int32, true),
            ],
        ),
        Render::TextMap => match kind {
            Kind::Map(values) => inner_fits(values, true) && values.kind == Kind::String,
            _ => false,
        },
        Render::Geometry => {
            has_fields(schema, &[("wkb", Kind::Bytes, false), ("srid", Kind::Int32, true)])
        }
        Render::Array { element, optional } => match kind {
            Kind::Array(items) => inner_fits(items, *optional) && fits(element, items),
            _ => false,
        },
    }
}

/// Elements and inner fields are written without regard to defaults.
fn inner_fits(schema: &Schema, optional: bool) -> bool {
    schema.optional == optional && schema.default.is_none()
}

fn has_scale(schema: &Schema, scale: i32) -> bool {
    let scale = scale.to_string();
    schema.parameters.iter().any(|(name, value)| name == "scale" && *value == scale)
}

fn has_fields(schema: &Schema, expect: &[(&str, Kind, bool)]) -> bool {
    let fields = schema.fields();
    fields.len() == expect.len()
        && fields.iter().zip(expect).all(|(field, (name, kind, optional))| {
            field.name == *name
                && field.schema.kind == *kind
                && inner_fits(&field.schema, *optional)
        })
}

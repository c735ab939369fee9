//! Constant values → bytes, for every format: constants and markers in programs, control records.
//!
//! Knows no table. **Invariant:** a literal that is not of its schema's kind and range is refused.

use super::program::{Format, Numbers};
use crate::error::{Code, Fault};
use crate::record::{Kind, Literal, Presence, Primitive as _, Schema};

/// Appends a literal in the given format.
///
/// # Errors
/// [`Code::Internal`] if it is not of the schema's kind.
pub(super) fn append_literal<F: Format>(
    format: &F,
    schema: &Schema,
    literal: &Literal,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    if *literal == Literal::Null {
        if !schema.optional {
            return Err(Code::Internal.fault("a constant null in a field that cannot be null"));
        }
        format.null(schema, out);
        return Ok(());
    }
    format.present(schema, out);
    match (&schema.kind, literal) {
        (Kind::Struct(fields), Literal::Struct(values)) if fields.len() == values.len() => {
            format.begin_struct(out);
            for (index, (field, value)) in fields.iter().zip(values).enumerate() {
                if *value == Literal::Null && field.schema.optional && format.leaves_nulls_out() {
                    continue;
                }
                format.begin_field(index, &field.name, out);
                append_literal(format, &field.schema, value, out)?;
                format.end_field(out);
            }
            format.end_struct(out);
        }
        (Kind::Array(items), Literal::Array(values)) => {
            let mark = format.writer(out, Numbers::Plain).begin_array();
            for (index, value) in values.iter().enumerate() {
                // What stands before the element itself depends on its schema's default too.
                format.writer(out, Numbers::Plain).item(index, Presence::Required);
                append_literal(format, items, value, out)?;
            }
            format.writer(out, Numbers::Plain).end_array(mark, values.len());
        }
        (Kind::Map(values), Literal::Map(entries)) => {
            let mark = format.begin_map(out);
            for (index, (key, value)) in entries.iter().enumerate() {
                format.begin_entry(index, key, out);
                append_literal(format, values, value, out)?;
            }
            format.end_map(mark, entries.len(), out);
        }
        _ => append_primitive(format, schema, literal, out)?,
    }
    Ok(())
}

fn append_primitive<F: Format>(
    format: &F,
    schema: &Schema,
    literal: &Literal,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let mut writer = format.writer(out, Numbers::of(schema));
    match (&schema.kind, literal) {
        (Kind::Boolean, Literal::Boolean(value)) => writer.boolean(*value),
        (Kind::Int8, Literal::Int(value)) => {
            writer.int32(i8::try_from(*value).map_err(out_of_range)?.into());
        }
        (Kind::Int16, Literal::Int(value)) => {
            writer.int32(i16::try_from(*value).map_err(out_of_range)?.into());
        }
        (Kind::Int32, Literal::Int(value)) => {
            writer.int32(i32::try_from(*value).map_err(out_of_range)?);
        }
        (Kind::Int64, Literal::Int(value)) => writer.int64(*value),
        (Kind::Float32, Literal::Float32(value)) => writer.float32(*value),
        (Kind::Float64, Literal::Float64(value)) => writer.float64(*value),
        (Kind::String, Literal::String(value)) => writer.text(value),
        (Kind::Bytes, Literal::Bytes(value)) => {
            writer.bytes(crate::change::ByteText::Raw(value));
        }
        _ => return Err(Code::Internal.fault("a constant is not of its schema's kind")),
    }
    Ok(())
}

fn out_of_range(error: std::num::TryFromIntError) -> Fault {
    Code::Internal.fault("a constant is out of its schema's range").caused_by(&error)
}

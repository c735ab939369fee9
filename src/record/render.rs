//! Scalar → primitive: how a neutral value becomes what a schema asks for, once for all converters.

use crate::change::{ByteText, Scalar, ValueError};

/// How a value of a column becomes the primitive of its schema. Chosen when a plan is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Render {
    /// `Bool` → boolean.
    Boolean,
    /// `Int` → int32, within 16 bits.
    Int16,
    /// `Int` → int32.
    Int32,
    /// `Int` → int64.
    Int64,
    /// `Text` → string.
    Text,
}

/// Whether a field or element can be null, and whether it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Its schema has no room for null; a value follows.
    Required,
    /// Its schema is optional (without default); a value follows.
    Present,
    /// Its schema is optional (without default), and it is null: nothing follows, the writer
    /// writes the null.
    Null,
}

/// Where a rendered value goes. Each converter implements it once.
///
/// Exactly one value is written for each call of [`render`]: one call of a scalar method, or a
/// struct, or an array. The converter has dealt with the null of the value itself before it calls;
/// only the inner fields and elements carry a [`Presence`].
pub trait Primitive {
    /// Kind boolean.
    fn boolean(&mut self, value: bool);
    /// Kinds int8, int16 and int32.
    fn int32(&mut self, value: i32);
    /// Kind int64.
    fn int64(&mut self, value: i64);
    /// Kind float32.
    fn float32(&mut self, value: f32);
    /// Kind float64.
    fn float64(&mut self, value: f64);
    /// Kind string.
    fn text(&mut self, value: &str);
    /// Kind string, computed: exactly `length` printable ASCII characters, none of them a quote or
    /// a backslash.
    fn ascii(&mut self, length: usize, text: impl Iterator<Item = u8>);
    /// Kind bytes.
    fn bytes(&mut self, value: ByteText<'_>);
    /// Kind bytes, computed: exactly `length` bytes.
    fn octets(&mut self, length: usize, bytes: impl Iterator<Item = u8>);
    /// Begins a struct.
    fn begin_struct(&mut self);
    /// Begins the struct's next field, by its place in the schema; its value follows unless it is
    /// null.
    fn field(&mut self, index: usize, name: &'static str, presence: Presence);
    /// Ends the struct; all its fields were given, in order.
    fn end_struct(&mut self);
    /// Begins an array. Returns a mark of the writer's own, for [`Self::end_array`]: the number of
    /// elements is known only then, and a format that needs it first puts it in at the mark.
    fn begin_array(&mut self) -> usize;
    /// Begins the array's next element; its value follows unless it is null.
    fn item(&mut self, index: usize, presence: Presence);
    /// Ends the array that gave the mark.
    fn end_array(&mut self, mark: usize, count: usize);
}

/// Writes a scalar in the given way. NULL and unavailable are the caller's business: both are
/// errors here.
///
/// # Errors
/// The value does not fit exactly.
pub fn render<P: Primitive>(
    scalar: Scalar<'_>,
    how: &Render,
    out: &mut P,
) -> Result<(), ValueError> {
    match (how, scalar) {
        (Render::Boolean, Scalar::Bool(value)) => out.boolean(value),
        (Render::Int16 | Render::Int32, Scalar::Int(value)) => out.int32(
            i32::try_from(value)
                .map_err(|_| ValueError::Unrepresentable("not within 32 bits".to_owned()))?,
        ),
        (Render::Int64, Scalar::Int(value)) => out.int64(value),
        (Render::Text, Scalar::Text(value)) => out.text(value),
        (_, Scalar::Null) => return Err(ValueError::UnexpectedNull),
        (_, Scalar::Unavailable) => return Err(ValueError::Unavailable("a computed value")),
        _ => return Err(ValueError::Unrepresentable("not of the column's type".to_owned())),
    }
    Ok(())
}

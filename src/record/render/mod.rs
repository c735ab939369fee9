//! Scalar → primitive: how a neutral value becomes what a schema asks for, once for all converters.
//!
//! A plan chooses a [`Render`] for each column when it is compiled; per row a converter calls
//! [`render`] with its own [`Primitive`] writer. Knows no database notation and no bytes of any
//! format. **Invariant:** a value is written exactly or not at all ([`ValueError::Unrepresentable`]);
//! nothing here allocates, except for decimals of more than 38 digits.

mod decimal;
mod hiding;
mod octets;
mod temporal;

use crate::change::{Bits, ByteText, KeyValues, Scalar, Sequence, ValueError};

pub use hiding::{HashAlgorithm, HashInput, Hiding, SaltedHash};

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
    /// `Float32` → float32.
    Float32,
    /// `Float64` → float64.
    Float64,
    /// `Text` → string.
    Text,
    /// `Text` → string that stands for it.
    Hidden(Hiding),
    /// `KeyValues` → string, a JSON object.
    JsonObject,
    /// `KeyValues` → map of optional strings.
    TextMap,
    /// `Geometry` → struct `{wkb bytes, srid optional int32}`.
    Geometry,
    /// `Bytes` → bytes.
    Bytes,
    /// `Bytes` → string, padded Base64.
    Base64 {
        /// With `-` and `_` instead of `+` and `/`.
        url_safe: bool,
    },
    /// `Bytes` → string, two lower-case hexadecimal digits for each byte.
    Hex,
    /// `Bits` of length 1 → boolean.
    Bit,
    /// `Bits` → bytes: the last bit is the lowest of the first byte, zero bytes at the end are cut.
    Bits,
    /// `Date` → int32, days since the epoch. The infinities are the ends of the 32-bit range.
    Days,
    /// `Date` → string, `2020-02-29Z`, or `infinity`, `-infinity`.
    IsoDate,
    /// `Time` → int32, milliseconds since midnight; must be whole.
    TimeMillis,
    /// `Time` → int64, microseconds since midnight.
    TimeMicros,
    /// `Time` → int64, nanoseconds since midnight.
    TimeNanos,
    /// `Time` → string, `12:30:00.5Z`.
    IsoTime,
    /// `ZonedTime` → string in UTC, `12:30:00.5Z`.
    ZonedTime,
    /// `Timestamp` → int64, milliseconds since the epoch; must be whole. The infinities are
    /// Debezium's markers.
    TimestampMillis,
    /// `Timestamp` (or `ZonedTimestamp`, for clock readings) → int64, microseconds since the epoch.
    /// The infinities are Debezium's markers.
    TimestampMicros,
    /// The same → int64, nanoseconds since the epoch. The infinities are the ends of the range.
    TimestampNanos,
    /// `Timestamp` → string, `2020-02-29T01:02:03.5Z`, or `infinity`, `-infinity`.
    IsoTimestamp,
    /// The same → int64, milliseconds since the epoch, rounded down: for clock readings.
    ClockMillis,
    /// `ZonedTimestamp` → string in UTC, with at least so many digits of the fraction, or
    /// `infinity`, `-infinity`.
    ZonedTimestamp {
        /// Digits of the fraction of a second, 0 to 6.
        digits: u8,
    },
    /// `Interval` → int64, microseconds; a month is 30.4375 days. The infinities are the ends of the
    /// range.
    MicroDuration,
    /// `Interval` → string, `P1Y2M3DT4H5M6.78S`, each part with its own sign, or `infinity`,
    /// `-infinity`.
    IsoInterval,
    /// `Decimal` → bytes: the unscaled value, big-endian two's complement, as short as can be.
    Decimal {
        /// Digits after the point; may be negative.
        scale: i32,
    },
    /// `Decimal` → struct `{scale int32, value bytes}`, without trailing zeros in the fraction.
    VariableDecimal,
    /// `Decimal` → float64, the nearest one; special values included.
    DecimalDouble,
    /// `Decimal` → string in plain notation; special values are `NaN`, `Infinity`, `-Infinity`.
    DecimalText {
        /// Digits after the point; `None`: as the value has them.
        scale: Option<u32>,
    },
    /// `Point` → struct `{x float64, y float64, wkb optional bytes, srid optional int32}`.
    Point,
    /// `Sequence` → array.
    Array {
        /// How each element is written.
        element: Box<Self>,
        /// Whether the element's schema has room for null.
        optional: bool,
    },
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
    /// Begins a value of kind string that comes in pieces. Returns a mark of the writer's own, for
    /// [`Self::end_text`]: the length is known only then.
    fn begin_text(&mut self) -> usize;
    /// The next piece of the text.
    fn piece(&mut self, text: &str);
    /// Ends the text that gave the mark.
    fn end_text(&mut self, mark: usize);
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
    /// Begins a map with text keys. Returns a mark of the writer's own, as [`Self::begin_array`]
    /// does.
    fn begin_map(&mut self) -> usize;
    /// Begins the map's next entry; its value follows unless it is null.
    fn entry(&mut self, index: usize, key: &str, presence: Presence);
    /// Ends the map that gave the mark.
    fn end_map(&mut self, mark: usize, count: usize);
}

/// Writes a scalar in the given way. NULL and unavailable are the caller's business: both are
/// errors here.
///
/// # Errors
/// The value does not fit exactly. What was written up to then is of no use.
pub fn render<P: Primitive>(
    scalar: Scalar<'_>,
    how: &Render,
    out: &mut P,
) -> Result<(), ValueError> {
    match scalar {
        Scalar::Null => return Err(ValueError::UnexpectedNull),
        Scalar::Unavailable => return Err(ValueError::Unavailable("a computed value")),
        Scalar::Bool(value) => match how {
            Render::Boolean => out.boolean(value),
            _ => return Err(mismatch("a truth value")),
        },
        Scalar::Int(value) => integer(value, how, out)?,
        Scalar::Float32(value) => match how {
            Render::Float32 => out.float32(value),
            _ => return Err(mismatch("a floating-point number")),
        },
        Scalar::Float64(value) => match how {
            Render::Float64 => out.float64(value),
            _ => return Err(mismatch("a floating-point number")),
        },
        Scalar::Decimal(value) => decimal::write(value, how, out)?,
        Scalar::Date(value) => temporal::date(value, how, out)?,
        Scalar::Time(value) => temporal::time(value, how, out)?,
        Scalar::ZonedTime { micros, offset_seconds } => match how {
            Render::ZonedTime => temporal::zoned_time(micros, offset_seconds, out)?,
            _ => return Err(mismatch("a time with zone")),
        },
        Scalar::Timestamp(value) => temporal::timestamp(value, how, out)?,
        Scalar::ZonedTimestamp(value) => match how {
            Render::ZonedTimestamp { digits } => temporal::iso_timestamp(value, *digits, out)?,
            Render::ClockMillis | Render::TimestampMicros | Render::TimestampNanos => {
                temporal::timestamp(value, how, out)?;
            }
            _ => return Err(mismatch("an instant")),
        },
        Scalar::Interval(value) => temporal::interval(value, how, out)?,
        Scalar::Text(value) => match how {
            Render::Text => out.text(value),
            Render::Hidden(hiding) => hiding::write(value, hiding, out),
            _ => return Err(mismatch("text")),
        },
        Scalar::Bytes(value) => octets::write(value, how, out)?,
        Scalar::Bits(value) => bits(value, how, out)?,
        Scalar::Point { x, y } => match how {
            Render::Point => point(x, y, out),
            _ => return Err(mismatch("a point")),
        },
        Scalar::Sequence(sequence) => match how {
            Render::Array { element, optional } => array(sequence, (element, *optional), out)?,
            _ => return Err(mismatch("an array")),
        },
        Scalar::KeyValues(pairs) => match how {
            Render::JsonObject => {
                let mark = out.begin_text();
                pairs.write_json(&mut |piece| out.piece(piece))?;
                out.end_text(mark);
            }
            Render::TextMap => text_map(pairs, out)?,
            _ => return Err(mismatch("key-value pairs")),
        },
        Scalar::Geometry { wkb, srid } => match how {
            Render::Geometry => geometry(wkb, srid, out),
            _ => return Err(mismatch("a geometry")),
        },
    }
    Ok(())
}

fn array<P: Primitive>(
    sequence: Sequence<'_>,
    element: (&Render, bool),
    out: &mut P,
) -> Result<(), ValueError> {
    let mark = out.begin_array();
    let mut count = 0;
    sequence.visit(&mut |scalar| {
        item(scalar, count, element, out)?;
        count += 1;
        Ok(())
    })?;
    out.end_array(mark, count);
    Ok(())
}

fn text_map(pairs: KeyValues<'_>, out: &mut impl Primitive) -> Result<(), ValueError> {
    let mark = out.begin_map();
    let mut count = 0;
    pairs.visit(&mut |key, value| {
        match value {
            None => out.entry(count, key, Presence::Null),
            Some(value) => {
                out.entry(count, key, Presence::Present);
                out.text(value);
            }
        }
        count += 1;
        Ok(())
    })?;
    out.end_map(mark, count);
    Ok(())
}

fn item<P: Primitive>(
    scalar: Scalar<'_>,
    index: usize,
    (element, optional): (&Render, bool),
    out: &mut P,
) -> Result<(), ValueError> {
    match (scalar, optional) {
        (Scalar::Null, true) => {
            out.item(index, Presence::Null);
            return Ok(());
        }
        (Scalar::Null, false) => return Err(ValueError::UnexpectedNull),
        (_, true) => out.item(index, Presence::Present),
        (_, false) => out.item(index, Presence::Required),
    }
    render(scalar, element, out)
}

fn integer(value: i64, how: &Render, out: &mut impl Primitive) -> Result<(), ValueError> {
    match how {
        Render::Int64 => out.int64(value),
        Render::Int32 => out.int32(narrow::<i32>(value)?),
        Render::Int16 => out.int32(narrow::<i16>(value)?.into()),
        _ => return Err(mismatch("an integer")),
    }
    Ok(())
}

fn bits(value: Bits<'_>, how: &Render, out: &mut impl Primitive) -> Result<(), ValueError> {
    match (how, value.0) {
        (Render::Bits, bits) => octets::bits(bits, out),
        (Render::Bit, b"1") => out.boolean(true),
        (Render::Bit, b"0") => out.boolean(false),
        (Render::Bit, _) => {
            return Err(unrepresentable("a bit string that is not one bit long is no truth value"));
        }
        _ => return Err(mismatch("a bit string")),
    }
    Ok(())
}

/// Debezium's `Point`: the coordinates, and the same in well-known binary (byte order mark 1 for
/// little-endian, geometry type 1 for a point).
fn point(x: f64, y: f64, out: &mut impl Primitive) {
    let mut wkb = [0; 21];
    wkb[0] = 1;
    wkb[1] = 1;
    wkb[5..13].copy_from_slice(&x.to_le_bytes());
    wkb[13..].copy_from_slice(&y.to_le_bytes());
    out.begin_struct();
    out.field(0, "x", Presence::Required);
    out.float64(x);
    out.field(1, "y", Presence::Required);
    out.float64(y);
    out.field(2, "wkb", Presence::Present);
    out.bytes(ByteText::Raw(&wkb));
    out.field(3, "srid", Presence::Null);
    out.end_struct();
}

fn geometry(wkb: ByteText<'_>, srid: Option<i32>, out: &mut impl Primitive) {
    out.begin_struct();
    out.field(0, "wkb", Presence::Required);
    out.bytes(wkb);
    match srid {
        None => out.field(1, "srid", Presence::Null),
        Some(srid) => {
            out.field(1, "srid", Presence::Present);
            out.int32(srid);
        }
    }
    out.end_struct();
}

fn narrow<T: TryFrom<i64>>(value: i64) -> Result<T, ValueError> {
    T::try_from(value)
        .ok()
        .ok_or_else(|| unrepresentable("the number is out of the published type's range"))
}

fn unrepresentable(reason: &str) -> ValueError {
    ValueError::Unrepresentable(reason.to_owned())
}

/// The parser and the plan disagree about the column's type.
fn mismatch(what: &str) -> ValueError {
    ValueError::Unrepresentable(format!("{what} where the column's type has no such value"))
}

#[cfg(test)]
mod tests;

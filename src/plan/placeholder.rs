//! What stands in a field for a value that exists at the source and was not sent.
//!
//! One placeholder, spelled in the alphabet of each type: as text, as bytes, as numbers, as bits.
//! `docs/unavailable-values.md` is the table for readers. **Invariant:** a marker is legal for its
//! schema and never null; a type whose every value can be real data has none, and is refused.

use num_bigint::BigInt;

use super::literal::literal_of;
use crate::change::{ByteText, Scalar};
use crate::error::{Code, Fault};
use crate::record::{Literal, Render};

/// `unavailable.value.placeholder`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder {
    bytes: Vec<u8>,
    text: String,
}

/// Debezium's.
impl Default for Placeholder {
    fn default() -> Self {
        let text = "__debezium_unavailable_value".to_owned();
        Self { bytes: text.clone().into_bytes(), text }
    }
}

impl Placeholder {
    /// Reads the configuration's form: a text, or `hex:` and the bytes in hexadecimal digits.
    ///
    /// # Errors
    /// [`Code::ConfigInvalid`]: it is empty, or the digits are not hexadecimal pairs.
    pub fn parse(value: &str) -> Result<Self, Fault> {
        let invalid = |reason| Code::ConfigInvalid.fault(reason);
        let placeholder = match value.strip_prefix("hex:") {
            None => Self { bytes: value.as_bytes().to_vec(), text: value.to_owned() },
            Some(digits) => {
                let whole = digits.len() % 2 == 0 && digits.bytes().all(|c| c.is_ascii_hexdigit());
                if !whole {
                    return Err(invalid(
                        "unavailable.value.placeholder: 'hex:' is followed by pairs of \
                         hexadecimal digits",
                    ));
                }
                let mut bytes = Vec::new();
                ByteText::Hex(digits.as_bytes()).append_to(&mut bytes);
                // As Debezium spells such bytes where it needs a text.
                let text = String::from_utf8_lossy(&bytes).into_owned();
                Self { bytes, text }
            }
        };
        if placeholder.bytes.is_empty() {
            return Err(invalid("unavailable.value.placeholder may not be empty"));
        }
        Ok(placeholder)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The marker of a column that is rendered so; `None`: there is no value left for it.
    pub(super) fn marker(&self, render: &Render) -> Option<Literal> {
        match render {
            Render::Text
            | Render::Hidden(_)
            | Render::Hex
            | Render::IsoDate
            | Render::IsoTime
            | Render::ZonedTime
            | Render::IsoTimestamp
            | Render::ZonedTimestamp { .. }
            | Render::IsoInterval
            | Render::DecimalText { .. } => Some(Literal::String(self.text.clone())),
            Render::JsonObject => {
                let text = serde_json::Value::from(self.text.as_str());
                Some(Literal::String(format!("{{{text}:{text}}}")))
            }
            Render::TextMap => {
                let value = Literal::String(self.text.clone());
                Some(Literal::Map(vec![(self.text.clone(), value)]))
            }
            Render::Geometry => {
                Some(Literal::Struct(vec![Literal::Bytes(self.bytes.clone()), Literal::Null]))
            }
            Render::Base64 { .. } => {
                literal_of(Scalar::Bytes(ByteText::Raw(&self.bytes)), render).ok()
            }
            Render::Bytes | Render::Bits | Render::Decimal { .. } => {
                Some(Literal::Bytes(self.bytes.clone()))
            }
            Render::VariableDecimal => {
                Some(Literal::Struct(vec![Literal::Int(0), Literal::Bytes(self.bytes.clone())]))
            }
            Render::DecimalDouble => Some(Literal::Float64(self.double())),
            Render::Point => Some(Literal::Struct(vec![
                Literal::Float64(f64::NAN),
                Literal::Float64(f64::NAN),
                Literal::Bytes(self.bytes.clone()),
                Literal::Null,
            ])),
            Render::Array { element, .. } => Some(Literal::Array(
                self.marker(element).map_or_else(|| self.elements(element), |marker| vec![marker]),
            )),
            Render::Boolean
            | Render::Bit
            | Render::Int16
            | Render::Int32
            | Render::Int64
            | Render::Float32
            | Render::Float64
            | Render::Days
            | Render::TimeMillis
            | Render::TimeMicros
            | Render::TimeNanos
            | Render::TimestampMillis
            | Render::TimestampMicros
            | Render::TimestampNanos
            | Render::ClockMillis
            | Render::MicroDuration => None,
        }
    }

    /// The elements of a list whose type has no marker of its own: the placeholder's bytes as
    /// (signed) numbers, which is Debezium's form, or its bits, most significant first.
    fn elements(&self, element: &Render) -> Vec<Literal> {
        let numbers = || self.bytes.iter().map(|byte| byte.cast_signed());
        match element {
            Render::Boolean | Render::Bit => self
                .bytes
                .iter()
                .flat_map(|byte| (0..8).rev().map(move |place| byte >> place & 1 == 1))
                .map(Literal::Boolean)
                .collect(),
            Render::Float32 => numbers().map(|n| Literal::Float32(n.into())).collect(),
            Render::Float64 => numbers().map(|n| Literal::Float64(n.into())).collect(),
            _ => numbers().map(|n| Literal::Int(n.into())).collect(),
        }
    }

    /// The number that the bytes are as a big-endian two's complement, to the nearest double.
    fn double(&self) -> f64 {
        let number = BigInt::from_signed_bytes_be(&self.bytes).to_string();
        number.parse::<f64>().unwrap_or(f64::MAX).clamp(f64::MIN, f64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(placeholder: &str, render: &Render, expect: Literal) {
        let marker = Placeholder::parse(placeholder).unwrap().marker(render);
        assert_eq!(marker, Some(expect));
    }

    fn list(element: Render) -> Render {
        Render::Array { element: Box::new(element), optional: true }
    }

    fn text(text: &str) -> Literal {
        Literal::String(text.to_owned())
    }

    #[test]
    fn texts_and_bytes_hold_the_placeholder_itself() {
        check("gone", &Render::Text, text("gone"));
        check("gone", &Render::DecimalText { scale: None }, text("gone"));
        check("gone", &Render::ZonedTimestamp { digits: 6 }, text("gone"));
        check("go\"ne", &Render::JsonObject, text(r#"{"go\"ne":"go\"ne"}"#));
        check("gone", &Render::TextMap, Literal::Map(vec![("gone".to_owned(), text("gone"))]));
        let geometry = vec![Literal::Bytes(b"gone".to_vec()), Literal::Null];
        check("gone", &Render::Geometry, Literal::Struct(geometry));
        check("gone", &Render::Bytes, Literal::Bytes(b"gone".to_vec()));
        check("hex:00ff41", &Render::Bytes, Literal::Bytes(vec![0, 0xff, 0x41]));
        check("hex:00ff41", &Render::Text, text("\0\u{fffd}A"));
        check("hex:fbff00", &Render::Base64 { url_safe: true }, text("-_8A"));
        check("gone", &Render::Hex, text("gone"));
        check("gone", &Render::Bits, Literal::Bytes(b"gone".to_vec()));
    }

    #[test]
    fn numbers_of_any_size_are_the_number_that_the_placeholder_is() {
        let bytes = || Literal::Bytes(b"gone".to_vec());
        check("gone", &Render::Decimal { scale: 2 }, bytes());
        check("gone", &Render::VariableDecimal, Literal::Struct(vec![Literal::Int(0), bytes()]));
        check("gone", &Render::DecimalDouble, Literal::Float64(f64::from(0x676f_6e65)));
        check("hex:ff", &Render::DecimalDouble, Literal::Float64(-1.0));
        check(&"x".repeat(200), &Render::DecimalDouble, Literal::Float64(f64::MAX));
    }

    #[test]
    fn lists_hold_one_marker_or_the_bytes_or_the_bits() {
        check("gone", &list(Render::Text), Literal::Array(vec![text("gone")]));
        let numbers =
            |numbers: &[i64]| Literal::Array(numbers.iter().copied().map(Literal::Int).collect());
        check("hex:00ff41", &list(Render::Int64), numbers(&[0, -1, 65]));
        check("hex:00ff41", &list(Render::Days), numbers(&[0, -1, 65]));
        check(
            "hex:ff41",
            &list(Render::Float32),
            Literal::Array(vec![Literal::Float32(-1.0), Literal::Float32(65.0)]),
        );
        let bits = [false, true, false, false, false, false, false, true];
        check("A", &list(Render::Boolean), Literal::Array(bits.map(Literal::Boolean).to_vec()));
    }

    #[test]
    fn types_without_room_have_no_marker() {
        for render in [Render::Boolean, Render::Int32, Render::Float64, Render::TimestampMicros] {
            assert_eq!(Placeholder::default().marker(&render), None);
        }
    }

    #[test]
    fn an_empty_or_malformed_placeholder_is_refused() {
        for value in ["", "hex:", "hex:0", "hex:0g", "hex:+1"] {
            assert_eq!(
                Placeholder::parse(value).unwrap_err().code(),
                Code::ConfigInvalid,
                "{value}"
            );
        }
    }
}

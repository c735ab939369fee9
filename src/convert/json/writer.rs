//! Rendered values → JSON text, in the spellings of Kafka's JSON converter and header converter; and
//! texts that are close to it.
//!
//! Knows neither tables nor schemas beyond [`Numbers`]. **Invariant:** what is written is one JSON
//! value for each call, separators are written by what follows them.

use super::number::append_decimal;
use super::text::{
    append_base64, append_escaped, append_float32, append_float64, append_integer, is_forbidden,
};
use super::time::{append_date, append_time, append_timestamp};
use crate::change::ByteText;
use crate::convert::program::{Format, Numbers};
use crate::record::{Presence, Primitive, Schema};

/// How a text spells what JSON has no form for, and what is left of JSON besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::convert) enum Json {
    /// As `JsonConverter` does: decimals as base64 of the unscaled value, Connect's times as numbers.
    Base64,
    /// As `JsonConverter` with `decimal.format=NUMERIC` does.
    Numeric,
    /// As `SimpleHeaderConverter` prints a struct: decimals as numbers, Connect's times as
    /// unquoted ISO 8601 texts, control characters as they are.
    Header,
    /// As `SimpleHeaderConverter` prints a value that is one text or one byte string: without
    /// quotes, as it is.
    Plain,
    /// As `StringConverter` prints a value, by Java's `toString`: `Struct{id=1,name=a}`, nulls left
    /// out. Connect's times are ISO 8601 texts here too, for Java's lose the milliseconds.
    Java,
    /// As `ByteArrayConverter` writes a value, which is bytes: as they are.
    Raw,
}

/// Writes one value.
#[derive(Debug)]
pub(in crate::convert) struct JsonWriter<'a> {
    out: &'a mut Vec<u8>,
    style: Json,
    numbers: Numbers,
}

impl Json {
    fn string(self, text: &str, out: &mut Vec<u8>) {
        self.quote(out);
        self.piece(text, out);
        self.quote(out);
    }

    /// What stands at either end of a string.
    fn quote(self, out: &mut Vec<u8>) {
        if self.is_json() {
            out.push(b'"');
        }
    }

    const fn is_json(self) -> bool {
        match self {
            Self::Base64 | Self::Numeric | Self::Header => true,
            Self::Plain | Self::Java | Self::Raw => false,
        }
    }

    /// Whether what is not a number stands in quotes.
    const fn quotes_words(self) -> bool {
        matches!(self, Self::Base64 | Self::Numeric)
    }

    /// A part of a string's inside.
    pub(in crate::convert) fn piece(self, text: &str, out: &mut Vec<u8>) {
        match self {
            Self::Base64 | Self::Numeric => append_escaped(out, text, is_forbidden),
            Self::Header => append_escaped(out, text, |byte| matches!(byte, b'"' | b'\\')),
            Self::Plain | Self::Java | Self::Raw => out.extend_from_slice(text.as_bytes()),
        }
    }
}

impl Format for Json {
    type Writer<'a> = JsonWriter<'a>;

    fn writer<'a>(&self, out: &'a mut Vec<u8>, numbers: Numbers) -> JsonWriter<'a> {
        JsonWriter { out, style: *self, numbers }
    }

    fn present(&self, _schema: &Schema, _out: &mut Vec<u8>) {}

    fn null(&self, _schema: &Schema, out: &mut Vec<u8>) {
        out.extend_from_slice(b"null");
    }

    fn begin_struct(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self == Self::Java { b"Struct{".as_slice() } else { b"{" });
    }

    fn begin_field(&self, index: usize, name: &str, out: &mut Vec<u8>) {
        if *self == Self::Java {
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
            return;
        }
        if index > 0 {
            out.push(b',');
        }
        self.string(name, out);
        out.push(b':');
    }

    fn end_field(&self, out: &mut Vec<u8>) {
        if *self == Self::Java {
            out.push(b',');
        }
    }

    fn end_struct(&self, out: &mut Vec<u8>) {
        // A comma here is that of a field: without fields the last byte is the brace.
        if *self == Self::Java && out.last() == Some(&b',') {
            out.pop();
        }
        out.push(b'}');
    }

    fn leaves_nulls_out(&self) -> bool {
        *self == Self::Java
    }

    fn begin_map(&self, out: &mut Vec<u8>) -> usize {
        out.push(b'{');
        out.len()
    }

    fn begin_entry(&self, index: usize, key: &str, out: &mut Vec<u8>) {
        if *self == Self::Java && index > 0 {
            out.extend_from_slice(b", ");
        }
        self.begin_field(index, key, out);
    }

    fn end_map(&self, _mark: usize, _count: usize, out: &mut Vec<u8>) {
        out.push(b'}');
    }
}

impl JsonWriter<'_> {
    fn integer(&mut self, value: i64) {
        match (self.style, self.numbers) {
            (Json::Header | Json::Java, Numbers::Date) => append_date(self.out, value),
            (Json::Header | Json::Java, Numbers::Time) => append_time(self.out, value),
            (Json::Header | Json::Java, Numbers::Timestamp) => append_timestamp(self.out, value),
            _ => append_integer(self.out, value),
        }
    }

    /// Turns the bytes that stand raw behind `start` into their text.
    fn spell_raw(&mut self, start: usize) {
        match (self.style, self.numbers) {
            (Json::Raw, _) => {}
            (Json::Numeric | Json::Header | Json::Java, Numbers::Decimal { scale }) => {
                append_decimal(self.out, start, scale);
            }
            (style, _) => {
                append_base64(self.out, start);
                if !style.is_json() {
                    // The text stands alone: without the quotes at its ends.
                    self.out.pop();
                    self.out.remove(start);
                }
            }
        }
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.out.extend_from_slice(if self.style == Json::Java {
                b", ".as_slice()
            } else {
                b","
            });
        }
    }

    fn presence(&mut self, presence: Presence) {
        if presence == Presence::Null {
            self.out.extend_from_slice(b"null");
        }
    }
}

impl Primitive for JsonWriter<'_> {
    fn boolean(&mut self, value: bool) {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    fn int32(&mut self, value: i32) {
        self.integer(value.into());
    }

    fn int64(&mut self, value: i64) {
        self.integer(value);
    }

    fn float32(&mut self, value: f32) {
        append_float32(self.out, value, self.style.quotes_words());
    }

    fn float64(&mut self, value: f64) {
        append_float64(self.out, value, self.style.quotes_words());
    }

    fn text(&mut self, value: &str) {
        self.style.string(value, self.out);
    }

    fn ascii(&mut self, _length: usize, text: impl Iterator<Item = u8>) {
        self.style.quote(self.out);
        self.out.extend(text);
        self.style.quote(self.out);
    }

    fn begin_text(&mut self) -> usize {
        self.style.quote(self.out);
        self.out.len()
    }

    fn piece(&mut self, text: &str) {
        self.style.piece(text, self.out);
    }

    fn end_text(&mut self, _mark: usize) {
        self.style.quote(self.out);
    }

    fn bytes(&mut self, value: ByteText<'_>) {
        let start = self.out.len();
        value.append_to(self.out);
        self.spell_raw(start);
    }

    fn octets(&mut self, _length: usize, bytes: impl Iterator<Item = u8>) {
        let start = self.out.len();
        self.out.extend(bytes);
        self.spell_raw(start);
    }

    fn begin_struct(&mut self) {
        self.style.begin_struct(self.out);
    }

    fn field(&mut self, index: usize, name: &'static str, presence: Presence) {
        if self.style == Json::Java {
            // Every struct of a rendering has bytes in it, which this style does not take.
            self.separate(index);
        }
        self.style.begin_field(index, name, self.out);
        self.presence(presence);
    }

    fn end_struct(&mut self) {
        self.out.push(b'}');
    }

    fn begin_array(&mut self) -> usize {
        self.out.push(b'[');
        self.out.len()
    }

    fn item(&mut self, index: usize, presence: Presence) {
        self.separate(index);
        self.presence(presence);
    }

    fn end_array(&mut self, _mark: usize, _count: usize) {
        self.out.push(b']');
    }

    fn begin_map(&mut self) -> usize {
        self.style.begin_map(self.out)
    }

    fn entry(&mut self, index: usize, key: &str, presence: Presence) {
        self.style.begin_entry(index, key, self.out);
        self.presence(presence);
    }

    fn end_map(&mut self, mark: usize, count: usize) {
        self.style.end_map(mark, count, self.out);
    }
}

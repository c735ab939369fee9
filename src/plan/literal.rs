//! A scalar as a constant: what rendering it would write.
//!
//! Defaults and zeros in schemas go through the same renderer as rows, so that they never disagree.

use crate::change::{ByteText, Scalar, ValueError};
use crate::record::{Literal, Presence, Primitive, Render, render};

/// Renders a scalar into a literal.
///
/// # Errors
/// The value does not fit exactly.
pub(super) fn literal_of(scalar: Scalar<'_>, how: &Render) -> Result<Literal, ValueError> {
    let mut writer = LiteralWriter { open: vec![Vec::new()], text: String::new() };
    render(scalar, how, &mut writer)?;
    Ok(writer.open.pop().and_then(|mut written| written.pop()).unwrap_or(Literal::Null))
}

/// Collects values in the struct or array that is open.
struct LiteralWriter {
    open: Vec<Vec<Literal>>,
    text: String,
}

impl LiteralWriter {
    fn put(&mut self, literal: Literal) {
        if let Some(inner) = self.open.last_mut() {
            inner.push(literal);
        }
    }

    fn presence(&mut self, presence: Presence) {
        if presence == Presence::Null {
            self.put(Literal::Null);
        }
    }

    fn close(&mut self, whole: fn(Vec<Literal>) -> Literal) {
        let parts = self.open.pop().unwrap_or_default();
        self.put(whole(parts));
    }
}

impl Primitive for LiteralWriter {
    fn boolean(&mut self, value: bool) {
        self.put(Literal::Boolean(value));
    }

    fn int32(&mut self, value: i32) {
        self.put(Literal::Int(value.into()));
    }

    fn int64(&mut self, value: i64) {
        self.put(Literal::Int(value));
    }

    fn float32(&mut self, value: f32) {
        self.put(Literal::Float32(value));
    }

    fn float64(&mut self, value: f64) {
        self.put(Literal::Float64(value));
    }

    fn text(&mut self, value: &str) {
        self.put(Literal::String(value.to_owned()));
    }

    fn ascii(&mut self, _length: usize, text: impl Iterator<Item = u8>) {
        self.put(Literal::String(text.map(char::from).collect()));
    }

    fn begin_text(&mut self) -> usize {
        self.text.clear();
        0
    }

    fn piece(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn end_text(&mut self, _mark: usize) {
        let text = std::mem::take(&mut self.text);
        self.put(Literal::String(text));
    }

    fn bytes(&mut self, value: ByteText<'_>) {
        let mut bytes = Vec::new();
        value.append_to(&mut bytes);
        self.put(Literal::Bytes(bytes));
    }

    fn octets(&mut self, _length: usize, bytes: impl Iterator<Item = u8>) {
        self.put(Literal::Bytes(bytes.collect()));
    }

    fn begin_struct(&mut self) {
        self.open.push(Vec::new());
    }

    fn field(&mut self, _index: usize, _name: &'static str, presence: Presence) {
        self.presence(presence);
    }

    fn end_struct(&mut self) {
        self.close(Literal::Struct);
    }

    fn begin_array(&mut self) -> usize {
        self.open.push(Vec::new());
        0
    }

    fn item(&mut self, _index: usize, presence: Presence) {
        self.presence(presence);
    }

    fn end_array(&mut self, _mark: usize, _count: usize) {
        self.close(Literal::Array);
    }

    fn begin_map(&mut self) -> usize {
        self.open.push(Vec::new());
        0
    }

    fn entry(&mut self, _index: usize, key: &str, presence: Presence) {
        self.put(Literal::String(key.to_owned()));
        self.presence(presence);
    }

    fn end_map(&mut self, _mark: usize, _count: usize) {
        let mut parts = self.open.pop().unwrap_or_default().into_iter();
        let mut entries = Vec::new();
        while let (Some(Literal::String(key)), Some(value)) = (parts.next(), parts.next()) {
            entries.push((key, value));
        }
        self.put(Literal::Map(entries));
    }
}

//! Rendered values → Avro's binary encoding.
//!
//! Knows neither tables nor registries. **Invariants:** bytes equal those of Avro's reference
//! encoder (an array is one block with its count, then 0); a union's branch is taken from
//! [`null_branch`] alone. Encoding: Avro specification, "Binary Encoding".

use super::schema::null_branch;
use crate::change::ByteText;
use crate::convert::program::{Format, Numbers};
use crate::record::{Presence, Primitive, Schema};

/// The Avro format.
#[derive(Clone, Copy, Debug)]
pub(in crate::convert) struct Avro;

/// Writes one value.
#[derive(Debug)]
pub(in crate::convert) struct AvroWriter<'a>(&'a mut Vec<u8>);

/// The bytes of the first two branches of a union.
const BRANCH: [u8; 2] = [0, 2];

/// The longest variable-length integer of 64 bits.
const LONGEST: usize = 10;

/// Small magnitudes of either sign become small numbers.
const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// The lowest seven bits, marked as not the last.
const fn continued(rest: u64) -> u8 {
    let [low, ..] = rest.to_le_bytes();
    low | 0x80
}

#[inline]
fn append_long(out: &mut Vec<u8>, value: i64) {
    let mut rest = zigzag(value);
    out.reserve(LONGEST);
    while rest >= 0x80 {
        out.push(continued(rest));
        rest >>= 7;
    }
    let [last, ..] = rest.to_le_bytes();
    out.push(last);
}

#[inline]
fn append_length(out: &mut Vec<u8>, length: usize) {
    append_long(out, length_as_long(length));
}

/// A length in memory never exceeds `isize::MAX`.
const fn length_as_long(length: usize) -> i64 {
    (length as u64).cast_signed()
}

impl Format for Avro {
    type Writer<'a> = AvroWriter<'a>;

    fn writer<'a>(&self, out: &'a mut Vec<u8>, _numbers: Numbers) -> AvroWriter<'a> {
        AvroWriter(out)
    }

    fn present(&self, schema: &Schema, out: &mut Vec<u8>) {
        if let Some(null) = null_branch(schema) {
            out.push(BRANCH[usize::from(null == 0)]);
        }
    }

    fn null(&self, schema: &Schema, out: &mut Vec<u8>) {
        if let Some(null) = null_branch(schema) {
            out.push(BRANCH[usize::from(null != 0)]);
        }
    }

    fn begin_struct(&self, _out: &mut Vec<u8>) {}

    fn begin_field(&self, _index: usize, _name: &str, _out: &mut Vec<u8>) {}

    fn end_struct(&self, _out: &mut Vec<u8>) {}

    fn begin_map(&self, out: &mut Vec<u8>) -> usize {
        AvroWriter(out).begin_array()
    }

    fn begin_entry(&self, _index: usize, key: &str, out: &mut Vec<u8>) {
        AvroWriter(out).text(key);
    }

    fn end_map(&self, mark: usize, count: usize, out: &mut Vec<u8>) {
        AvroWriter(out).end_array(mark, count);
    }
}

impl AvroWriter<'_> {
    fn presence(&mut self, presence: Presence) {
        match presence {
            Presence::Required => {}
            Presence::Null => self.0.push(BRANCH[0]),
            Presence::Present => self.0.push(BRANCH[1]),
        }
    }

    /// Puts a length or count that is known only now before what stands behind the mark.
    fn insert_length(&mut self, mark: usize, length: usize) {
        let end = self.0.len();
        append_length(self.0, length);
        let used = self.0.len() - end;
        if let Some(behind) = self.0.get_mut(mark..) {
            behind.rotate_right(used);
        }
    }
}

impl Primitive for AvroWriter<'_> {
    fn boolean(&mut self, value: bool) {
        self.0.push(u8::from(value));
    }

    fn int32(&mut self, value: i32) {
        append_long(self.0, i64::from(value));
    }

    fn int64(&mut self, value: i64) {
        append_long(self.0, value);
    }

    fn float32(&mut self, value: f32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn float64(&mut self, value: f64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn text(&mut self, value: &str) {
        append_length(self.0, value.len());
        self.0.extend_from_slice(value.as_bytes());
    }

    fn ascii(&mut self, length: usize, text: impl Iterator<Item = u8>) {
        append_length(self.0, length);
        self.0.extend(text);
    }

    fn begin_text(&mut self) -> usize {
        self.0.len()
    }

    fn piece(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    fn end_text(&mut self, mark: usize) {
        self.insert_length(mark, self.0.len() - mark);
    }

    fn bytes(&mut self, value: ByteText<'_>) {
        append_length(self.0, value.len());
        value.append_to(self.0);
    }

    fn octets(&mut self, length: usize, bytes: impl Iterator<Item = u8>) {
        append_length(self.0, length);
        self.0.extend(bytes);
    }

    fn begin_struct(&mut self) {}

    fn field(&mut self, _index: usize, _name: &'static str, presence: Presence) {
        self.presence(presence);
    }

    fn end_struct(&mut self) {}

    fn begin_array(&mut self) -> usize {
        self.0.len()
    }

    fn item(&mut self, _index: usize, presence: Presence) {
        self.presence(presence);
    }

    fn end_array(&mut self, mark: usize, count: usize) {
        // One block, then the empty one that ends the array; an empty array is the latter alone.
        if count > 0 {
            self.insert_length(mark, count);
        }
        self.0.push(0);
    }

    fn begin_map(&mut self) -> usize {
        self.begin_array()
    }

    fn entry(&mut self, _index: usize, key: &str, presence: Presence) {
        self.text(key);
        self.presence(presence);
    }

    fn end_map(&mut self, mark: usize, count: usize) {
        self.end_array(mark, count);
    }
}

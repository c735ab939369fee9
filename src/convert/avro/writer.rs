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

/// A variable-length zigzag integer: its bytes and how many they are.
#[inline]
fn zigzag(value: i64) -> ([u8; LONGEST], usize) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    let mut bytes = [0; LONGEST];
    let mut used = 0;
    for byte in &mut bytes {
        used += 1;
        let [low, ..] = rest.to_le_bytes();
        rest >>= 7;
        if rest == 0 {
            *byte = low;
            break;
        }
        *byte = low | 0x80;
    }
    (bytes, used)
}

#[inline]
fn append_long(out: &mut Vec<u8>, value: i64) {
    let (bytes, used) = zigzag(value);
    out.extend_from_slice(bytes.get(..used).unwrap_or_default());
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

    /// Leaves one byte for a length or count, enough for most; gives the place behind it.
    fn leave_length(&mut self) -> usize {
        self.0.push(0);
        self.0.len()
    }

    /// Fills in what was left before `mark`, and makes room if it needs more.
    fn place_length(&mut self, mark: usize, length: usize) {
        let (bytes, used) = zigzag(length_as_long(length));
        let end = self.0.len();
        self.0.extend(std::iter::repeat_n(0, used - 1));
        self.0.copy_within(mark..end, mark + used - 1);
        for (place, byte) in self.0.iter_mut().skip(mark - 1).zip(bytes.iter().take(used)) {
            *place = *byte;
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
        self.leave_length()
    }

    fn piece(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    fn end_text(&mut self, mark: usize) {
        self.place_length(mark, self.0.len() - mark);
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
        self.leave_length()
    }

    fn item(&mut self, _index: usize, presence: Presence) {
        self.presence(presence);
    }

    fn end_array(&mut self, mark: usize, count: usize) {
        if count == 0 {
            // The byte that was left for the count is the end already.
            return;
        }
        self.place_length(mark, count);
        self.0.push(0);
    }
}

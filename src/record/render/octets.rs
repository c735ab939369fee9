//! Byte strings and bit strings: as bytes, or as text in an alphabet.
//!
//! Everything is an iterator with a known length, so that a writer can put the length first and
//! needs no buffer. Knows no notation of any source but the two of [`ByteText`].

use crate::change::{ByteText, ValueError};

use super::{Primitive, Render, mismatch};

const HEX: &[u8; 16] = b"0123456789abcdef";
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Writes a byte string.
pub(super) fn write(
    value: ByteText<'_>,
    how: &Render,
    out: &mut impl Primitive,
) -> Result<(), ValueError> {
    match how {
        Render::Bytes => out.bytes(value),
        Render::Hex => out.ascii(value.len() * 2, hex(value)),
        Render::Base64 { url_safe } => {
            let alphabet = if *url_safe { BASE64_URL } else { BASE64 };
            out.ascii(value.len().div_ceil(3) * 4, base64(value, alphabet));
        }
        _ => return Err(mismatch("a byte string")),
    }
    Ok(())
}

fn hex(value: ByteText<'_>) -> impl Iterator<Item = u8> {
    (0..value.len() * 2).map(move |place| {
        let byte = value.at(place / 2).unwrap_or(0);
        let nibble = if place % 2 == 0 { byte >> 4 } else { byte & 0xf };
        HEX[usize::from(nibble)]
    })
}

/// RFC 4648, with padding.
fn base64(value: ByteText<'_>, alphabet: &'static [u8; 64]) -> impl Iterator<Item = u8> {
    (0..value.len().div_ceil(3)).flat_map(move |group| {
        let byte = |place: usize| value.at(group * 3 + place);
        let (first, second, third) =
            (byte(0).unwrap_or(0), byte(1).unwrap_or(0), byte(2).unwrap_or(0));
        let letter = |sextet: u8| alphabet[usize::from(sextet & 0x3f)];
        [
            letter(first >> 2),
            letter(first << 4 | second >> 4),
            byte(1).map_or(b'=', |_| letter(second << 2 | third >> 6)),
            byte(2).map_or(b'=', |_| letter(third)),
        ]
    })
}

/// Writes a bit string as Debezium does: as a number whose highest bit comes first in the text, in
/// little-endian bytes, without zero bytes at the end.
pub(super) fn bits(bits: &[u8], out: &mut impl Primitive) {
    let significant = bits.iter().position(|bit| *bit == b'1').map_or(0, |at| bits.len() - at);
    let length = significant.div_ceil(8);
    out.octets(
        length,
        (0..length).map(|byte| {
            (0..8).fold(0, |octet, place| {
                let from_end = byte * 8 + place + 1;
                let set = bits.len().checked_sub(from_end).and_then(|at| bits.get(at));
                octet | u8::from(set == Some(&b'1')) << place
            })
        }),
    );
}

//! Text, bytes, bits, UUIDs, points: text → scalar.
//!
//! Borrows from the cell. Knows no schema. **Invariant:** what goes on as text is UTF-8, whatever
//! the database's encoding lets through.

use super::malformed;
use super::numbers::{float8, parsers};
use super::scan::Scan;
use crate::change::{Bits, ByteText, CellParser, Scalar, ValueError};

/// Everything whose text is published as it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextCell;

impl CellParser for TextCell {
    fn parse<'a>(&'a self, raw: &'a [u8]) -> Result<Scalar<'a>, ValueError> {
        utf8(raw).map(Scalar::Text)
    }
}

parsers! {
    /// `bytea` under `bytea_output=hex`.
    ByteaCell "bytea" "\\x and hexadecimal digits" |raw| {
        let hex = raw.strip_prefix(b"\\x")?;
        let whole = hex.len().is_multiple_of(2) && hex_digits(hex) == hex.len();
        whole.then_some(Scalar::Bytes(ByteText::Hex(hex)))
    };
    /// `bit` and `bit varying`.
    BitsCell "bit string" "the digits 0 and 1" |raw| {
        raw.iter().all(|bit| matches!(bit, b'0' | b'1')).then_some(Scalar::Bits(Bits(raw)))
    };
    /// `uuid`.
    UuidCell "uuid" "32 hexadecimal digits in five groups" |raw| {
        let dashes = [8, 13, 18, 23].iter().all(|&place| raw.get(place) == Some(&b'-'));
        if raw.len() != 36 || !dashes || hex_digits(raw) != 32 {
            return None;
        }
        std::str::from_utf8(raw).ok().map(Scalar::Text)
    };
    /// `PostGIS`' `geometry` and `geography`: extended well-known binary in hexadecimal digits. Its
    /// head is the byte order, the kind with flags, and (under [`HAS_SRID`]) the reference system.
    GeometryCell "geometry" "well-known binary in hexadecimal digits" |raw| {
        let wkb = ByteText::Hex(raw);
        if !raw.len().is_multiple_of(2) || hex_digits(raw) != raw.len() {
            return None;
        }
        let word = |start: usize| {
            let mut bytes = [0; 4];
            for (offset, byte) in bytes.iter_mut().enumerate() {
                *byte = wkb.at(start.checked_add(offset)?)?;
            }
            match wkb.at(0)? {
                0 => Some(u32::from_be_bytes(bytes)),
                1 => Some(u32::from_le_bytes(bytes)),
                _ => None,
            }
        };
        let srid = match word(1)? & HAS_SRID {
            0 => None,
            _ => Some(word(5)?.cast_signed()),
        };
        Some(Scalar::Geometry { wkb, srid })
    };
    /// `point`.
    PointCell "point" "two numbers in parentheses" |raw| {
        let mut scan = Scan::new(raw);
        scan.expect(b'(')?;
        let x = float8(scan.take_while(|byte| byte != b','))?;
        scan.expect(b',')?;
        let y = float8(scan.take_while(|byte| byte != b')'))?;
        scan.expect(b')')?;
        scan.end()?;
        Some(Scalar::Point { x, y })
    };
}

/// `PostGIS`' flag in a geometry's kind (`liblwgeom`, `WKBSRIDFLAG`).
const HAS_SRID: u32 = 0x2000_0000;

/// Counts without leaving early, which the compiler turns into steps over many bytes at once.
fn hex_digits(raw: &[u8]) -> usize {
    raw.iter().filter(|byte| byte.is_ascii_hexdigit()).count()
}

pub(super) fn utf8(raw: &[u8]) -> Result<&str, ValueError> {
    std::str::from_utf8(raw).map_err(|error| ValueError::Encoding { at: error.valid_up_to() })
}

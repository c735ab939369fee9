//! pgvector's `vector` and `halfvec`: text → numbers, one after another.
//!
//! Reads what the extension's output functions write (`vector_out`: `[1,2.5,-3e-05]`). Knows no
//! schema. **Invariant:** each number is the one nearest to its text, at the published precision.

use super::malformed;
use super::numbers::{float4, float8};
use super::scan::Scan;
use crate::change::{CellParser, Scalar, Sequence, SequenceReader, ValueError};

/// `vector`, whose numbers are published in double precision, as Debezium's.
#[derive(Clone, Copy, Debug)]
pub(super) struct VectorCell;

/// `halfvec`, in single precision.
#[derive(Clone, Copy, Debug)]
pub(super) struct HalfVectorCell;

impl CellParser for VectorCell {
    /// The numbers are read, and their notation checked, when they are visited.
    fn parse<'a>(&'a self, raw: &'a [u8]) -> Result<Scalar<'a>, ValueError> {
        Ok(Scalar::Sequence(Sequence { raw, reader: self }))
    }
}

impl SequenceReader for VectorCell {
    fn visit(
        &self,
        raw: &[u8],
        each: &mut dyn FnMut(Scalar<'_>) -> Result<(), ValueError>,
    ) -> Result<(), ValueError> {
        visit(raw, |number| float8(number).map(Scalar::Float64), each)
    }
}

impl CellParser for HalfVectorCell {
    /// The numbers are read, and their notation checked, when they are visited.
    fn parse<'a>(&'a self, raw: &'a [u8]) -> Result<Scalar<'a>, ValueError> {
        Ok(Scalar::Sequence(Sequence { raw, reader: self }))
    }
}

impl SequenceReader for HalfVectorCell {
    fn visit(
        &self,
        raw: &[u8],
        each: &mut dyn FnMut(Scalar<'_>) -> Result<(), ValueError>,
    ) -> Result<(), ValueError> {
        visit(raw, |number| float4(number).map(Scalar::Float32), each)
    }
}

fn visit(
    raw: &[u8],
    number: impl Fn(&[u8]) -> Option<Scalar<'static>>,
    each: &mut dyn FnMut(Scalar<'_>) -> Result<(), ValueError>,
) -> Result<(), ValueError> {
    let broken = || malformed("vector", "numbers in brackets");
    let mut scan = Scan::new(raw);
    scan.expect(b'[').ok_or_else(broken)?;
    let mut more = !scan.eat(b']');
    while more {
        let text = scan.take_while(|byte| !matches!(byte, b',' | b']'));
        each(number(text).ok_or_else(broken)?)?;
        more = scan.eat(b',');
        if !more {
            scan.expect(b']').ok_or_else(broken)?;
        }
    }
    scan.end().ok_or_else(broken)
}

//! Arrays: text → elements, one after another.
//!
//! Reads what the server's `array_out` writes (`utils/adt/arrayfuncs.c`): elements are quoted when
//! they could be misread, a bare NULL is the null, explicit lower bounds stand in front. Knows no
//! schema. **Invariant:** the number and order of elements is the array's; one of more than one
//! dimension is refused, never flattened.

use std::sync::Arc;

use super::malformed;
use super::scan::Scan;
use crate::change::{CellParser, Scalar, Sequence, SequenceReader, ValueError};

/// An array of one dimension, whatever its lower bound.
#[derive(Clone, Debug)]
pub(super) struct ArrayCell {
    element: Arc<dyn CellParser>,
    delimiter: u8,
}

/// What stands between two delimiters.
enum Element<'a> {
    Null,
    Raw(&'a [u8]),
}

impl ArrayCell {
    pub(super) const fn new(element: Arc<dyn CellParser>, delimiter: u8) -> Self {
        Self { element, delimiter }
    }

    fn element<'b, 'a: 'b>(
        &self,
        scan: &mut Scan<'a>,
        scratch: &'b mut Vec<u8>,
    ) -> Option<Element<'b>> {
        if scan.peek() == Some(b'"') {
            return scan.quoted(scratch).map(Element::Raw);
        }
        let bare = |byte: u8| byte != self.delimiter && !matches!(byte, b'{' | b'}' | b'"' | b'\\');
        match scan.take_while(bare) {
            b"" => None,
            b"NULL" => Some(Element::Null),
            raw => Some(Element::Raw(raw)),
        }
    }
}

impl CellParser for ArrayCell {
    /// The elements are read, and their notation checked, when they are visited.
    fn parse<'a>(&'a self, raw: &'a [u8]) -> Result<Scalar<'a>, ValueError> {
        Ok(Scalar::Sequence(Sequence { raw, reader: self }))
    }
}

impl SequenceReader for ArrayCell {
    fn visit(
        &self,
        raw: &[u8],
        each: &mut dyn FnMut(Scalar<'_>) -> Result<(), ValueError>,
    ) -> Result<(), ValueError> {
        let broken = || malformed("array", "elements in braces");
        let mut scan = Scan::new(raw);
        one_dimension(&mut scan)?;
        scan.expect(b'{').ok_or_else(broken)?;
        let mut more = !scan.eat(b'}');
        let mut scratch = Vec::new();
        while more {
            if scan.peek() == Some(b'{') {
                return Err(dimensions());
            }
            match self.element(&mut scan, &mut scratch).ok_or_else(broken)? {
                Element::Null => each(Scalar::Null)?,
                Element::Raw(element) => each(self.element.parse(element)?)?,
            }
            more = scan.eat(self.delimiter);
            if !more {
                scan.expect(b'}').ok_or_else(broken)?;
            }
        }
        scan.end().ok_or_else(broken)
    }
}

/// Skips `[0:2]=`. Several bounds are several dimensions.
fn one_dimension(scan: &mut Scan<'_>) -> Result<(), ValueError> {
    if scan.peek() != Some(b'[') {
        return Ok(());
    }
    let bounds = scan.take_while(|byte| byte != b'=');
    if bounds.iter().filter(|&&byte| byte == b'[').count() > 1 {
        return Err(dimensions());
    }
    let form = |byte: &u8| matches!(byte, b'[' | b']' | b':' | b'-' | b'+' | b'0'..=b'9');
    if !bounds.ends_with(b"]") || !bounds.iter().all(form) || !scan.eat(b'=') {
        return Err(malformed("array", "bounds before the elements"));
    }
    Ok(())
}

fn dimensions() -> ValueError {
    ValueError::Unrepresentable(
        "an array of more than one dimension in a column declared with one; \
         declare the column with its dimensions (integer[][]) to have it published as text"
            .to_owned(),
    )
}
